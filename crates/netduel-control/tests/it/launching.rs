//! Agents as processes: how they end, and which of their processes remain.
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;
use std::sync::mpsc::{Receiver, channel, sync_channel};
use std::time::Duration;

use netduel_control::launcher::{AgentProcess, Arrival, Ended, Guard};

fn start(script: &str) -> (AgentProcess, Receiver<(u64, Arrival)>) {
    let (sender, arrivals) = sync_channel(64);
    let argv = ["sh", "-c", script].map(str::to_owned);
    (AgentProcess::start("a", &argv, 7, sender).unwrap(), arrivals)
}

/// The exit status of an agent and its last output.
fn ended((ended, _): (Ended, Guard)) -> (Option<ExitStatus>, String) {
    (ended.status, ended.last_words)
}

/// All output until the last process with the standard output has closed it.
fn output(arrivals: &Receiver<(u64, Arrival)>) -> String {
    let mut bytes = Vec::new();
    // Not an expectation: the timeout ends a test that would otherwise hang.
    while let Ok((7, Arrival::Bytes(more))) = arrivals.recv_timeout(Duration::from_secs(60)) {
        bytes.extend(more);
    }
    String::from_utf8(bytes).unwrap()
}

#[test]
fn sent_line_is_read_and_its_answer_received() {
    let (mut agent, arrivals) = start("read line; echo \"got $line\"");
    agent.send("hello\n");
    assert_eq!(output(&arrivals), "got hello\n");
    let (status, words) = ended(agent.end(Duration::from_secs(60)));
    assert!(status.is_some_and(|status| status.success()) && words.is_empty());
}

#[test]
fn agent_cleans_up_after_the_end_of_its_input_and_is_not_killed() {
    let (agent, _arrivals) = start("cat; echo cleaned up >&2; exit 3");
    let (status, words) = ended(agent.end(Duration::from_secs(60)));
    assert_eq!((status.and_then(|status| status.code()), words.as_str()), (Some(3), "cleaned up"));
}

#[test]
fn agent_that_does_not_end_is_killed_with_its_children() {
    let (agent, arrivals) = start("echo last words >&2; echo up; sleep 1000 & wait");
    let first = arrivals.recv_timeout(Duration::from_secs(60));
    assert!(matches!(&first, Ok((7, Arrival::Bytes(bytes))) if bytes == b"up\n"), "{first:?}");
    let (status, words) = ended(agent.end(Duration::ZERO));
    assert_eq!((status.and_then(|status| status.signal()), words.as_str()), (Some(9), "last words"));
    // The sleeping child holds standard output, which closes only when the child ends.
    let last = arrivals.recv_timeout(Duration::from_secs(60));
    assert!(matches!(last, Ok((7, Arrival::End))), "{last:?}");
}

#[test]
fn only_the_last_lines_of_standard_error_are_kept() {
    let script =
        r"i=0; while [ $i -lt 25 ]; do i=$((i + 1)); echo line $i >&2; done; printf 'caf\351 %0500d\n' 0 >&2";
    let (agent, _arrivals) = start(script);
    let (_, words) = ended(agent.end(Duration::from_secs(60)));
    let lines: Vec<&str> = words.lines().collect();
    assert_eq!((lines.len(), lines[0]), (24, "line 3"));
    assert!(lines[23].starts_with("caf\u{fffd} 000") && lines[23].len() < 420, "{}", lines[23]);
}

#[test]
fn agent_that_does_not_read_does_not_block_the_sender() {
    let (mut agent, _arrivals) = start("sleep 1000 & wait");
    let (sent, returned) = channel();
    std::thread::spawn(move || {
        // More than a pipe holds.
        agent.send(&"x".repeat(4 << 20));
        sent.send(agent)
    });
    // Not an expectation: the timeout ends a test that would otherwise hang.
    let agent = returned.recv_timeout(Duration::from_secs(60)).expect("sending waits for a reader");
    let (status, _) = ended(agent.end(Duration::ZERO));
    assert_eq!(status.and_then(|status| status.signal()), Some(9));
}

#[test]
fn queued_lines_are_written_before_the_input_closes() {
    let (mut agent, _arrivals) = start("wc -c >&2");
    agent.send(&"x".repeat(1 << 20));
    agent.send("y");
    let (_, words) = ended(agent.end(Duration::from_secs(60)));
    assert_eq!(words.trim(), ((1 << 20) + 1).to_string());
}

#[test]
fn remaining_processes_of_a_killed_agent_are_awaited() {
    // It has its own session and the agent's standard error, as a guard has, and ends with its input.
    let (gate, holder) = std::io::pipe().unwrap();
    let gate = format!("/proc/{}/fd/{}", std::process::id(), std::os::fd::AsRawFd::as_raw_fd(&gate));
    let script = format!("setsid sh -c 'echo up; exec cat > /dev/null' < {gate} & wait");
    let (agent, arrivals) = start(&script);
    let first = arrivals.recv_timeout(Duration::from_secs(60));
    assert!(matches!(&first, Ok((7, Arrival::Bytes(bytes))) if bytes == b"up\n"), "{first:?}");
    let (ended, guard) = agent.end(Duration::ZERO);
    assert!(!ended.is_over && !guard.has_ended_within(Duration::ZERO), "{ended:?}");
    drop(holder);
    assert!(guard.has_ended_within(Duration::from_secs(60)));
    assert!(guard.has_ended_within(Duration::ZERO), "ended processes stay ended");
}

#[test]
fn process_that_keeps_standard_error_open_does_not_delay_the_end() {
    // Like the master of a persistent ssh connection: it holds the standard error of an ssh that has ended.
    let (gate, holder) = std::io::pipe().unwrap();
    let gate = format!("/proc/{}/fd/{}", std::process::id(), std::os::fd::AsRawFd::as_raw_fd(&gate));
    let script = format!(
        "setsid sh -c 'echo up; exec cat > /dev/null' < {gate} & echo last words >&2; read line; exit 0"
    );
    let (agent, arrivals) = start(&script);
    let first = arrivals.recv_timeout(Duration::from_secs(60));
    assert!(matches!(&first, Ok((7, Arrival::Bytes(bytes))) if bytes == b"up\n"), "{first:?}");
    let (sent, returned) = channel();
    std::thread::spawn(move || sent.send(agent.end(Duration::from_secs(86_400))));
    // Not an expectation: the timeout ends a test that would otherwise wait for the other process.
    let (ended, guard) = returned.recv_timeout(Duration::from_secs(60)).expect("the end is not delayed");
    assert!(ended.is_over && ended.status.is_some_and(|status| status.success()), "{ended:?}");
    assert_eq!(ended.last_words, "last words");
    assert!(!guard.has_ended_within(Duration::ZERO), "the other process was ended");
    drop(holder);
}
