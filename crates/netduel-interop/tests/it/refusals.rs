//! Errors of testpmd and its unexpected end are reported with its own output.
use std::sync::mpsc::channel;
use std::time::Duration;

use netduel_interop::dpdk_host::HugePages;
use netduel_interop::testpmd::{Command, Device, DpdkError, Memory, Mode, Testpmd};
use netduel_model::units::Nanos;
use netduel_sys::clock;
use netduel_test_support::{skip, write_program};
use rustix::process::{Pid, Signal, kill_process};

use crate::traffic::{SOON, begin, command};
use crate::wire::{Wire, able};

fn null() -> Command {
    command(Mode::TransmitOnly, Device::Null, 1)
}

fn refusal(command: &Command) -> String {
    Testpmd::start(command, SOON).expect_err("it is not refused").to_string()
}

#[test]
fn killed_testpmd_is_reported_during_traffic() {
    if !able() {
        return;
    }
    let testpmd = Testpmd::start(&null(), SOON).unwrap();
    let pid = Pid::from_raw(testpmd.pid().cast_signed()).unwrap();
    let (done, is_done) = channel();
    let running = begin(testpmd, Nanos(3_600_000_000_000), move || done.send(()).unwrap());
    kill_process(pid, Signal::KILL).unwrap();
    is_done.recv().unwrap();
    let error = running.join().unwrap_err().to_string();
    assert!(error.contains("testpmd ended with signal 9"), "{error}");
}

#[test]
fn missing_interface_is_reported_with_testpmds_output() {
    if !able() {
        return;
    }
    let error =
        refusal(&command(Mode::TransmitOnly, Device::AfPacket { interface: "nd-none".to_owned() }, 1));
    assert!(
        error.contains("testpmd ended with exit code 1") && error.contains("there is no such interface"),
        "{error}"
    );
}

#[test]
fn failed_port_is_rejected_even_if_testpmd_shows_its_prompt() {
    let Some(wire) = Wire::new() else { return };
    // A veth does not accept an XDP program while its peer may send frames that the program cannot handle.
    wire.near.run(|| crate::wire::ip("link set va mtu 9000"));
    let error = wire
        .far
        .run(|| refusal(&command(Mode::ReceiveOnly, Device::AfXdp { interface: "vb".to_owned() }, 1)));
    assert!(error.contains("testpmd answered") && error.contains("an MTU of 3500 or less"), "{error}");
}

#[test]
fn more_queues_than_the_interface_has_are_rejected() {
    let Some(wire) = Wire::new() else { return };
    let error = wire
        .far
        .run(|| refusal(&command(Mode::ReceiveOnly, Device::AfXdp { interface: "vb".to_owned() }, 64)));
    assert!(error.starts_with("bring testpmd to its prompt") || error.starts_with("use port 0"), "{error}");
}

#[test]
fn missing_huge_pages_are_reported_with_the_remedy() {
    if !able() {
        return;
    }
    let pages = || HugePages::read("/sys".as_ref(), None).unwrap();
    // Those that a test of the whole program reserves are released at the end of its run.
    let deadline = clock::monotonic_ns() + SOON.as_nanos() as u64;
    while pages().free > 0 && clock::monotonic_ns() < deadline {
        clock::sleep_until(clock::monotonic_ns() + 50_000_000);
    }
    let before = pages();
    if before.free > 0 {
        return skip(format!("{} huge pages are free", before.free));
    }
    match Testpmd::start(&Command { memory: Memory::Huge, ..null() }, SOON) {
        Err(error) => assert!(error.to_string().contains("nr_hugepages"), "{error}"),
        // By such a test meanwhile.
        Ok(_) => assert!(pages().total > before.total, "it started without a huge page"),
    }
}

#[test]
fn unknown_options_are_reported_without_the_usage_text() {
    if !able() {
        return;
    }
    let error = refusal(&Command { further: vec!["--no-such-word".to_owned()], ..null() });
    assert!(error.contains("--no-such-word") && error.len() < 1500, "{error}");
}

/// A program that shows the prompt and reports a given version.
fn impostor(folder: &std::path::Path, greeting: &str) -> Command {
    let path = folder.join("testpmd");
    let script = format!(
        "#!/usr/bin/env python3
import os, socket, sys
prefix = next(word.split('=')[1] for word in sys.argv if word.startswith('--file-prefix='))
folder = os.path.join(os.environ['RUNTIME_DIRECTORY'], 'dpdk', prefix)
os.makedirs(folder)
listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
listener.bind(os.path.join(folder, 'dpdk_telemetry.v2'))
listener.listen(1)
sys.stdout.write('testpmd> ')
sys.stdout.flush()
peer, _ = listener.accept()
peer.send(b'''{greeting}''')
peer.recv(100)
"
    );
    write_program(&path, script);
    Command { program: path.to_string_lossy().into_owned(), ..null() }
}

#[test]
fn unknown_version_is_rejected_and_quoted() {
    if std::process::Command::new("python3").arg("-V").output().is_err() {
        return skip("python3, which plays testpmd, is not installed");
    }
    let folder = tempfile::tempdir().unwrap();
    for (greeting, quoted) in [
        (r#"{"version":"PMD next","pid":1}"#, "`PMD next`"),
        (r#"{"version":"DPDK 19.11.3","pid":1}"#, "22.11.0 or newer is needed"),
        ("hello", "`hello` has an unknown format"),
    ] {
        let error = refusal(&impostor(folder.path(), greeting));
        assert!(error.contains(quoted), "{greeting}: {error}");
    }
}

#[test]
fn testpmd_without_a_prompt_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("testpmd");
    write_program(&path, "#!/bin/sh\necho EAL: still probing\nexec sleep 3600\n");
    let slow = Command { program: path.to_string_lossy().into_owned(), ..null() };
    // It may wait for a core before it prints.
    let is_quoted = [1, 10, 60].into_iter().any(|seconds| {
        let error = Testpmd::start(&slow, Duration::from_secs(seconds)).unwrap_err();
        assert!(matches!(&error, DpdkError::Silent { .. }), "{error}");
        error.to_string().contains("EAL: still probing")
    });
    assert!(is_quoted);
}
