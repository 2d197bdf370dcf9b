//! `netduel lab`: the local lab by hand.
use netduel_lab::{Lab, LabError, Lifetime, Status};
use netduel_model::ids::LabName;
use netduel_model::lab;
use netduel_model::plan::resolved;
use netduel_model::plan::spec::LabPath;
use netduel_model::units::human_si;

use crate::cli::LabCommand;
use crate::exit::{Failure, Kind, OrFail as _};
use crate::run::{keeper_command, print};

/// The exit code of a lab's error.
fn failure_kind(error: &LabError) -> Kind {
    match error {
        LabError::Namespaces { .. } | LabError::KernelFeature { .. } => Kind::Environment,
        _ => Kind::Lab,
    }
}

/// A lab's error on its way to `main`; its message completes "failed to ...".
#[expect(clippy::needless_pass_by_value, reason = "it is handed to map_err")]
pub fn failed(error: LabError) -> Failure {
    Failure::message(failure_kind(&error), format!("failed to {error}"))
}

/// Runs the command; `Ok` holds the exit code of a command that was run on a host.
pub fn command(command: &LabCommand) -> Result<i32, Failure> {
    match command {
        LabCommand::Up { name, rules, cap, mtu, queues } => {
            up(name, &resolved::Lab { rules: *rules, cap: *cap, mtu: *mtu, queues: *queues })?;
        }
        LabCommand::Down { all: true, .. } => {
            for name in netduel_lab::list().map_err(failed)? {
                down(&name)?;
            }
        }
        LabCommand::Down { name, .. } => down(name)?,
        LabCommand::Status { json } => status(*json)?,
        LabCommand::Exec { name, host, command } => {
            return netduel_lab::exec(&name.name, host, command).map_err(failed);
        }
        LabCommand::Path { name, path } => {
            Lab::connect(&name.name).map_err(failed)?.set_path((*path).into()).map_err(failed)?;
        }
    }
    Ok(0)
}

fn up(name: &LabName, spec: &resolved::Lab) -> Result<(), Failure> {
    Lab::up(name, spec, Lifetime::Standing, &keeper_command()).map_err(failed)?;
    let addresses =
        |guest: &str| lab::addresses(guest).iter().map(ToString::to_string).collect::<Vec<_>>().join(" and ");
    print(&format!(
        "lab {name} is up: guest a has {}, guest b has {}; the path beneath them is synthetic\n\
         try:  netduel lab exec --lab {name} a -- cat /proc/net/dev\n\
         end:  netduel lab down {name}\n",
        addresses("a"),
        addresses("b")
    ))
}

fn down(name: &LabName) -> Result<(), Failure> {
    Lab::connect(name).map_err(failed)?.down().map_err(failed)?;
    print(&format!("lab {name} is down: its namespaces and processes are gone\n"))
}

fn status(json: bool) -> Result<(), Failure> {
    let mut documents = Vec::new();
    let mut text = String::new();
    for name in netduel_lab::list().map_err(failed)? {
        let status = Lab::connect(&name).and_then(|lab| lab.status()).map_err(failed)?;
        text.push_str(&status_lines(&name, &status));
        let mut document = serde_json::to_value(&status).kind(Kind::Internal)?;
        document["name"] = name.as_str().into();
        documents.push(document);
    }
    if json {
        return print(&format!("{}\n", serde_json::to_string_pretty(&documents).kind(Kind::Internal)?));
    }
    if text.is_empty() {
        text.push_str("no lab is up; make one with `netduel lab up`\n");
    }
    print(&text)
}

/// A lab's state for people.
fn status_lines(name: &LabName, status: &Status) -> String {
    let path = match status.path {
        LabPath::Synthetic => "synthetic",
        LabPath::Accelerated => "accelerated",
        LabPath::Direct => "direct",
    };
    let cap = status.spec.cap.map_or_else(|| "no cap".to_owned(), |cap| format!("cap {cap}"));
    let interfaces = status.interfaces.iter().map(|interface| {
        let counters = &interface.counters;
        format!(
            "  guest {} {:<5} sent {} packets {}, received {} packets {}",
            interface.guest,
            interface.interface,
            counters.tx_packets,
            human_si(counters.tx_bytes as f64, "B"),
            counters.rx_packets,
            human_si(counters.rx_bytes as f64, "B"),
        )
    });
    let head = format!(
        "lab {name}: path {path}, {} rules, {cap}, MTU {}, direct path of {}, held by process {}",
        status.spec.rules,
        status.spec.mtu,
        if status.spec.queues == 1 { "1 queue".to_owned() } else { format!("{} queues", status.spec.queues) },
        status.keeper_pid
    );
    let lines: Vec<String> = std::iter::once(head).chain(interfaces).collect();
    lines.join("\n") + "\n"
}
