//! What DPDK's testpmd prints and answers.
use netduel_interop::testpmd::{Forwarded, PromptOutput, Telemetry, Version, without_echo};
use rustix::net::{AddressFamily, SendFlags, Shutdown, SocketFlags, SocketType, send, shutdown, socketpair};

/// The prompt, and the line that is sent.
const PROMPT: &str = "testpmd> ";
const LINE: &str = "stop";
/// Pieces in which output arrives.
const PIECES: usize = 9;
/// Between the messages of an input for telemetry.
const NEXT_MESSAGE: u8 = b'\n';

/// Reads output with prompts, and the forward statistics in it. Answers are the same however their bytes arrive.
pub(crate) fn prompt(bytes: &[u8]) {
    let read = answers(bytes, bytes.len().max(1));
    assert_eq!(
        read,
        answers(bytes, bytes.len() / PIECES + 1),
        "answers depend on the pieces in which they arrive"
    );
    let (answers, rest) = read;
    for answer in answers.iter().chain([&rest]) {
        let text = without_echo(answer, LINE);
        if let Err(error) = Forwarded::parse(text, "22.11.11") {
            assert!(!error.to_string().is_empty(), "an error has a reason");
        }
        if let Some(version) = Version::parse(text) {
            assert_eq!(Version::parse(&format!("DPDK {version}")), Some(version));
        }
    }
}

/// All answers, and the output after them.
fn answers(bytes: &[u8], piece_len: usize) -> (Vec<String>, String) {
    let mut output = PromptOutput::new(PROMPT);
    let mut answers = Vec::new();
    for piece in bytes.chunks(piece_len) {
        output.push(piece);
        answers.extend(std::iter::from_fn(|| output.take_answer()));
    }
    (answers, output.unread())
}

/// Asks a process on a real socket whose greeting and answers are the lines of the input.
pub(crate) fn telemetry(bytes: &[u8]) {
    let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
        .expect("two sockets");
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    for message in bytes.split(|byte| *byte == NEXT_MESSAGE).take(6) {
        // A message that does not fit into the socket is one that was lost.
        let _ = send(&theirs, message, flags);
    }
    // Without further answers the end of the connection is the answer.
    shutdown(&theirs, Shutdown::Write).expect("an open socket");
    let Ok(mut telemetry) = Telemetry::over(ours, u64::MAX) else { return };
    // Each answer is a fact or an error; only a panic is a fault.
    let _ = telemetry.ports(u64::MAX);
    let _ = telemetry.info(0, u64::MAX);
    let _ = telemetry.has_link(0, u64::MAX);
    let _ = telemetry.stats(0, u64::MAX);
    let _ = telemetry.extended(0, u64::MAX);
}
