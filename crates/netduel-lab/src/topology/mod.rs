//! The lab's hosts, their connections, and path changes. Must be used from one thread, in a process that may change namespaces;
//! independent of the protocol.
mod direct;
pub(crate) mod event;
pub(crate) mod host;
pub(crate) mod policy;
mod probe;
pub(crate) mod wiring;

use std::os::fd::AsFd;

use netduel_model::lab;
use netduel_model::plan::resolved;
use netduel_model::plan::spec::LabPath;
use netduel_model::workload::LAB;
use netduel_sys::clock;

use crate::error::LabError;
use crate::netlink::link::{self, Counters, NewLink, PortSettings};
use crate::netlink::{address, neighbour, queueing};
use host::Host;
use wiring::{
    CONGESTION_CONTROL, FUNCTION, GUEST, Interface, LOOPBACK, MACHINE_MTU, NIC, NIC_FUNCTION, NIC_UPLINK,
    SIDES, SWITCH, SWITCH_PORT, SWITCH_UPLINK, SYNTHETIC, Side,
};

/// Time limit for ports to forward. The kernel takes some milliseconds, in a worker of its own for all
/// network namespaces of the machine, which is late where all cores are taken.
const PORTS_PATIENCE_NS: u64 = 20_000_000_000;
/// Poll interval of a port's state.
const PORTS_PAUSE_NS: u64 = 500_000;

/// One side of the lab: a guest and its machine.
struct Half {
    side: Side,
    guest: Host,
    machine: Host,
}

/// A running lab. Dropping it closes its namespaces, which the kernel removes with their last process.
pub(crate) struct Topology {
    spec: resolved::Lab,
    path: LabPath,
    halves: [Half; 2],
}

impl Topology {
    /// Builds everything, checks that all paths carry traffic, and leaves the synthetic path in use.
    pub(crate) fn build(spec: &resolved::Lab) -> Result<Self, LabError> {
        // A plan is checked; a run file that was edited is not.
        let values = [("rules", Some(u64::from(spec.rules))), ("cap", spec.cap.map(|cap| cap.0))];
        for (key, value) in values {
            let range = LAB.iter().find(|setting| setting.key == key).and_then(|setting| setting.range);
            let (Some(range), Some(value)) = (range, value) else { continue };
            if !range.contains(value) {
                let (setting, value) = (key.to_owned(), range.unit.show(value));
                return Err(LabError::OutOfRange { setting, value, allowed: range.allowed() });
            }
        }
        let mut guests = Vec::new();
        for side in SIDES {
            let guest = Host::create(side.guest)?;
            guests.push((side, guest, probe::Sockets::open(spec.cap)?));
        }
        let mut halves = Vec::new();
        let mut sockets = Vec::new();
        for (side, guest, probes) in guests {
            halves.push(Half { side, guest, machine: Host::create(side.machine)? });
            sockets.push(probes);
        }
        let (Ok(halves), [from, to]) = (<[Half; 2]>::try_from(halves), sockets.as_slice()) else {
            unreachable!("there are two sides")
        };
        let mut topology = Self { spec: spec.clone(), path: lab::INITIAL_PATH, halves };
        topology.connect()?;
        for path in [LabPath::Direct, LabPath::Accelerated, lab::INITIAL_PATH] {
            topology.set_path(path)?;
            probe::reach([from, to], path)?;
        }
        Ok(topology)
    }

    /// Changes the guests' path by replacing forwarding entries only, each in one step, so that every packet finds an entry. The
    /// receiving machine changes before the sending guest, and a deleted VF is added first.
    pub(crate) fn set_path(&mut self, path: LabPath) -> Result<(), LabError> {
        if path == LabPath::Accelerated {
            for half in &mut self.halves {
                half.plug_function(self.spec.mtu)?;
            }
            self.wait_for_ports()?;
        }
        if path == LabPath::Direct {
            self.plug_direct()?;
        }
        for half in &mut self.halves {
            half.steer_inbound(path)?;
        }
        let macs = [SIDES[1].mac, SIDES[0].mac];
        for (half, far_mac) in self.halves.iter_mut().zip(macs) {
            half.steer_outbound(path, far_mac)?;
        }
        let found = self.observe()?;
        if !is_of(&found, path) {
            let entries = found.map(|(place, observed)| {
                format!("{place}: {}", observed.map_or("no path of the lab", LabPath::word))
            });
            let detail = format!("after {} was set, the entries are {}", path.word(), entries.join(", "));
            return Err(LabError::PathMixed { detail });
        }
        self.path = path;
        Ok(())
    }

    /// The path that was set last.
    pub(crate) fn path(&self) -> LabPath {
        self.path
    }

    /// The path in use, read from the kernel; absent when the entries of both sides do not match one path.
    pub(crate) fn observed(&mut self) -> Result<Option<LabPath>, LabError> {
        let found = self.observe()?;
        Ok(found[0].1.filter(|path| is_of(&found, *path)))
    }

    /// The paths from and to each guest.
    fn observe(&mut self) -> Result<[(&'static str, Option<LabPath>); 4], LabError> {
        let [left, right] = &mut self.halves;
        Ok([
            ("out of a", left.outbound(right.side.mac)?),
            ("in to a", left.inbound()?),
            ("out of b", right.outbound(left.side.mac)?),
            ("in to b", right.inbound()?),
        ])
    }

    /// Counters of both ends of both guests: guest, interface, counters; without deleted interfaces.
    pub(crate) fn counters(&mut self) -> Result<Vec<(String, String, Counters)>, LabError> {
        let mut found = Vec::new();
        for half in &mut self.halves {
            for interface in [SYNTHETIC, FUNCTION, half.side.direct] {
                let object = half.guest.object(interface.name);
                if let Some(state) = link::state(&mut half.guest.route, interface.index, &object)? {
                    found.push((half.side.guest.to_owned(), interface.name.to_owned(), state.counters));
                }
            }
        }
        Ok(found)
    }

    /// Rules of the software switches in the kernel: machine, IPv4, IPv6.
    pub(crate) fn rules(&mut self) -> Result<Vec<(String, u32, u32)>, LabError> {
        let mut found = Vec::new();
        for half in &mut self.halves {
            let [v4, v6] = policy::count_linear(&mut half.machine.filter, half.machine.name)?;
            found.push((half.machine.name.to_owned(), v4, v6));
        }
        Ok(found)
    }

    /// The host with this name.
    pub(crate) fn host(&self, name: &str) -> Option<&Host> {
        self.halves.iter().flat_map(|half| [&half.guest, &half.machine]).find(|host| host.name == name)
    }

    fn connect(&mut self) -> Result<(), LabError> {
        for half in &mut self.halves {
            half.build_machine(&self.spec)?;
            half.build_guest(self.spec.mtu)?;
        }
        let [left, right] = &mut self.halves;
        let ends = [left.side.wire, right.side.wire].map(|end| new_link(end, MACHINE_MTU));
        let object = left.machine.object(left.side.wire.name);
        link::create_veth(&mut left.machine.route, ends[0], ends[1], right.machine.network.as_fd(), &object)?;
        for (half, far) in self.halves.iter_mut().zip([SIDES[1], SIDES[0]]) {
            half.connect_wire(&self.spec, far)?;
        }
        for half in &mut self.halves {
            half.plug_function(self.spec.mtu)?;
        }
        self.wait_for_ports()?;
        self.plug_direct()
    }

    /// Waits until every port forwards: otherwise a path would lose its first packets.
    fn wait_for_ports(&mut self) -> Result<(), LabError> {
        let deadline = clock::monotonic_ns() + PORTS_PATIENCE_NS;
        for half in &mut self.halves {
            let ports = [
                (&mut half.guest, vec![SYNTHETIC, FUNCTION]),
                (
                    &mut half.machine,
                    vec![SWITCH_PORT, SWITCH_UPLINK, NIC_UPLINK, NIC_FUNCTION, half.side.wire],
                ),
            ];
            for (host, interfaces) in ports {
                for interface in interfaces {
                    wait_for_port(host, interface, deadline)?;
                }
            }
        }
        Ok(())
    }
}

/// Whether the entries from and to the guests match one path. The direct path bypasses the machines. Their entries then lead to
/// the synthetic path, which carries flooded frames and takes over when the direct path has no carrier.
fn is_of(found: &[(&'static str, Option<LabPath>); 4], path: LabPath) -> bool {
    let inward = if path == LabPath::Direct { LabPath::Synthetic } else { path };
    found.iter().zip([path, inward].iter().cycle()).all(|((_, observed), wanted)| *observed == Some(*wanted))
}

fn wait_for_port(host: &mut Host, interface: Interface, deadline_ns: u64) -> Result<(), LabError> {
    let object = host.object(interface.name);
    loop {
        let state = link::state(&mut host.route, interface.index, &object)?;
        if state.is_some_and(|state| state.operational && state.forwarding == Some(true)) {
            return Ok(());
        }
        let now = clock::monotonic_ns();
        if now > deadline_ns {
            let state = match state {
                None => "it does not exist",
                Some(state) if !state.operational => "it is down or has no carrier",
                Some(_) => "the bridge has not enabled it",
            };
            let seconds = PORTS_PATIENCE_NS / 1_000_000_000;
            return Err(LabError::PortNotForwarding { interface: object, seconds, state: state.to_owned() });
        }
        clock::sleep_until(now + PORTS_PAUSE_NS);
    }
}

fn new_link(interface: Interface, mtu: u32) -> NewLink<'static> {
    NewLink { name: interface.name, index: interface.index, mtu, mac: None, queues: None }
}

/// Makes an interface an active port of a bridge. A new port is configured while it is down: two ports of a guest that forward
/// to each other for only an instant close a loop through its machine, in which the kernel's own multicast multiplies and then
/// fills the queue of a capped wire.
fn plug(host: &mut Host, port: Interface, bridge: Interface, settings: PortSettings) -> Result<(), LabError> {
    let object = host.object(port.name);
    link::no_link_local(&mut host.route, port.index, &object)?;
    if link::master(&mut host.route, port.index, &object)? != Some(bridge.index) {
        link::set_master(&mut host.route, port.index, bridge.index, &object)?;
    }
    link::set_port(&mut host.route, port.index, settings, &object)?;
    link::set_up(&mut host.route, port.index, &object)
}

fn create_bridge(host: &mut Host, bridge: NewLink<'_>) -> Result<(), LabError> {
    let object = host.object(bridge.name);
    link::create_bridge(&mut host.route, bridge, &object)?;
    link::no_link_local(&mut host.route, bridge.index, &object)?;
    link::set_up(&mut host.route, bridge.index, &object)
}

/// A port that floods: on the synthetic path, which carries broadcast and multicast on every setting.
const FLOODS: PortSettings = PortSettings { isolated: false, flood: true, backup: None };

impl Half {
    fn build_machine(&mut self, spec: &resolved::Lab) -> Result<(), LabError> {
        let host = &mut self.machine;
        let object = host.object(LOOPBACK.name);
        link::set_up(&mut host.route, LOOPBACK.index, &object)?;
        for bridge in [NIC, SWITCH] {
            create_bridge(host, new_link(bridge, MACHINE_MTU))?;
        }
        let uplink = [NIC_UPLINK, SWITCH_UPLINK].map(|end| new_link(end, MACHINE_MTU));
        let object = host.object(NIC_UPLINK.name);
        link::create_veth(&mut host.route, uplink[0], uplink[1], host.network.as_fd(), &object)?;
        plug(host, NIC_UPLINK, NIC, FLOODS)?;
        plug(host, SWITCH_UPLINK, SWITCH, FLOODS)?;
        policy::load_linear(&mut host.filter, host.name, spec.rules, [SWITCH_PORT.name, SWITCH_UPLINK.name])?;
        policy::load_hashed(&mut host.filter, host.name, spec.rules, NIC_FUNCTION.name)
    }

    fn build_guest(&mut self, mtu: u32) -> Result<(), LabError> {
        let (guest, machine, side) = (&mut self.guest, &mut self.machine, self.side);
        let object = guest.object(LOOPBACK.name);
        link::set_up(&mut guest.route, LOOPBACK.index, &object)?;
        create_bridge(guest, NewLink { mac: Some(side.mac), ..new_link(GUEST, mtu) })?;
        let near = new_link(SWITCH_PORT, MACHINE_MTU);
        let far = NewLink { mac: Some(side.mac), ..new_link(SYNTHETIC, mtu) };
        let object = machine.object(SWITCH_PORT.name);
        link::create_veth(&mut machine.route, near, far, guest.network.as_fd(), &object)?;
        plug(machine, SWITCH_PORT, SWITCH, FLOODS)?;
        plug(guest, SYNTHETIC, GUEST, PortSettings { isolated: true, ..FLOODS })?;
        let object = machine.object(SWITCH_PORT.name);
        neighbour::steer(&mut machine.route, SWITCH_PORT.index, side.mac, &object)?;
        let object = guest.object(GUEST.name);
        for address in lab::addresses(side.guest) {
            address::add_address(&mut guest.route, GUEST.index, address, &object)?;
            address::add_subnet_route(&mut guest.route, GUEST.index, address, CONGESTION_CONTROL, &object)?;
        }
        let far = if side.guest == SIDES[0].guest { SIDES[1] } else { SIDES[0] };
        for address in lab::addresses(far.guest) {
            neighbour::set_neighbour(&mut guest.route, GUEST.index, address, far.mac, &object)?;
        }
        Ok(())
    }

    /// Adds the machine's end of the wire, and directs frames for the far guest to it.
    fn connect_wire(&mut self, spec: &resolved::Lab, far: Side) -> Result<(), LabError> {
        let wire = self.side.wire;
        let host = &mut self.machine;
        plug(host, wire, NIC, FLOODS)?;
        let object = host.object(wire.name);
        neighbour::steer(&mut host.route, wire.index, far.mac, &object)?;
        let object = host.object(SWITCH_UPLINK.name);
        neighbour::steer(&mut host.route, SWITCH_UPLINK.index, far.mac, &object)?;
        let object = host.object(wire.name);
        match spec.cap {
            Some(rate) => queueing::cap(&mut host.route, wire.index, (rate, spec.mtu), &object),
            None => Ok(()),
        }
    }

    /// Adds the VF if it does not exist, and configures its ports: up and enslaved, isolated, with its backup. While it has no
    /// carrier, the kernel sends both directions over the synthetic path.
    fn plug_function(&mut self, mtu: u32) -> Result<(), LabError> {
        let (guest, machine) = (&mut self.guest, &mut self.machine);
        let object = machine.object(NIC_FUNCTION.name);
        if link::state(&mut machine.route, NIC_FUNCTION.index, &object)?.is_none() {
            let far = NewLink { mac: Some(self.side.mac), ..new_link(FUNCTION, mtu) };
            let near = new_link(NIC_FUNCTION, MACHINE_MTU);
            link::create_veth(&mut machine.route, near, far, guest.network.as_fd(), &object)?;
        }
        // A VF gets no broadcast and multicast: these use the synthetic path, as on Hyper-V.
        let machine_port = PortSettings { isolated: false, flood: false, backup: Some(NIC_UPLINK.index) };
        plug(machine, NIC_FUNCTION, NIC, machine_port)?;
        let guest_port = PortSettings { isolated: true, flood: false, backup: Some(SYNTHETIC.index) };
        plug(guest, FUNCTION, GUEST, guest_port)
    }

    fn steer_inbound(&mut self, path: LabPath) -> Result<(), LabError> {
        let port = if path == LabPath::Accelerated { NIC_FUNCTION } else { NIC_UPLINK };
        let object = self.machine.object(port.name);
        neighbour::steer(&mut self.machine.route, port.index, self.side.mac, &object)
    }

    fn steer_outbound(&mut self, path: LabPath, far_mac: [u8; 6]) -> Result<(), LabError> {
        let port = match path {
            LabPath::Accelerated => FUNCTION,
            LabPath::Synthetic => SYNTHETIC,
            LabPath::Direct => self.side.direct,
        };
        let object = self.guest.object(port.name);
        neighbour::steer(&mut self.guest.route, port.index, far_mac, &object)
    }

    fn outbound(&mut self, far_mac: [u8; 6]) -> Result<Option<LabPath>, LabError> {
        let ports = neighbour::steered_to(&mut self.guest.route, far_mac, self.guest.name)?;
        let direct = self.side.direct;
        let faster = [(FUNCTION, LabPath::Accelerated), (direct, LabPath::Direct)];
        path_of(&mut self.guest, &ports, &faster, SYNTHETIC)
    }

    /// The software switch has an entry for the guest on either path.
    fn inbound(&mut self) -> Result<Option<LabPath>, LabError> {
        let mut ports = neighbour::steered_to(&mut self.machine.route, self.side.mac, self.machine.name)?;
        ports.retain(|port| *port != SWITCH_PORT.index);
        path_of(&mut self.machine, &ports, &[(NIC_FUNCTION, LabPath::Accelerated)], NIC_UPLINK)
    }
}

/// The path of a host's forwarding entries; none if the VF or direct veth has no carrier.
fn path_of(
    host: &mut Host,
    ports: &[u32],
    faster: &[(Interface, LabPath)],
    synthetic: Interface,
) -> Result<Option<LabPath>, LabError> {
    let [port] = ports else { return Ok(None) };
    if *port == synthetic.index {
        return Ok(Some(LabPath::Synthetic));
    }
    let Some((interface, path)) = faster.iter().find(|(interface, _)| interface.index == *port) else {
        return Ok(None);
    };
    let object = host.object(interface.name);
    let state = link::state(&mut host.route, interface.index, &object)?;
    Ok(state.filter(|state| state.operational).map(|_| *path))
}
