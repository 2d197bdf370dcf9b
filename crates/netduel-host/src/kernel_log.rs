//! Messages of the kernel's log about the hypervisor (`/dev/kmsg`, Documentation/ABI/testing/dev-kmsg). The log may be forbidden
//! (`kernel.dmesg_restrict`), and its start is overwritten with time: then the facts are absent.
use std::fs::OpenOptions;
use std::io::{ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// `arch/x86/kernel/cpu/hypervisor.c`: the hypervisor that the kernel detected at boot.
const DETECTED: &str = "Hypervisor detected: ";
/// `drivers/hv/hv_common.c`, before 6.8 `arch/x86/kernel/cpu/mshyperv.c`: `Hyper-V: Host Build 10.0.20348.1-1-0`, in the newest
/// kernels `Hypervisor Build`, in old ones `Hyper-V Host Build:20348-10.0-1-0.1`.
const BUILDS: [&str; 3] = ["Hyper-V: Host Build ", "Hyper-V: Hypervisor Build ", "Hyper-V Host Build:"];
/// Maximum length of a log (`CONFIG_LOG_BUF_SHIFT` is at most 25, usually 17 to 20); the rest is not read.
const READ_MAX: usize = 4 << 20;
/// Microseconds since boot: on every kernel the hypervisor is found in the first second.
const BOOT_US: u64 = 10_000_000;
/// Maximum length of a record (`PRINTK_MESSAGE_MAX`).
const RECORD_MAX: usize = 2048;

/// Facts that the kernel logged at boot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Hypervisor {
    /// For example `KVM` or `Microsoft Hyper-V`.
    pub name: String,
    /// Hyper-V's build.
    pub build: Option<String>,
}

impl Hypervisor {
    /// `Hyper-V 10.0.20348.1-1-0`, `KVM`.
    pub fn words(&self) -> String {
        let name = self.name.strip_prefix("Microsoft ").unwrap_or(&self.name);
        self.build.as_ref().map_or_else(|| name.to_owned(), |build| format!("{name} {build}"))
    }

    /// Whether no later record adds to it: only Hyper-V has a build.
    fn is_complete(&self) -> bool {
        self.build.is_some() || !self.name.ends_with("Hyper-V")
    }
}

/// Reads the log from its start to the last record about the hypervisor, or where that is not known to the last one of the time of boot.
pub(crate) fn hypervisor(root: &Path) -> Option<Hypervisor> {
    let path = root.join("dev/kmsg");
    let nonblocking = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    let mut file = OpenOptions::new().read(true).custom_flags(nonblocking).open(path).ok()?;
    let mut log = String::new();
    let mut record = [0; 4 * RECORD_MAX];
    while log.len() < READ_MAX {
        match file.read(&mut record) {
            Ok(0) => break,
            Ok(length) if is_of_boot(&record[..length]) => {
                let text = String::from_utf8_lossy(&record[..length]);
                log.push_str(&text);
                if is_of_hypervisor(&text) && found(&log).is_some_and(|found| found.is_complete()) {
                    break;
                }
            }
            // EPIPE: unread records were overwritten; the next read continues after them.
            Err(cause) if matches!(cause.kind(), ErrorKind::BrokenPipe | ErrorKind::Interrupted) => {}
            _ => break,
        }
    }
    found(&log)
}

/// Whether a record is from the time in which the kernel detects its hypervisor; the log of a busy host has thousands of later ones.
fn is_of_boot(record: &[u8]) -> bool {
    let head = String::from_utf8_lossy(record.split(|byte| *byte == b';').next().unwrap_or_default());
    let microseconds = head.split(',').nth(2).and_then(|time| time.parse::<u64>().ok());
    microseconds.is_none_or(|time| time <= BOOT_US)
}

/// Whether a record may be one about the hypervisor.
fn is_of_hypervisor(record: &str) -> bool {
    record.contains(DETECTED) || BUILDS.iter().any(|mark| record.contains(mark))
}

/// Only the kernel's own records count: `priority,sequence,microseconds,flags;text`, with a facility of 0 in the priority's
/// upper bits. A program that writes to the log has another.
fn found(log: &str) -> Option<Hypervisor> {
    let own = |line: &&str| {
        let priority = line.split(',').next().and_then(|number| number.parse::<u32>().ok());
        priority.is_some_and(|priority| priority >> 3 == 0)
    };
    let after = |mark: &str| {
        let lines = log.lines().filter(own).filter_map(|line| line.split_once(';'));
        lines.map(|(_, text)| text).find_map(|text| Some(text.split_once(mark)?.1.trim().to_owned()))
    };
    let build = BUILDS.iter().find_map(|mark| after(mark));
    let name = after(DETECTED).or_else(|| build.is_some().then(|| "Hyper-V".to_owned()))?;
    Some(Hypervisor { name, build })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hypervisor_build_is_found_in_messages_of_old_and_new_kernels() {
        let new = "6,0,0,-;Linux version 6.8.0\n6,5,0,-;Hypervisor detected: Microsoft Hyper-V\n\
                   6,6,0,-;Hyper-V: privilege flags low 0xae7f, high 0x3b8030\n6,7,0,-;Hyper-V: Host Build 10.0.22477.1061-1-0\n";
        assert_eq!(found(new).unwrap().words(), "Hyper-V 10.0.22477.1061-1-0");
        let old = "6,5,0,-;Hypervisor detected: Microsoft Hyper-V\n6,7,0,-;Hyper-V Host Build:18362-10.0-3-0.3446\n";
        assert_eq!(found(old).unwrap().words(), "Hyper-V 18362-10.0-3-0.3446");
        assert_eq!(found("6,5,0,-;Hypervisor detected: KVM\n").unwrap().words(), "KVM");
    }

    #[test]
    fn records_after_those_of_the_hypervisor_are_not_read() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("dev")).unwrap();
        let found_in = |records: [&str; 2]| {
            // A file has no records: each takes a whole read.
            let padded = records.map(|record| format!("{record:<width$}\n", width = 4 * RECORD_MAX - 1));
            std::fs::write(root.path().join("dev/kmsg"), padded.concat()).unwrap();
            hypervisor(root.path()).unwrap().words()
        };
        let build = "6,7,0,-;Hyper-V: Host Build 10.0.22477.1061-1-0";
        assert_eq!(found_in(["6,5,0,-;Hypervisor detected: KVM", build]), "KVM");
        let with_build = "Hyper-V 10.0.22477.1061-1-0";
        assert_eq!(found_in(["6,5,0,-;Hypervisor detected: Microsoft Hyper-V", build]), with_build);
        // A program's record ends no search.
        assert_eq!(found_in(["12,5,0,-;Hypervisor detected: KVM", build]), with_build);
    }

    #[test]
    fn records_from_long_after_boot_are_not_read() {
        assert!(is_of_boot(b"6,0,9999999,-;Hypervisor detected: KVM\n") && is_of_boot(b"not a record"));
        assert!(!is_of_boot(b"6,900,10000001,-;eth0: link up, 1,2,3\n"));
    }

    #[test]
    fn messages_of_programs_in_the_log_are_ignored() {
        assert_eq!(found("12,5,0,-;Hypervisor detected: KVM\n"), None);
        assert_eq!(found("Hypervisor detected: KVM"), None);
        assert_eq!(found(""), None);
    }
}
