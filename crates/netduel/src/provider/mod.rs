//! Treatments of the provider's resources: NICs and VMs of Azure, changed from this machine through the user's `az`. Each original state is
//! with a guard before its first change; `undo` is what the guard runs. The guests are verified by the coordinator.
mod home;
mod present;
mod refusal;
mod shutdown;
pub mod undo;

use std::collections::{BTreeMap, BTreeSet};

use netduel_agent::treatment::{GuardCommand, Treatments, recover};
use netduel_azure::az::process::AzProcess;
use netduel_azure::resource::{self, Machine, Place};
use netduel_control::coordinator::{GuestCheck, HostChange, NoProvider, Provider, ProviderError};
use netduel_model::ids::HostName;
use netduel_model::plan::{Arm, ResolvedPlan, TreatmentAction};
use netduel_model::units::Nanos;

use crate::azure::old;
use crate::console::tell;
use crate::exit::{Failure, Kind, chain};
use crate::signal;
pub use home::Home;
use refusal::{failed, guardless, refused, with_log};
use shutdown::NextShutdown;
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
    if let Some(action) = actions().find(|action| Resource::of(action, home).is_none()) {
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
    let recovery = recover();
    for setting in &recovery.restored {
        tell(&format!("restored what an earlier run left changed: {setting}"));
    }
    if let Some(problem) = recovery.problems.first() {
        return Err(Failure::message(Kind::Bed, problem.clone()));
    }
    let is_over = signal::interrupted().map_err(|error| signal::unheard("Ctrl-C", error))?;
    let mut az = AzProcess::new(is_over);
    // A command for beds has warned when it looked for its bed.
    if home.group.is_none() {
        old::warn_of_all(&mut az, is_quiet);
    }
    Ok(Box::new(AzureProvider {
        shutdown: home.group.as_deref().zip(home.shutdown).map(NextShutdown::of),
        az,
        home,
        plan: plan.clone(),
        may_stop,
        held: Treatments::new(GuardCommand::of_this_coordinator()),
        resources: BTreeMap::new(),
        pending: BTreeMap::new(),
        to_start: Vec::new(),
    }))
}

/// What is changed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Resource {
    /// The proximity placement group of a VM.
    Placement { place: Place, vm: String },
    /// Accelerated networking of a NIC.
    Nic { place: Place, nic: String },
}

/// A state of a resource.
#[derive(Debug, Clone, PartialEq, Eq)]
enum State {
    /// The group, by name or id.
    Placement(Option<String>),
    Accelerated(bool),
}

impl State {
    fn is(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Placement(one), Self::Placement(other)) => {
                resource::is_same_placement(one.as_deref(), other.as_deref())
            }
            _ => self == other,
        }
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
    resources: BTreeMap<Resource, Known>,
    /// The changes of each host that are due.
    pending: BTreeMap<HostName, Vec<(Resource, State)>>,
    /// VMs whose start is with the guard.
    to_start: Vec<Machine>,
    /// After it no VM of the bed is started.
    shutdown: Option<NextShutdown>,
}

impl Resource {
    fn of(action: &TreatmentAction, home: &Home) -> Option<(Self, State)> {
        let place = |own: &Option<String>| {
            let group = own.clone().or_else(|| home.group.clone())?;
            Some(Place { subscription: home.subscription.clone(), group })
        };
        match action {
            TreatmentAction::AzureNic { nic, resource_group, accelerated } => Some((
                Self::Nic { place: place(resource_group)?, nic: nic.clone() },
                State::Accelerated(*accelerated),
            )),
            TreatmentAction::AzurePlacement { vm, group, resource_group } => Some((
                Self::Placement { place: place(resource_group)?, vm: vm.clone() },
                State::Placement(Some(group.clone())),
            )),
            _ => None,
        }
    }

    fn words(&self, state: &State) -> String {
        match (self, state) {
            (Self::Nic { nic, .. }, State::Accelerated(on)) => {
                format!("accelerated networking of {nic} {}", if *on { "on" } else { "off" })
            }
            (Self::Placement { vm, .. }, State::Placement(Some(group))) => {
                format!("{vm} in the proximity group {}", group.rsplit('/').next().unwrap_or_default())
            }
            (Self::Placement { vm, .. } | Self::Nic { nic: vm, .. }, _) => {
                format!("{vm} in no proximity group")
            }
        }
    }

    /// The command that a person gives a NIC this state with; `None` for a placement.
    fn switch(&self, state: &State) -> Option<String> {
        let (Self::Nic { place, nic }, State::Accelerated(on)) = (self, state) else { return None };
        let name = format!("--resource-group {} --name {nic}", place.group);
        Some(format!("az network nic update {name} --accelerated-networking {on}"))
    }

    /// What its guest must show in a state; nothing of a placement. A NIC without a MAC address cannot be found in the guest: it is not verified,
    /// and that is no success.
    fn check(&self, state: &State, mac: Option<String>) -> Result<Option<GuestCheck>, ProviderError> {
        let (Self::Nic { nic, .. }, State::Accelerated(on)) = (self, state) else { return Ok(None) };
        match mac {
            Some(mac) => Ok(Some(GuestCheck { nic: nic.clone(), mac, has_vf: *on })),
            None => Err(ProviderError::WhileRunning(format!(
                "Azure names no MAC address of {nic}, so its VM cannot show whether it was switched"
            ))),
        }
    }

    /// The command that returns it to a state; `stops`: with its VM stopped.
    fn undo(&self, original: &State, stops: bool) -> Undo {
        match (self, original) {
            (Self::Nic { place, nic }, State::Accelerated(accelerated)) => {
                Undo::Nic { place: place.clone(), nic: nic.clone(), accelerated: *accelerated, stops }
            }
            (Self::Placement { place, vm } | Self::Nic { place, nic: vm }, state) => {
                let group = if let State::Placement(group) = state { group.clone() } else { None };
                Undo::Placement { place: place.clone(), vm: vm.clone(), group }
            }
        }
    }
}

impl AzureProvider {
    /// The state of a resource as Azure claims it.
    fn read(&mut self, resource: &Resource) -> Result<Found, ProviderError> {
        let read = match resource {
            Resource::Nic { place, nic } => resource::nic(&mut self.az, place, nic).map(|found| Found {
                state: State::Accelerated(found.accelerated),
                machine: found.machine,
                mac: found.mac,
                subscription: found.subscription,
            }),
            Resource::Placement { place, vm } => {
                let machine = Machine { place: place.clone(), name: vm.clone() };
                resource::placement(&mut self.az, &machine).map(|found| Found {
                    state: State::Placement(found.group),
                    machine: Some(machine),
                    mac: None,
                    subscription: found.subscription,
                })
            }
        };
        read.map_err(failed)
    }

    /// The resource of a treatment, and the state that the treatment wants. A resource is read when it is met first.
    fn meet(
        &mut self,
        host: &HostName,
        action: &TreatmentAction,
    ) -> Result<Option<(Resource, State)>, ProviderError> {
        let Some((resource, state)) = Resource::of(action, &self.home) else { return Ok(None) };
        if self.resources.contains_key(&resource) {
            return Ok(Some((resource, state)));
        }
        let Found { state: found, machine, mac, subscription } = self.read(&resource)?;
        if self.home.subscription.is_none() && subscription.is_some() && self.resources.is_empty() {
            // Of one name there may be another resource in the subscription that `az account set` chooses meanwhile.
            self.home.subscription = subscription;
            return self.meet(host, action);
        }
        let original = self.home.original(&resource, &found);
        self.refuse_no_difference((host, action), &resource, &original)?;
        if let Some(message) = self.home.doubt(&resource, &found, &original) {
            tell(&message);
        }
        let is_left = !original.is(&found);
        let known = Known { host: host.clone(), original, current: Some(found), mac, machine, held: None };
        self.resources.insert(resource.clone(), known);
        if is_left {
            // The arms that remain may all want the present state.
            self.hold(&resource, false)?;
        }
        Ok(Some((resource, state)))
    }

    /// Refuses a state that a resource has anyway and that an arm wants, when another arm leaves the resource as it is: they would not differ by it.
    /// `host` and `action` are a treatment of the resource.
    fn refuse_no_difference(
        &self,
        (host, action): (&HostName, &TreatmentAction),
        resource: &Resource,
        original: &State,
    ) -> Result<(), ProviderError> {
        let wanted = |arm: &Arm| {
            arm.treatments.iter().find_map(|treatment| {
                let (changed, state) = Resource::of(&treatment.action, &self.home)?;
                (changed == *resource).then_some(state)
            })
        };
        let arms = &self.plan.arms;
        let is_left = match resource {
            Resource::Placement { .. } => arms.iter().any(|arm| wanted(arm).is_none()),
            Resource::Nic { .. } => self.plan.arm_that_leaves(host, action).is_some(),
        };
        if !is_left || !arms.iter().filter_map(wanted).any(|state| original.is(&state)) {
            return Ok(());
        }
        let (how, remedy) = match resource {
            Resource::Placement { .. } => ("there", "take it out of the group".to_owned()),
            // The state may be that of a run whose undo was lost.
            Resource::Nic { .. } => {
                let other = State::Accelerated(!original.is(&State::Accelerated(true)));
                let switch = self.home.command(&resource.switch(&other).unwrap_or_default());
                let lost = format!("if a run that ended early left it so, return it with `{switch}`");
                ("so", format!("{lost}; else write the other value of `accelerated`"))
            }
        };
        Err(ProviderError::Failed(format!(
            "{}: it is {how} without the treatment, too, so the arms do not differ by it; {remedy}, or leave the treatment out",
            resource.words(original)
        )))
    }

    /// Hands the original state to the guard, once for a running VM and once for a stopped one: the undo with a stop comes first then, and
    /// leaves nothing to the other.
    fn hold(&mut self, resource: &Resource, stops: bool) -> Result<(), ProviderError> {
        let Some(known) = self.resources.get_mut(resource) else { return Ok(()) };
        if known.held.is_some_and(|held| held || !stops) {
            return Ok(());
        }
        let undo = resource.undo(&known.original, stops);
        let what: Vec<String> = resource.words(&known.original).split(' ').map(str::to_owned).collect();
        let next = self.shutdown.as_ref().zip(known.machine.as_ref());
        let undo = undo.command(next.and_then(|(next, machine)| next.unix_s_of(machine)));
        self.held.hold(&what, &undo, UNDO_LIMIT).map_err(guardless)?;
        known.held = Some(stops);
        Ok(())
    }

    /// Makes one change; the MAC address of a NIC after it, as far as Azure names one.
    fn set(&mut self, resource: &Resource, state: &State) -> Result<Option<String>, ProviderError> {
        if let Some(known) = self.resources.get_mut(resource) {
            known.current = None;
        }
        let in_words = |error| refused(error, &resource.words(state));
        let mac = match (resource, state) {
            (Resource::Nic { place, nic }, State::Accelerated(on)) => {
                resource::set_accelerated(&mut self.az, place, nic, *on).map_err(in_words)?.mac
            }
            (Resource::Placement { place, vm } | Resource::Nic { place, nic: vm }, state) => {
                let group = if let State::Placement(group) = state { group.as_deref() } else { None };
                let machine = Machine { place: place.clone(), name: vm.clone() };
                resource::set_placement(&mut self.az, &machine, group).map_err(in_words)?;
                None
            }
        };
        if let Some(known) = self.resources.get_mut(resource) {
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

    fn due(&self, change: &HostChange) -> Vec<(Resource, State)> {
        self.pending.get(&change.host).cloned().unwrap_or_default()
    }
}

impl Provider for AzureProvider {
    fn pending(&mut self, wanted: &[(HostName, TreatmentAction)]) -> Result<Vec<HostChange>, ProviderError> {
        let mut states: Vec<(HostName, Resource, State)> = Vec::new();
        for (host, action) in wanted {
            if let Some((resource, state)) = self.meet(host, action)? {
                states.push((host.clone(), resource, state));
            }
        }
        for (resource, known) in &self.resources {
            if states.iter().all(|(_, wanted, _)| wanted != resource) {
                states.push((known.host.clone(), resource.clone(), known.original.clone()));
            }
        }
        self.pending.clear();
        let mut changes: Vec<HostChange> = Vec::new();
        for (host, resource, state) in states {
            let known = self.resources.get(&resource);
            if known.and_then(|known| known.current.as_ref()).is_some_and(|current| current.is(&state)) {
                continue;
            }
            let words = resource.words(&state);
            let needs_stop = matches!(resource, Resource::Placement { .. });
            match changes.iter_mut().find(|change| change.host == host) {
                Some(change) => {
                    change.words = format!("{}, {words}", change.words);
                    change.needs_stop |= needs_stop;
                }
                None => changes.push(HostChange { host: host.clone(), words, needs_stop }),
            }
            self.pending.entry(host).or_default().push((resource, state));
        }
        Ok(changes)
    }

    fn change(&mut self, change: &HostChange) -> Result<Vec<GuestCheck>, ProviderError> {
        let mut checks = Vec::new();
        for (resource, state) in self.due(change) {
            self.hold(&resource, false)?;
            let mac = self.set(&resource, &state)?;
            checks.extend(resource.check(&state, mac)?);
        }
        Ok(checks)
    }

    fn change_stopped(&mut self, change: &HostChange) -> Result<Vec<GuestCheck>, ProviderError> {
        let due = self.due(change);
        let mut known = due.iter().filter_map(|(resource, _)| self.resources.get(resource));
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
            let what = ["the", "stop", "of", machine.name.as_str()].map(str::to_owned);
            let shutdown_unix_s = self.shutdown.as_ref().and_then(|next| next.unix_s_of(&machine));
            self.held.hold(&what, &undo.command(shutdown_unix_s), UNDO_LIMIT).map_err(guardless)?;
            self.to_start.push(machine.clone());
        }
        for (resource, _) in &due {
            self.hold(resource, true)?;
        }
        resource::stop(&mut self.az, &machine).map_err(failed)?;
        for (resource, state) in &due {
            self.set(resource, state).map_err(|error| with_log(error, resource, &self.home))?;
        }
        self.refuse_after_shutdown(change, &machine)?;
        resource::start(&mut self.az, &machine).map_err(failed)?;
        let mut checks = Vec::new();
        for (resource, state) in &due {
            // The NIC of a stopped VM may have no MAC address.
            let mac = match resource {
                Resource::Nic { place, nic } => resource::nic(&mut self.az, place, nic).map_err(failed)?.mac,
                Resource::Placement { .. } => None,
            };
            if let Some(known) = self.resources.get_mut(resource) {
                known.keep_mac(mac.as_ref());
            }
            checks.extend(resource.check(state, mac)?);
        }
        Ok(checks)
    }

    fn present(&self) -> Vec<(HostName, GuestCheck)> {
        self.resources.iter().filter_map(|(resource, known)| known.shown(resource)).collect()
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
