//! What a run does on each host besides traffic, from a resolved plan: the programs that the plan names and the settings that it
//! changes. Nothing is run or judged here.
use std::collections::HashSet;

use crate::dpdk::DpdkSettings;
use crate::failover::{PathEvent, PathEventKind};
use crate::ids::HostName;
use crate::plan::resolved::{Launch, ResolvedPlan, Treatment, TreatmentAction};
use crate::workload::Role;

/// What a run does on a host besides traffic; each thing stands there once, however many arms do it.
#[derive(Debug, Clone, PartialEq)]
pub struct HostUses<'p> {
    /// The host.
    pub name: &'p HostName,
    /// How its agent is started.
    pub launch: &'p Launch,
    /// Programs that the agent runs.
    pub commands: Vec<HostCommand>,
    /// Sysctls that are set, by name and value.
    pub sysctls: Vec<(String, String)>,
    /// All other treatments.
    pub treatments: Vec<Treatment>,
    /// Events that change the path during traffic.
    pub events: Vec<PathEvent>,
}

/// A program that an agent runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostCommand {
    /// The program and its arguments.
    pub words: Vec<String>,
    /// The command that undoes it; empty for a program that ends with its trial.
    pub undo: Vec<String>,
    /// Whether the plan chose the program or its arguments, and not netduel.
    pub is_of_plan: bool,
}

impl HostCommand {
    fn of_testpmd(dpdk: &DpdkSettings) -> Self {
        let words = std::iter::once(&dpdk.program).chain(&dpdk.args).cloned().collect();
        Self { words, undo: Vec::new(), is_of_plan: dpdk.is_chosen_by_plan() }
    }

    fn of_event(event: &PathEvent) -> Option<Self> {
        let (words, undo) = (event.command.clone(), event.undo.clone());
        (!words.is_empty()).then_some(Self { words, undo, is_of_plan: true })
    }
}

impl HostUses<'_> {
    /// Whether something of it needs root on the host: a sysctl, a setting of an interface, an event. Whether a program that the plan
    /// names needs it is not known.
    pub fn needs_root(&self) -> bool {
        let is_on_host = |treatment: &Treatment| {
            !matches!(treatment.action, TreatmentAction::Path { .. }) && !treatment.action.is_of_provider()
        };
        !self.sysctls.is_empty()
            || self.treatments.iter().any(is_on_host)
            || self.events.iter().any(|event| event.kind != PathEventKind::Command)
    }

    /// The command that starts the agent, when the plan names one.
    pub fn launcher(&self) -> Option<&[String]> {
        match self.launch {
            Launch::Command { prefix } => Some(prefix),
            Launch::Local
            | Launch::Lab { .. }
            | Launch::Netns { .. }
            | Launch::Ssh(_)
            | Launch::Paired { .. }
            | Launch::Bed { .. } => None,
        }
    }
}

impl ResolvedPlan {
    /// What a run does on each host besides traffic, by host.
    pub fn uses(&self) -> Vec<HostUses<'_>> {
        self.hosts.iter().map(|(name, host)| self.uses_of(name, &host.launch)).collect()
    }

    fn uses_of<'p>(&'p self, name: &'p HostName, launch: &'p Launch) -> HostUses<'p> {
        let (commands, sysctls, treatments, events) = Default::default();
        let mut uses = HostUses { name, launch, commands, sysctls, treatments, events };
        let mut seen = HashSet::new();
        for arm in self.arms_of_all_blocks() {
            for role in [Role::Client, Role::Server].into_iter().filter(|role| arm.pair.host(*role) == name) {
                for treatment in arm.treatments.iter().filter(|treatment| treatment.on.includes(role)) {
                    if seen.insert(format!("{:?}", treatment.action)) {
                        uses.add_treatment(treatment);
                    }
                }
                for workload in &arm.workloads {
                    let facts = workload.traffic.facts();
                    let events = facts.events.iter().filter(|event| event.on.includes(role));
                    let new: Vec<PathEvent> =
                        events.filter(|event| seen.insert(format!("{event:?}"))).cloned().collect();
                    uses.commands.extend(new.iter().filter_map(HostCommand::of_event));
                    uses.events.extend(new);
                    let testpmd = facts.packets.and_then(|packets| packets.dpdk(role));
                    uses.commands.extend(
                        testpmd
                            .map(HostCommand::of_testpmd)
                            .filter(|command| seen.insert(format!("{command:?}"))),
                    );
                }
            }
        }
        uses
    }
}

impl HostUses<'_> {
    fn add_treatment(&mut self, treatment: &Treatment) {
        match &treatment.action {
            TreatmentAction::Command { command, undo } => {
                self.commands.push(HostCommand {
                    words: command.clone(),
                    undo: undo.clone(),
                    is_of_plan: true,
                });
            }
            TreatmentAction::Sysctl { name, value } => self.sysctls.push((name.clone(), value.clone())),
            _ => self.treatments.push(treatment.clone()),
        }
    }
}
