//! Errors of a lab, with remedies. The keeper sends them to its client, so they are plain data.
use std::fmt;

use netduel_model::ids::LabName;
use netduel_model::units::BitRate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An errno(3) that can be serialized.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Errno(pub i32);

impl fmt::Display for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        std::io::Error::from_raw_os_error(self.0).fmt(f)
    }
}

impl std::error::Error for Errno {}

impl From<std::io::Error> for Errno {
    fn from(error: std::io::Error) -> Self {
        // Errors without a number come from the standard library; EIO represents them.
        Self(error.raw_os_error().unwrap_or(Self::IO.0))
    }
}

impl Errno {
    /// Not permitted.
    pub const PERM: Self = Self(1);
    /// Input or output error; also for errors without a number.
    pub const IO: Self = Self(5);
    /// No process, thread or other resource left for now.
    pub const AGAIN: Self = Self(11);
    /// No memory left.
    pub const NOMEM: Self = Self(12);
    /// Permission denied.
    pub const ACCES: Self = Self(13);
    /// No open file left in the system.
    pub const NFILE: Self = Self(23);
    /// No open file left for a process.
    pub const MFILE: Self = Self(24);
    /// Invalid argument.
    pub const INVAL: Self = Self(22);
    /// No space; a namespace limit.
    pub const NOSPC: Self = Self(28);
    /// Not supported.
    pub const OPNOTSUPP: Self = Self(95);
    /// Address family not supported.
    pub const AFNOSUPPORT: Self = Self(97);
    /// Protocol not supported.
    pub const PROTONOSUPPORT: Self = Self(93);
    /// No such file, table or chain.
    pub const NOENT: Self = Self(2);
    /// Address in use.
    pub const ADDRINUSE: Self = Self(98);
}

/// Errors of building or using a lab. The messages complete "failed to ...".
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum LabError {
    /// The kernel does not permit this user to create namespaces.
    #[error("create the namespaces of the lab ({operation}): {errno}; {remedy}")]
    Namespaces {
        /// The refused step.
        operation: String,
        /// The kernel's error.
        errno: Errno,
        /// The remedy.
        remedy: String,
    },
    /// The kernel lacks a feature that the lab needs.
    #[error(
        "{operation} {object}: {errno}; this kernel lacks {feature}; load the module, or use a kernel with it"
    )]
    KernelFeature {
        /// The operation.
        operation: String,
        /// Its object.
        object: String,
        /// The kernel's error.
        errno: Errno,
        /// The kernel option and module.
        feature: String,
    },
    /// The kernel refused a step.
    #[error("{operation} {object}: {errno}{detail}{}", exhausted(*.errno).unwrap_or_default())]
    Kernel {
        /// The operation.
        operation: String,
        /// Its object.
        object: String,
        /// The kernel's error.
        errno: Errno,
        /// The message of the kernel or a likely cause, with its separator; may be empty.
        detail: String,
    },
    /// The kernel holds fewer policy entries than requested.
    #[error(
        "load the policy: {host} has {found} of {wanted} entries in {object}; build the lab again, or lower the number of rules"
    )]
    PolicyIncomplete {
        /// The machine.
        host: String,
        /// Chain or set.
        object: String,
        /// Requested entries.
        wanted: u32,
        /// Entries in the kernel.
        found: u32,
    },
    /// The guests do not reach each other.
    #[error(
        "reach guest {to} from guest {from} through {interface} with {family}: {errno}; a firewall may filter bridged packets: set net.bridge.bridge-nf-call-iptables = 0"
    )]
    Unreachable {
        /// The sending guest.
        from: String,
        /// The receiving guest.
        to: String,
        /// The first interface of the path.
        interface: String,
        /// `IPv4` or `IPv6`.
        family: String,
        /// The error of the probe.
        errno: Errno,
    },
    /// A setting is outside of its range.
    #[error("build the lab: `{setting}` is {value}; {allowed}")]
    OutOfRange {
        /// Its key.
        setting: String,
        /// Its value.
        value: String,
        /// The range, in words.
        allowed: String,
    },
    /// The kernel has another rate than the requested one.
    #[error(
        "cap the rate of {object} at {rate}: the kernel has {}; set a `cap` that it can keep exactly, or leave it out",
        match .kernel { Some(rate) => rate.to_string(), None => "no token bucket there".to_owned() }
    )]
    CapNotTaken {
        /// The interface.
        object: String,
        /// The requested rate.
        rate: BitRate,
        /// The rate of the kernel; absent without a token bucket.
        kernel: Option<BitRate>,
    },
    /// A port does not forward, so its path would lose packets.
    #[error("wait until the bridge of {interface} forwards to it: after {seconds} s {state}")]
    PortNotForwarding {
        /// The interface.
        interface: String,
        /// Duration of the wait, seconds.
        seconds: u64,
        /// Its state, in words.
        state: String,
    },
    /// The guests' forwarding entries match neither path.
    #[error(
        "set the lab's path: {detail}; another program changes the lab at the same time: stop it, and repeat the command"
    )]
    PathMixed {
        /// The entries.
        detail: String,
    },
    /// A lab with this name exists.
    #[error(
        "bring up lab {name}: it is up already; take it down first (`netduel lab down --lab {name}`) or use another name"
    )]
    NameTaken {
        /// The name.
        name: LabName,
    },
    /// No lab with this name exists.
    #[error("find lab {name}: no such lab is up; create it with `netduel lab up --lab {name}`")]
    NoSuchLab {
        /// The name.
        name: LabName,
    },
    /// The lab has no host with this name.
    #[error("find host {host} in the lab: it has the hosts a, b, h1 and h2")]
    NoSuchHost {
        /// The name.
        host: String,
    },
    /// The keeper runs no commands.
    #[error(
        "run the command of an event for guest {host} of the lab: only hosts outside of labs have this event"
    )]
    CommandEvent {
        /// The guest.
        host: String,
    },
    /// The keeper ended without an answer.
    #[error("{operation}: the keeper of lab {name} ended unexpectedly{}", LastWords(last_words))]
    KeeperDied {
        /// The request.
        operation: String,
        /// The lab.
        name: LabName,
        /// The end of its standard error, when known.
        last_words: Option<String>,
    },
    /// The lab was requested to end, and its keeper still exists.
    #[error(
        "remove lab {name}: its keeper, process {pid}, has not ended. The kernel keeps it until every process of the \
         lab is reaped by its parent; `ps -e -o pid,ppid,stat,args` shows those that are not (state Z). A container needs an init \
         that reaps, for example `docker run --init`"
    )]
    NotEnded {
        /// The lab.
        name: LabName,
        /// Its keeper.
        pid: i32,
    },
    /// The keeper uses another protocol version.
    #[error(
        "connect to lab {name}: another version of netduel built it; take it down (`netduel lab down --lab {name}`) and build it again, or use another name"
    )]
    OtherVersion {
        /// The lab.
        name: LabName,
    },
    /// The program is not installed.
    #[error(
        "{operation}: this machine has no such program; install it, or name it with its path (the lab shares this machine's files)"
    )]
    NoProgram {
        /// The operation and its object.
        operation: String,
    },
    /// A step on this side failed.
    #[error("{operation}: {errno}{}", exhausted(*.errno).unwrap_or_default())]
    Local {
        /// The operation and its object.
        operation: String,
        /// The kernel's error.
        errno: Errno,
    },
}

struct LastWords<'a>(&'a Option<String>);

impl fmt::Display for LastWords<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(words) => write!(f, "; its last output: {words}"),
            None => {
                f.write_str("; it may have been killed (see `dmesg` for the OOM killer); build the lab again")
            }
        }
    }
}

impl LabError {
    /// Whether the kernel refused a step because this user may not take it, or because a limit of processes, memory or open files is reached.
    pub fn is_of_environment(&self) -> bool {
        match self {
            Self::Namespaces { .. } | Self::KernelFeature { .. } | Self::NoProgram { .. } => true,
            Self::Kernel { errno, .. } | Self::Local { errno, .. } => {
                [Errno::PERM, Errno::ACCES].contains(errno) || exhausted(*errno).is_some()
            }
            _ => false,
        }
    }

    /// A closure for `map_err` on steps of this process.
    pub(crate) fn local<E: Into<std::io::Error>>(operation: impl Into<String>) -> impl FnOnce(E) -> Self {
        let operation = operation.into();
        move |error| Self::Local { operation, errno: Errno::from(error.into()) }
    }

    /// A closure for `map_err` on steps that make or change namespaces.
    pub(crate) fn namespaces<E: Into<std::io::Error>>(
        operation: impl Into<String>,
    ) -> impl FnOnce(E) -> Self {
        let operation = operation.into();
        move |error| {
            let errno = Errno::from(error.into());
            Self::Namespaces { operation, errno, remedy: namespace_remedy(errno) }
        }
    }
}

/// The remedy for an error of a limit that is reached, with its separator.
fn exhausted(errno: Errno) -> Option<&'static str> {
    match errno {
        Errno::AGAIN | Errno::NOMEM => Some(
            "; no process, thread or memory is left: raise the limit (`ulimit -u`, TasksMax= or MemoryMax= of the service, pids.max or \
             memory.max of a container)",
        ),
        Errno::MFILE | Errno::NFILE => Some(
            "; no open file is left: raise the limit (`ulimit -n`, LimitNOFILE= of the service, fs.file-max of the machine)",
        ),
        _ => None,
    }
}

/// The sysctls that forbid namespaces on this kernel, with their values.
fn namespace_remedy(errno: Errno) -> String {
    let read = |name: &str| {
        let path = format!("/proc/sys/{}", name.replace('.', "/"));
        std::fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
    };
    let switches = [
        ("kernel.unprivileged_userns_clone", "0", "1"),
        ("kernel.apparmor_restrict_unprivileged_userns", "1", "0"),
        ("user.max_user_namespaces", "0", "15000"),
        ("user.max_net_namespaces", "0", "15000"),
        ("user.max_pid_namespaces", "0", "15000"),
    ];
    let found: Vec<String> = switches
        .iter()
        .filter(|(name, bad, _)| read(name).as_deref() == Some(bad))
        .map(|(name, bad, good)| format!("{name} is {bad} (`sysctl -w {name}={good}` permits it)"))
        .collect();
    if !found.is_empty() {
        return format!("{}; or run as root", found.join(", "));
    }
    if errno == Errno::NOSPC {
        "raise the limits in /proc/sys/user/max_*_namespaces, or take other labs down".to_owned()
    } else {
        "run as root, or permit user namespaces (kernel.unprivileged_userns_clone=1, \
         kernel.apparmor_restrict_unprivileged_userns=0, user.max_user_namespaces above 0; in a container its \
         seccomp profile must permit unshare)"
            .to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_is_equal_after_serialization() {
        let error = LabError::namespaces("unshare")(std::io::Error::from_raw_os_error(Errno::PERM.0));
        let json = serde_json::to_string(&error).unwrap();
        assert_eq!(serde_json::from_str::<LabError>(&json).unwrap(), error);
        assert!(error.to_string().contains("as root"), "{error}");
    }

    #[test]
    fn namespace_limit_is_named() {
        let error = LabError::namespaces("unshare")(std::io::Error::from_raw_os_error(Errno::NOSPC.0));
        assert!(error.to_string().contains("max_"), "{error}");
    }
}
