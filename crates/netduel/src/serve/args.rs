//! The options of `netduel serve`.
use std::net::IpAddr;

use clap::Args;
use netduel_model::socket_name::SERVE_PORT;
use netduel_model::units::{BitRate, Nanos};

use crate::quick::args::{rate, time};

/// `netduel serve`.
#[derive(Debug, Args)]
pub struct ServeArgs {
    /// Address to bind [default: all, IPv4 and IPv6]
    #[arg(long, value_name = "ADDRESS")]
    pub bind: Option<IpAddr>,
    /// TCP and UDP port; 0 lets the kernel choose.
    #[arg(short = 'p', long, value_name = "PORT", default_value_t = SERVE_PORT)]
    pub port: u16,
    /// The name or address that the pairing string holds [default: one string for each address of this host]
    #[arg(long, value_name = "HOST")]
    pub advertise: Option<String>,
    /// Refuse tests of more payload than this, or without a rate of their own, for example 1G.
    #[arg(long, value_name = "RATE", value_parser = rate)]
    pub max_rate: Option<BitRate>,
    /// Refuse tests that are longer than this: seconds, or with a unit.
    #[arg(long, value_name = "TIME", default_value = "3600", value_parser = time)]
    pub max_duration: Nanos,
    /// Refuse tests with more connections or flows than this.
    #[arg(long, value_name = "N", default_value_t = 20_000)]
    pub max_streams: u32,
    /// Clients at a time; more are turned away.
    #[arg(long, value_name = "N", default_value_t = 64)]
    pub max_clients: usize,
    /// End after one test.
    #[arg(long)]
    pub one_off: bool,
    /// Draw a new identity: all pairings so far are void.
    #[arg(long)]
    pub new_identity: bool,
    /// Use an identity for this time alone, and keep nothing.
    #[arg(long, conflicts_with = "new_identity")]
    pub ephemeral: bool,
    /// Print lines of JSON.
    #[arg(long)]
    pub json: bool,
}
