//! Bonds in the mode active-backup (Documentation/networking/bonding.rst of the kernel): which port carries the packets. It sets no port up
//! or down.
use netduel_host::LinkState;
use netduel_sys::clock;

use super::device::RETURN_DEADLINE;
use super::error::TreatmentError;
use super::sysfs::Sysfs;

/// The mode in which one port carries all packets while the others wait.
const ACTIVE_BACKUP: &str = "active-backup";
/// Time between two readings of a bond, nanoseconds: it looks at its links at intervals of its own.
const LOOK_NS: u64 = 20_000_000;

/// The port that carries the packets of a bond which gives them to another port when that one goes down; absent for an interface that is
/// no such bond.
pub(super) fn active_port(bond: &LinkState) -> Option<String> {
    let sysfs = Sysfs::open().ok()?;
    active(|file| sysfs.read(&format!("class/net/{}/bonding/{file}", bond.name)).ok())
}

fn active(read: impl Fn(&str) -> Option<String>) -> Option<String> {
    let mode = read("mode")?;
    // Without a monitor the bond goes on sending to a port that is down.
    let is_monitored =
        ["miimon", "arp_interval"].into_iter().any(|file| read(file).is_some_and(|ms| ms != "0"));
    if mode.split(' ').next() != Some(ACTIVE_BACKUP) || !is_monitored {
        return None;
    }
    read("active_slave").filter(|port| !port.is_empty())
}

/// Waits until a bond sends by another port than this one, which was set down: it notices that at its next look at the link.
pub(super) fn wait_for_other(bond: &str, port: &str) -> Result<(), TreatmentError> {
    let sysfs = Sysfs::open()?;
    let file = file_of(bond);
    if is_in_time(|| !sysfs.read(&file).is_ok_and(|now| now == port)) {
        return Ok(());
    }
    let doing = format!("set {port} down, so that another port of {bond} carries its packets");
    Err(TreatmentError::NotTaken { doing, answered: format!("{port} as the active port") })
}

/// Gives the packets of a bond to a port again. A bond that is gone has none.
pub(super) fn activate(bond: &str, port: &str) -> Result<(), TreatmentError> {
    let sysfs = Sysfs::open()?;
    let file = file_of(bond);
    let mut refused = None;
    let is_active = || {
        let Ok(now) = sysfs.read(&file) else { return true };
        if now == port {
            return true;
        }
        // The bond refuses a port until it has seen that the port is up.
        refused = sysfs.write(&file, port).err();
        false
    };
    if is_in_time(is_active) {
        return Ok(());
    }
    let doing = format!("make {port} the active port of {bond} again");
    Err(match refused {
        Some(cause) => TreatmentError::Refused { doing, cause },
        None => TreatmentError::NotTaken { doing, answered: "another active port".to_owned() },
    })
}

/// Reads as the name of the active port, and takes it.
fn file_of(bond: &str) -> String {
    format!("class/net/{bond}/bonding/active_slave")
}

/// Whether a bond comes to a state in time.
fn is_in_time(mut is_reached: impl FnMut() -> bool) -> bool {
    let deadline_ns = clock::monotonic_ns() + RETURN_DEADLINE.as_nanos() as u64;
    loop {
        if is_reached() {
            return true;
        }
        let now_ns = clock::monotonic_ns();
        if now_ns >= deadline_ns {
            return false;
        }
        clock::sleep_until(now_ns + LOOK_NS);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn active_port_is_that_of_a_monitored_bond_with_one_active_port() {
        let of = |mode: &str, miimon: &str, arp_interval: &str, active_slave: &str| {
            active(|file| {
                let value = match file {
                    "mode" => mode,
                    "miimon" => miimon,
                    "arp_interval" => arp_interval,
                    "active_slave" => active_slave,
                    other => panic!("{other}"),
                };
                Some(value.to_owned())
            })
        };
        let port = Some("eth1".to_owned());
        assert_eq!(of("active-backup 1", "100", "0", "eth1"), port);
        assert_eq!(of("active-backup 1", "0", "500", "eth1"), port);
        assert_eq!(of("active-backup 1", "0", "0", "eth1"), None);
        assert_eq!(of("active-backup 1", "100", "0", ""), None);
        assert_eq!(of("802.3ad 4", "100", "0", "eth1"), None);
        assert_eq!(active(|_| None), None);
    }
}
