//! Receive and transmit packet steering: which cores work for which queue
//! (Documentation/networking/scaling.rst of the kernel).
use std::io;

use netduel_model::plan::tuning::{CoreChoice, core_list, core_mask, cores};
use rustix::io::Errno;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::change::{Change, Original};
use super::error::TreatmentError;
use super::recorded_interface::RecordedInterface;
use super::sysfs::Sysfs;

/// Files of a queue that a change of the number of queues takes along.
const FILES: [(&str, &str); 3] = [("rx-", "rps_cpus"), ("rx-", "rps_flow_cnt"), ("tx-", "xps_cpus")];

/// Which of the two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Steering {
    Receive,
    Transmit,
}

impl Steering {
    fn words(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::Receive => ("rx-", "rps_cpus", "RPS"),
            Self::Transmit => ("tx-", "xps_cpus", "XPS"),
        }
    }
}

/// Files below the folder of an interface's queues, and what is written to them.
pub(super) type QueueFiles = Vec<(String, String)>;

/// Files of an interface's queues.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(super) struct QueueFilesOriginal {
    interface: RecordedInterface,
    files: QueueFiles,
}

impl Original for QueueFilesOriginal {
    fn restore(&self) -> Result<(), TreatmentError> {
        self.interface.restore(|interface, _| restore(interface, &self.files))
    }

    fn what(&self) -> String {
        format!("the change of packet steering of {}", self.interface)
    }

    fn by_hand(&self) -> String {
        by_hand(self.interface.name(), &self.files).join(", ")
    }
}

/// A change that is ready to be made.
#[derive(Debug)]
pub(super) struct SteeringChange {
    interface: String,
    wanted: QueueFiles,
}

/// Reads what is there and checks whether the change can be made.
pub(super) fn prepare(
    interface: &str,
    steering: Steering,
    choice: &CoreChoice,
) -> Result<(QueueFilesOriginal, SteeringChange), TreatmentError> {
    let recorded = RecordedInterface::read(interface)?;
    let (prefix, file, name) = steering.words();
    let doing = || format!("set {name} of {interface} to {choice}");
    let sysfs = Sysfs::open()?;
    let online = online(&sysfs)?;
    check(choice, &online, doing)?;
    let queues = queues(&sysfs, interface, prefix)?;
    let mut original = Vec::new();
    let mut wanted = Vec::new();
    for (place, queue) in queues.iter().enumerate() {
        let path = format!("{queue}/{file}");
        let value =
            sysfs.read(&in_folder(interface, &path)).map_err(|cause| single(interface, doing(), cause))?;
        original.push((path.clone(), value));
        wanted.push((path, core_mask(&dealt(choice, &online, place, queues.len()))));
    }
    let undo = QueueFilesOriginal { interface: recorded, files: original };
    Ok((undo, SteeringChange { interface: interface.to_owned(), wanted }))
}

impl Change for SteeringChange {
    fn make(&self) -> Result<(), TreatmentError> {
        let sysfs = Sysfs::open()?;
        self.wanted.iter().try_for_each(|(path, value)| set(&sysfs, &self.interface, path, value))
    }

    fn read_back(&self) -> Result<(), TreatmentError> {
        let sysfs = Sysfs::open()?;
        self.wanted.iter().try_for_each(|(path, value)| read_back(&sysfs, &self.interface, path, value))
    }
}

/// The cores that the kernel runs on.
fn online(sysfs: &Sysfs) -> Result<Vec<u16>, TreatmentError> {
    let refused = |cause| TreatmentError::Refused { doing: "read which cores are online".to_owned(), cause };
    let text = sysfs.read("devices/system/cpu/online").map_err(refused)?;
    cores(&text).map_err(|wrong| refused(io::Error::new(io::ErrorKind::InvalidData, wrong)))
}

/// Rejects cores that the host does not have.
pub(super) fn check(
    choice: &CoreChoice,
    online: &[u16],
    doing: impl Fn() -> String,
) -> Result<(), TreatmentError> {
    if let CoreChoice::Cores { cores } = choice
        && cores.iter().any(|core| !online.contains(core))
    {
        let allowed = format!("the cores that are online here: {}", core_list(online));
        return Err(TreatmentError::Range { doing: doing(), allowed });
    }
    Ok(())
}

/// The cores of queue `place` of `count`: dealt out like cards, or the same for all.
fn dealt(choice: &CoreChoice, online: &[u16], place: usize, count: usize) -> Vec<u16> {
    match choice {
        CoreChoice::Off => Vec::new(),
        CoreChoice::Cores { cores } => cores.clone(),
        // With more queues than cores, queues share a core.
        CoreChoice::Spread if online.len() <= count => {
            online.get(place % online.len().max(1)).copied().into_iter().collect()
        }
        CoreChoice::Spread => online.iter().copied().skip(place).step_by(count.max(1)).collect(),
    }
}

/// Masks say the same when they differ in leading zeros alone; numbers as well.
fn same(one: &str, other: &str) -> bool {
    let plain = |text: &str| text.replace(',', "").trim_start_matches('0').to_owned();
    plain(one) == plain(other)
}

fn in_folder(interface: &str, path: &str) -> String {
    format!("class/net/{interface}/queues/{path}")
}

/// Queues in their order by number.
fn queues(sysfs: &Sysfs, interface: &str, prefix: &str) -> Result<Vec<String>, TreatmentError> {
    let doing = || format!("list the queues of {interface}");
    let names = sysfs
        .names(&in_folder(interface, ""))
        .map_err(|cause| TreatmentError::about_interface(interface, doing(), cause))?;
    let mut queues: Vec<(u32, String)> =
        names.into_iter().filter_map(|name| Some((name.strip_prefix(prefix)?.parse().ok()?, name))).collect();
    queues.sort_unstable();
    Ok(queues.into_iter().map(|(_, name)| name).collect())
}

/// The kernel shows no cores of a transmit queue that is the only one (`netif_is_multiqueue` in net/core/net-sysfs.c).
fn single(interface: &str, doing: String, cause: io::Error) -> TreatmentError {
    if cause.raw_os_error() == Some(Errno::NOENT.raw_os_error()) {
        let why = "it has one transmit queue, and the kernel steers between several only".to_owned();
        return TreatmentError::unsupported(interface, doing, why);
    }
    TreatmentError::Refused { doing, cause }
}

/// What a change of the number of queues may take along; nothing where `/sys` cannot be read, as without root.
pub(super) fn all_files(interface: &str) -> QueueFiles {
    let Ok(sysfs) = Sysfs::open() else { return Vec::new() };
    let of = |(prefix, file): &(&str, &str)| {
        let queues = queues(&sysfs, interface, prefix).unwrap_or_default();
        queues.into_iter().map(|queue| format!("{queue}/{file}")).collect::<Vec<_>>()
    };
    FILES
        .iter()
        .flat_map(of)
        .filter_map(|path| {
            let value = sysfs.read(&in_folder(interface, &path)).ok()?;
            Some((path, value))
        })
        .collect()
}

/// Sets the files as they were, as far as their queues are still there; one that cannot be set keeps none of the others.
pub(super) fn restore(interface: &str, files: &QueueFiles) -> Result<(), TreatmentError> {
    if files.is_empty() {
        return Ok(());
    }
    let sysfs = Sysfs::open()?;
    let is_there = |path: &str| {
        let gone = sysfs.read(&in_folder(interface, path)).err();
        gone.is_none_or(|cause| cause.kind() != io::ErrorKind::NotFound)
    };
    all(files
        .iter()
        .filter(|(path, _)| is_there(path))
        .map(|(path, value)| set(&sysfs, interface, path, value)))
}

/// The commands that write the files of an interface's queues.
pub(super) fn by_hand(interface: &str, files: &QueueFiles) -> Vec<String> {
    let echo = |(path, value): &(String, String)| {
        format!("`echo {value} > /sys/class/net/{interface}/queues/{path}`")
    };
    files.iter().map(echo).collect()
}

/// Does all of it, whatever becomes of a part, and gives the first failure.
pub(super) fn all(steps: impl Iterator<Item = Result<(), TreatmentError>>) -> Result<(), TreatmentError> {
    steps.fold(Ok(()), Result::and)
}

/// Writes the file if it differs and reads it back.
fn set(sysfs: &Sysfs, interface: &str, path: &str, value: &str) -> Result<(), TreatmentError> {
    let refused = |cause| TreatmentError::about_interface(interface, doing(interface, path, value), cause);
    let file = in_folder(interface, path);
    if same(&sysfs.read(&file).map_err(refused)?, value) {
        return Ok(());
    }
    sysfs.write(&file, value).map_err(refused)?;
    read_back(sysfs, interface, path, value)
}

fn doing(interface: &str, path: &str, value: &str) -> String {
    format!("set {path} of {interface} to `{value}`")
}

fn read_back(sysfs: &Sysfs, interface: &str, path: &str, value: &str) -> Result<(), TreatmentError> {
    let doing = doing(interface, path, value);
    let refused = |cause| TreatmentError::about_interface(interface, doing.clone(), cause);
    let now = sysfs.read(&in_folder(interface, path)).map_err(refused)?;
    if same(&now, value) {
        return Ok(());
    }
    Err(TreatmentError::NotTaken { doing, answered: format!("`{now}`") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_are_the_same_whatever_zeros_lead() {
        assert!(same("00000000,00000003", "3") && same("0", "00000000") && !same("3", "30"));
    }

    #[test]
    fn cores_are_dealt_out_over_the_queues() {
        let online = [0, 1, 2, 3, 4];
        let all = |count: usize| -> Vec<Vec<u16>> {
            (0..count).map(|place| dealt(&CoreChoice::Spread, &online, place, count)).collect()
        };
        assert_eq!(all(2), [vec![0, 2, 4], vec![1, 3]]);
        assert_eq!(all(6)[5], [0]);
        assert!(dealt(&CoreChoice::Off, &online, 1, 2).is_empty());
        let named = CoreChoice::Cores { cores: vec![3] };
        assert_eq!(dealt(&named, &online, 1, 2), [3]);
    }

    #[test]
    fn a_core_that_is_not_there_is_refused_with_those_that_are() {
        let refused =
            check(&CoreChoice::Cores { cores: vec![7] }, &[0, 1, 2], || "set RPS of va to 7".to_owned());
        assert_eq!(
            refused.unwrap_err().to_string(),
            "set RPS of va to 7: allowed are the cores that are online here: 0-2"
        );
    }
}
