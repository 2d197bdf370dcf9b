//! What the coordinator needs of its surroundings: launchers, the lab, the store, the clock, Ctrl-C.
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use netduel_control::coordinator::{KnownRun, StoreProblem, Surroundings};
use netduel_lab::{Lab, Lifetime};
use netduel_model::event::Event;
use netduel_model::failover::{LabEvents, PathEvent};
use netduel_model::ids::{HostName, LabName, RunId, Token};
use netduel_model::plan::spec::LabPath;
use netduel_model::plan::{Host, Launch, Pair, ResolvedPlan};
use netduel_model::run::{Annotations, Run, RunEnd, RunHeader};
use netduel_model::snapshot::HostSnapshot;
use netduel_model::trial::Trial;
use netduel_model::units::Nanos;
use netduel_report::analysis;
use netduel_report::findings::Severity;
use netduel_report::inspect::Inspection;
use netduel_store::{RunWriter, Store, StoreError};

use crate::exit::{Failure, Kind, OrFail as _, chain};
use crate::run::path_events::PathEvents;
use crate::{program, signal};

/// Where a run comes from.
pub enum RunSource {
    /// A plan; a new run is made in the store.
    New {
        /// The plan as it was given.
        plan_text: String,
        /// What the command line added to it.
        annotations: Annotations,
    },
    /// A run of the store that goes on.
    Resumed(Box<(Run, RunWriter)>),
    /// A check that is not kept.
    Unstored,
}

impl RunSource {
    /// The trials that the run has already.
    pub fn earlier_trials(&self) -> Vec<Trial> {
        match self {
            Self::Resumed(taken) => taken.0.trials.clone(),
            Self::New { .. } | Self::Unstored => Vec::new(),
        }
    }
}

/// What is left when a run is over.
pub struct Closed {
    /// The store.
    pub store: Store,
    /// The run's name in it.
    pub id: Option<RunId>,
    /// The lab, still up: dropping it takes it down.
    pub lab: Option<Lab>,
}

/// The real surroundings.
pub struct System<'a> {
    plan: ResolvedPlan,
    source: RunSource,
    store: Store,
    writer: Option<RunWriter>,
    id: Option<RunId>,
    lab: Option<Lab>,
    path_events: Option<PathEvents>,
    interrupted: Arc<AtomicBool>,
    listener: Box<dyn FnMut(&Event) + 'a>,
}

impl<'a> System<'a> {
    /// Around a run of `plan`; `lab` is the plan's lab, built before.
    pub fn new(
        plan: &ResolvedPlan,
        source: RunSource,
        store: Store,
        lab: Option<Lab>,
        listener: impl FnMut(&Event) + 'a,
    ) -> Result<Self, Failure> {
        let interrupted = signal::interrupted().kind(Kind::Environment)?;
        Ok(Self {
            plan: plan.clone(),
            source,
            store,
            writer: None,
            id: None,
            lab,
            path_events: None,
            interrupted,
            listener: Box::new(listener),
        })
    }

    /// Gives back what outlives the run; the run's file is closed.
    pub fn close(self) -> Closed {
        Closed { store: self.store, id: self.id, lab: self.lab }
    }

    fn writer(&mut self) -> Option<&mut RunWriter> {
        self.writer.as_mut()
    }

    /// Tells what is so wrong with the hosts that trials would be wasted, before the first of them.
    fn tell_problems(&mut self, hosts: &BTreeMap<HostName, HostSnapshot>) {
        let lines = Inspection::of_plan(&self.plan, hosts).lines(Severity::Problem);
        if lines.is_empty() {
            return;
        }
        let more = "what to do about it: `netduel inspect`, with --plan for the hosts of a plan".to_owned();
        for text in lines.into_iter().chain([more]) {
            (self.listener)(&Event::ProblemFound { text });
        }
    }

    fn header(
        &self,
        id: RunId,
        seed: u64,
        hosts: &BTreeMap<HostName, HostSnapshot>,
        (plan_text, annotations): (String, Annotations),
    ) -> RunHeader {
        RunHeader {
            id,
            started_unix_ms: self.unix_ms(),
            program: program::name_and_version(),
            command: program::command_line(),
            plan: self.plan.clone(),
            plan_text,
            seed,
            hosts: hosts.clone(),
            annotations,
        }
    }
}

/// The plan's lab, when it has one. Its name holds the process number, so that runs side by side do not clash.
pub fn build_lab(plan: &ResolvedPlan) -> Result<Option<Lab>, Failure> {
    let Some(spec) = &plan.lab else { return Ok(None) };
    let base: String = plan.name.chars().filter(char::is_ascii_alphanumeric).take(20).collect();
    let name = LabName::new(format!("run-{base}-{}", std::process::id())).kind(Kind::Internal)?;
    let lab =
        Lab::up(&name, spec, Lifetime::Attached, &program::keeper_command()).map_err(crate::lab::failed)?;
    Ok(Some(lab))
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

/// The argv that starts the agent of a host of a plan; `lab` is the plan's, when it has one.
pub fn agent_argv(name: &HostName, host: &Host, lab: Option<&Lab>) -> Result<Vec<String>, String> {
    let program = program::path().display().to_string();
    let prefix = match &host.launch {
        Launch::Local => Vec::new(),
        Launch::Lab { guest } => {
            let lab = lab.ok_or_else(|| format!("host {name} is in a lab, and the plan has none"))?;
            let words = [program.as_str(), "lab", "exec", "--lab", lab.name().as_str(), guest, "--"];
            words.iter().map(|word| (*word).to_owned()).collect()
        }
        Launch::Netns { name } => {
            ["ip", "netns", "exec", name].iter().map(|word| (*word).to_owned()).collect()
        }
        // The other machine has a path of its own to the program: it is looked up there.
        Launch::Command { prefix } => {
            let words = ["netduel", "agent"].map(str::to_owned);
            return Ok(prefix.iter().cloned().chain(words).collect());
        }
        Launch::Paired { at } => return Ok(vec![program, "link".to_owned(), at.clone()]),
    };
    Ok(prefix.into_iter().chain([program, "agent".to_owned()]).collect())
}

impl Surroundings for System<'_> {
    fn launcher(&mut self, name: &HostName, host: &Host) -> Result<Vec<String>, String> {
        agent_argv(name, host, self.lab.as_ref())
    }

    fn set_path(&mut self, path: LabPath) -> Result<(), String> {
        let lab = self.lab.as_ref().ok_or("a path treatment needs a lab, and the plan has none")?;
        lab.set_path(path).map_err(|error| format!("failed to {error}"))
    }

    fn begin_events(&mut self, pair: &Pair, events: &[PathEvent]) -> Result<(), String> {
        let lab = self.lab.as_ref().ok_or("events of a lab were asked for, and the plan has none")?;
        self.path_events = Some(PathEvents::begin(lab, &self.plan, pair, events)?);
        Ok(())
    }

    fn end_events(&mut self) -> Result<Option<LabEvents>, String> {
        let (Some(events), Some(lab)) = (self.path_events.take(), self.lab.as_ref()) else { return Ok(None) };
        events.end(lab).map(Some)
    }

    fn hosts_known(&mut self, hosts: &BTreeMap<HostName, HostSnapshot>) -> Result<KnownRun, StoreProblem> {
        let problem = |message: String| StoreProblem { message };
        self.tell_problems(hosts);
        let source = std::mem::replace(&mut self.source, RunSource::Unstored);
        let known = match source {
            RunSource::New { plan_text, annotations } => {
                let seed = self.plan.design.seed.map_or_else(random_u64, Ok).map_err(problem)?;
                let suffix = random_u64().map_err(problem)? as u16;
                let id = self.store.new_id(&self.plan.name, self.unix_ms(), suffix);
                let header = self.header(id.clone(), seed, hosts, (plan_text, annotations));
                self.writer = Some(self.store.create(&header).map_err(store_problem)?);
                KnownRun { id, seed, is_resumed: false, trials: Vec::new() }
            }
            RunSource::Resumed(taken) => {
                let (run, writer) = *taken;
                self.writer = Some(writer);
                let (id, seed) = (run.header.id, run.header.seed);
                KnownRun { id, seed, is_resumed: true, trials: run.trials }
            }
            RunSource::Unstored => {
                let id = RunId::new("check").map_err(|error| problem(error.to_string()))?;
                let seed = random_u64().map_err(problem)?;
                return Ok(KnownRun { id, seed, is_resumed: false, trials: Vec::new() });
            }
        };
        self.id = Some(known.id.clone());
        Ok(known)
    }

    fn reserve(&mut self) -> Result<(), StoreProblem> {
        self.writer().map_or(Ok(()), |writer| writer.reserve().map_err(store_problem))
    }

    fn store(&mut self, trial: &Trial) -> Result<(), StoreProblem> {
        self.writer().map_or(Ok(()), |writer| writer.trial(trial).map_err(store_problem))
    }

    fn event(&mut self, event: Event) {
        let stored = match (&event, self.writer.as_mut()) {
            (Event::Warned { warning }, Some(writer)) => writer.warning(warning),
            (Event::RunFinished { end }, Some(writer)) => writer.end(end),
            _ => Ok(()),
        };
        if let Err(error) = stored {
            eprintln!("netduel: {}", chain(&error));
        }
        (self.listener)(&event);
    }

    fn stop_after_block(&mut self, trials: &[Trial]) -> Option<RunEnd> {
        let analysis = analysis::analyse(&self.plan, None, trials, &[], None);
        analysis.precise_enough().then_some(RunEnd::PrecisionReached)
    }

    fn settle(&mut self, time: Nanos) {
        let deadline_ns = netduel_sys::clock::monotonic_ns().saturating_add(time.0);
        // Whoever asks next sees that somebody wants the run to stop.
        netduel_sys::clock::sleep_until_or(deadline_ns, &self.interrupted);
    }

    fn interrupted(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }

    fn now_ns(&self) -> u64 {
        netduel_sys::clock::monotonic_ns()
    }

    fn unix_ms(&self) -> u64 {
        netduel_sys::clock::realtime_ns() / 1_000_000
    }

    fn token(&mut self) -> Result<Token, String> {
        netduel_sys::random::bytes16().map(Token).map_err(|error| format!("failed to draw a token: {error}"))
    }
}
