//! Names of offload features: the kernel's, and ethtool's for groups of them. It knows no device.
use crate::nearest::nearest;

/// ethtool's name for a group of the kernel's features.
#[derive(Debug, PartialEq, Eq)]
pub struct OffloadGroup {
    /// As `ethtool -K` takes it, for example `tso`.
    pub short: &'static str,
    /// As `ethtool -k` shows it, for example `tcp-segmentation-offload`.
    pub long: &'static str,
    /// The kernel's names of its features; a star stands for any text.
    pattern: &'static str,
}

/// ethtool's groups (`off_flag_def` in ethtool.c). No feature is in two of them.
pub const OFFLOAD_GROUPS: &[OffloadGroup] = &[
    group("rx", "rx-checksumming", "rx-checksum"),
    group("tx", "tx-checksumming", "tx-checksum-*"),
    group("sg", "scatter-gather", "tx-scatter-gather*"),
    group("tso", "tcp-segmentation-offload", "tx-tcp*-segmentation"),
    group("ufo", "udp-fragmentation-offload", "tx-udp-fragmentation"),
    group("gso", "generic-segmentation-offload", "tx-generic-segmentation"),
    group("gro", "generic-receive-offload", "rx-gro"),
    group("lro", "large-receive-offload", "rx-lro"),
    group("rxvlan", "rx-vlan-offload", "rx-vlan-hw-parse"),
    group("txvlan", "tx-vlan-offload", "tx-vlan-hw-insert"),
    group("ntuple", "ntuple-filters", "rx-ntuple-filter"),
    group("rxhash", "receive-hashing", "rx-hashing"),
];

/// The features of Linux 6.12 (`netdev_features_strings` in net/ethtool/common.c), with `tx-lockless` of older kernels and
/// `tx-tcp-accecn-segmentation` of newer ones. A kernel may have others.
const FEATURES: &[&str] = &[
    "tx-scatter-gather",
    "tx-checksum-ipv4",
    "tx-checksum-ip-generic",
    "tx-checksum-ipv6",
    "highdma",
    "tx-scatter-gather-fraglist",
    "tx-vlan-hw-insert",
    "rx-vlan-hw-parse",
    "rx-vlan-filter",
    "tx-vlan-stag-hw-insert",
    "rx-vlan-stag-hw-parse",
    "rx-vlan-stag-filter",
    "vlan-challenged",
    "tx-generic-segmentation",
    "tx-lockless",
    "netns-local",
    "rx-gro",
    "rx-gro-hw",
    "rx-lro",
    "tx-tcp-segmentation",
    "tx-gso-robust",
    "tx-tcp-ecn-segmentation",
    "tx-tcp-mangleid-segmentation",
    "tx-tcp6-segmentation",
    "tx-tcp-accecn-segmentation",
    "tx-fcoe-segmentation",
    "tx-gre-segmentation",
    "tx-gre-csum-segmentation",
    "tx-ipxip4-segmentation",
    "tx-ipxip6-segmentation",
    "tx-udp_tnl-segmentation",
    "tx-udp_tnl-csum-segmentation",
    "tx-gso-partial",
    "tx-tunnel-remcsum-segmentation",
    "tx-sctp-segmentation",
    "tx-esp-segmentation",
    "tx-udp-segmentation",
    "tx-gso-list",
    "tx-checksum-fcoe-crc",
    "tx-checksum-sctp",
    "fcoe-mtu",
    "rx-ntuple-filter",
    "rx-hashing",
    "rx-checksum",
    "tx-nocache-copy",
    "loopback",
    "rx-fcs",
    "rx-all",
    "l2-fwd-offload",
    "hw-tc-offload",
    "esp-hw-offload",
    "esp-tx-csum-hw-offload",
    "rx-udp_tunnel-port-offload",
    "tls-hw-record",
    "tls-hw-tx-offload",
    "tls-hw-rx-offload",
    "rx-gro-list",
    "macsec-hw-offload",
    "rx-udp-gro-forwarding",
    "hsr-tag-ins-offload",
    "hsr-tag-rm-offload",
    "hsr-fwd-offload",
    "hsr-dup-offload",
];

const fn group(short: &'static str, long: &'static str, pattern: &'static str) -> OffloadGroup {
    OffloadGroup { short, long, pattern }
}

impl OffloadGroup {
    /// The group of this name; absent when it is the name of a feature.
    pub fn named(name: &str) -> Option<&'static Self> {
        OFFLOAD_GROUPS.iter().find(|group| group.short == name || group.long == name)
    }

    /// Whether a feature of the kernel is in it.
    pub fn contains(&self, feature: &str) -> bool {
        match self.pattern.split_once('*') {
            None => self.pattern == feature,
            Some((head, tail)) => {
                feature.len() >= head.len() + tail.len()
                    && feature.starts_with(head)
                    && feature.ends_with(tail)
            }
        }
    }
}

/// Whether a name is that of a group, or of a feature that some kernel is known to have. Another name may be that of a newer kernel.
pub fn is_known(name: &str) -> bool {
    OffloadGroup::named(name).is_some() || FEATURES.contains(&name)
}

/// The known name that was probably meant by an unknown one.
pub fn similar(name: &str) -> Option<&'static str> {
    let groups = OFFLOAD_GROUPS.iter().flat_map(|group| [group.short, group.long]);
    nearest(name, groups.chain(FEATURES.iter().copied()))
}

/// Whether two names stand for the same feature, or have one in common.
pub(super) fn overlap(a: &str, b: &str) -> bool {
    match (OffloadGroup::named(a), OffloadGroup::named(b)) {
        (Some(a), Some(b)) => a == b,
        (Some(group), None) => group.contains(b),
        (None, Some(group)) => group.contains(a),
        (None, None) => a == b,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_overlap_when_they_have_a_feature_in_common() {
        for (a, b, expected) in [
            ("tso", "tx-tcp-segmentation", true),
            ("tso", "tx-tcp6-segmentation", true),
            ("tso", "tcp-segmentation-offload", true),
            ("tso", "tso", true),
            ("rx-gro", "gro", true),
            ("rx-gro", "rx-gro", true),
            ("tso", "gso", false),
            ("tso", "tx-udp-segmentation", false),
            ("gro", "rx-gro-hw", false),
            ("tx", "rx", false),
            ("tx-tcp-segmentation", "tx-tcp6-segmentation", false),
        ] {
            assert_eq!((overlap(a, b), overlap(b, a)), (expected, expected), "{a} and {b}");
        }
    }

    #[test]
    fn name_that_no_kernel_has_is_unknown_with_a_similar_one() {
        for known in ["tso", "tcp-segmentation-offload", "rx-gro-hw", "tx-udp-segmentation"] {
            assert!(is_known(known), "{known}");
        }
        for (unknown, meant) in [
            ("tsoo", Some("tso")),
            ("tx-tcp-segmentaton", Some("tx-tcp-segmentation")),
            ("segmentation", Some("tcp-segmentation-offload")),
            ("no-such-offload-anywhere", None),
        ] {
            assert!(!is_known(unknown), "{unknown}");
            assert_eq!(similar(unknown), meant, "{unknown}");
        }
    }

    #[test]
    fn every_group_has_a_known_feature() {
        // Linux 4.14 removed that of `ufo`.
        for group in OFFLOAD_GROUPS.iter().filter(|group| group.short != "ufo") {
            assert!(FEATURES.iter().any(|feature| group.contains(feature)), "{}", group.short);
        }
    }

    #[test]
    fn group_contains_the_features_of_its_pattern_only() {
        let group = OffloadGroup::named("tcp-segmentation-offload").unwrap();
        assert!(group.contains("tx-tcp-segmentation") && group.contains("tx-tcp-ecn-segmentation"));
        assert!(!group.contains("tx-tcp-segmentatio") && !group.contains("tx-udp-segmentation"));
        assert_eq!(OffloadGroup::named("tx-tcp-segmentation"), None);
    }
}
