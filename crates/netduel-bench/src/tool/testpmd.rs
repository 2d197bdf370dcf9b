//! DPDK's testpmd over AF_XDP, one queue at each end of the veth. `netduel-interop` starts it and reads its counters.
//!
//! testpmd pins its threads: its ends are on two cores also where the kernel places the other tools. Its CPU time is that of its
//! traffic, without its start, which prepares memory for seconds.
use std::net::IpAddr;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use netduel_host::DataPath;
use netduel_interop::testpmd::{Command, Cores, Device, Memory, Mode, Running, Testpmd, Traffic};
use netduel_model::packet_path::CHECK_SEQUENCE;
use netduel_model::sample::EndReport;
use netduel_model::units::Nanos;
use netduel_model::workload::Role;
use netduel_sys::{affinity, clock};

use super::ran::Ran;
use crate::hosts::{CLIENT, SERVER, VETH};
use crate::launch::Site;
use crate::outcome::Reading;
use crate::record::Placement;

/// One run with frames of this length, bytes.
pub fn run(site: &Site<'_>, frame: u32, seconds: u32) -> Result<Ran> {
    let ran = both_ends(site, frame, seconds);
    // testpmd leaves its interface promiscuous, and when it is killed, also its XDP program. The next tool gets the veth as it was.
    let restored = site.hosts.restore_interfaces();
    let ran = ran?;
    restored?;
    Ok(ran)
}

/// The receiver first. Each testpmd ends with the thread that started it, so the client's thread is inside the server's.
fn both_ends(site: &Site<'_>, frame: u32, seconds: u32) -> Result<Ran> {
    let allowed = affinity::allowed().context("failed to read the allowed cores")?;
    site.hosts.inside(true, || {
        let own =
            DataPath::at(IpAddr::V4(SERVER), None).context("failed to find the receiver's interface")?;
        let receiver = begin(site, frame, seconds, None, &allowed)?;
        let sender = || -> Result<_> {
            let sender = begin(site, frame, seconds, Some(own.own_mac), &allowed)?;
            // The receiver polls also while the sender starts, which is no part of the test.
            let before = receiver.cpu_ns();
            let (report, testpmd) = sender.join()?;
            let after = receiver.cpu_ns();
            testpmd.quit()?;
            Ok((report, [before, after]))
        };
        let (client, server_cpu) = match site.hosts.inside(false, sender) {
            Ok(ended) => ended,
            Err(error) => {
                receiver.abort();
                // The client's failure is the reason; the receiver ends without a result.
                drop(receiver.join());
                return Err(error);
            }
        };
        receiver.finish();
        let server = end(receiver)?;
        reading(&client, &server, used_s(server_cpu)?, f64::from(seconds))
    })
}

/// Starts an end and its traffic; the sender's has the receiver's hardware address.
fn begin(
    site: &Site<'_>,
    frame: u32,
    seconds: u32,
    peer_mac: Option<[u8; 6]>,
    allowed: &[u16],
) -> Result<Running> {
    let (role, mode) = match peer_mac {
        Some(_) => (Role::Client, Mode::TransmitOnly),
        None => (Role::Server, Mode::ReceiveOnly),
    };
    let command = Command {
        program: "dpdk-testpmd".to_owned(),
        mode,
        device: Device::AfXdp { interface: VETH.to_owned() },
        cores: cores(site.placement, role, allowed)?,
        memory: Memory::Ordinary,
        prefix: format!("netduel-bench-{}", mode.word()),
        queues: 1,
        descriptors: None,
        frame_len: frame - CHECK_SEQUENCE,
        many_flows: false,
        peer_mac,
        addresses: Some((CLIENT, SERVER)),
        further: Vec::new(),
    };
    let traffic = Traffic {
        role,
        duration: Nanos(u64::from(seconds) * 1_000_000_000),
        payload: 0,
        many_flows: false,
        interface: VETH.to_owned(),
    };
    let within = Duration::from_nanos(site.deadline_ns.saturating_sub(clock::monotonic_ns()));
    let testpmd = Testpmd::start(&command, within)?;
    Ok(Running::begin(testpmd, traffic, site.deadline_ns, Box::new(|| ()))?)
}

/// Waits for the end of its traffic, and ends it.
fn end(running: Running) -> Result<EndReport> {
    let (report, testpmd) = running.join()?;
    testpmd.quit()?;
    Ok(report)
}

/// The core of the placement, or else the first one for the sender and the second one for the receiver. The thread of the prompt
/// sleeps during the traffic and shares it.
fn cores(placement: Placement, role: Role, allowed: &[u16]) -> Result<Cores> {
    let is_server = role == Role::Server;
    let free = || allowed.get(usize::from(is_server)).or_else(|| allowed.first()).copied();
    let core = placement.core(is_server).or_else(free).context("no core is allowed")?;
    Ok(Cores { main: core, forwarding: vec![core] })
}

/// The CPU time between two readings of a process, seconds.
fn used_s(readings: [Option<(u64, u64)>; 2]) -> Result<f64> {
    let [Some(before), Some(after)] = readings else {
        bail!("failed to read the CPU time of the receiver in /proc")
    };
    Ok(total_s(after) - total_s(before))
}

/// CPU time, user and system, seconds.
fn total_s((user, system): (u64, u64)) -> f64 {
    (user + system) as f64 / 1e9
}

/// The counts of both ends.
fn reading(client: &EndReport, server: &EndReport, server_cpu_s: f64, seconds: f64) -> Result<Ran> {
    let sent = client.sent.as_ref().context("the sender reports no packets")?.messages;
    let delivered = server.received.as_ref().context("the receiver reports no packets")?.messages;
    Ok(Ran {
        reading: Reading { seconds, sent: Some(sent), delivered: Some(delivered), ..Reading::default() },
        client_cpu_s: total_s(client.process_cpu_ns),
        server_cpu_s,
    })
}

#[cfg(test)]
mod tests {
    use netduel_model::sample::Flow;

    use super::*;

    #[test]
    fn counts_and_cpu_time_are_those_of_the_two_ends() {
        let flow = |messages| Some(Flow { messages, ..Flow::default() });
        let client = EndReport {
            sent: flow(1000),
            process_cpu_ns: (1_000_000_000, 500_000_000),
            ..EndReport::new(Role::Client)
        };
        let server = EndReport {
            received: flow(900),
            process_cpu_ns: (1_000_000_000, 2_000_000_000),
            ..EndReport::new(Role::Server)
        };
        // The receiver used one second before the sender began, and another one after its end.
        let used = used_s([Some((400_000_000, 600_000_000)), Some((700_000_000, 1_200_000_000))]).unwrap();
        let ran = reading(&client, &server, used, 1.0).unwrap();
        assert_eq!((ran.reading.sent, ran.reading.delivered), (Some(1000), Some(900)));
        assert!((ran.client_cpu_s - 1.5).abs() < 1e-9);
        assert!((ran.server_cpu_s - 0.9).abs() < 1e-9, "{}", ran.server_cpu_s);
        assert!(reading(&server, &client, used, 1.0).is_err());
        assert!(used_s([Some((0, 0)), None]).is_err(), "an unknown time is not 0");
    }

    #[test]
    fn ends_without_a_placement_are_on_two_cores() {
        let core = |placement, role, allowed: &[u16]| cores(placement, role, allowed).unwrap().main;
        assert_eq!(core(Placement::Free, Role::Client, &[4, 6]), 4);
        assert_eq!(core(Placement::Free, Role::Server, &[4, 6]), 6);
        assert_eq!(core(Placement::Free, Role::Server, &[4]), 4);
        assert_eq!(core(Placement::Together, Role::Server, &[0, 1]), 0);
        assert!(cores(Placement::Free, Role::Client, &[]).is_err());
    }
}
