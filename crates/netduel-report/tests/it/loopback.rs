//! Counters of the loopback interface contain the traffic of other programs. Each place that shows them states it once.
use netduel_model::observation::InterfaceDelta;
use netduel_model::run::Run;
use netduel_model::trial::PathProof;
use netduel_model::workload::Role;
use netduel_report::quick::{self, SummaryInput};
use netduel_report::{document, html, markdown, terminal};

use crate::builder::{Recipe, build};
use crate::packets;

const NOTE: &str = "lo carries the traffic between all programs of a host";

/// The run with the traffic of all arms on this interface at both ends, which is the only one and counted at least so many packets.
fn moved(mut run: Run, name: &str, packets: u64) -> Run {
    for arm in &mut run.header.plan.arms {
        (arm.expect_client, arm.expect_server) = (Some(name.to_owned()), Some(name.to_owned()));
    }
    for trial in &mut run.trials {
        trial.proofs.clear();
        for (role, end) in [(Role::Client, &mut trial.client), (Role::Server, &mut trial.server)] {
            let interfaces = &mut end.as_mut().unwrap().observation.interfaces;
            // The bond is before the port that carried the packets.
            let carrier = interfaces.swap_remove(1);
            *interfaces = vec![InterfaceDelta {
                name: name.to_owned(),
                master: None,
                tx_packets: carrier.tx_packets.max(packets),
                rx_packets: carrier.rx_packets.max(packets),
                ..carrier
            }];
            trial.proofs.push(PathProof::from_interfaces(role, name, interfaces, None));
        }
    }
    run
}

fn udp() -> Run {
    build(&Recipe { workloads: vec!["udp"], ..Recipe::default() })
}

#[test]
fn reports_state_beside_the_counters_of_lo_that_they_contain_other_traffic() {
    // The path proof, and the packets of the datagrams.
    assert_noted(&udp(), 2, |name| format!("{name} sent "));
    // The path proof, and both ends of each of two workloads.
    assert_noted(&packets::swept(), 3, |name| format!("0 on {name}"));
}

/// The run shows its counters by this text, and has this number of notes where they are those of `lo`.
#[track_caller]
fn assert_noted(run: &Run, of_lo: usize, counter: impl Fn(&str) -> String) {
    for (name, count) in [("lo", of_lo), ("eth1", 0)] {
        let document = document(&moved(run.clone(), name, 5_000_000));
        let terminal = terminal::report(&document, 400, false);
        for page in [terminal, markdown::page(&document), html::page(&document)] {
            assert!(page.contains(&counter(name)), "{name}: {page}");
            assert_eq!(page.matches(NOTE).count(), count, "{name}: {page}");
        }
    }
}

#[test]
fn quick_tests_state_beside_the_counters_of_lo_that_they_contain_other_traffic() {
    for (name, count) in [("lo", 1), ("eth1", 0)] {
        let run = moved(udp(), name, 0);
        let (workload, trial) = (&run.header.plan.arms[0].workloads[0], &run.trials[0]);
        let input = SummaryInput { workload, trial, shared_machine: true, expected: None, mtus: [None; 2] };
        let text = quick::summary(input, 200);
        assert!(text.contains(&format!("client: {name} sent ")), "{text}");
        assert_eq!(text.matches(NOTE).count(), count, "{text}");
    }
}
