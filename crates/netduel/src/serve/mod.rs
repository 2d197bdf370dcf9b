//! `netduel serve`: a standing server for quick tests and paired hosts. One port carries control and data of many clients.
mod admission;
pub mod args;
mod concurrency;
mod identity;
mod log;
mod pending;
mod print_limit;
pub(crate) mod rules;
mod session;

use std::fmt::Write as _;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::sync::mpsc::channel;

use netduel_control::agent::Bounds;
use netduel_load::{LoadError, Port};
use netduel_model::socket_name::{SERVE_PORT, SocketName};

use crate::console::print;
use crate::exit::{Failure, Kind, OrFail as _};
use crate::signal;
use admission::Admission;
use args::ServeArgs;
use identity::Identity;
use log::Log;
use netduel_model::pairing::Pairing;
use rules::Rules;
use session::ServerContext;

/// Maximum length of a client's line, bytes: the longest is a workload.
const LINE_LEN_MAX: usize = 1 << 20;

/// Events of the server's main loop.
pub enum ServerEvent {
    /// Ctrl-C, SIGTERM or SIGHUP.
    Interrupt,
    /// A client's session ended.
    SessionOver {
        /// Whether it had a test.
        had_test: bool,
    },
}

/// Serves until Ctrl-C, or until the one test of `--one-off` is over.
pub fn command(args: &ServeArgs) -> Result<(), Failure> {
    let (sender, occasions) = channel();
    let interrupt = sender.clone();
    // The receiver lives until the end of the program.
    signal::on_interrupt(move || drop(interrupt.send(ServerEvent::Interrupt)))
        .map_err(|error| signal::unheard("Ctrl-C", error))?;
    let identity = if args.ephemeral { Identity::draw()? } else { Identity::kept(args.new_identity)? };
    let log = Arc::new(Log::start(args.json)?);
    let context = ServerContext {
        rules: Rules { longest: args.max_duration, fastest: args.max_rate, streams: args.max_streams },
        bounds: Bounds { idle: args.idle_timeout, line_len: LINE_LEN_MAX, ..Bounds::default() },
        log: Arc::clone(&log),
        tests: Arc::default(),
    };
    let admission = Arc::new(Admission::new(identity.for_tls()?, context, args.max_clients, sender));
    let port = Arc::new(open(args, &admission)?);
    admission.serve_through(&port);
    greet(args, &identity, port.address(), &log)?;
    for occasion in occasions {
        match occasion {
            ServerEvent::SessionOver { had_test } if !(args.one_off && had_test) => {}
            ServerEvent::SessionOver { .. } | ServerEvent::Interrupt => break,
        }
    }
    admission.close();
    log.close();
    Ok(())
}

/// Opens the port; without `--bind` for both IP versions, or for the only one of this host.
fn open(args: &ServeArgs, admission: &Arc<Admission>) -> Result<Port, Failure> {
    let control = |admission: &Arc<Admission>| {
        let admission = Arc::clone(admission);
        Box::new(move |stream, peer| admission.enter(stream, peer)) as netduel_load::ControlHandler
    };
    if let Some(bind) = args.bind {
        let address = SocketAddr::new(bind, args.port);
        return Port::open(address, control(admission)).map_err(|error| port_failure(error, address));
    }
    let both = SocketAddr::from((Ipv6Addr::UNSPECIFIED, args.port));
    match Port::open(both, control(admission)) {
        Ok(port) => Ok(port),
        Err(LoadError::Bind { source, .. }) if source.kind() == std::io::ErrorKind::AddrInUse => {
            Err(in_use(both))
        }
        // A host without IPv6 rejects the address or its family.
        Err(_) => {
            let only = SocketAddr::from((Ipv4Addr::UNSPECIFIED, args.port));
            Port::open(only, control(admission)).map_err(|error| port_failure(error, only))
        }
    }
}

fn in_use(address: SocketAddr) -> Failure {
    Failure::message(
        Kind::Environment,
        format!(
            "failed to open TCP and UDP port {} of {}: the port is in use (`ss -lntup` shows by which program); stop that \
             program, or choose another port with --port",
            address.port(),
            address.ip()
        ),
    )
}

fn port_failure(error: LoadError, address: SocketAddr) -> Failure {
    match error {
        LoadError::Bind { source, .. } if source.kind() == std::io::ErrorKind::AddrInUse => in_use(address),
        error => {
            let text = format!("failed to {}", crate::exit::chain(&error));
            Failure::caused(Kind::Environment, text, error)
        }
    }
}

/// Prints the pairing strings of this server.
fn greet(args: &ServeArgs, identity: &Identity, address: SocketAddr, log: &Log) -> Result<(), Failure> {
    let (hosts, warning) = match &args.advertise {
        Some(host) => (vec![host.clone()], None),
        None => reachable_addresses(address.ip())?,
    };
    let named = |host: &String| SocketName::new(host, address.port());
    let pairings: Vec<Pairing> =
        hosts.iter().filter_map(named).map(|server| identity.pairing(server)).collect();
    if args.json {
        return log.ready(address, &pairings, warning);
    }
    print(&greeting(address, &pairings, warning.as_deref()))
}

fn greeting(address: SocketAddr, pairings: &[Pairing], warning: Option<&str>) -> String {
    let version = netduel_model::PROGRAM;
    let mut text =
        format!("{version}: listening on TCP and UDP port {} of {}\n", address.port(), address.ip());
    if let Some(warning) = warning {
        let _ = writeln!(text, "warning: {warning}");
    }
    if !pairings.is_empty() {
        add_pairings(&mut text, address, pairings);
    }
    text.push_str("Ctrl-C ends the server.\n");
    text
}

fn add_pairings(text: &mut String, address: SocketAddr, pairings: &[Pairing]) {
    // Arguments of a process are visible to all users of a host, so the command does not contain the secret.
    text.push_str(
        "Run on the other host, and enter one of the pairing strings when it asks:\n\n  netduel tcp -\n\n",
    );
    text.push_str("Pairing strings (secret), one per address of this host:\n\n");
    for pairing in pairings {
        let _ = write!(text, "  {}\n    {pairing}\n", pairing.server.host());
    }
    let (what, port) = if address.port() == SERVE_PORT {
        ("the address only", String::new())
    } else {
        ("address and port", format!(":{}", address.port()))
    };
    let _ = write!(
        text,
        "\nThe other host stores the pairing. Later tests need {what}:\n  netduel tcp|udp|pps|rr|crr ADDRESS{port}\n"
    );
}

/// The addresses of this host that others may reach: all that are up, but loopback only if there is no other, and no link-local
/// ones (they need the other host's zone). With a warning when no other host reaches any of them.
fn reachable_addresses(bound: IpAddr) -> Result<(Vec<String>, Option<String>), Failure> {
    if !bound.is_unspecified() {
        return Ok((vec![bound.to_string()], None));
    }
    let snapshot = netduel_host::snapshot().kind(Kind::Environment)?;
    let link_local = |address: &IpAddr| match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    };
    let all: Vec<IpAddr> = snapshot
        .interfaces
        .iter()
        .filter(|interface| interface.up)
        .flat_map(|interface| interface.addresses.iter().copied())
        .filter(|address| !link_local(address) && (bound.is_ipv6() || address.is_ipv4()))
        .collect();
    let of_others: Vec<IpAddr> = all.iter().copied().filter(|address| !address.is_loopback()).collect();
    let (chosen, warning) =
        if of_others.is_empty() { (all, Some(no_address(bound))) } else { (of_others, None) };
    Ok((chosen.iter().map(IpAddr::to_string).collect(), warning))
}

/// Why there is no address for other hosts, and what to do.
fn no_address(bound: IpAddr) -> String {
    let family = if bound.is_ipv4() { "IPv4 " } else { "" };
    format!(
        "no interface that is up has an {family}address that other hosts can reach, apart from link-local ones; give an interface an address \
         (`ip -br address` lists those that exist) and start the server again, or name this host with --advertise HOST"
    )
}
