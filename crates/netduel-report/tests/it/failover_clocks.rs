//! Failover between machines with clocks of their own: a direction in which nothing arrives does not hide the outages of an event.
use netduel_model::failover::ProbeArrival;
use netduel_model::metric::Metric;
use netduel_model::trial::Trial;
use netduel_report::analysis::{ArmFailover, analyse, value_of};
use netduel_report::{document, terminal};

use crate::failover::{plan, probes, stored, trial};

/// How far the clock of the server is ahead of that of the client.
const LEAD_NS: i64 = 3_600_000_000_000;

/// A trial between two machines, with events at the client after 1 s and 2 s. Probes take 50 us.
fn between_machines(up: Vec<ProbeArrival>, down: Vec<ProbeArrival>) -> Trial {
    let shifted = |mut arrivals: Vec<ProbeArrival>, lead_ns: i64| {
        for arrival in &mut arrivals {
            arrival.delay_ns += lead_ns;
        }
        arrivals
    };
    let mut trial = trial("surprise", shifted(up, LEAD_NS), shifted(down, -LEAD_NS), |_| 1_000_000);
    let events = trial.lab_events.take().unwrap().events;
    let client = trial.client.as_mut().unwrap().report.failover.as_mut().unwrap();
    client.events = events;
    let server = trial.server.as_mut().unwrap().report.failover.as_mut().unwrap();
    server.started_ns += LEAD_NS.cast_unsigned();
    trial
}

/// The figures of the first arm, on hosts that share no machine, and the report.
fn figures(trial: Trial) -> (ArmFailover, String) {
    let mut run = stored(plan(), vec![trial]);
    for (name, boot_id) in [("a", "one"), ("b", "other")] {
        let host = run.header.hosts.get_mut(&name.parse().unwrap()).unwrap();
        host.boot_id = Some(boot_id.to_owned());
    }
    let analysis = analyse(&run.header.plan, Some(&run.header), &run.trials, &[], run.end.as_ref());
    let text = terminal::report(&document(&run), 200, false);
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    (analysis.workloads[0].arms[0].failover.clone().unwrap(), text)
}

#[test]
fn outage_is_found_where_nothing_arrives_in_a_direction() {
    let lossy = || probes(1000..1012);
    let none = || probes(0..3000);
    // Milliseconds of the outage at the first event, in both directions, and whether each lasted until the end.
    for (up, down, expected) in [
        (lossy(), probes(0..0), [(12.0, false), (0.0, false)]),
        (lossy(), none(), [(12.0, false), (2001.0, true)]),
        (none(), lossy(), [(2003.0, true), (12.0, false)]),
        (none(), none(), [(2001.0, true), (2001.0, true)]),
    ] {
        let is_known = !up.is_empty() && !down.is_empty();
        let (failover, text) = figures(between_machines(up, down));
        let outages = failover.events[0].ways.each_ref().map(|way| {
            let (outage, is_bound) = way.outage(1.0).unwrap();
            ((outage / 1e6).round(), is_bound)
        });
        assert_eq!(outages, expected);
        assert_eq!(failover.clock_unknown, u32::from(!is_known));
        // Without the offset of the clocks no delay is known.
        let delays = failover.events.iter().flat_map(|event| &event.ways).flat_map(|way| &way.delay_ns);
        assert_eq!(delays.flatten().count() == 0, !is_known);
        assert_eq!(text.contains("in 1 trial no probe arrived in one direction"), !is_known, "{text}");
    }
}

#[test]
fn outage_of_a_direction_without_arrivals_is_a_value_of_the_trial() {
    let trial = between_machines(probes(0..3000), probes(0..0));
    let workload = &plan().arms[0].workloads[0];
    let outage = value_of(Metric::Outage, workload, &trial, false).unwrap();
    assert!((outage - 2003e6).abs() < 1e6, "{outage}");
}
