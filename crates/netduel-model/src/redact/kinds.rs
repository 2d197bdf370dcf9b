//! What the strings of the recorded types are: the one table of the fields that hold a name. Every other string is text.
use super::walk::Place;

/// What a string is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Meaning {
    /// The name of a host in a plan: a short one says nothing of the host.
    PlanHost,
    /// The name of a host, with or without a port and a user.
    Host,
    /// The name of a user.
    User,
    /// The name of a bed, or of a resource of a cloud.
    Resource,
    /// The author of a report.
    Author,
    /// The organization of an author.
    Organization,
    /// An identifier of a machine.
    Id,
    /// A version or the name of a product: four numbers with dots are no address there.
    Version,
    /// A name in the alphabet of [`crate::ids`].
    Name,
    /// The name of a plan, with which the names of its runs begin.
    PlanName,
    /// A word of the format.
    Word,
    /// A word of a command line: text that may be a name as a whole.
    Argument,
    /// Text of a person or a program, in which any name may occur.
    Text,
}

/// The meaning of a string by the type and field that hold it.
pub fn meaning(place: Place) -> Meaning {
    if place.is_word {
        return Meaning::Word;
    }
    match (place.holder, place.field) {
        ("HostName", _) => Meaning::PlanHost,
        ("HostSnapshot", "hostname")
        | ("SshHost", "host")
        | ("Launch", "address")
        | ("HostIdentity" | "Cloud" | "VmFacts", "physical_host") => Meaning::Host,
        ("SshHost" | "BedVm", "user") => Meaning::User,
        ("RunBed", "name" | "group")
        | ("BedVm", "name")
        | ("BedNic", "name" | "subnet")
        | ("VmFacts" | "Cloud", "placement")
        | ("TreatmentAction", "nic" | "vm" | "group" | "resource_group")
        | ("Host" | "Launch", "vm")
        | ("SshHost", "bed") => Meaning::Resource,
        ("ResolvedPlan", "name") => Meaning::PlanName,
        ("Publication", "author") => Meaning::Author,
        ("Publication", "organization") => Meaning::Organization,
        ("RunHeader" | "BaselineRun", "command") | ("Annotations" | "BaselineRun", "overrides") => {
            Meaning::Argument
        }
        ("HostSnapshot" | "HostIdentity", "boot_id")
        | ("HostSnapshot", "machine_uuid")
        | ("VmFacts", "id")
        | ("Cloud", "instance") => Meaning::Id,
        ("HostSnapshot", "kernel" | "os" | "platform" | "hypervisor" | "cpu_model")
        | ("Device", "firmware")
        | ("DpdkReport", "version" | "rdma_core")
        | ("RunHeader" | "BaselineRun", "program") => Meaning::Version,
        ("ArmName" | "WorkloadName" | "LabName" | "RunId", _) => Meaning::Name,
        _ => Meaning::Text,
    }
}
