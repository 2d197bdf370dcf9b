//! An agent that follows a script, for the tests of the coordinator: it sends no traffic. Words on its command line select the faults; each
//! request is appended to the file that `SCRIPT_LOG` names.
use std::cell::Cell;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use netduel_control::agent::{Clock, FailureKind, Waker, Work, WorkError, serve};
use netduel_control::protocol::{FromAgent, Recovery, encode};
use netduel_model::data_ports::{ListenAt, PortAnswer, PortNeeds, PortProtocol, ProbeSource, ProbedPort};
use netduel_model::ids::{RunId, Token};
use netduel_model::observation::{InterfaceDelta, Observation};
use netduel_model::plan::TreatmentAction;
use netduel_model::sample::{DatagramReport, EndReport, Flow, LiveFigures};
use netduel_model::snapshot::{HostSnapshot, Interface};
use netduel_model::trial::TrialEnd;
use netduel_model::workload::{Role, UdpStream, Workload};

/// Packets a second that the script sends without a rate, and that its path carries.
const UNPACED: u64 = 3_000;
const CARRIED: u64 = 1_000;
/// The address of each host, which no plan has.
const OWN_ADDRESS: Ipv4Addr = Ipv4Addr::new(172, 16, 0, 7);
/// The source address of a client that a server saw.
const ARRIVED_FROM: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);

/// An interface with a MAC address. The one that ends with 2 has a virtual function beside it.
fn nic(mac: &str) -> Interface {
    Interface { name: format!("nic{mac}"), mac: Some(mac.to_owned()), ..Interface::default() }
}

/// Records a request.
fn log(line: &str) {
    if let Some(path) = std::env::var_os("SCRIPT_LOG") {
        let mut file =
            OpenOptions::new().append(true).create(true).open(path).expect("the log can be opened");
        // A single write: agents that end at the same time append to one file, and `writeln!` writes the line end separately.
        file.write_all(format!("{line}\n").as_bytes()).expect("the log can be written");
    }
}

struct Script {
    words: Vec<String>,
    role: Role,
    done: bool,
    workload: Option<Workload>,
    babbling: Cell<bool>,
    described: Cell<u32>,
}

impl Script {
    /// Whether the script has this word.
    fn says(&self, word: &str) -> bool {
        self.words.iter().any(|own| own == word)
    }

    /// Packets that the workload sends.
    fn packets_per_second(&self) -> u64 {
        match self.workload.as_ref().and_then(|workload| workload.traffic.facts().flows) {
            Some(UdpStream { rate: Some(rate), size, .. }) => rate.0 / 8 / size.0,
            _ => UNPACED,
        }
    }

    /// Packets counted at this end: the path carries [`CARRIED`] a second. None for other workloads.
    fn count(&self, report: &mut EndReport) {
        let Some(workload) =
            self.workload.as_ref().filter(|workload| workload.traffic.facts().packets.is_some())
        else {
            return;
        };
        let in_all = |rate: u64| rate * workload.timing.duration.0 / 1_000_000_000;
        let sent = in_all(self.packets_per_second());
        let flow = |messages| {
            // A generator that falls behind sends the rest after the end.
            let behind = if self.says("behind") { workload.timing.duration.0 / 4 } else { 0 };
            let last_ns = Some(workload.timing.duration.0 + behind);
            Flow { messages, first_ns: Some(0), last_ns, ..Flow::default() }
        };
        match self.role {
            Role::Client => report.sent = Some(flow(sent)),
            Role::Server => {
                let unique = sent.min(in_all(CARRIED));
                report.received = Some(flow(unique));
                report.datagrams = Some(DatagramReport { unique, ..DatagramReport::default() });
            }
        }
    }

    fn refuse(&self, word: &str) -> Result<(), WorkError> {
        log(word);
        if self.says(&format!("refuse-{word}")) {
            return Err(WorkError {
                kind: FailureKind::Environment,
                message: format!("the script refuses to {word}"),
            });
        }
        // A marker file makes the agent die once only: the restarted agent continues.
        if let Some(path) = self.words.iter().find_map(|own| own.strip_prefix("once="))
            && self.says(&format!("die-{word}"))
            && std::fs::remove_file(path).is_ok()
        {
            eprintln!("the script dies at {word}");
            if self.says("killed") {
                let this = rustix::process::getpid();
                rustix::process::kill_process(this, rustix::process::Signal::KILL)
                    .expect("it is this process");
            }
            std::process::exit(9);
        }
        if self.says(&format!("always-die-{word}")) || self.is_next_death(word) {
            eprintln!("the script dies at {word}");
            std::process::exit(9);
        }
        Ok(())
    }

    /// Whether the first line of a file is this word. The line is removed, so that the next line is for the next agent of the host. With `=`
    /// before the word the agent goes on.
    fn is_next_death(&self, word: &str) -> bool {
        let Some(path) = self.words.iter().find_map(|own| own.strip_prefix("deaths=")) else { return false };
        let deaths = std::fs::read_to_string(path).expect("the file of deaths can be read");
        let Some((first, rest)) = deaths.split_once('\n') else { return false };
        if first.trim_start_matches('=') != word {
            return false;
        }
        std::fs::write(path, rest).expect("the file of deaths can be written");
        first == word
    }
}

impl Work for Script {
    fn recover(&mut self) -> Recovery {
        let left = self.says("left-behind").then(|| "the script has left a change behind".to_owned());
        Recovery { restored: Vec::new(), problems: left.into_iter().collect() }
    }
    fn snapshot(&mut self, _metadata: bool) -> Result<HostSnapshot, WorkError> {
        self.refuse("describe")?;
        let netns = Some(if self.says("own-network") { u64::from(std::process::id()) } else { 1 });
        let boot_id = if self.says("own-machine") { "its own machine" } else { "one machine" };
        // The host of the next agent has rebooted.
        let boot_id =
            if self.says("reboots") { format!("boot {}", std::process::id()) } else { boot_id.to_owned() };
        let sack = if self.says("sack-off") { "0" } else { "1" };
        // A guard restores the host after the first description.
        let descriptions = self.described.replace(self.described.get() + 1);
        let sack = if self.says("sack-off-at-first") && descriptions == 0 { "0" } else { sack };
        // Another program changes the host before the description of this number, from 0.
        let is_from = |word: &str| {
            let number = self.words.iter().find_map(|own| own.strip_prefix(word)?.parse::<u32>().ok());
            number.is_some_and(|first| descriptions >= first)
        };
        if is_from("refuse-describe-from=") {
            let message = "the script refuses to describe".to_owned();
            return Err(WorkError { kind: FailureKind::Environment, message });
        }
        let sack = if is_from("sack-off-from=") && !is_from("sack-on-from=") { "0" } else { sack };
        let has_vf = !is_from("vf-gone-from=") || is_from("vf-back-from=");
        let vf = Interface { name: "vf".to_owned(), master: Some("eth0".to_owned()), ..Interface::default() };
        let sysctls = [("net.ipv4.tcp_sack".to_owned(), sack.to_owned())].into();
        Ok(HostSnapshot {
            boot_id: Some(boot_id),
            netns,
            cores: 1,
            sysctls,
            interfaces: vec![
                Interface {
                    name: "other0".to_owned(),
                    addresses: vec![OWN_ADDRESS.into()],
                    ..Interface::default()
                },
                nic("00:0d:3a:00:00:01"),
                nic("00:0d:3a:00:00:02"),
                nic("00:0d:3a:00:00:02"),
                Interface { name: "eth0".to_owned(), ..Interface::default() },
            ]
            .into_iter()
            .chain(has_vf.then_some(vf))
            .collect(),
            ..HostSnapshot::default()
        })
    }
    fn lock(&mut self, _: &RunId) -> Result<(), WorkError> {
        if self.says("busy") {
            let message = "this host is in use by run other-1".to_owned();
            return Err(WorkError { kind: FailureKind::Busy, message });
        }
        self.refuse("lock")
    }
    fn apply(&mut self, treatments: &[TreatmentAction]) -> Result<(), WorkError> {
        let is_refused = |action: &TreatmentAction| matches!(action, TreatmentAction::Sysctl { value, .. } if self.says(&format!("refuse-value-{value}")));
        if treatments.iter().any(is_refused) {
            let message = "the script refuses this value".to_owned();
            return Err(WorkError { kind: FailureKind::Environment, message });
        }
        self.refuse("apply")
    }
    fn undo(&mut self) -> Vec<String> {
        match self.refuse("undo") {
            Ok(()) => Vec::new(),
            Err(problem) => vec![problem.message],
        }
    }
    fn open_ports(&mut self, _: ListenAt, _: PortNeeds, _: Token) -> Result<[Vec<u16>; 2], WorkError> {
        if self.says("not-bound") {
            let message = "the script does not bind".to_owned();
            return Err(WorkError { kind: FailureKind::Traffic, message });
        }
        self.refuse("open").map(|()| [vec![1], vec![2]])
    }
    fn probe_ports(
        &mut self,
        peer: IpAddr,
        [tcp, udp]: [&[u16]; 2],
        _: Token,
        _: Duration,
    ) -> Result<Vec<ProbedPort>, WorkError> {
        let answer = if self.says("dropped") {
            PortAnswer::Dropped { seconds: 5 }
        } else {
            PortAnswer::Open { local: peer }
        };
        let protocols = [PortProtocol::Tcp, PortProtocol::Udp].into_iter().zip([tcp, udp]);
        let each = protocols.flat_map(|(protocol, ports)| ports.iter().map(move |port| (protocol, *port)));
        let probed = each.map(|(protocol, port)| ProbedPort { protocol, port, answer: answer.clone() });
        self.refuse("probe").map(|()| probed.collect())
    }
    fn close_ports(&mut self) -> Vec<ProbeSource> {
        log("close");
        let source = ProbeSource { protocol: PortProtocol::Tcp, port: 1, address: ARRIVED_FROM.into() };
        if self.says("arrived") { vec![source] } else { Vec::new() }
    }
    fn prepare_server(&mut self, workload: &Workload, _: ListenAt, _: Token) -> Result<Vec<u16>, WorkError> {
        self.role = Role::Server;
        self.workload = Some(workload.clone());
        self.refuse("prepare").map(|()| vec![1])
    }
    fn prepare_client(
        &mut self,
        workload: &Workload,
        _: IpAddr,
        _: &[u16],
        _: Token,
        _: Duration,
    ) -> Result<(), WorkError> {
        self.role = Role::Client;
        self.workload = Some(workload.clone());
        if self.says("refuse-a-rate") && self.packets_per_second() < UNPACED {
            return Err(WorkError {
                kind: FailureKind::Environment,
                message: "the script refuses to keep a rate".to_owned(),
            });
        }
        self.refuse("prepare")
    }
    fn start(&mut self, waker: Waker) -> Result<(), WorkError> {
        self.refuse("start")?;
        let by_itself = self.role == Role::Client || self.says("done-at-once");
        self.done = by_itself && !self.says("never-done");
        waker.wake();
        Ok(())
    }
    fn live(&self) -> LiveFigures {
        LiveFigures::default()
    }
    fn finish(&mut self) {
        self.done = true;
        let _ = self.refuse("finish");
    }
    fn is_done(&self) -> bool {
        // The first live figures are due after the start of traffic.
        if self.says("babble") && !self.babbling.replace(true) {
            std::thread::spawn(babble);
        }
        self.done
    }
    fn take_result(&mut self) -> Result<TrialEnd, WorkError> {
        self.refuse("result")?;
        let carrier = if self.says("wrong-path") { "eth9" } else { "eth0" };
        let carried =
            InterfaceDelta { name: carrier.into(), tx_bytes: 1_000_000, ..InterfaceDelta::default() };
        let observation = Observation { interfaces: vec![carried], ..Observation::default() };
        let mut report = EndReport::new(self.role);
        self.count(&mut report);
        Ok(TrialEnd { report, observation })
    }
    fn abort(&mut self) {
        self.done = false;
        let _ = self.refuse("abort");
    }
}

/// Sends live figures of the first trial as fast as the coordinator reads them, until this process ends.
fn babble() {
    // Many in each write, so that it writes faster than the coordinator reads.
    let lines = encode(&FromAgent::Progress { trial: 1, figures: LiveFigures::default() }).repeat(500);
    while std::io::stdout().write_all(lines.as_bytes()).is_ok() {}
}

/// The time since boot.
struct SinceBoot;

impl Clock for SinceBoot {
    fn now_ns(&self) -> u64 {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
        now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
    }
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if words.iter().any(|word| word == "other-version") {
        println!(r#"{{"type":"hello","protocol":999,"program":"netduel 9.9.9"}}"#);
        return;
    }
    let mut script = Script {
        words,
        role: Role::Client,
        done: false,
        workload: None,
        babbling: Cell::new(false),
        described: Cell::new(0),
    };
    if let Err(error) = serve(std::io::stdin(), std::io::stdout(), &mut script, "scripted agent", &SinceBoot)
    {
        eprintln!("{error}");
        std::process::exit(1);
    }
}
