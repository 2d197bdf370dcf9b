//! Names of offload features: the kernel's, and ethtool's for groups of them. It knows no device.

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
    fn group_contains_the_features_of_its_pattern_only() {
        let group = OffloadGroup::named("tcp-segmentation-offload").unwrap();
        assert!(group.contains("tx-tcp-segmentation") && group.contains("tx-tcp-ecn-segmentation"));
        assert!(!group.contains("tx-tcp-segmentatio") && !group.contains("tx-udp-segmentation"));
        assert_eq!(OffloadGroup::named("tx-tcp-segmentation"), None);
    }
}
