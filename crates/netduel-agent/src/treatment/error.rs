//! Why a treatment could not be made or undone. Every text completes "failed to ..." and names cause and remedy, because
//! it crosses the control connection as text.
use std::io;
use std::path::PathBuf;

use netduel_model::workload::OutOfRange;
use netduel_sys::ethtool::Ethtool;

/// A treatment failed.
#[derive(Debug, thiserror::Error)]
pub enum TreatmentError {
    /// The lab changes its path itself.
    #[error("change the path on a host: `path` belongs to the local lab and is set there, not by an agent")]
    PathIsTheLabs,
    /// The coordinator changes the provider's resources itself.
    #[error("change a NIC or VM of Azure on a host: the coordinator does this through `az`, not an agent")]
    IsTheProviders,
    /// A quantity that no plan may have.
    #[error("apply \"{change}\": {out}")]
    OutOfRange {
        /// The change, in words.
        change: String,
        /// The quantity and its range.
        out: OutOfRange,
    },
    /// No such interface in the agent's network namespace.
    #[error("find interface `{interface}` in the agent's network namespace{}", there_is(.known))]
    NoInterface {
        /// The requested name.
        interface: String,
        /// The interfaces that are there.
        known: Vec<String>,
    },
    /// The device has no feature of that name.
    #[error("set `{feature}` of {interface}: the kernel knows no such feature{}; see `ethtool -k {interface}`", did_you_mean(.near))]
    UnknownFeature {
        /// Interface.
        interface: String,
        /// The requested name.
        feature: String,
        /// Names like it.
        near: Vec<String>,
    },
    /// The device does not let the feature be changed.
    #[error(
        "turn {} {feature} of {interface}: the device keeps it {} (`[fixed]` in `ethtool -k {interface}`); leave this \
         treatment out, or use an interface whose driver lets it be changed",
        feature_words(*.enabled), feature_words(!*.enabled)
    )]
    FixedFeature {
        /// Interface.
        interface: String,
        /// Feature.
        feature: String,
        /// The requested state.
        enabled: bool,
    },
    /// The driver does not support this MTU.
    #[error("set the MTU of {interface} to {mtu} bytes: the driver supports {range}")]
    MtuRange {
        /// Interface.
        interface: String,
        /// The requested MTU, bytes.
        mtu: u32,
        /// What it supports, in words.
        range: String,
    },
    /// An MTU that cannot be undone.
    #[error(
        "set the MTU of {interface} to {mtu} bytes: below 1280 the kernel removes the interface's IPv6 addresses ({addresses}), \
         and setting the MTU back does not bring them back; use 1280 or more, or remove the addresses first"
    )]
    MtuDropsAddresses {
        /// Interface.
        interface: String,
        /// The requested MTU, bytes.
        mtu: u32,
        /// What would be lost.
        addresses: String,
    },
    /// An MTU that other interfaces would follow, and that cannot be undone for them.
    #[error(
        "set the MTU of {interface} to {mtu} bytes: the kernel also changes the MTU of interfaces on it ({stacked}), and setting that of \
         {interface} back does not restore theirs; choose an MTU that changes none of them, or use a `command` treatment with an `undo` of \
         your own that restores them"
    )]
    MtuOfStacked {
        /// Interface.
        interface: String,
        /// The requested MTU, bytes.
        mtu: u32,
        /// The interfaces on it, and their MTUs.
        stacked: String,
    },
    /// A name that leads elsewhere.
    #[error(
        "use `{name}` as a sysctl: a name is words separated by dots, for example `net.ipv4.tcp_rmem` (a dot within an interface's \
         name is written `/`)"
    )]
    SysctlName {
        /// The refused name.
        name: String,
    },
    /// No such sysctl here.
    #[error(
        "find sysctl `{name}`: this kernel or network namespace has no such sysctl, or its module is not loaded"
    )]
    NoSysctl {
        /// Its name.
        name: String,
    },
    /// A sysctl that cannot be written, or not read back.
    #[error("change sysctl `{name}`: {why}")]
    SysctlFixed {
        /// Its name.
        name: String,
        /// Why not.
        why: &'static str,
    },
    /// A sysctl whose earlier value does not restore the host.
    #[error(
        "change sysctl `{name}`: a write changes more than its value, so netduel could not restore the host: {effect}; use a `command` \
         treatment with an `undo` of your own that restores it"
    )]
    SysctlEffect {
        /// Its name.
        name: String,
        /// What would be lost.
        effect: &'static str,
    },
    /// A value that the kernel rejects.
    #[error(
        "set sysctl `{name}` to `{value}`: the kernel rejects this value ({cause}); a congestion control or a queueing \
         discipline must be among those that this kernel has loaded"
    )]
    SysctlValue {
        /// Its name.
        name: String,
        /// The requested value.
        value: String,
        /// The error of the kernel.
        cause: io::Error,
    },
    /// Beyond what the device or the host has.
    #[error("{doing}: allowed are {allowed}")]
    Range {
        /// What was being done, as a fragment.
        doing: String,
        /// The allowed values, in words.
        allowed: String,
    },
    /// The device cannot do this at all.
    #[error(
        "{doing}: {why}; leave this treatment out, or use an interface that can{}", of_driver(interface, driver.as_deref())
    )]
    Unsupported {
        /// What was being done, as a fragment.
        doing: String,
        /// Interface.
        interface: String,
        /// Its driver; absent when it names none.
        driver: Option<String>,
        /// Why not.
        why: String,
    },
    /// Without another interface above it, it may carry the control connection.
    #[error(
        "remove {interface}: it may carry the only connection to this host. No synthetic interface is above it, and no virtual function is \
         below it; name a virtual function with a synthetic interface above it, or use `down` for an active-backup bond that has `miimon` and \
         another port with carrier"
    )]
    OnlyWay {
        /// Interface.
        interface: String,
    },
    /// The kernel would drop what arrives by the other path.
    #[error(
        "set {interface} down: the driver of {master} is net_failover, which drops all that its standby receives while {interface} is \
         registered, so that {master} would receive nothing; use `pci = \"removed\"`, or the event `remove`, which makes the standby \
         take over"
    )]
    FailoverDrops {
        /// The virtual function.
        interface: String,
        /// The interface above it.
        master: String,
    },
    /// It is not clear which one is meant.
    #[error("remove the virtual function below {interface}: several interfaces are below it ({}); name one of them", .names.join(", "))]
    Several {
        /// The interface above.
        interface: String,
        /// Those below it.
        names: Vec<String>,
    },
    /// What would not come back by itself.
    #[error(
        "remove {interface}: it has addresses of its own ({addresses}) that are not restored with it; move them to the interface \
         above it first"
    )]
    DownDropsAddresses {
        /// Interface.
        interface: String,
        /// What would be lost.
        addresses: String,
    },
    /// Routes that would not come back.
    #[error(
        "remove {interface}: the kernel removes its routes ({routes}) with the link and does not add them again; move them to the interface \
         above it first, or use a `command` treatment with an `undo` of your own that adds them again"
    )]
    DownDropsRoutes {
        /// Interface.
        interface: String,
        /// What would be lost.
        routes: String,
    },
    /// Another program would undo the change in the midst of a trial.
    #[error(
        "{doing}: irqbalance (process {process}) runs and would move them again; stop it for the run (`systemctl stop irqbalance`)"
    )]
    Balanced {
        /// What was being done, as a fragment.
        doing: String,
        /// Its process number.
        process: u32,
    },
    /// The kernel placed it and does not let it be moved.
    #[error(
        "{doing}: the kernel manages this interrupt itself so that its CPU cannot be changed; leave this treatment out"
    )]
    ManagedInterrupt {
        /// What was being done, as a fragment.
        doing: String,
    },
    /// `/sys` is of no use here.
    #[error(
        "read /sys: the mounted sysfs belongs to another network namespace, and mounting another one failed ({cause}); run the agent as root, \
         or mount a sysfs in its mount namespace"
    )]
    ForeignSysfs {
        /// Why none of its own.
        cause: io::Error,
    },
    /// The kernel refused.
    #[error("{doing}: {cause}{}", remedy(.cause))]
    Refused {
        /// What was being done, as a fragment.
        doing: String,
        /// The error of the kernel.
        cause: io::Error,
    },
    /// The device of an interface whose setting is to be restored is gone.
    #[error(
        "find {interface} again: its device is not there; when it is back, the next run on this host restores what is recorded"
    )]
    DeviceAbsent {
        /// The interface, and what it is known by.
        interface: String,
    },
    /// Another interface cannot be distinguished from one whose setting is to be restored.
    #[error("find {interface} again: {names} may be it, or another device, so nothing was changed there")]
    DeviceUncertain {
        /// The interface, and what it is known by.
        interface: String,
        /// What is there.
        names: String,
    },
    /// The kernel accepted the change, and the value differs.
    #[error(
        "{doing}: the kernel accepted the request, but the host now has {answered}; another setting or program determines it"
    )]
    NotTaken {
        /// What was being done, as a fragment.
        doing: String,
        /// What the host answers now.
        answered: String,
    },
    /// The host does not have the change any more.
    #[error(
        "{doing} for a whole trial: after the traffic the host has {answered}; another program or the driver changed it in the trial: end \
         that program, or leave this treatment out"
    )]
    NotKept {
        /// What was to be kept, as a fragment.
        doing: String,
        /// What the host answers after the traffic.
        answered: String,
    },
    /// A command of a treatment failed.
    #[error("run `{command}`: {how}{}", with_stderr(.stderr))]
    Command {
        /// Its words.
        command: String,
        /// How it ended.
        how: String,
        /// What it wrote to standard error, cut.
        stderr: String,
    },
    /// The facts that a check needs could not be read.
    #[error(transparent)]
    Host(#[from] netduel_host::HostError),
    /// The process that undoes after a crash could not be started, so nothing was changed.
    #[error("start the undo guard `{program}`: {cause}; nothing was changed")]
    GuardStart {
        /// Program.
        program: String,
        /// Why.
        cause: String,
    },
    /// The guard's journal has no room for the record of a change.
    #[error(
        "record the change in {}: {cause}; the change was not made, because without its record nothing would restore it after netduel \
         was killed; free space there", .journal.display()
    )]
    NotRecorded {
        /// The journal.
        journal: PathBuf,
        /// Why.
        cause: String,
    },
    /// The guard went away or does not answer. The agent undoes by itself.
    #[error("keep the undo guard: it was lost: {how}; the agent undid its changes unless stated otherwise")]
    GuardLost {
        /// How it was lost.
        how: String,
    },
    /// A change is still in force.
    #[error("undo {what}: {cause}; by hand: {by_hand}")]
    NotUndone {
        /// What was changed.
        what: String,
        /// Why it could not be undone.
        cause: String,
        /// The command that undoes it.
        by_hand: String,
    },
    /// A treatment failed, and then others could not be undone.
    #[error("{failed}; and then failed to {}", list(.left))]
    AndNotUndone {
        /// The first failure.
        failed: Box<TreatmentError>,
        /// What came of undoing.
        left: Vec<TreatmentError>,
    },
}

impl TreatmentError {
    /// An error when the host took a request and `different` is what it has instead.
    pub fn unless_taken(doing: impl Fn() -> String, different: &[String]) -> Result<(), Self> {
        if different.is_empty() {
            return Ok(());
        }
        Err(Self::NotTaken { doing: doing(), answered: different.join(", ") })
    }

    /// Whether a change may still be in force on the host.
    pub fn is_left_behind(&self) -> bool {
        match self {
            Self::NotUndone { .. } => true,
            Self::AndNotUndone { left, .. } => left.iter().any(Self::is_left_behind),
            _ => false,
        }
    }

    /// Whether this change could not be undone.
    pub(super) fn is_about(&self, change: &str) -> bool {
        matches!(self, Self::NotUndone { what, .. } if what == change)
    }

    /// A refusal of the kernel, where `ENODEV` means that the interface is not there.
    pub(super) fn about_interface(interface: &str, doing: String, cause: io::Error) -> Self {
        if cause.raw_os_error() == Some(rustix::io::Errno::NODEV.raw_os_error()) {
            return Self::no_interface(interface);
        }
        Self::Refused { doing, cause }
    }

    /// As [`Self::about_interface`], where `EOPNOTSUPP` means that the driver cannot do it.
    pub(super) fn about_device(interface: &str, doing: String, cause: io::Error) -> Self {
        if cause.raw_os_error() == Some(rustix::io::Errno::OPNOTSUPP.raw_os_error()) {
            let why = "its driver does not support this".to_owned();
            return Self::unsupported(interface, doing, why);
        }
        Self::about_interface(interface, doing, cause)
    }

    /// The device cannot do this, and its driver is why.
    pub(super) fn unsupported(interface: &str, doing: String, why: String) -> Self {
        let named = Ethtool::open().and_then(|mut socket| socket.driver(interface));
        Self::Unsupported {
            doing,
            interface: interface.to_owned(),
            driver: named.ok().map(|info| info.driver),
            why,
        }
    }

    /// The interface is not there; names those that are.
    pub(super) fn no_interface(interface: &str) -> Self {
        Self::NoInterface {
            interface: interface.to_owned(),
            known: netduel_host::interface_names().unwrap_or_default(),
        }
    }
}

/// `on` or `off`.
pub(super) fn feature_words(enabled: bool) -> &'static str {
    if enabled { "on" } else { "off" }
}

fn of_driver(interface: &str, driver: Option<&str>) -> String {
    driver.map_or_else(String::new, |driver| format!(" ({interface} has the driver {driver})"))
}

fn there_is(known: &[String]) -> String {
    if known.is_empty() { String::new() } else { format!("; there are {}", known.join(", ")) }
}

fn did_you_mean(near: &[String]) -> String {
    if near.is_empty() { String::new() } else { format!("; similar names: {}", near.join(", ")) }
}

fn remedy(cause: &io::Error) -> &'static str {
    match cause.kind() {
        io::ErrorKind::PermissionDenied => {
            "; run the agent as root, or with CAP_NET_ADMIN in the user namespace that owns its network namespace"
        }
        io::ErrorKind::ReadOnlyFilesystem => "; it is mounted read-only here, as in most containers",
        _ => "",
    }
}

fn with_stderr(stderr: &str) -> String {
    if stderr.is_empty() {
        "; it wrote nothing to standard error".to_owned()
    } else {
        format!("; standard error: {stderr}")
    }
}

fn list(errors: &[TreatmentError]) -> String {
    errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; and to ")
}
