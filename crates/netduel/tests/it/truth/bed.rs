//! Test namespaces connected by veth, with the program's own agents in them. Contains no expectations.
use std::fs::File;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::path::Path;
use std::process::{Command, Output};
use std::sync::{Mutex, MutexGuard, PoisonError};

use netduel_model::run::Run;
use netduel_model::trial::Trial;
use netduel_store::Store;
use netduel_sys::ethtool::Ethtool;
use netduel_sys::namespace::{self, Kind};

use netduel_test_support::skip;
use rustix::process::setpriority_process;

use crate::support::{Bench, Finished};

/// Runs one of these tests at a time: each needs the machine's cores for its comparison.
pub fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Prints why these tests are skipped; fails when all tests are required.
pub fn skipped_without_root() -> bool {
    if rustix::process::geteuid().is_root() {
        return false;
    }
    skip("namespaces with queues and BPF programs of the test's own need root");
    true
}

/// Raises the priority of the calling thread, so that other work of the machine does not delay the measurement.
pub fn prefer_this_thread() {
    setpriority_process(None, PRIORITY).unwrap();
}

/// Nice value of threads and agents of these tests; -20 is the highest priority.
const PRIORITY: i32 = -15;

/// A network namespace, removed with this value and the last process in it.
pub struct Namespace(OwnedFd);

impl Namespace {
    pub fn new() -> Self {
        let made = std::thread::spawn(|| {
            namespace::unshare(&[Kind::Net]).unwrap();
            File::open("/proc/thread-self/ns/net").unwrap()
        });
        Self(made.join().unwrap().into())
    }

    /// A path to the namespace, valid as long as the test's process.
    pub fn path(&self) -> String {
        format!("/proc/{}/fd/{}", std::process::id(), self.0.as_raw_fd())
    }

    /// Runs `work` in a thread inside, and returns its result.
    pub fn inside<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                namespace::enter(Kind::Net, self.0.as_fd()).unwrap();
                work()
            });
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// A descriptor of the same namespace, for a thread that outlives the borrow.
    pub fn descriptor(&self) -> OwnedFd {
        self.0.try_clone().unwrap()
    }

    /// Runs a command inside, split at spaces. It must succeed.
    #[track_caller]
    pub fn must(&self, words: &str) -> Output {
        let output = Command::new("nsenter")
            .arg(format!("--net={}", self.path()))
            .arg("--")
            .args(words.split(' '))
            .output()
            .unwrap();
        assert!(output.status.success(), "{words}: {}", String::from_utf8_lossy(&output.stderr));
        output
    }

    /// The index of an interface.
    pub fn index(&self, interface: &str) -> u32 {
        let text = self.must(&format!("ip -o link show {interface}")).stdout;
        String::from_utf8_lossy(&text).split(':').next().unwrap().trim().parse().unwrap()
    }
}

/// What an interface of the calling thread's namespace received, bytes.
pub fn received_bytes(interface: &str) -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/net/dev").unwrap();
    let line =
        text.lines().find_map(|line| line.trim_start().strip_prefix(&format!("{interface}:"))).unwrap();
    line.split_whitespace().next().unwrap().parse().unwrap()
}

/// The address of the server's end.
pub const SERVER: &str = "10.77.0.2";

/// Connects `left` in `a` with `right` in `b`. There is no other traffic: IPv6 neighbour discovery is off.
pub fn wire(a: &Namespace, left: &str, b: &Namespace, right: &str) {
    a.must(&format!("ip link add {left} type veth peer name {right} netns {}", b.path()));
    for (side, name) in [(a, left), (b, right)] {
        side.must(&format!("ip link set {name} addrgenmode none"));
        side.must(&format!("ip link set {name} up"));
    }
}

/// Two hosts: `va` in namespace `a` and `vb` in namespace `b`, with addresses and each other's hardware address.
pub struct Hosts {
    pub a: Namespace,
    pub b: Namespace,
    /// Whether `va` and `vb` must carry all bytes.
    pub proven: bool,
    /// Further lines of its arm in the plan, without line ends.
    pub arm: String,
}

impl Hosts {
    /// Connected by one wire.
    pub fn on_a_wire() -> Self {
        let hosts = Self { a: Namespace::new(), b: Namespace::new(), proven: true, arm: String::new() };
        wire(&hosts.a, "va", &hosts.b, "vb");
        hosts.address();
        hosts
    }

    /// Assigns addresses to both ends; neighbours are permanent, so that only frames of the traffic are counted.
    pub fn address(&self) {
        let hardware = |side: &Namespace, name: &str| {
            let text = side.must(&format!("ip -o link show {name}")).stdout;
            let text = String::from_utf8_lossy(&text).into_owned();
            text.split("link/ether ").nth(1).unwrap().split(' ').next().unwrap().to_owned()
        };
        let sides = [(&self.a, "va", "10.77.0.1", SERVER), (&self.b, "vb", SERVER, "10.77.0.1")];
        let known = [hardware(&self.b, "vb"), hardware(&self.a, "va")];
        for ((side, name, own, other), address) in sides.into_iter().zip(known) {
            side.must(&format!("ip addr add {own}/24 dev {name}"));
            side.must(&format!("ip neigh replace {other} lladdr {address} dev {name} nud permanent"));
        }
    }

    /// Both ends send one packet per frame with a checksum, as on a real wire.
    pub fn send_whole_frames(&self) {
        let off = ["tx-checksum-ip-generic", "tx-tcp-segmentation", "tx-udp-segmentation"];
        let off = off.map(|name| (name.to_owned(), false));
        for (side, name) in [(&self.a, "va"), (&self.b, "vb")] {
            side.inside(|| Ethtool::open().unwrap().request_features(name, &off).unwrap());
        }
    }

    /// The hosts of a plan, and one arm that runs twice.
    fn plan(&self, workloads: &str, blocks: u32) -> String {
        let folder = Path::new(env!("CARGO_BIN_EXE_netduel")).parent().unwrap().display();
        let host = |name: &str, side: &Namespace| {
            format!(
                "[hosts.{name}]\nlaunch = \"command\"\naddresses = [\"{SERVER}\"]\n\
                 command = [\"nsenter\", \"--net={}\", \"--\", \"nice\", \"-n\", \"{PRIORITY}\", \"env\", \"PATH={folder}:/usr/sbin:/usr/bin:/sbin:/bin\"]\n",
                side.path()
            )
        };
        let expectation =
            if self.proven { "expect_interface = { client = \"va\", server = \"vb\" }" } else { "" };
        format!(
            "name = \"truth\"\nquestion = \"Is what is read what is there?\"\n{}{}\
             [[arms]]\nname = \"wire\"\nclient = \"a\"\nserver = \"b\"\n\
             {expectation}\n{}\n{workloads}\n[design]\naa = true\nblocks_min = {blocks}\nblocks_max = {blocks}\n",
            host("a", &self.a),
            host("b", &self.b),
            self.arm
        )
    }

    /// Runs the workloads on these hosts, each twice per block, and returns the stored run.
    #[track_caller]
    pub fn run(&self, bench: &Bench, workloads: &str, blocks: u32) -> Run {
        stored(bench, &bench.run(self.words(bench, workloads, blocks)))
    }

    /// The arguments of the run.
    pub fn words(&self, bench: &Bench, workloads: &str, blocks: u32) -> [String; 2] {
        let plan = bench.plan(&self.plan(workloads, blocks));
        ["run".to_owned(), plan.to_str().unwrap().to_owned()]
    }
}

/// The stored trials of a finished run, which must all be valid.
#[track_caller]
pub fn stored(bench: &Bench, finished: &Finished) -> Run {
    // 6: so few blocks have no verdict, which is not needed here.
    assert!(matches!(finished.code, Some(0 | 6)), "{}\n{}", finished.stdout, finished.stderr);
    let run = Store::open(bench.store()).unwrap().read("last").unwrap();
    assert!(run.trials.iter().all(Trial::is_valid), "a trial failed:\n{}", finished.stderr);
    run
}
