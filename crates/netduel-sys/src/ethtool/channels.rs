//! Channels (`ethtool -l`, `-L`; `struct ethtool_channels`): the queues of a device and their maximum.
use std::io;

use super::ioctl::Ethtool;

const GET_CHANNELS: u32 = 0x3c;
const SET_CHANNELS: u32 = 0x3d;
/// Bytes of `struct ethtool_channels`.
const LEN: usize = 36;

/// `ethtool -l`. A device counts either combined channels (a receive and a transmit queue with one interrupt), or receive
/// and transmit queues by themselves; a maximum of 0 means that it has none of that kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Channels {
    /// Receive queues in use.
    pub rx: u32,
    /// Transmit queues in use.
    pub tx: u32,
    /// Channels for other work, for example the link's state.
    pub other: u32,
    /// Channels with a receive and a transmit queue.
    pub combined: u32,
    /// Maximum number of receive queues.
    pub max_rx: u32,
    /// Maximum number of transmit queues.
    pub max_tx: u32,
    /// Maximum number of channels for other work.
    pub max_other: u32,
    /// Maximum number of combined channels.
    pub max_combined: u32,
}

impl Ethtool {
    /// Queues of an interface, and their maximum.
    ///
    /// # Errors
    /// `ENODEV` without such an interface, `EOPNOTSUPP` when the driver has no channels.
    pub fn channels(&mut self, interface: &str) -> io::Result<Channels> {
        self.memory.clear(LEN);
        self.exchange(interface, GET_CHANNELS)?;
        let word = |index: usize| self.memory.word(index * 4);
        Ok(Channels {
            max_rx: word(1),
            max_tx: word(2),
            max_other: word(3),
            max_combined: word(4),
            rx: word(5),
            tx: word(6),
            other: word(7),
            combined: word(8),
        })
    }

    /// Sets the numbers of queues; the maxima of `channels` are ignored. Most drivers take the link down for a moment.
    ///
    /// # Errors
    /// `EINVAL` beyond a maximum, or when the RSS table or an XDP socket uses a queue that would be removed;
    /// `EOPNOTSUPP` when the driver has a fixed number; `EPERM` without `CAP_NET_ADMIN`.
    pub fn set_channels(&mut self, interface: &str, channels: &Channels) -> io::Result<()> {
        self.memory.clear(LEN);
        for (index, value) in
            [channels.rx, channels.tx, channels.other, channels.combined].into_iter().enumerate()
        {
            self.memory.set_word((5 + index) * 4, value);
        }
        self.exchange(interface, SET_CHANNELS)
    }
}
