//! The name of an interface whose device returned: the kernel gives it one of its own.
use netduel_sys::link;
use rustix::io::Errno;

use super::error::TreatmentError;

/// Another program, as udev, may name a new interface at the same moment.
const ATTEMPTS: usize = 3;

/// Gives the interface of this index the name that it had. A name that another interface has now is left to that. Returns the name that it
/// has.
///
/// # Errors
/// When the interface is not there, or the kernel refuses the name.
pub(super) fn name_again(index: u32, name: &str) -> Result<String, TreatmentError> {
    let mut attempt = 1;
    loop {
        let links = netduel_host::link_states()?;
        let own = links.iter().find(|link| link.index == index);
        let now = &own.ok_or_else(|| TreatmentError::no_interface(name))?.name;
        if links.iter().any(|link| link.name == name) {
            return Ok(now.clone());
        }
        match rename(now, name) {
            Ok(()) => return Ok(name.to_owned()),
            Err(failed) if attempt == ATTEMPTS => return Err(failed),
            Err(_) => attempt += 1,
        }
    }
}

fn rename(now: &str, name: &str) -> Result<(), TreatmentError> {
    let refused = |cause| TreatmentError::about_interface(now, format!("name {now} {name} again"), cause);
    match link::rename(now, name) {
        // Kernels before 6.2 rename interfaces that are up only below net_failover.
        Err(cause) if cause.raw_os_error() == Some(Errno::BUSY.raw_os_error()) => {
            link::set_up(now, false).map_err(refused)?;
            let renamed = link::rename(now, name);
            link::set_up(if renamed.is_ok() { name } else { now }, true).map_err(refused)?;
            renamed.map_err(refused)
        }
        renamed => renamed.map_err(refused),
    }
}
