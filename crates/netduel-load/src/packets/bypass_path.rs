//! The interface and the MAC addresses of kernel bypass. Plain data.
use netduel_model::packet_path::XdpMode;
use netduel_model::snapshot::XdpFeature;

/// The interface of kernel bypass. The agent provides it, because this crate does not read the state of the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BypassPath {
    /// Name of the interface, for messages.
    pub interface: String,
    /// Its index.
    pub index: u32,
    /// XDP features of its driver; absent when unknown.
    pub xdp: Option<Vec<XdpFeature>>,
    /// Its queues: for sending at the sender, for receiving at the receiver.
    pub queues: u32,
    /// The hardware address of this host's end of the path; unused at a receiver.
    pub own_mac: [u8; 6],
    /// The hardware address of the next hop to the peer; unused at a receiver.
    pub peer_mac: [u8; 6],
}

impl BypassPath {
    /// Whether the driver is known to lack a feature.
    pub(super) fn lacks(&self, feature: XdpFeature) -> bool {
        self.xdp.as_ref().is_some_and(|has| !has.contains(&feature))
    }

    /// Where a program runs that is attached without a requested mode (`dev_xdp_mode` in net/core/dev.c); it redirects frames to sockets in
    /// the driver only when the driver supports it.
    pub(super) fn mode(&self) -> Option<XdpMode> {
        let native = |has: &Vec<XdpFeature>| has.contains(&XdpFeature::Basic);
        self.xdp.as_ref().map(|has| if native(has) { XdpMode::Native } else { XdpMode::Generic })
    }
}
