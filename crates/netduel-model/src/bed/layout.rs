//! A bed as VMs, NICs and subnets: the only place where a type of bed becomes resources. Pure; the provider's formats are elsewhere.
use std::fmt;
use std::net::IpAddr;

use serde::Serialize;

use super::network::BedNetwork;
use super::resolved::Bed;
use super::spec::{BedType, Families};
use crate::size::Size;
use crate::word::word;

/// The first two bytes of the bed's IPv4 addresses, and the prefix of its IPv6 addresses. The network reaches the bed alone.
const IPV4: &str = "10.77";
const IPV6: &str = "fd77:6e64:0";
/// The gateway for IPv6 in every subnet, an address of the link (`defaultV6HostGw` of Azure/azure-container-networking).
pub const IPV6_GATEWAY: &str = "fe80::1234:5678:9abc";

/// The use of a NIC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum NicUse {
    /// ssh only.
    Management,
    /// The arm without accelerated networking.
    Synthetic,
    /// The arm with accelerated networking.
    Accelerated,
    /// The NIC for tests of all arms.
    Test,
    /// For tests, not attached to its VM yet.
    Spare,
}

impl fmt::Display for NicUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(word(self))
    }
}

impl NicUse {
    /// All uses.
    const ALL: [Self; 5] = [Self::Management, Self::Synthetic, Self::Accelerated, Self::Test, Self::Spare];

    /// The network that NICs of this use are in.
    pub fn network(self) -> BedNetwork {
        match self {
            Self::Management => BedNetwork::Management,
            Self::Synthetic => BedNetwork::Synthetic,
            Self::Accelerated => BedNetwork::Accelerated,
            Self::Test | Self::Spare => BedNetwork::Test,
        }
    }

    /// The use of the NIC with this name; `None` for a NIC that netduel did not name.
    pub fn of_nic(name: &str) -> Option<Self> {
        let (_, used_for) = name.rsplit_once('-')?;
        Self::ALL.into_iter().find(|one| word(one) == used_for)
    }
}

/// The end of a trial that a VM is meant for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// It connects.
    Client,
    /// It listens.
    Server,
}

/// A NIC of a VM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Nic {
    /// Name of its resource, for example `vm1-accelerated`.
    pub name: String,
    /// What it is for.
    pub used_for: NicUse,
    /// Name of its subnet.
    pub subnet: String,
    /// Whether accelerated networking is on when it is created.
    pub is_accelerated: bool,
    /// Whether ssh reaches the VM through it.
    pub has_public_address: bool,
}

impl Nic {
    /// Whether it belongs to its VM from the beginning.
    pub fn is_attached(&self) -> bool {
        self.used_for != NicUse::Spare
    }
}

/// A VM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Vm {
    /// Its name, `vm1` to `vm4`: that of a host in plans.
    pub name: String,
    /// Which end of a pair it is.
    pub end: End,
    /// Its NICs; the first one is the primary.
    pub nics: Vec<Nic>,
}

/// A subnet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subnet {
    /// Its name.
    pub name: String,
    /// Its IPv4 prefix.
    pub ipv4: String,
    /// Its gateway for IPv4; that for IPv6 is [`IPV6_GATEWAY`].
    pub ipv4_gateway: String,
    /// Its IPv6 prefix; `None` in a bed without IPv6 and for management.
    pub ipv6: Option<String>,
}

/// What a bed consists of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    /// The VMs; each two that follow one another are a pair.
    pub vms: Vec<Vm>,
    /// The subnets, in the order of their numbers.
    pub subnets: Vec<Subnet>,
}

/// What the NICs of a VM are for, by the type of the bed and the NICs that its size has at most. ssh has a NIC of its own where the size
/// has enough of them.
fn uses(kind: BedType, nics_max: u32) -> &'static [NicUse] {
    match kind {
        BedType::TwoNic if nics_max > 2 => &[NicUse::Management, NicUse::Synthetic, NicUse::Accelerated],
        BedType::TwoNic => &[NicUse::Synthetic, NicUse::Accelerated],
        BedType::TwoPairs if nics_max < 2 => &[NicUse::Test],
        BedType::TwoPairs | BedType::Toggle | BedType::Dpdk => &[NicUse::Management, NicUse::Test],
        BedType::HotAdd if nics_max > 2 => &[NicUse::Management, NicUse::Test, NicUse::Spare],
        BedType::HotAdd => &[NicUse::Test, NicUse::Spare],
    }
}

/// Fewest NICs that a size needs for a type of bed.
pub fn nics_min(kind: BedType) -> u32 {
    uses(kind, 0).len() as u32
}

/// VMs of a type of bed.
fn vms(kind: BedType) -> usize {
    if kind == BedType::TwoPairs { 4 } else { 2 }
}

/// Whether accelerated networking is on at first for a NIC of the VM with this index.
fn is_accelerated(kind: BedType, size: &Size, used_for: NicUse, vm: usize) -> bool {
    match used_for {
        // Where the size requires it, Azure has no NIC without it.
        _ if !size.can_be_synthetic() => true,
        NicUse::Management | NicUse::Synthetic => false,
        NicUse::Accelerated | NicUse::Spare => true,
        // The first pair of two has it; a NIC that is switched begins without it.
        NicUse::Test => match kind {
            BedType::TwoPairs => vm < 2,
            BedType::Toggle => false,
            BedType::TwoNic | BedType::Dpdk | BedType::HotAdd => true,
        },
    }
}

/// Most NICs of a VM with accelerated networking that a type of bed has at first on a size.
pub fn accelerated_nics(kind: BedType, size: &Size) -> u32 {
    let of_vm = |vm: usize| {
        let uses = uses(kind, size.nics).iter();
        uses.filter(|used_for| is_accelerated(kind, size, **used_for, vm)).count() as u32
    };
    (0..vms(kind)).map(of_vm).max().unwrap_or_default()
}

/// Whether a bed of this type can be created of a size: it has the NICs, an arm without accelerated networking where the type has one, and
/// enough NICs with it.
pub fn suits(kind: BedType, size: &Size) -> bool {
    size.nics >= nics_min(kind)
        && (size.can_be_synthetic() || !kind.has_synthetic_arm())
        && accelerated_nics(kind, size) <= size.accelerated_nics_max()
}

impl Layout {
    /// Of a bed.
    pub fn of(bed: &Bed) -> Self {
        let uses = uses(bed.kind, bed.size.nics);
        let mut subnets: Vec<Subnet> = Vec::new();
        let vms = (0..vms(bed.kind)).map(|index| {
            let name = format!("vm{}", index + 1);
            let end = if index % 2 == 0 { End::Client } else { End::Server };
            let nics = uses.iter().enumerate().map(|(nth, used_for)| Nic {
                name: format!("{name}-{used_for}"),
                used_for: *used_for,
                subnet: subnet_of(bed, *used_for, end, &mut subnets),
                is_accelerated: is_accelerated(bed.kind, bed.size, *used_for, index),
                has_public_address: nth == 0,
            });
            let nics = nics.collect();
            Vm { name, end, nics }
        });
        let vms = vms.collect();
        Self { vms, subnets }
    }

    /// vCPUs of all VMs: what the quota of the series must have left.
    pub fn vcpus(&self, bed: &Bed) -> u32 {
        self.vms.len() as u32 * bed.size.vcpus
    }

    /// The subnet of a NIC.
    pub fn subnet(&self, nic: &Nic) -> Option<&Subnet> {
        self.subnets.iter().find(|subnet| subnet.name == nic.subnet)
    }

    /// The other subnets of the network of a NIC: those of the other ends where each end has a subnet of its own.
    pub fn subnets_beyond(&self, nic: &Nic) -> impl Iterator<Item = &Subnet> {
        let network = nic.used_for.network();
        let is_beyond = move |subnet: &Subnet| {
            let mut inside = self.nics().filter(|other| other.subnet == subnet.name);
            inside.any(|other| other.used_for.network() == network)
        };
        self.subnets.iter().filter(move |subnet| subnet.name != nic.subnet && is_beyond(subnet))
    }

    /// The NICs of all VMs.
    pub fn nics(&self) -> impl Iterator<Item = &Nic> {
        self.vms.iter().flat_map(|vm| &vm.nics)
    }
}

/// Whether the name of a VM, NIC, subnet or placement group is one that netduel gives in every bed, and says nothing of this one.
pub fn is_given_name(name: &str) -> bool {
    let is_vm = |name: &str| {
        let number = name.strip_prefix("vm");
        number.is_some_and(|text| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let is_use = |name: &str| NicUse::ALL.iter().any(|used_for| word(used_for) == name);
    let has_parts = |(start, end): (&str, &str)| {
        (is_vm(start) && is_use(end)) || (is_use(start) && matches!(end, "client" | "server"))
    };
    let is_group = |group: &&str| name.eq_ignore_ascii_case(group);
    is_vm(name)
        || is_use(name)
        || name.rsplit_once('-').is_some_and(has_parts)
        || [Bed::PROXIMITY_GROUP, Bed::AVAILABILITY_SET].iter().any(is_group)
}

/// The name of the subnet of a NIC, which is added when it is the first one in it.
fn subnet_of(bed: &Bed, used_for: NicUse, end: End, subnets: &mut Vec<Subnet>) -> String {
    let network = word(&used_for.network());
    let is_split = bed.subnets == 2 && used_for != NicUse::Management;
    let name = match end {
        _ if !is_split => network.to_owned(),
        End::Client => format!("{network}-client"),
        End::Server => format!("{network}-server"),
    };
    if subnets.iter().all(|subnet| subnet.name != name) {
        let number = subnets.len();
        let has_ipv6 = bed.families == Families::DualStack && used_for != NicUse::Management;
        subnets.push(Subnet {
            name: name.clone(),
            ipv4: ipv4_prefix(number),
            ipv4_gateway: ipv4_gateway(number),
            ipv6: has_ipv6.then(|| ipv6_prefix(number)),
        });
    }
    name
}

fn ipv4_prefix(number: usize) -> String {
    format!("{IPV4}.{number}.0/24")
}

/// Azure keeps the first address of a subnet for it.
fn ipv4_gateway(number: usize) -> String {
    format!("{IPV4}.{number}.1")
}

fn ipv6_prefix(number: usize) -> String {
    format!("{IPV6}:{number:x}::/64")
}

/// The prefix and the gateway of the subnet with an address; `None` for an address that is not of a bed.
pub fn subnet_around(address: IpAddr) -> Option<(String, String)> {
    match address {
        IpAddr::V4(address) => {
            let [first, second, number, _] = address.octets();
            let is_of_bed = format!("{first}.{second}") == IPV4;
            is_of_bed.then(|| (ipv4_prefix(number.into()), ipv4_gateway(number.into())))
        }
        IpAddr::V6(address) => {
            let [first, second, third, number, ..] = address.segments();
            let is_of_bed = format!("{first:x}:{second:x}:{third:x}") == IPV6;
            is_of_bed.then(|| (ipv6_prefix(number.into()), IPV6_GATEWAY.to_owned()))
        }
    }
}

/// The IPv4 and the IPv6 prefix that contain all subnets.
pub fn address_space() -> [String; 2] {
    [format!("{IPV4}.0.0/16"), format!("{IPV6}::/48")]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bed::parse;
    use crate::size;

    fn layout(keys: &str) -> Layout {
        let text = format!("name = \"x\"\nregion = \"westeurope\"\n{keys}\n");
        Layout::of(&parse(&text, "x.toml").unwrap_or_else(|errors| panic!("{errors}")))
    }

    /// The NICs of each VM with `+` for accelerated networking, `!` for a public address.
    fn nics(layout: &Layout) -> Vec<String> {
        let shown = |nic: &Nic| {
            let mark = |is: bool, mark: &str| if is { mark.to_owned() } else { String::new() };
            format!("{}{}{}", nic.name, mark(nic.is_accelerated, "+"), mark(nic.has_public_address, "!"))
        };
        layout.vms.iter().map(|vm| vm.nics.iter().map(shown).collect::<Vec<_>>().join(" ")).collect()
    }

    #[test]
    fn each_type_has_its_vms_and_nics() {
        let of = |kind: &str| nics(&layout(&format!("size = \"Standard_DS4_v2\"\ntype = \"{kind}\"")));
        assert_eq!(
            of("two-nic"),
            [
                "vm1-management! vm1-synthetic vm1-accelerated+",
                "vm2-management! vm2-synthetic vm2-accelerated+"
            ]
        );
        assert_eq!(
            of("two-pairs"),
            [
                "vm1-management! vm1-test+",
                "vm2-management! vm2-test+",
                "vm3-management! vm3-test",
                "vm4-management! vm4-test"
            ]
        );
        assert_eq!(of("toggle"), ["vm1-management! vm1-test", "vm2-management! vm2-test"]);
        assert_eq!(of("dpdk"), ["vm1-management! vm1-test+", "vm2-management! vm2-test+"]);
        assert_eq!(
            of("hot-add"),
            ["vm1-management! vm1-test+ vm1-spare+", "vm2-management! vm2-test+ vm2-spare+"]
        );
    }

    #[test]
    fn size_with_two_nics_has_ssh_on_the_first_test_nic() {
        let small = layout("size = \"Standard_D4s_v3\"");
        assert_eq!(nics(&small), ["vm1-synthetic! vm1-accelerated+", "vm2-synthetic! vm2-accelerated+"]);
        let small = layout("size = \"Standard_D4s_v3\"\ntype = \"hot-add\"");
        assert_eq!(nics(&small), ["vm1-test+! vm1-spare+", "vm2-test+! vm2-spare+"]);
    }

    #[test]
    fn every_type_has_an_attached_nic_for_each_of_its_test_networks() {
        for bed in BedType::ALL {
            for size in ["Standard_DS4_v2", "Standard_D4s_v3"] {
                let bed = layout(&format!("size = \"{size}\"\ntype = \"{}\"", word(&bed)));
                for vm in &bed.vms {
                    let has = |nic: &Nic| {
                        let network = nic.used_for.network();
                        vm.nics.iter().any(|other| other.is_attached() && other.used_for.network() == network)
                    };
                    assert!(vm.nics.iter().all(has), "{vm:?}");
                }
            }
        }
    }

    #[test]
    fn names_of_every_bed_are_known_as_such() {
        for bed in BedType::ALL {
            let keys = format!("size = \"Standard_DS4_v2\"\ntype = \"{}\"\nsubnets = 2", word(&bed));
            let bed = layout(&keys);
            let vms = bed.vms.iter().map(|vm| &vm.name);
            let subnets = bed.subnets.iter().map(|subnet| &subnet.name);
            for name in vms.chain(bed.nics().map(|nic| &nic.name)).chain(subnets) {
                assert!(is_given_name(name), "{name}");
            }
        }
        for name in ["billing-test", "vm", "vmx-test", "vm1-billing", "test-billing", "default"] {
            assert!(!is_given_name(name), "{name}");
        }
    }

    #[test]
    fn size_that_requires_accelerated_networking_has_it_on_every_nic() {
        let required = layout("size = \"Standard_D8s_v5\"\ntype = \"dpdk\"");
        assert!(required.nics().all(|nic| nic.is_accelerated), "{required:?}");
    }

    #[test]
    fn each_network_has_one_subnet_or_one_for_each_end() {
        let names = |layout: &Layout| -> Vec<String> {
            layout.subnets.iter().map(|subnet| format!("{} {}", subnet.name, subnet.ipv4)).collect()
        };
        let keys = "size = \"Standard_DS4_v2\"\ntype = \"toggle\"\nfamilies = \"dual-stack\"";
        let one = layout(keys);
        assert_eq!(names(&one), ["management 10.77.0.0/24", "test 10.77.1.0/24"]);
        assert_eq!(
            one.subnets.iter().map(|subnet| subnet.ipv6.as_deref()).collect::<Vec<_>>(),
            [None, Some("fd77:6e64:0:1::/64")]
        );
        let two = layout(&format!("{keys}\nsubnets = 2"));
        assert_eq!(
            names(&two),
            ["management 10.77.0.0/24", "test-client 10.77.1.0/24", "test-server 10.77.2.0/24"]
        );
        assert!(two.nics().all(|nic| two.subnets.iter().any(|subnet| subnet.name == nic.subnet)));
    }

    #[test]
    fn subnet_of_the_other_end_and_the_gateways_are_known() {
        let keys = "size = \"Standard_DS4_v2\"\nfamilies = \"dual-stack\"\nsubnets = 2";
        let two = layout(keys);
        let beyond =
            |nic: &Nic| -> Vec<&str> { two.subnets_beyond(nic).map(|subnet| subnet.name.as_str()).collect() };
        let [client, server] = [&two.vms[0], &two.vms[1]];
        assert_eq!(
            client.nics.iter().map(beyond).collect::<Vec<_>>(),
            [vec![], vec!["synthetic-server"], vec!["accelerated-server"]]
        );
        assert_eq!(beyond(&server.nics[1]), ["synthetic-client"]);
        let one = layout("size = \"Standard_DS4_v2\"");
        assert!(one.nics().all(|nic| one.subnets_beyond(nic).next().is_none()));

        for nic in two.nics() {
            let subnet = two.subnet(nic).unwrap();
            let address = subnet.ipv4.replace(".0/24", ".4").parse().unwrap();
            assert_eq!(subnet_around(address), Some((subnet.ipv4.clone(), subnet.ipv4_gateway.clone())));
            if let Some(ipv6) = &subnet.ipv6 {
                let address = ipv6.replace("::/64", "::4").parse().unwrap();
                assert_eq!(subnet_around(address), Some((ipv6.clone(), IPV6_GATEWAY.to_owned())));
            }
        }
        assert_eq!(two.subnets[2].ipv4_gateway, "10.77.2.1");
        assert_eq!(["10.78.0.4", "fd78::4"].map(|text| subnet_around(text.parse().unwrap())), [None, None]);
    }

    #[test]
    fn use_of_a_nic_is_read_from_its_name() {
        for bed in BedType::ALL {
            let bed = layout(&format!("size = \"Standard_DS4_v2\"\ntype = \"{}\"", word(&bed)));
            for nic in bed.nics() {
                assert_eq!(NicUse::of_nic(&nic.name), Some(nic.used_for), "{}", nic.name);
            }
        }
        assert_eq!(["vm1", "vm1-", "mine"].map(NicUse::of_nic), [None; 3]);
    }

    #[test]
    fn size_suits_a_type_when_a_bed_of_both_is_valid() {
        for size in size::table() {
            for kind in BedType::ALL {
                let (name, word) = (&size.name, word(&kind));
                let text =
                    format!("name = \"x\"\nregion = \"westeurope\"\nsize = \"{name}\"\ntype = \"{word}\"\n");
                assert_eq!(suits(kind, size), parse(&text, "x.toml").is_ok(), "{name} {word}");
            }
        }
    }

    #[test]
    fn fewest_nics_are_those_of_a_vm_of_a_small_size() {
        let least = BedType::ALL.map(nics_min);
        assert_eq!(least, [2, 1, 2, 2, 2]);
    }
}
