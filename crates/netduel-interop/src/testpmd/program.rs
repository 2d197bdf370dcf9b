//! One testpmd from its start to its end: its folder, its prompt, its telemetry.
use std::path::PathBuf;
use std::time::Duration;

use netduel_sys::clock::{monotonic_ns, sleep_until};
use netduel_sys::random;

use super::command::{Command, Mode};
use super::error::{DpdkError, last_words};
use super::forward::Forwarded;
use super::prompt::Prompt;
use super::telemetry::{PortInfo, PortStats, Telemetry};
use super::version::Version;

/// How it asks for a line.
const PROMPT: &str = "testpmd> ";
/// The one port.
const PORT: u16 = 0;
/// How long an answer may take. Stopping waits for every core.
const ANSWER: Duration = Duration::from_secs(10);
/// How long the link may take, and how often it is looked at: nothing tells of its change.
const LINK: Duration = Duration::from_secs(10);
const LINK_LOOK_NS: u64 = 10_000_000;
/// How long ending may take: ports are stopped and memory is given back.
const END: Duration = Duration::from_secs(15);

/// A testpmd that has come to its prompt. Dropping it kills it and removes its files.
#[derive(Debug)]
pub struct Testpmd {
    prompt: Prompt,
    telemetry: Telemetry,
    mode: Mode,
    version: Version,
    info: PortInfo,
    words: Vec<String>,
    /// Goes last: it holds the socket's folder.
    _folder: Folder,
}

/// A folder of a process in which DPDK keeps what it shares; removed with what is in it.
#[derive(Debug)]
struct Folder(PathBuf);

impl Folder {
    fn new() -> Result<Self, DpdkError> {
        let failed =
            |error: std::io::Error| DpdkError::system("make a folder for the files of testpmd", error);
        let bytes = random::bytes16().map_err(failed)?;
        let name = format!("{:08x}", u128::from_ne_bytes(bytes) as u32);
        // Short, because the path of a socket is at most 107 bytes.
        let path = std::env::temp_dir().join(format!("netduel-dpdk-{name}"));
        std::os::unix::fs::DirBuilderExt::mode(&mut std::fs::DirBuilder::new(), 0o700)
            .create(&path)
            .map_err(failed)?;
        Ok(Self(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // Some hundred kilobytes in a folder for such things, when it fails.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl Testpmd {
    /// Starts it and waits for its prompt. The calling thread must live as long: the kernel kills testpmd with it.
    ///
    /// # Errors
    /// When the program is not there, does not come to its prompt `within` this time, is too old, or has not the one port with the
    /// queues that it was told.
    pub fn start(command: &Command, within: Duration) -> Result<Self, DpdkError> {
        const DOING: &str = "bring testpmd to its prompt";
        let folder = Folder::new()?;
        let words = command.words();
        // DPDK puts its files beneath this folder (rte_eal_get_runtime_dir()): nobody else looks there, and they go with us.
        let mut process = std::process::Command::new(&command.program);
        process.args(&words).env("RUNTIME_DIRECTORY", &folder.0).env("LC_ALL", "C");
        let mut prompt = Prompt::start(&mut process, PROMPT)?;
        let said = prompt.until_prompt(DOING, within)?;
        let socket = folder.0.join("dpdk").join(&command.prefix);
        let mut telemetry = Telemetry::connect(&socket)?;
        let version = Version::parse(&telemetry.version)?;
        if version < Version::OLDEST {
            return Err(DpdkError::TooOld { found: version });
        }
        let ports = telemetry.ports()?;
        if ports != [PORT] {
            let why = format!(
                "it has the ports {ports:?}, and one with the number 0 is expected; see which devices it took: {}",
                last_words(&said)
            );
            return Err(DpdkError::Port { why });
        }
        let info = telemetry.info(PORT)?;
        if info.dev_started == Some(0) {
            return Err(DpdkError::Refused { doing: DOING, said: last_words(&said) });
        }
        if (info.nb_rx_queues, info.nb_tx_queues) != (command.queues, command.queues) {
            let why = format!(
                "{} has {} receive and {} transmit queues where {} of each were asked for",
                info.name, info.nb_rx_queues, info.nb_tx_queues, command.queues
            );
            return Err(DpdkError::Port { why });
        }
        let words = std::iter::once(command.program.clone()).chain(words).collect();
        Ok(Self { prompt, telemetry, mode: command.mode, version, info, words, _folder: folder })
    }

    /// Its version.
    pub fn version(&self) -> Version {
        self.version
    }

    /// Its port.
    pub fn info(&self) -> &PortInfo {
        &self.info
    }

    /// Which end it is.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// The command line that it was started with.
    pub fn words(&self) -> &[String] {
        &self.words
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.prompt.pid()
    }

    /// The counters of its port. When it has ended, the error says how and with which words.
    ///
    /// # Errors
    /// When it has ended or does not answer.
    pub fn stats(&mut self) -> Result<PortStats, DpdkError> {
        self.telemetry.stats(PORT).map_err(|error| self.prompt.explain("read its counters", error))
    }

    /// The driver's own counters that are not zero.
    ///
    /// # Errors
    /// As [`Self::stats`].
    pub fn extended(&mut self) -> Result<std::collections::BTreeMap<String, u64>, DpdkError> {
        let mut all =
            self.telemetry.extended(PORT).map_err(|error| self.prompt.explain("read its counters", error))?;
        all.retain(|_, count| *count > 0);
        Ok(all)
    }

    /// Has it forward. Gives the cores that do, in the order of their streams.
    ///
    /// # Errors
    /// When it does not say that it forwards.
    pub fn forward(&mut self) -> Result<Vec<u16>, DpdkError> {
        const DOING: &str = "start the traffic";
        self.wait_for_link()?;
        let said = self.prompt.ask("start", DOING, ANSWER)?;
        if !said.contains("packet forwarding - ports=") {
            return Err(DpdkError::Refused { doing: DOING, said: last_words(&said) });
        }
        Ok(said.lines().filter_map(forwarding_core).collect())
    }

    /// testpmd leaves out the queues of a port without a link, for as long as it forwards.
    fn wait_for_link(&mut self) -> Result<(), DpdkError> {
        let deadline_ns = monotonic_ns() + LINK.as_nanos() as u64;
        loop {
            let has_link =
                self.telemetry.has_link(PORT).map_err(|error| self.prompt.explain("read its link", error))?;
            let now_ns = monotonic_ns();
            if has_link {
                return Ok(());
            }
            if now_ns > deadline_ns {
                let why = format!(
                    "the link of {} did not come up within {} s: see its cable, its other end, or the other process of a memif",
                    self.info.name,
                    LINK.as_secs()
                );
                return Err(DpdkError::Port { why });
            }
            sleep_until(now_ns + LINK_LOOK_NS);
        }
    }

    /// Has it stop, and reads what it says of what it did.
    ///
    /// # Errors
    /// When it does not stop, or its words are not understood.
    pub fn halt(&mut self) -> Result<Forwarded, DpdkError> {
        let said = self.prompt.ask("stop", "stop the traffic", ANSWER)?;
        Forwarded::parse(&said, &self.version.to_string())
    }

    /// Ends it.
    ///
    /// # Errors
    /// When it does not end, or with a failure.
    pub fn quit(mut self) -> Result<(), DpdkError> {
        self.prompt.quit("quit", "end testpmd", END).map(drop)
    }
}

/// `Logical Core 1 (socket 0) forwards packets on 1 streams:`.
fn forwarding_core(line: &str) -> Option<u16> {
    let rest = line.trim().strip_prefix("Logical Core ")?;
    rest.contains("forwards packets on").then(|| rest.split_whitespace().next()?.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cores_that_forward_are_read_from_its_words() {
        assert_eq!(forwarding_core("Logical Core 13 (socket 0) forwards packets on 2 streams:"), Some(13));
        assert_eq!(
            forwarding_core("  RX P=0/Q=0 (socket 0) -> TX P=0/Q=0 (socket 0) peer=02:00:00:00:00:09"),
            None
        );
    }
}
