//! Another user of this machine, who may bind every name in the abstract namespace (unix(7)), blocks no lab and no run.
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use netduel_test_support::{NewNamespace, skip};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, listen, socket_with};
use rustix::process::{Signal, Uid};
use rustix::thread::set_thread_res_uid;

use crate::serve::Server;
use crate::support::{Bench, Finished, LATENCY, UnderWay, signal};

/// `nobody`, a user without any right.
const STRANGER: u32 = 65534;

/// Listening sockets with these names, of another user; `None` where this user cannot act as another one.
fn strangers(kind: SocketType, names: &[String]) -> Option<Vec<OwnedFd>> {
    let stranger = Uid::from_raw(STRANGER);
    set_thread_res_uid(stranger, stranger, Uid::ROOT).ok()?;
    let sockets = names.iter().enumerate().map(|(index, name)| {
        let socket = socket_with(AddressFamily::UNIX, kind, SocketFlags::CLOEXEC, None).unwrap();
        bind(&socket, &SocketAddrUnix::new_abstract_name(name.as_bytes()).unwrap()).unwrap();
        // The kernel records the user of the calling thread. The queue of the second one is full after one connection.
        listen(&socket, if index == 1 { 0 } else { 64 }).unwrap();
        socket
    });
    let sockets = sockets.collect();
    set_thread_res_uid(Uid::ROOT, Uid::ROOT, Uid::ROOT).unwrap();
    Some(sockets)
}

fn alone(test: &str, body: impl FnOnce()) {
    NewNamespace { prepare: "ip link set lo up", ..NewNamespace::default() }.run(test, body);
}

const NO_OTHER_USER: &str = "root is needed to act as another user";

#[test]
fn names_bound_by_another_user_do_not_block_a_lab() {
    alone("strangers::names_bound_by_another_user_do_not_block_a_lab", || {
        let bench = Bench::new();
        let lab = format!("x-{}", std::process::id());
        let prefix = format!("netduel-lab-{}-", rustix::process::geteuid().as_raw());
        let names = [
            format!("{prefix}{lab}"),
            format!("{prefix}{:016x}-{lab}", 0),
            format!("{prefix}{:016x}-{lab}", u64::MAX),
            format!("{prefix}{:016x}-another", 0),
        ];
        let Some(sockets) = strangers(SocketType::SEQPACKET, &names) else { return skip(NO_OTHER_USER) };
        bench.run(["lab", "up", &lab, "--rules", "0"]).expect_code(0);
        let taken = bench.run(["lab", "up", &lab, "--rules", "0"]).expect_code(7);
        assert!(taken.stderr.contains("it is up already"), "{}", taken.stderr);
        let status = bench.run(["lab", "status", "--json"]).expect_code(0).json();
        assert_eq!(status["labs"].as_array().map(Vec::len), Some(1), "{status}");
        assert_eq!(status["labs"][0]["name"], lab, "{status}");
        bench.run(["lab", "path", "--lab", &lab, "accelerated"]).expect_code(0);
        bench.run(["lab", "exec", "--lab", &lab, "a", "--", "true"]).expect_code(0);
        bench.run(["lab", "down", "--all"]).expect_code(0);
        let none = bench.run(["lab", "status"]).expect_code(0);
        assert!(none.stdout.contains("no lab is up"), "{}", none.stdout);
        drop(sockets);
        bench.assert_nothing_left();
    });
}

/// Two equal arms from an agent in this network namespace to a paired server.
fn plan(server: &Server, blocks: &str) -> PathBuf {
    let arm = |name: &str| format!("[[arms]]\nname = \"{name}\"\nclient = \"a\"\nserver = \"b\"\n");
    server.bench.plan(&format!(
        "name = \"locked\"\nquestion = \"Which is faster?\"\n[hosts.a]\nlaunch = \"local\"\n[hosts.b]\nlaunch = \"paired\"\n\
         serve = \"{0}\"\naddresses = [\"{1}\"]\n{2}{3}{LATENCY}\n[design]\n{blocks}\n",
        server.address,
        server.address.ip(),
        arm("one"),
        arm("two"),
    ))
}

#[test]
fn lock_name_bound_by_another_user_does_not_block_a_run() {
    alone("strangers::lock_name_bound_by_another_user_does_not_block_a_run", || {
        let names = ["netduel-host-lock".to_owned()];
        let Some(sockets) = strangers(SocketType::STREAM, &names) else { return skip(NO_OTHER_USER) };
        let server = Server::start(&[]);
        server.bench.run(["pair", &server.string]).expect_code(0);
        let run = |blocks: &str| {
            let plan = plan(&server, blocks);
            server.bench.netduel(["run", plan.to_str().unwrap()])
        };
        let mut first = UnderWay::start(run("blocks_min = 1000\nblocks_max = 1000"));
        first.wait_for("trial ");
        // The lock itself holds, whether its name is bound by a stranger or free.
        let refuse = || {
            let refused = Finished::from(run("blocks_min = 2").output().unwrap()).expect_code(4);
            assert!(refused.stderr.contains("this host is in use by"), "{}", refused.stderr);
        };
        refuse();
        drop(sockets);
        refuse();
        signal(first.pid(), Signal::INT);
        first.finish().expect_code(130);
        let last = Finished::from(run("blocks_min = 2\nblocks_max = 2").output().unwrap());
        assert!(matches!(last.code, Some(0 | 6)), "{:?}: {}", last.code, last.stderr);
        server.end();
    });
}
