//! Offload features (`ethtool -K`): by the kernel's names, or by ethtool's for a group of them.
use netduel_model::plan::offload::{OFFLOAD_GROUPS, OffloadGroup};
use netduel_sys::ethtool::{Ethtool, Feature};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::change::{Change, Original};
use super::device::ethtool_socket;
use super::error::{TreatmentError, feature_words};
use super::recorded_interface::RecordedInterface;

/// So many near names are listed.
const NEAR_MAX: usize = 4;

/// Features of an interface.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(super) struct OffloadOriginal {
    interface: RecordedInterface,
    /// Features that are changed, as they had been requested.
    requested: Vec<(String, bool)>,
    /// All that were active: one feature may change others.
    active: Vec<String>,
}

impl Original for OffloadOriginal {
    fn restore(&self) -> Result<(), TreatmentError> {
        self.interface.restore(|interface, _| restore(interface, &self.requested, &self.active))
    }

    fn what(&self) -> String {
        let names: Vec<&str> = self.requested.iter().map(|(name, _)| name.as_str()).collect();
        format!("the change of {} of {}", names.join(", "), self.interface)
    }

    fn by_hand(&self) -> String {
        let words: Vec<String> =
            self.requested.iter().map(|(name, on)| format!("{name} {}", feature_words(*on))).collect();
        format!("`ethtool -K {} {}`", self.interface, words.join(" "))
    }
}

/// A change that is ready to be made.
#[derive(Debug)]
pub(super) struct OffloadChange {
    interface: String,
    feature: String,
    enabled: bool,
    /// The kernel's features behind the name that the device lets be changed.
    changed: Vec<String>,
}

pub(super) fn features(socket: &mut Ethtool, interface: &str) -> Result<Vec<Feature>, TreatmentError> {
    let doing = || format!("read the features of {interface}");
    socket.features(interface).map_err(|cause| TreatmentError::about_interface(interface, doing(), cause))
}

pub(super) fn active(features: &[Feature]) -> Vec<String> {
    features.iter().filter(|feature| feature.active).map(|feature| feature.name.clone()).collect()
}

/// Reads what is there and checks whether the change can be made.
pub(super) fn prepare(
    interface: &str,
    feature: &str,
    enabled: bool,
) -> Result<(OffloadOriginal, OffloadChange), TreatmentError> {
    let recorded = RecordedInterface::read(interface)?;
    let found = features(&mut ethtool_socket()?, interface)?;
    let behind = behind(feature, &found);
    if behind.is_empty() {
        let (interface, feature) = (interface.to_owned(), feature.to_owned());
        let near = near(&feature, &found);
        return Err(TreatmentError::UnknownFeature { interface, feature, near });
    }
    let free: Vec<&Feature> = behind.iter().copied().filter(|feature| !feature.fixed).collect();
    if free.is_empty() && !in_force(&behind, enabled) {
        let (interface, feature) = (interface.to_owned(), feature.to_owned());
        return Err(TreatmentError::FixedFeature { interface, feature, enabled });
    }
    let undo = OffloadOriginal {
        interface: recorded,
        requested: free.iter().map(|feature| (feature.name.clone(), feature.requested)).collect(),
        active: active(&found),
    };
    let changed = free.iter().map(|feature| feature.name.clone()).collect();
    let change =
        OffloadChange { interface: interface.to_owned(), feature: feature.to_owned(), enabled, changed };
    Ok((undo, change))
}

/// The kernel's features that a name stands for.
fn behind<'a>(name: &str, features: &'a [Feature]) -> Vec<&'a Feature> {
    if let Some(feature) = features.iter().find(|feature| feature.name == name) {
        return vec![feature];
    }
    let Some(group) = OffloadGroup::named(name) else { return Vec::new() };
    features.iter().filter(|feature| group.contains(&feature.name)).collect()
}

/// A group is on when one of it is, and off when none is.
fn in_force(features: &[&Feature], enabled: bool) -> bool {
    features.iter().any(|feature| feature.active) == enabled
}

/// Names of the device, or of ethtool, like the one that does not exist.
fn near(name: &str, features: &[Feature]) -> Vec<String> {
    let names = features.iter().map(|feature| feature.name.as_str());
    let mut ranked: Vec<(usize, &str)> = names
        .chain(OFFLOAD_GROUPS.iter().flat_map(|group| [group.short, group.long]))
        .map(|known| (distance(name, known), known))
        .filter(|(distance, _)| *distance <= name.chars().count().div_ceil(2))
        .collect();
    ranked.sort_unstable();
    ranked.into_iter().take(NEAR_MAX).map(|(_, known)| known.to_owned()).collect()
}

/// How many letters must be put in, left out or replaced (Levenshtein).
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (line, left) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = line + 1;
        for (column, right) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(left != *right);
            diagonal = row[column + 1];
            row[column + 1] = replaced.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[b.len()]
}

impl Change for OffloadChange {
    fn make(&self) -> Result<(), TreatmentError> {
        let Self { interface, enabled, changed, .. } = self;
        let mut socket = ethtool_socket()?;
        let wanted: Vec<(String, bool)> = changed.iter().map(|name| (name.clone(), *enabled)).collect();
        if !wanted.is_empty() {
            socket
                .request_features(interface, &wanted)
                .map_err(|cause| TreatmentError::about_interface(interface, self.doing(), cause))?;
        }
        self.read_back()
    }

    fn read_back(&self) -> Result<(), TreatmentError> {
        let Self { interface, feature, enabled, .. } = self;
        let found = features(&mut ethtool_socket()?, interface)?;
        let behind = behind(feature, &found);
        if in_force(&behind, *enabled) {
            return Ok(());
        }
        let state = |feature: &&Feature| format!("{} {}", feature.name, feature_words(feature.active));
        let answered = behind.iter().map(state).collect::<Vec<_>>().join(", ");
        Err(TreatmentError::NotTaken { doing: self.doing(), answered })
    }

    fn restarts(&self) -> Option<&str> {
        Some(&self.interface)
    }
}

impl OffloadChange {
    fn doing(&self) -> String {
        format!("turn {} {} of {}", feature_words(self.enabled), self.feature, self.interface)
    }
}

/// Requests the earlier features, and compares the active features with the earlier active ones.
pub(super) fn restore(
    interface: &str,
    requested: &[(String, bool)],
    was_active: &[String],
) -> Result<(), TreatmentError> {
    let doing = || format!("restore the features of {interface}");
    let mut socket = ethtool_socket()?;
    if !requested.is_empty() {
        socket
            .request_features(interface, requested)
            .map_err(|cause| TreatmentError::about_interface(interface, doing(), cause))?;
    }
    let found = features(&mut socket, interface)?;
    let different: Vec<String> = found
        .iter()
        .filter(|feature| feature.active != was_active.contains(&feature.name))
        .map(|feature| format!("{} {}", feature.name, feature_words(feature.active)))
        .collect();
    TreatmentError::unless_taken(doing, &different)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn feature(name: &str, active: bool) -> Feature {
        Feature { name: name.to_owned(), fixed: false, requested: active, active }
    }

    #[test]
    fn a_group_stands_for_its_features_and_a_feature_for_itself() {
        let device = [
            feature("tx-tcp-segmentation", true),
            feature("tx-tcp6-segmentation", false),
            feature("tx-udp-segmentation", true),
        ];
        let names = |name: &str| behind(name, &device).iter().map(|f| f.name.clone()).collect::<Vec<_>>();
        assert_eq!(names("tso"), ["tx-tcp-segmentation", "tx-tcp6-segmentation"]);
        assert_eq!(names("tcp-segmentation-offload"), names("tso"));
        assert_eq!(names("tx-udp-segmentation"), ["tx-udp-segmentation"]);
        assert_eq!(names("tx-tcp*-segmentation"), Vec::<String>::new());
        let group = behind("tso", &device);
        assert!(in_force(&group, true) && !in_force(&group, false));
    }

    #[test]
    fn misspelled_feature_has_the_similar_names_of_the_device() {
        let device = [feature("tx-tcp-segmentation", true), feature("rx-gro", true)];
        assert_eq!(near("tx-tcp-segmentaton", &device)[0], "tx-tcp-segmentation");
        assert_eq!(near("rx-gr0", &device)[0], "rx-gro");
        assert!(near("quite-something-else-altogether", &device).is_empty());
    }
}
