//! `netduel lab`: commands for the local lab.
use netduel_lab::{Lab, LabError, Lifetime, Status};
use netduel_model::ids::LabName;
use netduel_model::lab;
use netduel_model::plan::resolved;
use netduel_model::plan::spec::LabPath;
use netduel_model::units::human_si;
use netduel_report::json::envelope::Document as _;
use netduel_report::json::lab::{self as json, LabInterface, LabPolicy, LabsDocument};
use netduel_report::json::plan::PlanLab;

use crate::cli::lab::LabCommand;
use crate::console::{print, print_json};
use crate::exit::{Failure, Kind};
use crate::program::{self, keeper_command};

/// The exit code of a lab's error.
fn failure_kind(error: &LabError) -> Kind {
    match error {
        error if error.is_of_environment() => Kind::Environment,
        LabError::NoSuchHost { .. } => Kind::Usage,
        _ => Kind::Lab,
    }
}

/// A lab's error for `main`; its message completes "failed to ...".
pub fn failed(error: LabError) -> Failure {
    Failure::caused(failure_kind(&error), format!("failed to {error}"), error)
}

/// Runs the command; `Ok` contains the exit code of a command that ran on a host.
pub fn command(command: &LabCommand) -> Result<i32, Failure> {
    match command {
        LabCommand::Up { lab, rules, cap, mtu, queues, json } => {
            let spec = resolved::Lab { rules: *rules, cap: *cap, mtu: *mtu, queues: *queues };
            up(lab.name(), &spec, json.json)?;
        }
        LabCommand::Down { all: true, json, .. } => down(&netduel_lab::list().map_err(failed)?, json.json)?,
        LabCommand::Down { lab, json, .. } => down(std::slice::from_ref(lab.name()), json.json)?,
        LabCommand::Status { json } => status(json.json)?,
        LabCommand::Exec { lab, host, command } => {
            return netduel_lab::exec(&lab.name, host, command).map_err(failed);
        }
        LabCommand::Path { lab, path, json } => set_path(&lab.name, *path, json.json)?,
    }
    Ok(0)
}

fn up(name: &LabName, spec: &resolved::Lab, json: bool) -> Result<(), Failure> {
    let lab = Lab::up(name, spec, Lifetime::Standing, &keeper_command()).map_err(failed)?;
    if json {
        return print_labs(&[(name.clone(), lab.status().map_err(failed)?)], Vec::new());
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

/// Removes labs. The first error ends it; labs that were already removed are printed.
fn down(names: &[LabName], json: bool) -> Result<(), Failure> {
    let mut removed = Vec::new();
    let mut result = Ok(());
    for name in names {
        result = Lab::connect(name).and_then(Lab::down).map_err(failed);
        if result.is_err() {
            break;
        }
        removed.push(name.to_string());
        if !json {
            print(&format!("lab {name} is down: its namespaces and processes are gone\n"))?;
        }
    }
    // Without a removed lab the error is the document.
    if json && (result.is_ok() || !removed.is_empty()) {
        print_labs(&[], removed)?;
    }
    result
}

fn set_path(name: &LabName, path: LabPath, json: bool) -> Result<(), Failure> {
    let lab = Lab::connect(name).map_err(failed)?;
    lab.set_path(path).map_err(failed)?;
    if json {
        return print_labs(&[(name.clone(), lab.status().map_err(failed)?)], Vec::new());
    }
    print(&format!("lab {name}: the path between guests a and b is {}\n", path.word()))
}

fn status(json: bool) -> Result<(), Failure> {
    let names = netduel_lab::list().map_err(failed)?;
    let ask = |name: &LabName| Lab::connect(name).and_then(|lab| lab.status());
    let (labs, errors) = still_up(names, ask);
    if json {
        if errors.is_empty() || !labs.is_empty() {
            print_labs(&labs, Vec::new())?;
        }
    } else if labs.is_empty() && errors.is_empty() {
        print("no lab is up; make one with `netduel lab up`\n")?;
    } else {
        let lines: Vec<String> = labs.iter().map(|(name, status)| status_lines(name, status)).collect();
        print(&lines.concat())?;
    }
    errors.into_iter().next().map_or(Ok(()), |error| Err(failed(error)))
}

/// The state of each running lab. A lab that ended since the listing is skipped; any other error of one lab does not hide the
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

fn print_labs(labs: &[(LabName, Status)], removed: Vec<String>) -> Result<(), Failure> {
    let envelope = LabsDocument::envelope(&program::origin());
    let labs = labs.iter().map(|(name, status)| lab_json(name, status)).collect();
    print_json(&LabsDocument { envelope, labs, removed })
}

/// A lab in JSON.
fn lab_json(name: &LabName, status: &Status) -> json::Lab {
    let interfaces = status.interfaces.iter().map(|interface| LabInterface {
        guest: interface.guest.clone(),
        interface: interface.interface.clone(),
        received_packets: interface.counters.rx_packets,
        received_bytes: interface.counters.rx_bytes,
        sent_packets: interface.counters.tx_packets,
        sent_bytes: interface.counters.tx_bytes,
    });
    let policies = status.policies.iter().map(|policy| LabPolicy {
        machine: policy.machine.clone(),
        ipv4_rules: policy.ipv4_rules,
        ipv6_rules: policy.ipv6_rules,
    });
    json::Lab {
        name: name.to_string(),
        spec: PlanLab::of(&status.spec),
        path: status.path,
        observed_path: status.observed,
        keeper_pid: status.keeper_pid,
        standing: status.lifetime == Lifetime::Standing,
        user_namespace: status.user_namespace,
        interfaces: interfaces.collect(),
        policies: policies.collect(),
    }
}

/// A lab's state as text.
fn status_lines(name: &LabName, status: &Status) -> String {
    let path = status.path.word();
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
    fn ended_lab_does_not_hide_the_others() {
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
