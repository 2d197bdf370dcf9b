//! A plan that makes sense, with every default written out: what is run, stored and printed.
//!
//! Long because: the types of a plan refer to each other, and its treatments are a closed list with the facts of each.
use std::collections::BTreeMap;
use std::net::IpAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bed::money::Money;
use crate::bed::network::BedNetwork;
use crate::bed::spec::BedType;
use crate::data_ports::DataPorts;
use crate::ids::{ArmName, HostName, NAME_LEN_MAX, WorkloadName};
use crate::plan::blocks::{blocks_needed, guarded};
use crate::plan::offload;
use crate::plan::spec::{LabPath, PathKind, Side};
use crate::plan::tuning::{CoreChoice, Ring, RssSpread};
use crate::publication::Publication;
use crate::units::{BitRate, Nanos, Percent};
use crate::workload::{Family, Role, Workload};

/// What the name of an arm's copy ends with in an A/A run.
pub(super) const COPY_SUFFIX: &str = "-again";

/// A checked plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ResolvedPlan {
    /// Short name.
    pub name: String,
    /// The question in one sentence.
    pub question: String,
    /// The publication whose figures the report shows in any case.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published: Option<String>,
    /// The type of bed that the plan is for; absent for any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bed_type: Option<BedType>,
    /// What the author adds to reports.
    #[serde(default, skip_serializing_if = "Publication::is_empty")]
    pub report: Publication,
    /// The lab that is built for the run.
    pub lab: Option<Lab>,
    /// The hosts.
    pub hosts: BTreeMap<HostName, Host>,
    /// The arms, baseline first.
    pub arms: Vec<Arm>,
    /// The names of the workloads, in the plan's order. What a workload is may differ by arm.
    pub workloads: Vec<WorkloadName>,
    /// The design.
    pub design: Design,
}

/// The lab of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Lab {
    /// Rules of the policy.
    pub rules: u32,
    /// Emulated cap on the wire.
    pub cap: Option<BitRate>,
    /// MTU of the guests, bytes.
    pub mtu: u32,
    /// Queues of either end of the direct path, in each direction; 1 in a run of before there was one.
    #[serde(default = "one_queue", skip_serializing_if = "is_one_queue")]
    pub queues: u32,
}

impl Lab {
    /// Rules when the plan does not say.
    pub const RULES: u32 = 600;
    /// MTU of the guests when the plan does not say, bytes.
    pub const MTU: u32 = 1500;
    /// Queues when the plan does not say.
    pub const QUEUES: u32 = 1;
}

fn one_queue() -> u32 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_one_queue(queues: &u32) -> bool {
    *queues == one_queue()
}

/// A host of a plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Host {
    /// How its agent is started.
    pub launch: Launch,
    /// Its addresses; for a guest of the lab those of the lab.
    pub addresses: Vec<IpAddr>,
    /// The ports on which it listens for data; chosen by the kernel when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data_ports: Option<DataPorts>,
    /// Its size as the plan names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<String>,
    /// What it can send at most, Mbit/s, as the plan says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expect_mbps: Option<u32>,
    /// The VM of a bed that it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vm: Option<String>,
    /// Its price for an hour as the plan says; that of a VM of a bed is the bed's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price_per_hour: Option<Money>,
}

/// How an agent is started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Launch {
    /// A process on this machine.
    Local,
    /// A guest of the plan's lab.
    Lab {
        /// `a` or `b`.
        guest: String,
    },
    /// A process in a named network namespace.
    Netns {
        /// The namespace.
        name: String,
    },
    /// A command prefix.
    Command {
        /// Its words.
        prefix: Vec<String>,
    },
    /// The user's OpenSSH; the program is copied there.
    Ssh(SshHost),
    /// A standing server that the user is paired with; the secret stays in the user's own file.
    Paired {
        /// HOST:PORT.
        address: String,
    },
    /// By ssh to a VM of a bed that is not known yet. A run has `ssh` in its place.
    Bed {
        /// The VM.
        vm: String,
        /// Whether the agent runs as root by `sudo -n`.
        sudo: bool,
        /// The folder of the program on the host; `~/.cache/netduel` when absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        folder: Option<String>,
    },
}

impl Launch {
    /// Whether the connection to the agent may use an interface of its host: a command may be ssh.
    pub fn uses_network(&self) -> bool {
        match self {
            Self::Command { .. } | Self::Ssh(_) | Self::Paired { .. } | Self::Bed { .. } => true,
            Self::Local | Self::Lab { .. } | Self::Netns { .. } => false,
        }
    }

    /// Whether it is a VM of a bed that is not known yet.
    pub fn is_of_bed(&self) -> bool {
        matches!(self, Self::Bed { .. })
    }
}

/// A host that is reached by ssh.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SshHost {
    /// The destination as ssh takes it.
    pub host: String,
    /// The user; that of the ssh configuration when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// The port; that of the ssh configuration when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// Whether the agent runs as root by `sudo -n`.
    pub sudo: bool,
    /// The folder of the program on the host; `~/.cache/netduel` when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
    /// The bed that has the host: its host keys are kept beside the files of the bed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bed: Option<String>,
}

impl SshHost {
    /// The folder of the program on the host when the plan names none.
    pub const FOLDER: &str = "~/.cache/netduel";
    /// The folders that [`SshHost::is_folder`] allows, in words.
    pub const FOLDERS_ALLOWED: &str = "a path that begins with / or ~/";

    /// With the settings of the user's ssh configuration.
    pub fn of(host: &str) -> Self {
        Self { host: host.to_owned(), user: None, port: None, sudo: false, folder: None, bed: None }
    }

    /// The folder of the program on the host.
    pub fn folder(&self) -> &str {
        self.folder.as_deref().unwrap_or(Self::FOLDER)
    }

    /// Whether the agent runs as root as far as the plan shows it. Without a user in the plan the ssh configuration may name root, too.
    pub fn is_root(&self) -> bool {
        let destination = self.host.strip_prefix("ssh://").unwrap_or(&self.host);
        let of_destination = destination.split_once('@').map(|(user, _)| user);
        self.sudo || self.user.as_deref().or(of_destination) == Some("root")
    }

    /// Whether a word names a folder of the host, wherever the login shell starts.
    pub fn is_folder(word: &str) -> bool {
        (word.starts_with('/') || word.starts_with("~/")) && !word.contains(char::is_control)
    }

    /// Whether ssh takes a word as a destination or user, and not as an option or a part of a shell's command. OpenSSH expands both in
    /// the commands of its configuration, and refuses the same characters since version 9.6.
    pub fn is_plain_word(word: &str) -> bool {
        let is_word = |part: &str| !part.is_empty() && !part.starts_with('-');
        let refused = |c: char| c.is_whitespace() || c.is_control() || "'`\"$\\;&<>|(){}".contains(c);
        is_word(word) && word.rsplit('@').next().is_some_and(is_word) && !word.contains(refused)
    }
}

/// One setting under test.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Arm {
    /// Its name.
    pub name: ArmName,
    /// Client and server.
    pub pair: Pair,
    /// What is changed for each of its trials.
    pub treatments: Vec<Treatment>,
    /// Interface that must carry the bytes at the client.
    pub expect_client: Option<String>,
    /// Interface that must carry the bytes at the server.
    pub expect_server: Option<String>,
    /// The path that must carry the bytes at both ends, whatever its interfaces are called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expect_path: Option<PathKind>,
    /// The network of the bed that carries its traffic.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<BedNetwork>,
    /// The addresses of the server for this arm, on a bed those in that network; those of the host when empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub server_addresses: Vec<IpAddr>,
    /// Maximum rate of the pair, Mbit/s, as the plan states it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expect_mbps: Option<u32>,
    /// Every workload of the plan as this arm runs it, in the plan's order.
    pub workloads: Vec<Workload>,
}

impl Arm {
    /// The interface that must carry the bytes at one end.
    pub fn expected(&self, role: Role) -> Option<&str> {
        match role {
            Role::Client => self.expect_client.as_deref(),
            Role::Server => self.expect_server.as_deref(),
        }
    }
    /// The treatments that the agent of a role applies. The lab applies paths, the coordinator those of the provider.
    pub fn agent_treatments(&self, role: Role) -> Vec<TreatmentAction> {
        let is_of_agent = |action: &&TreatmentAction| {
            !matches!(action, TreatmentAction::Path { .. }) && !action.is_of_provider()
        };
        let own = self.treatments.iter().filter(|treatment| treatment.on.includes(role));
        own.map(|treatment| &treatment.action).filter(is_of_agent).cloned().collect()
    }
    /// The treatments of the provider's resources, each with the host whose machine it changes.
    pub fn provider_treatments(&self) -> Vec<(HostName, TreatmentAction)> {
        let of = |treatment: &Treatment| {
            let role = if treatment.on.includes(Role::Client) { Role::Client } else { Role::Server };
            (self.pair.host(role).clone(), treatment.action.clone())
        };
        self.treatments.iter().filter(|treatment| treatment.action.is_of_provider()).map(of).collect()
    }
    /// Whether anything proves which way its bytes go.
    pub fn is_proven(&self) -> bool {
        self.expect_client.is_some() || self.expect_server.is_some() || self.expect_path.is_some()
    }
    /// The workload of the given name.
    pub fn workload(&self, name: &WorkloadName) -> Option<&Workload> {
        self.workloads.iter().find(|workload| &workload.name == name)
    }
}

/// Client and server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Pair {
    /// Connects.
    pub client: HostName,
    /// Listens.
    pub server: HostName,
}

impl Pair {
    /// The host of a role.
    pub fn host(&self, role: Role) -> &HostName {
        match role {
            Role::Client => &self.client,
            Role::Server => &self.server,
        }
    }
}

/// A change made for an arm, and always undone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Treatment {
    /// What is changed.
    pub action: TreatmentAction,
    /// The host on which it is made.
    pub on: Side,
}

/// What a treatment changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum TreatmentAction {
    /// The lab's path beneath the guests' address; done by the lab for both guests.
    Path {
        /// Which.
        path: LabPath,
    },
    /// An offload feature (`ethtool -K`).
    Offload {
        /// Interface.
        interface: String,
        /// Feature.
        feature: String,
        /// Wanted state.
        enabled: bool,
    },
    /// An MTU.
    Mtu {
        /// Interface.
        interface: String,
        /// Bytes.
        mtu: u32,
    },
    /// A sysctl.
    Sysctl {
        /// Dotted name.
        name: String,
        /// Wanted value.
        value: String,
    },
    /// The link of a virtual function is set down.
    Vf {
        /// The VF, or the interface above it.
        interface: String,
    },
    /// A PCI function is removed from the bus.
    Pci {
        /// An interface of the function, or the one above it.
        interface: String,
    },
    /// How many queues an interface has.
    Queues {
        /// Interface.
        interface: String,
        /// Combined channels, or receive and transmit queues each.
        queues: u32,
    },
    /// How flows are spread over receive queues.
    Rss {
        /// Interface.
        interface: String,
        /// The way.
        table: RssSpread,
    },
    /// The size of a ring.
    Ring {
        /// Interface.
        interface: String,
        /// Which.
        ring: Ring,
        /// Descriptors of each queue.
        descriptors: u32,
    },
    /// A parameter of interrupt coalescing.
    Coalesce {
        /// Interface.
        interface: String,
        /// As `ethtool -C` names it.
        parameter: String,
        /// In the parameter's own unit; 0 and 1 for one that is off or on.
        value: u32,
    },
    /// The cores of receive packet steering.
    Rps {
        /// Interface.
        interface: String,
        /// Cores; never dealt out.
        cores: CoreChoice,
    },
    /// The cores of transmit packet steering.
    Xps {
        /// Interface.
        interface: String,
        /// Cores.
        cores: CoreChoice,
    },
    /// The cores of an interface's interrupts.
    IrqAffinity {
        /// Interface.
        interface: String,
        /// Cores; never off.
        cores: CoreChoice,
    },
    /// Accelerated networking of an Azure NIC; done by the coordinator.
    AzureNic {
        /// The NIC.
        nic: String,
        /// Its resource group; that of the bed when absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        resource_group: Option<String>,
        /// Wanted state.
        accelerated: bool,
    },
    /// The proximity placement group of an Azure VM; done by the coordinator.
    AzurePlacement {
        /// The VM.
        vm: String,
        /// The group that it joins.
        group: String,
        /// The resource group of both; that of the bed when absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        resource_group: Option<String>,
    },
    /// A command and the one that undoes it.
    Command {
        /// Makes the change.
        command: Vec<String>,
        /// Undoes it.
        undo: Vec<String>,
    },
}

impl TreatmentAction {
    /// What stands for the interface of a treatment on a bed that names none, until the guests are known. No interface can have a name with
    /// spaces.
    pub(super) const NIC_OF_ARM: &str = "the NIC in the arm's network";

    /// The same change of another interface, where it is one of an interface.
    pub(super) fn set_interface(&mut self, name: &str) {
        match self {
            Self::Path { .. }
            | Self::Sysctl { .. }
            | Self::AzureNic { .. }
            | Self::AzurePlacement { .. }
            | Self::Command { .. } => {}
            Self::Offload { interface, .. }
            | Self::Mtu { interface, .. }
            | Self::Vf { interface }
            | Self::Pci { interface }
            | Self::Queues { interface, .. }
            | Self::Rss { interface, .. }
            | Self::Ring { interface, .. }
            | Self::Coalesce { interface, .. }
            | Self::Rps { interface, .. }
            | Self::Xps { interface, .. }
            | Self::IrqAffinity { interface, .. } => name.clone_into(interface),
        }
    }

    /// The interface that is changed, when it is one.
    pub fn interface(&self) -> Option<&str> {
        match self {
            Self::Path { .. }
            | Self::Sysctl { .. }
            | Self::AzureNic { .. }
            | Self::AzurePlacement { .. }
            | Self::Command { .. } => None,
            Self::Offload { interface, .. }
            | Self::Mtu { interface, .. }
            | Self::Vf { interface }
            | Self::Pci { interface }
            | Self::Queues { interface, .. }
            | Self::Rss { interface, .. }
            | Self::Ring { interface, .. }
            | Self::Coalesce { interface, .. }
            | Self::Rps { interface, .. }
            | Self::Xps { interface, .. }
            | Self::IrqAffinity { interface, .. } => Some(interface),
        }
    }

    /// The one thing that is changed, in words; `None` for a command, which may change anything.
    pub fn target(&self) -> Option<String> {
        Some(match self {
            Self::Path { .. } => "the path of the lab".to_owned(),
            Self::Offload { interface, feature, .. } => format!("{feature} of {interface}"),
            Self::Mtu { interface, .. } => format!("the MTU of {interface}"),
            Self::Sysctl { name, .. } => format!("sysctl {name}"),
            Self::Vf { interface } | Self::Pci { interface } => {
                format!("the virtual function of {interface}")
            }
            Self::Queues { interface, .. } => format!("the queues of {interface}"),
            Self::Rss { interface, .. } => format!("the RSS table of {interface}"),
            Self::Ring { interface, ring, .. } => format!("the {} ring of {interface}", ring.word()),
            Self::Coalesce { interface, parameter, .. } => format!("{parameter} of {interface}"),
            Self::Rps { interface, .. } => format!("RPS of {interface}"),
            Self::Xps { interface, .. } => format!("XPS of {interface}"),
            Self::IrqAffinity { interface, .. } => format!("the interrupts of {interface}"),
            Self::AzureNic { nic, .. } => format!("accelerated networking of {nic}"),
            Self::AzurePlacement { vm, .. } => format!("the placement of {vm}"),
            Self::Command { .. } => return None,
        })
    }

    /// The resource group of a treatment of the provider, where it has one.
    pub fn resource_group(&self) -> Option<&str> {
        match self {
            Self::AzureNic { resource_group, .. } | Self::AzurePlacement { resource_group, .. } => {
                resource_group.as_deref()
            }
            _ => None,
        }
    }

    /// Sets the resource group of a treatment of the provider that has none.
    pub(super) fn set_resource_group(&mut self, group: &str) {
        if let Self::AzureNic { resource_group, .. } | Self::AzurePlacement { resource_group, .. } = self {
            resource_group.get_or_insert_with(|| group.to_owned());
        }
    }

    /// Removes the resource group of a treatment of the provider where it is this one.
    pub(super) fn remove_resource_group(&mut self, group: &str) {
        if let Self::AzureNic { resource_group, .. } | Self::AzurePlacement { resource_group, .. } = self
            && resource_group.as_deref() == Some(group)
        {
            *resource_group = None;
        }
    }

    /// Whether the coordinator makes it, by the provider's interface.
    pub fn is_of_provider(&self) -> bool {
        matches!(self, Self::AzureNic { .. } | Self::AzurePlacement { .. })
    }

    /// Whether both change the same thing, or a part of it. A command may change anything, and overlaps nothing.
    pub(super) fn overlaps(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Offload { interface, feature, .. }, Self::Offload { interface: at, feature: of, .. }) => {
                interface == at && offload::overlap(feature, of)
            }
            _ => self.target().is_some_and(|target| other.target() == Some(target)),
        }
    }
}

/// How the comparison is made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Design {
    /// Blocks at least.
    pub blocks_min: u32,
    /// Blocks at most.
    pub blocks_max: u32,
    /// No block starts after this time.
    pub budget: Option<Nanos>,
    /// Half-width of the interval at which the run may stop.
    pub precision: Percent,
    /// A smaller difference does not matter.
    pub equivalence: Percent,
    /// Confidence of the intervals.
    pub confidence: Percent,
    /// The seed, when the plan names one.
    pub seed: Option<u64>,
    /// Whether the arms are copies of one.
    pub aa: bool,
    /// Whether the arms exchange their hosts after half of the blocks.
    #[serde(default, skip_serializing_if = "is_off")]
    pub crossover: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_off(switch: &bool) -> bool {
    !switch
}

impl Design {
    /// Whether the run may stop before its block limit.
    pub fn may_stop_early(&self) -> bool {
        self.blocks_max > self.blocks_min
    }

    /// The confidence that intervals and verdicts are made with, a fraction.
    pub fn tested_confidence(&self) -> f64 {
        let confidence = self.confidence.fraction();
        if self.may_stop_early() { guarded(confidence) } else { confidence }
    }
}

impl ResolvedPlan {
    /// Whether it compares arms. A plan file has two arms at least; a quick test has one, values and no verdict.
    pub fn compares(&self) -> bool {
        self.arms.len() > 1
    }

    /// The number of verdicts of the plan and the number of blocks that any of them needs, when the block limit is lower.
    pub fn too_few_blocks(&self) -> Option<(usize, u32)> {
        let baseline = self.arms.first()?;
        let metrics: usize = baseline.workloads.iter().map(|workload| workload.metrics.len()).sum();
        let verdicts = metrics * (self.arms.len() - 1);
        // A pair of a crossover needs a block of each half.
        let of_a_pair = if self.design.crossover { 2 } else { 1 };
        let needed =
            of_a_pair * blocks_needed(verdicts, self.design.confidence, self.design.may_stop_early());
        (verdicts > 0 && needed > self.design.blocks_max).then_some((verdicts, needed))
    }

    /// The baseline against a copy of itself. The copy has the name of the baseline and `-again`.
    #[must_use]
    pub fn into_aa(mut self) -> Self {
        let Some(baseline) = self.arms.first().cloned() else { return self };
        let mut again = baseline.clone();
        // A name that is too long to be lengthened gives up its end.
        let head = baseline.name.as_str();
        let head = &head[..head.len().min(NAME_LEN_MAX - COPY_SUFFIX.len())];
        again.name = ArmName::new(format!("{head}{COPY_SUFFIX}")).unwrap_or(again.name);
        self.arms = vec![baseline, again];
        self.design.aa = true;
        // The copy has the hosts of the baseline.
        self.design.crossover = false;
        self
    }

    /// The arm that the others are compared with.
    pub fn baseline(&self) -> Option<&Arm> {
        self.arms.first()
    }

    /// The arm of the given name.
    pub fn arm(&self, name: &ArmName) -> Option<&Arm> {
        self.arms.iter().find(|arm| &arm.name == name)
    }

    /// The address at which the client of an arm reaches its server.
    pub fn server_address(&self, arm: &Arm, family: Family) -> Option<IpAddr> {
        let of_host = || self.hosts.get(&arm.pair.server).map(|host| host.addresses.as_slice());
        let addresses =
            Some(arm.server_addresses.as_slice()).filter(|own| !own.is_empty()).or_else(of_host)?;
        addresses.iter().find(|address| address.is_ipv4() == (family == Family::Ipv4)).copied()
    }

    /// Whether an arm changes resources of the provider.
    pub fn has_provider_treatments(&self) -> bool {
        self.arms.iter().flat_map(|arm| &arm.treatments).any(|treatment| treatment.action.is_of_provider())
    }

    /// Trials in one block.
    pub fn trials_per_block(&self) -> u32 {
        (self.arms.len() * self.workloads.len()) as u32
    }
}
