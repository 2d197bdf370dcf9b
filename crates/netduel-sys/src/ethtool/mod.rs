//! The ethtool ioctl (include/uapi/linux/ethtool.h): driver, counters and speed here, and a file for each setting that
//! can be read and changed: [`features`](Ethtool::features), [`channels`](Ethtool::channels), [`rings`](Ethtool::rings),
//! [`coalesce`](Ethtool::coalesce), [`rss`](Ethtool::rss). Must hold no policy.
mod channels;
mod coalesce;
mod features;
mod ioctl;
mod memory;
mod rings;
mod rss;

pub use channels::Channels;
pub use coalesce::{Coalesce, CoalesceParameter};
pub use features::Feature;
pub use ioctl::{Answer, DriverInfo, Ethtool};
pub use rings::Rings;
pub use rss::{HashFunction, Rss};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_has_features_and_no_counters() {
        let mut ethtool = Ethtool::open().unwrap();
        let features = ethtool.features("lo").unwrap();
        let loopback = features.iter().find(|feature| feature.name == "loopback").unwrap();
        assert!(loopback.active && loopback.fixed, "{loopback:?}");
        assert!(features.iter().any(|feature| !feature.fixed));
        assert_eq!(ethtool.statistic_names("lo").unwrap_or_default(), Vec::<String>::new());
    }

    #[test]
    fn missing_interface_is_enodev() {
        let mut ethtool = Ethtool::open().unwrap();
        assert_eq!(ethtool.driver("no-such-link").unwrap_err().raw_os_error(), Some(libc::ENODEV));
        assert_eq!(ethtool.features("no-such-link").unwrap_err().raw_os_error(), Some(libc::ENODEV));
    }

    #[test]
    fn ethtool_socket_can_be_moved_to_another_thread() {
        let names = |features: Vec<Feature>| -> Vec<String> {
            features.into_iter().map(|feature| feature.name).collect()
        };
        let mut ethtool = Ethtool::open().unwrap();
        let here = names(ethtool.features("lo").unwrap());
        let there = std::thread::spawn(move || ethtool.features("lo").unwrap()).join().unwrap();
        assert_eq!(names(there), here);
        assert!(here.iter().any(|name| name == "loopback"), "{here:?}");
    }
}
