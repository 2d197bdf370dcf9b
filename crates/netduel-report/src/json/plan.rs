//! A resolved plan in JSON: what a run does, with every default written out.
use std::net::IpAddr;

use netduel_model::bed::{BedNetwork, BedType};
use netduel_model::metric::Metric;
use netduel_model::plan::spec::{LabPath, PathKind, Side};
use netduel_model::plan::{self, Launch, ResolvedPlan};
use netduel_model::units::{BITS_PER_MEGABIT, BitRate, Percent};
use schemars::JsonSchema;
use serde::Serialize;

use super::bed::{BedCost, Price};
use super::envelope::{Document, Envelope, Origin};
use super::facts::Sysctl;
use super::parts::Workload;
use crate::words;

/// A checked plan: `netduel plan check --json`.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct CheckedPlan {
    /// The first keys of every document.
    #[serde(flatten)]
    pub envelope: Envelope,
    /// File of the plan.
    pub file: String,
    /// Trials in a block.
    pub trials_per_block: u32,
    /// Whether the plan allows too few blocks for any verdict.
    pub too_few_blocks: bool,
    /// What the VMs of the bed cost during the run; null without `--bed`.
    pub bed_cost: Option<BedCost>,
    /// What a run does on each host besides traffic: read it before you run a plan from elsewhere.
    pub uses: Vec<HostUse>,
    /// The plan with every default written out.
    pub plan: Plan,
}

impl Document for CheckedPlan {
    const NAME: &'static str = "netduel.plan";
    const VERSION: u32 = 1;
    const RELEASED: u32 = 0;
}

impl CheckedPlan {
    /// Of a plan of a file; on a bed with what its VMs cost.
    pub fn of(file: &str, plan: &ResolvedPlan, bed_cost: Option<BedCost>, origin: &Origin) -> Self {
        Self {
            envelope: Self::envelope(origin),
            file: file.to_owned(),
            trials_per_block: plan.trials_per_block(),
            too_few_blocks: plan.too_few_blocks().is_some(),
            bed_cost,
            uses: plan.uses().iter().map(HostUse::of).collect(),
            plan: Plan::of(plan),
        }
    }
}

/// What a run does on a host besides traffic; each thing stands there once, however many arms do it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct HostUse {
    /// Name of the host in the plan.
    pub host: String,
    /// How its agent is started.
    pub launch: HostLaunch,
    /// Programs that its agent runs.
    pub commands: Vec<CommandUse>,
    /// Sysctls that are set for trials.
    pub sysctls: Vec<Sysctl>,
    /// All other treatments, in words.
    pub treatments: Vec<String>,
    /// Events that change its path during traffic, in words.
    pub events: Vec<String>,
}

/// A program that an agent runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CommandUse {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// The command that undoes it; null for a program that ends with its trial.
    pub undo: Option<Vec<String>>,
}

impl HostUse {
    fn of(host: &plan::HostUses<'_>) -> Self {
        let command = |one: &plan::HostCommand| CommandUse {
            command: one.words.clone(),
            undo: Some(one.undo.clone()).filter(|undo| !undo.is_empty()),
        };
        let sysctl = |(name, value): &(String, String)| Sysctl { name: name.clone(), value: value.clone() };
        Self {
            host: host.name.to_string(),
            launch: HostLaunch::of(host.launch),
            commands: host.commands.iter().map(command).collect(),
            sysctls: host.sysctls.iter().map(sysctl).collect(),
            treatments: host.treatments.iter().map(words::treatment).collect(),
            events: host.events.iter().map(ToString::to_string).collect(),
        }
    }
}

/// A plan.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Plan {
    /// Short name.
    pub name: String,
    /// The question in one sentence.
    pub question: String,
    /// Publication whose figures the report shows in any case; null for those of the machine size only.
    pub published: Option<String>,
    /// Type of bed that the plan is for; null for any, and without a bed.
    pub bed_type: Option<BedType>,
    /// The lab that is built for the run; null without one.
    pub lab: Option<PlanLab>,
    /// The hosts.
    pub hosts: Vec<PlanHost>,
    /// The arms, baseline first.
    pub arms: Vec<PlanArm>,
    /// Names of the workloads, in the order of the plan.
    pub workloads: Vec<String>,
    /// How the comparison is made.
    pub design: Design,
}

/// A lab of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PlanLab {
    /// Policy rules of the synthetic path.
    pub rules: u32,
    /// Emulated rate cap of the wire; null for none.
    pub cap_bps: Option<u64>,
    /// MTU of the guests.
    pub mtu_bytes: u32,
    /// Queues of each end of the direct path, in each direction.
    pub queues: u32,
}

/// A host of a plan.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct PlanHost {
    /// Name in the plan.
    pub name: String,
    /// How its agent is started.
    pub launch: HostLaunch,
    /// Addresses.
    pub addresses: Vec<IpAddr>,
    /// Ports on which it listens for data, such as 5210-5219; null when the kernel chooses them.
    pub data_ports: Option<String>,
    /// Cloud size that the plan names; null when it names none.
    pub size: Option<String>,
    /// Highest rate that the host can send, as the plan says; null when it says nothing.
    pub expected_bps: Option<u64>,
    /// VM of a bed that the host is; null without a bed, and before a run.
    pub vm: Option<String>,
    /// Price for an hour as the plan says; null when it says nothing, and for a VM of a bed.
    pub price_per_hour: Option<Price>,
}

/// How an agent is started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum HostLaunch {
    /// As a process on this machine.
    Local,
    /// In a guest of the plan's lab.
    Lab {
        /// The guest, `a` or `b`.
        guest: String,
    },
    /// As a process in a named network namespace.
    Netns {
        /// Name of the namespace.
        namespace: String,
    },
    /// With a command prefix.
    Command {
        /// Words of the prefix.
        prefix: Vec<String>,
    },
    /// By the user's OpenSSH, with a copy of the program on the host.
    Ssh {
        /// Destination as ssh takes it.
        host: String,
        /// User on the host; null for that of the ssh configuration.
        user: Option<String>,
        /// Port of the ssh server; null for that of the ssh configuration.
        port: Option<u16>,
        /// Whether the agent runs as root by `sudo -n`.
        sudo: bool,
        /// Folder on the host for the program.
        folder: String,
    },
    /// On a paired `netduel serve`.
    Paired {
        /// Host and port.
        server: String,
    },
    /// By ssh on a VM of a bed that is not known; a run has `ssh` in its place.
    Bed {
        /// The VM.
        vm: String,
        /// Whether the agent runs as root by `sudo -n`.
        sudo: bool,
        /// Folder on the host for the program.
        folder: String,
    },
}

/// An arm of a plan.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct PlanArm {
    /// Name.
    pub name: String,
    /// Host that connects.
    pub client: String,
    /// Host that listens.
    pub server: String,
    /// Addresses of the server for this arm; empty for those of the host.
    pub server_addresses: Vec<IpAddr>,
    /// Changes for each trial of the arm, undone afterwards.
    pub treatments: Vec<PlanTreatment>,
    /// Interface that must carry the bytes at the client; null for none in particular.
    pub expected_interface_client: Option<String>,
    /// Interface that must carry the bytes at the server.
    pub expected_interface_server: Option<String>,
    /// Path that must carry the bytes at both ends; null for none in particular.
    pub expected_path: Option<PathKind>,
    /// Network of the bed that carries the traffic; null without a bed.
    pub network: Option<BedNetwork>,
    /// Highest rate of the pair, as the plan says; null when it says nothing.
    pub expected_bps: Option<u64>,
    /// The workloads as this arm runs them, in the order of the plan.
    pub workloads: Vec<Workload>,
}

/// A change for the trials of an arm.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PlanTreatment {
    /// On which host of the pair.
    pub on: Side,
    /// The one thing that is changed, in words; null for a command, which may change anything.
    pub target: Option<String>,
    /// Path of the lab that is set; null for other changes.
    pub path: Option<LabPath>,
    /// The change in words.
    pub text: String,
}

/// How a comparison is made.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Design {
    /// Minimum number of blocks.
    pub blocks_min: u32,
    /// Maximum number of blocks.
    pub blocks_max: u32,
    /// No block begins after this time; null without a limit.
    pub budget_ns: Option<u64>,
    /// Half-width of the interval at which a run may stop.
    pub precision_ratio: f64,
    /// A smaller difference does not matter.
    pub equivalence_ratio: f64,
    /// Confidence: 1 minus it bounds the chance of any false difference in a run, and likewise of any false "no difference".
    pub confidence_ratio: f64,
    /// Seed of the order of trials that the plan sets, as text because it may exceed 2^53; null for a random one.
    pub seed: Option<String>,
    /// Whether the arms are copies of one.
    pub aa: bool,
    /// Whether the arms exchange their hosts after half of the blocks.
    pub crossover: bool,
}

impl Plan {
    /// Of a resolved plan.
    pub fn of(plan: &ResolvedPlan) -> Self {
        let design = &plan.design;
        let ratio = |percent: Percent| percent.0 / 100.0;
        Self {
            name: plan.name.clone(),
            question: plan.question.clone(),
            published: plan.published.clone(),
            bed_type: plan.bed_type,
            lab: plan.lab.as_ref().map(PlanLab::of),
            hosts: plan.hosts.iter().map(|(name, host)| PlanHost::of(name.as_str(), host)).collect(),
            arms: plan.arms.iter().map(PlanArm::of).collect(),
            workloads: plan.workloads.iter().map(ToString::to_string).collect(),
            design: Design {
                blocks_min: design.blocks_min,
                blocks_max: design.blocks_max,
                budget_ns: design.budget.map(|budget| budget.0),
                precision_ratio: ratio(design.precision),
                equivalence_ratio: ratio(design.equivalence),
                confidence_ratio: ratio(design.confidence),
                seed: design.seed.map(|seed| seed.to_string()),
                aa: design.aa,
                crossover: design.crossover,
            },
        }
    }

    /// The metrics that get a verdict, each once.
    pub fn metrics(&self) -> Vec<Metric> {
        let mut metrics: Vec<Metric> =
            self.arms.iter().flat_map(|arm| &arm.workloads).flat_map(|one| one.metrics.clone()).collect();
        metrics.sort_unstable();
        metrics.dedup();
        metrics
    }
}

impl PlanLab {
    /// Of the lab of a plan.
    pub fn of(lab: &plan::resolved::Lab) -> Self {
        let cap_bps = lab.cap.map(|BitRate(bps)| bps);
        Self { rules: lab.rules, cap_bps, mtu_bytes: lab.mtu, queues: lab.queues }
    }
}

impl HostLaunch {
    fn of(launch: &Launch) -> Self {
        match launch {
            Launch::Local => Self::Local,
            Launch::Lab { guest } => Self::Lab { guest: guest.clone() },
            Launch::Netns { name } => Self::Netns { namespace: name.clone() },
            Launch::Command { prefix } => Self::Command { prefix: prefix.clone() },
            Launch::Ssh(ssh) => Self::Ssh {
                host: ssh.host.clone(),
                user: ssh.user.clone(),
                port: ssh.port,
                sudo: ssh.sudo,
                folder: ssh.folder().to_owned(),
            },
            Launch::Paired { address } => Self::Paired { server: address.clone() },
            Launch::Bed { vm, sudo, folder } => Self::Bed {
                vm: vm.clone(),
                sudo: *sudo,
                folder: folder.as_deref().unwrap_or(plan::SshHost::FOLDER).to_owned(),
            },
        }
    }
}

impl PlanHost {
    fn of(name: &str, host: &plan::Host) -> Self {
        Self {
            name: name.to_owned(),
            launch: HostLaunch::of(&host.launch),
            addresses: host.addresses.clone(),
            data_ports: host.data_ports.map(|ports| ports.to_string()),
            size: host.size.clone(),
            expected_bps: host.expect_mbps.map(|mbps| u64::from(mbps) * BITS_PER_MEGABIT),
            vm: host.vm.clone(),
            price_per_hour: host.price_per_hour.as_ref().map(Price::of),
        }
    }
}

impl PlanArm {
    fn of(arm: &plan::Arm) -> Self {
        Self {
            name: arm.name.to_string(),
            client: arm.pair.client.to_string(),
            server: arm.pair.server.to_string(),
            server_addresses: arm.server_addresses.clone(),
            treatments: arm.treatments.iter().map(PlanTreatment::of).collect(),
            expected_interface_client: arm.expect_client.clone(),
            expected_interface_server: arm.expect_server.clone(),
            expected_path: arm.expect_path,
            network: arm.network,
            expected_bps: arm.expect_mbps.map(|mbps| u64::from(mbps) * BITS_PER_MEGABIT),
            workloads: arm.workloads.iter().map(Workload::of).collect(),
        }
    }
}

impl PlanTreatment {
    fn of(treatment: &plan::Treatment) -> Self {
        let path = match treatment.action {
            plan::TreatmentAction::Path { path } => Some(path),
            _ => None,
        };
        Self { on: treatment.on, target: treatment.action.target(), path, text: words::treatment(treatment) }
    }
}
