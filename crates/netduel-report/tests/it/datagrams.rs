//! Datagrams, packets and lost datagrams by location, from records with numbers that can be checked by hand.
use netduel_model::metric::Metric;
use netduel_model::run::Run;
use netduel_model::sample::DatagramSendReport;
use netduel_model::trial::{Trial, TrialEnd};
use netduel_model::units::BitRate;
use netduel_model::workload::{Traffic, UdpOffload, UdpStream, Workload};
use netduel_report::analysis::{Cause, DatagramDirection, Lost, datagrams_of, limit_of, value_of};
use netduel_report::{analyse_run, document, markdown, words};
use netduel_stats::histogram::Histogram;

use crate::builder::{Recipe, build};

fn run() -> Run {
    build(&Recipe { workloads: vec!["udp"], blocks: 2, loss: [0.0, 0.0], ..Recipe::default() })
}

fn first() -> (Workload, Trial) {
    let run = run();
    (
        run.header.plan.arms[0].workloads[0].clone(),
        run.trials.into_iter().find(|t| t.slot.arm.as_str() == "synthetic").unwrap(),
    )
}

fn client(trial: &mut Trial) -> &mut TrialEnd {
    trial.client.as_mut().unwrap()
}

fn server(trial: &mut Trial) -> &mut TrialEnd {
    trial.server.as_mut().unwrap()
}

/// A trial with `sent` datagrams, of which `unique` arrived.
fn counted(sent: u64, unique: u64) -> (Workload, Trial) {
    let (workload, mut trial) = first();
    client(&mut trial).report.sent.as_mut().unwrap().messages = sent;
    let count = server(&mut trial).report.datagrams.as_mut().unwrap();
    (count.unique, count.socket_drops) = (unique, Some(0));
    (workload, trial)
}

fn only(workload: &Workload, trial: &Trial, shared: bool) -> DatagramDirection {
    let mut ways = datagrams_of(workload, trial, shared);
    assert_eq!(ways.len(), 1);
    ways.remove(0)
}

fn set_offload(workload: &mut Workload, wanted: UdpOffload) {
    if let Traffic::UdpStream(UdpStream { offload, .. }) = &mut workload.traffic {
        *offload = wanted;
    }
}

#[test]
fn loss_is_assigned_to_socket_then_interface_then_path() {
    let (workload, mut trial) = counted(1_000_000, 900_000);
    server(&mut trial).report.datagrams.as_mut().unwrap().socket_drops = Some(60_000);
    client(&mut trial).report.datagrams_sent =
        Some(DatagramSendReport { calls: 15_625, burst_max: 64, refused: 300, pacing_error: None });
    let interface = |end: &mut TrialEnd| {
        end.observation.interfaces.iter_mut().position(|interface| interface.name == "syn0").unwrap()
    };
    let at = interface(client(&mut trial));
    let sending = &mut client(&mut trial).observation.interfaces[at];
    (sending.qdisc_dropped, sending.tx_dropped) = (Some(1_300), 2_000);
    let receiving = &mut server(&mut trial).observation.interfaces[at];
    (receiving.rx_dropped, receiving.ingress_dropped) = (3_000, Some(500));
    // As many packets as datagrams.
    receiving.rx_packets = 960_000;
    let lost = |shared| only(&workload, &trial, shared).lost.unwrap();
    assert_eq!(lost(false), Lost { all: 100_000, at_socket: 60_000, at_interface: 6_500 });
    assert_eq!(lost(false).elsewhere(), 33_500);
    // On one machine both ends of a virtual link count the same drop.
    assert_eq!(lost(true), Lost { all: 100_000, at_socket: 60_000, at_interface: 4_500 });
}

#[test]
fn drops_of_the_senders_qdisc_are_found_where_most_datagrams_were_dropped() {
    // A token bucket segments GSO packets and counts each of their datagrams.
    let (mut workload, mut trial) = counted(350_820, 8_453);
    set_offload(&mut workload, UdpOffload::Gso);
    client(&mut trial).report.sent.as_mut().unwrap().bytes = 350_820 * 1000;
    client(&mut trial).report.datagrams_sent =
        Some(DatagramSendReport { calls: 7_796, burst_max: 45, refused: 24_951, pacing_error: None });
    for interface in &mut client(&mut trial).observation.interfaces {
        if interface.name == "syn0" {
            (interface.tx_packets, interface.tx_bytes) = (8_453, 8_453 * 1042);
            interface.qdisc_dropped = Some(1_465_162);
        } else {
            (interface.tx_packets, interface.tx_bytes) = (0, 0);
        }
    }
    for interface in &mut server(&mut trial).observation.interfaces {
        interface.rx_packets = 8_453;
    }
    let lost = only(&workload, &trial, true).lost.unwrap();
    assert_eq!(lost, Lost { all: 342_367, at_socket: 0, at_interface: 342_367 });
    // With fewer drops than its calls had datagrams, the qdisc counted calls.
    for interface in &mut client(&mut trial).observation.interfaces {
        interface.qdisc_dropped = interface.qdisc_dropped.map(|_| 24_951 + 350_000);
    }
    assert_eq!(only(&workload, &trial, true).lost.unwrap().at_interface, 342_367);
}

#[test]
fn assigned_loss_never_exceeds_total_loss() {
    let (workload, mut trial) = counted(1_000, 990);
    // Drops of end markers are counted by the socket too.
    server(&mut trial).report.datagrams.as_mut().unwrap().socket_drops = Some(13);
    assert_eq!(only(&workload, &trial, true).lost, Some(Lost { all: 10, at_socket: 10, at_interface: 0 }));
    let (workload, trial) = counted(990, 1_000);
    assert_eq!(only(&workload, &trial, true).lost, None);
}

#[test]
fn dropped_gro_buffer_counts_as_several_datagrams() {
    let (mut workload, mut trial) = counted(1_000_000, 640_000);
    set_offload(&mut workload, UdpOffload::GsoGro);
    let count = server(&mut trial).report.datagrams.as_mut().unwrap();
    (count.buffers, count.socket_drops) = (Some(10_000), Some(5_000));
    assert_eq!(
        only(&workload, &trial, true).lost,
        Some(Lost { all: 360_000, at_socket: 320_000, at_interface: 0 })
    );
}

#[test]
fn packet_rate_is_counted_at_the_receiving_interface() {
    let (workload, mut trial) = counted(1_000_000, 1_000_000);
    let flow = server(&mut trial).report.received.as_mut().unwrap();
    (flow.first_ns, flow.last_ns) = (Some(1_000_000_000), Some(3_000_000_000));
    for interface in &mut server(&mut trial).observation.interfaces {
        interface.rx_packets = if interface.name == "syn0" { 50_000 } else { 7 };
    }
    assert_eq!(value_of(Metric::PacketRate, &workload, &trial, true), Some(25_000.0));
    let way = only(&workload, &trial, true);
    assert_eq!(way.datagrams_per_packet, Some(20.0));
    // An interface that counts fewer bytes than the payload did not carry it.
    for interface in &mut server(&mut trial).observation.interfaces {
        interface.rx_bytes = 1_000;
    }
    assert_eq!(value_of(Metric::PacketRate, &workload, &trial, true), None);
}

/// The run with every trial and workload changed, and its warnings as text.
fn warnings(change: impl Fn(&mut Trial), of_workload: impl Fn(&mut Workload)) -> Vec<String> {
    let mut run = run();
    run.trials.iter_mut().for_each(change);
    run.header.plan.arms.iter_mut().flat_map(|arm| &mut arm.workloads).for_each(of_workload);
    analyse_run(&run).warnings.iter().map(ToString::to_string).collect()
}

#[test]
fn unsegmented_datagrams_cause_a_warning_in_both_directions() {
    let one_to_one = warnings(|_| (), |_| ());
    assert_eq!(one_to_one.len(), 1, "{one_to_one:?}");
    let whole = warnings(
        |trial| {
            for end in [&mut trial.client, &mut trial.server].into_iter().flatten() {
                for interface in &mut end.observation.interfaces {
                    interface.rx_packets /= 44;
                    interface.tx_packets /= 44;
                }
            }
        },
        |workload| set_offload(workload, UdpOffload::Gso),
    );
    assert!(whole.iter().any(|text| text.contains("44.0 datagrams arrived as one packet")), "{whole:?}");
    let cut = |fragments: i64| {
        warnings(
            |trial| {
                let seen = &mut server(trial).observation;
                seen.interfaces.iter_mut().for_each(|interface| interface.rx_packets *= 3);
                seen.protocol.insert("Ip.ReasmReqds".to_owned(), fragments);
            },
            |_| (),
        )
    };
    let fragmented = cut(1_000_000_000);
    assert!(fragmented.iter().any(|text| text.contains("arrived as 3.00 packets")), "{fragmented:?}");
    // Other traffic on the interface is not a fragment.
    assert_eq!(cut(0).len(), 1);
}

#[test]
fn duplicate_and_reordered_data_have_the_same_terms_everywhere() {
    let page = markdown::page(&document(&run()));
    for words in
        ["- Datagrams: 0 duplicate, 0 reordered.", "Spurious retransmits (DSACK): the receiver reported"]
    {
        assert!(page.contains(words), "no {words}: {page}");
    }
    assert!(!page.contains("arrived twice"), "{page}");
}

#[test]
fn missed_datagram_rate_causes_a_warning_and_pacing_is_shown() {
    let set_rate = |workload: &mut Workload, bps: u64| {
        if let Traffic::UdpStream(UdpStream { rate, .. }) = &mut workload.traffic {
            *rate = Some(BitRate(bps));
        }
    };
    let missed = warnings(|_| (), |workload| set_rate(workload, 100_000_000_000));
    assert_eq!(missed.iter().filter(|text| text.starts_with("rate missed: ")).count(), 2, "{missed:?}");
    assert_eq!(warnings(|_| (), |workload| set_rate(workload, 1_000_000_000)).len(), 1);

    let mut run = run();
    for trial in &mut run.trials {
        let mut late = Histogram::new();
        for late_ns in [90, 100, 100, 2_000] {
            late.record(late_ns);
        }
        client(trial).report.datagrams_sent = Some(DatagramSendReport {
            calls: 9,
            burst_max: 8,
            refused: 0,
            pacing_error: Some(late.to_record()),
        });
    }
    run.header.plan.arms.iter_mut().for_each(|arm| set_rate(&mut arm.workloads[0], 5_000_000_000));
    let sentences = words::datagrams(&analyse_run(&run).workloads[0]);
    for part in ["target 5.00 Gbit/s, sent ", "bursts of up to 8 left 100 ns late at p50, 2.00 us at p99"] {
        assert!(sentences[0].contains(part), "{sentences:?}");
    }
}

#[test]
fn loss_behind_the_receiving_interface_is_not_laid_on_a_program_whose_socket_dropped_nothing() {
    let (workload, mut trial) = first();
    let sent = trial.client.as_ref().unwrap().report.sent.as_ref().unwrap().messages;
    let server = trial.server.as_mut().unwrap();
    let datagrams = server.report.datagrams.as_mut().unwrap();
    (datagrams.unique, datagrams.socket_drops) = (sent / 2, Some(0));
    for interface in &mut server.observation.interfaces {
        (interface.rx_packets, interface.rx_dropped) = (sent, 0);
    }
    let limit = limit_of(&workload, &trial, true, None).unwrap();
    assert_eq!(limit.cause, Cause::LostUncounted, "{:?}", limit.evidence);
    let evidence = limit.evidence.join("; ");
    assert!(evidence.contains("of the server, which received them: by a firewall"), "{evidence}");
}
