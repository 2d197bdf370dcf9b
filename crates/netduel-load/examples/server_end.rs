//! The server's end of a request-response trial in a process of its own, for the tests: `server_end tcp|udp SIZE block|spin
//! RATE|closed MILLISECONDS ADDRESS stamped|plain` prints its port, and ends when standard input does.
use std::error::Error;
use std::io::Read;
use std::net::IpAddr;

use netduel_load::prepare_server;
use netduel_model::ids::{Token, WorkloadName};
use netduel_model::units::{Bytes, Nanos, PerSecond};
use netduel_model::workload::{Family, RoundTrip, Timing, Traffic, Wait, Workload};

/// The token of the tests: it keeps nothing secret, client and server are this machine's.
const TOKEN: Token = Token(*b"a token of tests");

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let [protocol, size, wait, rate, milliseconds, address, stamps] = words[..] else {
        return Err("seven words are needed; see the head of the source".into());
    };
    let address: IpAddr = address.parse()?;
    let settings = RoundTrip {
        size: Bytes(size.parse()?),
        outstanding: 1,
        wait: if wait == "spin" { Wait::Spin } else { Wait::Block },
        rate: if rate == "closed" { None } else { Some(PerSecond(rate.parse()?)) },
        timestamps: stamps == "stamped",
        congestion: None,
    };
    let traffic = if protocol == "udp" { Traffic::UdpRr(settings) } else { Traffic::TcpRr(settings) };
    let duration = Nanos::from_millis(milliseconds.parse()?);
    let workload = Workload {
        name: WorkloadName::new("test")?,
        traffic,
        timing: Timing { duration, warmup: Nanos(0), cooldown: Nanos(0) },
        family: if address.is_ipv4() { Family::Ipv4 } else { Family::Ipv6 },
        pin_client: Vec::new(),
        pin_server: Vec::new(),
        pin_auto: netduel_model::workload::PinAuto::default(),
        dscp: None,
        metrics: Vec::new(),
    };
    let end = prepare_server(&workload, address, TOKEN)?;
    println!("{}", end.ports()[0]);
    let running = end.start(Box::new(|| ()));
    std::io::stdin().read_to_end(&mut Vec::new())?;
    running.finish();
    running.join()?;
    Ok(())
}
