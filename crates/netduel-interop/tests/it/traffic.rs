//! Traffic from one testpmd to another, counted to the packet.
use std::net::Ipv4Addr;
use std::sync::mpsc::channel;
use std::time::Duration;

use netduel_interop::testpmd::{Command, Cores, Device, Memory, Mode, Running, Testpmd, Traffic};
use netduel_model::dpdk::DpdkFlows;
use netduel_model::sample::EndReport;
use netduel_model::units::Nanos;
use netduel_model::workload::Role;

use crate::wire::{FAR_MAC, Wire};

/// How long anything may take here.
pub const SOON: Duration = Duration::from_secs(60);
const DURATION: Nanos = Nanos(400_000_000);

pub fn command(mode: Mode, device: Device, queues: u32) -> Command {
    let pid = std::process::id();
    let thread = format!("{:?}", std::thread::current().id()).replace(|c: char| !c.is_ascii_digit(), "");
    let last = netduel_sys::affinity::allowed().unwrap().last().copied().unwrap_or(0);
    let first = netduel_sys::affinity::allowed().unwrap()[0];
    let (main, forwarding) = if mode == Mode::TransmitOnly { (last, first) } else { (first, last) };
    Command {
        program: "dpdk-testpmd".to_owned(),
        mode,
        device,
        cores: Cores { main, forwarding: vec![forwarding] },
        memory: Memory::Ordinary,
        prefix: format!("it-{pid}-{thread}-{}", mode.word()),
        queues,
        descriptors: None,
        frame_len: 60,
        many_flows: queues > 1,
        peer_mac: Some(FAR_MAC),
        addresses: Some((Ipv4Addr::new(10, 77, 0, 1), Ipv4Addr::new(10, 77, 0, 2))),
        further: Vec::new(),
    }
}

pub fn begin(testpmd: Testpmd, notify: impl Fn() + Send + Sync + 'static) -> Running {
    let role = if testpmd.mode() == Mode::TransmitOnly { Role::Client } else { Role::Server };
    let traffic = Traffic {
        role,
        duration: DURATION,
        payload: 18,
        many_flows: false,
        interface: testpmd.info().name.clone(),
    };
    Running::begin(testpmd, traffic, Box::new(notify)).unwrap()
}

/// What an end counted; its testpmd ends well.
pub fn ended(running: Running) -> EndReport {
    let (report, testpmd) = running.join().unwrap();
    testpmd.quit().unwrap();
    report
}

/// Runs a sender to its end and then ends the receiver.
fn between(wire: &Wire, device: impl Fn(&str) -> Device, queues: u32) -> [EndReport; 2] {
    let (near, far) = (device("va"), device("vb"));
    let receiver = wire.far.run(move || {
        let testpmd = Testpmd::start(&command(Mode::ReceiveOnly, far, queues), SOON).unwrap();
        begin(testpmd, || {})
    });
    let sender = wire.near.run(move || {
        let (done, is_done) = channel();
        let testpmd = Testpmd::start(&command(Mode::TransmitOnly, near, queues), SOON).unwrap();
        let running = begin(testpmd, move || done.send(()).unwrap());
        is_done.recv().unwrap();
        assert!(running.is_done());
        ended(running)
    });
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

/// The series of an end adds up to its count.
fn check_series(report: &EndReport) {
    let flow = report.sent.as_ref().or(report.received.as_ref()).unwrap();
    assert_eq!(flow.series.iter().map(|sample| sample.messages).sum::<u64>(), flow.messages);
    assert_eq!(flow.bytes, 18 * flow.messages);
    assert!(flow.first_ns < flow.last_ns, "{flow:?}");
    let dpdk = report.dpdk.as_ref().unwrap();
    assert_eq!(dpdk.cores.len(), 1, "{dpdk:?}");
    assert!(dpdk.version.parse::<f64>().is_err() && dpdk.version.contains('.'), "{}", dpdk.version);
    assert!(dpdk.command.iter().any(|word| word.starts_with("--forward-mode=")), "{:?}", dpdk.command);
    assert_ne!(report.process_cpu_ns, (0, 0));
}

#[test]
fn packets_over_packet_sockets_are_counted_at_both_ends() {
    let Some(wire) = Wire::new() else { return };
    let [client, server] = between(&wire, |name| Device::AfPacket { interface: name.to_owned() }, 1);
    println!("sent {} received {}", sent(&client), received(&server));
    println!("{:?} {:?}", client.dpdk, server.dpdk);
    assert!(received(&server) > 0 && received(&server) <= sent(&client));
    check_series(&client);
    check_series(&server);
    assert_eq!(client.dpdk.unwrap().flows, DpdkFlows::One);
}

#[test]
fn packets_over_af_xdp_are_counted_at_both_ends() {
    let Some(wire) = Wire::new() else { return };
    let [client, server] = between(&wire, |name| Device::AfXdp { interface: name.to_owned() }, 1);
    println!("sent {} received {}", sent(&client), received(&server));
    println!("{:?} {:?}", client.dpdk, server.dpdk);
    assert!(received(&server) > 0 && received(&server) <= sent(&client));
    check_series(&client);
    check_series(&server);
}
