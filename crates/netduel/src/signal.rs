//! Ctrl-C and SIGTERM: the first asks a run to stop cleanly, the second ends the program at once.
use std::io;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

use signal_hook::consts::{SIGINT, SIGTERM};

static INTERRUPTED: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// A flag that becomes true at the first Ctrl-C or SIGTERM. From the second on the program ends at once: agents and labs
/// end by themselves when their coordinator has gone, and undo what they changed.
pub fn interrupted() -> io::Result<Arc<AtomicBool>> {
    if let Some(flag) = INTERRUPTED.get() {
        return Ok(flag.clone());
    }
    let flag = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register_conditional_shutdown(signal, 130, flag.clone())?;
        signal_hook::flag::register(signal, flag.clone())?;
    }
    Ok(INTERRUPTED.get_or_init(|| flag).clone())
}
