//! Programs inside a lab.
use std::io::{Read, Write};
use std::process::Stdio;

use crate::bench::{Bench, Standing, Watched, inhabitants, only_child, printed, users};

#[test]
fn exit_codes_and_standard_streams_pass_through() {
    for bench in users().into_iter().filter_map(Bench::new) {
        let lab = Standing::up(&bench, "exec", &["0"]);
        let run = |script: &str| bench.inside(&lab.name, "a", "sh", &["-c", script]);
        assert_eq!(run("exit 7").status().unwrap().code(), Some(7));
        assert_eq!(run("kill -9 $$").status().unwrap().code(), Some(137));
        let output = run("echo out; echo err >&2").output().unwrap();
        assert_eq!((output.stdout.as_slice(), output.stderr.as_slice()), (&b"out\n"[..], &b"err\n"[..]));
        let mut cat = run("cat").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        cat.stdin.take().unwrap().write_all(b"through the lab").unwrap();
        assert_eq!(printed(&cat.wait_with_output().unwrap()), "through the lab");
    }
}

#[test]
fn pipe_closes_when_the_program_closes_it() {
    for bench in users().into_iter().filter_map(Bench::new) {
        let lab = Standing::up(&bench, "pipe", &["0"]);
        // The wrapper holds its own standard output, so standard error of the program uses the same pipe.
        let mut child = bench
            .inside(&lab.name, "a", "sh", &["-c", "echo last; exec sleep 1000"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut output = child.stdout.take().unwrap();
        let mut line = [0; 5];
        output.read_exact(&mut line).unwrap();
        // The program is killed with its wrapper; afterwards no process holds the pipe.
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(output.read(&mut line).unwrap(), 0);
        // It was reaped: a zombie left to the machine's pid 1 would keep the lab from ending.
        let keeper = bench.status(&lab.name)["keeper_pid"].as_i64().unwrap();
        let (init, networks) = (only_child(i32::try_from(keeper).unwrap()), bench.networks(&lab.name));
        bench.text(["down", &lab.name]);
        assert!(!std::path::Path::new(&format!("/proc/{init}")).exists());
        assert_eq!(inhabitants(&networks), Vec::<i32>::new());
    }
}

#[test]
fn program_sees_its_host_only() {
    for bench in users().into_iter().filter_map(Bench::new) {
        let lab = Standing::up(&bench, "sees", &["0"]);
        let run = |host: &str, program: &str, words: &[&str]| {
            printed(&bench.inside(&lab.name, host, program, words).output().unwrap())
        };
        assert_eq!(run("b", "uname", &["-n"]).trim(), "b");
        let mut interfaces: Vec<String> =
            run("h1", "ls", &["/sys/class/net"]).split_whitespace().map(str::to_owned).collect();
        interfaces.sort();
        assert_eq!(interfaces, ["lo", "nic0", "pf0", "pf1", "vsw0", "vsyn", "vvf", "wire"]);
        let first = run("a", "cat", &["/proc/1/comm"]);
        assert_eq!(first.trim(), "netduel-lab");
        assert_eq!(run("a", "id", &["-u"]).trim(), "0");
    }
}

#[test]
fn missing_program_is_named_in_the_error() {
    for bench in users().into_iter().filter_map(Bench::new) {
        let lab = Standing::up(&bench, "missing", &["0"]);
        let output = bench.inside(&lab.name, "a", "no-such-program", &[]).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && stderr.contains("no-such-program"), "{stderr}");
    }
}

#[test]
fn orphans_are_reaped() {
    for bench in users().into_iter().filter_map(Bench::new) {
        let lab = Standing::up(&bench, "orphans", &["0"]);
        // The inner shell ends at once; its child becomes pid 1's child, ends with its input, and must be reaped.
        let mut child = bench
            .inside(&lab.name, "a", "sh", &["-c", "exec 3<&0; (cat <&3 >/dev/null & echo $!)"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut pid = String::new();
        let input = child.stdin.take();
        child.stdout.take().unwrap().read_to_string(&mut pid).unwrap();
        assert!(child.wait().unwrap().success());
        let keeper = bench.status(&lab.name)["keeper_pid"].as_i64().unwrap();
        let init = only_child(i32::try_from(keeper).unwrap());
        let orphan = Watched::new(only_child(init));
        drop(input);
        // A pidfd becomes readable when the process has ended; the process id disappears when it is reaped.
        orphan.wait();
        let gone = format!("while test -e /proc/{}/stat; do :; done", pid.trim());
        assert!(bench.inside(&lab.name, "a", "sh", &["-c", &gone]).status().unwrap().success());
    }
}
