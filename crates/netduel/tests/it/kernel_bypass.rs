//! Packets by kernel bypass where they cannot be: what is said, with the real program on interfaces of the test's own, and that
//! nothing stays on an interface when an agent is killed.
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use netduel_sys::bpf::{Attach, Code, Link, Program, ProgramKind};
use netduel_sys::xdp::{Settings, XdpSocket};
use rustix::process::Signal;

use crate::support::{Bench, Finished, UnderWay, signal, skip, until};
use crate::truth::bed::{Hosts, Namespace, skipped_without_root, stored, turn};

/// Of `enum xdp_action` (include/uapi/linux/bpf.h).
const XDP_PASS: i32 = 2;

fn workload(generator: &str, receiver: &str, more: &str) -> String {
    format!(
        "[[workloads]]\nname = \"w\"\ntype = \"pps\"\ngenerator = \"{generator}\"\nreceiver = \"{receiver}\"\nduration = \"200 ms\"\n\
         warmup = \"0 ms\"\ncooldown = \"0 ms\"\n{more}"
    )
}

/// Runs it on the hosts, sees that no trial counts, and returns what was said of the first.
#[track_caller]
fn refused(hosts: &Hosts, generator: &str, receiver: &str, more: &str) -> String {
    let bench = Bench::new();
    let run = bench.run(hosts.words(&bench, &workload(generator, receiver, more), 2)).expect_code(6);
    bench.assert_nothing_left();
    said(&run)
}

/// What a run said of its first trial that failed.
#[track_caller]
fn said(run: &Finished) -> String {
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
fn an_interface_that_another_program_holds_is_left_to_it_with_its_name() {
    if skipped_without_root() {
        return;
    }
    let _turn = turn();
    let hosts = Hosts::on_a_wire();
    let index = hosts.b.index("vb");
    let mut code = Code::new();
    code.exit_with(XDP_PASS);
    let program = Program::load(ProgramKind::Xdp, "another", &code).unwrap();
    let link = hosts.b.inside(|| Link::attach(&program, Attach::Xdp, index).unwrap());
    let told = refused(&hosts, "socket", "count", "");
    holds(
        &told,
        &["host b", "attach an XDP program on vb", "another XDP program is attached", "bpftool net"],
    );
    assert!(programs_of(&hosts.b, "vb"), "the other's program was taken off");
    drop(link);

    let socket = hosts.b.inside(|| {
        XdpSocket::open(&Settings { interface: index, receive_frames: 64, ..Settings::default() }).unwrap()
    });
    let told = refused(&hosts, "socket", "xdp", "");
    holds(
        &told,
        &[
            "host b",
            "open an AF_XDP socket on vb",
            "another program has an AF_XDP socket on this queue",
            "ss --xdp",
        ],
    );
    drop(socket);
    assert!(!programs_of(&hosts.b, "vb"));
    // Nothing of all that has stayed.
    let bench = Bench::new();
    let run = hosts.run(&bench, &workload("socket", "xdp", "packet_rate = \"2 k/s\"\n"), 2);
    assert!(!run.trials.is_empty());
}

#[test]
fn what_an_interface_cannot_is_said_with_what_to_do() {
    if skipped_without_root() {
        return;
    }
    let _turn = turn();
    let hosts = Hosts::on_a_wire();
    let told = refused(&hosts, "xdp", "xdp", "queues = 3\n");
    holds(&told, &["open 3 queues of v", "it has 1", "ethtool -L v"]);
    // The other end has neither GRO nor a program: its driver hands nothing over that others make.
    let told = refused(&hosts, "kernel", "socket", "");
    holds(&told, &["host a", "send with the kernel generator", "on va", "`ndo-xmit`", "ethtool -K PEER gro"]);
    // With more queues to send by than its other end has to receive by, a veth takes no program.
    let hosts = Hosts { a: Namespace::new(), b: Namespace::new(), proven: true, arm: String::new() };
    hosts.a.must(&format!(
        "ip link add va numtxqueues 4 type veth peer name vb numrxqueues 1 netns {}",
        hosts.b.path()
    ));
    for (side, name) in [(&hosts.a, "va"), (&hosts.b, "vb")] {
        side.must(&format!("ip link set {name} up"));
    }
    hosts.address();
    let told = refused(&hosts, "socket", "count", "");
    holds(&told, &["host b", "attach an XDP program on vb", "as many receive queues as its peer"]);
}

#[test]
fn a_host_without_privilege_is_told_which_it_needs_and_the_loopback_that_it_has_no_frames() {
    if skipped_without_root() {
        return;
    }
    let bench = Bench::new();
    std::fs::set_permissions(bench.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
    std::fs::copy(env!("CARGO_BIN_EXE_netduel"), bench.path().join("netduel")).unwrap();
    let nobody = "\"setpriv\", \"--reuid=65534\", \"--regid=65534\", \"--clear-groups\", ";
    for (prefix, generator, receiver, words) in [
        (
            nobody,
            "socket",
            "count",
            &["host b", "on lo", "not permitted", "CAP_NET_ADMIN and CAP_BPF", "`socket`"][..],
        ),
        (nobody, "socket", "xdp", &["host b", "on lo", "not permitted", "CAP_NET_RAW"]),
        ("", "xdp", "socket", &["host a", "is on lo", "no hardware address", "`socket` works everywhere"]),
        ("", "kernel", "socket", &["host a", "is on lo", "no hardware address"]),
    ] {
        let plan = bench.plan(&over_loopback(bench.path(), prefix, &workload(generator, receiver, "")));
        let run = bench.run(["run", plan.to_str().unwrap()]).expect_code(6);
        holds(&said(&run), words);
    }
    bench.assert_nothing_left();
}

/// Two hosts that are this machine.
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
fn each_queue_of_the_direct_path_carries_packets_and_is_counted() {
    if skipped_without_root() {
        return;
    }
    let _turn = turn();
    let bench = Bench::new();
    let plan = bench.plan(&format!(
        "name = \"queues\"\nquestion = \"q?\"\n[lab]\nrules = 0\nqueues = 3\n[hosts.a]\nlaunch = \"lab\"\n[hosts.b]\nlaunch = \"lab\"\n\
         [[arms]]\nname = \"direct\"\nclient = \"a\"\nserver = \"b\"\ntreatments = [{{ path = \"direct\" }}]\n{}\n\
         [design]\naa = true\nblocks_min = 2\nblocks_max = 2\n",
        workload("xdp", "xdp", "queues = 2\npacket_rate = \"10 k/s\"\n")
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
        // What leaves by a queue arrives by the one of the same number; the third has a socket too, and nothing comes there.
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
fn a_killed_agent_leaves_no_program_on_the_interface() {
    if skipped_without_root() {
        return;
    }
    if std::process::Command::new("ip").arg("-V").output().is_err() {
        return skip("ip (iproute2) is not installed");
    }
    let _turn = turn();
    for (generator, receiver) in [("socket", "count"), ("xdp", "xdp"), ("kernel", "count")] {
        let (bench, hosts) = (Bench::new(), Hosts::on_a_wire());
        let long = workload(generator, receiver, "").replace("200 ms", "30 s");
        let under_way = UnderWay::start(bench.netduel(hosts.words(&bench, &long, 2)));
        assert!(until(|| programs_of(&hosts.b, "vb")), "{generator} to {receiver}: no program was attached");
        // Nobody starts another agent in the place of the one that is killed.
        signal(under_way.pid(), Signal::STOP);
        for agent in bench.find(&["agent"]) {
            signal(agent, Signal::KILL);
        }
        assert!(until(|| !programs_of(&hosts.b, "vb")), "{generator} to {receiver}: the program has stayed");
        signal(under_way.pid(), Signal::KILL);
        signal(under_way.pid(), Signal::CONT);
        under_way.finish();
        bench.assert_nothing_left();
    }
}
