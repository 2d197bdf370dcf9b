//! Rings (`ethtool -g`, `-G`; `struct ethtool_ringparam`): the descriptors of each queue.
use std::io;

use super::ioctl::Ethtool;

const GET_RINGS: u32 = 0x10;
const SET_RINGS: u32 = 0x11;
/// Bytes of `struct ethtool_ringparam`.
const LEN: usize = 36;

/// `ethtool -g`: descriptors of each queue; a maximum of 0 means that the device has no ring of that kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Rings {
    /// Descriptors for receiving.
    pub rx: u32,
    /// Descriptors for receiving small frames, where the device has a separate ring.
    pub rx_mini: u32,
    /// Descriptors for receiving jumbo frames, where the device has a separate ring.
    pub rx_jumbo: u32,
    /// Descriptors for sending.
    pub tx: u32,
    /// Maximum number of descriptors for receiving.
    pub max_rx: u32,
    /// Maximum number of descriptors for small frames.
    pub max_rx_mini: u32,
    /// Maximum number of descriptors for jumbo frames.
    pub max_rx_jumbo: u32,
    /// Maximum number of descriptors for sending.
    pub max_tx: u32,
}

impl Ethtool {
    /// Ring sizes of an interface, and their maxima.
    ///
    /// # Errors
    /// `ENODEV` without such an interface, `EOPNOTSUPP` when the device has no rings.
    pub fn rings(&mut self, interface: &str) -> io::Result<Rings> {
        self.memory.clear(LEN);
        self.exchange(interface, GET_RINGS)?;
        let word = |index: usize| self.memory.word(index * 4);
        Ok(Rings {
            max_rx: word(1),
            max_rx_mini: word(2),
            max_rx_jumbo: word(3),
            max_tx: word(4),
            rx: word(5),
            rx_mini: word(6),
            rx_jumbo: word(7),
            tx: word(8),
        })
    }

    /// Sets the ring sizes; the maxima of `rings` are ignored. Drivers round up, many to a power of two, so the
    /// sizes have to be read back. Most take the link down for a moment.
    ///
    /// # Errors
    /// `EINVAL` beyond a maximum, `EOPNOTSUPP` when the device's rings are fixed, `EPERM` without `CAP_NET_ADMIN`.
    pub fn set_rings(&mut self, interface: &str, rings: &Rings) -> io::Result<()> {
        self.memory.clear(LEN);
        for (index, value) in [rings.rx, rings.rx_mini, rings.rx_jumbo, rings.tx].into_iter().enumerate() {
            self.memory.set_word((5 + index) * 4, value);
        }
        self.exchange(interface, SET_RINGS)
    }
}
