//! Differences between the two hosts of a pair, and resources that they should not share.
use std::net::IpAddr;

use netduel_model::shell;
use netduel_model::snapshot::{HostSnapshot, Interface};
use netduel_model::units::human_bit_rate;

use super::acceleration::accelerations;
use super::finding::{Finding, Severity};
use super::nic::{data_interface, partner, pci_of};

/// Facts of a pair that its snapshots do not contain.
#[derive(Debug, Clone, Default)]
pub struct PairContext {
    /// Names of the hosts, client first.
    pub names: [String; 2],
    /// Addresses of the traffic of each host, as far as a plan names them.
    pub addresses: [Vec<IpAddr>; 2],
    /// The interface that the plan expects to carry the traffic of each host.
    pub expected: [Option<String>; 2],
    /// Whether one machine is intended for both: a lab, namespaces.
    pub one_machine_intended: bool,
}

/// Both ends of a pair.
struct Ends<'a> {
    hosts: [&'a HostSnapshot; 2],
    /// The interfaces with the addresses of the traffic.
    data: [Option<&'a Interface>; 2],
    /// The devices that carry its packets.
    carriers: [Option<&'a Interface>; 2],
    context: &'a PairContext,
}

impl<'a> Ends<'a> {
    /// `client: eth0; server: eth1` of a fact that is known of both ends, when it differs.
    fn differ<T: PartialEq>(
        &self,
        of: impl Fn(&'a HostSnapshot, Option<&'a Interface>) -> Option<T>,
        words: impl Fn(&T) -> String,
    ) -> Option<String> {
        self.compared(self.data.map(Some), of, words)
    }

    /// The same of the devices that carry the packets.
    fn carriers_differ<T: PartialEq>(
        &self,
        of: impl Fn(&'a HostSnapshot, &'a Interface) -> Option<T>,
        words: impl Fn(&T) -> String,
    ) -> Option<String> {
        self.compared(self.carriers, of, words)
    }

    fn compared<T: PartialEq, I>(
        &self,
        interfaces: [Option<I>; 2],
        of: impl Fn(&'a HostSnapshot, I) -> Option<T>,
        words: impl Fn(&T) -> String,
    ) -> Option<String> {
        let [first, second] = interfaces;
        let one = of(self.hosts[0], first?)?;
        let other = of(self.hosts[1], second?)?;
        let [client, server] = &self.context.names;
        (one != other).then(|| format!("{client}: {}; {server}: {}", words(&one), words(&other)))
    }
}

pub(super) fn find(client: &HostSnapshot, server: &HostSnapshot, context: &PairContext) -> Vec<Finding> {
    let [of_client, of_server] = traffic_addresses(context);
    let [by_client, by_server] = &context.expected;
    let expected =
        [expected_interface(client, by_client.as_deref()), expected_interface(server, by_server.as_deref())];
    let data = [
        data_interface(client, expected[0], &of_client, &of_server),
        data_interface(server, expected[1], &of_server, &of_client),
    ];
    let carriers = [
        expected[0].filter(|_| data[0].is_some()).or_else(|| carrier(client, data[0])),
        expected[1].filter(|_| data[1].is_some()).or_else(|| carrier(server, data[1])),
    ];
    let ends = Ends { hosts: [client, server], data, carriers, context };
    let acceleration = acceleration(&ends);
    // When acceleration differs, the devices differ as well; one finding is enough.
    let other_device = || speed(&ends).into_iter().chain(device(&ends));
    let devices: Vec<Finding> = if acceleration.is_some() { Vec::new() } else { other_device().collect() };
    let found = [
        one_machine(&ends),
        acceleration,
        mtu(&ends),
        family(&ends),
        size(&ends),
        congestion(&ends),
        kernel(&ends),
    ];
    found.into_iter().flatten().chain(devices).collect()
}

fn expected_interface<'a>(host: &'a HostSnapshot, name: Option<&str>) -> Option<&'a Interface> {
    host.interfaces.iter().find(|interface| Some(interface.name.as_str()) == name)
}

/// The addresses of the traffic of each host. Traffic to a loopback address uses the loopback interface at both ends.
fn traffic_addresses(context: &PairContext) -> [Vec<IpAddr>; 2] {
    let loopback: Vec<IpAddr> =
        context.addresses.iter().flatten().filter(|address| address.is_loopback()).copied().collect();
    if loopback.is_empty() { context.addresses.clone() } else { [loopback.clone(), loopback] }
}

fn one_machine(ends: &Ends<'_>) -> Option<Finding> {
    let [client, server] = ends.hosts;
    if client.same_machine(server) {
        let severity = if ends.context.one_machine_intended { Severity::Note } else { Severity::Warning };
        return Some(
            Finding::new("same-machine", severity, "both hosts are the same machine")
                .seen(format!("boot id {}", client.boot_id.as_deref().unwrap_or_default()))
                .why("no packet crosses a network, and both ends share the cores: results are a property of this machine")
                .remedy("use two machines to measure a network"),
        );
    }
    let physical = |host: &HostSnapshot| host.cloud.as_ref()?.physical_host.clone();
    let (one, other) = (physical(client)?, physical(server)?);
    (one == other).then(|| {
        Finding::new("same-physical-host", Severity::Warning, "both hosts are guests of the same physical machine")
            .seen(format!("both on physical host {one}"))
            .why("packets between them never leave the machine, and they share its cores, memory and NIC")
            .remedy("stop and start one of them to get another placement, or use an availability set or a spread placement group")
    })
}

fn acceleration(ends: &Ends<'_>) -> Option<Finding> {
    let state = |host: &HostSnapshot, data: Option<&Interface>| {
        let all = accelerations(host);
        let own = data.and_then(|data| all.iter().position(|(interface, _)| interface.name == data.name));
        all.into_iter().nth(own.unwrap_or(0)).map(|(interface, state)| (interface.name.clone(), state))
    };
    let one = state(ends.hosts[0], ends.data[0])?;
    let other = state(ends.hosts[1], ends.data[1])?;
    if one.1.is_on() == other.1.is_on() {
        return None;
    }
    let [client, server] = &ends.context.names;
    let off = if one.1.is_on() { server } else { client };
    Some(
        Finding::new(
            "acceleration-differs",
            Severity::Problem,
            format!("accelerated networking is off at {off} and on at the other end"),
        )
        .seen(format!("{client}: {} {}; {server}: {} {}", one.0, one.1.words(), other.0, other.1.words()))
        .why("the slower end limits the pair, so the result holds for neither path")
        .remedy(format!("see the findings of {off}; enable it at both ends, or disable it at both")),
    )
}

fn mtu(ends: &Ends<'_>) -> Option<Finding> {
    let seen = ends.differ(|_, data| data?.mtu, |mtu| format!("{mtu} B"))?;
    let smallest = ends.data.iter().filter_map(|data| data.and_then(|data| data.mtu)).min()?;
    let end = ends.data.iter().position(|data| data.is_some_and(|data| data.mtu != Some(smallest)))?;
    let (larger, name) = (ends.data[end]?, &ends.context.names[end]);
    Some(
        Finding::new("mtu-differs", Severity::Warning, "the two ends have different MTUs")
            .seen(seen)
            .why("large datagrams of one end are dropped or fragmented, and TCP segment sizes differ by direction")
            .remedy(format!("set {smallest} B at {name}, or the larger MTU at both ends if the whole path supports it"))
            .command(format!("ip link set {} mtu {smallest}", shell::word(&larger.name))),
    )
}

/// Whether other hosts can reach an address.
fn reaches(address: &IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => !v4.is_loopback() && !v4.is_link_local(),
        IpAddr::V6(v6) => !v6.is_loopback() && !v6.is_unicast_link_local(),
    }
}

fn family(ends: &Ends<'_>) -> Option<Finding> {
    let [client, server] = &ends.context.names;
    let has = |end: usize, is_v6: bool| {
        Some(ends.data[end]?.addresses.iter().any(|address| reaches(address) && address.is_ipv6() == is_v6))
    };
    for (is_v6, word) in [(true, "IPv6"), (false, "IPv4")] {
        let (one, other) = (has(0, is_v6)?, has(1, is_v6)?);
        if one != other {
            let (with, without) = if one { (client, server) } else { (server, client) };
            return Some(
                Finding::new(
                    "family-missing",
                    Severity::Note,
                    format!("{with} has an {word} address, {without} has none"),
                )
                .seen(format!("addresses of the data interfaces: {word} at {with} only"))
                .why(format!("{word} between the two hosts cannot be measured"))
                .remedy(format!("add an {word} address to {without} to compare the address families")),
            );
        }
    }
    None
}

/// The device that carries the packets of a data interface: a virtual function that is up, else the interface itself.
fn carrier<'a>(host: &'a HostSnapshot, data: Option<&'a Interface>) -> Option<&'a Interface> {
    let data = data?;
    Some(partner(host, data).filter(|vf| vf.up).unwrap_or(data))
}

fn speed(ends: &Ends<'_>) -> Option<Finding> {
    let of = |_: &HostSnapshot, carrier: &Interface| carrier.speed_mbps;
    let seen = ends.carriers_differ(of, |speed| human_bit_rate(f64::from(*speed) * 1e6))?;
    let [client, server] = ends.carriers;
    let speeds = [client?.speed_mbps?, server?.speed_mbps?];
    let (low, high) = (speeds[0].min(speeds[1]), speeds[0].max(speeds[1]));
    (f64::from(high) >= f64::from(low) * 1.5).then(|| {
        Finding::new("speed-differs", Severity::Warning, "the two ends have different link speeds")
            .seen(seen)
            .why("the slower link limits both directions")
            .remedy("check whether the slower link negotiated a lower speed, or use hosts of one kind")
    })
}

fn device(ends: &Ends<'_>) -> Option<Finding> {
    let driver = |_: &HostSnapshot, carrier: &Interface| carrier.driver.clone();
    let model = |host, carrier| {
        let pci = pci_of(host, carrier)?;
        Some((pci.vendor, pci.device))
    };
    let seen = ends.carriers_differ(driver, |driver: &String| format!("driver {driver}")).or_else(|| {
        ends.carriers_differ(model, |(vendor, device): &(u16, u16)| {
            format!("device {vendor:04x}:{device:04x}")
        })
    })?;
    Some(
        Finding::new("device-differs", Severity::Warning, "the two ends have different network devices")
            .seen(seen)
            .why("directions can differ because the devices do, and the result holds for this pair only")
            .remedy("use hosts of one kind; a cloud can assign another device after a stop and start"),
    )
}

fn size(ends: &Ends<'_>) -> Option<Finding> {
    let seen = ends.differ(|host, _| host.cloud.as_ref()?.size.clone(), String::clone)?;
    Some(
        Finding::new("size-differs", Severity::Warning, "the two hosts have different sizes")
            .seen(seen)
            .why("the bandwidth limit and the cores of the smaller size limit the pair")
            .remedy("use the same size at both ends, as the test guides of the providers do"),
    )
}

fn congestion(ends: &Ends<'_>) -> Option<Finding> {
    let name = "net.ipv4.tcp_congestion_control";
    let seen = ends.differ(|host, _| host.sysctls.get(name).cloned(), String::clone)?;
    let wanted = ends.hosts[0].sysctls.get(name)?;
    Some(
        Finding::new(
            "congestion-control-differs",
            Severity::Warning,
            "the two ends use different congestion control",
        )
        .seen(seen)
        .why(
            "the sender's algorithm controls each direction, so directions differ for a reason other than the path",
        )
        .remedy("set the same algorithm at both ends, or set `congestion` in the plan's workloads")
        .command(format!("sysctl -w {}", shell::word(&format!("{name}={wanted}")))),
    )
}

fn kernel(ends: &Ends<'_>) -> Option<Finding> {
    let seen = ends.differ(|host, _| host.kernel.clone(), String::clone)?;
    Some(
        Finding::new("kernel-differs", Severity::Note, "the two hosts run different kernels")
            .seen(seen)
            .why("drivers and TCP of different versions perform differently")
            .remedy("use the same kernel on both hosts"),
    )
}
