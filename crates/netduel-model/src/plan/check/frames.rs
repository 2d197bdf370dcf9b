//! A list of frame sizes, which makes a workload of each.
use crate::plan::problem::{Problems, key_path};
use crate::plan::spec::WorkloadSpec;

use super::settings;

/// The key of the list.
const KEY: &str = "frames";

/// A workload, once for each of its sizes of frames.
pub(super) fn by_frames(workload: &WorkloadSpec) -> Vec<WorkloadSpec> {
    let Some(frames) =
        workload.frames.as_ref().filter(|_| workload.kind.is_some_and(|kind| settings::has(kind, KEY)))
    else {
        return vec![workload.clone()];
    };
    let of = |frame: &u32| {
        let mut one = workload.clone();
        one.frames = None;
        one.settings.frame = Some(*frame);
        // A name that grows too long is left as it is, and then noted as one that is there twice.
        let name = one.name.as_ref().and_then(|name| format!("{name}-{frame}").parse().ok());
        one.name = name.or(one.name);
        one
    };
    let is_first = |(index, frame): &(usize, &u32)| !frames[..*index].contains(frame);
    frames.iter().enumerate().filter(is_first).map(|(_, frame)| of(frame)).collect()
}

/// Reports an empty list of sizes, a repeated size, and a list together with the single size.
pub(super) fn check(workload: &WorkloadSpec, path: &str, problems: &mut Problems<'_>) {
    let Some(frames) = &workload.frames else { return };
    let path = key_path(path, KEY);
    if workload.settings.frame.is_some() {
        problems.add(&path, "conflicts with `frame`", "set one of frame, frames");
    } else if frames.is_empty() {
        problems.add(&path, "is empty", "name at least one size, for example [64, 512, 1518]");
    }
    for (index, frame) in frames.iter().enumerate() {
        if frames[..index].contains(frame) {
            problems.add(&path, format!("has {frame} twice"), "name each size once");
        }
    }
}
