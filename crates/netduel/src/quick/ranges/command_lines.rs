//! Whether quick tests accept the words of a command line. Tests only.
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use clap::Parser as _;
use netduel_model::plan::{self, spec::SettingsSpec};
use netduel_model::workload::{ByHand, QuickTest, WorkloadType};

use super::super::args::{CommonArgs, CrrArgs, PpsArgs, RrArgs, TcpArgs, UdpArgs};
use super::super::plan::Test;
use super::{SECOND, TIMING};

/// The quick test that a type alone is; absent for a type that is several, or another program.
pub(super) fn quick_test(kind: WorkloadType) -> Option<QuickTest> {
    match plan::traffic(&SettingsSpec::default(), kind, SECOND).by_hand(&TIMING) {
        ByHand::Test(test) => Some(test),
        ByHand::Parts(_) | ByHand::Ping(_) | ByHand::Nothing(_) => None,
    }
}

/// The arguments of a quick test, without those of the program.
#[derive(clap::Parser)]
struct Line<A: clap::Args> {
    #[command(flatten)]
    args: A,
}

/// Whether the command line of a quick test accepts these words: by its own bounds, and then by the rules of plans.
fn takes<A: clap::Args>(words: &[&str], test: impl Fn(&A) -> (Test, CommonArgs)) -> bool {
    let Ok(line) = Line::<A>::try_parse_from(["netduel", "host"].iter().chain(words)) else { return false };
    let (test, common) = test(&line.args);
    let host: IpAddr = if common.ipv6 { Ipv6Addr::LOCALHOST.into() } else { Ipv4Addr::LOCALHOST.into() };
    test.plan(&common, "host", host).is_ok()
}

/// The same for a quick test.
pub(super) fn takes_of(test: &QuickTest, words: &[&str]) -> bool {
    // Two types have the same command.
    let over_udp = test.options.iter().map(String::as_str).filter(|option| *option == "-u");
    let words: Vec<&str> = over_udp.chain(words.iter().copied()).collect();
    match test.name {
        "tcp" => takes::<TcpArgs>(&words, |args| (Test::tcp(args), args.common.clone())),
        "udp" => takes::<UdpArgs>(&words, |args| (Test::udp(args), args.common.clone())),
        "rr" => takes::<RrArgs>(&words, |args| (Test::round_trip(args), args.common.clone())),
        "crr" => takes::<CrrArgs>(&words, |args| (Test::connections(args), args.common.clone())),
        "pps" => takes::<PpsArgs>(&words, |args| (Test::packets(args).swap_remove(0), args.common.clone())),
        other => panic!("add the arguments of {other}"),
    }
}
