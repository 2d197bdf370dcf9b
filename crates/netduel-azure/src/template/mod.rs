//! The ARM template of a bed, and the parameters of its deployment. The same bed gives the same text: no clock, no random number.
//!
//! Names of resources are those of the layout, which have plain characters only, so they can stand in expressions.
mod cloud_init;
mod guest_dpdk;
mod guest_routes;
pub mod types;

use std::collections::BTreeMap;

use netduel_model::bed::layout::{Nic, Vm, address_space};
use netduel_model::bed::prefix::Prefix;
use netduel_model::bed::shutdown::ShutdownTime;
use netduel_model::bed::{Bed, Families, Image, Layout, Placement};
use serde::Serialize;
use serde_json::json;
use sha2::{Digest as _, Sha256};

use crate::ssh_key::PublicKey;
use crate::tags::Tags;
use types::{
    AddressSpace, AttachedInterface, Attachment, AvailabilitySet, BootDiagnostics, DailyRecurrence,
    Description, DiagnosticsProfile, Generator, HardwareProfile, HostOutput, ImageReference, Interface,
    IpConfiguration, LinuxConfiguration, Machine, ManagedDisk, Metadata, Named, Network, NetworkProfile,
    NicOutput, NotificationSettings, OsDisk, OsProfile, Output, Outputs, Parameter, Parameters, Properties,
    ProximityGroup, PublicAddress, Reference, Resource, Schedule, SecurityGroup, SecurityRule, Sku, Ssh,
    StorageProfile, Subnet, Template,
};

/// Pinned versions of the types. Tests compare the templates with these versions of the published types.
const NETWORK_API: &str = "2024-05-01";
const COMPUTE_API: &str = "2024-07-01";
const SCHEDULE_API: &str = "2018-09-15";

const INTERFACE: &str = "Microsoft.Network/networkInterfaces";
const NETWORK: &str = "Microsoft.Network/virtualNetworks";
const SUBNET: &str = "Microsoft.Network/virtualNetworks/subnets";
const SECURITY_GROUP: &str = "Microsoft.Network/networkSecurityGroups";
const PUBLIC_ADDRESS: &str = "Microsoft.Network/publicIPAddresses";
pub(crate) const MACHINE: &str = "Microsoft.Compute/virtualMachines";
const PROXIMITY_GROUP: &str = "Microsoft.Compute/proximityPlacementGroups";
const AVAILABILITY_SET: &str = "Microsoft.Compute/availabilitySets";
pub(crate) const SCHEDULE: &str = "Microsoft.DevTestLab/schedules";

const NETWORK_NAME: &str = "netduel-network";
const SECURITY_GROUP_NAME: &str = "netduel-security";

const LOCATION: &str = "[parameters('location')]";
const TAGS: &str = "[parameters('tags')]";
/// What Azure does with a part of a VM when the VM is deleted.
const DELETE: &str = "Delete";

/// The template of a bed.
pub fn template(bed: &Bed) -> Template {
    let layout = Layout::of(bed);
    let mut resources = vec![security_group(), network(bed, &layout)];
    resources.extend(placement(bed.placement));
    if bed.kind.has_spare_proximity_group() && bed.placement != Placement::ProximityGroup {
        // Empty: the treatment `azure-placement` moves VMs into it.
        resources.extend(placement(Placement::ProximityGroup));
    }
    for vm in &layout.vms {
        resources.push(public_address(vm));
        resources.extend(vm.nics.iter().map(|nic| interface(&layout, vm, nic)));
        resources.push(machine(bed, &layout, vm));
        resources.extend(bed.shutdown.map(|time| schedule(vm, time)));
    }
    Template {
        schema: "https://schema.management.azure.com/schemas/2019-04-01/deploymentTemplate.json#",
        content_version: "1.0.0.0",
        metadata: Metadata { generator: Generator { name: "netduel" }, bed: bed.name.clone() },
        parameters: parameters(),
        resources,
        outputs: Outputs {
            hosts: Output {
                kind: "array",
                value: layout.vms.iter().map(|vm| host_output(&layout, vm)).collect(),
            },
        },
    }
}

/// The template as indented JSON with a line end.
///
/// # Errors
/// None with these types; returned for the caller to report.
pub fn text(template: &impl Serialize) -> Result<String, serde_json::Error> {
    Ok(serde_json::to_string_pretty(template)? + "\n")
}

/// The SHA-256 of the text of a bed's template, in hexadecimal digits.
pub fn sha256(bed: &Bed) -> Option<String> {
    Some(format!("{:x}", Sha256::digest(text(&template(bed)).ok()?)))
}

/// The parameters of a deployment, a document of its own: `az` takes it as a file, so that keys and prefixes are no arguments.
pub fn deployment_parameters(key: &PublicKey, prefixes: &[Prefix], tags: &Tags) -> serde_json::Value {
    let prefixes: Vec<String> = prefixes.iter().map(ToString::to_string).collect();
    json!({
        "$schema": "https://schema.management.azure.com/schemas/2019-04-01/deploymentParameters.json#",
        "contentVersion": "1.0.0.0",
        "parameters": {
            "sshPublicKey": { "value": key.as_str() },
            "sourceAddressPrefixes": { "value": prefixes },
            "tags": { "value": tags.pairs() },
        },
    })
}

/// The tags in the text of the [parameters](deployment_parameters) of a deployment; `None` for any other text.
pub fn tags_of_parameters(text: &str) -> Option<Tags> {
    let document: serde_json::Value = serde_json::from_str(text).ok()?;
    let tags = document.pointer("/parameters/tags/value")?;
    let pairs: BTreeMap<String, String> = serde_json::from_value(tags.clone()).ok()?;
    Tags::read(&pairs)
}

fn parameters() -> Parameters {
    let parameter = |kind, default_value, description| Parameter {
        kind,
        default_value,
        metadata: Description { description },
    };
    Parameters {
        location: parameter("string", Some(json!("[resourceGroup().location]")), "Region of all resources"),
        admin_username: parameter("string", Some(json!(Bed::USER)), "User of the VMs"),
        ssh_public_key: parameter("string", None, "Public key that may log in by ssh"),
        source_address_prefixes: parameter("array", None, "Address prefixes that may connect by ssh"),
        tags: parameter("object", Some(json!({})), "Tags of all resources"),
    }
}

/// An expression with the id of a resource.
fn id_of(kind: &str, name: &str) -> String {
    format!("[resourceId('{kind}', '{name}')]")
}

fn reference(kind: &str, name: &str) -> Reference {
    Reference { id: id_of(kind, name) }
}

fn resource(kind: &'static str, api_version: &'static str, name: String, properties: Properties) -> Resource {
    Resource {
        kind,
        api_version,
        name,
        location: LOCATION,
        tags: TAGS,
        zones: Vec::new(),
        sku: None,
        depends_on: Vec::new(),
        properties,
    }
}

/// Two rules: ssh from the given prefixes, and everything between the VMs.
fn security_group() -> Resource {
    let ssh = SecurityRule {
        priority: 100,
        direction: "Inbound",
        access: "Allow",
        protocol: "Tcp",
        source_port_range: "*",
        destination_port_range: "22",
        source_address_prefix: None,
        source_address_prefixes: Some("[parameters('sourceAddressPrefixes')]"),
        destination_address_prefix: "*",
    };
    let within = SecurityRule {
        priority: 110,
        protocol: "*",
        destination_port_range: "*",
        source_address_prefix: Some("VirtualNetwork"),
        source_address_prefixes: None,
        destination_address_prefix: "VirtualNetwork",
        ..ssh.clone()
    };
    let security_rules = vec![
        Named { name: "ssh".to_owned(), properties: ssh },
        Named { name: "within".to_owned(), properties: within },
    ];
    let properties = Properties::SecurityGroup(SecurityGroup { security_rules });
    resource(SECURITY_GROUP, NETWORK_API, SECURITY_GROUP_NAME.to_owned(), properties)
}

fn network(bed: &Bed, layout: &Layout) -> Resource {
    let [ipv4, ipv6] = address_space();
    let mut address_prefixes = vec![ipv4];
    if bed.families == Families::DualStack {
        address_prefixes.push(ipv6);
    }
    let subnets = layout.subnets.iter().map(|subnet| Named {
        name: subnet.name.clone(),
        properties: Subnet {
            address_prefixes: std::iter::once(&subnet.ipv4).chain(&subnet.ipv6).cloned().collect(),
            default_outbound_access: true,
            network_security_group: reference(SECURITY_GROUP, SECURITY_GROUP_NAME),
        },
    });
    let properties = Properties::Network(Network {
        address_space: AddressSpace { address_prefixes },
        subnets: subnets.collect(),
    });
    Resource {
        depends_on: vec![id_of(SECURITY_GROUP, SECURITY_GROUP_NAME)],
        ..resource(NETWORK, NETWORK_API, NETWORK_NAME.to_owned(), properties)
    }
}

/// The resource that keeps the VMs apart or together; none where the placement needs none.
fn placement(placement: Placement) -> Option<Resource> {
    match placement {
        Placement::None | Placement::IsolatedSize => None,
        Placement::ProximityGroup => {
            let properties =
                Properties::ProximityGroup(ProximityGroup { proximity_placement_group_type: "Standard" });
            Some(resource(PROXIMITY_GROUP, COMPUTE_API, Bed::PROXIMITY_GROUP.to_owned(), properties))
        }
        Placement::AvailabilitySet => {
            let properties = Properties::AvailabilitySet(AvailabilitySet {
                // Every region has two fault domains; not every one has three.
                platform_fault_domain_count: 2,
                platform_update_domain_count: 5,
            });
            Some(Resource {
                // The kind for VMs with managed disks.
                sku: Some(Sku { name: "Aligned" }),
                ..resource(AVAILABILITY_SET, COMPUTE_API, Bed::AVAILABILITY_SET.to_owned(), properties)
            })
        }
    }
}

fn public_address_name(vm: &Vm) -> String {
    format!("{}-address", vm.name)
}

fn public_address(vm: &Vm) -> Resource {
    let properties = Properties::PublicAddress(PublicAddress {
        allocation_method: "Static",
        version: "IPv4",
        delete_option: DELETE,
    });
    Resource {
        sku: Some(Sku { name: "Standard" }),
        ..resource(PUBLIC_ADDRESS, NETWORK_API, public_address_name(vm), properties)
    }
}

/// Whether a NIC has an IPv6 address.
fn has_ipv6(layout: &Layout, nic: &Nic) -> bool {
    layout.subnet(nic).is_some_and(|subnet| subnet.ipv6.is_some())
}

fn interface(layout: &Layout, vm: &Vm, nic: &Nic) -> Resource {
    let subnet = || Reference { id: format!("[resourceId('{SUBNET}', '{NETWORK_NAME}', '{}')]", nic.subnet) };
    let public = nic.has_public_address.then(|| public_address_name(vm));
    let ipv4 = IpConfiguration {
        primary: Some(true),
        version: "IPv4",
        allocation_method: "Dynamic",
        subnet: subnet(),
        public_address: public.as_deref().map(|name| reference(PUBLIC_ADDRESS, name)),
    };
    let mut ip_configurations = vec![Named { name: "ipv4".to_owned(), properties: ipv4 }];
    if has_ipv6(layout, nic) {
        let ipv6 = IpConfiguration {
            primary: None,
            version: "IPv6",
            allocation_method: "Dynamic",
            subnet: subnet(),
            public_address: None,
        };
        ip_configurations.push(Named { name: "ipv6".to_owned(), properties: ipv6 });
    }
    let properties = Properties::Interface(Interface {
        enable_accelerated_networking: nic.is_accelerated,
        ip_configurations,
    });
    let network = id_of(NETWORK, NETWORK_NAME);
    Resource {
        depends_on: std::iter::once(network)
            .chain(public.as_deref().map(|name| id_of(PUBLIC_ADDRESS, name)))
            .collect(),
        ..resource(INTERFACE, NETWORK_API, nic.name.clone(), properties)
    }
}

fn machine(bed: &Bed, layout: &Layout, vm: &Vm) -> Resource {
    let attached = || vm.nics.iter().filter(|nic| nic.is_attached());
    let network_interfaces = attached().enumerate().map(|(index, nic)| AttachedInterface {
        id: id_of(INTERFACE, &nic.name),
        properties: Attachment { primary: index == 0, delete_option: DELETE },
    });
    let set =
        (bed.placement == Placement::AvailabilitySet).then_some((AVAILABILITY_SET, Bed::AVAILABILITY_SET));
    let group =
        (bed.placement == Placement::ProximityGroup).then_some((PROXIMITY_GROUP, Bed::PROXIMITY_GROUP));
    let properties = Machine {
        hardware_profile: HardwareProfile { vm_size: bed.size.name.clone() },
        availability_set: set.map(|(kind, name)| reference(kind, name)),
        proximity_placement_group: group.map(|(kind, name)| reference(kind, name)),
        priority: bed.is_spot.then_some("Spot"),
        eviction_policy: bed.is_spot.then_some("Deallocate"),
        storage_profile: StorageProfile {
            image_reference: image(bed.image),
            os_disk: OsDisk {
                create_option: "FromImage",
                delete_option: DELETE,
                managed_disk: ManagedDisk { storage_account_type: "StandardSSD_LRS" },
            },
        },
        os_profile: OsProfile {
            computer_name: vm.name.clone(),
            admin_username: "[parameters('adminUsername')]",
            custom_data: cloud_init::expression(bed, layout, vm),
            linux_configuration: LinuxConfiguration {
                disable_password_authentication: true,
                ssh: Ssh {
                    public_keys: vec![types::PublicKey {
                        path: "[format('/home/{0}/.ssh/authorized_keys', parameters('adminUsername'))]",
                        key_data: "[parameters('sshPublicKey')]",
                    }],
                },
            },
        },
        network_profile: NetworkProfile { network_interfaces: network_interfaces.collect() },
        diagnostics_profile: DiagnosticsProfile { boot_diagnostics: BootDiagnostics { enabled: true } },
    };
    let nics = attached().map(|nic| id_of(INTERFACE, &nic.name));
    Resource {
        zones: bed.zone.iter().map(ToString::to_string).collect(),
        depends_on: nics.chain(set.or(group).map(|(kind, name)| id_of(kind, name))).collect(),
        ..resource(MACHINE, COMPUTE_API, vm.name.clone(), Properties::Machine(Box::new(properties)))
    }
}

/// The image of an operating system in the marketplace, with the newest version.
fn image(image: Image) -> ImageReference {
    let (publisher, offer, sku) = match image {
        Image::Ubuntu2404 => ("Canonical", "ubuntu-24_04-lts", "server"),
        Image::Debian12 => ("Debian", "debian-12", "12-gen2"),
        Image::AzureLinux3 => ("MicrosoftCBLMariner", "azure-linux-3", "azure-linux-3-gen2"),
        Image::WindowsServer2022 => ("MicrosoftWindowsServer", "WindowsServer", "2022-datacenter-g2"),
    };
    ImageReference { publisher, offer, sku, version: "latest" }
}

/// The name of the daily shutdown of a VM, by which Azure finds it.
pub(crate) fn schedule_name(vm: &str) -> String {
    format!("shutdown-computevm-{vm}")
}

/// The daily shutdown of a VM.
fn schedule(vm: &Vm, time: ShutdownTime) -> Resource {
    let machine = id_of(MACHINE, &vm.name);
    let properties = Properties::Schedule(Schedule {
        status: "Enabled",
        task_type: "ComputeVmShutdownTask",
        daily_recurrence: DailyRecurrence { time: time.digits() },
        time_zone_id: "UTC",
        notification_settings: NotificationSettings { status: "Disabled" },
        target_resource_id: machine.clone(),
    });
    Resource {
        depends_on: vec![machine],
        ..resource(SCHEDULE, SCHEDULE_API, schedule_name(&vm.name), properties)
    }
}

fn host_output(layout: &Layout, vm: &Vm) -> HostOutput {
    let property =
        |kind: &str, name: &str, path: &str| format!("[reference(resourceId('{kind}', '{name}')).{path}]");
    let address = |nic: &Nic, index: usize| {
        let path = format!("ipConfigurations[{index}].properties.privateIPAddress");
        property(INTERFACE, &nic.name, &path)
    };
    let nics = vm.nics.iter().map(|nic| NicOutput {
        name: nic.name.clone(),
        ipv4: address(nic, 0),
        ipv6: has_ipv6(layout, nic).then(|| address(nic, 1)),
    });
    HostOutput {
        name: vm.name.clone(),
        public: property(PUBLIC_ADDRESS, &public_address_name(vm), "ipAddress"),
        nics: nics.collect(),
    }
}
