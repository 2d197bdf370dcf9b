//! Why a plan does not fit a bed, in words. Nothing is judged here.
use crate::bed::network::BedNetwork;
use crate::bed::spec::BedType;
use crate::ids::{ArmName, HostName};
use crate::plan::problem::key_path;
use crate::workload::Family;

/// Why a plan does not fit a bed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BedFault {
    /// The plan is for another type of bed.
    #[error(
        "bed_type is \"{wanted}\", and the bed {bed} is of type \"{found}\"; choose a bed with type = \"{wanted}\" in \
         its file"
    )]
    OtherType {
        /// The type of the plan.
        wanted: BedType,
        /// The bed.
        bed: String,
        /// Its type.
        found: BedType,
    },
    /// The bed has no such VM.
    #[error(
        "hosts.{host}.bed is \"{vm}\", and the bed {bed} has {known}; name a VM of the bed, or choose another bed"
    )]
    NoVm {
        /// The host.
        host: HostName,
        /// The VM.
        vm: String,
        /// The bed.
        bed: String,
        /// Its VMs.
        known: String,
    },
    /// ssh cannot reach the VM.
    #[error(
        "the VM {vm} of the bed {bed} has no public address, so ssh cannot reach it; give its first NIC one, or repeat `netduel azure up`"
    )]
    NoPublicAddress {
        /// The VM.
        vm: String,
        /// The bed.
        bed: String,
    },
    /// A VM has no NIC in the network of an arm.
    #[error(
        "the arm {arm} uses the network {network}, and the VM {vm} of the bed {bed} has {known}; set `network` of the arm to one that both \
         VMs have, or choose another bed"
    )]
    NoNetwork {
        /// The arm.
        arm: ArmName,
        /// The network.
        network: BedNetwork,
        /// The VM.
        vm: String,
        /// The bed.
        bed: String,
        /// The networks of the VM.
        known: String,
    },
    /// The only NIC of a VM in the network of an arm is not attached to it.
    #[error(
        "the arm {arm} uses the network {network}, and the NIC {nic} of the VM {vm} is not attached to it; Azure attaches a NIC while the VM is \
         stopped (`az vm nic add`)"
    )]
    NotAttached {
        /// The arm.
        arm: ArmName,
        /// The network.
        network: BedNetwork,
        /// The VM.
        vm: String,
        /// The NIC.
        nic: String,
    },
    /// An arm moves VMs into the proximity placement group of netduel, and the bed has none.
    #[error(
        "the arm {arm} moves VMs into the proximity placement group {group}, which the bed {bed} does not have; choose a bed with \
         type = \"toggle\""
    )]
    NoProximityGroup {
        /// The arm.
        arm: ArmName,
        /// The group.
        group: String,
        /// The bed.
        bed: String,
    },
    /// An arm moves a VM into the proximity placement group of netduel, and the bed has it there for every arm.
    #[error(
        "the arm {arm} moves the VM {vm} into the proximity placement group {group}, in which the bed {bed} has it for all arms, so the arms \
         do not differ by it; choose a bed with placement = \"none\", or leave the treatment out"
    )]
    AlreadyInProximityGroup {
        /// The arm.
        arm: ArmName,
        /// The VM.
        vm: String,
        /// The group.
        group: String,
        /// The bed.
        bed: String,
    },
    /// An arm switches a NIC to the state that it has on the bed, and another arm leaves it so.
    #[error(
        "the arm {arm} switches {switch}, as it is on the bed {bed}, and the arm {other} leaves it as it is, so the two do not differ by it; \
         leave the treatment out, or write the other value of `accelerated`"
    )]
    SameNicState {
        /// The arm.
        arm: ArmName,
        /// The treatment in words: `accelerated networking of vm1-test off`.
        switch: String,
        /// The bed.
        bed: String,
        /// The arm that leaves it as it is.
        other: ArmName,
    },
    /// The server has no address of a family in the network.
    #[error(
        "the arm {arm} has a workload over {family}, and the VM {vm} has no {family} address in the network {network}; set `families` of the \
         bed, or `family` of the workload"
    )]
    NoAddress {
        /// The arm.
        arm: ArmName,
        /// The family.
        family: Family,
        /// The VM.
        vm: String,
        /// The network.
        network: BedNetwork,
    },
    /// A treatment or event changes an interface that carries no traffic of its arm.
    #[error(
        "the arm {arm} changes {interface} of the VM {vm}, and its traffic uses {known} there, in the network {network}; leave `interface` out, \
         and netduel takes that of the network"
    )]
    OtherInterface {
        /// The arm.
        arm: ArmName,
        /// The interface.
        interface: String,
        /// The VM.
        vm: String,
        /// The network.
        network: BedNetwork,
        /// The interface of the network, and its virtual function.
        known: String,
    },
    /// A treatment or event names no interface, and the guest shows none.
    #[error(
        "the arm {arm} changes the NIC of the VM {vm} in the network {network}, and the guest shows no interface of it; name the interface"
    )]
    NoInterface {
        /// The arm.
        arm: ArmName,
        /// The VM.
        vm: String,
        /// The network.
        network: BedNetwork,
    },
    /// An event at both ends names no interface, and they differ.
    #[error(
        "an event of the arm {arm} is at both ends, whose interfaces are {client} at the client and {server} at the server; write an event for \
         each end with `on`"
    )]
    EventOfTwoInterfaces {
        /// The arm.
        arm: ArmName,
        /// The interface at the client.
        client: String,
        /// The interface at the server.
        server: String,
    },
    /// A treatment names the interface, and another one of the same setting does not.
    #[error("the arm {arm} changes {target} twice; keep the treatment without `interface`")]
    ChangedTwice {
        /// The arm.
        arm: ArmName,
        /// What is changed.
        target: String,
    },
    /// Events of arms that exchange their hosts have other interfaces on the other hosts.
    #[error(
        "the arm {arm} cannot exchange its hosts, because the interfaces of its events have other names there; remove `crossover`, or use VMs \
         of one size and image"
    )]
    NoCounterpart {
        /// The arm.
        arm: ArmName,
    },
}

impl BedFault {
    /// The key of the plan that the bed contradicts; `None` where several keys of an arm do.
    pub fn key(&self) -> Option<String> {
        match self {
            Self::OtherType { .. } => Some("bed_type".to_owned()),
            Self::NoVm { host, .. } => Some(key_path(&key_path("hosts", host.as_str()), "bed")),
            _ => None,
        }
    }
}
