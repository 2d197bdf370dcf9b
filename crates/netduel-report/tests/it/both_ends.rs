//! Bottlenecks of traffic in both directions, and of a core that both ends share.
use netduel_model::observation::CoreTime;
use netduel_model::sample::{StreamReport, ThreadUse};
use netduel_model::workload::{Direction, Traffic};
use netduel_report::analysis::{Cause, expected, limit_of};

use crate::builder::{Recipe, build};

#[test]
fn limit_of_one_direction_is_found_in_traffic_both_ways() {
    let mut run = build(&Recipe { workloads: vec!["bulk"], blocks: 1, effect: 1.0, ..Recipe::default() });
    let arm = &mut run.header.plan.arms[0];
    let Traffic::TcpStream(stream) = &mut arm.workloads[0].traffic else { panic!("bulk data") };
    stream.direction = Direction::Both;
    arm.expect_mbps = None;
    let trial = &mut run.trials[0];
    let mut to_client = trial.server.as_ref().unwrap().report.received.clone().unwrap();
    for sample in &mut to_client.series {
        sample.bytes /= 4;
    }
    let [client, server] =
        [&mut trial.client, &mut trial.server].map(|end| &mut end.as_mut().unwrap().report);
    (client.received, server.sent) = (Some(to_client.clone()), Some(to_client));
    // The recipe moves 5.5 to 6 Gbit/s to the server, and a quarter of it comes back.
    for (mbps, at_limit) in [(6000, true), (9000, false)] {
        let mut plan = run.header.plan.clone();
        plan.hosts.values_mut().for_each(|host| host.expect_mbps = Some(mbps));
        let (arm, trial) = (&plan.arms[0], &run.trials[0]);
        let expected = expected::of(&plan, &run.header.hosts, arm, &arm.workloads[0]).unwrap();
        assert_eq!(expected.bps.to_bits(), (f64::from(mbps) * 2e6).to_bits());
        let limit = limit_of(&arm.workloads[0], trial, false, Some(&expected)).unwrap();
        let words = limit.evidence.join("\n");
        assert_eq!(words.contains("of the client's data 5."), at_limit, "{limit:?}");
        assert_eq!(limit.cause == Cause::RateCap, at_limit, "{limit:?}");
    }
}

#[test]
fn full_core_of_both_ends_of_one_machine_belongs_to_neither() {
    let cause = |name: &'static str, pins: [u16; 2], is_shared: bool| {
        let mut run = build(&Recipe { workloads: vec![name], blocks: 1, ..Recipe::default() });
        let workload = run.header.plan.arms[0].workloads[0].clone();
        let trial = &mut run.trials[0];
        let stream = trial.client.as_ref().unwrap().report.streams.first().cloned().unwrap_or_default();
        for (end, core) in [&mut trial.client, &mut trial.server].into_iter().flatten().zip(pins) {
            let wall_ns = end.observation.wall_ns;
            end.observation.softnet.clear();
            end.report.thread_use =
                Some(ThreadUse { threads: 1, run_ns: wall_ns / 2, run_delay_ns: wall_ns / 2 });
            end.report.streams = vec![StreamReport { core: Some(core), ..stream.clone() }];
            for core in &mut end.observation.cores {
                *core = CoreTime { core: core.core, user_ns: wall_ns, ..CoreTime::default() };
            }
        }
        limit_of(&workload, trial, is_shared, None).unwrap().cause
    };
    assert_eq!(cause("rr", [0, 0], true), Cause::SharedCore);
    assert_eq!(cause("bulk", [0, 0], true), Cause::SharedCore);
    assert_eq!(cause("rr", [0, 1], true), Cause::ClientCore, "two cores");
    assert_eq!(cause("rr", [0, 0], false), Cause::ClientCore, "two machines");
}
