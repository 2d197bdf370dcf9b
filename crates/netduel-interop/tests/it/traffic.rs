//! Traffic between two testpmd processes, with exact counts.
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::channel;
use std::time::Duration;

use netduel_interop::testpmd::{Command, Cores, Device, Memory, Mode, Running, Testpmd, Traffic};
use netduel_model::dpdk::DpdkFlows;
use netduel_model::sample::EndReport;
use netduel_model::units::Nanos;
use netduel_model::workload::Role;
use netduel_sys::{affinity, clock};

use crate::fate;
use crate::wire::{FAR_MAC, Wire, able};

/// Time limit of every step.
pub const SOON: Duration = Duration::from_secs(90);
const DURATION: Nanos = Nanos(400_000_000);
/// Payload of a packet of 60 bytes.
const PAYLOAD: u64 = 18;

pub fn command(mode: Mode, device: Device, queues: u32) -> Command {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let allowed = affinity::allowed().unwrap();
    let (first, last) = (allowed[0], allowed[allowed.len() - 1]);
    let (main, forwarding) = if mode == Mode::TransmitOnly { (last, first) } else { (first, last) };
    Command {
        program: "dpdk-testpmd".to_owned(),
        mode,
        device,
        cores: Cores { main, forwarding: vec![forwarding] },
        memory: Memory::Ordinary,
        prefix: format!("it-{}-{number}", std::process::id()),
        queues,
        descriptors: None,
        frame_len: 60,
        many_flows: queues > 1,
        peer_mac: Some(FAR_MAC),
        addresses: Some((Ipv4Addr::new(10, 77, 0, 1), Ipv4Addr::new(10, 77, 0, 2))),
        further: Vec::new(),
    }
}

pub fn begin(testpmd: Testpmd, duration: Nanos, notify: impl Fn() + Send + Sync + 'static) -> Running {
    let role = if testpmd.mode() == Mode::TransmitOnly { Role::Client } else { Role::Server };
    let interface = testpmd.info().name.clone();
    let traffic = Traffic { role, duration, payload: PAYLOAD, many_flows: true, interface };
    Running::begin(testpmd, traffic, clock::monotonic_ns() + 20_000_000_000, Box::new(notify)).unwrap()
}

/// The counts of an end, whose testpmd must exit successfully.
pub fn ended(running: Running) -> EndReport {
    let (report, testpmd) = running.join().unwrap();
    testpmd.quit().unwrap();
    report
}

/// Runs a sender to its end.
fn sender(command: &Command, duration: Nanos) -> EndReport {
    let (done, is_done) = channel();
    let running = begin(Testpmd::start(command, SOON).unwrap(), duration, move || done.send(()).unwrap());
    is_done.recv().unwrap();
    assert!(running.is_done());
    ended(running)
}

/// Runs a sender to its end and then ends the receiver.
fn between(wire: &Wire, device: impl Fn(&str) -> Device, queues: u32, duration: Nanos) -> [EndReport; 2] {
    let (near, far) = (device("va"), device("vb"));
    between_commands(
        wire,
        command(Mode::TransmitOnly, near, queues),
        command(Mode::ReceiveOnly, far, queues),
        duration,
    )
}

fn between_commands(wire: &Wire, near: Command, far: Command, duration: Nanos) -> [EndReport; 2] {
    let receiver = wire.far.run(move || begin(Testpmd::start(&far, SOON).unwrap(), duration, || {}));
    let sender = wire.near.run(move || sender(&near, duration));
    receiver.finish();
    let received = wire.far.run(move || ended(receiver));
    [sender, received]
}

fn sent(report: &EndReport) -> u64 {
    report.sent.as_ref().unwrap().messages
}

fn received(report: &EndReport) -> u64 {
    report.received.as_ref().unwrap().messages
}

/// Packets arrived, and none that was not sent.
fn assert_arrived(client: &EndReport, server: &EndReport) {
    let (sent, received) = (sent(client), received(server));
    assert!(received > 0 && received <= sent, "{received} of {sent} packets arrived");
}

/// The counts of an end are consistent.
fn check(report: &EndReport, queues: usize) {
    let flow = report.sent.as_ref().or(report.received.as_ref()).unwrap();
    assert_eq!(flow.series.iter().map(|sample| sample.messages).sum::<u64>(), flow.messages);
    assert_eq!(flow.bytes, PAYLOAD * flow.messages);
    assert!(flow.first_ns < flow.last_ns, "{flow:?}");
    let packets = report.packets.as_ref().unwrap();
    assert_eq!(packets.queues.len(), queues, "{packets:?}");
    assert_eq!(packets.queues.iter().map(|queue| queue.packets).sum::<u64>(), flow.messages);
    let dpdk = report.dpdk.as_ref().unwrap();
    assert_eq!(dpdk.cores.len(), 1, "{dpdk:?}");
    assert!(dpdk.command.iter().any(|word| word.starts_with("--forward-mode=")), "{:?}", dpdk.command);
    assert_ne!(report.process_cpu_ns, (0, 0));
}

#[test]
fn packets_over_packet_sockets_are_counted_at_both_ends() {
    let Some(wire) = Wire::new() else { return };
    let [client, server] =
        between(&wire, |name| Device::AfPacket { interface: name.to_owned() }, 1, DURATION);
    assert_arrived(&client, &server);
    check(&client, 1);
    check(&server, 1);
}

#[test]
fn packets_over_several_queues_are_counted_queue_by_queue() {
    let Some(wire) = Wire::new() else { return };
    let [client, server] =
        between(&wire, |name| Device::AfPacket { interface: name.to_owned() }, 2, DURATION);
    assert_arrived(&client, &server);
    check(&client, 2);
    check(&server, 2);
    assert_eq!(client.packets.as_ref().unwrap().queues.len(), 2, "{client:?}");
    let dpdk = client.dpdk.unwrap();
    assert!(dpdk.command.contains(&"--txonly-multi-flow".to_owned()), "{:?}", dpdk.command);
    assert_ne!(dpdk.flows, DpdkFlows::One);
}

#[test]
fn every_lost_packet_over_af_xdp_is_counted_by_the_receiver() {
    let Some(wire) = Wire::new() else { return };
    let [client, server] = between(&wire, |name| Device::AfXdp { interface: name.to_owned() }, 1, DURATION);
    check(&client, 1);
    check(&server, 1);
    let missed = server.dpdk.as_ref().unwrap().counts.rx_missed;
    assert!(received(&server) > 0 && received(&server) + missed <= sent(&client), "{server:?}");
    let reported = server.packets.unwrap().drops.get("rx-missed").copied().unwrap_or(0);
    assert_eq!(reported, missed);
}

/// A ring of the receiver that holds all sent packets: missing packets were dropped on the path.
const RING: u32 = 16_384;

#[test]
fn loss_on_the_path_is_counted_exactly() {
    let Some(wire) = Wire::new() else { return };
    let counts = wire.far.run(|| fate::of_an_eighth("vb"));
    let device = |name: &str| Device::AfPacket { interface: name.to_owned() };
    let with_ring =
        |mode, name| Command { descriptors: Some(RING), many_flows: true, ..command(mode, device(name), 1) };
    let (near, far) = (with_ring(Mode::TransmitOnly, "va"), with_ring(Mode::ReceiveOnly, "vb"));
    let [client, server] = between_commands(&wire, near, far, Nanos(5_000_000));
    let (passed, dropped) = counts.read();
    assert_eq!(sent(&client), passed + dropped);
    // Sources are consecutive.
    assert!(dropped.abs_diff(sent(&client) / 8) <= 1, "{dropped} of {}", sent(&client));
    assert!(received(&server) <= passed);
    if passed <= u64::from(RING) {
        assert_eq!(received(&server), passed);
    } else {
        println!(
            "{passed} packets did not fit into the ring: only the sender's count was held to the packet"
        );
    }
    assert_eq!(server.datagrams.unwrap().unique, server.received.unwrap().messages);
}

#[test]
fn two_processes_with_shared_memory_need_no_network() {
    if !able() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let memif = |serves| Device::Memif { socket: folder.path().join("memif"), serves };
    let far = Testpmd::start(&command(Mode::ReceiveOnly, memif(true), 1), SOON).unwrap();
    let near = Testpmd::start(&command(Mode::TransmitOnly, memif(false), 1), SOON).unwrap();
    let receiver = begin(far, DURATION, || {});
    let (done, is_done) = channel();
    let running = begin(near, Nanos(1_000_000_000), move || done.send(()).unwrap());
    is_done.recv().unwrap();
    // A receiver whose peer has ended crashes (DPDK 22.11), so the sender stays until the receiver has stopped.
    let (client, near) = running.join().unwrap();
    receiver.finish();
    let server = ended(receiver);
    near.quit().unwrap();
    assert_arrived(&client, &server);
    check(&client, 1);
    check(&server, 1);
}

#[test]
fn version_of_rdma_core_is_that_of_the_installed_package() {
    if !able() {
        return;
    }
    let query = ["-W", "-f", "${Version}", "libibverbs1"];
    let package = std::process::Command::new("dpkg-query").args(query).output();
    let Some(package) = package.ok().filter(|output| output.status.success()) else {
        println!("skipped: no package libibverbs1 whose version can be compared");
        return;
    };
    let package = String::from_utf8(package.stdout).unwrap();
    let testpmd = Testpmd::start(&command(Mode::TransmitOnly, Device::Null, 1), SOON).unwrap();
    let loaded = testpmd.rdma_core().map(str::to_owned);
    testpmd.quit().unwrap();
    // Debian's testpmd loads all drivers that are installed, and those of Mellanox need the library.
    let Some(loaded) = loaded else {
        println!("skipped: testpmd has loaded no driver that needs libibverbs");
        return;
    };
    assert!(package == loaded || package.starts_with(&format!("{loaded}-")), "{loaded} of {package}");
}

#[test]
fn null_device_measures_the_generator() {
    if !able() {
        return;
    }
    // Huge pages belong to the whole machine; the tests of the agent, which reserves them, cover them.
    check(&sender(&command(Mode::TransmitOnly, Device::Null, 1), DURATION), 1);
}
