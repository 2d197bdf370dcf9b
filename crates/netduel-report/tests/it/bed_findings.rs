//! What Azure claims of a bed against what its guests show: both directions, and what an arm depends on.
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use netduel_model::bed::{BedNetwork, BedNic, BedVm, Placement, RunBed, VfUse, VmFacts};
use netduel_model::ids::HostName;
use netduel_model::plan::{ResolvedPlan, parse};
use netduel_model::snapshot::{HostSnapshot, Route};
use netduel_report::findings::{BedFinding, Severity, of_bed, see_bed};
use netduel_report::inspect::Inspection;

use crate::hosts::{azure, captured, other};

const CLIENT_ID: &str = "13f56399-bd52-4150-9748-7190aae1ff21";

/// The address and MAC of the synthetic NIC of the host `azure`.
fn interface(host: &HostSnapshot) -> (IpAddr, String) {
    let synthetic =
        host.interfaces.iter().find(|one| one.driver.as_deref() == Some("hv_netvsc")).expect("it has one");
    (synthetic.addresses[0], synthetic.mac.clone().expect("it has one"))
}

/// The guests of a bed, and what Azure claims of it: everything agrees.
struct Scene {
    bed: RunBed,
    plan: ResolvedPlan,
    hosts: BTreeMap<HostName, HostSnapshot>,
}

fn name(text: &str) -> HostName {
    text.parse().expect("a name")
}

impl Scene {
    fn new() -> Self {
        let hosts = BTreeMap::from([(name("client"), azure()), (name("server"), other())]);
        let vm = |vm: &str, host: &str| {
            let snapshot = &hosts[&name(host)];
            let (address, mac) = interface(snapshot);
            let cloud = snapshot.cloud.as_ref().expect("it is in a cloud");
            let nic = BedNic {
                name: format!("{vm}-test"),
                network: Some(BedNetwork::Test),
                addresses: vec![address],
                public_address: Some(IpAddr::from([192, 0, 2, 1])),
                mac: Some(mac.to_uppercase()),
                is_accelerated: true,
                is_attached: true,
                ..BedNic::default()
            };
            BedVm {
                name: vm.to_owned(),
                claimed: VmFacts {
                    size: cloud.size.clone(),
                    zone: cloud.zone.clone(),
                    id: cloud.instance.clone(),
                    ..VmFacts::default()
                },
                nics: vec![nic],
                ..BedVm::default()
            }
        };
        let bed = RunBed {
            name: "x".to_owned(),
            kind: None,
            group: "netduel-x".to_owned(),
            region: "westeurope".to_owned(),
            placement: Placement::None,
            created_unix_s: None,
            price_per_hour: None,
            price_read_unix_s: None,
            template_sha256: None,
            file: None,
            vms: vec![vm("vm1", "client"), vm("vm2", "server")],
        };
        let arm =
            |arm: &str| format!("[[arms]]\nname = \"{arm}\"\nclient = \"client\"\nserver = \"server\"\n");
        let text = format!(
            "name = \"x\"\nquestion = \"?\"\n[hosts.client]\nbed = \"vm1\"\n[hosts.server]\nbed = \"vm2\"\n{}{}\
             [[workloads]]\nname = \"bulk\"\ntype = \"tcp-stream\"\n",
            arm("one"),
            arm("two"),
        );
        let plan =
            parse(&text, "x.toml").unwrap_or_else(|errors| panic!("{errors}")).on_bed(&bed).expect("it fits");
        Self { bed, plan, hosts }
    }

    fn found(&mut self) -> Vec<BedFinding> {
        see_bed(&mut self.bed, &self.plan, &self.hosts);
        of_bed(&self.bed, &self.plan, &self.hosts)
    }

    /// The findings of `vm1` by their names.
    fn names(&mut self) -> Vec<&'static str> {
        self.found().into_iter().filter(|found| found.vm == "vm1").map(|found| found.finding.id).collect()
    }

    fn client(&mut self) -> &mut HostSnapshot {
        self.hosts.get_mut(&name("client")).expect("it is there")
    }

    fn nic(&mut self) -> &mut BedNic {
        &mut self.bed.vms[0].nics[0]
    }

    /// The virtual function of the client.
    fn vf(&mut self) -> &mut netduel_model::snapshot::Interface {
        let find = |one: &&mut netduel_model::snapshot::Interface| one.master.is_some();
        self.client().interfaces.iter_mut().find(find).expect("it has one")
    }
}

#[test]
fn guide_has_every_finding_of_a_bed() {
    let guide = include_str!("../../../../docs/beds.md");
    let cells = guide.lines().filter_map(|line| line.strip_prefix("| ")?.split(" | ").next());
    let documented: BTreeSet<&str> = cells
        .flat_map(|cell| cell.split(", "))
        .filter_map(|id| id.strip_prefix("`bed-")?.strip_suffix('`'))
        .collect();
    let sources = [
        include_str!("../../src/findings/bed.rs"),
        include_str!("../../src/findings/bed_route.rs"),
        include_str!("../../src/findings/bed_sysctl.rs"),
    ];
    let ids = sources.iter().flat_map(|source| source.split("\"bed-").skip(1));
    let ids: BTreeSet<&str> = ids.filter_map(|rest| rest.split('"').next()).collect();
    assert_eq!(documented, ids);
}

#[test]
fn guest_that_is_as_azure_claims_has_no_finding_and_its_vf_is_recorded() {
    let mut scene = Scene::new();
    assert_eq!(scene.found(), []);
    let vf = scene.nic().seen.as_ref().and_then(|seen| seen.vf.as_ref()).expect("it has one");
    assert!(matches!(vf.state, VfUse::Active | VfUse::Idle | VfUse::Paired), "{vf:?}");
    assert!(vf.model.as_ref().is_some_and(|model| model.contains("Virtual Function")), "{vf:?}");
    assert_eq!(
        scene.bed.vms[0].seen.as_ref().and_then(|seen| seen.size.clone()),
        scene.bed.vms[0].claimed.size
    );
}

#[test]
fn accelerated_nic_without_a_vf_and_vf_of_a_nic_that_is_not_accelerated_are_problems_of_the_arm() {
    let mut scene = Scene::new();
    let function = scene.vf().name.clone();
    scene.client().interfaces.retain(|one| one.name != function);
    scene.client().pci_functions.clear();
    let found = scene.found();
    assert!(
        matches!(found.as_slice(), [one] if one.finding.id == "bed-no-vf" && one.is_of_arm && one.finding.severity == Severity::Problem),
        "{found:?}"
    );
    assert_eq!(found[0].finding.evidence.len(), 2);
    assert!(
        found[0]
            .finding
            .command
            .as_ref()
            .is_some_and(|command| command.contains("az vm deallocate --resource-group netduel-x"))
    );

    let mut scene = Scene::new();
    scene.nic().is_accelerated = false;
    let found = scene.found();
    assert!(
        matches!(found.as_slice(), [one] if one.finding.id == "bed-unexpected-vf" && one.is_of_arm),
        "{found:?}"
    );
    assert!(
        found[0]
            .finding
            .command
            .as_ref()
            .is_some_and(|command| command.ends_with("--accelerated-networking false"))
    );
}

#[test]
fn finding_of_a_report_says_that_a_command_of_az_needs_the_subscription() {
    let mut scene = Scene::new();
    let function = scene.vf().name.clone();
    scene.client().interfaces.retain(|one| one.name != function);
    scene.client().pci_functions.clear();
    // `netduel azure run` adds the option itself.
    assert!(!scene.found()[0].finding.remedy.contains("--subscription"));
    let Scene { bed, plan, hosts } = &scene;
    let stored = Inspection::of_plan(plan, hosts).with_bed(Some(bed), plan, hosts);
    let mut found = stored.findings().map(|(_, finding)| finding);
    let of_bed = found.find(|finding| finding.id == "bed-no-vf").expect("it is there");
    let end =
        "; add --subscription to commands of `az` where their resources are not in its current subscription";
    assert!(of_bed.remedy.ends_with(end), "{}", of_bed.remedy);
}

#[test]
fn vf_that_cannot_carry_traffic_is_a_problem() {
    let mut scene = Scene::new();
    scene.vf().up = false;
    assert_eq!(scene.names(), ["bed-vf-unused"]);
    let mut scene = Scene::new();
    scene.vf().master = None;
    assert_eq!(scene.names(), ["bed-vf-unused"]);
}

#[test]
fn nic_of_no_arm_is_found_and_does_not_concern_one() {
    let mut scene = Scene::new();
    scene.nic().network = Some(BedNetwork::Management);
    scene.nic().is_accelerated = false;
    let found = scene.found();
    assert!(
        matches!(found.as_slice(), [one] if one.finding.id == "bed-unexpected-vf" && !one.is_of_arm),
        "{found:?}"
    );
}

#[test]
fn missing_nic_unexpected_nic_and_missing_address_are_problems() {
    let mut scene = Scene::new();
    scene.nic().mac = Some("00:0d:3a:00:00:99".to_owned());
    assert_eq!(scene.names(), ["bed-nic-missing"]);
    // One that lies beside its VM is expected to be missing.
    scene.nic().is_attached = false;
    assert_eq!(scene.names(), [""; 0]);
    let mut scene = Scene::new();
    scene.nic().is_attached = false;
    assert_eq!(scene.names(), ["bed-nic-attached"]);
    let mut scene = Scene::new();
    scene.nic().addresses.push(IpAddr::from([10, 77, 9, 9]));
    assert_eq!(scene.names(), ["bed-address"]);
}

#[test]
fn machine_is_recognized_by_its_firmware_in_both_orders_of_bytes() {
    let mut scene = Scene::new();
    scene.bed.vms[0].claimed.id = Some(CLIENT_ID.to_owned());
    // Without the metadata service only the firmware names the machine.
    let without_service = |scene: &mut Scene, uuid: &str| {
        let client = scene.client();
        client.machine_uuid = Some(uuid.to_owned());
        let cloud = client.cloud.as_mut().expect("it is in a cloud");
        (cloud.instance, cloud.metadata_failure) = (None, Some("no answer".to_owned()));
    };
    without_service(&mut scene, "13F56399-BD52-4150-9748-7190AAE1FF21");
    assert_eq!(scene.names(), [""; 0]);
    without_service(&mut scene, "9963f513-52bd-5041-9748-7190aae1ff21");
    assert_eq!(scene.names(), [""; 0]);
    without_service(&mut scene, "9963f513-52bd-5041-9748-7190aae1ff22");
    let found = scene.found();
    assert!(
        matches!(found.as_slice(), [one] if one.finding.id == "bed-other-machine" && one.is_of_arm),
        "{found:?}"
    );
    let mut scene = Scene::new();
    scene.bed.vms[0].claimed.id = Some(CLIENT_ID.replace('1', "2"));
    assert_eq!(scene.names(), ["bed-other-machine"], "by the metadata service");
}

/// A scene whose client is a host of `tests/hosts`, as Azure claims it.
fn scene_of(host: &str) -> Scene {
    let mut scene = Scene::new();
    let (_, snapshot) = captured().into_iter().find(|(name, _)| name == host).expect("it is there");
    let (address, mac) = interface(&snapshot);
    let cloud = snapshot.cloud.as_ref().expect("it is in a cloud");
    let vm = &mut scene.bed.vms[0];
    vm.claimed.size.clone_from(&cloud.size);
    vm.claimed.zone.clone_from(&cloud.zone);
    vm.claimed.id.clone_from(&cloud.instance);
    vm.nics[0].addresses = vec![address];
    vm.nics[0].mac = Some(mac);
    scene.hosts.insert(name("client"), snapshot);
    scene
}

#[test]
fn vf_is_recorded_with_driver_and_model_and_the_vm_with_its_physical_host() {
    for (host, driver, model) in [
        ("azure-mlx5-active", "mlx5_core", "ConnectX-4 Lx Virtual Function"),
        ("azure-mana-active", "mana", "Microsoft Azure Network Adapter Virtual Function"),
    ] {
        let mut scene = scene_of(host);
        assert_eq!(scene.names(), [""; 0], "{host}");
        let vf = scene.nic().seen.as_ref().and_then(|seen| seen.vf.as_ref()).expect("it has one");
        let facts = (vf.driver.as_deref(), vf.model.as_deref(), vf.state);
        assert_eq!(facts, (Some(driver), Some(model), VfUse::Active), "{host}");
        let seen = scene.bed.vms[0].seen.as_ref().expect("it was inspected");
        assert_eq!(seen.physical_host.as_deref(), Some("AMS21PRDAPP0815"), "{host}");
    }
}

#[test]
fn vf_without_a_driver_is_a_problem_of_the_nic_that_should_have_one() {
    let mut scene = scene_of("azure-mana-no-driver");
    let found = scene.found();
    assert!(
        matches!(found.as_slice(), [one] if one.finding.id == "bed-vf-unused" && one.is_of_arm),
        "{found:?}"
    );
    assert!(found[0].finding.what.ends_with("cannot carry traffic: it has no driver"), "{found:?}");
    scene.nic().is_accelerated = false;
    assert_eq!(scene.found(), []);
}

#[test]
fn other_size_region_or_zone_is_a_warning() {
    let mut scene = Scene::new();
    let cloud = scene.client().cloud.as_mut().expect("it is in a cloud");
    cloud.region = Some("northeurope".to_owned());
    cloud.zone = Some("1".to_owned());
    let claimed = &mut scene.bed.vms[0].claimed;
    claimed.size = Some("Standard_D2s_v3".to_owned());
    claimed.region = Some("westeurope".to_owned());
    claimed.zone = Some("3".to_owned());
    let found = scene.found();
    let ids: Vec<&str> = found.iter().map(|found| found.finding.id).collect();
    assert_eq!(ids, ["bed-size", "bed-region", "bed-zone"], "{found:?}");
    let expected = |found: &BedFinding| found.finding.severity == Severity::Warning && !found.is_of_arm;
    assert!(found.iter().all(expected), "{found:?}");
    assert_eq!(found[2].finding.evidence, ["Azure: 3", "the metadata service of the host: 1"]);
}

#[test]
fn vms_that_should_be_apart_and_share_a_physical_host_are_found_once() {
    let mut scene = Scene::new();
    for host in scene.hosts.values_mut() {
        host.cloud.as_mut().expect("it is in a cloud").physical_host = Some("AMS07".to_owned());
    }
    assert_eq!(scene.found(), []);
    scene.bed.placement = Placement::AvailabilitySet;
    let found = scene.found();
    assert!(
        matches!(found.as_slice(), [one] if one.finding.id == "bed-same-host" && one.vm == "vm2"),
        "{found:?}"
    );
}

#[test]
fn sysctl_of_the_bed_file_that_a_guest_has_otherwise_is_a_warning() {
    let mut scene = Scene::new();
    let file = "name = \"x\"\nregion = \"westeurope\"\nsize = \"Standard_DS4_v2\"\n[sysctls]\n\
                \"net.core.somaxconn\" = \"8192\"\n\"net.ipv4.tcp_rmem\" = \"1 2  3\"\n\"net.ipv4.no_such\" = \"1\"\n";
    scene.bed.file = Some(file.to_owned());
    for host in scene.hosts.values_mut() {
        for (name, value) in [("net.core.somaxconn", "8192"), ("net.ipv4.tcp_rmem", "1 2 3")] {
            host.sysctls.insert(name.to_owned(), value.to_owned());
        }
    }
    // A snapshot does not have every sysctl.
    assert_eq!(scene.found(), []);
    let client = scene.hosts.get_mut(&name("client")).expect("the client");
    client.sysctls.insert("net.core.somaxconn".to_owned(), "4096".to_owned());
    let found = scene.found();
    let [one] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!((one.finding.id, one.finding.severity), ("bed-sysctl", Severity::Warning));
    assert_eq!((one.vm.as_str(), one.is_of_arm), ("vm1", false));
    assert_eq!(one.finding.command.as_deref(), Some("sysctl -w net.core.somaxconn=8192"));
}

fn route(destination: &str, prefix_length: u8, interface: &str, metric: u32) -> Route {
    Route {
        destination: destination.parse().expect("an address"),
        prefix_length,
        interface: interface.to_owned(),
        metric,
        gateway: None,
        source: None,
        mtu: None,
        attributes: None,
    }
}

/// A scene whose client has this address and a default route by another interface, and whose arms have this server.
fn routed(own: &str, server: &str) -> Scene {
    let mut scene = Scene::new();
    let own: IpAddr = own.parse().expect("an address");
    scene.nic().addresses = vec![own];
    let (network, length, any) =
        if own.is_ipv4() { ("10.77.1.0", 24, "0.0.0.0") } else { ("fd77:6e64:0:1::4", 128, "::") };
    let client = scene.client();
    client.interfaces.iter_mut().find(|one| one.name == "eth0").expect("it has one").addresses = vec![own];
    client.routes =
        vec![route(network, length, "eth0", 200), route(any, 0, "eth0", 200), route(any, 0, "eth9", 100)];
    for arm in &mut scene.plan.arms {
        arm.server_addresses = vec![server.parse().expect("an address")];
    }
    scene
}

#[test]
fn server_behind_the_default_route_of_another_nic_has_a_warning_with_the_route_to_add() {
    for (own, server, command) in [
        ("10.77.1.4", "10.77.2.4", "ip route replace 10.77.2.0/24 via 10.77.1.1 dev eth0"),
        (
            "fd77:6e64:0:1::4",
            "fd77:6e64:0:2::4",
            "ip -6 route replace fd77:6e64:0:2::/64 via fe80::1234:5678:9abc dev eth0",
        ),
    ] {
        let mut scene = routed(own, server);
        // A second default route of the NIC with a higher metric carries nothing.
        let found = scene.found();
        assert!(
            matches!(found.as_slice(), [one] if one.finding.id == "bed-route" && one.vm == "vm1" && !one.is_of_arm),
            "{found:?}"
        );
        assert_eq!(found[0].finding.severity, Severity::Warning);
        assert_eq!(found[0].finding.command.as_deref(), Some(command));
        assert!(found[0].finding.evidence[1].ends_with("by eth9, metric 100"), "{found:?}");

        let client = scene.client();
        client.routes.retain(|route| route.interface == "eth0");
        assert_eq!(scene.names(), [""; 0], "the only default route is that of the NIC");
    }
}

#[test]
fn route_over_the_nic_of_the_arm_is_as_expected_and_none_at_all_is_a_problem_of_the_arm() {
    let mut scene = routed("10.77.1.4", "10.77.1.5");
    assert_eq!(scene.names(), [""; 0], "in the network of the NIC");
    let mut scene = routed("10.77.1.4", "10.77.2.4");
    scene.client().routes.push(route("10.77.2.0", 24, "eth0", 0));
    assert_eq!(scene.names(), [""; 0]);
    scene.client().routes.truncate(1);
    let found = scene.found();
    assert!(
        matches!(found.as_slice(), [one] if one.finding.id == "bed-route" && one.is_of_arm && one.finding.severity == Severity::Problem),
        "{found:?}"
    );
    scene.client().routes.clear();
    assert_eq!(scene.names(), [""; 0], "routes of an earlier version are unknown");
}

#[test]
fn server_without_a_route_back_to_the_client_is_found() {
    let mut scene = routed("10.77.1.4", "10.77.2.4");
    scene.client().routes.push(route("10.77.2.0", 24, "eth0", 0));
    let server = scene.hosts.get_mut(&name("server")).expect("it is there");
    server.routes = vec![route("10.0.0.0", 24, "eth0", 0), route("0.0.0.0", 0, "eth9", 100)];
    let found = scene.found();
    assert!(
        matches!(found.as_slice(), [one] if one.finding.id == "bed-route" && one.vm == "vm2"),
        "{found:?}"
    );
    assert_eq!(found[0].finding.command, None, "the subnets of foreign addresses are unknown");
}
