//! Features (`ethtool -k`, `-K`): offloads and the like, one bit each.
use std::io;

use super::ioctl::Ethtool;

const GET_FEATURES: u32 = 0x3a;
const SET_FEATURES: u32 = 0x3b;
/// The string set of their names (`enum ethtool_stringset`).
pub(super) const SET_FEATURE_NAMES: u32 = 4;

/// One line of `ethtool -k`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Feature {
    /// The kernel's name, for example `tx-tcp-segmentation`.
    pub name: String,
    /// Whether it cannot be changed (`[fixed]`).
    pub fixed: bool,
    /// The last request.
    pub requested: bool,
    /// Whether it is active.
    pub active: bool,
}

impl Ethtool {
    /// The device's features (`ethtool -k`), in the kernel's order, without unnamed bits.
    ///
    /// # Errors
    /// `ENODEV` without such an interface.
    pub fn features(&mut self, interface: &str) -> io::Result<Vec<Feature>> {
        let names = self.feature_names(interface)?;
        let blocks = names.len().div_ceil(32);
        self.memory.clear(8 + blocks * 16);
        self.memory.set_word(4, blocks as u32);
        self.exchange(interface, GET_FEATURES)?;
        let bit = |index: usize, field: usize| {
            let word = self.memory.word(8 + (index / 32) * 16 + field * 4);
            word & (1 << (index % 32)) != 0
        };
        let features = names.into_iter().enumerate().filter(|(_, name)| !name.is_empty());
        Ok(features
            .map(|(index, name)| Feature {
                name,
                // `struct ethtool_get_features_block`: available, requested, active, never_changed.
                fixed: !bit(index, 0) || bit(index, 3),
                requested: bit(index, 1),
                active: bit(index, 2),
            })
            .collect())
    }

    /// The kernel's names of all features; empty for a bit without a name.
    ///
    /// # Errors
    /// As [`Ethtool::features`].
    pub fn feature_names(&mut self, interface: &str) -> io::Result<Vec<String>> {
        self.names(interface, SET_FEATURE_NAMES)
    }

    /// Requests features by their kernel names (`ethtool -K`), all in one request. Whether the device applied them has
    /// to be read back: features depend on each other.
    ///
    /// # Errors
    /// `EINVAL` when the kernel does not know a name, `EPERM` without `CAP_NET_ADMIN`, and errors of the driver.
    pub fn request_features(&mut self, interface: &str, wanted: &[(String, bool)]) -> io::Result<()> {
        let names = self.feature_names(interface)?;
        let blocks = names.len().div_ceil(32);
        self.memory.clear(8 + blocks * 8);
        self.memory.set_word(4, blocks as u32);
        for (name, enabled) in wanted {
            let index = names
                .iter()
                .position(|known| known == name)
                .ok_or_else(|| io::Error::from_raw_os_error(libc::EINVAL))?;
            let (at, mask) = (8 + (index / 32) * 8, 1 << (index % 32));
            self.memory.set_word(at, self.memory.word(at) | mask);
            if *enabled {
                self.memory.set_word(at + 4, self.memory.word(at + 4) | mask);
            }
        }
        self.exchange(interface, SET_FEATURES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_feature_is_rejected_before_any_request() {
        let mut ethtool = Ethtool::open().unwrap();
        let refused = ethtool.request_features("lo", &[("no-such-feature".to_owned(), true)]).unwrap_err();
        assert_eq!(refused.raw_os_error(), Some(libc::EINVAL));
    }
}
