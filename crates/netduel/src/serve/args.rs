//! The options of `netduel serve`.
use std::net::IpAddr;
use std::str::FromStr;

use clap::Args;
use netduel_model::socket_name::{SERVE_PORT, SocketName};
use netduel_model::units::{BitRate, Nanos};

use crate::cli::range::whole;
use crate::quick::values::{rate, test_time, time};

/// `netduel serve`.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the command line")]
pub struct ServeArgs {
    /// Address to bind [default: all, IPv4 and IPv6]
    #[arg(short = 'B', long, value_name = "ADDRESS", value_parser = address)]
    pub bind: Option<IpAddr>,
    /// TCP and UDP port; 0 lets the kernel choose.
    #[arg(short = 'p', long, value_name = "PORT", default_value_t = SERVE_PORT, value_parser = whole(0, u16::MAX))]
    pub port: u16,
    /// The name or address in the pairing string [default: one string for each address of this host]
    #[arg(long, value_name = "HOST", value_parser = host)]
    pub advertise: Option<String>,
    /// Reject tests with a higher payload rate in either direction, or without a configured rate; for example 1G.
    #[arg(long, value_name = "RATE", value_parser = rate)]
    pub max_rate: Option<BitRate>,
    /// Reject longer tests: seconds, or with a unit.
    #[arg(long, value_name = "TIME", default_value = "3600", value_parser = test_time)]
    pub max_duration: Nanos,
    /// Reject tests with more connections or flows.
    #[arg(long, value_name = "N", default_value_t = 20_000, value_parser = at_least_one::<u32>)]
    pub max_streams: u32,
    /// Maximum number of clients at a time; further clients are rejected with a message.
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = at_least_one::<usize>)]
    pub max_clients: usize,
    /// End the session of a client that sends nothing for this long while no test runs: seconds, or with a unit.
    #[arg(long, value_name = "TIME", default_value = "3600", value_parser = idle_time)]
    pub idle_timeout: Nanos,
    /// Exit after one test.
    #[arg(long)]
    pub one_off: bool,
    /// Create a new identity; all existing pairings become invalid.
    #[arg(long)]
    pub new_identity: bool,
    /// Use a temporary identity; nothing is stored.
    #[arg(long, conflicts_with = "new_identity")]
    pub ephemeral: bool,
    /// Print one JSON document per line.
    #[arg(short = 'J', long)]
    pub json: bool,
}

fn address(text: &str) -> Result<IpAddr, String> {
    text.parse().map_err(|_| "an IPv4 or IPv6 address of this host is needed, without a port".to_owned())
}

/// A host without a port: the pairing string has the port of this server.
fn host(text: &str) -> Result<String, String> {
    let name = SocketName::parse(text).filter(|name| name.host() == text);
    name.map(|name| name.host().to_owned())
        .ok_or_else(|| "a name or an address is needed, without a port".to_owned())
}

fn at_least_one<T: FromStr + PartialOrd + From<u8>>(text: &str) -> Result<T, String> {
    text.parse()
        .ok()
        .filter(|count| *count >= T::from(1))
        .ok_or_else(|| "a whole number is needed, at least 1".to_owned())
}

/// A client has to connect its streams within this time, while its control connection is silent.
fn idle_time(text: &str) -> Result<Nanos, String> {
    let length = time(text)?;
    if length < IDLE_LEAST {
        return Err(format!(
            "at least {IDLE_LEAST} is needed: a client that connects many streams is silent meanwhile"
        ));
    }
    Ok(length)
}

const IDLE_LEAST: Nanos = Nanos(1_000_000_000);
