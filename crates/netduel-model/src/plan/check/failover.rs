//! Events of a failover: their order, what they take and give back, and whether the hosts have it.
use crate::failover::{PROBES_MAX, PathEvent, PathEventKind};
use crate::lab;
use crate::plan::problem::{Problems, element_path, key_path};
use crate::plan::resolved::{Host, Launch, Treatment};
use crate::plan::spec::{ArmSpec, EventSpec, LabPath, SettingsSpec, Side, WorkloadSpec};
use crate::units::{Bytes, Nanos, PerSecond};
use crate::workload::{Failover, Traffic};

use super::values::check_interface;
use super::{settings, treatments};

/// A probe is the size of a small request.
const PROBE: Bytes = Bytes(64);
/// Probes that have to come after an event: with fewer an outage is not seen.
const PROBES_AFTER: u64 = 10;
/// A millisecond between probes: what an outage is known to, and 0.5 Mbit/s.
const PROBE_RATE: PerSecond = PerSecond(1000);

/// The workload with these settings and every default.
pub(super) fn resolve(settings: &SettingsSpec) -> Failover {
    let engine = settings.engine.unwrap_or_default();
    Failover {
        streams: settings.streams.unwrap_or(1),
        direction: settings.direction.unwrap_or_default(),
        block: settings.block.unwrap_or(settings::block(engine)),
        engine,
        congestion: settings.congestion.clone(),
        size: settings.size.unwrap_or(PROBE),
        rate: settings.request_rate.unwrap_or(PROBE_RATE),
        events: settings.events.iter().flatten().filter_map(event).collect(),
    }
}

fn event(spec: &EventSpec) -> Option<PathEvent> {
    Some(PathEvent {
        at: spec.at?,
        kind: spec.kind?,
        on: spec.on.unwrap_or(Side::Client),
        interface: spec.interface.clone(),
    })
}

/// The hosts of an arm and what it changes on them.
#[derive(Clone, Copy)]
pub(super) struct Ends<'a> {
    pub client: Option<&'a Host>,
    pub server: Option<&'a Host>,
    pub treatments: &'a [Treatment],
}

/// Checks the events of a workload as an arm runs it.
pub(super) fn check(
    (workload, workload_path): (&WorkloadSpec, &str),
    (arm, arm_path): (&ArmSpec, &str),
    (traffic, duration): (&Traffic, Nanos),
    ends: Ends<'_>,
    problems: &mut Problems<'_>,
) {
    let Traffic::Failover(failover) = traffic else { return };
    let own = arm.set.as_ref().and_then(|set| set.events.as_ref());
    let path = match own {
        Some(_) => key_path(&key_path(arm_path, "set"), "events"),
        None => key_path(workload_path, "events"),
    };
    let Some(written) = own.or(workload.settings.events.as_ref()).filter(|written| !written.is_empty())
    else {
        let allowed = "write at least one, for example events = [{ at = \"2 s\", do = \"remove\" }, { at = \"4 s\", do = \"return\" }]";
        return problems.add(&path, "has no event, and a failover is about one", allowed);
    };
    if written.len() != failover.events.len() {
        return;
    }
    let probes = u128::from(duration.0) * u128::from(failover.rate.0) / 1_000_000_000;
    if probes > u128::from(PROBES_MAX) {
        let wrong = format!("is \"{duration}\", in which {probes} probes are sent each way");
        let allowed =
            format!("every one is kept, and {PROBES_MAX} is the most: lower `request_rate` or `duration`");
        problems.add(&key_path(workload_path, "duration"), wrong, allowed);
    }
    check_times(failover, duration, &path, problems);
    check_order(&failover.events, &path, problems);
    for (index, event) in failover.events.iter().enumerate() {
        check_hosts(event, ends, &element_path(&path, index), problems);
    }
}

fn check_times(failover: &Failover, duration: Nanos, path: &str, problems: &mut Problems<'_>) {
    let mut last: Option<Nanos> = None;
    let pace = Nanos(1_000_000_000 / failover.rate.0.max(1));
    let room = Nanos(pace.0.saturating_mul(PROBES_AFTER));
    for (index, event) in failover.events.iter().enumerate() {
        let path = key_path(&element_path(path, index), "at");
        if event.at >= duration {
            let wrong = format!("is \"{}\", and the traffic is over after \"{duration}\"", event.at);
            problems.add(&path, wrong, "an event is earlier than the end of `duration`");
        } else if duration.0 - event.at.0 < room.0 {
            let wrong = format!("is \"{}\", and fewer than {PROBES_AFTER} probes come after it", event.at);
            let allowed = format!(
                "probes go every {pace}: leave {room} before the end of `duration`, or raise `request_rate`"
            );
            problems.add(&path, wrong, allowed);
        } else if event.at.0 == 0 {
            problems.add(
                &path,
                "is 0, so there is nothing before it",
                "leave time before it, for example \"1 s\"",
            );
        } else if let Some(last) = last.filter(|last| event.at <= *last) {
            let wrong = format!("is \"{}\", not later than the event before at \"{last}\"", event.at);
            problems.add(&path, wrong, "write events in the order of time");
        }
        last = last.max(Some(event.at));
    }
}

/// Notes what is taken or given twice.
fn check_order(events: &[PathEvent], path: &str, problems: &mut Problems<'_>) {
    use PathEventKind::{AddNic, Return};
    for side in [Side::Client, Side::Server] {
        let (mut taken, mut added) = (false, false);
        for (index, event) in events.iter().enumerate() {
            if event.on != side && event.on != Side::Both {
                continue;
            }
            let wrong = match event.kind {
                kind if kind.takes() && taken => Some("takes what is taken already"),
                Return if !taken => Some("gives back what was not taken"),
                AddNic if added => Some("adds a second interface that is there already"),
                PathEventKind::RemoveNic if !added => Some("removes a second interface that was not added"),
                _ => None,
            };
            if let Some(wrong) = wrong {
                let path = key_path(&element_path(path, index), "do");
                let wrong = format!("is \"{}\", which {wrong}", event.kind);
                let allowed = "each event that takes is followed by \"return\", and \"add-nic\" by \"remove-nic\", before the next of its kind";
                problems.add(&path, wrong, allowed);
            }
            taken = event.kind.takes() || (taken && event.kind != Return);
            added = event.kind == AddNic || (added && event.kind != PathEventKind::RemoveNic);
        }
    }
}

fn check_hosts(event: &PathEvent, ends: Ends<'_>, path: &str, problems: &mut Problems<'_>) {
    let (Some(client), Some(server)) = (ends.client, ends.server) else { return };
    let in_lab = [client, server].map(|host| matches!(host.launch, Launch::Lab { .. }));
    if in_lab == [true, true] {
        if event.interface.is_some() {
            let wrong = "names an interface, but guests of the lab have one to take";
            let allowed = format!("leave it out: it is {}", lab::ACCELERATED_INTERFACE);
            problems.add(&key_path(path, "interface"), wrong, allowed);
        }
        let path_of_arm = treatments::lab_path(ends.treatments);
        if (event.kind.takes() || event.kind == PathEventKind::Return)
            && path_of_arm != Some(LabPath::Accelerated)
        {
            let wrong = format!(
                "is \"{}\", on an arm whose traffic does not run over the virtual function",
                event.kind
            );
            let allowed = "give the arm treatments = [{ path = \"accelerated\" }]";
            problems.add(&key_path(path, "do"), wrong, allowed);
        }
        return;
    }
    if !matches!(event.kind, PathEventKind::Remove | PathEventKind::Down | PathEventKind::Return) {
        let wrong = format!("is \"{}\", which only guests of the lab have", event.kind);
        problems.add(&key_path(path, "do"), wrong, "allowed here: `remove`, `down` or `return`");
    }
    for (side, host) in [(Side::Client, client), (Side::Server, server)] {
        if (event.on == side || event.on == Side::Both)
            && let Launch::Paired { at } = &host.launch
        {
            let wrong = format!("takes from the `netduel serve` at {at}, which makes no changes");
            problems.add(
                path,
                wrong,
                "name the other end in `on`, or start an agent there with launch = \"command\"",
            );
        }
    }
    if let Some(name) = &event.interface {
        check_interface(problems, &key_path(path, "interface"), name);
    } else {
        let allowed = "name the virtual function, as `ip link` shows it, for example interface = \"enP1s1\"";
        problems.add(&key_path(path, "interface"), "is missing", allowed);
    }
}
