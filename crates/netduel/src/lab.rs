//! `netduel lab`: the local lab by hand.
use netduel_lab::{Lab, LabError, Lifetime, Status};
use netduel_model::ids::LabName;
use netduel_model::lab;
use netduel_model::plan::resolved;
use netduel_model::plan::spec::LabPath;
use netduel_model::units::human_si;

use crate::cli::lab::LabCommand;
use crate::console::{print, print_json};
use crate::exit::{Failure, Kind, OrFail as _};
use crate::program::keeper_command;

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
        LabCommand::Up { lab, rules, cap, mtu, queues, json } => {
            let spec = resolved::Lab { rules: *rules, cap: *cap, mtu: *mtu, queues: *queues };
            up(lab.name(), &spec, json.json)?;
        }
        LabCommand::Down { all: true, .. } => {
            for name in netduel_lab::list().map_err(failed)? {
                down(&name)?;
            }
        }
        LabCommand::Down { lab, .. } => down(lab.name())?,
        LabCommand::Status { json } => status(json.json)?,
        LabCommand::Exec { lab, host, command } => {
            return netduel_lab::exec(&lab.name, host, command).map_err(failed);
        }
        LabCommand::Path { lab, path, json } => set_path(&lab.name, (*path).into(), json.json)?,
    }
    Ok(0)
}

fn up(name: &LabName, spec: &resolved::Lab, json: bool) -> Result<(), Failure> {
    let lab = Lab::up(name, spec, Lifetime::Standing, &keeper_command()).map_err(failed)?;
    if json {
        return print_json(&document(name, &lab.status().map_err(failed)?)?);
    }
    let addresses =
        |guest: &str| lab::addresses(guest).iter().map(ToString::to_string).collect::<Vec<_>>().join(" and ");
    print(&format!(
        "lab {name} is up: guest a has {}, guest b has {}; the path is synthetic\n\
         try:  netduel lab exec --lab {name} a -- cat /proc/net/dev\n\
         end:  netduel lab down --lab {name}\n",
        addresses("a"),
        addresses("b")
    ))
}

fn down(name: &LabName) -> Result<(), Failure> {
    Lab::connect(name).map_err(failed)?.down().map_err(failed)?;
    print(&format!("lab {name} is down: its namespaces and processes are gone\n"))
}

fn set_path(name: &LabName, path: LabPath, json: bool) -> Result<(), Failure> {
    let lab = Lab::connect(name).map_err(failed)?;
    lab.set_path(path).map_err(failed)?;
    if json {
        return print_json(&document(name, &lab.status().map_err(failed)?)?);
    }
    print(&format!("lab {name}: the path between guests a and b is {}\n", path_word(path)))
}

fn status(json: bool) -> Result<(), Failure> {
    let names = netduel_lab::list().map_err(failed)?;
    let ask = |name: &LabName| Lab::connect(name).and_then(|lab| lab.status());
    let (labs, errors) = still_up(names, ask);
    if json {
        let documents: Result<Vec<_>, _> = labs.iter().map(|(name, status)| document(name, status)).collect();
        print_json(&documents?)?;
    } else if labs.is_empty() && errors.is_empty() {
        print("no lab is up; make one with `netduel lab up`\n")?;
    } else {
        let lines: Vec<String> = labs.iter().map(|(name, status)| status_lines(name, status)).collect();
        print(&lines.concat())?;
    }
    errors.into_iter().next().map_or(Ok(()), |error| Err(failed(error)))
}

/// The state of each lab that is up. A lab that ended since it was listed is not up; any other error of one lab does not hide the
/// others.
fn still_up<S>(
    names: Vec<LabName>,
    ask: impl Fn(&LabName) -> Result<S, LabError>,
) -> (Vec<(LabName, S)>, Vec<LabError>) {
    let (mut labs, mut errors) = (Vec::new(), Vec::new());
    for name in names {
        match ask(&name) {
            Ok(status) => labs.push((name, status)),
            Err(LabError::NoSuchLab { .. } | LabError::KeeperDied { .. }) => {}
            Err(error) => errors.push(error),
        }
    }
    (labs, errors)
}

fn document(name: &LabName, status: &Status) -> Result<serde_json::Value, Failure> {
    let mut document = serde_json::to_value(status).kind(Kind::Internal)?;
    document["name"] = name.as_str().into();
    Ok(document)
}

fn path_word(path: LabPath) -> &'static str {
    match path {
        LabPath::Synthetic => "synthetic",
        LabPath::Accelerated => "accelerated",
        LabPath::Direct => "direct",
    }
}

/// A lab's state as text.
fn status_lines(name: &LabName, status: &Status) -> String {
    let path = path_word(status.path);
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
        "lab {name}: path {path}, {} rules, {cap}, MTU {}, direct path of {}, keeper process {}",
        status.spec.rules,
        status.spec.mtu,
        if status.spec.queues == 1 { "1 queue".to_owned() } else { format!("{} queues", status.spec.queues) },
        status.keeper_pid
    );
    let lines: Vec<String> = std::iter::once(head).chain(interfaces).collect();
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labs_that_ended_since_they_were_listed_hide_no_other() {
        let names = ["ended", "foreign", "up"].map(|name| LabName::new(name).expect("a name"));
        let ask = |name: &LabName| match name.as_str() {
            "ended" => Err(LabError::NoSuchLab { name: name.clone() }),
            "foreign" => Err(LabError::NameTaken { name: name.clone() }),
            _ => Ok("status"),
        };
        let (labs, errors) = still_up(names.to_vec(), ask);
        let names: Vec<&str> = labs.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["up"]);
        assert!(matches!(errors.as_slice(), [LabError::NameTaken { .. }]), "{errors:?}");
    }
}
