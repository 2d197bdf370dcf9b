//! Treatments of the provider's resources: NICs and VMs of Azure, changed from this machine through the user's `az`. Each original state is
//! with a guard before its first change; `undo` is what the guard runs. The guests are verified by the coordinator.
mod home;
mod present;
mod record;
mod recorded;
mod refusal;
mod shutdown;
mod state;
pub mod undo;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use netduel_agent::treatment::{GuardCommand, Treatments, recover, recover_coordinators};
use netduel_azure::az::process::AzProcess;
use netduel_azure::resource::{self, Machine};
use netduel_control::coordinator::{GuestCheck, HostChange, NoProvider, Provider, ProviderError};
use netduel_control::protocol::Recovery;
use netduel_model::ids::HostName;
use netduel_model::plan::{Arm, ResolvedPlan, TreatmentAction};
use netduel_model::units::{Nanos, plural};

use crate::azure::old;
use crate::console::tell;
use crate::exit::{Failure, Kind, chain};
use crate::{program, redaction, signal};
pub use home::Home;
use recorded::Recorded;
use refusal::{failed, guardless, refused, with_log};
use shutdown::NextShutdown;
use state::{Resource, State};
use undo::{UNDO_LIMIT, Undo};

/// How long a guest may take to show that a virtual function came or went, when its VM runs: a switch takes some seconds.
const GUEST_PATIENCE: Nanos = Nanos(60_000_000_000);
/// How long a VM may take from the end of `az vm start` until ssh reaches it.
const START_PATIENCE: Nanos = Nanos(600_000_000_000);

/// Checks the treatments of a plan before anything is asked or started: none stops a VM without permission (`may_stop`), and each has a resource group.
pub fn check(plan: &ResolvedPlan, may_stop: bool, home: &Home) -> Result<(), Failure> {
    let treatments = plan.arms.iter().flat_map(|arm| &arm.treatments).map(|treatment| &treatment.action);
    let actions = || treatments.clone().filter(|action| action.is_of_provider());
    let stopping = actions().find(|action| matches!(action, TreatmentAction::AzurePlacement { .. }));
    if let Some(action) = stopping.filter(|_| !may_stop) {
        let text = format!("failed to run the plan: {} stops the VM", action.words());
        return Err(Failure::message(Kind::Usage, text)
            .remedy("permit it with --allow-deallocate, or leave the treatment out"));
    }
    if let Some(action) = actions().find(|action| State::of(action, home).is_none()) {
        let text =
            format!("failed to run the plan: the treatment \"{}\" has no resource group", action.words());
        return Err(Failure::message(Kind::Usage, text).remedy("add resource-group = \"NAME\" to it"));
    }
    Ok(())
}

/// The provider for a plan. What an earlier run left changed is restored first.
pub fn of(
    plan: &ResolvedPlan,
    may_stop: bool,
    home: Home,
    is_quiet: bool,
) -> Result<Box<dyn Provider>, Failure> {
    check(plan, may_stop, &home)?;
    if !plan.has_provider_treatments() {
        return Ok(Box::new(NoProvider));
    }
    restore_earlier()?;
    let is_over = signal::interrupted().map_err(|error| signal::unheard("Ctrl-C", error))?;
    let mut az = AzProcess::new(is_over);
    // A command for beds has warned when it looked for its bed.
    if home.group.is_none() {
        old::warn_of_all(&mut az, is_quiet);
    }
    Ok(Box::new(Recorded(AzureProvider {
        shutdown: home.group.as_deref().zip(home.shutdown).map(NextShutdown::of),
        az,
        home,
        plan: plan.clone(),
        may_stop,
        held: Treatments::new(guard()),
        lasting: program::undo_folder(),
        is_record_known: false,
        resources: BTreeMap::new(),
        pending: BTreeMap::new(),
        to_start: Vec::new(),
    })))
}

/// Restores what earlier runs have left changed; whether there was something. NICs are switched and VMs stopped and started for it.
pub fn restore_earlier() -> Result<bool, Failure> {
    let has_settings = show_recovery(recover())?;
    let has_resources = show_recovery(recover_coordinators(program::undo_folder()))?;
    Ok(has_settings || has_resources)
}

/// Shows what earlier runs had left changed; whether there was something. What could not be restored is an error.
fn show_recovery(recovery: Recovery) -> Result<bool, Failure> {
    let has_restored = !recovery.restored.is_empty();
    for settings in of_earlier_run(recovery.restored) {
        tell(&format!("restored what an earlier run left changed: {settings}"));
    }
    let problem = recovery.problems.first();
    problem.map_or(Ok(has_restored), |problem| Err(not_restored(problem)))
}

/// Changes of an earlier run. With `--redact` they are counted: the names in them are not those of this run.
fn of_earlier_run(changes: Vec<String>) -> Vec<String> {
    if redaction::is_on() && !changes.is_empty() { vec![plural(changes.len(), "change")] } else { changes }
}

/// A change of an earlier run that could not be restored.
fn not_restored(problem: &str) -> Failure {
    if !redaction::is_on() {
        return Failure::message(Kind::Bed, problem);
    }
    Failure::message(Kind::Bed, "failed to restore what an earlier run left changed")
        .remedy("the error without --redact has its names and the reason")
}

/// The guard of this process. It knows no pseudonyms, so that with `--redact` its messages name no change.
fn guard() -> GuardCommand {
    let mut guard = GuardCommand::of_this_coordinator();
    if redaction::is_on() {
        guard.words.push("--no-names".to_owned());
    }
    guard
}

/// Learns the names of a resource that only Azure has, before a message has them.
fn learn_names(state: &State, machine: Option<&Machine>) {
    if let State::Placement { group: Some(id), .. } = state {
        redaction::learn_resource(id.rsplit('/').next().unwrap_or_default());
    }
    if let Some(Machine { place, name }) = machine {
        redaction::learn_resource(&place.group);
        redaction::learn_resource(name);
    }
}

/// What is known of a resource.
#[derive(Debug, Clone)]
struct Known {
    host: HostName,
    original: State,
    /// `None` after a change that failed.
    current: Option<State>,
    /// The MAC address of a NIC, as far as Azure has named it.
    mac: Option<String>,
    /// Its VM; absent for a NIC that is not attached.
    machine: Option<Machine>,
    /// Whether the guard has its original state, and whether with the VM stopped.
    held: Option<bool>,
}

/// State of a resource as Azure reports it.
struct Found {
    state: State,
    machine: Option<Machine>,
    mac: Option<String>,
    /// The subscription that has it.
    subscription: Option<String>,
}

struct AzureProvider {
    az: AzProcess,
    /// From the first resource on with its subscription.
    home: Home,
    plan: ResolvedPlan,
    may_stop: bool,
    held: Treatments,
    /// Where the guard's record outlives a boot.
    lasting: Option<PathBuf>,
    /// Whether a record was made, and its doubt shown.
    is_record_known: bool,
    resources: BTreeMap<Resource, Known>,
    /// The changes of each host that are due.
    pending: BTreeMap<HostName, Vec<State>>,
    /// VMs whose start is with the guard.
    to_start: Vec<Machine>,
    /// After it no VM of the bed is started.
    shutdown: Option<NextShutdown>,
}

impl AzureProvider {
    /// The state of a resource as Azure claims it.
    fn read(&mut self, resource: &Resource) -> Result<Found, ProviderError> {
        let read = match resource {
            Resource::Nic { place, nic } => resource::nic(&mut self.az, place, nic).map(|found| Found {
                state: State::Nic { place: place.clone(), nic: nic.clone(), accelerated: found.accelerated },
                machine: found.machine,
                mac: found.mac,
                subscription: found.subscription,
            }),
            Resource::Placement { place, vm } => {
                let machine = Machine { place: place.clone(), name: vm.clone() };
                resource::placement(&mut self.az, &machine).map(|found| Found {
                    state: State::Placement { place: place.clone(), vm: vm.clone(), group: found.group },
                    machine: Some(machine),
                    mac: None,
                    subscription: found.subscription,
                })
            }
        };
        read.map_err(failed)
    }

    /// The state that a treatment wants. Its resource is read when it is met first.
    fn meet(&mut self, host: &HostName, action: &TreatmentAction) -> Result<Option<State>, ProviderError> {
        let Some(state) = State::of(action, &self.home) else { return Ok(None) };
        let resource = state.resource();
        if self.resources.contains_key(&resource) {
            return Ok(Some(state));
        }
        let Found { state: found, machine, mac, subscription } = self.read(&resource)?;
        if self.home.subscription.is_none() && subscription.is_some() && self.resources.is_empty() {
            // Of one name there may be another resource in the subscription that `az account set` chooses meanwhile.
            self.home.subscription = subscription;
            return self.meet(host, action);
        }
        learn_names(&found, machine.as_ref());
        let original = self.home.original(&found);
        self.refuse_no_difference((host, action), &original)?;
        if let Some(message) = self.home.doubt(&found, &original) {
            tell(&message);
        }
        let is_left = !original.is(&found);
        let known = Known { host: host.clone(), original, current: Some(found), mac, machine, held: None };
        self.resources.insert(resource.clone(), known);
        if is_left {
            // The arms that remain may all want the present state.
            self.hold(&resource, false)?;
        }
        Ok(Some(state))
    }

    /// Refuses a state that a resource has anyway and that an arm wants, when another arm leaves the resource as it is: they would not differ by it.
    /// `host` and `action` are a treatment of the resource.
    fn refuse_no_difference(
        &self,
        (host, action): (&HostName, &TreatmentAction),
        original: &State,
    ) -> Result<(), ProviderError> {
        let resource = original.resource();
        let wanted = |arm: &Arm| {
            let mut states = arm.treatments.iter().filter_map(|one| State::of(&one.action, &self.home));
            states.find(|state| state.resource() == resource)
        };
        let arms = &self.plan.arms;
        let is_left = match original {
            State::Placement { .. } => arms.iter().any(|arm| wanted(arm).is_none()),
            State::Nic { .. } => self.plan.arm_that_leaves(host, action).is_some(),
        };
        if !is_left || !arms.iter().filter_map(wanted).any(|state| original.is(&state)) {
            return Ok(());
        }
        let (how, remedy) = match original {
            State::Placement { .. } => ("there", "take it out of the group".to_owned()),
            // The state may be that of a run whose undo was lost.
            State::Nic { place, nic, accelerated } => {
                let switch = self.home.command(&state::switch(place, nic, !accelerated));
                let lost = format!("if a run that ended early left it so, return it with `{switch}`");
                ("so", format!("{lost}; else write the other value of `accelerated`"))
            }
        };
        Err(ProviderError::Failed(format!(
            "{}: it is {how} without the treatment, too, so the arms do not differ by it; {remedy}, or leave the treatment out",
            original.words()
        )))
    }

    /// Hands the original state to the guard, once for a running VM and once for a stopped one: the undo with a stop comes first then, and
    /// leaves nothing to the other.
    fn hold(&mut self, resource: &Resource, stops: bool) -> Result<(), ProviderError> {
        let Some(known) = self.resources.get(resource) else { return Ok(()) };
        if known.held.is_some_and(|held| held || !stops) {
            return Ok(());
        }
        let next = self.shutdown.as_ref().zip(known.machine.as_ref());
        let shutdown_unix_s = next.and_then(|(next, machine)| next.unix_s_of(machine));
        let undo = known.original.undo(stops).command(shutdown_unix_s);
        let what = known.original.words();
        self.keep(&what, &undo)?;
        if let Some(known) = self.resources.get_mut(resource) {
            known.held = Some(stops);
        }
        Ok(())
    }

    /// Hands the undo of a change to the guard, before the change. The first time a warning names a record that may be lost.
    fn keep(&mut self, what: &str, undo: &[String]) -> Result<(), ProviderError> {
        self.held.hold(what, undo, UNDO_LIMIT).map_err(guardless)?;
        if !std::mem::replace(&mut self.is_record_known, true)
            && let Some(warning) = record::doubt(self.held.journal().as_deref(), self.lasting.as_deref())
        {
            tell(&warning);
        }
        Ok(())
    }

    /// Makes one change; the MAC address of a NIC after it, as far as Azure names one.
    fn set(&mut self, state: &State) -> Result<Option<String>, ProviderError> {
        let resource = state.resource();
        if let Some(known) = self.resources.get_mut(&resource) {
            known.current = None;
        }
        let in_words = |error| refused(error, &state.words());
        let mac = match state {
            State::Nic { place, nic, accelerated } => {
                resource::set_accelerated(&mut self.az, place, nic, *accelerated).map_err(in_words)?.mac
            }
            State::Placement { place, vm, group } => {
                let machine = Machine { place: place.clone(), name: vm.clone() };
                resource::set_placement(&mut self.az, &machine, group.as_deref()).map_err(in_words)?;
                None
            }
        };
        if let Some(known) = self.resources.get_mut(&resource) {
            known.current = Some(state.clone());
            known.keep_mac(mac.as_ref());
        }
        Ok(mac)
    }

    /// Refuses to stop a VM of an availability set: Azure makes a change only while all VMs of the set are stopped, and one stop would be in vain.
    fn refuse_set(&mut self, change: &HostChange, machine: &Machine) -> Result<(), ProviderError> {
        let Some(set) = resource::availability_set(&mut self.az, machine).map_err(failed)? else {
            return Ok(());
        };
        redaction::learn_resource(&set);
        Err(ProviderError::Failed(format!(
            "{}: {} is in the availability set {set}, and Azure makes this change only while all VMs of the set are stopped; \
             use VMs that are in no set, on a bed with placement = \"none\"",
            change.words, machine.name
        )))
    }

    /// Refuses a start of a VM after its daily shutdown.
    fn refuse_after_shutdown(&self, change: &HostChange, machine: &Machine) -> Result<(), ProviderError> {
        self.shutdown.as_ref().map_or(Ok(()), |next| next.refuse(&change.words, machine))
    }

    fn due(&self, change: &HostChange) -> Vec<State> {
        self.pending.get(&change.host).cloned().unwrap_or_default()
    }
}

impl Provider for AzureProvider {
    fn pending(&mut self, wanted: &[(HostName, TreatmentAction)]) -> Result<Vec<HostChange>, ProviderError> {
        let mut states: Vec<(HostName, State)> = Vec::new();
        for (host, action) in wanted {
            if let Some(state) = self.meet(host, action)? {
                states.push((host.clone(), state));
            }
        }
        for (resource, known) in &self.resources {
            if states.iter().all(|(_, wanted)| wanted.resource() != *resource) {
                states.push((known.host.clone(), known.original.clone()));
            }
        }
        self.pending.clear();
        let mut changes: Vec<HostChange> = Vec::new();
        for (host, state) in states {
            let known = self.resources.get(&state.resource());
            if known.and_then(|known| known.current.as_ref()).is_some_and(|current| current.is(&state)) {
                continue;
            }
            let words = state.words();
            let needs_stop = matches!(state, State::Placement { .. });
            match changes.iter_mut().find(|change| change.host == host) {
                Some(change) => {
                    change.words = format!("{}, {words}", change.words);
                    change.needs_stop |= needs_stop;
                }
                None => changes.push(HostChange { host: host.clone(), words, needs_stop }),
            }
            self.pending.entry(host).or_default().push(state);
        }
        Ok(changes)
    }

    fn change(&mut self, change: &HostChange) -> Result<Vec<GuestCheck>, ProviderError> {
        let mut checks = Vec::new();
        for state in self.due(change) {
            self.hold(&state.resource(), false)?;
            let mac = self.set(&state)?;
            checks.extend(state.check(mac)?);
        }
        Ok(checks)
    }

    fn change_stopped(&mut self, change: &HostChange) -> Result<Vec<GuestCheck>, ProviderError> {
        let due = self.due(change);
        let mut known = due.iter().filter_map(|state| self.resources.get(&state.resource()));
        let Some(machine) = known.find_map(|known| known.machine.clone()) else {
            return Err(ProviderError::Failed(format!(
                "{}: the NIC is not attached to a VM, so none can be stopped; attach it, or name another NIC in the plan",
                change.words
            )));
        };
        self.refuse_after_shutdown(change, &machine)?;
        if !self.to_start.contains(&machine) {
            self.refuse_set(change, &machine)?;
            let undo = Undo::Start { place: machine.place.clone(), vm: machine.name.clone() };
            let what = format!("the stop of {}", machine.name);
            let shutdown_unix_s = self.shutdown.as_ref().and_then(|next| next.unix_s_of(&machine));
            self.keep(&what, &undo.command(shutdown_unix_s))?;
            self.to_start.push(machine.clone());
        }
        for state in &due {
            self.hold(&state.resource(), true)?;
        }
        resource::stop(&mut self.az, &machine).map_err(failed)?;
        for state in &due {
            self.set(state).map_err(|error| with_log(error, state.place(), &self.home))?;
        }
        self.refuse_after_shutdown(change, &machine)?;
        resource::start(&mut self.az, &machine).map_err(failed)?;
        let mut checks = Vec::new();
        for state in &due {
            // The NIC of a stopped VM may have no MAC address.
            let mac = match state {
                State::Nic { place, nic, .. } => resource::nic(&mut self.az, place, nic).map_err(failed)?.mac,
                State::Placement { .. } => None,
            };
            if let Some(known) = self.resources.get_mut(&state.resource()) {
                known.keep_mac(mac.as_ref());
            }
            checks.extend(state.check(mac)?);
        }
        Ok(checks)
    }

    fn present(&self) -> Vec<(HostName, GuestCheck)> {
        self.resources.values().filter_map(Known::shown).collect()
    }

    fn may_stop(&self) -> bool {
        self.may_stop
    }

    fn patience(&self) -> (Nanos, Nanos) {
        (GUEST_PATIENCE, START_PATIENCE)
    }

    fn restore(&mut self) -> Vec<(HostName, String)> {
        if self.held.applied() == 0 {
            return Vec::new();
        }
        tell("returning the resources of the provider to their original state");
        let undone = self.held.undo_all();
        if let Some(message) = self.shutdown.as_ref().and_then(|next| next.not_started(&self.to_start)) {
            tell(&message);
        }
        let Err(errors) = undone else { return Vec::new() };
        // Which resource an error is about only its words say: no host with a resource counts as restored.
        let hosts: BTreeSet<&HostName> = self.resources.values().map(|known| &known.host).collect();
        let of_host = |host: &HostName| {
            errors
                .iter()
                .map(|error| (host.clone(), format!("failed to {}", chain(error))))
                .collect::<Vec<_>>()
        };
        hosts.into_iter().flat_map(of_host).collect()
    }
}
