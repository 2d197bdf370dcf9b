//! Ctrl-C and SIGTERM: the first asks a run to stop cleanly, the second ends the program at once.
use std::io::{self, Read as _};
use std::os::unix::net::UnixStream;
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

/// Has something done at the first Ctrl-C or SIGTERM, by a thread that sleeps until then. A second one ends the program at
/// once, as with [`interrupted`].
pub fn on_interrupt(act: impl FnOnce() + Send + 'static) -> io::Result<()> {
    interrupted()?;
    let (mut told, teller) = UnixStream::pair()?;
    for signal in [SIGINT, SIGTERM] {
        signal_hook::low_level::pipe::register(signal, teller.try_clone()?)?;
    }
    std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
        // A pair whose other end lives as long as the program does not fail.
        if told.read_exact(&mut [0]).is_ok() {
            act();
        }
    })?;
    Ok(())
}
