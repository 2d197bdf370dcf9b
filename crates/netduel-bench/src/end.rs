//! One netduel end in its own process: the engines as in the agent, without anything else. Ports, `started` and the report are
//! printed on standard output; a line on standard input tells the server that the client is done.
use std::io::{BufRead, Write};
use std::net::IpAddr;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use netduel_host::{DataPath, packets_sent};
use netduel_load::{BypassPath, prepare_client, prepare_server};
use netduel_model::ids::Token;
use netduel_model::sample::EndReport;
use netduel_model::workload::{Role, Workload};
use netduel_sys::local_bind::LocalBind;

use crate::hosts::SERVER;

/// First argument of an end; after it `server` or `client`, the workload, and the client's ports.
pub const WORD: &str = "--end";
/// Token between the two ends of one bench, whose namespaces no other process reaches.
const TOKEN: Token = Token(*b"peers bench 0001");
/// Time limit for connecting and greeting all streams.
const CONNECT_WITHIN: Duration = Duration::from_secs(20);

/// Runs an end.
pub fn run(words: &[String]) -> Result<ExitCode> {
    let [role, workload, ports @ ..] = words else { bail!("{WORD} wants a role and a workload") };
    let workload: Workload = serde_json::from_str(workload).context("failed to read the workload")?;
    let server = IpAddr::V4(SERVER);
    let running = match role.as_str() {
        "server" => {
            let end = prepare_server(&workload, server, TOKEN)?;
            let end = match workload.traffic.facts().packets.filter(|packets| packets.is_raw(Role::Server)) {
                Some(_) => end.with_bypass(&raw(DataPath::at(server, None)?, Role::Server))?,
                None => end,
            };
            let ports: Vec<String> = end.ports().iter().map(u16::to_string).collect();
            say(&ports.join(" "))?;
            end.start(Box::new(|| ()))
        }
        "client" => {
            let ports: Vec<u16> = ports
                .iter()
                .map(|port| port.parse())
                .collect::<Result<_, _>>()
                .context("a port is a number")?;
            let end = prepare_client(&workload, server, &ports, TOKEN, CONNECT_WITHIN)?;
            let path = DataPath::to_peer(server, &LocalBind::ANY, None)?;
            let end = match workload.traffic.facts().packets {
                Some(packets) if packets.is_raw(Role::Client) => end.with_bypass(&raw(path, Role::Client))?,
                Some(_) => end.try_segmentation(&path.interface, || packets_sent(path.index).ok().flatten()),
                None => end,
            };
            let running = end.start(Box::new(|| ()));
            say("started")?;
            running
        }
        _ => bail!("{WORD} knows the roles server and client"),
    };
    if role == "server" {
        std::io::stdin()
            .lock()
            .read_line(&mut String::new())
            .context("failed to wait for the client's end")?;
        running.finish();
    }
    let report: EndReport = running.join()?;
    say(&serde_json::to_string(&report)?)?;
    Ok(ExitCode::SUCCESS)
}

fn raw(path: DataPath, role: Role) -> BypassPath {
    let queues = if role == Role::Client { path.tx_queues } else { path.rx_queues };
    let DataPath { interface, index, own_mac, peer_mac, xdp, .. } = path;
    BypassPath { interface, index, queues, own_mac, peer_mac, xdp }
}

fn say(line: &str) -> Result<()> {
    let mut output = std::io::stdout().lock();
    writeln!(output, "{line}").and_then(|()| output.flush()).context("failed to speak to the bench")
}
