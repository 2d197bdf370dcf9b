//! One testpmd from its start to its end: runtime folder, prompt, telemetry.
use std::path::PathBuf;
use std::time::Duration;

use netduel_sys::clock::{monotonic_ns, sleep_until};
use netduel_sys::random;

use super::command::{Command, Cores, Mode};
use super::deadline;
use super::error::{DpdkError, last_words};
use super::forward::Forwarded;
use super::prompt::Prompt;
use super::telemetry::{PortInfo, PortStats, Telemetry};
use super::version::{Version, rdma_core};

/// Its prompt.
const PROMPT: &str = "testpmd> ";
/// The only port.
const PORT: u16 = 0;
/// Time limit of a response. Stopping waits for every core.
const ANSWER: Duration = Duration::from_secs(10);
/// Time limit of the link, and its poll interval: there is no notification of its change.
const LINK: Duration = Duration::from_secs(10);
const LINK_LOOK_NS: u64 = 10_000_000;
/// Time limit of the end: ports are stopped and memory is freed, which took more than 15 s on a machine with a load of 26.
const END: Duration = Duration::from_secs(60);

/// A testpmd at its prompt. Dropping it kills it and removes its files.
#[derive(Debug)]
pub struct Testpmd {
    prompt: Prompt,
    telemetry: Telemetry,
    mode: Mode,
    version: Version,
    rdma_core: Option<String>,
    info: PortInfo,
    words: Vec<String>,
    cores: Cores,
    /// Dropped last: it contains the socket.
    _folder: Folder,
}

/// DPDK's runtime folder of a process; removed with its content.
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
        // A failure leaves some hundred kilobytes in a folder for runtime files.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl Testpmd {
    /// Starts it and waits for its prompt. The calling thread must outlive it: the kernel kills testpmd with the thread.
    ///
    /// # Errors
    /// When the program does not exist, does not reach its prompt and answer within `within`, is too old, or does not have exactly one port
    /// with the queues of its command line.
    pub fn start(command: &Command, within: Duration) -> Result<Self, DpdkError> {
        const DOING: &str = "bring testpmd to its prompt";
        let folder = Folder::new()?;
        let words = command.words();
        // DPDK puts its files below this folder (rte_eal_get_runtime_dir()): it is private to this process and removed at the
        // end.
        let mut process = std::process::Command::new(&command.program);
        process.args(&words).env("RUNTIME_DIRECTORY", &folder.0).env("LC_ALL", "C");
        let deadline_ns = deadline::after(within);
        let mut prompt = Prompt::start(&mut process, PROMPT)?;
        let text = prompt.until_prompt(DOING, within)?;
        let socket = folder.0.join("dpdk").join(&command.prefix);
        let mut telemetry =
            Telemetry::connect(&socket, deadline_ns).map_err(|error| prompt.explain(DOING, error))?;
        let version = Version::parse(&telemetry.version)
            .ok_or_else(|| DpdkError::UnknownVersion { words: telemetry.version.clone() })?;
        if version < Version::OLDEST {
            return Err(DpdkError::TooOld { found: version });
        }
        // The drivers are loaded now. Without access to the maps of the process the version is unknown.
        let maps = std::fs::read_to_string(format!("/proc/{}/maps", prompt.pid()));
        let rdma_core = rdma_core(&maps.unwrap_or_default());
        let ports = telemetry.ports(deadline_ns).map_err(|error| prompt.explain(DOING, error))?;
        if ports != [PORT] {
            let why = format!(
                "it has the ports {ports:?}, and one with the number 0 is expected; see which devices it took: {}",
                last_words(&text)
            );
            return Err(DpdkError::Port { why });
        }
        let info = telemetry.info(PORT, deadline_ns).map_err(|error| prompt.explain(DOING, error))?;
        if info.dev_started == Some(0) {
            return Err(DpdkError::Refused { doing: DOING, text: last_words(&text) });
        }
        if (info.nb_rx_queues, info.nb_tx_queues) != (command.queues, command.queues) {
            let why = format!(
                "{} has {} receive and {} transmit queues where {} of each are required",
                info.name, info.nb_rx_queues, info.nb_tx_queues, command.queues
            );
            return Err(DpdkError::Port { why });
        }
        let words = std::iter::once(command.program.clone()).chain(words).collect();
        let (mode, cores) = (command.mode, command.cores.clone());
        Ok(Self { prompt, telemetry, mode, version, rdma_core, info, words, cores, _folder: folder })
    }

    /// Its version.
    pub fn version(&self) -> Version {
        self.version
    }

    /// The version of rdma-core whose library it has loaded.
    pub fn rdma_core(&self) -> Option<&str> {
        self.rdma_core.as_deref()
    }

    /// Its port.
    pub fn info(&self) -> &PortInfo {
        &self.info
    }

    /// Its forwarding mode.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// Its command line.
    pub fn words(&self) -> &[String] {
        &self.words
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.prompt.pid()
    }

    /// The counters of its port. If it has ended, the error contains how, and its last output.
    ///
    /// # Errors
    /// When it has ended or does not answer.
    pub fn stats(&mut self) -> Result<PortStats, DpdkError> {
        self.stats_by(u64::MAX)
    }

    /// As [`Self::stats`], by a deadline on the monotonic clock.
    ///
    /// # Errors
    /// As [`Self::stats`].
    pub fn stats_by(&mut self, deadline_ns: u64) -> Result<PortStats, DpdkError> {
        // What a driver logs during the traffic: the last of it may be the reason of an end.
        self.prompt.take_in();
        let stats = self.telemetry.stats(PORT, deadline_ns);
        stats.map_err(|error| self.prompt.explain("read its counters", error))
    }

    /// The driver's own counters that are not zero.
    ///
    /// # Errors
    /// As [`Self::stats`].
    pub fn extended(&mut self) -> Result<std::collections::BTreeMap<String, u64>, DpdkError> {
        let all = self.telemetry.extended(PORT, u64::MAX);
        let mut all = all.map_err(|error| self.prompt.explain("read its counters", error))?;
        all.retain(|_, count| *count > 0);
        Ok(all)
    }

    /// Starts forwarding. Returns the forwarding cores, each with its queues. It needs a link: see [`Self::wait_for_link`].
    ///
    /// # Errors
    /// When it does not confirm by the deadline on the monotonic clock.
    pub fn forward(&mut self, deadline_ns: u64) -> Result<Vec<ForwardingCore>, DpdkError> {
        const DOING: &str = "start the traffic";
        let text = self.prompt.ask("start", DOING, deadline::left(deadline_ns).min(ANSWER))?;
        if !text.contains("packet forwarding - ports=") {
            return Err(DpdkError::Refused { doing: DOING, text: last_words(&text) });
        }
        Ok(forwarding_cores(&text, &self.cores))
    }

    /// Waits for the link of its port: testpmd does not use the queues of a port without a link for the whole run.
    ///
    /// # Errors
    /// When there is no link by the deadline on the monotonic clock, or for 10 s.
    pub fn wait_for_link(&mut self, deadline_ns: u64) -> Result<(), DpdkError> {
        const DOING: &str = "read its link";
        let within = deadline::left(deadline_ns).min(LINK);
        let deadline_ns = deadline::after(within);
        loop {
            self.prompt.take_in();
            let has_link = self.telemetry.has_link(PORT, deadline_ns);
            let has_link = has_link.map_err(|error| self.prompt.explain(DOING, error))?;
            let now_ns = monotonic_ns();
            if has_link {
                return Ok(());
            }
            if now_ns > deadline_ns {
                let why = format!(
                    "the link of {} did not come up within {:.1} s: see its cable, its other end, or the other process of a memif; the last \
                     output of testpmd: {}",
                    self.info.name,
                    within.as_secs_f64(),
                    self.prompt.last_output()
                );
                return Err(DpdkError::Port { why });
            }
            sleep_until(now_ns + LINK_LOOK_NS);
        }
    }

    /// Stops it, and parses its forward statistics.
    ///
    /// # Errors
    /// When it does not stop, or its output is not understood.
    pub fn halt(&mut self) -> Result<Forwarded, DpdkError> {
        let text = self.prompt.ask("stop", "stop the traffic", ANSWER)?;
        Forwarded::parse(&text, &self.version.to_string())
    }

    /// Ends it.
    ///
    /// # Errors
    /// When it does not end, or ends with a failure.
    pub fn quit(mut self) -> Result<(), DpdkError> {
        self.prompt.quit("quit", "end testpmd", END).map(drop)
    }
}

/// A forwarding core.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForwardingCore {
    /// Its number on the host.
    pub core: u16,
    /// Its queues.
    pub queues: Vec<u16>,
}

/// Parses the output of `start`: each core with a line for each of its streams. testpmd assigns consecutive queues, and decides
/// how many each core gets (`setup_fwd_config_of_each_lcore()`).
fn forwarding_cores(text: &str, cores: &Cores) -> Vec<ForwardingCore> {
    let mut found: Vec<ForwardingCore> = Vec::new();
    for line in text.lines() {
        if let Some(own) = forwarding_core(line) {
            found.push(ForwardingCore { core: cores.of_host(own), queues: Vec::new() });
        } else if let (Some(last), Some(queue)) = (found.last_mut(), stream_queue(line)) {
            last.queues.push(queue);
        }
    }
    found
}

/// `RX P=0/Q=3 (socket 0) -> TX P=0/Q=3 (socket 0) peer=02:00:00:00:00:00`: both are the same at an end that only sends or receives.
fn stream_queue(line: &str) -> Option<u16> {
    let (_, rest) = line.trim().strip_prefix("RX P=")?.split_once("/Q=")?;
    rest.split_whitespace().next()?.parse().ok()
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
    fn forwarding_cores_are_parsed() {
        assert_eq!(forwarding_core("Logical Core 13 (socket 0) forwards packets on 2 streams:"), Some(13));
        assert_eq!(
            forwarding_core("  RX P=0/Q=0 (socket 0) -> TX P=0/Q=0 (socket 0) peer=02:00:00:00:00:09"),
            None
        );
    }

    /// Output of DPDK 22.11 with three queues on two cores.
    const STARTED: &str = "\
txonly packet forwarding - ports=1 - cores=2 - streams=3 - NUMA support enabled, MP allocation mode: native
Logical Core 3 (socket 0) forwards packets on 1 streams:
  RX P=0/Q=0 (socket 0) -> TX P=0/Q=0 (socket 0) peer=02:00:00:00:00:00
Logical Core 5 (socket 0) forwards packets on 2 streams:
  RX P=0/Q=1 (socket 0) -> TX P=0/Q=1 (socket 0) peer=02:00:00:00:00:00
  RX P=0/Q=2 (socket 0) -> TX P=0/Q=2 (socket 0) peer=02:00:00:00:00:00

  txonly packet forwarding packets/burst=32
";

    #[test]
    fn queues_of_each_core_are_parsed() {
        let cores = |main, forwarding| Cores { main, forwarding };
        let read = |text: &str, cores: &Cores| -> Vec<_> {
            forwarding_cores(text, cores).into_iter().map(|one| (one.core, one.queues)).collect()
        };
        assert_eq!(read(STARTED, &cores(0, vec![3, 5])), [(3, vec![0]), (5, vec![1, 2])]);
        // If the core of the prompt forwards too, testpmd uses its own numbers.
        let own = STARTED.replace("Core 3", "Core 1").replace("Core 5", "Core 2");
        assert_eq!(read(&own, &cores(7, vec![7, 9])), [(7, vec![0]), (9, vec![1, 2])]);
    }
}
