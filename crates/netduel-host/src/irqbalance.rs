//! Whether irqbalance runs, by the names of the processes. It must not be stated absent where a process may be invisible.
use std::path::Path;

use crate::file::{line, numbers_in, target_name};

/// Whether irqbalance runs. Its absence is certain only where every process is visible: in the initial pid namespace, whose number is
/// fixed (`PROC_PID_INIT_INO`), and when processes of other users are readable.
pub(crate) fn irqbalance(root: &Path) -> Option<bool> {
    const FIRST_NAMESPACE: &str = "pid:[4026531836]";
    if irqbalance_process(&root.join("proc")).is_some() {
        return Some(true);
    }
    let namespace = target_name(&root.join("proc/self/ns/pid"));
    let sees_all = namespace.as_deref() == Some(FIRST_NAMESPACE) && line(&root.join("proc/1/comm")).is_some();
    sees_all.then_some(false)
}

/// The pid of a visible irqbalance process. `proc` is `/proc`.
pub fn irqbalance_process(proc: &Path) -> Option<u32> {
    let is_it = |process: &u32| line(&proc.join(format!("{process}/comm"))).as_deref() == Some("irqbalance");
    numbers_in(proc, "").into_iter().find(is_it)
}
