//! Surroundings that keep everything in memory, and agents that follow a script.
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::rc::Rc;

use netduel_control::coordinator::{
    self, Clock, Described, GuestCheck, HostChange, KnownRun, Lab, Policy, Provider, ProviderError, RunError,
    Store, StoreProblem, Surroundings,
};
use netduel_control::launcher::{Agents, Processes};
use netduel_control::protocol::Limits;
use netduel_model::event::Event;
use netduel_model::failover::{LabEvents, PathEvent};
use netduel_model::ids::{ArmName, HostName, RunId, Token};
use netduel_model::plan::spec::LabPath;
use netduel_model::plan::{Host, Pair, ResolvedPlan, TreatmentAction, parse};
use netduel_model::run::RunEnd;
use netduel_model::snapshot::HostSnapshot;
use netduel_model::trial::Trial;
use netduel_model::units::Nanos;
use netduel_model::warning::Warning;

/// The same plan with a workload that searches.
pub fn searching(design: &str) -> ResolvedPlan {
    let mut plan = plan(design);
    let searching = r#"
        name = "x"
        question = "?"
        [hosts.a]
        launch = "command"
        command = ["script"]
        [hosts.b]
        launch = "command"
        command = ["script"]
        addresses = ["10.0.0.2"]
        [[arms]]
        name = "x"
        client = "a"
        server = "b"
        [[workloads]]
        name = "rr"
        type = "pps"
        search = [{ final_trial = "200 ms", duration_sum = "200 ms", initial_trial = "200 ms" }]
        [design]
        aa = true
    "#;
    let other = parse(searching, "searching.toml").unwrap();
    for arm in &mut plan.arms {
        arm.workloads.clone_from(&other.arms[0].workloads);
    }
    plan
}

/// A plan of two arms with a sysctl treatment, over two hosts that the plan starts by a command.
pub fn plan(design: &str) -> ResolvedPlan {
    let arm = |name: &str, value: u8| {
        format!(
            "[[arms]]\nname = \"{name}\"\nclient = \"a\"\nserver = \"b\"\nexpect_interface = {{ client = \"eth0\", server = \"eth0\" }}\n\
             treatments = [{{ sysctl = \"net.ipv4.tcp_sack\", value = \"{value}\" }}]\n"
        )
    };
    let host = |name: &str, last: u8| {
        format!(
            "[hosts.{name}]\nlaunch = \"command\"\ncommand = [\"script\"]\naddresses = [\"10.0.0.{last}\"]\n"
        )
    };
    let text = format!(
        "name = \"scripted\"\nquestion = \"Does the coordinator coordinate?\"\n{}{}{}{}\
         [[workloads]]\nname = \"rr\"\ntype = \"tcp-rr\"\nduration = \"200 ms\"\n[design]\nseed = 5\n{design}\n",
        host("a", 1),
        host("b", 2),
        arm("off", 0),
        arm("on", 1)
    );
    parse(&text, "scripted.toml").unwrap()
}

/// The behavior of the surroundings, and a record of the coordinator's calls.
#[derive(Default)]
pub struct Script {
    pub words: BTreeMap<&'static str, Vec<String>>,
    pub environment: Vec<(String, String)>,
    pub done_before: Vec<Trial>,
    /// The descriptions of the hosts at the start of a resumed run.
    pub described_before: BTreeMap<HostName, HostSnapshot>,
    /// The descriptions of the hosts now.
    pub described: BTreeMap<HostName, HostSnapshot>,
    pub stored: Vec<Trial>,
    pub events: Vec<Event>,
    pub tokens: BTreeSet<[u8; 16]>,
    pub interrupt_at_start_of: Option<usize>,
    /// The user interrupts the run after this number of search steps.
    pub interrupt_after_steps: Option<usize>,
    pub stop_after: Option<usize>,
    /// The dropped arms at the last check of the precision.
    pub dropped: Vec<ArmName>,
    pub store_fails_at: Option<usize>,
    pub reserve_fails_at: Option<usize>,
    pub now_ns: u64,
    /// Whether waits take their time.
    pub waits: bool,
    /// Pauses that the user has made and not ended.
    pub pauses: u32,
    /// What the provider was asked to do, in order: `HOST: live CHANGE` and the like.
    pub provided: Vec<String>,
    /// What the provider requires of the guests after a change while the machine runs, and with it stopped.
    pub required: [Vec<GuestCheck>; 2],
    /// What the provider requires of the guests after each trial.
    pub present: Vec<(HostName, GuestCheck)>,
    /// The state that each host's NIC has by the provider.
    pub switched: BTreeMap<HostName, bool>,
    pub may_stop: bool,
    /// Whether the provider refuses changes while machines run, and with them stopped.
    pub refuses: [bool; 2],
    /// What the provider cannot restore.
    pub unrestored: Vec<(HostName, String)>,
    /// Time that passes with each reading of the clock after a host is ready. Before, processes start, which takes an unknown time.
    pub step_ns: u64,
    /// Time that passes with each report of live figures.
    pub jump_at_progress_ns: u64,
    /// The interval of live figures, when it differs from the default.
    pub progress: Option<Nanos>,
}

impl Script {
    /// Sets the script of the agent of a host.
    pub fn host(mut self, name: &'static str, words: &[&str]) -> Self {
        self.words.insert(name, words.iter().map(|word| (*word).to_owned()).collect());
        self
    }
}

/// The scripted agent: cargo builds a crate's examples with its tests.
fn agent() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.parent().unwrap().parent().unwrap().join("examples/scripted_agent")
}

impl Script {
    fn argv(&self, name: &HostName) -> Vec<String> {
        let own = self.words.get(name.as_str()).cloned().unwrap_or_default();
        if let Some(instead) = own.first().filter(|word| word.starts_with('/') || word.as_str() == "sh") {
            return std::iter::once(instead.clone()).chain(own[1..].iter().cloned()).collect();
        }
        let mut argv = vec!["env".to_owned()];
        argv.extend(self.environment.iter().map(|(name, value)| format!("{name}={value}")));
        argv.push(agent().display().to_string());
        argv.extend(own);
        argv
    }

    fn event(&mut self, event: Event) {
        if let Event::TrialProgress { .. } = event {
            self.now_ns += self.jump_at_progress_ns;
        }
        self.events.push(event);
    }

    fn token(&mut self) -> Token {
        let token = [self.tokens.len() as u8; 16];
        self.tokens.insert(token);
        Token(token)
    }
}

/// Runs a plan in the surroundings of the script.
pub fn run(plan: &ResolvedPlan, script: &mut Script) -> Result<RunEnd, RunError> {
    run_over(plan, script, Box::new(Processes::new()))
}

/// As [`run`], over other agents than processes.
pub fn run_over(
    plan: &ResolvedPlan,
    script: &mut Script,
    agents: Box<dyn Agents>,
) -> Result<RunEnd, RunError> {
    let handle = Handle(Rc::new(RefCell::new(script)));
    let [mut store, mut lab, mut policy] = [handle.clone(), handle.clone(), handle.clone()];
    let mut provider = handle.clone();
    let surroundings = Surroundings {
        clock: &handle,
        launcher: &mut |name, _| Ok(handle.0.borrow().argv(name)),
        listener: &mut |event| handle.0.borrow_mut().event(event),
        tokens: &mut || Ok(handle.0.borrow_mut().token()),
        store: &mut store,
        lab: &mut lab,
        provider: &mut provider,
        policy: &mut policy,
    };
    coordinator::run_over(plan, surroundings, agents)
}

/// Collects the descriptions of the hosts of a plan.
pub fn describe(plan: &ResolvedPlan, script: &mut Script, metadata: bool) -> Option<Described> {
    let handle = Handle(Rc::new(RefCell::new(script)));
    let launcher = &mut |name: &HostName, _: &Host| Ok(handle.0.borrow().argv(name));
    coordinator::describe(plan, &handle, launcher, &mut |event| handle.0.borrow_mut().event(event), metadata)
}

/// The script for each part of the surroundings.
#[derive(Clone)]
struct Handle<'a>(Rc<RefCell<&'a mut Script>>);

impl Clock for Handle<'_> {
    fn now_ns(&self) -> u64 {
        let script = &mut **self.0.borrow_mut();
        // Each reading advances the time by a fixed step, so that a wait without an answer reaches its timeout at once.
        if script.events.iter().any(|event| matches!(event, Event::HostReady { .. })) {
            script.now_ns += script.step_ns;
        }
        script.now_ns
    }
    fn unix_ms(&self) -> u64 {
        1_795_257_903_000
    }
    fn wait(&self, time: Nanos) {
        let script = &mut **self.0.borrow_mut();
        script.now_ns += if script.waits { time.0 } else { 0 };
    }
    fn interrupted(&self) -> bool {
        let script = self.0.borrow();
        let count = |is_of: fn(&Event) -> bool| script.events.iter().filter(|event| is_of(event)).count();
        let started = count(|event| matches!(event, Event::TrialStarted { .. }));
        let tried = count(|event| matches!(event, Event::SearchTried { .. }));
        script.interrupt_at_start_of.is_some_and(|trial| started >= trial)
            || script.interrupt_after_steps.is_some_and(|steps| tried >= steps)
    }
}

impl Lab for Handle<'_> {
    fn set_path(&mut self, _: LabPath) -> Result<(), String> {
        Err("the script has no lab".to_owned())
    }
    fn begin_events(&mut self, _: &Pair, _: &[PathEvent]) -> Result<(), String> {
        Err("the script has no lab".to_owned())
    }
    fn end_events(&mut self) -> Result<Option<LabEvents>, String> {
        Ok(None)
    }
}

impl Provider for Handle<'_> {
    fn pending(&mut self, wanted: &[(HostName, TreatmentAction)]) -> Result<Vec<HostChange>, ProviderError> {
        let script = &mut **self.0.borrow_mut();
        let mut changes = Vec::new();
        for (host, action) in wanted {
            let TreatmentAction::AzureNic { accelerated, .. } = action else { continue };
            if script.switched.insert(host.clone(), *accelerated) != Some(*accelerated) {
                changes.push(HostChange { host: host.clone(), words: action.words(), needs_stop: false });
            }
        }
        Ok(changes)
    }
    fn change(&mut self, change: &HostChange) -> Result<Vec<GuestCheck>, ProviderError> {
        let script = &mut **self.0.borrow_mut();
        script.provided.push(format!("live: {}", change.words));
        if script.refuses[0] {
            return Err(ProviderError::WhileRunning("not while it runs".to_owned()));
        }
        Ok(script.required[0].clone())
    }
    fn change_stopped(&mut self, change: &HostChange) -> Result<Vec<GuestCheck>, ProviderError> {
        let script = &mut **self.0.borrow_mut();
        script.provided.push(format!("stopped: {}", change.words));
        if script.refuses[1] {
            return Err(ProviderError::WhileRunning("not when it is stopped".to_owned()));
        }
        Ok(script.required[1].clone())
    }
    fn present(&self) -> Vec<(HostName, GuestCheck)> {
        self.0.borrow().present.clone()
    }
    fn may_stop(&self) -> bool {
        self.0.borrow().may_stop
    }
    fn patience(&self) -> (Nanos, Nanos) {
        (Nanos(3_000_000_000), Nanos(3_000_000_000))
    }
    fn restore(&mut self) -> Vec<(HostName, String)> {
        let script = &mut **self.0.borrow_mut();
        script.provided.push("restore".to_owned());
        script.unrestored.clone()
    }
}

impl Store for Handle<'_> {
    fn open(&mut self, hosts: &BTreeMap<HostName, HostSnapshot>) -> Result<KnownRun, StoreProblem> {
        let script = &mut **self.0.borrow_mut();
        script.described = hosts.clone();
        let (id, trials) = (RunId::new("scripted").unwrap(), script.done_before.clone());
        let hosts = script.described_before.clone();
        let is_resumed = !trials.is_empty();
        Ok(KnownRun { id, seed: 5, is_resumed, trials, warnings: Vec::new(), hosts })
    }
    fn reserve(&mut self) -> Result<(), StoreProblem> {
        let script = self.0.borrow();
        if script.reserve_fails_at == Some(script.stored.len()) {
            return Err(StoreProblem { message: "the disk is full".to_owned() });
        }
        Ok(())
    }
    fn trial(&mut self, trial: &Trial) -> Result<(), StoreProblem> {
        let script = &mut **self.0.borrow_mut();
        if script.store_fails_at == Some(script.stored.len()) {
            return Err(StoreProblem { message: "the disk is gone".to_owned() });
        }
        script.stored.push(trial.clone());
        Ok(())
    }
    // The events show both.
    fn warning(&mut self, _: &Warning) {}
    fn end(&mut self, _: &RunEnd) {}
}

impl Policy for Handle<'_> {
    fn is_paused(&mut self) -> bool {
        self.0.borrow().pauses > 0
    }
    fn pause_ended(&mut self, _: Nanos) {
        self.0.borrow_mut().pauses -= 1;
    }
    fn stop_after_block(&mut self, trials: &[Trial], dropped: &BTreeMap<ArmName, String>) -> Option<RunEnd> {
        let script = &mut **self.0.borrow_mut();
        script.dropped = dropped.keys().cloned().collect();
        let enough = script.stop_after;
        enough.filter(|enough| trials.len() >= *enough).map(|_| RunEnd::PrecisionReached)
    }
    fn progress_interval(&self) -> Nanos {
        self.0.borrow().progress.unwrap_or(Limits::PROGRESS)
    }
}
