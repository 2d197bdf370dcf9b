//! Kernel bypass on interfaces that do not support it: the error messages of the real program. A killed agent leaves no XDP
//! program.
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use netduel_sys::bpf::{Attach, Code, Link, Program, ProgramKind};
use netduel_sys::ethtool::Ethtool;
use netduel_sys::xdp::{Settings, XdpSocket};
use netduel_test_support::{copy_program, skip};
use rustix::process::Signal;

use crate::support::{Bench, Finished, UnderWay, signal, signal_those_left, until};
use crate::truth::bed::{Hosts, Namespace, skipped_without_root, stored};

/// From `enum xdp_action` (include/uapi/linux/bpf.h).
const XDP_PASS: i32 = 2;

fn workload(generator: &str, receiver: &str, more: &str) -> String {
    format!(
        "[[workloads]]\nname = \"w\"\ntype = \"pps\"\ngenerator = \"{generator}\"\nreceiver = \"{receiver}\"\nduration = \"200 ms\"\n\
         warmup = \"0 ms\"\ncooldown = \"0 ms\"\n{more}"
    )
}

/// Runs it on the hosts, checks that no trial is valid, and returns the reason of the first trial.
#[track_caller]
fn refused(hosts: &Hosts, generator: &str, receiver: &str, more: &str) -> String {
    let bench = Bench::new();
    let run = bench.run(hosts.words(&bench, &workload(generator, receiver, more), 2)).expect_code(6);
    bench.assert_nothing_left();
    reason_of(&run)
}

/// The reason of the first failed trial of a run.
#[track_caller]
fn reason_of(run: &Finished) -> String {
    let line = run.stderr.lines().find(|line| line.contains("failed:"));
    line.unwrap_or_else(|| panic!("nothing failed:\n{}\n{}", run.stdout, run.stderr)).to_owned()
}

#[track_caller]
fn holds(text: &str, words: &[&str]) {
    for word in words {
        assert!(text.contains(word), "{word:?} is not in: {text}");
    }
}

fn programs_of(side: &Namespace, interface: &str) -> bool {
    let shown = side.must(&format!("ip -o link show {interface}")).stdout;
    String::from_utf8_lossy(&shown).contains("xdp")
}

#[test]
fn interface_with_an_xdp_program_of_another_owner_is_rejected_by_name() {
    if skipped_without_root() {
        return;
    }
    let hosts = Hosts::on_a_wire();
    let index = hosts.b.index("vb");
    let mut code = Code::new();
    code.exit_with(XDP_PASS);
    let program = Program::load(ProgramKind::Xdp, "another", &code).unwrap();
    let link = hosts.b.inside(|| Link::attach(&program, Attach::Xdp, index).unwrap());
    let reason = refused(&hosts, "socket", "count", "");
    holds(
        &reason,
        &["host b", "attach an XDP program on vb", "another XDP program is attached", "bpftool net"],
    );
    assert!(programs_of(&hosts.b, "vb"), "the other's program was taken off");
    drop(link);

    let socket = hosts.b.inside(|| {
        XdpSocket::open(&Settings { interface: index, receive_frames: 64, ..Settings::default() }).unwrap()
    });
    let reason = refused(&hosts, "socket", "xdp", "");
    holds(
        &reason,
        &[
            "host b",
            "open an AF_XDP socket on vb",
            "another program has an AF_XDP socket on this queue",
            "ss --xdp",
        ],
    );
    drop(socket);
    assert!(!programs_of(&hosts.b, "vb"));
    // All of this left nothing behind.
    let bench = Bench::new();
    let run = hosts.run(&bench, &workload("socket", "xdp", "packet_rate = \"2 k/s\"\n"), 2);
    assert!(!run.trials.is_empty());
}

#[test]
fn unsupported_features_of_an_interface_are_reported_with_the_remedy() {
    if skipped_without_root() {
        return;
    }
    let hosts = Hosts::on_a_wire();
    let reason = refused(&hosts, "xdp", "xdp", "queues = 3\n");
    holds(&reason, &["open 3 queues of v", "it has 1", "ethtool -L v"]);
    // The other end has neither GRO nor a program, so its driver accepts no redirected frames.
    let reason = refused(&hosts, "kernel", "socket", "");
    holds(
        &reason,
        &["host a", "send with the kernel generator", "on va", "`ndo-xmit`", "ethtool -K PEER gro"],
    );
    // A veth with more transmit queues than its peer has receive queues accepts no program.
    let hosts = Hosts { a: Namespace::new(), b: Namespace::new(), proven: true, arm: String::new() };
    hosts.a.must(&format!(
        "ip link add va numtxqueues 4 type veth peer name vb numrxqueues 1 netns {}",
        hosts.b.path()
    ));
    for (side, name) in [(&hosts.a, "va"), (&hosts.b, "vb")] {
        side.must(&format!("ip link set {name} up"));
    }
    hosts.address();
    let reason = refused(&hosts, "socket", "count", "");
    holds(&reason, &["host b", "attach an XDP program on vb", "as many receive queues as its peer"]);
}

#[test]
fn missing_privilege_and_loopback_are_rejected_with_the_reason() {
    if skipped_without_root() {
        return;
    }
    let bench = Bench::new();
    std::fs::set_permissions(bench.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
    copy_program(env!("CARGO_BIN_EXE_netduel"), bench.path().join("netduel"));
    let unprivileged = "\"setpriv\", \"--reuid=65534\", \"--regid=65534\", \"--clear-groups\", ";
    for (prefix, generator, receiver, words) in [
        (
            unprivileged,
            "socket",
            "count",
            &["host b", "on lo", "not permitted", "CAP_NET_ADMIN and CAP_BPF", "`socket`"][..],
        ),
        (unprivileged, "socket", "xdp", &["host b", "on lo", "not permitted", "CAP_NET_RAW"]),
        ("", "xdp", "socket", &["host a", "is on lo", "no hardware address", "`socket` works everywhere"]),
        ("", "kernel", "socket", &["host a", "is on lo", "no hardware address"]),
    ] {
        let plan = bench.plan(&over_loopback(bench.path(), prefix, &workload(generator, receiver, "")));
        let run = bench.run(["run", plan.to_str().unwrap()]).expect_code(6);
        holds(&reason_of(&run), words);
    }
    bench.assert_nothing_left();
}

/// Two hosts on this machine.
fn over_loopback(folder: &Path, prefix: &str, workload: &str) -> String {
    let folder = folder.display();
    let host = |name: &str| {
        format!(
            "[hosts.{name}]\nlaunch = \"command\"\naddresses = [\"127.0.0.1\"]\n\
             command = [{prefix}\"env\", \"PATH={folder}:/usr/sbin:/usr/bin:/sbin:/bin\", \"HOST={name}\"]\n"
        )
    };
    format!(
        "name = \"loop\"\nquestion = \"q?\"\n{}{}[[arms]]\nname = \"lo\"\nclient = \"a\"\nserver = \"b\"\n{workload}\n\
         [design]\naa = true\nblocks_min = 2\nblocks_max = 2\n",
        host("a"),
        host("b")
    )
}

#[test]
fn every_queue_of_the_direct_path_carries_counted_packets() {
    if skipped_without_root() {
        return;
    }
    let bench = Bench::new();
    let plan = bench.plan(&format!(
        "name = \"queues\"\nquestion = \"q?\"\n[lab]\nrules = 0\nqueues = 3\n[hosts.a]\nlaunch = \"lab\"\n[hosts.b]\nlaunch = \"lab\"\n\
         [[arms]]\nname = \"direct\"\nclient = \"a\"\nserver = \"b\"\ntreatments = [{{ path = \"direct\" }}]\n{}\n\
         [design]\naa = true\nblocks_min = 2\nblocks_max = 2\n",
        // Longer than the time for which the thread of one queue may wait for a core.
        workload("xdp", "xdp", "queues = 2\npacket_rate = \"2 k/s\"\n").replace("200 ms", "1 s")
    ));
    let run = stored(&bench, &bench.run(["run", plan.to_str().unwrap()]));
    for trial in &run.trials {
        let (client, server) = (trial.client.as_ref().unwrap(), trial.server.as_ref().unwrap());
        let counted = |end: &netduel_model::trial::TrialEnd| -> Vec<(u32, u64)> {
            let packets = end.report.packets.as_ref().unwrap();
            assert_eq!(packets.interface, "dir0");
            packets.queues.iter().map(|queue| (queue.queue.unwrap(), queue.packets)).collect()
        };
        let (sent, taken) = (counted(client), counted(server));
        // A packet arrives at the queue with the number of its transmit queue; the third queue has a socket too, and gets no
        // packets.
        assert!(sent.iter().all(|(_, packets)| *packets > 0) && sent.len() == 2, "{sent:?}");
        let total = |all: &[(u32, u64)]| all.iter().map(|(_, packets)| packets).sum::<u64>();
        assert_eq!(total(&sent), client.report.sent.as_ref().unwrap().messages);
        let seen = server.report.datagrams.as_ref().unwrap();
        assert_eq!(total(&taken), seen.unique, "{taken:?}");
        assert_eq!(total(&sent), seen.unique + seen.socket_drops.unwrap_or(0), "{sent:?} {taken:?}");
        for (queue, packets) in &taken {
            assert_eq!(*packets > 0, sent.iter().any(|(number, _)| number == queue), "{sent:?} {taken:?}");
        }
    }
    bench.assert_nothing_left();
}

#[test]
fn offload_treatments_are_undone_after_the_programs_of_both_ends_are_gone() {
    if skipped_without_root() {
        return;
    }
    let off = |interface: &str, end: &str| {
        format!(
            "{{ offload = \"tx-tcp-segmentation\", interface = \"{interface}\", value = \"off\", on = \"{end}\" }}"
        )
    };
    for treatments in [off("va", "client"), off("vb", "server")] {
        let (bench, mut hosts) = (Bench::new(), Hosts::on_a_wire());
        hosts.arm = format!("treatments = [{treatments}]");
        let finished =
            bench.run(hosts.words(&bench, &workload("xdp", "xdp", "packet_rate = \"2 k/s\"\n"), 2));
        assert!(!finished.stderr.contains("not restored"), "{}", finished.stderr);
        assert_eq!(stored(&bench, &finished).trials.len(), 4);
        for (side, interface) in [(&hosts.a, "va"), (&hosts.b, "vb")] {
            let features = side.inside(|| Ethtool::open().unwrap().features(interface).unwrap());
            let tso = features.iter().find(|feature| feature.name == "tx-tcp-segmentation").unwrap();
            assert!(tso.active, "{interface}: {tso:?}");
        }
        bench.assert_nothing_left();
    }
}

#[test]
fn killed_agent_leaves_no_program_on_the_interface() {
    if skipped_without_root() {
        return;
    }
    if std::process::Command::new("ip").arg("-V").output().is_err() {
        return skip("ip (iproute2) is not installed");
    }
    for (generator, receiver) in [("socket", "count"), ("xdp", "xdp"), ("kernel", "count")] {
        let (bench, hosts) = (Bench::new(), Hosts::on_a_wire());
        let long = workload(generator, receiver, "").replace("200 ms", "30 s");
        let under_way = UnderWay::start(bench.netduel(hosts.words(&bench, &long, 2)));
        assert!(until(|| programs_of(&hosts.b, "vb")), "{generator} to {receiver}: no program was attached");
        // The killed agent is not started again.
        signal(under_way.pid(), Signal::STOP);
        signal_those_left(bench.find(&["agent"]), Signal::KILL);
        assert!(until(|| !programs_of(&hosts.b, "vb")), "{generator} to {receiver}: the program has stayed");
        signal(under_way.pid(), Signal::KILL);
        signal(under_way.pid(), Signal::CONT);
        under_way.finish();
        bench.assert_nothing_left();
    }
}
