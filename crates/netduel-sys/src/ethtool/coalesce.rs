//! Interrupt coalescing (`ethtool -c`, `-C`; `struct ethtool_coalesce`): how long a device collects packets before it
//! interrupts.
use std::io;

use super::ioctl::Ethtool;

const GET_COALESCE: u32 = 0x0e;
const SET_COALESCE: u32 = 0x0f;
/// Number of parameters of `struct ethtool_coalesce`, after the command.
const COUNT: usize = 22;

macro_rules! parameters {
    ($($(#[doc = $doc:literal])+ $variant:ident = $name:literal,)+) => {
        /// One parameter, in the order of `struct ethtool_coalesce`.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[repr(u8)]
        pub enum CoalesceParameter {
            $($(#[doc = $doc])+ $variant,)+
        }

        impl CoalesceParameter {
            /// All, in the kernel's order.
            pub const ALL: [Self; COUNT] = [$(Self::$variant),+];

            /// Its name in `ethtool -C`.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)+ }
            }
        }
    };
}

parameters! {
    /// Microseconds from a received packet to the interrupt.
    RxUsecs = "rx-usecs",
    /// Received packets until the interrupt.
    RxFrames = "rx-frames",
    /// As `rx-usecs` while an interrupt is being served.
    RxUsecsIrq = "rx-usecs-irq",
    /// As `rx-frames` while an interrupt is being served.
    RxFramesIrq = "rx-frames-irq",
    /// Microseconds from a sent packet to the interrupt.
    TxUsecs = "tx-usecs",
    /// Sent packets until the interrupt.
    TxFrames = "tx-frames",
    /// As `tx-usecs` while an interrupt is being served.
    TxUsecsIrq = "tx-usecs-irq",
    /// As `tx-frames` while an interrupt is being served.
    TxFramesIrq = "tx-frames-irq",
    /// Microseconds between writings of the device's counters to memory.
    StatsBlockUsecs = "stats-block-usecs",
    /// Whether the driver adapts the receive side automatically: 0 or 1.
    AdaptiveRx = "adaptive-rx",
    /// Whether the driver adapts the transmit side automatically: 0 or 1.
    AdaptiveTx = "adaptive-tx",
    /// Packets a second below which the `-low` parameters hold.
    PktRateLow = "pkt-rate-low",
    /// `rx-usecs` at a low packet rate.
    RxUsecsLow = "rx-usecs-low",
    /// `rx-frames` at a low packet rate.
    RxFramesLow = "rx-frames-low",
    /// `tx-usecs` at a low packet rate.
    TxUsecsLow = "tx-usecs-low",
    /// `tx-frames` at a low packet rate.
    TxFramesLow = "tx-frames-low",
    /// Packets a second above which the `-high` parameters hold.
    PktRateHigh = "pkt-rate-high",
    /// `rx-usecs` at a high packet rate.
    RxUsecsHigh = "rx-usecs-high",
    /// `rx-frames` at a high packet rate.
    RxFramesHigh = "rx-frames-high",
    /// `tx-usecs` at a high packet rate.
    TxUsecsHigh = "tx-usecs-high",
    /// `tx-frames` at a high packet rate.
    TxFramesHigh = "tx-frames-high",
    /// Seconds between samples of the packet rate.
    SampleInterval = "sample-interval",
}

/// `ethtool -c`. With the ioctl a parameter that the driver lacks reads as 0, like a disabled one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Coalesce {
    values: [u32; COUNT],
}

impl Coalesce {
    /// A parameter, in its documented unit.
    pub fn value(&self, parameter: CoalesceParameter) -> u32 {
        self.values[parameter as usize]
    }

    /// Changes a parameter of this copy; [`Ethtool::set_coalesce`] applies it.
    pub fn set_value(&mut self, parameter: CoalesceParameter, value: u32) {
        self.values[parameter as usize] = value;
    }
}

impl Ethtool {
    /// Coalescing of an interface.
    ///
    /// # Errors
    /// `ENODEV` without such an interface, `EOPNOTSUPP` when the driver has no coalescing.
    pub fn coalesce(&mut self, interface: &str) -> io::Result<Coalesce> {
        self.memory.clear(4 + COUNT * 4);
        self.exchange(interface, GET_COALESCE)?;
        Ok(Coalesce { values: std::array::from_fn(|index| self.memory.word(4 + index * 4)) })
    }

    /// Sets all parameters at once; start from [`Ethtool::coalesce`]. Drivers round and clamp: read back.
    ///
    /// # Errors
    /// `EOPNOTSUPP` when the driver lacks a parameter that is not 0, `EINVAL` for a value that it rejects, `EPERM` without
    /// `CAP_NET_ADMIN`.
    pub fn set_coalesce(&mut self, interface: &str, coalesce: &Coalesce) -> io::Result<()> {
        self.memory.clear(4 + COUNT * 4);
        for (index, value) in coalesce.values.into_iter().enumerate() {
            self.memory.set_word(4 + index * 4, value);
        }
        self.exchange(interface, SET_COALESCE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_of_the_parameters_is_that_of_the_kernel() {
        // Offsets of `struct ethtool_coalesce` in words, without its command, counted in include/uapi/linux/ethtool.h.
        for (name, place) in [
            ("rx-usecs", 0),
            ("tx-usecs", 4),
            ("adaptive-rx", 9),
            ("adaptive-tx", 10),
            ("rx-usecs-high", 17),
            ("sample-interval", 21),
        ] {
            assert_eq!(CoalesceParameter::ALL[place].name(), name);
            assert_eq!(CoalesceParameter::ALL[place] as usize, place);
        }
    }

    #[test]
    fn loopback_has_no_coalescing() {
        let refused = Ethtool::open().unwrap().coalesce("lo").unwrap_err();
        assert_eq!(refused.raw_os_error(), Some(libc::EOPNOTSUPP));
    }
}
