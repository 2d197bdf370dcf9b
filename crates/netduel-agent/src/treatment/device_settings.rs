//! The settings that a device loses when it is removed, and their restoration when it returns.
use netduel_sys::ethtool::CoalesceParameter;
use netduel_sys::link;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::device::ethtool_socket;
use super::error::TreatmentError;
use super::steering::{QueueFiles, all, all_files};
use super::{coalesce, mtu, offload, queues, ring, steering};

/// Settings of a device as they were. What its driver does not have is absent.
///
/// The cores of its interrupts are left out: it returns with other interrupts.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub(super) struct DeviceSettings {
    /// Bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    mtu: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    queues: Option<Queues>,
    /// Packet steering of each queue.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    files: QueueFiles,
    /// Descriptors of a receive and of a transmit ring.
    #[serde(skip_serializing_if = "Option::is_none")]
    rings: Option<[u32; 2]>,
    /// Values of all parameters of interrupt coalescing.
    #[serde(skip_serializing_if = "Option::is_none")]
    coalescing: Option<Vec<u32>>,
    /// Features that can be changed, and whether each was requested.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    requested: Vec<(String, bool)>,
    /// The features that were on.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    active: Vec<String>,
}

/// The queues of a device, and what leads flows to them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
struct Queues {
    /// Receive, transmit, other, combined.
    channels: [u32; 4],
    /// The RSS table; empty without one.
    table: Vec<u32>,
}

impl DeviceSettings {
    /// Reads those of an interface's device; changes nothing.
    pub(super) fn read(interface: &str) -> Result<Self, TreatmentError> {
        let mut socket = ethtool_socket()?;
        let features = offload::features(&mut socket, interface)?;
        let free = features.iter().filter(|feature| !feature.fixed);
        let table = socket.rss(interface).map(|rss| rss.indirection).unwrap_or_default();
        let channels = socket.channels(interface).ok().map(queues::counts);
        let values = |all: netduel_sys::ethtool::Coalesce| CoalesceParameter::ALL.map(|each| all.value(each));
        Ok(Self {
            mtu: link::mtu(interface).ok(),
            queues: channels.map(|channels| Queues { channels, table }),
            files: all_files(interface),
            rings: socket.rings(interface).ok().map(|rings| [rings.rx, rings.tx]),
            coalescing: socket.coalesce(interface).ok().map(|all| values(all).to_vec()),
            requested: free.map(|feature| (feature.name.clone(), feature.requested)).collect(),
            active: offload::active(&features),
        })
    }

    /// Restores those that differ, and reads each back. One that the device refuses leaves no other undone.
    pub(super) fn restore(&self, interface: &str) -> Result<(), TreatmentError> {
        let Self { mtu, queues, files, rings, coalescing, requested, active } = self;
        // Queues first: rings, moderation and steering are those of the queues that are there.
        let steps: [&dyn Fn() -> Result<(), TreatmentError>; 5] = [
            &|| match queues {
                Some(Queues { channels, table }) => queues::restore(interface, *channels, table, files),
                None => steering::restore(interface, files),
            },
            &|| rings.map_or(Ok(()), |rings| ring::restore(interface, rings)),
            &|| coalescing.as_ref().map_or(Ok(()), |values| coalesce::restore(interface, values)),
            &|| {
                let is_known = !requested.is_empty() || !active.is_empty();
                if is_known { offload::restore(interface, requested, active) } else { Ok(()) }
            },
            &|| mtu.map_or(Ok(()), |mtu| mtu::set(interface, mtu)),
        ];
        all(steps.iter().map(|step| step()))
    }
}
