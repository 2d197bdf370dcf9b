//! Sysctls, through `/proc/sys`. Nothing outside of it is ever opened.
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use netduel_model::sysctl::{effect_of, interface_of};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::change::{Change, Original};
use super::error::TreatmentError;
use super::recorded_interface::RecordedInterface;

/// The tree of settings. What lies below `net` is that of the calling thread's network namespace.
const ROOT: &str = "/proc/sys";

/// `tcp_set_default_congestion_control` in net/ipv4/tcp_cong.c: another namespace than the first takes unrestricted ones only.
const CONGESTION_CONTROL: &str = "net.ipv4.tcp_congestion_control";
const CONGESTION_CONTROL_HELD: &str = "the kernel does not permit it; run the agent as root, and in a network namespace choose a congestion \
     control that `net.ipv4.tcp_allowed_congestion_control` of the machine lists; or set `congestion` of the workload, which changes the \
     connections of the test only";

/// The value of a sysctl.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(super) struct SysctlOriginal {
    name: String,
    value: String,
    /// The interface that it is of; absent for one of the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    interface: Option<RecordedInterface>,
}

impl Original for SysctlOriginal {
    fn restore(&self) -> Result<(), TreatmentError> {
        let Self { name, value, interface } = self;
        match interface {
            None => set(name, value),
            Some(interface) => interface.restore(|present, _| set(&named_after(name, present), value)),
        }
    }

    fn what(&self) -> String {
        format!("the change of sysctl `{}`", self.name)
    }

    fn by_hand(&self) -> String {
        format!("`sysctl -w '{}={}'`", self.name, self.value)
    }
}

/// A change that is ready to be made.
#[derive(Debug)]
pub(super) struct SysctlChange {
    name: String,
    value: String,
}

/// The file of a dotted name. As in sysctl(8) a slash stands for a dot within a word (`net.ipv4.conf.eth0/100.mtu`).
fn path(name: &str) -> Result<PathBuf, TreatmentError> {
    let swapped = |letter: char| match letter {
        '.' => '/',
        '/' => '.',
        other => other,
    };
    let relative: String = name.chars().map(swapped).collect();
    let words: Vec<&str> = relative.split('/').collect();
    let good = |word: &&str| {
        !word.is_empty() && !word.starts_with('.') && word.chars().all(|c| c.is_ascii_graphic() && c != '\\')
    };
    if words.len() < 2 || !words.iter().all(good) {
        return Err(TreatmentError::SysctlName { name: name.to_owned() });
    }
    Ok(Path::new(ROOT).join(relative))
}

/// The same sysctl of an interface with this name.
fn named_after(name: &str, interface: &str) -> String {
    let present = interface.replace('.', "/");
    let words = name.split('.').enumerate();
    words.map(|(place, word)| if place == 3 { present.as_str() } else { word }).collect::<Vec<_>>().join(".")
}

/// Reads what is there and checks whether the change can be made and undone.
pub(super) fn prepare(name: &str, value: &str) -> Result<(SysctlOriginal, SysctlChange), TreatmentError> {
    let path = path(name)?;
    if let Some(effect) = effect_of(name) {
        return Err(TreatmentError::SysctlEffect { name: name.to_owned(), effect });
    }
    let fixed = |why| TreatmentError::SysctlFixed { name: name.to_owned(), why };
    let metadata =
        fs::metadata(&path).map_err(|cause| refused(name, format!("read sysctl `{name}`"), cause))?;
    if metadata.is_dir() {
        return Err(fixed("it is a folder of sysctls; name one of those in it"));
    }
    let mode = metadata.permissions().mode();
    if mode & 0o222 == 0 {
        return Err(fixed("the kernel lets it be read only"));
    }
    if mode & 0o444 == 0 {
        return Err(fixed("it cannot be read, so there would be nothing to set it back to"));
    }
    let original = read(name, &path)?;
    let interface = interface_of(name).map(|interface| RecordedInterface::read(&interface)).transpose()?;
    let undo = SysctlOriginal { name: name.to_owned(), value: original, interface };
    Ok((undo, SysctlChange { name: name.to_owned(), value: value.to_owned() }))
}

fn refused(name: &str, doing: String, cause: io::Error) -> TreatmentError {
    if cause.kind() == io::ErrorKind::NotFound {
        return TreatmentError::NoSysctl { name: name.to_owned() };
    }
    TreatmentError::Refused { doing, cause }
}

fn read(name: &str, path: &Path) -> Result<String, TreatmentError> {
    let text =
        fs::read_to_string(path).map_err(|cause| refused(name, format!("read sysctl `{name}`"), cause))?;
    Ok(text.trim_end_matches('\n').to_owned())
}

impl Change for SysctlChange {
    fn make(&self) -> Result<(), TreatmentError> {
        set(&self.name, &self.value)
    }

    fn read_back(&self) -> Result<(), TreatmentError> {
        read_back(&self.name, &self.value)
    }

    fn is_of_interface(&self) -> bool {
        interface_of(&self.name).is_some()
    }
}

fn doing(name: &str, value: &str) -> String {
    format!("set sysctl `{name}` to `{value}`")
}

/// Sets a sysctl and reads it back; white space between numbers does not matter.
fn set(name: &str, value: &str) -> Result<(), TreatmentError> {
    let path = path(name)?;
    let doing = || doing(name, value);
    // A change that was refused for lack of a right needs none to be undone.
    if read(name, &path)?.split_whitespace().eq(value.split_whitespace()) {
        return Ok(());
    }
    // The kernel takes a value in one write; neither creating nor cutting is wanted of a file that is none.
    let mut file =
        OpenOptions::new().write(true).open(&path).map_err(|cause| refused(name, doing(), cause))?;
    file.write_all(value.as_bytes()).map_err(|cause| match cause.kind() {
        io::ErrorKind::PermissionDenied if name == CONGESTION_CONTROL => {
            TreatmentError::SysctlFixed { name: name.to_owned(), why: CONGESTION_CONTROL_HELD }
        }
        io::ErrorKind::PermissionDenied => refused(name, doing(), cause),
        _ => TreatmentError::SysctlValue { name: name.to_owned(), value: value.to_owned(), cause },
    })?;
    read_back(name, value)
}

fn read_back(name: &str, value: &str) -> Result<(), TreatmentError> {
    let now = read(name, &path(name)?)?;
    if now.split_whitespace().eq(value.split_whitespace()) {
        return Ok(());
    }
    Err(TreatmentError::NotTaken { doing: doing(name, value), answered: format!("`{now}`") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dotted_names_become_paths_below_proc_sys() {
        let of = |name: &str| path(name).unwrap().display().to_string();
        assert_eq!(of("net.ipv4.tcp_rmem"), "/proc/sys/net/ipv4/tcp_rmem");
        assert_eq!(of("net.ipv4.conf.eth0/100.mtu"), "/proc/sys/net/ipv4/conf/eth0.100/mtu");
    }

    #[test]
    fn sysctl_of_an_interface_follows_its_present_name() {
        for (name, interface, renamed) in [
            ("net.ipv4.conf.eth0.rp_filter", Some("eth0"), "net.ipv4.conf.vf1.rp_filter"),
            ("net.ipv6.neigh.eth0/100.base_reachable_time_ms", Some("eth0.100"), ""),
            ("net.ipv4.conf.all.rp_filter", None, ""),
            ("net.ipv4.tcp_rmem", None, ""),
            ("net.core.conf", None, ""),
        ] {
            assert_eq!(interface_of(name).as_deref(), interface, "{name}");
            if !renamed.is_empty() {
                assert_eq!(named_after(name, "vf1"), renamed);
            }
        }
        assert_eq!(named_after("net.ipv4.conf.eth0.tag", "eth0.7"), "net.ipv4.conf.eth0/7.tag");
    }

    #[test]
    fn sysctl_of_an_interface_that_is_deleted_needs_no_undoing() {
        let interface = Some(RecordedInterface::named("no-such", u32::MAX >> 1));
        let name = "net.ipv4.conf.no-such.rp_filter".to_owned();
        SysctlOriginal { name, value: "1".to_owned(), interface }.restore().unwrap();
    }

    #[test]
    fn a_name_that_leads_out_of_proc_sys_is_refused() {
        let bad = [
            "",
            ".",
            "..",
            "net",
            "net..x",
            ".net.x",
            "net.x.",
            "net.//.x",
            "//.//.etc.passwd",
            "/etc/passwd",
        ];
        for name in bad.iter().chain(&["net.ipv4.a b", "net.\0.x", "net./x", "net.\\..x", "net.ü.x"]) {
            assert!(path(name).is_err(), "{name:?} became {:?}", path(name));
        }
    }
}
