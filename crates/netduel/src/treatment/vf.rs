//! A virtual function's link set down, so that traffic takes the path of the interface above it.
use std::time::Duration;

use netduel_host::LinkState;
use netduel_sys::link;

use super::error::TreatmentError;
use super::undo::Undo;

/// A NIC negotiates its link for some seconds.
pub(super) const RETURN_DEADLINE: Duration = Duration::from_secs(20);

/// A change that is ready to be made.
#[derive(Debug)]
pub(super) struct VfChange {
    interface: String,
}

/// Reads what is there and checks whether the change can be made and undone.
pub(super) fn prepare(interface: &str) -> Result<(Undo, VfChange), TreatmentError> {
    let links = netduel_host::link_states()?;
    let vf = beneath(interface, &links)?;
    let addresses = super::mtu::lost_addresses(&netduel_host::addresses_of(&vf.name)?);
    if !addresses.is_empty() {
        let (interface, addresses) = (vf.name.clone(), addresses.join(", "));
        return Err(TreatmentError::DownDropsAddresses { interface, addresses });
    }
    let undo = Undo::Link {
        interface: vf.name.clone(),
        index: vf.index,
        up: vf.up,
        carrier: vf.carrier == Some(true),
    };
    Ok((undo, VfChange { interface: vf.name.clone() }))
}

/// The virtual function that is meant: the interface itself when another is above it, or the one beneath it.
pub(super) fn beneath<'a>(interface: &str, links: &'a [LinkState]) -> Result<&'a LinkState, TreatmentError> {
    let named = links
        .iter()
        .find(|link| link.name == interface)
        .ok_or_else(|| TreatmentError::no_interface(interface))?;
    if named.master.is_some() {
        return Ok(named);
    }
    let below: Vec<&LinkState> = links.iter().filter(|link| link.master == Some(named.index)).collect();
    match below[..] {
        [vf] => Ok(vf),
        [] => Err(TreatmentError::OnlyWay { interface: interface.to_owned() }),
        _ => {
            let names = below.iter().map(|link| link.name.clone()).collect();
            Err(TreatmentError::Several { interface: interface.to_owned(), names })
        }
    }
}

impl VfChange {
    /// Makes the change and reads back whether it took.
    pub(super) fn make(&self) -> Result<(), TreatmentError> {
        set(&self.interface, false)
    }
}

fn set(interface: &str, up: bool) -> Result<(), TreatmentError> {
    let word = |up: bool| if up { "up" } else { "down" };
    let doing = || format!("set {interface} {}", word(up));
    let refused = |cause| TreatmentError::about_interface(interface, doing(), cause);
    link::set_up(interface, up).map_err(refused)?;
    let now = link::is_up(interface).map_err(refused)?;
    if now == up {
        return Ok(());
    }
    Err(TreatmentError::NotTaken { doing: doing(), answered: format!("it {}", word(now)) })
}

/// Sets the link as it was, and waits for its carrier when it had one: the next trial is to find it as this one did.
pub(super) fn restore(interface: &str, index: u32, up: bool, carrier: bool) -> Result<(), TreatmentError> {
    set(interface, up)?;
    if !up || !carrier {
        return Ok(());
    }
    let ready = |links: &[LinkState]| {
        // A device that goes meanwhile is not waited for.
        links.iter().find(|link| link.index == index).is_none_or(|link| link.up && link.carrier == Some(true))
    };
    if netduel_host::wait_for_links(RETURN_DEADLINE, ready)? {
        return Ok(());
    }
    let answered = format!("it up, but without carrier for {} s", RETURN_DEADLINE.as_secs());
    Err(TreatmentError::NotTaken { doing: format!("set {interface} up"), answered })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(index: u32, name: &str, master: Option<u32>) -> LinkState {
        LinkState { index, name: name.to_owned(), master, ..LinkState::default() }
    }

    #[test]
    fn the_function_is_the_interface_itself_or_the_one_beneath() {
        let links = [link(2, "eth0", None), link(3, "enP1", Some(2)), link(4, "eth1", None)];
        assert_eq!(beneath("eth0", &links).unwrap().index, 3);
        assert_eq!(beneath("enP1", &links).unwrap().index, 3);
        let alone = beneath("eth1", &links).unwrap_err().to_string();
        assert!(alone.contains("eth1") && alone.contains("only way"), "{alone}");
    }

    #[test]
    fn of_several_none_is_chosen() {
        let links = [link(2, "br0", None), link(3, "va", Some(2)), link(4, "vb", Some(2))];
        let several = beneath("br0", &links).unwrap_err().to_string();
        assert!(several.contains("va, vb"), "{several}");
    }
}
