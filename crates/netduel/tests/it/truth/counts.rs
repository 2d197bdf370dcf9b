//! Counts of both ends and of the interfaces agree, including packet headers; if something makes them differ, the report names
//! it.
use std::net::{Ipv4Addr, UdpSocket};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use netduel_model::observation::InterfaceDelta;
use netduel_model::trial::{Trial, TrialEnd};
use netduel_model::workload::{Role, RoundTrip};
use netduel_sys::clock;

use super::bed::{Hosts, Namespace, SERVER, prefer_this_thread, skipped_without_root, stored, turn};
use super::fates::{Fate, Fates};
use crate::support::{Bench, Finished};

/// Every workload, in both directions where possible. 400 Mbit/s of datagrams: a rate below a whole core.
fn workloads() -> String {
    let timing = "duration = \"300 ms\"\nwarmup = \"100 ms\"\ncooldown = \"0 ms\"";
    let all = [
        ("stream-up", "tcp-stream\"\ncongestion = \"cubic"),
        ("stream-down", "tcp-stream\"\ncongestion = \"cubic\"\ndirection = \"down"),
        ("datagrams-up", "udp-stream\"\nrate = \"400 Mbit/s"),
        ("datagrams-down", "udp-stream\"\nrate = \"400 Mbit/s\"\ndirection = \"down"),
        ("trips-tcp", "tcp-rr"),
        ("trips-udp", "udp-rr"),
        ("trips-icmp", "icmp-rr"),
    ];
    all.map(|(name, kind)| format!("[[workloads]]\nname = \"{name}\"\ntype = \"{kind}\"\n{timing}\n"))
        .join("\n")
}

fn disagreements(bench: &Bench) -> Vec<String> {
    let text = bench.run(["report", "last", "--json"]).expect_code(0).json();
    let sentences = text["warnings"].as_array().expect("a list of doubts").iter();
    let sentences = sentences.map(|warning| warning["text"].as_str().expect("a sentence").to_owned());
    sentences.filter(|sentence| sentence.starts_with("counts disagree")).collect()
}

fn interface<'a>(end: &'a TrialEnd, name: &str) -> &'a InterfaceDelta {
    end.observation.interfaces.iter().find(|interface| interface.name == name).unwrap()
}

/// Payload that one end sent and the other received, bytes. A kernel answers echo requests, so these are known from the client alone.
fn moved(trial: &Trial, sender: &TrialEnd, receiver: &TrialEnd) -> Option<[u64; 2]> {
    if trial.slot.workload.as_str() == "trips-icmp" {
        let trips = trial.client.as_ref()?.report.round_trips.as_ref()?;
        let count = if sender.report.role == Role::Client { trips.requests } else { trips.responses };
        return Some([count * RoundTrip::SIZE.0; 2]);
    }
    let sent = sender.report.sent.as_ref()?;
    Some([sent.bytes, receiver.report.received.as_ref().unwrap().bytes])
}

/// Payload plus headers of all packets equals the interface's bytes at both ends, except for the last packets of a trial.
fn add_up(trial: &Trial) {
    let (client, server) = (trial.client.as_ref().unwrap(), trial.server.as_ref().unwrap());
    let headers: u64 = match trial.slot.workload.as_str() {
        name if name.starts_with("stream") || name == "trips-tcp" => 14 + 20 + 32,
        _ => 14 + 20 + 8,
    };
    for (sender, receiver, name, other) in [(client, server, "va", "vb"), (server, client, "vb", "va")] {
        let Some([sent, received]) = moved(trial, sender, receiver) else { continue };
        let (out, back) = (interface(sender, name), interface(receiver, other));
        let lost = sent - received;
        let tcp = sender.report.streams.iter().filter_map(|stream| stream.tcp.as_ref());
        let again: u64 = tcp.filter_map(|tcp| tcp.retransmits).map(u64::from).sum();
        for (what, bytes, packets) in
            [("sent", out.tx_bytes, out.tx_packets), ("received", back.rx_bytes, back.rx_packets)]
        {
            let expected = sent + packets * headers;
            let most = expected + again * 1448;
            println!(
                "{}: {what} {bytes} B in {packets} packets on the interface, {expected} B by the programs ({:+.4} %), {lost} B lost, {again} segments sent again",
                trial.slot.workload,
                (bytes as f64 / expected as f64 - 1.0) * 100.0
            );
            let slack = (expected / 1000).max(20_000);
            assert!(bytes + slack >= expected && bytes <= most + slack, "{what} {}", trial.slot.workload);
        }
    }
}

#[test]
fn programs_and_interfaces_agree_for_every_workload() {
    if skipped_without_root() {
        return;
    }
    let _turn = turn();
    let (bench, hosts) = (Bench::new(), Hosts::on_a_wire());
    let run = hosts.run(&bench, &workloads(), 2);
    run.trials.iter().for_each(add_up);
    assert_eq!(disagreements(&bench), Vec::<String>::new());
    bench.assert_nothing_left();
}

#[test]
fn both_ends_on_one_host_agree_on_its_loopback() {
    if skipped_without_root() {
        return;
    }
    let _turn = turn();
    let (bench, alone) = (Bench::new(), Namespace::new());
    alone.must("ip link set lo up");
    let host = "launch = \"local\"\naddresses = [\"127.0.0.1\", \"::1\"]";
    let six = workloads().replace("name = \"", "family = \"ipv6\"\nname = \"six-");
    let plan = bench.plan(&format!(
        "name = \"alone\"\nquestion = \"Does it add up?\"\n[hosts.a]\n{host}\n[hosts.b]\n{host}\n\
         [[arms]]\nname = \"loopback\"\nclient = \"a\"\nserver = \"b\"\n{six}\n\
         [design]\naa = true\nblocks_min = 2\nblocks_max = 2\n"
    ));
    let mut command = Command::new("nsenter");
    command.arg(format!("--net={}", alone.path())).arg("--").arg(env!("CARGO_BIN_EXE_netduel"));
    command.arg("run").arg(plan).current_dir(bench.path());
    bench.mark(&mut command);
    let run = stored(&bench, &Finished::from(command.output().unwrap()));
    assert_eq!(run.trials.len(), 28);
    assert_eq!(disagreements(&bench), Vec::<String>::new());
    bench.assert_nothing_left();
}

/// Time between two datagrams of the other program, nanoseconds.
const STRANGER_GAP_NS: u64 = 333_333;

#[test]
fn other_traffic_on_the_interface_is_reported() {
    if skipped_without_root() {
        return;
    }
    let _turn = turn();
    let (bench, hosts) = (Bench::new(), Hosts::on_a_wire());
    let stop = Arc::new(AtomicBool::new(false));
    let stranger = hosts.a.inside(|| UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).unwrap());
    let stopped = Arc::clone(&stop);
    // A sixth of the trial's traffic, from another program.
    let thread = std::thread::spawn(move || {
        prefer_this_thread();
        let started_ns = clock::monotonic_ns();
        let mut sent = 0;
        while !stopped.load(Ordering::Relaxed) {
            // All that is due: a thread that had no core keeps the rate.
            let due = (clock::monotonic_ns() - started_ns) / STRANGER_GAP_NS;
            for _ in sent..due {
                // No socket listens there, and the ICMP error is returned as an error of the next call.
                drop(stranger.send_to(&[0x55; 1400], (SERVER, 9)));
            }
            sent = due;
            clock::sleep_until(clock::monotonic_ns() + 1_000_000);
        }
    });
    let udp = "[[workloads]]\nname = \"paced\"\ntype = \"udp-stream\"\nrate = \"200 Mbit/s\"\nduration = \"500 ms\"";
    hosts.run(&bench, udp, 2);
    stop.store(true, Ordering::Relaxed);
    thread.join().unwrap();
    let warnings = disagreements(&bench);
    println!("{warnings:#?}");
    assert!(warnings.iter().any(|sentence| sentence.contains("va of host a sent")), "{warnings:?}");
    assert!(
        warnings.iter().all(|sentence| sentence.contains("other traffic used the interface")),
        "{warnings:?}"
    );
    bench.assert_nothing_left();
}

#[test]
fn datagrams_dropped_before_the_program_are_reported() {
    if skipped_without_root() {
        return;
    }
    let _turn = turn();
    let (bench, hosts) = (Bench::new(), Hosts::on_a_wire());
    let fates: Vec<Fate> =
        (0..10_000).map(|number| if number % 10 == 3 { Fate::Dropped } else { Fate::Passed }).collect();
    let programs = Fates::decide(&hosts, 500, &fates);
    let udp = "[[workloads]]\nname = \"filtered\"\ntype = \"udp-stream\"\nsize = \"500 B\"\nrate = \"80 Mbit/s\"\nduration = \"3 s\"\nvolume = \"5 MB\"";
    hosts.run(&bench, udp, 2);
    let (decided, _) = programs.finish();
    let warnings = disagreements(&bench);
    println!("{warnings:#?}");
    assert_eq!(decided[Fate::Dropped as usize], 4 * 1000);
    assert_eq!(warnings.len(), 2, "one for each arm: {warnings:?}");
    for sentence in warnings {
        assert!(sentence.contains("vb of host b received"), "{sentence}");
        assert!(sentence.contains("dropped before the program's socket"), "{sentence}");
    }
    bench.assert_nothing_left();
}
