//! Resources of an ARM template as they are written: one struct for each object, with the names of Azure's own types. Nothing is decided here.
//! Long because: one template has this many kinds of objects.
use serde::Serialize;

/// A template.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Template {
    /// The schema of templates.
    #[serde(rename = "$schema")]
    pub schema: &'static str,
    /// Required; Azure does not interpret it.
    pub content_version: &'static str,
    /// Who made it.
    pub metadata: Metadata,
    /// What is not known before the deployment.
    pub parameters: Parameters,
    /// The resources, in the order in which they depend on each other.
    pub resources: Vec<Resource>,
    /// What the deployment answers.
    pub outputs: Outputs,
}

/// Who made a template.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Metadata {
    /// The program.
    #[serde(rename = "_generator")]
    pub generator: Generator,
    /// The bed.
    pub bed: String,
}

/// A program.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Generator {
    /// Its name.
    pub name: &'static str,
}

/// The parameters of every template.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Parameters {
    /// The region of all resources.
    pub location: Parameter,
    /// The user of the VMs.
    pub admin_username: Parameter,
    /// The public key that may log in.
    pub ssh_public_key: Parameter,
    /// Prefixes that may connect by ssh.
    pub source_address_prefixes: Parameter,
    /// Tags of all resources.
    pub tags: Parameter,
}

/// The declaration of a parameter.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Parameter {
    /// Its type in ARM.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// Its value when none is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_value: Option<serde_json::Value>,
    /// What it is for.
    pub metadata: Description,
}

/// A text for people.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Description {
    /// The text.
    pub description: &'static str,
}

/// A resource.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Resource {
    /// Its type, for example `Microsoft.Network/networkInterfaces`.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// The version of the type.
    pub api_version: &'static str,
    /// Its name.
    pub name: String,
    /// Its region.
    pub location: &'static str,
    /// Its tags: a resource in the group that lacks them is not netduel's.
    pub tags: &'static str,
    /// The zone of a VM.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub zones: Vec<String>,
    /// Its SKU.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sku: Option<Sku>,
    /// Resources that must exist before it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub depends_on: Vec<String>,
    /// What it is.
    pub properties: Properties,
}

/// A SKU.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Sku {
    /// Its name.
    pub name: &'static str,
}

/// The properties of a resource.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Properties {
    /// Of a network security group.
    SecurityGroup(SecurityGroup),
    /// Of a virtual network.
    Network(Network),
    /// Of a proximity placement group.
    ProximityGroup(ProximityGroup),
    /// Of an availability set.
    AvailabilitySet(AvailabilitySet),
    /// Of a public address.
    PublicAddress(PublicAddress),
    /// Of a NIC.
    Interface(Interface),
    /// Of a VM.
    Machine(Box<Machine>),
    /// Of a schedule.
    Schedule(Schedule),
}

/// A reference to another resource.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Reference {
    /// An expression with its id.
    pub id: String,
}

/// A network security group.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SecurityGroup {
    /// Its rules.
    pub security_rules: Vec<Named<SecurityRule>>,
}

/// A part of a resource that has a name.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Named<P> {
    /// The name.
    pub name: String,
    /// What it is.
    pub properties: P,
}

/// A rule of a security group.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SecurityRule {
    /// Lower numbers come first.
    pub priority: u32,
    /// `Inbound`.
    pub direction: &'static str,
    /// `Allow`.
    pub access: &'static str,
    /// `Tcp` or `*`.
    pub protocol: &'static str,
    /// `*`.
    pub source_port_range: &'static str,
    /// The ports that it opens.
    pub destination_port_range: &'static str,
    /// Who may connect: a service tag.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_address_prefix: Option<&'static str>,
    /// Who may connect: a parameter with prefixes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_address_prefixes: Option<&'static str>,
    /// To whom.
    pub destination_address_prefix: &'static str,
}

/// A virtual network.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Network {
    /// The addresses of all subnets.
    pub address_space: AddressSpace,
    /// The subnets.
    pub subnets: Vec<Named<Subnet>>,
}

/// Address prefixes.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AddressSpace {
    /// The prefixes.
    pub address_prefixes: Vec<String>,
}

/// A subnet.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Subnet {
    /// Its prefixes.
    pub address_prefixes: Vec<String>,
    /// Whether its VMs reach the Internet without an address of their own.
    pub default_outbound_access: bool,
    /// Its rules.
    pub network_security_group: Reference,
}

/// A proximity placement group.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ProximityGroup {
    /// `Standard`.
    pub proximity_placement_group_type: &'static str,
}

/// An availability set.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AvailabilitySet {
    /// Groups of hosts without a common power supply and switch.
    pub platform_fault_domain_count: u32,
    /// Groups of hosts that are updated together.
    pub platform_update_domain_count: u32,
}

/// A public address.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PublicAddress {
    /// `Static`.
    #[serde(rename = "publicIPAllocationMethod")]
    pub allocation_method: &'static str,
    /// `IPv4`.
    #[serde(rename = "publicIPAddressVersion")]
    pub version: &'static str,
    /// What happens to it when its VM is deleted.
    pub delete_option: &'static str,
}

/// A NIC.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Interface {
    /// Whether the VM has a virtual function of the host's NIC.
    pub enable_accelerated_networking: bool,
    /// Its addresses.
    pub ip_configurations: Vec<Named<IpConfiguration>>,
}

/// An address of a NIC.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct IpConfiguration {
    /// Whether it is the first one of the NIC; only IPv4 can be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub primary: Option<bool>,
    /// `IPv4` or `IPv6`.
    #[serde(rename = "privateIPAddressVersion")]
    pub version: &'static str,
    /// `Dynamic`.
    #[serde(rename = "privateIPAllocationMethod")]
    pub allocation_method: &'static str,
    /// Its subnet.
    pub subnet: Reference,
    /// Its public address.
    #[serde(rename = "publicIPAddress", skip_serializing_if = "Option::is_none")]
    pub public_address: Option<Reference>,
}

/// A VM.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Machine {
    /// Its size.
    pub hardware_profile: HardwareProfile,
    /// Its availability set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub availability_set: Option<Reference>,
    /// Its proximity placement group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proximity_placement_group: Option<Reference>,
    /// `Spot` for a VM that Azure may evict.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<&'static str>,
    /// What an eviction does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub eviction_policy: Option<&'static str>,
    /// Its image and disk.
    pub storage_profile: StorageProfile,
    /// Its name, user and first boot.
    pub os_profile: OsProfile,
    /// Its NICs.
    pub network_profile: NetworkProfile,
    /// Its serial log.
    pub diagnostics_profile: DiagnosticsProfile,
}

/// The size of a VM.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HardwareProfile {
    /// As Azure names it.
    pub vm_size: String,
}

/// Image and disk of a VM.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StorageProfile {
    /// The image.
    pub image_reference: ImageReference,
    /// The disk.
    pub os_disk: OsDisk,
}

/// An image of the marketplace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ImageReference {
    /// Who publishes it.
    pub publisher: &'static str,
    /// The product.
    pub offer: &'static str,
    /// Its variant.
    pub sku: &'static str,
    /// `latest`.
    pub version: &'static str,
}

/// A disk.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OsDisk {
    /// `FromImage`.
    pub create_option: &'static str,
    /// What happens to it when its VM is deleted.
    pub delete_option: &'static str,
    /// Its kind.
    pub managed_disk: ManagedDisk,
}

/// The kind of a disk.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ManagedDisk {
    /// For example `StandardSSD_LRS`.
    pub storage_account_type: &'static str,
}

/// Name, user and first boot of a VM.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OsProfile {
    /// Its host name.
    pub computer_name: String,
    /// Its user.
    pub admin_username: &'static str,
    /// An expression with the configuration of cloud-init in Base64.
    pub custom_data: String,
    /// How the user logs in.
    pub linux_configuration: LinuxConfiguration,
}

/// How a user logs in.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LinuxConfiguration {
    /// `true`.
    pub disable_password_authentication: bool,
    /// The keys.
    pub ssh: Ssh,
}

/// The keys of a VM.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Ssh {
    /// The keys.
    pub public_keys: Vec<PublicKey>,
}

/// A key that may log in.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PublicKey {
    /// The file that it is written to.
    pub path: &'static str,
    /// The key.
    pub key_data: &'static str,
}

/// The NICs of a VM.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NetworkProfile {
    /// References to them.
    pub network_interfaces: Vec<AttachedInterface>,
}

/// A NIC of a VM.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AttachedInterface {
    /// An expression with its id.
    pub id: String,
    /// How it is attached.
    pub properties: Attachment,
}

/// How a NIC is attached.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Attachment {
    /// Whether it is the first NIC of the VM.
    pub primary: bool,
    /// What happens to it when its VM is deleted.
    pub delete_option: &'static str,
}

/// The serial log of a VM.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DiagnosticsProfile {
    /// Whether it is kept.
    pub boot_diagnostics: BootDiagnostics,
}

/// Whether the serial log is kept.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BootDiagnostics {
    /// `true`.
    pub enabled: bool,
}

/// A daily shutdown.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Schedule {
    /// `Enabled`.
    pub status: &'static str,
    /// `ComputeVmShutdownTask`.
    pub task_type: &'static str,
    /// When.
    pub daily_recurrence: DailyRecurrence,
    /// `UTC`.
    pub time_zone_id: &'static str,
    /// No mail is sent.
    pub notification_settings: NotificationSettings,
    /// The VM.
    pub target_resource_id: String,
}

/// A time of day.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DailyRecurrence {
    /// Four digits.
    pub time: String,
}

/// Mails about a shutdown.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NotificationSettings {
    /// `Disabled`.
    pub status: &'static str,
}

/// What a deployment answers.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Outputs {
    /// The VMs with their addresses.
    pub hosts: Output,
}

/// One answer.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Output {
    /// `array`.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// One entry for each VM.
    pub value: Vec<HostOutput>,
}

/// A VM in the answer. Addresses are expressions.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HostOutput {
    /// Name of the VM.
    pub name: String,
    /// Its public address.
    pub public: String,
    /// Its NICs.
    pub nics: Vec<NicOutput>,
}

/// A NIC in the answer.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NicOutput {
    /// Name of the NIC.
    pub name: String,
    /// Its IPv4 address.
    pub ipv4: String,
    /// Its IPv6 address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ipv6: Option<String>,
}
