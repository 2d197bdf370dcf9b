//! Plans and beds of the repository as they are, with guests as the VMs of a bed; options that every user has make the trials few and short. Of the
//! plans for Azure these are not here: `azure-dpdk` drives NICs of a model that QEMU does not emulate, `azure-dual-stack` needs four VMs
//! and has them in the tests of the crate netduel, and `azure-linux-hot-add` sets a virtual function down, which netduel refuses below net_failover.
use std::fs;

use netduel_guests::{Bed, Scene, guest_uuid, management_mac};
use serde_json::{Value, json};

use super::azure::{MANAGEMENT_ADDRESS, claim, shown_mac, with_networks_apart};
use super::coordinator::{Coordinator, Printed, assert_all_valid, keep};
use super::run_in_both;

/// The guests' virtual function leaves, and returns below net_failover.
const LEAVE: &str =
    "echo 1 > /sys/class/net/eth0/device/remove; until [ ! -e /sys/class/net/eth0 ]; do usleep 50000; done";
const RETURN: &str = "echo 1 > /sys/bus/pci/rescan; \
     until [ -e /sys/class/net/eth0/master ]; do usleep 50000; done; . /scene.sh; up eth0";

/// A plan with its bed.
struct Shipped {
    /// The name of the plan.
    plan: &'static str,
    /// The name of the bed that its comments name.
    bed: &'static str,
    /// That of each workload.
    duration: &'static str,
    /// Further options.
    options: &'static [&'static str],
    /// Trials of each arm: workloads in two blocks.
    trials_of_arm: u64,
    /// The arms, and what has to carry their bytes.
    arms: &'static [(&'static str, Carrier)],
    /// What the report has beside its section about the bed: a NIC, the title of the publication, the price.
    parts: [&'static str; 3],
}

/// What carries the bytes of an arm.
#[derive(Debug, Clone, Copy)]
enum Carrier {
    /// The interface with this name, at both ends.
    Interface(&'static str),
    /// The virtual function.
    Vf,
    /// The NIC above it, or the one that has none.
    Synthetic,
}

impl Carrier {
    /// Path and interface in the plan of a report.
    fn expected(self) -> [Value; 2] {
        match self {
            Self::Interface(name) => [Value::Null, name.into()],
            Self::Vf => ["vf".into(), Value::Null],
            Self::Synthetic => ["synthetic".into(), Value::Null],
        }
    }

    /// Its name in the proofs of a report.
    fn words(self) -> &'static str {
        match self {
            Self::Interface(name) => name,
            Self::Vf => "the virtual function",
            Self::Synthetic => "the synthetic path",
        }
    }
}

const THROUGHPUT: Shipped = Shipped {
    plan: "azure-throughput",
    bed: "two-nic",
    duration: "2 s",
    options: &[],
    trials_of_arm: 8,
    arms: &[("synthetic", Carrier::Interface("pf0")), ("accelerated", Carrier::Vf)],
    parts: ["vm1-management", "Stress Testing Azure Accelerated Networking", "0.25 USD for Standard_DS4_v2"],
};

const LINUX: Shipped = Shipped {
    plan: "azure-linux",
    bed: "two-nic",
    duration: "500 ms",
    options: &[],
    trials_of_arm: 10,
    arms: &[
        ("default", Carrier::Interface("virt0")),
        ("one-queue", Carrier::Interface("virt0")),
        ("four-queues", Carrier::Interface("virt0")),
        ("no-large-send", Carrier::Interface("virt0")),
        ("no-checksums", Carrier::Interface("virt0")),
        ("accelerated", Carrier::Vf),
    ],
    parts: ["vm2-accelerated", "Microsoft Loves Linux Deep Dive 4", "0.25 USD for Standard_DS4_v2"],
};

const LATENCY: Shipped = Shipped {
    plan: "azure-latency",
    bed: "toggle",
    duration: "1 s",
    options: &["--allow-deallocate"],
    trials_of_arm: 4,
    arms: &[
        ("synthetic", Carrier::Synthetic),
        ("accelerated", Carrier::Vf),
        ("accelerated-near", Carrier::Vf),
    ],
    parts: ["vm2-test", "Azure accelerated networking put to the test", "0.25 USD for Standard_DS2_v2"],
};

/// NTttcp's experiment, over a virtual function of SR-IOV. The guests are those of the scene `igb`.
pub fn check_throughput(bed: &mut Bed, coordinator: &Coordinator) {
    prepare(bed, coordinator);
    let ids = [1, 2].map(guest_uuid);
    claim(coordinator, [false, true], [&ids[0], &ids[1]]);
    // The emulated device counts the datagrams of a buffer as packets, and none of them arrives.
    run_in_both(bed.guests(), |_| "ethtool -K pf0 tx-udp-segmentation off".to_owned());
    with_networks_apart(bed, |bed| {
        up(bed, coordinator, &THROUGHPUT);
        measure(bed, coordinator, &THROUGHPUT);
        down(bed, coordinator, &THROUGHPUT);
    });
}

/// Queues and offloads of the synthetic NIC. The guests are those of the scene `azure`, with their virtual functions. Before
/// [`check_latency`].
pub fn check_linux(bed: &mut Bed, coordinator: &Coordinator) {
    prepare(bed, coordinator);
    claim_networks(coordinator, &[("synthetic", "virt0"), ("accelerated", "fo0")]);
    let look = "ethtool -k virt0; ethtool -l virt0";
    let before = run_in_both(bed.guests(), |_| look.to_owned());
    up(bed, coordinator, &LINUX);
    measure(bed, coordinator, &LINUX);
    down(bed, coordinator, &LINUX);
    assert_eq!(run_in_both(bed.guests(), |_| look.to_owned()), before);
}

/// A NIC that is switched while its VM runs, and a proximity group, for which the VM is stopped: the guest runs on, because only the stand-in for
/// Azure knows of the stop. The virtual functions of the guests are gone afterwards, as those of the bed are at its beginning.
pub fn check_latency(bed: &mut Bed, coordinator: &Coordinator) {
    claim_networks(coordinator, &[("test", "fo0")]);
    run_in_both(bed.guests(), |_| LEAVE.to_owned());
    coordinator.file("az", &switching_az());
    up(bed, coordinator, &LATENCY);
    let errors = measure(bed, coordinator, &LATENCY);
    let changes = [
        "accelerated networking of vm1-test on",
        "accelerated networking of vm2-test off",
        "vm1 in the proximity group",
    ];
    for change in changes {
        assert!(errors.contains(change), "{change:?} was not made: {errors}");
    }
    // The original state of both NICs.
    let functions = run_in_both(bed.guests(), |_| "ls /sys/class/net".to_owned());
    assert!(functions.iter().all(|names| !names.contains("eth0")), "{functions:?}");
    down(bed, coordinator, &LATENCY);
}

/// What the beds and plans of the repository expect: a public key, with HOME in the coordinator's folder, and a `sudo`, as a VM's user is not root;
/// that of guests is.
fn prepare(bed: &mut Bed, coordinator: &Coordinator) {
    let keys = coordinator.folder().join(".ssh");
    fs::create_dir(&keys).unwrap();
    fs::write(keys.join("id_ed25519.pub"), "ssh-ed25519 AAAAC3Nz\n").unwrap();
    let sudo = r#"printf '#!/bin/sh\nwhile case $1 in -*) true ;; *) false ;; esac; do shift; done\nexec "$@"\n' > /bin/sudo; chmod 755 /bin/sudo"#;
    run_in_both(bed.guests(), |_| sudo.to_owned());
}

/// What Azure claims of NICs by the networks of a bed: each is that interface of the scene `azure`. Their flags are those of the bed.
fn claim_networks(coordinator: &Coordinator, networks: &[(&str, &str)]) {
    let scene = Scene::named("azure").unwrap();
    let mut claims = json!({});
    for vm in [1, 2] {
        claims[format!("vm{vm}")] = json!({ "id": guest_uuid(vm) });
        let management = json!({ "mac": shown_mac(&management_mac(vm)), "address": MANAGEMENT_ADDRESS });
        claims[format!("vm{vm}-management")] = management;
        for (network, interface) in networks {
            let nic = scene.nic(interface).unwrap();
            let address = format!("10.{}.0.{vm}", nic.subnet.unwrap());
            claims[format!("vm{vm}-{network}")] =
                json!({ "mac": shown_mac(&scene.mac(vm, nic)), "address": address });
        }
    }
    coordinator.real_az().unwrap().claim(&claims.to_string());
}

/// An `az` that is also the hypervisor: after a switch of a NIC its virtual function leaves the guest or returns.
fn switching_az() -> String {
    format!(
        r#"#!/bin/sh
folder=$(dirname "$0")
# The first folder of the search path is that of this script.
PATH=${{PATH#*:}}
az "$@" || exit
case " $* " in
  *' nic update '*' --accelerated-networking true '*) change='{RETURN}' ;;
  *' nic update '*' --accelerated-networking false '*) change='{LEAVE}' ;;
  *) exit 0 ;;
esac
case " $* " in
  *' --name vm1-test '*) vm=vm1 peer=2 ;;
  *' --name vm2-test '*) vm=vm2 peer=1 ;;
  *) exit 1 ;;
esac
exec "$folder/ssh" "$vm" "$change; until ping -c 1 -W 1 10.1.0.$peer; do usleep 50000; done" > /dev/null
"#
    )
}

/// A file of the repository.
fn file(folder: &str, name: &str) -> String {
    format!("{}/../../{folder}/{name}.toml", env!("CARGO_MANIFEST_DIR"))
}

fn up(bed: &Bed, coordinator: &Coordinator, shipped: &Shipped) {
    let file = file("beds", shipped.bed);
    let mut up = coordinator.command(bed, &["azure", "up", &file, "--ssh-from", "192.0.2.1/32"]);
    Printed::from(up.env("HOME", coordinator.folder()).output().unwrap()).expect_code(0);
}

fn down(bed: &Bed, coordinator: &Coordinator, shipped: &Shipped) {
    coordinator.run(bed, &["azure", "down", &file("beds", shipped.bed), "--yes"]).expect_code(0);
}

/// Each trial is valid and proven, and the report shows bed, price and publication. Returns what the program printed beside it.
fn measure(bed: &Bed, coordinator: &Coordinator, shipped: &Shipped) -> String {
    let folder = coordinator.folder().join(format!("report-of-{}", shipped.plan));
    let (plan, bed_file, out) =
        (file("plans", shipped.plan), file("beds", shipped.bed), folder.display().to_string());
    let words = ["azure", "run", &plan, "--bed", &bed_file, "--out", &out, "--json"];
    let duration = coordinator.duration(shipped.duration);
    let few = ["--set", "blocks_min=2", "--set", "blocks_max=2", "--set", &duration];
    let printed = coordinator.run(bed, &[&words[..], &few, shipped.options].concat()).expect_code(0);
    let report = printed.document();
    assert_all_valid(&report, shipped.trials_of_arm * shipped.arms.len() as u64);
    let arms = report["plan"]["arms"].as_array().unwrap();
    let proofs: Vec<&str> =
        report["path_proofs"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert_eq!(arms.len(), shipped.arms.len(), "{arms:#?}");
    for (name, carrier) in shipped.arms {
        let arm = arms.iter().find(|arm| arm["name"] == *name).unwrap_or_else(|| panic!("{name}: {arms:#?}"));
        let expected = [&arm["expected_path"], &arm["expected_interface_client"]];
        assert_eq!(expected, carrier.expected().each_ref(), "{arm:#}");
        let start = format!("{name}: ");
        let of_arm: Vec<&&str> = proofs.iter().filter(|proof| proof.starts_with(&start)).collect();
        let count = format!("{0} of {0} trials proven)", shipped.trials_of_arm);
        let is_proven = |proof: &&&str| proof.contains(carrier.words()) && proof.contains(&count);
        assert!(!of_arm.is_empty() && of_arm.iter().all(is_proven), "{name}, {count}: {proofs:#?}");
    }
    let page = fs::read_to_string(folder.join("report.html")).unwrap();
    keep(&folder, shipped.plan);
    for part in ["Test bed"].iter().chain(&shipped.parts) {
        assert!(page.contains(part), "{part:?} is missing in the report of {}", shipped.plan);
    }
    printed.stderr
}
