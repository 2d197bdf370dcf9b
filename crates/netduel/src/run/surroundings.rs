//! The coordinator's environment: launchers, the lab, the store, the clock, Ctrl-C.
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use netduel_control::coordinator::{
    self, Clock, KnownRun, Lab, NoProvider, Policy, Provider, RunError, Store, StoreProblem, Surroundings,
};
use netduel_lab::{LabError, Lifetime};
use netduel_model::bed::RunBed;
use netduel_model::event::Event;
use netduel_model::failover::{LabEvents, PathEvent};
use netduel_model::ids::{ArmName, HostName, LabName, RunId, Token};
use netduel_model::plan::resolved;
use netduel_model::plan::spec::LabPath;
use netduel_model::plan::{Host, Launch, Pair, ResolvedPlan, SshHost};
use netduel_model::run::{Annotations, Run, RunEnd, RunHeader};
use netduel_model::snapshot::HostSnapshot;
use netduel_model::trial::Trial;
use netduel_model::units::Nanos;
use netduel_model::warning::Warning;
use netduel_report::analysis;
use netduel_report::findings::Severity;
use netduel_report::inspect::Inspection;
use netduel_store::{RunWriter, StoreError};

use crate::exit::{Failure, Kind, OrFail as _, chain};
use crate::run::live::Controls;
use crate::run::outcome::{Unchanged, stopped_before_trials};
use crate::run::path_events::PathEvents;
use crate::ssh::{NotPrepared, OnFailure, SshAgents, SshHosts};
use crate::{named_namespace, program, signal};

/// Origin of a run.
#[expect(clippy::large_enum_variant, reason = "there is one for each run")]
pub enum RunSource {
    /// A plan; a new run is created in the store.
    New {
        /// The plan as given by the user.
        plan_text: String,
        /// Annotations from the command line.
        annotations: Annotations,
        /// The report files, absolute paths.
        reports: Vec<PathBuf>,
        /// The bed that has the hosts.
        bed: Option<Box<RunBed>>,
    },
    /// A stored run to resume.
    Resumed(Box<(Run, RunWriter)>),
    /// A check that is not stored.
    Unstored,
}

impl RunSource {
    /// The stored trials of the run.
    pub fn earlier_trials(&self) -> Vec<Trial> {
        match self {
            Self::Resumed(taken) => taken.0.trials.clone(),
            Self::New { .. } | Self::Unstored => Vec::new(),
        }
    }
}

/// What remains when a run has ended.
pub struct Closed {
    /// The store.
    pub store: netduel_store::Store,
    /// The run's name in it.
    pub id: Option<RunId>,
    /// The run that was resumed, when nothing was added to it.
    pub unchanged: Option<Unchanged>,
    /// The lab, still running: dropping it removes it.
    pub lab: Option<netduel_lab::Lab>,
    /// The descriptions of the hosts.
    pub hosts: BTreeMap<HostName, HostSnapshot>,
    /// The last trial.
    pub trial: Option<Trial>,
}

/// The environment of a run of `plan` on this machine.
pub struct System {
    plan: ResolvedPlan,
    clock: SystemClock,
    file: RunFile,
    lab: PlanLab,
    /// Arguments after the command of an agent.
    pub agent_arguments: Vec<String>,
    /// Hosts that are reached by ssh.
    pub ssh: SshHosts,
    /// The provider of the hosts' machines.
    pub provider: Box<dyn Provider>,
}

impl System {
    /// For a run of `plan`; `lab` is the plan's lab, built earlier.
    pub fn new(
        plan: &ResolvedPlan,
        source: RunSource,
        store: netduel_store::Store,
        lab: Option<netduel_lab::Lab>,
    ) -> Result<Self, Failure> {
        let resumed = match &source {
            RunSource::Resumed(taken) => Some(Unchanged::of(&taken.0)),
            RunSource::New { .. } | RunSource::Unstored => None,
        };
        let file = RunFile {
            plan: plan.clone(),
            source,
            resumed,
            store,
            writer: None,
            id: None,
            hosts: BTreeMap::new(),
            trial: None,
        };
        let lab = PlanLab { plan: plan.clone(), lab, events: None };
        let clock = SystemClock::new()?;
        Ok(Self {
            plan: plan.clone(),
            clock,
            file,
            lab,
            agent_arguments: Vec::new(),
            ssh: SshHosts::default(),
            provider: Box::new(NoProvider),
        })
    }

    /// Runs the plan to its end, and passes its events to the listener.
    pub fn run(
        mut self,
        policy: &mut dyn Policy,
        mut listener: impl FnMut(&Event),
    ) -> (Result<RunEnd, RunError>, Closed) {
        let lab_name = self.lab.lab.as_ref().map(|lab| lab.name().clone());
        if self.file.resumed.is_some() {
            self.ssh.resume();
        }
        let prepared = self.ssh.prepare(ssh_hosts(&self.plan), OnFailure::StopOthers);
        if let Err(not_prepared) = prepared {
            let result = match not_prepared {
                NotPrepared::Interrupted => Ok(RunEnd::Interrupted),
                NotPrepared::Failed { host, reason } => Err(RunError::NoLauncher { host, reason }),
            };
            return (result, self.closed());
        }
        // Their connections start agents, and have the last words of lost ones.
        let ssh = RefCell::new(std::mem::take(&mut self.ssh));
        let surroundings = Surroundings {
            clock: &self.clock,
            launcher: &mut |name, host| {
                let argv = agent_argv(name, host, lab_name.as_ref(), &mut ssh.borrow_mut())?;
                Ok(argv.into_iter().chain(self.agent_arguments.iter().cloned()).collect())
            },
            listener: &mut |event| listener(&event),
            tokens: &mut token,
            store: &mut self.file,
            lab: &mut self.lab,
            provider: &mut *self.provider,
            policy,
        };
        let result = coordinator::run_over(&self.plan, surroundings, Box::new(SshAgents::new(&ssh)));
        (result, self.closed())
    }

    fn closed(self) -> Closed {
        let RunFile { store, id, resumed, writer, hosts, trial, .. } = self.file;
        // Without a writer the run was not opened.
        let unchanged = resumed.filter(|_| writer.as_ref().is_none_or(RunWriter::is_unchanged));
        Closed { store, id, unchanged, lab: self.lab.lab, hosts, trial }
    }
}

/// The hosts of a plan's arms that are reached by ssh.
pub fn ssh_hosts(plan: &ResolvedPlan) -> BTreeMap<&HostName, &SshHost> {
    let names = plan.arms.iter().flat_map(|arm| [&arm.pair.client, &arm.pair.server]);
    let by_ssh = |name| match &plan.hosts.get(name)?.launch {
        Launch::Ssh(ssh) => Some((name, ssh)),
        _ => None,
    };
    names.filter_map(by_ssh).collect()
}

fn token() -> Result<Token, String> {
    netduel_sys::random::bytes16().map(Token).map_err(|error| format!("failed to draw a token: {error}"))
}

/// The plan's lab, if it has one. Its name contains the process id, so that concurrent runs do not clash. Processes in containers that share
/// a network namespace have the same ids: the second of them takes another name.
pub fn build_lab(plan: &ResolvedPlan) -> Result<Option<netduel_lab::Lab>, Failure> {
    let Some(spec) = &plan.lab else { return Ok(None) };
    let base: String = plan.name.chars().filter(char::is_ascii_alphanumeric).take(20).collect();
    let name = format!("run-{base}-{}", std::process::id());
    let interrupted = signal::interrupted().kind(Kind::Environment)?;
    let lab = match lab_up(&name, spec)? {
        Err(LabError::NameTaken { .. }) => {
            let random = random_u64().map_err(|error| Failure::message(Kind::Environment, error))?;
            lab_up(&format!("{name}-{:06x}", random & 0xff_ffff), spec)?
        }
        lab => lab,
    };
    // A terminal sends the signal to the lab's processes as well, which then fail.
    if interrupted.load(Ordering::Relaxed) {
        return Err(stopped_before_trials());
    }
    lab.map(Some).map_err(crate::lab::failed)
}

fn lab_up(name: &str, spec: &resolved::Lab) -> Result<Result<netduel_lab::Lab, LabError>, Failure> {
    let name = LabName::new(name).kind(Kind::Internal)?;
    Ok(netduel_lab::Lab::up(&name, spec, Lifetime::Attached, &program::keeper_command()))
}

/// Removes the lab of a run that has ended. The result of the run matters more: what is left of the lab is a warning, and a signal ends the
/// wait.
pub fn remove_lab(lab: Option<netduel_lab::Lab>) {
    let Some(lab) = lab else { return };
    // After an interrupt of the run itself the lab is awaited; the next signal ends the program.
    let interrupted = signal::interrupted().ok().filter(|flag| !flag.load(Ordering::Relaxed));
    if let Err(error) = lab.end(&interrupted.unwrap_or_default()) {
        crate::console::tell(&format!("warning: failed to {error}"));
    }
}

#[expect(clippy::needless_pass_by_value, reason = "it is handed to map_err")]
fn store_problem(error: StoreError) -> StoreProblem {
    StoreProblem { message: chain(&error) }
}

fn random_u64() -> Result<u64, String> {
    let bytes =
        netduel_sys::random::bytes16().map_err(|error| format!("failed to draw random bytes: {error}"))?;
    Ok(u128::from_le_bytes(bytes) as u64)
}

/// The argv that starts the agent of a host of a plan; `lab` is the name of the plan's lab.
pub fn agent_argv(
    name: &HostName,
    host: &Host,
    lab: Option<&LabName>,
    ssh: &mut SshHosts,
) -> Result<Vec<String>, String> {
    let program = program::path().display().to_string();
    let prefix = match &host.launch {
        Launch::Local => Vec::new(),
        Launch::Lab { guest } => {
            let lab = lab.ok_or_else(|| format!("host {name} is in a lab, and the plan has none"))?;
            let words = [program.as_str(), "lab", "exec", "--lab", lab.as_str(), guest, "--"];
            words.iter().map(|word| (*word).to_owned()).collect()
        }
        Launch::Netns { name } => {
            named_namespace::check(name)?;
            named_namespace::prefix(name)
        }
        // The program is looked up in the PATH of the other machine.
        Launch::Command { prefix } => {
            let words = ["netduel", "agent"].map(str::to_owned);
            return Ok(prefix.iter().cloned().chain(words).collect());
        }
        Launch::Ssh(host) => return ssh.argv(name, host),
        Launch::Paired { address } => return Ok(vec![program, "link".to_owned(), address.clone()]),
        Launch::Bed { vm, .. } => {
            return Err(format!(
                "it is {vm} of a bed, and no bed was named; run the plan with `netduel azure run`"
            ));
        }
    };
    Ok(prefix.into_iter().chain([program, "agent".to_owned()]).collect())
}

/// The clocks of this machine, and its signals.
pub struct SystemClock {
    interrupted: Arc<AtomicBool>,
}

impl SystemClock {
    /// Signals end waits from now on.
    pub fn new() -> Result<Self, Failure> {
        Ok(Self { interrupted: signal::interrupted().kind(Kind::Environment)? })
    }
}

impl Clock for SystemClock {
    fn now_ns(&self) -> u64 {
        netduel_sys::clock::monotonic_ns()
    }

    fn unix_ms(&self) -> u64 {
        netduel_sys::clock::realtime_ns() / 1_000_000
    }

    fn wait(&self, time: Nanos) {
        let deadline_ns = self.now_ns().saturating_add(time.0);
        // The caller checks for an interrupt next.
        netduel_sys::clock::sleep_until_or(deadline_ns, &self.interrupted);
    }

    fn interrupted(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }
}

/// The policy of a run of a plan: its hosts are inspected, and it stops when every interval is as narrow as the plan requires.
pub struct PlanPolicy<'a> {
    /// The plan.
    pub plan: &'a ResolvedPlan,
    /// What the user asks of the run.
    pub controls: Controls,
}

impl<'a> PlanPolicy<'a> {
    /// Without a user.
    pub fn of(plan: &'a ResolvedPlan) -> Self {
        Self { plan, controls: Controls::default() }
    }
}

impl Policy for PlanPolicy<'_> {
    fn problems(&mut self, hosts: &BTreeMap<HostName, HostSnapshot>) -> Vec<String> {
        host_problems(self.plan, hosts)
    }

    fn is_paused(&mut self) -> bool {
        self.controls.is_paused()
    }

    fn pause_ended(&mut self, after: Nanos) {
        self.controls.end_pause();
        crate::console::tell(&format!("the pause lasted {after}, its longest time: the run goes on"));
    }

    fn stop_after_block(&mut self, trials: &[Trial], dropped: &BTreeMap<ArmName, String>) -> Option<RunEnd> {
        let analysis = analysis::analyse(self.plan, None, trials, &[], None);
        analysis.precise_enough(|arm| dropped.contains_key(arm)).then_some(RunEnd::PrecisionReached)
    }
}

/// Problems that `netduel inspect` finds on the hosts of a plan, one line each, and where to read more.
pub fn host_problems(plan: &ResolvedPlan, hosts: &BTreeMap<HostName, HostSnapshot>) -> Vec<String> {
    let mut lines = Inspection::of_plan(plan, hosts).lines(Severity::Problem);
    if !lines.is_empty() {
        lines.push("what to do about it: `netduel inspect`, with --plan for the hosts of a plan".to_owned());
    }
    lines
}

/// The plan's lab, if it has one.
struct PlanLab {
    plan: ResolvedPlan,
    lab: Option<netduel_lab::Lab>,
    events: Option<PathEvents>,
}

impl Lab for PlanLab {
    fn set_path(&mut self, path: LabPath) -> Result<(), String> {
        let lab = self.lab.as_ref().ok_or("a path treatment needs a lab, and the plan has none")?;
        lab.set_path(path).map_err(|error| format!("failed to {error}"))
    }

    fn begin_events(&mut self, pair: &Pair, events: &[PathEvent]) -> Result<(), String> {
        let lab = self.lab.as_ref().ok_or("the plan has events of a lab, and it has no lab")?;
        self.events = Some(PathEvents::begin(lab, &self.plan, pair, events)?);
        Ok(())
    }

    fn end_events(&mut self) -> Result<Option<LabEvents>, String> {
        let (Some(events), Some(lab)) = (self.events.take(), self.lab.as_ref()) else { return Ok(None) };
        events.end(lab).map(Some)
    }
}

/// The run in the store.
struct RunFile {
    plan: ResolvedPlan,
    source: RunSource,
    /// The run that is resumed.
    resumed: Option<Unchanged>,
    store: netduel_store::Store,
    writer: Option<RunWriter>,
    id: Option<RunId>,
    hosts: BTreeMap<HostName, HostSnapshot>,
    trial: Option<Trial>,
}

impl RunFile {
    fn header(
        &self,
        (id, seed, started_unix_ms): (RunId, u64, u64),
        (plan_text, annotations, reports, bed): (String, Annotations, Vec<PathBuf>, Option<RunBed>),
    ) -> RunHeader {
        // Another name would be another file: without it the resumed run needs --out again.
        let mut reports = reports.into_iter().filter_map(|path| path.to_str().map(str::to_owned));
        RunHeader {
            id,
            started_unix_ms,
            program: netduel_model::PROGRAM.to_owned(),
            command: program::command_line(),
            plan: self.plan.clone(),
            plan_text,
            seed,
            hosts: self.hosts.clone(),
            annotations,
            report: reports.next(),
            further_reports: reports.collect(),
            bed,
        }
    }
}

impl Store for RunFile {
    fn open(&mut self, hosts: &BTreeMap<HostName, HostSnapshot>) -> Result<KnownRun, StoreProblem> {
        let problem = |message: String| StoreProblem { message };
        self.hosts.clone_from(hosts);
        let source = std::mem::replace(&mut self.source, RunSource::Unstored);
        let known = match source {
            RunSource::New { plan_text, annotations, reports, bed } => {
                let seed = self.plan.design.seed.map_or_else(random_u64, Ok).map_err(problem)?;
                let suffix = random_u64().map_err(problem)? as u16;
                let unix_ms = netduel_sys::clock::realtime_ns() / 1_000_000;
                let id = self.store.new_id(&self.plan.name, unix_ms, suffix);
                let header = self.header(
                    (id.clone(), seed, unix_ms),
                    (plan_text, annotations, reports, bed.map(|bed| *bed)),
                );
                self.writer = Some(self.store.create(&header).map_err(store_problem)?);
                new_run(id, seed)
            }
            RunSource::Resumed(taken) => {
                let (run, writer) = *taken;
                self.writer = Some(writer);
                let Run { header, trials, warnings, .. } = run;
                let (id, seed) = (header.id, header.seed);
                KnownRun { id, seed, is_resumed: true, trials, warnings, hosts: header.hosts }
            }
            RunSource::Unstored => {
                let id = RunId::new("check").map_err(|error| problem(error.to_string()))?;
                let seed = random_u64().map_err(problem)?;
                return Ok(new_run(id, seed));
            }
        };
        self.id = Some(known.id.clone());
        Ok(known)
    }

    fn reserve(&mut self) -> Result<(), StoreProblem> {
        self.writer.as_mut().map_or(Ok(()), |writer| writer.reserve().map_err(store_problem))
    }

    fn trial(&mut self, trial: &Trial) -> Result<(), StoreProblem> {
        self.trial = Some(trial.clone());
        self.writer.as_mut().map_or(Ok(()), |writer| writer.trial(trial).map_err(store_problem))
    }

    fn warning(&mut self, warning: &Warning) {
        print_store_error(self.writer.as_mut().map(|writer| writer.warning(warning)));
    }

    fn end(&mut self, end: &RunEnd) {
        print_store_error(self.writer.as_mut().map(|writer| writer.end(end)));
    }
}

fn new_run(id: RunId, seed: u64) -> KnownRun {
    KnownRun { id, seed, is_resumed: false, trials: Vec::new(), warnings: Vec::new(), hosts: BTreeMap::new() }
}

fn print_store_error(stored: Option<Result<(), StoreError>>) {
    if let Some(Err(error)) = stored {
        crate::console::tell(&format!("netduel: {}", chain(&error)));
    }
}
