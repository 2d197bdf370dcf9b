//! Two network namespaces connected by a veth, each with its own thread.
use std::fs::File;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::process::Command;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

use netduel_sys::namespace::{self, Kind};

/// A function to run in a namespace.
type Work = Box<dyn FnOnce() + Send>;

/// A namespace with its thread, which lives until this is dropped; a testpmd started by it is killed with it.
pub struct Side {
    work: Option<Sender<Work>>,
    thread: Option<JoinHandle<()>>,
    namespace: OwnedFd,
}

impl Side {
    fn new() -> Self {
        let (work, todo) = channel::<Work>();
        let (to, from) = channel();
        let thread = std::thread::spawn(move || {
            namespace::unshare(&[Kind::Net]).unwrap();
            to.send(OwnedFd::from(File::open("/proc/thread-self/ns/net").unwrap())).unwrap();
            for work in todo {
                work();
            }
        });
        Self { work: Some(work), thread: Some(thread), namespace: from.recv().unwrap() }
    }

    /// Runs a function in the namespace and returns its result.
    pub fn run<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> T {
        let (to, from) = channel();
        let work: Work = Box::new(move || drop(to.send(work())));
        self.work.as_ref().unwrap().send(work).unwrap();
        from.recv().expect("the work in the namespace panicked, its message is above")
    }
}

impl Drop for Side {
    fn drop(&mut self) {
        self.work = None;
        if let Some(Err(panic)) = self.thread.take().map(JoinHandle::join)
            && !std::thread::panicking()
        {
            std::panic::resume_unwind(panic);
        }
    }
}

/// Both namespaces: `va` in the first, `vb` in the second. There is no other traffic.
pub struct Wire {
    pub near: Side,
    pub far: Side,
}

/// The hardware address of `vb`.
pub const FAR_MAC: [u8; 6] = [2, 0, 0, 0, 0, 0xb2];

impl Wire {
    /// `None`, with a printed reason, when this user may not create namespaces or DPDK is missing.
    pub fn new() -> Option<Self> {
        able().then(|| {
            let (near, far) = (Side::new(), Side::new());
            let other = format!("/proc/{}/fd/{}", std::process::id(), far.namespace.as_raw_fd());
            near.run(move || {
                ip(&format!(
                    "link add va numtxqueues 2 numrxqueues 2 type veth peer name vb address 02:00:00:00:00:b2 numtxqueues 2 \
                     numrxqueues 2 netns {other}"
                ));
            });
            near.run(|| set_up("va"));
            far.run(|| set_up("vb"));
            Some(Self { near, far })
        })?
    }
}

/// Without neighbour discovery and without addresses, so that every arriving frame was sent on purpose: a kernel with an address answers the
/// datagrams of a packet socket, and the receiver would count the answers.
fn set_up(interface: &str) {
    ip(&format!("link set {interface} addrgenmode none"));
    ip(&format!("link set {interface} up"));
}

/// Runs `ip`.
pub fn ip(words: &str) {
    let output = Command::new("ip").args(words.split_whitespace()).output().unwrap();
    assert!(output.status.success(), "ip {words}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Whether testpmd can run here; prints the reason if not.
pub fn able() -> bool {
    let is_there = std::env::var_os("PATH")
        .is_some_and(|path| std::env::split_paths(&path).any(|folder| folder.join("dpdk-testpmd").is_file()));
    let able = is_there && rustix::process::geteuid().is_root();
    if !able {
        netduel_test_support::skip("dpdk-testpmd and root are needed");
    }
    able
}
