//! VMs of a bed: network namespaces with an sshd each. Their user, keys and folders are those of the test.
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use netduel_test_support::{NewNamespace, skip, write_program};

use crate::support::{Bench, until};

const SSHD: &str = "/usr/sbin/sshd";
/// The VMs with the numbers in `vms`, without NICs.
const PREPARE: &str = "ip link set lo up
mount -t tmpfs tmpfs /run
mkdir -m 755 /run/sshd /run/netns
mount -t tmpfs tmpfs /var/lib
for n in $vms; do
  ip netns add vm$n
  ip -n vm$n link set lo up
done
";
/// Each VM has a NIC in each of two networks. ssh reaches it through the first.
const TWO_NETWORKS: &str = "for network in synthetic accelerated; do
  ip link add $network type bridge
  ip link set $network up
done
ip address add 192.0.2.1/24 dev synthetic
for n in $vms; do
  nic=0
  for network in synthetic accelerated; do
    ip link add $network$n type veth peer name eth$nic address 00:0d:3a:00:0$nic:0$n netns vm$n
    ip link set $network$n master $network up
    ip -n vm$n address add 10.77.$nic.$((n + 3))/24 dev eth$nic
    ip -n vm$n link set eth$nic up
    nic=$((nic + 1))
  done
  ip -n vm$n address add 192.0.2.$((n + 6))/24 dev eth0
done";
/// The same with a subnet of both families for each NIC, as in a bed with `subnets = 2`. This namespace is the router between them, at Azure's
/// addresses for it. A VM has a default route for IPv4, that of its first NIC.
const FOUR_SUBNETS: &str = "echo 1 > /proc/sys/net/ipv4/ip_forward
echo 1 > /proc/sys/net/ipv6/conf/all/forwarding
subnet=0
for n in $vms; do
  for nic in 0 1; do
    ip link add subnet$subnet type veth peer name eth$nic address 00:0d:3a:00:0$nic:0$n netns vm$n
    ip link set subnet$subnet up
    ip -n vm$n link set eth$nic up
    ip address add 10.77.$subnet.1/24 dev subnet$subnet
    ip address add fd77:6e64:0:${subnet}::1/64 dev subnet$subnet nodad
    ip address add fe80::1234:5678:9abc/64 dev subnet$subnet nodad
    ip -n vm$n address add 10.77.$subnet.$((n + 3))/24 dev eth$nic
    ip -n vm$n address add fd77:6e64:0:${subnet}::$((n + 3))/128 dev eth$nic nodad
    if [ $nic = 0 ]; then
      ip -n vm$n route add default via 10.77.$subnet.1 dev eth0
      ip -n vm$n address add 192.0.2.$((n + 6))/32 dev eth0
      ip route add 192.0.2.$((n + 6))/32 dev subnet$subnet
    fi
    subnet=$((subnet + 1))
  done
done";

/// Clients in the subnet of vm1 and vm3, servers in that of vm2 and vm4, as in a bed of two pairs with `subnets = 2`, and a network for ssh. This
/// namespace is the router between the subnets, at Azure's addresses for it. The test NIC of a VM is made as in the lab of netduel, so that a
/// virtual function below it is known by the names: a bridge that has the addresses, with the port `syn0` and, while there is a virtual function,
/// `vf0`. Its MAC address is that of the bridge.
const TWO_PAIRS: &str = "echo 1 > /proc/sys/net/ipv4/ip_forward
echo 1 > /proc/sys/net/ipv6/conf/all/forwarding
ip link add management type bridge
ip link set management up
ip address add 192.0.2.1/24 dev management
for subnet in 1 2; do
  ip link add subnet$subnet address 12:34:56:78:9a:bc type bridge
  ip link set subnet$subnet up
  ip address add 10.77.$subnet.1/24 dev subnet$subnet
  ip address add fd77:6e64:0:${subnet}::1/64 dev subnet$subnet nodad
  ip address add fe80::1234:5678:9abc/64 dev subnet$subnet nodad
done
for n in $vms; do
  subnet=$((2 - n % 2))
  ip link add management$n type veth peer name eth0 address 00:0d:3a:00:00:0$n netns vm$n
  ip link set management$n master management up
  ip -n vm$n address add 10.77.0.$((n + 3))/24 dev eth0
  ip -n vm$n address add 192.0.2.$((n + 6))/24 dev eth0
  ip -n vm$n link set eth0 up
  ip link add syn$n type veth peer name syn0 netns vm$n
  ip link set syn$n master subnet$subnet up
  ip -n vm$n link add eth1 address 00:0d:3a:00:0$subnet:0$n type bridge
  ip -n vm$n link set syn0 master eth1 up
  ip -n vm$n link set eth1 up
  ip -n vm$n address add 10.77.$subnet.$((n + 3))/24 dev eth1
  ip -n vm$n address add fd77:6e64:0:${subnet}::$((n + 3))/128 dev eth1 nodad
done";
/// `switch VM on|off`: adds the virtual function of a VM of two pairs, or removes it. The synthetic port carries nothing while there is one. Ends
/// when the bridges forward, and the one of the VM has forgotten the other way.
const SWITCH: &str = r#"set -e
n=${1#vm}
subnet=$((2 - n % 2))
# port STATE OPTIONS: waits until a port of a bridge is in a state.
port() {
  state=$1
  shift
  until ip -d "$@" | grep -q "bridge_slave state $state "; do sleep 0.02; done
}
if [ "$2" = on ]; then
  ip link set "syn$n" down
  ip link add "vf$n" type veth peer name vf0 address "00:0d:3a:00:0$subnet:0$n" netns "vm$n"
  ip link set "vf$n" master "subnet$subnet" up
  ip -n "vm$n" link set vf0 master eth1 up
  port disabled -n "vm$n" link show dev syn0
  port forwarding -n "vm$n" link show dev vf0
  port forwarding link show dev "vf$n"
else
  ip link delete "vf$n"
  ip link set "syn$n" up
  port forwarding -n "vm$n" link show dev syn0
  port forwarding link show dev "syn$n"
fi
until ip -br -n "vm$n" link show dev eth1 | grep -q ' UP '; do sleep 0.02; done"#;
/// An `az` that is also the hypervisor: after a switch of a NIC, the virtual function of its VM is removed or added.
const SWITCHING_AZ: &str = r#"folder=$(dirname "$0")
# The first folder of the search path is that of this script.
PATH=${PATH#*:}
az "$@" || exit
words=$*
case " $words " in
  *' nic update '*' --accelerated-networking true '*) state=on ;;
  *' nic update '*' --accelerated-networking false '*) state=off ;;
  *) exit 0 ;;
esac
nic=${words#*--name }
exec "$folder/switch" "${nic%%-*}" "$state" > /dev/null"#;

/// VMs `vm1`, `vm2` and so on, at 192.0.2.7, 192.0.2.8 and so on.
pub struct Vms {
    sshds: Vec<Child>,
}

/// Runs a test where these VMs can be started; says so where they cannot.
#[track_caller]
pub fn with_room_for_vms(test: &str, body: impl FnOnce()) {
    with_room(test, "1 2", TWO_NETWORKS, body);
}

/// The same with a router between the VMs.
#[track_caller]
pub fn with_room_for_vms_in_subnets(test: &str, body: impl FnOnce()) {
    with_room(test, "1 2", FOUR_SUBNETS, body);
}

/// The same for the four VMs of [`Vms::start_two_pairs`].
#[track_caller]
pub fn with_room_for_two_pairs(test: &str, body: impl FnOnce()) {
    with_room(test, "1 2 3 4", TWO_PAIRS, body);
}

#[track_caller]
fn with_room(test: &str, vms: &str, networks: &str, body: impl FnOnce()) {
    if !rustix::process::geteuid().is_root() {
        return skip("sshd changes its user, for which it needs root");
    }
    if !Path::new(SSHD).exists() {
        return skip("there is no sshd; it is in the package openssh-server");
    }
    let prepare = format!("vms='{vms}'\n{PREPARE}{networks}");
    NewNamespace { prepare: &prepare, ..NewNamespace::default() }.run(test, body);
}

/// Sets the physical host that Hyper-V names to both VMs, as its guest daemon writes it; see `netduel_host::key_value_pool`.
pub fn move_to_physical_host(name: &str) {
    let mut record = vec![0; 512 + 2048];
    for (start, text) in [(0, "PhysicalHostName"), (512, name)] {
        record[start..start + text.len()].copy_from_slice(text.as_bytes());
    }
    fs::create_dir_all("/var/lib/hyperv").unwrap();
    // A reader sees one name or the other.
    fs::write("/var/lib/hyperv/new", record).unwrap();
    fs::rename("/var/lib/hyperv/new", "/var/lib/hyperv/.kvp_pool_3").unwrap();
}

/// Writes a program of a test into its folder.
pub fn program(bench: &Bench, name: &str, script: &str) {
    write_program(bench.path().join(name), format!("#!/bin/sh\n{script}\n"));
}

impl Vms {
    /// Starts `vm1` and `vm2`. The folder gets `bin/ssh`, which reaches them, and `vm-bin`, the first folder of their
    /// search path, with `sudo` and a `gzip` that does not work.
    pub fn start(bench: &Bench) -> Self {
        Self::start_first(bench, 2)
    }

    /// Starts `vm1` to `vm4`, without virtual functions. The folder also gets `bin/switch`, which adds and removes them, and `bin/az`, which calls
    /// it where a NIC is switched.
    pub fn start_two_pairs(bench: &Bench) -> Self {
        let vms = Self::start_first(bench, 4);
        program(bench, "bin/switch", SWITCH);
        program(bench, "bin/az", SWITCHING_AZ);
        vms
    }

    fn start_first(bench: &Bench, count: u8) -> Self {
        let at = |name: &str| bench.path().join(name).display().to_string();
        for folder in ["bin", "vm-bin"] {
            fs::create_dir_all(at(folder)).unwrap();
        }
        for key in std::iter::once("user_key".to_owned()).chain((1..=count).map(key_of)) {
            let mut keygen = Command::new("ssh-keygen");
            keygen.args(["-q", "-t", "ed25519", "-N", "", "-f", &at(&key)]);
            assert!(keygen.status().unwrap().success());
        }
        let config = format!("IdentityFile {}\nIdentitiesOnly yes\nIdentityAgent none\n", at("user_key"));
        fs::write(at("ssh_config"), config).unwrap();
        // ssh finds the configuration of a user by the password database, not by HOME.
        program(bench, "bin/ssh", &format!("exec /usr/bin/ssh -F {} \"$@\"", at("ssh_config")));
        program(bench, "vm-bin/sudo", "[ \"$1\" = -n ] || exit 1\nshift\nexec \"$@\"");
        // Without optimization the program is large, and takes seconds to compress.
        program(bench, "vm-bin/gzip", "exit 1");
        let mut vms = Self { sshds: Vec::new() };
        for number in 1..=count {
            vms.sshds.push(sshd(bench, number));
        }
        vms
    }
}

/// The file with the host key of a VM.
fn key_of(number: u8) -> String {
    format!("vm{number}_key")
}

/// Starts the sshd of a VM and waits until it listens.
fn sshd(bench: &Bench, number: u8) -> Child {
    let at = |name: &str| bench.path().join(name).display().to_string();
    let mut marked = Command::new("true");
    bench.mark(&mut marked);
    let marks: String = marked
        .get_envs()
        .filter_map(|(name, value)| Some(format!(" {}={}", name.to_str().unwrap(), value?.to_str().unwrap())))
        .collect();
    let home = at(&format!("home{number}"));
    fs::create_dir(&home).unwrap();
    let config = format!(
        "ListenAddress 192.0.2.{}:22\nHostKey {}\nAuthorizedKeysFile {}\nStrictModes no\nUsePAM no\nPasswordAuthentication no\n\
         KbdInteractiveAuthentication no\nPermitRootLogin yes\nPidFile none\n\
         SetEnv HOME={home} PATH={}:/usr/bin:/bin:/usr/sbin:/sbin{marks}\n",
        number + 6,
        at(&key_of(number)),
        at("user_key.pub"),
        at("vm-bin"),
    );
    let (config_file, log_file) = (at(&format!("sshd{number}")), at(&format!("sshd{number}.log")));
    fs::write(&config_file, config).unwrap();
    let vm = format!("vm{number}");
    let mut sshd = Command::new("ip");
    sshd.args(["netns", "exec", &vm, SSHD, "-D", "-e", "-f", &config_file]);
    sshd.stdin(Stdio::null()).stderr(fs::File::create(&log_file).unwrap());
    let sshd = sshd.spawn().unwrap();
    let log = || fs::read_to_string(&log_file).unwrap();
    assert!(until(|| log().contains("Server listening")), "{}", log());
    sshd
}

impl Drop for Vms {
    fn drop(&mut self) {
        for sshd in &mut self.sshds {
            // It may have ended.
            drop(sshd.kill());
            drop(sshd.wait());
        }
    }
}

#[track_caller]
pub fn assert_names(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part:?} is missing in:\n{text}");
    }
}
