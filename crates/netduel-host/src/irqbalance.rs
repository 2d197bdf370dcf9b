//! Whether irqbalance runs, by the names of the processes. It must not be stated absent where a process may be invisible.
use std::path::Path;

use netduel_model::snapshot::{Interface, QueueInterrupt};

use crate::file::{line, numbers_in, target_name};

/// The number of the initial pid namespace is fixed (`PROC_PID_INIT_INO`).
const FIRST_NAMESPACE: &str = "pid:[4026531836]";

/// The last search for irqbalance among all processes, for a program that describes its host more than once. A search reads a file of each
/// process, because nothing else proves that irqbalance is absent: not every host has systemd, and not every version has a socket.
///
/// irqbalance affects results only by moving interrupts. While every interrupt of a queue has the cores that it had at the last search, an
/// irqbalance that was started since has moved none. So a comparison of two descriptions needs no other search.
#[derive(Debug, Default)]
pub struct IrqbalanceSearch {
    last: Option<Found>,
}

/// The result of a search.
#[derive(Debug)]
struct Found {
    process: Option<u32>,
    runs: Option<bool>,
    /// The interrupts of queues before the search, without their counts.
    interrupts: Vec<QueueInterrupt>,
}

impl IrqbalanceSearch {
    /// Whether irqbalance runs. A process that was found is checked each time. Where none was found, the answer is that of the last search until
    /// an interrupt of a queue has other cores. The absence is certain only where every process is visible. `interfaces`: as they are now.
    pub(crate) fn runs(&mut self, root: &Path, interfaces: &[Interface]) -> Option<bool> {
        let proc = root.join("proc");
        let interrupts = without_counts(interfaces);
        if let Some(last) = &self.last {
            let is_current = match last.process {
                Some(process) => is_irqbalance(&proc, process),
                None => last.interrupts == interrupts,
            };
            if is_current {
                return last.runs;
            }
        }
        let process = irqbalance_process(&proc);
        let runs = if process.is_some() { Some(true) } else { sees_all(&proc).then_some(false) };
        self.last = Some(Found { process, runs, interrupts });
        runs
    }
}

/// The pid of a visible irqbalance process. `proc` is `/proc`.
pub fn irqbalance_process(proc: &Path) -> Option<u32> {
    numbers_in(proc, "").into_iter().find(|process| is_irqbalance(proc, *process))
}

fn is_irqbalance(proc: &Path, process: u32) -> bool {
    line(&proc.join(format!("{process}/comm"))).as_deref() == Some("irqbalance")
}

/// Whether every process is visible: in the initial pid namespace, when processes of other users are readable.
fn sees_all(proc: &Path) -> bool {
    let namespace = target_name(&proc.join("self/ns/pid"));
    namespace.as_deref() == Some(FIRST_NAMESPACE) && line(&proc.join("1/comm")).is_some()
}

fn without_counts(interfaces: &[Interface]) -> Vec<QueueInterrupt> {
    let all = interfaces.iter().flat_map(|interface| &interface.device.interrupts);
    all.map(|interrupt| QueueInterrupt { count: None, ..interrupt.clone() }).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use netduel_model::snapshot::Device;
    use tempfile::TempDir;

    use super::*;

    /// A host without irqbalance, in a pid namespace.
    fn host(namespace: &str) -> TempDir {
        let host = tempfile::tempdir().unwrap();
        start(&host, 1, "systemd");
        let namespaces = host.path().join("proc/self/ns");
        fs::create_dir_all(&namespaces).unwrap();
        symlink(namespace, namespaces.join("pid")).unwrap();
        host
    }

    fn start(host: &TempDir, process: u32, name: &str) {
        let folder = host.path().join(format!("proc/{process}"));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("comm"), format!("{name}\n")).unwrap();
    }

    fn stop(host: &TempDir, process: u32) {
        fs::remove_dir_all(host.path().join(format!("proc/{process}"))).unwrap();
    }

    /// An interface with one interrupt, on this core.
    fn on_core(core: u16, count: u64) -> [Interface; 1] {
        let (cores, count) = (vec![core], Some(count));
        let interrupt = QueueInterrupt { number: 45, cores, count, ..QueueInterrupt::default() };
        let device = Device { interrupts: vec![interrupt], ..Device::default() };
        [Interface { name: "eth0".to_owned(), device, ..Interface::default() }]
    }

    #[test]
    fn all_processes_are_searched_again_when_an_interrupt_was_moved() {
        let host = host(FIRST_NAMESPACE);
        let mut search = IrqbalanceSearch::default();
        assert_eq!(search.runs(host.path(), &on_core(1, 5)), Some(false));
        start(&host, 77, "irqbalance");
        assert_eq!(search.runs(host.path(), &on_core(1, 9)), Some(false), "it has moved nothing yet");
        assert_eq!(search.runs(host.path(), &on_core(2, 9)), Some(true));
        assert_eq!(IrqbalanceSearch::default().runs(host.path(), &on_core(1, 9)), Some(true));
    }

    #[test]
    fn process_that_was_found_is_checked_and_searched_for_when_it_ended() {
        let host = host(FIRST_NAMESPACE);
        start(&host, 77, "irqbalance");
        let mut search = IrqbalanceSearch::default();
        let mut runs = || search.runs(host.path(), &on_core(1, 5));
        assert_eq!(runs(), Some(true));
        start(&host, 77, "bash");
        assert_eq!(runs(), Some(false), "another process has its number");
        start(&host, 90, "irqbalance");
        let mut search = IrqbalanceSearch::default();
        let mut runs = || search.runs(host.path(), &on_core(1, 5));
        assert_eq!(runs(), Some(true));
        stop(&host, 90);
        start(&host, 91, "irqbalance");
        assert_eq!(runs(), Some(true), "it was restarted");
        stop(&host, 91);
        assert_eq!(runs(), Some(false));
    }

    #[test]
    fn absence_is_unknown_where_processes_may_be_invisible() {
        let container = host("pid:[4026532001]");
        let mut search = IrqbalanceSearch::default();
        for core in [1, 1, 2] {
            assert_eq!(search.runs(container.path(), &on_core(core, 5)), None, "core {core}");
        }
        let hidden = host(FIRST_NAMESPACE);
        stop(&hidden, 1);
        assert_eq!(IrqbalanceSearch::default().runs(hidden.path(), &on_core(1, 5)), None);
    }
}
