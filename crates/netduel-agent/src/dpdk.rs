//! testpmd as an end of a trial: prepared, started, observed and ended; its resources are then restored.
//!
//! The greeting goes over ordinary sockets before testpmd has the device, so no packet is sent to a host that runs no agent, and the
//! kernel has learnt the next hop's hardware address by it.
use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::path::Path;
use std::time::Duration;

use netduel_control::agent::{FailureKind, WorkError};
use netduel_control::protocol::STEP_TIMEOUT_NS;
use netduel_host::DataPath;
use netduel_interop::testpmd::{Command, Cores, Device, DpdkError, Memory, Mode, Running, Testpmd, Traffic};
use netduel_load::ServerEnd;
use netduel_model::data_ports::ListenAt;
use netduel_model::dpdk::{DpdkDevice, DpdkSettings};
use netduel_model::ids::Token;
use netduel_model::observation::Placement;
use netduel_model::packet_path::{CHECK_SEQUENCE, PacketPath};
use netduel_model::sample::LiveFigures;
use netduel_model::workload::{Role, UdpStream, Workload};
use netduel_sys::clock::monotonic_ns;

use crate::dpdk_host::{self, Given};
use crate::error_chain::chain;
use crate::failure::{environment, misplaced, traffic, usage};
use crate::placement::{DataAddress, placed};
use crate::treatment::{GuardCommand, HostResource, TreatmentError, Treatments, left_behind};
use crate::trial_end::{
    EndResult, Lingering, Notify, Prepared, PreparedEnd, Reading, RunningEnd, ServerAddress,
};

/// How long a step may take that lends a device, brings testpmd to its prompt and starts its traffic, or a part of that.
const STEP: Duration = Duration::from_secs(25);
// The coordinator gets the reason of a failure.
const _: () = assert!(STEP.as_nanos() < STEP_TIMEOUT_NS as u128);

/// The default destination port of testpmd (RFC 863).
const DISCARD: u16 = 9;

/// How testpmd is to be run at an end of this workload; `None` when it has no part there.
pub fn settings(workload: &Workload, role: Role) -> Option<(&PacketPath, &DpdkSettings)> {
    let packets = workload.traffic.facts().packets?;
    Some((packets, packets.dpdk(role)?))
}

/// An end that knows all it needs, and has started nothing.
struct Ready {
    command: Command,
    traffic: Traffic,
    resources: Vec<HostResource>,
    /// A receiver's own address, where the kernel gets the packets, too.
    sink: Option<IpAddr>,
    has_interface: bool,
    /// The cores that were chosen.
    placement: Option<Placement>,
}

/// A server's end before the client has come.
enum Waiting {
    /// testpmd would take the interface by which the client is to come.
    Ready(Box<Ready>),
    /// It has no part in that, and the client's testpmd looks for it.
    Launched(Box<Launched>),
}

/// A server's end: its sockets are there for the client's greeting, and testpmd is started when the client has come at the latest.
struct TestpmdServer {
    handshake: ServerEnd,
    waiting: Waiting,
}

/// A client's end: the server was greeted, and testpmd is at its prompt.
struct TestpmdClient {
    launched: Launched,
}

/// The server's end of a workload with testpmd at it.
pub(crate) fn server(workload: &Workload, listen: ListenAt, token: Token) -> Result<Prepared, WorkError> {
    let deadline_ns = step_deadline_ns();
    let mut ready = Ready::new(workload, Role::Server, DataAddress::Own(listen.address), token)?;
    let handshake = netduel_load::prepare_server(workload, listen, token).map_err(traffic)?;
    let ports = handshake.ports().to_vec();
    let placement = ready.placement.take();
    let end = Box::new(TestpmdServer { handshake, waiting: ready.early(deadline_ns)? });
    Ok(Prepared { end, ports, placement })
}

/// The client's end of a workload with testpmd at it.
pub(crate) fn client(workload: &Workload, server: &ServerAddress<'_>) -> Result<Prepared, WorkError> {
    let ServerAddress { peer, ports, token, deadline, bind } = *server;
    // Greets the server, which is all that its sockets are for.
    netduel_load::prepare_bound_client(workload, peer, ports, token, deadline, bind).map_err(traffic)?;
    // The coordinator gives connecting a time of its own.
    let deadline_ns = step_deadline_ns();
    let mut ready = Ready::new(workload, Role::Client, DataAddress::Towards(peer, bind), token)?;
    let placement = ready.placement.take();
    let end = Box::new(TestpmdClient { launched: ready.launch(deadline_ns)? });
    Ok(Prepared { end, ports: Vec::new(), placement })
}

impl PreparedEnd for TestpmdServer {
    fn start(
        self: Box<Self>,
        reading: Reading<'_>,
        notify: Notify,
    ) -> Result<Box<dyn RunningEnd>, WorkError> {
        let deadline_ns = step_deadline_ns();
        let launched = match self.waiting {
            Waiting::Ready(ready) => ready.launch(deadline_ns)?,
            Waiting::Launched(launched) => *launched,
        };
        reading()?;
        Ok(Box::new(launched.begin(Some(self.handshake), deadline_ns, notify)?))
    }
}

impl PreparedEnd for TestpmdClient {
    fn start(
        self: Box<Self>,
        reading: Reading<'_>,
        notify: Notify,
    ) -> Result<Box<dyn RunningEnd>, WorkError> {
        reading()?;
        Ok(Box::new(self.launched.begin(None, step_deadline_ns(), notify)?))
    }
}

/// A testpmd at its prompt, with its resources.
struct Launched {
    testpmd: Testpmd,
    traffic: Traffic,
    sink: Option<IpAddr>,
    outstays: bool,
    /// Dropped after testpmd, so that it is restored last.
    resources: Treatments,
}

/// Traffic of testpmd that is running.
struct Flowing {
    running: Running,
    resources: Treatments,
    /// A server's sockets stay open, for a client that sends to them.
    _handshake: Option<ServerEnd>,
    /// Where the kernel puts the packets that it also gets.
    _sink: Option<UdpSocket>,
    /// Whether the other end crashes when this one ends before it (a receiver over memif, DPDK 22.11).
    outstays: bool,
}

impl Ready {
    /// Checks what this host has and chooses the cores. `address`: of the data; `token`: names what the two ends share.
    fn new(
        workload: &Workload,
        role: Role,
        address: DataAddress<'_>,
        token: Token,
    ) -> Result<Self, WorkError> {
        let (packets, dpdk) =
            settings(workload, role).ok_or_else(|| misplaced("testpmd", "a plan had it"))?;
        let queues = dpdk.queues(role);
        let (cores, placement) = cores(workload, role, address, queues)?;
        let mode = match role {
            Role::Client => Mode::TransmitOnly,
            Role::Server => Mode::ReceiveOnly,
        };
        let path = path(dpdk, packets, role, address)?;
        let Given { device, mut resources } = match (&dpdk.device, &path) {
            (DpdkDevice::Memif, _) => Given::memif(token, role),
            (DpdkDevice::Null, _) | (_, None) => Given::null(),
            (device, Some(path)) => Given::on(device, path, Path::new("/sys"))?,
        };
        dpdk_host::check_driver(&dpdk.device, &dpdk.program, Path::new("/"))?;
        let addresses = match address {
            DataAddress::Towards(IpAddr::V4(peer), _) => Some((own(address)?, peer)),
            _ => None,
        };
        let Some(UdpStream { flows, size, .. }) = workload.traffic.facts().flows else {
            return Err(misplaced("testpmd", "a workload of packets was"));
        };
        let is_huge = dpdk.huge_pages || device.needs_huge_pages();
        let memory = if is_huge { Memory::Huge } else { Memory::Ordinary };
        let command = Command {
            program: dpdk.program.clone(),
            mode,
            device,
            cores,
            memory,
            prefix: format!("netduel-{}-{}", std::process::id(), mode.word()),
            queues,
            descriptors: dpdk.descriptors,
            frame_len: packets.frame - CHECK_SEQUENCE,
            many_flows: *flows > 1,
            peer_mac: path.as_ref().filter(|_| role == Role::Client).map(|path| path.peer_mac),
            addresses,
            further: dpdk.args.clone(),
        };
        if is_huge {
            let interface = path.as_ref().map(|path| path.interface.as_str());
            resources.push(dpdk_host::pages(Path::new("/sys"), interface, command.memory_mib())?);
        }
        let traffic = Traffic {
            role,
            duration: workload.timing.duration,
            payload: size.0,
            many_flows: *flows > 1,
            interface: path.map_or_else(|| dpdk.device.to_string(), |path| path.interface),
        };
        let sink = match address {
            DataAddress::Own(own) if dpdk.device.keeps_the_interface() && dpdk.device.has_interface() => {
                Some(own)
            }
            _ => None,
        };
        Ok(Self { command, traffic, resources, sink, has_interface: dpdk.device.has_interface(), placement })
    }

    /// Starts it before the client comes, where it has nothing to do with an interface.
    fn early(self, deadline_ns: u64) -> Result<Waiting, WorkError> {
        if self.has_interface {
            return Ok(Waiting::Ready(Box::new(self)));
        }
        Ok(Waiting::Launched(Box::new(self.launch(deadline_ns)?)))
    }

    /// Lends it what it needs and starts it. The calling thread has to live as long as it.
    fn launch(self, deadline_ns: u64) -> Result<Launched, WorkError> {
        let mut resources = Treatments::new(GuardCommand::of_this_program());
        if let Err(error) = resources.hand_over(&self.resources) {
            return Err(if error.is_left_behind() {
                not_restored(&error, &resources)
            } else {
                environment(error)
            });
        }
        let within = Duration::from_nanos(deadline_ns.saturating_sub(monotonic_ns()));
        let started = Testpmd::start(&self.command, within).map_err(dpdk_error);
        let testpmd = or_release(started, &mut resources)?;
        let outstays = matches!(self.command.device, Device::Memif { serves: false, .. });
        Ok(Launched { testpmd, traffic: self.traffic, sink: self.sink, outstays, resources })
    }
}

impl Launched {
    /// Begins the traffic.
    fn begin(
        self,
        handshake: Option<ServerEnd>,
        deadline_ns: u64,
        notify: Notify,
    ) -> Result<Flowing, WorkError> {
        let Self { testpmd, traffic, sink, outstays, mut resources } = self;
        // Without a socket on the port the kernel answers with ICMP errors, which would be counted as packets. When the bind fails
        // because the port is taken, another socket is there.
        let sink = sink.and_then(|own| UdpSocket::bind((own, DISCARD)).ok());
        let started = Running::begin(testpmd, traffic, deadline_ns, notify).map_err(dpdk_error);
        let running = or_release(started, &mut resources)?;
        Ok(Flowing { running, resources, _handshake: handshake, _sink: sink, outstays })
    }
}

impl RunningEnd for Flowing {
    fn live(&self) -> LiveFigures {
        self.running.live()
    }

    fn finish(&self) {
        self.running.finish();
    }

    fn is_done(&self) -> bool {
        self.running.is_done()
    }

    /// The host is read before testpmd gives the device back, which changes the interface.
    fn result(self: Box<Self>, reading: Reading<'_>) -> Result<EndResult, WorkError> {
        let Self { running, mut resources, outstays, .. } = *self;
        let joined = running.join().map_err(dpdk_error);
        let (report, testpmd) = or_release(joined, &mut resources)?;
        let read = reading();
        if outstays {
            read?;
            return Ok(EndResult { report, lingering: Some(Box::new(Outstaying { testpmd, resources })) });
        }
        or_release(testpmd.quit().map_err(dpdk_error), &mut resources)?;
        release(&mut resources)?;
        read?;
        Ok(EndResult { report, lingering: None })
    }

    fn abort(mut self: Box<Self>) -> Result<(), WorkError> {
        self.running.abort();
        // Its testpmd is killed with what is dropped here; what it counted is of no use.
        drop(self.running.join());
        release(&mut self.resources)
    }
}

/// A testpmd that stays after its trial because the other end's would crash, with its resources.
struct Outstaying {
    testpmd: Testpmd,
    resources: Treatments,
}

impl Lingering for Outstaying {
    fn end(self: Box<Self>) -> Result<(), WorkError> {
        let Self { testpmd, mut resources } = *self;
        // Its other end is gone, after which it need not end well: it is killed.
        drop(testpmd);
        release(&mut resources)
    }
}

/// By when a step that begins now is to be done, on the monotonic clock.
fn step_deadline_ns() -> u64 {
    monotonic_ns() + STEP.as_nanos() as u64
}

/// The result of testpmd. After a failure the resources are restored, and errors of that are added to the failure.
fn or_release<T>(result: Result<T, WorkError>, resources: &mut Treatments) -> Result<T, WorkError> {
    result.map_err(|mut failed| {
        if let Err(left) = release(resources) {
            failed.message = format!("{}; and {}", failed.message, left.message);
            // It outlasts the failure.
            failed.kind = left.kind;
        }
        failed
    })
}

fn release(resources: &mut Treatments) -> Result<(), WorkError> {
    let Err(problems) = resources.undo_all() else { return Ok(()) };
    match problems.iter().find(|problem| problem.is_left_behind()) {
        Some(problem) => Err(not_restored(problem, resources)),
        // A guard that was lost while everything was restored is nothing that a user has to mend.
        None => Ok(()),
    }
}

/// The failure that leaves the host changed.
fn not_restored(problem: &TreatmentError, resources: &Treatments) -> WorkError {
    let message = left_behind(problem, resources.journal().as_deref());
    WorkError { kind: FailureKind::NotRestored, message }
}

/// The prompt's core and those that forward: the plan's in that order, or chosen as for any traffic, the prompt's last.
fn cores(
    workload: &Workload,
    role: Role,
    address: DataAddress<'_>,
    queues: u32,
) -> Result<(Cores, Option<Placement>), WorkError> {
    let pinned = match role {
        Role::Client => &workload.pin_client,
        Role::Server => &workload.pin_server,
    };
    let queues = queues as usize;
    if let [main, forwarding @ ..] = pinned.as_slice() {
        let forwarding = if forwarding.is_empty() { vec![*main] } else { forwarding.to_vec() };
        return Ok((shared_out(*main, forwarding, queues), None));
    }
    let mut chosen = workload.clone();
    match role {
        Role::Client => chosen.pin_auto.client = true,
        Role::Server => chosen.pin_auto.server = true,
    }
    let (_, placement) = placed(&chosen, role, address)?;
    let list = placement.as_ref().map(|placement| placement.cores.clone()).unwrap_or_default();
    let main = list.last().copied().unwrap_or(0);
    let forwarding = match list.split_last() {
        Some((_, others)) if !others.is_empty() => others.to_vec(),
        _ => vec![main],
    };
    Ok((shared_out(main, forwarding, queues), placement))
}

/// No more cores than queues: testpmd leaves the others idle.
fn shared_out(main: u16, mut forwarding: Vec<u16>, queues: usize) -> Cores {
    forwarding.truncate(queues.max(1));
    Cores { main, forwarding }
}

/// The interface of the data; none for devices that have none.
fn path(
    dpdk: &DpdkSettings,
    packets: &PacketPath,
    role: Role,
    address: DataAddress<'_>,
) -> Result<Option<DataPath>, WorkError> {
    if !dpdk.device.has_interface() {
        return Ok(None);
    }
    let named = packets.interface(role);
    let path = match address {
        DataAddress::Own(own) => DataPath::at(own, named),
        DataAddress::Towards(peer, bind) => DataPath::to_peer(peer, bind, named),
    };
    path.map(Some).map_err(environment)
}

fn own(address: DataAddress<'_>) -> Result<Ipv4Addr, WorkError> {
    match address.own().map_err(environment)? {
        IpAddr::V4(own) => Ok(own),
        IpAddr::V6(_) => {
            Err(usage("testpmd's packets are IPv4's: give the workload `family = \"ipv4\"`".to_owned()))
        }
    }
}

#[expect(clippy::needless_pass_by_value, reason = "it is handed to map_err")]
fn dpdk_error(error: DpdkError) -> WorkError {
    let kind = match error {
        DpdkError::Start { .. } | DpdkError::TooOld { .. } => FailureKind::Environment,
        _ => FailureKind::Traffic,
    };
    WorkError { kind, message: format!("failed to {}", chain(&error)) }
}
