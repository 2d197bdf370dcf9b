//! Packets of a `pps` workload from records with numbers that can be checked by hand: texts, tables, loss, distribution, sweeps,
//! bottleneck.
//!
//! Long because: all tests build on one run.
use std::collections::BTreeMap;

use netduel_model::metric::Metric;
use netduel_model::observation::CoreTime;
use netduel_model::packet_path::{PacketEngine, PacketPath, PacketReceiver, PacketReport, QueuePackets};
use netduel_model::run::Run;
use netduel_model::sample::{DatagramSendReport, IntervalSample};
use netduel_model::search::{Search, SearchEnd, SearchPreset, SearchReport, SearchResult, SearchState};
use netduel_model::snapshot::XdpFeature;
use netduel_model::trial::{Trial, TrialEnd};
use netduel_model::warning::Warning;
use netduel_model::workload::{Pps, Role, SAMPLE_INTERVAL_NS, Traffic, Workload};
use netduel_report::analysis::{
    ArmPackets, Cause, LostPackets, PacketRates, SweptBy, WorkloadAnalysis, limit_of,
};
use netduel_report::{analyse_run, csv, document, html, markdown, terminal, words};
use proptest::prelude::*;

use crate::builder::{Recipe, build};
use crate::json;

const INTERVALS: u64 = 50;

/// Interface, queues and drops of a kernel-bypass end.
fn packet_report(queues: &[u64], drops: &[(&str, u64)]) -> PacketReport {
    let queue = |(queue, packets): (usize, &u64)| QueuePackets {
        queue: Some(queue as u32),
        core: Some(queue as u16),
        packets: *packets,
    };
    PacketReport {
        interface: "syn0".to_owned(),
        queues: queues.iter().enumerate().map(queue).collect(),
        zero_copy: Some(true),
        drops: drops.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect::<BTreeMap<_, _>>(),
        ..PacketReport::default()
    }
}

fn set_path(workload: &mut Workload, frame: u32, engine: PacketEngine, receiver: PacketReceiver) {
    let mut udp = workload.traffic.facts().flows.expect("it has datagrams").clone();
    udp.size.0 = u64::from(frame) - 46;
    let packets = PacketPath {
        busy_poll: false,
        engine,
        receiver,
        frame,
        queues: None,
        search: None,
        client_interface: None,
        server_interface: None,
        dpdk: None,
    };
    workload.traffic = Traffic::Pps(Pps { udp, packets });
}

/// A series with the number of packets of each 100 ms from a function.
fn series(packets: impl Fn(u64) -> u64) -> Vec<IntervalSample> {
    let sample = |index| IntervalSample {
        end_ns: (index + 1) * SAMPLE_INTERVAL_NS,
        length_ns: SAMPLE_INTERVAL_NS,
        bytes: packets(index) * 18,
        messages: packets(index),
    };
    (0..INTERVALS).map(sample).collect()
}

fn ends(trial: &mut Trial) -> [&mut TrialEnd; 2] {
    [trial.client.as_mut().unwrap(), trial.server.as_mut().unwrap()]
}

/// A kernel-bypass run: 100 000 packets were sent each 100 ms, with more and fewer outside of the steady window. 1 of 1000
/// packets was lost.
fn run() -> Run {
    run_of(2)
}

fn run_of(blocks: u32) -> Run {
    let mut run = build(&Recipe { workloads: vec!["udp"], blocks, loss: [0.0, 0.0], ..Recipe::default() });
    for arm in &mut run.header.plan.arms {
        set_path(&mut arm.workloads[0], 64, PacketEngine::Xdp, PacketReceiver::Xdp);
    }
    for trial in &mut run.trials {
        let [client, server] = ends(trial);
        // Excluded: the first 500 ms and the last 200 ms. The interval that begins at 2 s is the minimum.
        let sent = |index| match index {
            0..5 => 7,
            20 => 90_000,
            48..50 => 900_000,
            _ => 100_000,
        };
        let flow = client.report.sent.as_mut().unwrap();
        flow.series = series(sent);
        flow.messages = 5_000_000;
        let flow = server.report.received.as_mut().unwrap();
        flow.series = series(|index| sent(index) - sent(index) / 1000);
        flow.messages = 4_995_000;
        let count = server.report.datagrams.as_mut().unwrap();
        (count.unique, count.socket_drops) = (4_995_000, Some(3_000));
        server.report.packets =
            Some(packet_report(&[1_200_000, 1_200_000, 1_095_000, 1_500_000], &[("rx_ring_full", 3_000)]));
        client.report.packets =
            Some(packet_report(&[5_000_000], &[("dropped by the sender's interface", 500)]));
        client.report.datagrams_sent =
            Some(DatagramSendReport { calls: 78_125, burst_max: 64, refused: 1_234, pacing_error: None });
    }
    run
}

fn only(workload: &WorkloadAnalysis) -> &ArmPackets {
    let [way] = workload.arms[0].packets.as_slice() else { panic!("{:?}", workload.arms[0].packets) };
    way
}

#[test]
fn packet_rates_are_medians_of_steady_windows_with_extremes_of_whole_intervals() {
    let analysis = analyse_run(&run());
    let way = only(&analysis.workloads[0]);
    let sent = way.sent.unwrap();
    // 43 intervals of 100 000, one of them of 90 000, in 4.3 s.
    assert_eq!((sent.trials, sent.intervals), (2, 86));
    assert!((sent.median - 4_290_000.0 / 4.3).abs() < 1.0, "{}", sent.median);
    assert_eq!((sent.min, sent.max), (Some(900_000.0), Some(1_000_000.0)));
    let received = way.received.unwrap();
    assert_eq!((received.min, received.max), (Some(899_100.0), Some(999_000.0)));
    assert_eq!(way.loss(), Some(0.001));
    assert_eq!(way.sent_series.len(), way.received_series.len());
}

/// A stalled sampler makes one long interval; here it crosses the end of the steady window.
#[test]
fn stalls_and_silence_are_among_the_extremes_of_packet_rates() {
    let mut run = run();
    for trial in &mut run.trials {
        let [client, server] = ends(trial);
        let sent = client.report.sent.as_mut().unwrap();
        sent.series = series(|_| 100_000);
        sent.series.truncate(30);
        let stall = 20 * SAMPLE_INTERVAL_NS;
        sent.series.push(IntervalSample {
            end_ns: INTERVALS * SAMPLE_INTERVAL_NS,
            length_ns: stall,
            bytes: 2_000 * 18,
            messages: 2_000,
        });
        server.report.received.as_mut().unwrap().series.truncate(30);
    }
    let analysis = analyse_run(&run);
    let way = only(&analysis.workloads[0]);
    let (sent, received) = (way.sent.unwrap(), way.received.unwrap());
    // 25 intervals of 100 000 and 1.8 s of the stall, in 4.3 s.
    assert!((sent.median - 2_501_800.0 / 4.3).abs() < 1.0, "{}", sent.median);
    assert_eq!((sent.min, sent.max, sent.intervals), (Some(1_000.0), Some(1_000_000.0), 52));
    assert!(received.min == Some(0.0) && received.median > 0.0, "{received:?}");
    let page = markdown::page(&document(&run));
    assert!(
        page.contains("intervals of about 100 ms (longer where the sampler was delayed) of these windows"),
        "{page}"
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn median_of_packet_rates_lies_between_their_extremes(
        first in proptest::collection::vec((0_u64..1_500_000_000, 0_u64..1_000_000), 0..20),
        second in proptest::collection::vec((0_u64..200_000_000, 0_u64..1_000_000), 0..60),
        late_ns in 0_u64..2_000_000_000,
        warmup_ns in prop_oneof![Just(0_u64), Just(500_000_000)],
    ) {
        let mut run = run();
        for arm in &mut run.header.plan.arms {
            arm.workloads[0].timing.warmup.0 = warmup_ns;
        }
        for (trial, samples) in run.trials.iter_mut().zip([&first, &second].into_iter().cycle()) {
            let mut end_ns = 0;
            let sample = |&(length_ns, messages): &(u64, u64)| {
                end_ns += length_ns;
                IntervalSample { end_ns, length_ns, bytes: messages * 18, messages }
            };
            let series: Vec<IntervalSample> = samples.iter().map(sample).collect();
            let [client, server] = ends(trial);
            let flows = [client.report.sent.as_mut().unwrap(), server.report.received.as_mut().unwrap()];
            for (flow, late_ns) in flows.into_iter().zip([0, late_ns]) {
                flow.messages = series.iter().map(|sample| sample.messages).sum();
                (flow.first_ns, flow.last_ns) = (Some(late_ns), Some(end_ns + late_ns));
                flow.series.clone_from(&series);
            }
        }
        let analysis = analyse_run(&run);
        for way in analysis.workloads[0].arms.iter().flat_map(|arm| &arm.packets) {
            for PacketRates { median, min, max, .. } in [way.sent, way.received].into_iter().flatten() {
                let (min, max) = (min.unwrap(), max.unwrap());
                let is_between = min <= median * (1.0 + 1e-9) && median <= max * (1.0 + 1e-9);
                prop_assert!(is_between, "{min} {median} {max}");
            }
        }
    }
}

#[test]
fn each_lost_packet_is_assigned_to_exactly_one_counter() {
    let lost = |change: fn(&mut Trial)| {
        let mut run = run();
        run.trials.iter_mut().for_each(change);
        only(&analyse_run(&run).workloads[0]).lost.clone()
    };
    let named = |place: &str, packets| {
        let end = if place.contains("sender") { Role::Client } else { Role::Server };
        LostPackets { place: Some(place.to_owned()), end: Some(end), packets }
    };
    let unnamed = |packets| LostPackets { place: None, end: None, packets };
    assert_eq!(
        lost(|_| ()),
        Some(vec![
            named("rx_ring_full at the receiver", 6_000),
            named("dropped by the sender's interface", 1_000),
            unnamed(3_000)
        ])
    );
    // A full ring is among the drops of the interface, and the other end of a virtual link counts the same drop.
    let interfaces = lost(|trial| {
        let [client, server] = ends(trial);
        let at = |end: &mut TrialEnd| {
            end.observation.interfaces.iter().position(|one| one.name == "syn0").unwrap()
        };
        let index = at(client);
        client.observation.interfaces[index].tx_dropped = 700;
        let index = at(server);
        server.observation.interfaces[index].rx_dropped = 3_900;
    });
    assert_eq!(
        interfaces,
        Some(vec![
            named("rx_ring_full at the receiver", 6_000),
            named("dropped by the sender's interface", 1_000),
            named("syn0 at the receiver", 400),
            named("syn0 at the sender", 400),
            unnamed(2_200)
        ])
    );
    // The assigned loss does not exceed the total loss.
    let all = lost(|trial| {
        ends(trial)[1].report.packets.as_mut().unwrap().drops = [("rx_ring_full".to_owned(), 9_000)].into();
    });
    assert_eq!(all, Some(vec![named("rx_ring_full at the receiver", 10_000)]));
}

#[test]
fn every_format_uses_packet_terms() {
    let run = run();
    let analysis = analyse_run(&run);
    let text = terminal::report(&document(&run), 160, false);
    let page = html::page(&document(&run));
    let markdown = markdown::page(&document(&run));
    for (format, output) in [("terminal", &text), ("html", &page), ("markdown", &markdown)] {
        for words in ["packets delivered", "sent by client", "998 kpps", "back-pressure, not loss"] {
            assert!(output.contains(words), "{format} without {words}: {output}");
        }
        for words in ["datagrams delivered", "M/s", "datagrams were", "/1000 datagrams"] {
            assert!(!output.contains(words), "{format} contains {words}");
        }
    }
    let overrun = words::warnings(&analysis).into_iter().find(|text| text.starts_with("receiver overrun: "));
    let overrun = overrun.unwrap();
    let words = "the receiver of synthetic in udp dropped 6000 packets of 10000000 sent (60 % of the lost ones) because";
    assert!(overrun.contains(words), "{overrun}");
    let traffic = &run.header.plan.arms[0].workloads[0].traffic;
    let heading = netduel_report::quick::heading(traffic);
    assert!(!heading.contains("jitter") && heading.contains("counted after the test only"), "{heading}");
    let value = json::report(&run);
    let packets = &value["workloads"][0]["arms"][0]["packets"][0];
    assert_eq!(packets["received_pps"]["intervals"], 86);
    assert_eq!(packets["lost"][0]["counted_as"], "rx_ring_full at the receiver");
    assert_eq!(value["workloads"][0]["metrics"][0]["title"], "packets delivered");
    assert!(csv::trials(&run).contains(",datagram-rate,/s,"), "keys are those of datagrams");
}

#[test]
fn warnings_about_metrics_use_packet_terms() {
    let analysis = analyse_run(&run());
    let workload = analysis.workloads[0].name.clone();
    let arm = analysis.workloads[0].arms[0].arm.clone();
    for metric in [Metric::CpuPerDatagram, Metric::DatagramRate] {
        let of = (arm.clone(), workload.clone());
        for warning in [
            Warning::Drift { arm: of.0.clone(), workload: of.1.clone(), metric, change: 0.2 },
            Warning::Autocorrelation { arm: of.0.clone(), workload: of.1.clone(), metric, lag1: 0.5 },
            Warning::OutlierBlock { arm: of.0, workload: of.1, metric, block: 1, ratio_to_median: 3.0 },
        ] {
            let mut analysis = analysis.clone();
            analysis.warnings = vec![warning];
            for text in [words::warnings(&analysis), words::warning_heads(&analysis)].concat() {
                assert!(text.contains("packet") && !text.contains("datagram"), "{text}");
            }
        }
    }
}

#[test]
fn received_rate_is_the_capacity_of_the_part_that_dropped_most() {
    let commentary = |drops_at_receiver: u64, drops_at_sender: u64| {
        let mut run = run();
        for trial in &mut run.trials {
            let [client, server] = ends(trial);
            let count = server.report.datagrams.as_mut().unwrap();
            count.socket_drops = Some(drops_at_receiver);
            server.report.packets = Some(packet_report(&[4_995_000], &[("rx_ring_full", drops_at_receiver)]));
            client.report.packets = Some(packet_report(&[5_000_000], &[("rejected", drops_at_sender)]));
        }
        words::packets_commentary(&analyse_run(&run)).join(" ")
    };
    for (drops, capacity) in [
        (
            (4_000, 500),
            "80 % of the lost packets were dropped at the receiver: the received rate is the capacity of the receiver, not",
        ),
        (
            (500, 4_000),
            "80 % of the lost packets were dropped at the sender: the received rate is the capacity of the sender's",
        ),
        (
            (1_000, 1_000),
            "60 % of the lost packets were not counted by either host: the received rate is the capacity of the path",
        ),
    ] {
        let text = commentary(drops.0, drops.1);
        assert!(text.contains(capacity), "{text}");
    }
}

#[test]
fn drops_of_a_qdisc_are_counted_as_buffers() {
    let mut run = run();
    for trial in &mut run.trials {
        let [client, server] = ends(trial);
        server.report.datagrams.as_mut().unwrap().socket_drops = Some(0);
        server.report.packets = Some(packet_report(&[4_995_000], &[]));
        client.report.packets = Some(packet_report(&[5_000_000], &[]));
        let leaving = client.observation.interfaces.iter_mut().find(|one| one.name == "syn0").unwrap();
        // Of these, 1234 were refused with an error and sent later.
        leaving.qdisc_dropped = Some(2_234);
    }
    let text = words::packets_commentary(&analyse_run(&run)).join(" ");
    assert!(text.contains("counts each as one packet") && text.contains("never left the sender"), "{text}");
}

#[test]
fn faulty_segmentation_of_an_interface_is_no_capacity() {
    let commentary_on = |interface: &str, segmentation: Option<bool>, unique: u64| {
        let mut run = run();
        for trial in &mut run.trials {
            let [client, server] = ends(trial);
            server.report.datagrams.as_mut().unwrap().unique = unique;
            let (interface, report) = (interface.to_owned(), packet_report(&[5_000_000], &[]));
            client.report.packets = Some(PacketReport { interface, segmentation, ..report });
        }
        words::packets_commentary(&analyse_run(&run)).join(" ")
    };
    let commentary = |segmentation, unique| commentary_on("syn0", segmentation, unique);
    let (text, remedy) = (commentary(Some(true), 0), "`ethtool -K syn0 tx-udp-segmentation off`");
    assert!(
        text.contains("No packet arrived") && text.contains(remedy) && !text.contains("capacity"),
        "{text}"
    );
    for (segmentation, unique) in [(Some(true), 4_000_000), (Some(false), 0), (None, 0)] {
        let text = commentary(segmentation, unique);
        assert!(!text.contains(remedy) && text.contains("capacity"), "{text}");
    }
    // A host reports any text.
    let text = commentary_on("x;reboot", Some(true), 0);
    assert!(text.contains("`ethtool -K 'x;reboot' tx-udp-segmentation off`"), "{text}");
}

#[test]
fn received_rate_above_the_sent_rate_has_its_reason() {
    let page = |received_more: bool| {
        let mut run = run();
        for trial in &mut run.trials {
            let [client, _] = ends(trial);
            if received_more {
                // The sender's series begins 100 ms later, as if its start was that much earlier than that of the receiver.
                client.report.sent.as_mut().unwrap().series =
                    series(|index| if index < 10 { 0 } else { 100_000 });
            }
        }
        markdown::page(&document(&run))
    };
    let reason = "the received rate exceeds the sent rate because each end measures a steady window from its own start";
    assert!(page(true).contains(reason));
    assert!(!page(false).contains(reason));
}

#[test]
fn results_name_the_median_loss_and_the_total_loss() {
    let mut run = run_of(3);
    // One trial of each arm loses 40 %, the others nothing.
    for trial in &mut run.trials {
        let unique = if trial.slot.block == 0 { 3_000_000 } else { 5_000_000 };
        let [_, server] = ends(trial);
        server.report.datagrams.as_mut().unwrap().unique = unique;
    }
    let page = markdown::page(&document(&run));
    assert!(page.contains("| loss, median of trials | lost in total |"), "{page}");
    assert!(page.contains("| 0 % | 13 % | 3 |"), "{page}");
    assert!(page.contains("lost in total: 2000000 of 15000000 packets (13 %)"), "{page}");
}

#[test]
fn uneven_queue_distribution_is_reported() {
    let mut run = run();
    assert!(words::packets_commentary(&analyse_run(&run)).iter().all(|text| !text.contains("queue")));
    for trial in &mut run.trials {
        let [_, server] = ends(trial);
        server.report.packets = Some(packet_report(&[1_000_000, 1_000_000, 950_000, 2_050_000], &[]));
    }
    let analysis = analyse_run(&run);
    let commentary = words::packets_commentary(&analysis);
    let uneven = "receive queue 3 of b had 41 % of the packets; an even share is 25 %";
    assert!(commentary.iter().any(|text| text.contains(uneven)), "{commentary:?}");
    let queues: Vec<String> =
        words::queues(&analysis.workloads[0]).into_iter().flat_map(|row| row.remarks).collect();
    let queues = queues.join("\n");
    assert!(queues.contains("uneven: receive queue 3 had 41 % of the packets"), "{queues}");
    assert!(queues.contains("zero copy"), "{queues}");
}

#[test]
fn copied_frames_have_their_reason() {
    let remarks = |features: Option<Vec<XdpFeature>>| {
        let mut run = run();
        for host in run.header.hosts.values_mut() {
            for interface in &mut host.interfaces {
                interface.device.xdp.clone_from(&features);
            }
        }
        for trial in &mut run.trials {
            let [_, server] = ends(trial);
            server.report.packets =
                Some(PacketReport { zero_copy: Some(false), ..packet_report(&[5_000], &[]) });
        }
        let rows = words::queues(&analyse_run(&run).workloads[0]);
        rows.into_iter().flat_map(|row| row.remarks).collect::<Vec<_>>().join("\n")
    };
    let copied = "frames copied between driver and program";
    for (features, reason) in [
        (Some(vec![XdpFeature::Basic]), ", because the driver has no zero copy (feature xsk-zerocopy)"),
        (Some(vec![XdpFeature::XskZerocopy]), ", because the driver refused zero copy on these queues"),
        (None, ""),
    ] {
        let remarks = remarks(features);
        let line = remarks.lines().find(|line| line.starts_with(copied));
        assert_eq!(line, Some(format!("{copied}{reason}").as_str()), "{remarks}");
    }
}

/// The run with two frame sizes.
pub fn swept() -> Run {
    let mut run = run();
    let Run { header, trials, .. } = &mut run;
    header.plan.workloads = ["small-68", "small-512"].map(|name| name.parse().unwrap()).to_vec();
    for arm in &mut header.plan.arms {
        let mut large = arm.workloads[0].clone();
        arm.workloads[0].name = "small-68".parse().unwrap();
        // Those of testpmd by default, which publications count without the check sequence.
        let Traffic::Pps(Pps { udp, packets, .. }) = &mut arm.workloads[0].traffic else {
            panic!("no packets")
        };
        (udp.size.0, packets.frame) = (68 - 46, 68);
        large.name = "small-512".parse().unwrap();
        set_path(&mut large, 512, PacketEngine::Xdp, PacketReceiver::Xdp);
        arm.workloads.push(large);
    }
    let mut second = trials.clone();
    for (trials, name) in [(&mut *trials, "small-68"), (&mut second, "small-512")] {
        for trial in trials {
            trial.slot.workload = name.parse().unwrap();
        }
    }
    trials.extend(second);
    run
}

/// The same with so many times fewer packets of the large frames.
pub fn swept_far(times: u64) -> Run {
    let mut run = swept();
    for trial in run.trials.iter_mut().filter(|trial| trial.slot.workload.as_str() == "small-512") {
        let [client, server] = ends(trial);
        server.report.datagrams.as_mut().unwrap().unique /= times;
        for flow in [client.report.sent.as_mut().unwrap(), server.report.received.as_mut().unwrap()] {
            flow.messages /= times;
            for sample in &mut flow.series {
                (sample.bytes, sample.messages) = (sample.bytes / times, sample.messages / times);
            }
        }
    }
    run
}

#[test]
fn frame_sizes_form_a_sweep_with_published_figures() {
    let mut run = swept();
    let analysis = analyse_run(&run);
    let [sweep] = analysis.sweeps.as_slice() else { panic!("{:?}", analysis.sweeps) };
    assert_eq!((sweep.by, sweep.name.as_str(), sweep.points.len()), (SweptBy::Frames, "small", 4));
    let labels: Vec<&str> = sweep.points.iter().map(|point| point.label.as_str()).collect();
    assert_eq!(labels, ["68 B", "68 B", "512 B", "512 B"]);
    assert!(!html::page(&document(&run)).contains("44.2 Mpps"), "no published figure of another size");
    for host in run.header.plan.hosts.values_mut() {
        host.size = Some("Standard_E192ids_v6".into());
    }
    let analysis = analyse_run(&run);
    let page = html::page(&document(&run)).replace('\u{a0}', " ");
    let published =
        "2.3 % of the published 44.2 Mpps for Standard_E192ids_v6 (Azure DPDK Performance Report of 2025-04";
    assert!(
        page.contains(published),
        "{:?}",
        words::published(&analysis.workloads[0], Some("Standard_E192ids_v6"))
    );
    assert_eq!(page.matches(published).count(), 2, "frames of 512 B have no published figure");
    assert!(page.contains("data-chart=\"sweep\"") && page.contains("Network bandwidth of the size"));
    // Traffic of one frame size is no sweep.
    assert!(analyse_run(&self::run()).sweeps.is_empty());
}

#[test]
fn sweep_of_searches_shows_their_results() {
    let mut run = swept();
    for workload in run.header.plan.arms.iter_mut().flat_map(|arm| &mut arm.workloads) {
        let Traffic::Pps(Pps { packets, .. }) = &mut workload.traffic else { panic!("no packets") };
        packets.search = Some(Search { goals: vec![SearchPreset::NoDrop.goal()], trials_max: 50 });
        workload.metrics = vec![Metric::NoDropRate];
    }
    for trial in &mut run.trials {
        let result = SearchResult {
            state: SearchState::Regular,
            lower: Some(700_000),
            upper: Some(706_000),
            narrowed_lower: None,
            narrowed_upper: None,
            conditional_throughput: Some(if trial.slot.block == 0 { 690_000.0 } else { 710_000.0 }),
            generator_limited: false,
        };
        trial.search = Some(SearchReport {
            steps: Vec::new(),
            results: vec![result],
            end: SearchEnd::Complete,
            stored_step: None,
        });
    }
    let analysis = analyse_run(&run);
    let [sweep] = analysis.sweeps.as_slice() else { panic!("{:?}", analysis.sweeps) };
    assert_eq!(sweep.search, Some(Metric::NoDropRate));
    for point in &sweep.points {
        assert_eq!((point.sent, point.received.map(|rates| rates.median)), (None, Some(700_000.0)));
        assert_eq!(point.range, Some((690_000.0, 710_000.0)));
    }
    let page = html::page(&document(&run));
    for words in ["Highest rate without loss by frame size: small", "at the rates of a search for no-drop"] {
        assert!(page.contains(words), "no {words}");
    }
    assert!(page.contains("small-68 of accelerated: rate without loss, 700 kpps"));
    assert!(
        !page.contains(">received, median</th><th class=\"number\" scope=\"col\">loss"),
        "no table of what one step received"
    );
}

/// The bottleneck of the first trial after a change, of hosts on different machines.
fn limit(engine: PacketEngine, receiver: PacketReceiver, change: impl Fn(&mut Trial)) -> (Cause, String) {
    let mut run = run();
    let workload = &mut run.header.plan.arms[0].workloads[0];
    set_path(workload, 64, engine, receiver);
    let trial = run.trials.iter_mut().find(|trial| trial.slot.arm.as_str() == "synthetic").unwrap();
    let [client, server] = ends(trial);
    for end in [&mut *client, &mut *server] {
        end.observation.softnet.clear();
        end.observation.driver.clear();
        for core in &mut end.observation.cores {
            *core = CoreTime { core: core.core, idle_ns: end.observation.wall_ns, ..CoreTime::default() };
        }
        end.report.process_cpu_ns = (0, 0);
        end.report.thread_use = None;
    }
    let count = server.report.datagrams.as_mut().unwrap();
    (count.unique, count.socket_drops) = (5_000_000, Some(0));
    server.report.packets = Some(packet_report(&[5_000_000], &[]));
    client.report.datagrams_sent.as_mut().unwrap().refused = 0;
    change(trial);
    let limit = limit_of(workload, trial, false, None).unwrap();
    (limit.cause, limit.evidence.join("; "))
}

fn runs_all_the_time(end: &mut TrialEnd) {
    let wall = end.observation.wall_ns;
    end.report.process_cpu_ns = (wall, 0);
    end.report.streams.truncate(1);
    end.observation.cores[0].user_ns = wall;
}

#[test]
fn busy_polling_end_is_not_reported_as_bottleneck() {
    let spins = |trial: &mut Trial| runs_all_the_time(ends(trial)[1]);
    assert_eq!(limit(PacketEngine::Xdp, PacketReceiver::Xdp, spins).0, Cause::Unknown);
    assert_eq!(limit(PacketEngine::Xdp, PacketReceiver::Socket, spins).0, Cause::ReceiverCore);
    let sends = |trial: &mut Trial| ends(trial).into_iter().for_each(runs_all_the_time);
    assert_eq!(limit(PacketEngine::Xdp, PacketReceiver::Xdp, sends).0, Cause::SenderCore);
}

#[test]
fn full_ring_is_back_pressure_at_the_sender_and_ring_overflow_at_the_receiver() {
    let full = |trial: &mut Trial| {
        let [client, _] = ends(trial);
        runs_all_the_time(client);
        client.report.datagrams_sent.as_mut().unwrap().refused = 40_000;
    };
    let (cause, evidence) = limit(PacketEngine::Xdp, PacketReceiver::Xdp, full);
    assert_eq!(cause, Cause::BackPressure);
    assert!(evidence.contains("full 40000 times, in 34 % of the calls"), "{evidence}");
    let dropped = |trial: &mut Trial| {
        let [_, server] = ends(trial);
        let count = server.report.datagrams.as_mut().unwrap();
        (count.unique, count.socket_drops) = (4_000_000, Some(1_000_000));
        server.report.packets = Some(packet_report(&[4_000_000], &[("rx_ring_full", 1_000_000)]));
    };
    let (cause, evidence) = limit(PacketEngine::Xdp, PacketReceiver::Xdp, dropped);
    assert_eq!(cause, Cause::ReceiverRing);
    assert!(evidence.starts_with("1000000 packets dropped"), "{evidence}");
}

#[test]
fn saturated_and_rejected_kernel_generators_are_distinguished() {
    let works = |trial: &mut Trial| runs_all_the_time(ends(trial)[0]);
    assert_eq!(limit(PacketEngine::Kernel, PacketReceiver::Count, works).0, Cause::Generator);
    let nothing = |trial: &mut Trial| {
        let [client, server] = ends(trial);
        runs_all_the_time(client);
        server.report.datagrams.as_mut().unwrap().unique = 0;
        let flow = server.report.received.as_mut().unwrap();
        (flow.messages, flow.series) = (0, Vec::new());
    };
    let (cause, evidence) = limit(PacketEngine::Kernel, PacketReceiver::Count, nothing);
    assert_eq!(cause, Cause::FramesRejected);
    assert!(evidence.contains("generated 5000000 packets and none arrived"), "{evidence}");
}

#[test]
fn generator_outside_netduel_is_no_cpu_contention() {
    let contended = |engine: PacketEngine| {
        let mut run = run();
        for arm in &mut run.header.plan.arms {
            set_path(&mut arm.workloads[0], 64, engine, PacketReceiver::Count);
        }
        for trial in &mut run.trials {
            for end in ends(trial) {
                (end.observation.process.user_ns, end.observation.process.system_ns) = (0, 0);
            }
        }
        analyse_run(&run).warnings.iter().any(|warning| matches!(warning, Warning::CpuContention { .. }))
    };
    assert!(contended(PacketEngine::Socket), "its threads are netduel's, and used nothing");
    assert!(!contended(PacketEngine::Kernel), "its threads are the kernel's");
}

/// Agents send these numbers, and a run file may have any.
#[test]
fn bottleneck_is_found_in_the_largest_numbers() {
    let refused = |trial: &mut Trial| {
        let [client, _] = ends(trial);
        let handed = client.report.datagrams_sent.as_mut().unwrap();
        (handed.calls, handed.refused) = (u64::MAX, u64::MAX);
    };
    assert_eq!(limit(PacketEngine::Xdp, PacketReceiver::Xdp, refused).0, Cause::BackPressure);
    let worked = |trial: &mut Trial| ends(trial)[0].report.process_cpu_ns = (u64::MAX, u64::MAX);
    assert_eq!(limit(PacketEngine::Kernel, PacketReceiver::Count, worked).0, Cause::Generator);
}

#[test]
fn largest_frame_has_a_share_of_the_line() {
    let mut run = run();
    for interface in run.header.hosts.values_mut().flat_map(|host| &mut host.interfaces) {
        (interface.kind, interface.speed_mbps) = (None, Some(1000));
    }
    for arm in &mut run.header.plan.arms {
        let Traffic::Pps(Pps { packets, .. }) = &mut arm.workloads[0].traffic else { panic!("no packets") };
        packets.frame = u32::MAX;
    }
    let analysis = analyse_run(&run);
    let line = only(&analysis.workloads[0]).line.as_ref().unwrap();
    assert!(line.share > 1.0, "{line:?}");
}
