//! Facts of runs, and those that differ. Which verdicts a difference may explain is decided in [`super`].
use std::collections::{BTreeMap, BTreeSet};

use netduel_model::bed::money::Money;
use netduel_model::ids::{ArmName, HostName, WorkloadName};
use netduel_model::plan::{Host, ResolvedPlan};
use netduel_model::run::{Run, RunHeader};
use netduel_model::snapshot::{HostSnapshot, LOOPBACK, SYSCTLS_OF_STATE};
use netduel_model::workload::{Role, Workload};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::host_facts::{self, Later};
use super::{arm_facts, bed_facts};
use crate::words;

/// What a fact is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Aspect {
    /// The question, and what the user wrote about the run.
    Note,
    /// The version or the build of netduel.
    Program,
    /// The design of the comparison within a run.
    Design,
    /// The lab of the run.
    Lab,
    /// Cores of the threads.
    Pinning,
    /// How the host is reached.
    Access,
    /// The kernel and the distribution.
    System,
    /// The size of the machine.
    Size,
    /// The processor, the memory and the hypervisor.
    Machine,
    /// Where the machine runs.
    Placement,
    /// A network interface, its driver and its settings.
    Interface,
    /// A sysctl.
    Sysctl,
    /// The firewall.
    Firewall,
}

impl Aspect {
    /// Whether it can change measured values.
    pub fn may_change_values(self) -> bool {
        match self {
            Self::Note | Self::Design => false,
            Self::Program
            | Self::Lab
            | Self::Pinning
            | Self::Access
            | Self::System
            | Self::Size
            | Self::Machine
            | Self::Placement
            | Self::Interface
            | Self::Sysctl
            | Self::Firewall => true,
        }
    }
}

/// Whose fact it is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Owner {
    /// The run as a whole.
    Run,
    /// A host of the plan.
    Host(HostName),
    /// An arm.
    Arm(ArmName),
    /// A workload of an arm.
    Workload(ArmName, WorkloadName),
}

/// A fact that differs between the runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// What it is about.
    pub aspect: Aspect,
    /// Whose fact it is.
    pub owner: Owner,
    /// The fact, for people.
    pub fact: String,
    /// Its value in each run; absent where it is unknown or does not exist.
    pub values: Vec<Option<String>>,
}

impl Difference {
    /// Its value in a run, for people.
    pub fn value(&self, run: usize) -> &str {
        self.values.get(run).and_then(Option::as_deref).unwrap_or("unknown or none")
    }

    /// Whose fact it is and which: `kernel of host a`.
    pub fn subject(&self) -> String {
        let fact = &self.fact;
        match &self.owner {
            Owner::Run => fact.clone(),
            Owner::Host(host) => format!("{fact} of host {host}"),
            Owner::Arm(arm) => format!("{fact} of arm {arm}"),
            Owner::Workload(arm, workload) => format!("{fact} of {workload} on {arm}"),
        }
    }
}

/// A fact of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fact {
    /// What it is about.
    pub aspect: Aspect,
    /// Whose fact it is.
    pub owner: Owner,
    /// The interface of the host; absent for facts of the whole host or of no host.
    pub interface: Option<String>,
    /// The fact, for people, without the interface.
    pub name: String,
    /// Its value.
    pub value: String,
}

impl Fact {
    /// The fact with its interface.
    fn words(&self) -> String {
        match &self.interface {
            Some(interface) if self.name == PRESENCE => format!("{PRESENCE} of {interface}"),
            Some(interface) => format!("{interface} {}", self.name),
            None => self.name.clone(),
        }
    }

    /// The group of facts that snapshots of earlier versions lack, if it is of one.
    fn later(&self) -> Option<Later> {
        if self.interface.is_some() { None } else { Later::of(self.aspect, &self.name) }
    }
}

/// The name of the fact that a host or an interface exists.
const PRESENCE: &str = "presence";

/// The facts of several runs that differ, in the order in which the first run that has them lists them.
pub(super) fn differences(runs: &[&RunFacts]) -> Vec<Difference> {
    let everywhere = Everywhere::in_all(runs);
    let mut differences: Vec<Difference> = Vec::new();
    // A file from elsewhere may have a million of them.
    let mut places: BTreeMap<(Aspect, &Owner, String), usize> = BTreeMap::new();
    for (run, facts) in runs.iter().enumerate() {
        for one in facts.0.iter().filter(|one| everywhere.shows(one)) {
            let fact = one.words();
            let place = *places.entry((one.aspect, &one.owner, fact.clone())).or_insert(differences.len());
            if place == differences.len() {
                let (aspect, owner) = (one.aspect, one.owner.clone());
                differences.push(Difference { aspect, owner, fact, values: vec![None; runs.len()] });
            }
            let own = differences.get_mut(place).and_then(|difference| difference.values.get_mut(run));
            if let Some(own) = own {
                *own = Some(one.value.clone());
            }
        }
    }
    // An arm or a workload that a run lacks is not compared, and has its reason there. Baseline files of earlier versions have no facts of
    // arms.
    let is_in_all = |one: &Difference| {
        !matches!(one.owner, Owner::Arm(_) | Owner::Workload(..)) || one.values.iter().all(Option::is_some)
    };
    differences.retain(|one| is_in_all(one) && one.values.windows(2).any(|two| two.first() != two.last()));
    differences
}

/// What all runs have, and only that is compared in detail: of a host or an interface that a run lacks, every fact would differ, and so would
/// every fact that the version of an earlier run did not read.
#[derive(Default)]
struct Everywhere {
    hosts: BTreeSet<HostName>,
    interfaces: BTreeSet<(HostName, String)>,
    later: BTreeSet<(HostName, Later)>,
}

impl Everywhere {
    fn in_all(runs: &[&RunFacts]) -> Self {
        let both = |all: Self, own: Self| Self {
            hosts: &all.hosts & &own.hosts,
            interfaces: &all.interfaces & &own.interfaces,
            later: &all.later & &own.later,
        };
        runs.iter().map(|run| Self::of(run)).reduce(both).unwrap_or_default()
    }

    fn of(run: &RunFacts) -> Self {
        let mut own = Self::default();
        for fact in &run.0 {
            let Owner::Host(host) = &fact.owner else { continue };
            own.hosts.insert(host.clone());
            own.interfaces.extend(fact.interface.iter().map(|interface| (host.clone(), interface.clone())));
            own.later.extend(fact.later().map(|group| (host.clone(), group)));
        }
        own
    }

    /// Whether a fact is compared: of what a run lacks only that.
    fn shows(&self, fact: &Fact) -> bool {
        let Owner::Host(host) = &fact.owner else { return true };
        let is_everywhere = self.hosts.contains(host);
        match &fact.interface {
            None => {
                let is_read = fact.later().is_none_or(|group| self.later.contains(&(host.clone(), group)));
                (is_everywhere && is_read) || fact.name == PRESENCE
            }
            Some(interface) => {
                let is_common = self.interfaces.contains(&(host.clone(), interface.clone()));
                is_everywhere && (is_common || fact.name == PRESENCE)
            }
        }
    }
}

/// The facts of a run that a comparison can show, in their order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunFacts(pub Vec<Fact>);

impl RunFacts {
    /// From what was known before the first trial, and from the first testpmd of each host.
    pub fn of(run: &Run) -> Self {
        let header = &run.header;
        let mut facts = Self(Vec::new());
        facts.add_notes(header);
        facts.add_plan(&header.plan);
        facts.add_arms(header);
        for (name, snapshot) in &header.hosts {
            let owner = Owner::Host(name.clone());
            facts.add_host(name, &header.plan, snapshot);
            facts.add_bed(name, header);
            facts.add_testpmd(name, run);
            facts.add_interfaces(name, snapshot);
            let is_setting = |(name, _): &(&String, &String)| !SYSCTLS_OF_STATE.contains(&name.as_str());
            for (sysctl, value) in snapshot.sysctls.iter().filter(is_setting) {
                facts.add(Aspect::Sysctl, &owner, sysctl, Some(value.clone()));
            }
        }
        facts
    }

    fn add(&mut self, aspect: Aspect, owner: &Owner, fact: &str, value: Option<String>) {
        self.add_of(aspect, owner, None, fact, value);
    }

    fn add_of(
        &mut self,
        aspect: Aspect,
        owner: &Owner,
        interface: Option<&str>,
        fact: &str,
        value: Option<String>,
    ) {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            let (interface, name) = (interface.map(str::to_owned), fact.to_owned());
            self.0.push(Fact { aspect, owner: owner.clone(), interface, name, value });
        }
    }

    fn add_notes(&mut self, header: &RunHeader) {
        let annotations = &header.annotations;
        let mut add = |aspect, fact: &str, value| self.add(aspect, &Owner::Run, fact, value);
        add(Aspect::Note, "plan", Some(header.plan.name.clone()));
        add(Aspect::Note, "question", Some(header.plan.question.clone()));
        add(Aspect::Note, "title", annotations.title.clone());
        add(Aspect::Note, words::SETTINGS, words::settings_of_command_line(header));
        for (key, note) in &annotations.notes {
            add(Aspect::Note, &format!("note {key}"), Some(note.clone()));
        }
        add(Aspect::Program, "netduel", Some(header.program.clone()));
    }

    fn add_plan(&mut self, plan: &ResolvedPlan) {
        let design = &plan.design;
        let mut add = |aspect, fact: &str, value| self.add(aspect, &Owner::Run, fact, value);
        add(Aspect::Design, "blocks", Some(format!("{} to {}", design.blocks_min, design.blocks_max)));
        add(Aspect::Design, "budget", design.budget.map(|budget| budget.to_string()));
        add(Aspect::Design, "precision", Some(design.precision.to_string()));
        add(Aspect::Design, "margin of no difference", Some(design.equivalence.to_string()));
        add(Aspect::Design, "confidence", Some(design.confidence.to_string()));
        add(Aspect::Design, "A/A run", Some(String::from(if design.aa { "yes" } else { "no" })));
        let exchange = plan.crossover_at().map(|half| format!("after block {half}"));
        add(Aspect::Design, "exchange of hosts (crossover)", exchange);
        if let Some(lab) = &plan.lab {
            let cap = lab.cap.map_or_else(|| "none".to_owned(), |cap| cap.to_string());
            add(Aspect::Lab, "policy rules", Some(lab.rules.to_string()));
            add(Aspect::Lab, "cap", Some(cap));
            add(Aspect::Lab, "MTU", Some(lab.mtu.to_string()));
            add(Aspect::Lab, "queues", Some(lab.queues.to_string()));
        }
        for arm in &plan.arms {
            for workload in &arm.workloads {
                let owner = Owner::Workload(arm.name.clone(), workload.name.clone());
                self.add(Aspect::Pinning, &owner, "cores of the threads", Some(pins(workload)));
                let metrics: Vec<&str> = workload.metrics.iter().map(|metric| metric.key()).collect();
                self.add(Aspect::Design, &owner, "judged metrics", Some(metrics.join(", ")));
            }
        }
    }

    fn add_arms(&mut self, header: &RunHeader) {
        for arm in &header.plan.arms {
            let owner = Owner::Arm(arm.name.clone());
            let mut add = |aspect, fact: &str, value| self.add(aspect, &owner, fact, value);
            add(Aspect::Access, "server addresses", Some(arm_facts::server_addresses(arm)));
            add(Aspect::Interface, "required path", Some(arm_facts::required_path(arm)));
            add(Aspect::Note, "expected rate", Some(arm_facts::expected_rate(arm)));
            // Without a bed they are settings of the arm.
            if header.bed.is_some() {
                add(Aspect::Interface, "changed interfaces", arm_facts::changed_interfaces(arm));
                add(Aspect::Placement, "resource group", arm_facts::resource_groups(arm));
            }
        }
    }

    /// What the provider claims of a host that is a VM of a bed.
    fn add_bed(&mut self, name: &HostName, header: &RunHeader) {
        let vm = header.plan.hosts.get(name).and_then(|host| host.vm.as_deref());
        let (Some(bed), Some(vm)) = (&header.bed, vm) else { return };
        let Some(vm) = bed.vm(vm) else { return };
        let owner = Owner::Host(name.clone());
        for (fact, value) in bed_facts::placement(bed, vm) {
            self.add(Aspect::Placement, &owner, fact, value);
        }
        for (fact, value) in bed_facts::accelerated(vm) {
            self.add(Aspect::Interface, &owner, &fact, value);
        }
    }

    fn add_host(&mut self, name: &HostName, plan: &ResolvedPlan, host: &HostSnapshot) {
        let owner = Owner::Host(name.clone());
        let mut add = |aspect, fact: &str, value| self.add(aspect, &owner, fact, value);
        let planned = plan.hosts.get(name);
        let addresses =
            |planned: &Host| planned.addresses.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        add(Aspect::Access, PRESENCE, Some("yes".to_owned()));
        add(Aspect::Access, "launch", planned.map(|planned| words::launch(&planned.launch)));
        add(Aspect::Access, "addresses", planned.map(addresses));
        let price = planned.and_then(|planned| planned.price_per_hour.as_ref());
        add(Aspect::Note, "price of an hour", price.map(Money::exact));
        host_facts::of_host(host, planned.and_then(|planned| planned.size.clone()), &mut add);
    }

    /// The versions of what carried the packets in user space.
    fn add_testpmd(&mut self, name: &HostName, run: &Run) {
        let plan = &run.header.plan;
        let report = run.trials.iter().find_map(|trial| {
            let pair = plan.pair_in(plan.arm(&trial.slot.arm)?, trial.slot.block);
            let mut own = [Role::Client, Role::Server].into_iter().filter(|role| pair.host(*role) == name);
            own.find_map(|role| trial.end(role)?.report.dpdk.as_ref())
        });
        let Some(report) = report else { return };
        let owner = Owner::Host(name.clone());
        self.add(Aspect::Program, &owner, host_facts::DPDK, Some(report.version.clone()));
        self.add(Aspect::Program, &owner, host_facts::RDMA_CORE, report.rdma_core.clone());
    }

    fn add_interfaces(&mut self, name: &HostName, host: &HostSnapshot) {
        let owner = Owner::Host(name.clone());
        for interface in host.interfaces.iter().filter(|interface| interface.name != LOOPBACK) {
            let mut add = |fact: &str, value| {
                self.add_of(Aspect::Interface, &owner, Some(interface.name.as_str()), fact, value);
            };
            add(PRESENCE, Some("yes".to_owned()));
            for (fact, value) in host_facts::of_interface(interface) {
                add(fact, value);
            }
            for feature in &interface.features_on {
                add(&format!("offload {feature}"), Some("on".to_owned()));
            }
        }
    }
}

/// The cores of both ends of a workload.
fn pins(workload: &Workload) -> String {
    let end = |cores: &[u16], is_auto: bool| match (is_auto, cores) {
        (true, _) => "chosen by the host".to_owned(),
        (false, []) => "chosen by the kernel".to_owned(),
        (false, cores) => words::ranges(cores.iter().copied()),
    };
    let client = end(&workload.pin_client, workload.pin_auto.client);
    let server = end(&workload.pin_server, workload.pin_auto.server);
    format!("client {client}, server {server}")
}
