//! The commands by which a report repeats its tests: each is parsed as it is printed, and makes the traffic of the plan.
use std::net::{IpAddr, Ipv6Addr};
use std::path::Path;

use clap::Parser as _;
use netduel_model::plan::{self, Permissions};
use netduel_model::units::BitRate;
use netduel_model::workload::{Direction, Family, ProbeProtocol, TcpStream, Traffic};
use netduel_report::words::commands_of_tests;

use super::plan::Test;
use super::reach::ANY_IPV4;
use crate::cli::{Cli, Command};

/// The traffic of a command line that begins with `netduel`.
fn traffic(line: &str, family: Family) -> Traffic {
    let own = &line[line
        .find("netduel tcp")
        .or_else(|| line.find("netduel udp"))
        .or_else(|| line.find("netduel pps"))
        .or_else(|| line.find("netduel rr"))
        .or_else(|| line.find("netduel crr"))
        .unwrap_or_else(|| panic!("{line}"))..];
    let cli = Cli::try_parse_from(own.split(' ')).unwrap_or_else(|error| panic!("{line}: {error}"));
    let (test, common) = match &cli.command {
        Command::Tcp(args) => (Test::tcp(args), &args.common),
        Command::Udp(args) => (Test::udp(args), &args.common),
        Command::Rr(args) => (Test::round_trip(args), &args.common),
        Command::Crr(args) => (Test::connections(args), &args.common),
        Command::Pps(args) => (Test::packets(args).remove(0), &args.common),
        _ => panic!("{line}"),
    };
    let address = match family {
        Family::Ipv4 => ANY_IPV4,
        Family::Ipv6 => IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1)),
    };
    let plan = test.plan(common, "server", address).unwrap_or_else(|error| panic!("{line}: {error}"));
    plan.arms[0].workloads[0].traffic.clone()
}

/// The tests that are parts of workloads with several of them.
const PARTS: [&str; 3] = ["netduel tcp ", "netduel udp ", "netduel rr "];

/// Fails unless a test is the load or the probes of a workload with several parts.
fn assert_is_part(line: &str, part: &Traffic, whole: &Traffic) {
    let stream = |stream: &TcpStream| (stream.streams, stream.direction, stream.block, stream.engine);
    match (part, whole) {
        (Traffic::TcpStream(load), Traffic::LoadedLatency(latency)) => {
            let expected = (latency.streams, latency.direction, latency.block, latency.engine);
            assert_eq!((stream(load), &load.congestion), (expected, &latency.congestion), "{line}");
        }
        (Traffic::TcpStream(streams), Traffic::Failover(failover)) => {
            let expected = (failover.streams, failover.direction, failover.block, failover.engine);
            assert_eq!((stream(streams), &streams.congestion), (expected, &failover.congestion), "{line}");
        }
        (Traffic::UdpRr(probes) | Traffic::TcpRr(probes), Traffic::LoadedLatency(latency)) => {
            let is_udp = matches!(part, Traffic::UdpRr(_));
            let expected = (latency.size, Some(latency.rate), latency.probe == ProbeProtocol::Udp);
            assert_eq!((probes.size, probes.rate, is_udp), expected, "{line}");
        }
        (Traffic::UdpStream(probes), Traffic::Failover(failover)) => {
            let rate = BitRate(failover.rate.0 * failover.size.0 * 8);
            let expected = (1, Direction::Both, failover.size, Some(rate));
            assert_eq!((probes.flows, probes.direction, probes.size, probes.rate), expected, "{line}");
        }
        _ => panic!("{line} is no part of {whole:?}"),
    }
}

#[test]
fn printed_commands_of_the_shipped_plans_make_their_traffic() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../plans");
    let (mut compared, mut parts) = (0, 0);
    for entry in std::fs::read_dir(folder).expect("the plans") {
        let path = entry.expect("an entry").path();
        let text = std::fs::read_to_string(&path).expect("a plan");
        let permissions = Permissions { commands: true, every_sysctl: true };
        let plan =
            plan::parse_with(&text, "plan", &[], permissions).unwrap_or_else(|error| panic!("{error}"));
        for workload in commands_of_tests(&plan) {
            for group in workload.arms {
                for line in &group.lines {
                    let of_group = |arm: &&plan::Arm| {
                        group.arms.is_empty() || group.arms.contains(&arm.name.to_string())
                    };
                    let arm = plan.arms.iter().find(of_group).expect("an arm");
                    let own = arm
                        .workloads
                        .iter()
                        .find(|own| own.name.as_str() == workload.workload)
                        .expect("a workload");
                    if let Traffic::IcmpRr(requests) = &own.traffic {
                        let size = format!(" -s {} ", requests.size.0);
                        assert!(line.contains("ping -4 ") && line.contains(&size), "{line}");
                        continue;
                    }
                    if matches!(own.traffic, Traffic::LoadedLatency(_) | Traffic::Failover(_)) {
                        // Its parts are tests of other types, beside comments and events.
                        if PARTS.iter().any(|part| line.contains(part)) {
                            assert_is_part(line, &traffic(line, own.family), &own.traffic);
                            parts += 1;
                        }
                        continue;
                    }
                    let mut expected = own.traffic.clone();
                    if let Traffic::Pps(pps) = &mut expected {
                        // Quick tests use the interfaces of the route.
                        (pps.packets.client_interface, pps.packets.server_interface) = (None, None);
                    }
                    assert_eq!(traffic(line, own.family), expected, "{}: {line}", path.display());
                    compared += 1;
                }
            }
        }
    }
    assert!(compared > 20 && parts > 4, "{compared} commands, {parts} parts");
}
