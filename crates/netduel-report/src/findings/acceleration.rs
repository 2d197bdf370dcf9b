//! The state of accelerated networking: a virtual function beneath a paravirtual interface, and whether it carries the packets.
use netduel_model::snapshot::{HostSnapshot, Interface, PciFunction, Provider};
use serde::Serialize;

use super::drivers;
use super::finding::{Finding, Severity};
use super::nic::{is_hardware, is_synthetic, partner};

/// In which state the accelerated path of a paravirtual interface is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "state", rename_all = "kebab-case")]
pub enum Acceleration {
    /// The virtual function is paired, up, and has carried packets.
    Active {
        /// Its name.
        function: String,
    },
    /// It is paired and up; no counter tells whether it carries packets.
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
    /// The function is on the bus, and no driver took it.
    NoDriver {
        /// Where on the bus.
        slot: String,
    },
    /// A driver took the function, and it has no interface in this network namespace.
    PciOnly {
        /// Where on the bus.
        slot: String,
    },
    /// There is no virtual function.
    SyntheticOnly,
}

impl Acceleration {
    /// For people.
    pub fn words(&self) -> String {
        match self {
            Self::Active { function } => format!("active: {function} carries the packets"),
            Self::Paired { function } => format!("paired with {function}, which is up"),
            Self::Idle { function, up: true } => format!("idle: {function} has carried no packet"),
            Self::Idle { function, up: false } => format!("idle: {function} is down"),
            Self::Unpaired { function } => format!("not paired: {function} is beside it, not beneath it"),
            Self::NoDriver { slot } => format!("no driver for the function at {slot}"),
            Self::PciOnly { slot } => format!("the function at {slot} has no interface here"),
            Self::SyntheticOnly => "none: paravirtual alone".to_owned(),
        }
    }

    /// Whether packets may take the accelerated path.
    pub fn is_on(&self) -> bool {
        matches!(self, Self::Active { .. } | Self::Paired { .. })
    }
}

/// Every paravirtual interface that can have a virtual function beneath it, and the state of that.
pub fn accelerations(host: &HostSnapshot) -> Vec<(&Interface, Acceleration)> {
    let synthetic = host.interfaces.iter().filter(|interface| is_synthetic(interface));
    synthetic.map(|interface| (interface, state(host, interface))).collect()
}

fn state(host: &HostSnapshot, synthetic: &Interface) -> Acceleration {
    if let Some(vf) = partner(host, synthetic) {
        let function = vf.name.clone();
        let packets = carried(synthetic);
        return match packets {
            _ if !vf.up => Acceleration::Idle { function, up: false },
            Some(0) => Acceleration::Idle { function, up: true },
            Some(_) => Acceleration::Active { function },
            None => Acceleration::Paired { function },
        };
    }
    if let Some(vf) = beside(host, synthetic) {
        return Acceleration::Unpaired { function: vf.name.clone() };
    }
    let unused = |function: &&PciFunction| {
        drivers::is_virtual(function) && !drivers::is_given_away(function) && function.interfaces.is_empty()
    };
    match host.pci_functions.iter().filter(unused).min_by_key(|function| function.driver.is_some()) {
        Some(function) if function.driver.is_none() => Acceleration::NoDriver { slot: function.slot.clone() },
        Some(function) => Acceleration::PciOnly { slot: function.slot.clone() },
        None => Acceleration::SyntheticOnly,
    }
}

/// Packets that the paravirtual driver saw pass on the virtual function; absent when it has no such counters.
fn carried(synthetic: &Interface) -> Option<u64> {
    let counter = |name: &str| synthetic.device.counters.get(name).copied();
    counter("vf_rx_packets").into_iter().chain(counter("vf_tx_packets")).reduce(|a, b| a + b)
}

/// A virtual function with the same address of the link layer and nothing above it: the pairing failed.
fn beside<'a>(host: &'a HostSnapshot, synthetic: &Interface) -> Option<&'a Interface> {
    host.interfaces.iter().find(|other| {
        other.name != synthetic.name
            && other.master.is_none()
            && is_hardware(other)
            && !is_synthetic(other)
            && other.mac.is_some()
            && other.mac == synthetic.mac
    })
}

/// The findings about accelerated networking, and about functions that nobody serves.
pub(super) fn find(host: &HostSnapshot) -> Vec<Finding> {
    let states = accelerations(host);
    let mut found: Vec<Finding> =
        states.iter().filter_map(|(interface, state)| of_state(host, interface, state)).collect();
    let told = |slot: &str| {
        states.iter().any(|(_, state)| matches!(state, Acceleration::NoDriver { slot: told } if told == slot))
    };
    let orphans = host.pci_functions.iter().filter(|function| function.driver.is_none());
    found.extend(
        orphans.filter(|function| !told(&function.slot)).map(|function| without_driver(host, function)),
    );
    found
}

fn of_state(host: &HostSnapshot, interface: &Interface, state: &Acceleration) -> Option<Finding> {
    let name = &interface.name;
    let finding = match state {
        Acceleration::Active { .. } | Acceleration::Paired { .. } => return None,
        Acceleration::Idle { function, up: false } => {
            Finding::new("vf-idle", Severity::Warning, format!("{function}, the virtual function beneath {name}, is down"))
                .seen(format!("{function} is paired with {name} and not up"))
                .why("all packets take the slow, paravirtual path")
                .remedy("bring the virtual function up")
                .command(format!("ip link set {function} up"))
        }
        Acceleration::Idle { function, up: true } => {
            Finding::new("vf-idle", Severity::Warning, format!("{function}, the virtual function beneath {name}, has carried no packet"))
                .seen(format!("{function} is up; vf_rx_packets and vf_tx_packets of {name} are 0"))
                .why("a pairing that carries nothing is a slow path that looks like the fast one")
                .remedy("send traffic and look whether the counters grow; if not, look in the kernel's log for `Data path switched`")
                .command(format!("ethtool -S {name} | grep vf_; dmesg | grep -i 'data path'"))
        }
        Acceleration::Unpaired { function } => {
            Finding::new("vf-unpaired", Severity::Problem, format!("{function} has the address of {name} and is not beneath it"))
                .seen(format!("both have {}; {function} has no master", interface.mac.as_deref().unwrap_or("the same address")))
                .why("packets take the paravirtual path, and a DHCP client on the virtual function makes a second address")
                .remedy("take the virtual function down, keep network managers off it, and remove and rescan it so that the pairing is made again")
                .command(repair(host, function))
        }
        Acceleration::NoDriver { slot } => {
            let function = host.pci_functions.iter().find(|function| &function.slot == slot)?;
            return Some(without_driver(host, function).on(name));
        }
        Acceleration::PciOnly { slot } => {
            let function = host.pci_functions.iter().find(|function| &function.slot == slot)?;
            Finding::new("vf-without-interface", Severity::Warning, format!("the virtual function at {slot} has a driver and no interface beneath {name}"))
                .seen(drivers::words(function))
                .seen(format!("driver {}", function.driver.as_deref().unwrap_or("none")))
                .why("packets of this network namespace take the paravirtual path")
                .remedy("look whether the interface was moved into another network namespace, or its driver failed")
                .command(format!("dmesg | grep {slot}; lsns -t net"))
        }
        Acceleration::SyntheticOnly => return synthetic_only(host, interface),
    };
    Some(finding.on(name))
}

fn repair(host: &HostSnapshot, function: &str) -> String {
    let slot = host.interfaces.iter().find(|interface| interface.name == function);
    let slot = slot.and_then(|interface| interface.device.pci.as_ref()).map(|pci| pci.slot.as_str());
    let down = format!("ip link set {function} down");
    match slot {
        Some(slot) => {
            format!("{down}; echo 1 > /sys/bus/pci/devices/{slot}/remove; echo 1 > /sys/bus/pci/rescan")
        }
        None => down,
    }
}

/// Without a virtual function on Azure the slow path is what is measured; elsewhere it may be all that there is.
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
        .why("every packet passes the host's software switch: more latency, more CPU, fewer packets a second")
        .remedy(
            "turn it on if the size has it; the portal may say that it is on while the guest has no function",
        )
        .command("az network nic update --resource-group GROUP --name NIC --accelerated-networking true"),
    )
}

/// A guest was given the function to use it. A machine of its own may keep functions for its guests, and that is no fault.
fn without_driver(host: &HostSnapshot, function: &PciFunction) -> Finding {
    let what = format!("no driver took the network function at {}", function.slot);
    let is_guest = host.cloud.as_ref().is_some_and(|cloud| cloud.provider != Provider::BareMetal);
    let severity = if is_guest && drivers::is_virtual(function) { Severity::Problem } else { Severity::Note };
    let finding = Finding::new("function-without-driver", severity, what)
        .seen(drivers::words(function))
        .why("its packets go another way, or nowhere: accelerated networking is on and of no use");
    match drivers::known(function) {
        Some((_, module)) => finding
            .remedy(format!("load its driver {module}; a kernel that has none is too old for this device"))
            .command(format!("modprobe {module}")),
        None => finding
            .remedy("find the driver of this id and load it")
            .command(format!("lspci -k -s {}", function.slot)),
    }
}
