//! The state of accelerated networking: a virtual function below a paravirtual interface, and whether it carries the packets.
use netduel_model::shell;
use netduel_model::snapshot::{FAILOVER_DRIVER, HostSnapshot, Interface, PciFunction, Provider};
use serde::Serialize;

use super::drivers;
use super::finding::{Finding, Severity};
use super::nic::{is_hardware, is_synthetic, partner, pci_of};

/// State of the accelerated path of a paravirtual interface.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "state", rename_all = "kebab-case")]
pub enum Acceleration {
    /// The virtual function is paired, up, and has carried packets.
    Active {
        /// Its name.
        function: String,
    },
    /// It is paired and up; no counter shows whether it carries packets.
    Paired {
        /// Its name.
        function: String,
    },
    /// It is paired, but down, or it has carried no packet since its driver was loaded.
    Idle {
        /// Its name.
        function: String,
        /// Whether it is up.
        up: bool,
    },
    /// Its interface is there, but the paravirtual one does not use it.
    Unpaired {
        /// Its name.
        function: String,
    },
    /// The function is on the bus and has no driver.
    NoDriver {
        /// PCI address.
        slot: String,
    },
    /// The function has a driver, but no interface in this network namespace.
    PciOnly {
        /// PCI address.
        slot: String,
    },
    /// There is no virtual function.
    SyntheticOnly,
}

impl Acceleration {
    /// One line for people.
    pub fn words(&self) -> String {
        match self {
            Self::Active { function } => format!("active: {function} has carried packets"),
            Self::Paired { function } => format!("paired with {function} (up); no counter of its packets"),
            Self::Idle { function, up: true } => format!("idle: {function} has carried no packet"),
            Self::Idle { function, up: false } => format!("idle: {function} is down"),
            Self::Unpaired { function } => format!("not paired: {function} is not below this interface"),
            Self::NoDriver { slot } => format!("no driver for the virtual function at {slot}"),
            Self::PciOnly { slot } => {
                format!("the virtual function at {slot} has no interface in this network namespace")
            }
            Self::SyntheticOnly => "none: no virtual function".to_owned(),
        }
    }

    /// Whether packets may take the accelerated path.
    pub fn is_on(&self) -> bool {
        matches!(self, Self::Active { .. } | Self::Paired { .. })
    }
}

/// Every paravirtual interface that can have a virtual function below it, with its state.
pub fn accelerations(host: &HostSnapshot) -> Vec<(&Interface, Acceleration)> {
    let synthetic = host.interfaces.iter().filter(|interface| is_synthetic(interface));
    synthetic.map(|interface| (interface, state(host, interface))).collect()
}

fn state(host: &HostSnapshot, synthetic: &Interface) -> Acceleration {
    if let Some(vf) = partner(host, synthetic) {
        let function = vf.name.clone();
        // net_failover counts nothing of the function, which counts for itself.
        let packets = carried(synthetic).or(vf.packets);
        return match packets {
            _ if !vf.up => Acceleration::Idle { function, up: false },
            Some(0) => Acceleration::Idle { function, up: true },
            Some(_) => Acceleration::Active { function },
            None => Acceleration::Paired { function },
        };
    }
    if let Some(vf) = unpaired(host, synthetic) {
        return Acceleration::Unpaired { function: vf.name.clone() };
    }
    let unused = |function: &&PciFunction| {
        drivers::is_virtual(function) && !drivers::is_user_space(function) && function.interfaces.is_empty()
    };
    match host.pci_functions.iter().filter(unused).min_by_key(|function| function.driver.is_some()) {
        Some(function) if function.driver.is_none() => Acceleration::NoDriver { slot: function.slot.clone() },
        Some(function) => Acceleration::PciOnly { slot: function.slot.clone() },
        None => Acceleration::SyntheticOnly,
    }
}

/// Packets on the virtual function as counted by the paravirtual driver; absent when it has no such counters.
fn carried(synthetic: &Interface) -> Option<u64> {
    let counter = |name: &str| synthetic.device.counters.get(name).copied();
    counter("vf_rx_packets").into_iter().chain(counter("vf_tx_packets")).reduce(u64::saturating_add)
}

/// A virtual function with the same MAC address and no master: the pairing failed.
fn unpaired<'a>(host: &'a HostSnapshot, synthetic: &Interface) -> Option<&'a Interface> {
    host.interfaces.iter().find(|other| {
        other.name != synthetic.name
            && other.master.is_none()
            && is_hardware(other)
            && !is_synthetic(other)
            && other.mac.is_some()
            && other.mac == synthetic.mac
    })
}

/// Findings about accelerated networking and about functions without a driver.
pub(super) fn find(host: &HostSnapshot) -> Vec<Finding> {
    let states = accelerations(host);
    let mut found: Vec<Finding> =
        states.iter().filter_map(|(interface, state)| of_state(host, interface, state)).collect();
    let is_reported = |slot: &str| {
        states.iter().any(|(_, state)| matches!(state, Acceleration::NoDriver { slot: own } if own == slot))
    };
    let orphans = host.pci_functions.iter().filter(|function| function.driver.is_none());
    found.extend(
        orphans
            .filter(|function| !is_reported(&function.slot))
            .map(|function| without_driver(host, function)),
    );
    found
}

fn of_state(host: &HostSnapshot, interface: &Interface, state: &Acceleration) -> Option<Finding> {
    let name = &interface.name;
    let finding = match state {
        Acceleration::Active { .. } | Acceleration::Paired { .. } => return None,
        Acceleration::Idle { function, up: false } => {
            Finding::new("vf-idle", Severity::Warning, format!("the virtual function {function} of {name} is down"))
                .seen(format!("{function} is paired with {name} and down"))
                .why(if interface.driver.as_deref() == Some(FAILOVER_DRIVER) {
                    "net_failover drops what its standby receives while it has a virtual function, so nothing is received"
                } else {
                    "all packets take the paravirtual path, which is slower"
                })
                .remedy("bring the virtual function up")
                .command(format!("ip link set {function} up", function = shell::word(function)))
        }
        Acceleration::Idle { function, up: true } => {
            let finding = Finding::new("vf-idle", Severity::Warning, format!("the virtual function {function} of {name} has carried no packets"))
                .why("packets may still take the paravirtual path although accelerated networking looks active");
            if carried(interface).is_some() {
                finding
                    .seen(format!("{function} is up; vf_rx_packets and vf_tx_packets of {name} are 0"))
                    .remedy("send traffic and check that the counters rise; if they do not, search the kernel log for `Data path switched`")
                    .command(format!("ethtool -S {name} | grep vf_; dmesg | grep -i 'data path'", name = shell::word(name)))
            } else {
                finding
                    .seen(format!("{function} is up; its own packet counters are 0"))
                    .remedy(format!("send traffic and check that the counters rise; if they do not, search the kernel log for {function}"))
                    .command(format!("ip -s link show {function}", function = shell::word(function)))
            }
        }
        Acceleration::Unpaired { function } => {
            let (remedy, command) = repair(host, function);
            Finding::new("vf-unpaired", Severity::Problem, format!("the virtual function {function} is not paired with {name}"))
                .seen(format!("both have MAC address {}; {function} has no master", interface.mac.as_deref().unwrap_or("unknown")))
                .why("packets take the paravirtual path, and a DHCP client can configure a second address on the virtual function")
                .remedy(format!("exclude the virtual function from network managers, set it down, then {remedy}"))
                .command(command)
        }
        Acceleration::NoDriver { slot } => {
            let function = host.pci_functions.iter().find(|function| &function.slot == slot)?;
            return Some(without_driver(host, function).on(name));
        }
        Acceleration::PciOnly { slot } => {
            let function = host.pci_functions.iter().find(|function| &function.slot == slot)?;
            Finding::new("vf-without-interface", Severity::Warning, format!("the virtual function at {slot} has a driver, but no interface below {name}"))
                .seen(drivers::words(function))
                .seen(format!("driver {}", function.driver.as_deref().unwrap_or("none")))
                .why("packets in this network namespace take the paravirtual path")
                .remedy("check whether its interface was moved to another network namespace, or its driver failed")
                .command(format!("dmesg | grep {slot}; lsns -t net", slot = shell::word(slot)))
        }
        Acceleration::SyntheticOnly => return synthetic_only(host, interface),
    };
    Some(finding.on(name))
}

/// What pairs a function again, as the end of a remedy and as a command. The kernel pairs it when its driver makes the interface. The file
/// `remove` is no way to that: the kernel has none for a function whose physical function it has as well.
fn repair(host: &HostSnapshot, function: &str) -> (&'static str, String) {
    let down = format!("ip link set {} down", shell::word(function));
    let interface = host.interfaces.iter().find(|interface| interface.name == function);
    let pci = interface.and_then(|interface| pci_of(host, interface));
    match pci.and_then(|pci| Some((&pci.slot, pci.driver.as_ref()?))) {
        Some((slot, driver)) => {
            let (slot, driver) = (shell::word(slot), shell::word(&format!("/sys/bus/pci/drivers/{driver}")));
            (
                "unbind and bind its driver to pair it again",
                format!("{down}; echo {slot} > {driver}/unbind; echo {slot} > {driver}/bind"),
            )
        }
        None => {
            ("take its device away and add it again to pair it: no driver of a PCI device is known", down)
        }
    }
}

/// Without a virtual function a guest on Azure measures the slow path; elsewhere there may be no other.
fn synthetic_only(host: &HostSnapshot, interface: &Interface) -> Option<Finding> {
    let cloud = host.cloud.as_ref()?;
    if cloud.provider != Provider::Azure {
        return None;
    }
    let name = &interface.name;
    let size =
        cloud.size.as_deref().map_or_else(|| "of unknown size".to_owned(), |size| format!("size {size}"));
    Some(
        Finding::new(
            "synthetic-only",
            Severity::Warning,
            format!("{name} has no virtual function: accelerated networking is off"),
        )
        .on(name)
        .seen(format!(
            "driver {}, Azure, {size}; no virtual function on the bus",
            interface.driver.as_deref().unwrap_or("unknown")
        ))
        .why("the host's software switch processes every packet: higher latency, more CPU time, lower packet rate")
        .remedy(
            "enable it if the size supports it; the portal can show it as enabled although the guest has no virtual function",
        )
        .command(
            "az network nic update --resource-group GROUP --name NIC --accelerated-networking true --subscription SUBSCRIPTION",
        ),
    )
}

/// A guest has a function in order to use it. A physical machine may keep functions for its guests; that is no fault.
fn without_driver(host: &HostSnapshot, function: &PciFunction) -> Finding {
    let what = format!("the network function at {} has no driver", function.slot);
    let is_guest = host.cloud.as_ref().is_some_and(|cloud| cloud.provider != Provider::BareMetal);
    let (severity, why) = if is_guest && drivers::is_virtual(function) {
        (Severity::Problem, "the accelerated path of this function is not used")
    } else {
        (Severity::Note, "the kernel cannot use this function")
    };
    let finding =
        Finding::new("function-without-driver", severity, what).seen(drivers::words(function)).why(why);
    match drivers::known(function) {
        Some((_, module)) => finding
            .remedy(format!(
                "load its driver {module}; a kernel without this driver is too old for the device"
            ))
            // A function that was unbound stays without a driver until a probe is requested, though the module is loaded.
            .command(format!(
                "modprobe {module}; echo {} > /sys/bus/pci/drivers_probe",
                shell::word(&function.slot)
            )),
        None => finding
            .remedy("load the driver for this PCI id")
            .command(format!("lspci -k -s {}", shell::word(&function.slot))),
    }
}
