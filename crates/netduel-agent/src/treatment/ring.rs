//! The size of an interface's rings (`ethtool -G`).
use netduel_model::plan::tuning::Ring;
use netduel_sys::ethtool::{Ethtool, Rings};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::change::{Change, Original};
use super::device::ethtool_socket;
use super::error::TreatmentError;
use super::recorded_interface::RecordedInterface;

/// The size of a ring.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(super) struct RingOriginal {
    interface: RecordedInterface,
    ring: Ring,
    descriptors: u32,
}

impl Original for RingOriginal {
    fn restore(&self) -> Result<(), TreatmentError> {
        self.interface.restore(|interface, _| set(interface, self.ring, self.descriptors))
    }

    fn what(&self) -> String {
        format!("the change of the {} ring of {}", self.ring.word(), self.interface)
    }

    fn by_hand(&self) -> String {
        format!("`ethtool -G {} {} {}`", self.interface, self.ring.word(), self.descriptors)
    }
}

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
) -> Result<(RingOriginal, RingChange), TreatmentError> {
    let recorded = RecordedInterface::read(interface)?;
    let doing = || doing(interface, ring, descriptors);
    let now = ethtool_socket()?
        .rings(interface)
        .map_err(|cause| TreatmentError::about_device(interface, doing(), cause))?;
    let (original, most) = of(now, ring);
    if !(1..=most).contains(&descriptors) {
        return Err(TreatmentError::Range { doing: doing(), allowed: format!("1 to {most} descriptors") });
    }
    let undo = RingOriginal { interface: recorded, ring, descriptors: original };
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

impl Change for RingChange {
    fn make(&self) -> Result<(), TreatmentError> {
        set(&self.interface, self.ring, self.descriptors)
    }

    fn read_back(&self) -> Result<(), TreatmentError> {
        read_back(&mut ethtool_socket()?, &self.interface, self.ring, self.descriptors)
    }

    fn restarts(&self) -> Option<&str> {
        Some(&self.interface)
    }
}

/// Sets a ring and reads it back; the other one stays.
fn set(interface: &str, ring: Ring, descriptors: u32) -> Result<(), TreatmentError> {
    let about = |cause| TreatmentError::about_device(interface, doing(interface, ring, descriptors), cause);
    let mut socket = ethtool_socket()?;
    let mut rings = socket.rings(interface).map_err(about)?;
    if of(rings, ring).0 == descriptors {
        return Ok(());
    }
    match ring {
        Ring::Rx => rings.rx = descriptors,
        Ring::Tx => rings.tx = descriptors,
    }
    socket.set_rings(interface, &rings).map_err(about)?;
    read_back(&mut socket, interface, ring, descriptors)
}

/// Sets both rings where one differs, in one step: a driver may restart the device for each.
pub(super) fn restore(interface: &str, [rx, tx]: [u32; 2]) -> Result<(), TreatmentError> {
    let doing = || format!("restore the rings of {interface} to {rx} and {tx} descriptors");
    let about = |cause| TreatmentError::about_device(interface, doing(), cause);
    let mut socket = ethtool_socket()?;
    let now = socket.rings(interface).map_err(about)?;
    if [now.rx, now.tx] == [rx, tx] {
        return Ok(());
    }
    socket.set_rings(interface, &Rings { rx, tx, ..now }).map_err(about)?;
    let now = socket.rings(interface).map_err(about)?;
    if [now.rx, now.tx] == [rx, tx] {
        return Ok(());
    }
    let answered = format!("{} and {} descriptors (drivers round)", now.rx, now.tx);
    Err(TreatmentError::NotTaken { doing: doing(), answered })
}

fn read_back(
    socket: &mut Ethtool,
    interface: &str,
    ring: Ring,
    descriptors: u32,
) -> Result<(), TreatmentError> {
    let about = |cause| TreatmentError::about_device(interface, doing(interface, ring, descriptors), cause);
    let now = of(socket.rings(interface).map_err(about)?, ring).0;
    if now == descriptors {
        return Ok(());
    }
    let doing = doing(interface, ring, descriptors);
    Err(TreatmentError::NotTaken { doing, answered: format!("{now} descriptors (drivers round)") })
}
