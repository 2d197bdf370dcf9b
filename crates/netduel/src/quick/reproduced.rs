//! The commands by which a report repeats its tests: each is parsed as it is printed, and makes the traffic of the plan.
use std::net::{IpAddr, Ipv6Addr};
use std::path::Path;

use clap::Parser as _;
use netduel_model::plan::{self, Permissions};
use netduel_model::units::BitRate;
use netduel_model::workload::{
    ByHand, Direction, Family, ProbeProtocol, QuickTest, TcpStream, Traffic, Workload,
};
use netduel_report::words::{ArmCommands, commands_of_tests};

use super::plan::Test;
use super::reach::ANY_IPV4;
use crate::cli::{Cli, Command};

/// The line with a quick test, from the name of the program on.
fn line_of<'g>(group: &'g ArmCommands, test: &QuickTest) -> &'g str {
    let begin = format!("netduel {} ", test.name);
    let line = group.lines.iter().find_map(|line| Some(&line[line.find(&begin)?..]));
    line.unwrap_or_else(|| panic!("no {begin}in {group:?}"))
}

/// The traffic of a command line that begins with `netduel`.
fn traffic(line: &str, family: Family) -> Traffic {
    let cli = Cli::try_parse_from(line.split(' ')).unwrap_or_else(|error| panic!("{line}: {error}"));
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

/// Fails unless a test is the load or the probes of a workload with several parts. Each type with parts is listed: only it says which of its
/// settings a part has.
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
            for group in &workload.arms {
                let is_own = |own: &&Workload| own.name.as_str() == workload.workload;
                let of_group =
                    |arm: &&plan::Arm| group.arms.is_empty() || group.arms.contains(&arm.name.to_string());
                let mut arms = plan.arms.iter().filter(of_group);
                let own = arms.find_map(|arm| arm.workloads.iter().find(is_own)).expect("an arm has it");
                match own.traffic.by_hand(&own.timing) {
                    ByHand::Test(test) => {
                        assert_makes(line_of(group, &test), own);
                        compared += 1;
                    }
                    ByHand::Parts(all) => {
                        for part in all {
                            let line = line_of(group, &part.test);
                            assert_is_part(line, &traffic(line, own.family), &own.traffic);
                            parts += 1;
                        }
                    }
                    ByHand::Ping(_) => assert_pings(group, own),
                    ByHand::Nothing(reason) => assert_eq!(group.reason, Some(reason)),
                }
            }
        }
    }
    assert!(compared > 20 && parts > 4, "{compared} commands, {parts} parts");
}

/// Fails unless a quick test has the traffic of a workload.
fn assert_makes(line: &str, own: &Workload) {
    let mut expected = own.traffic.clone();
    if let Traffic::Pps(pps) = &mut expected {
        // Quick tests use the interfaces of the route.
        (pps.packets.client_interface, pps.packets.server_interface) = (None, None);
    }
    assert_eq!(traffic(line, own.family), expected, "{line}");
}

/// Fails unless a command is ping with the requests of a workload.
fn assert_pings(group: &ArmCommands, own: &Workload) {
    let requests = own.traffic.facts().requests.expect("ping sends requests");
    let size = format!(" -s {} ", requests.size.0);
    let is_command = |line: &String| line.contains("ping -4 ") && line.contains(&size);
    assert!(group.lines.iter().any(is_command), "{group:?}");
}
