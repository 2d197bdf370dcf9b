//! The size of an interface's rings (`ethtool -G`).
use netduel_model::plan::tuning::Ring;
use netduel_sys::ethtool::Rings;

use super::error::TreatmentError;
use super::offload::{door, index_of};
use super::undo::Undo;

/// A change that is ready to be made.
#[derive(Debug)]
pub(super) struct RingChange {
    interface: String,
    ring: Ring,
    descriptors: u32,
}

/// Reads what is there and checks whether the change can be made.
pub(super) fn prepare(
    interface: &str,
    ring: Ring,
    descriptors: u32,
) -> Result<(Undo, RingChange), TreatmentError> {
    let index = index_of(interface)?;
    let doing = || doing(interface, ring, descriptors);
    let now =
        door()?.rings(interface).map_err(|cause| TreatmentError::about_device(interface, doing(), cause))?;
    let (original, most) = of(now, ring);
    if !(1..=most).contains(&descriptors) {
        return Err(TreatmentError::Range { doing: doing(), allowed: format!("1 to {most} descriptors") });
    }
    let undo = Undo::Ring { interface: interface.to_owned(), index, ring, descriptors: original };
    Ok((undo, RingChange { interface: interface.to_owned(), ring, descriptors }))
}

fn doing(interface: &str, ring: Ring, descriptors: u32) -> String {
    format!("set the {} ring of {interface} to {descriptors} descriptors", ring.word())
}

/// Size and largest size.
fn of(rings: Rings, ring: Ring) -> (u32, u32) {
    match ring {
        Ring::Rx => (rings.rx, rings.max_rx),
        Ring::Tx => (rings.tx, rings.max_tx),
    }
}

impl RingChange {
    /// Makes the change and reads back whether it took.
    pub(super) fn make(&self) -> Result<(), TreatmentError> {
        set(&self.interface, self.ring, self.descriptors)
    }
}

/// Sets a ring and reads it back; the other one stays.
pub(super) fn set(interface: &str, ring: Ring, descriptors: u32) -> Result<(), TreatmentError> {
    let about = |cause| TreatmentError::about_device(interface, doing(interface, ring, descriptors), cause);
    let mut door = door()?;
    let mut rings = door.rings(interface).map_err(about)?;
    if of(rings, ring).0 == descriptors {
        return Ok(());
    }
    match ring {
        Ring::Rx => rings.rx = descriptors,
        Ring::Tx => rings.tx = descriptors,
    }
    door.set_rings(interface, &rings).map_err(about)?;
    let now = of(door.rings(interface).map_err(about)?, ring).0;
    if now == descriptors {
        return Ok(());
    }
    let doing = doing(interface, ring, descriptors);
    Err(TreatmentError::NotTaken { doing, answered: format!("{now} descriptors (drivers round)") })
}
