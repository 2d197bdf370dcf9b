//! What two hosts that talk to each other have different, or too much in common.
use std::net::IpAddr;

use netduel_model::snapshot::{HostSnapshot, Interface};
use netduel_model::units::human_bit_rate;

use super::acceleration::accelerations;
use super::finding::{Finding, Severity};
use super::nic::{data_interface, partner, pci_of};

/// What is known of a pair beside its snapshots.
#[derive(Debug, Clone, Default)]
pub struct PairContext {
    /// Names of the hosts, client first.
    pub names: [String; 2],
    /// Addresses of each that traffic goes to, as far as a plan says.
    pub addresses: [Vec<IpAddr>; 2],
    /// Whether both were put on one machine on purpose: a lab, namespaces.
    pub one_machine_meant: bool,
}

/// Both ends of a pair.
struct Ends<'a> {
    hosts: [&'a HostSnapshot; 2],
    data: [Option<&'a Interface>; 2],
    context: &'a PairContext,
}

impl<'a> Ends<'a> {
    /// `client eth0, server eth1` of something that both ends tell, when it differs.
    fn differ<T: PartialEq>(
        &self,
        of: impl Fn(&'a HostSnapshot, Option<&'a Interface>) -> Option<T>,
        words: impl Fn(&T) -> String,
    ) -> Option<String> {
        let one = of(self.hosts[0], self.data[0])?;
        let other = of(self.hosts[1], self.data[1])?;
        let [client, server] = &self.context.names;
        (one != other).then(|| format!("{client}: {}; {server}: {}", words(&one), words(&other)))
    }
}

pub(super) fn find(client: &HostSnapshot, server: &HostSnapshot, context: &PairContext) -> Vec<Finding> {
    let data = [data_interface(client, &context.addresses[0]), data_interface(server, &context.addresses[1])];
    let ends = Ends { hosts: [client, server], data, context };
    let acceleration = acceleration(&ends);
    // What carries the packets differs then, which is said already.
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

fn one_machine(ends: &Ends<'_>) -> Option<Finding> {
    let [client, server] = ends.hosts;
    if client.same_machine(server) {
        let severity = if ends.context.one_machine_meant { Severity::Note } else { Severity::Warning };
        return Some(
            Finding::new("same-machine", severity, "both hosts are one machine")
                .seen(format!("boot id {}", client.boot_id.as_deref().unwrap_or_default()))
                .why("nothing crosses a network, and both ends share its cores: figures are those of this machine")
                .remedy("for a network, take two machines"),
        );
    }
    let physical = |host: &HostSnapshot| host.cloud.as_ref()?.physical_host.clone();
    let (one, other) = (physical(client)?, physical(server)?);
    (one == other).then(|| {
        Finding::new("same-physical-host", Severity::Warning, "both hosts are guests of one physical machine")
            .seen(format!("physical host {one} for both"))
            .why("packets between them never leave it, and its guests share cores, memory and NIC")
            .remedy("stop and start one of them so that it is placed anew, or use an availability set or spread placement")
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
            format!("accelerated networking is on at one end only, not at {off}"),
        )
        .seen(format!("{client}: {} {}; {server}: {} {}", one.0, one.1.words(), other.0, other.1.words()))
        .why("the slow end decides: such a pair measures neither the accelerated path nor the other")
        .remedy(format!("see the findings of {off}; turn it on at both ends, or off at both")),
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
            .why("large datagrams of one end are lost or cut in pieces, and the segments of TCP differ by direction")
            .remedy(format!("set the same at both ends, the smaller one at {name}, or a larger one if everything between carries it"))
            .command(format!("ip link set {} mtu {smallest}", larger.name)),
    )
}

/// Whether an address can be reached from another host of the same network or beyond.
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
                    format!("{without} has no {word} address, {with} has"),
                )
                .seen(format!("addresses of the interface that carries the data: {word} at {with} only"))
                .why(format!("nothing can be measured over {word} between them"))
                .remedy(format!("give {without} an {word} address if you want to compare the families")),
            );
        }
    }
    None
}

/// What carries the packets beneath a data interface: a virtual function that is up, else the interface itself.
fn carrier<'a>(host: &'a HostSnapshot, data: Option<&'a Interface>) -> Option<&'a Interface> {
    let data = data?;
    Some(partner(host, data).filter(|vf| vf.up).unwrap_or(data))
}

fn speed(ends: &Ends<'_>) -> Option<Finding> {
    let of = |host, data| carrier(host, data)?.speed_mbps;
    let seen = ends.differ(of, |speed| human_bit_rate(f64::from(*speed) * 1e6))?;
    let speeds = [of(ends.hosts[0], ends.data[0])?, of(ends.hosts[1], ends.data[1])?];
    let (low, high) = (speeds[0].min(speeds[1]), speeds[0].max(speeds[1]));
    (f64::from(high) >= f64::from(low) * 1.5).then(|| {
        Finding::new("speed-differs", Severity::Warning, "the links of the two ends differ in speed")
            .seen(seen)
            .why("the slower link is the limit in both directions")
            .remedy("look whether the slower link was negotiated down, or compare hosts of one kind")
    })
}

fn device(ends: &Ends<'_>) -> Option<Finding> {
    let driver = |host, data| carrier(host, data)?.driver.clone();
    let model = |host, data| {
        let pci = pci_of(host, carrier(host, data)?)?;
        Some((pci.vendor, pci.device))
    };
    let seen = ends.differ(driver, |driver: &String| format!("driver {driver}")).or_else(|| {
        ends.differ(model, |(vendor, device): &(u16, u16)| format!("device {vendor:04x}:{device:04x}"))
    })?;
    Some(
        Finding::new("device-differs", Severity::Warning, "the two ends have different network devices")
            .seen(seen)
            .why("the ends are not alike, so that the directions differ and a result stands for this pair alone")
            .remedy("compare pairs of one kind; in a cloud a machine that is stopped and started may get another device"),
    )
}

fn size(ends: &Ends<'_>) -> Option<Finding> {
    let seen = ends.differ(|host, _| host.cloud.as_ref()?.size.clone(), String::clone)?;
    Some(
        Finding::new("size-differs", Severity::Warning, "the two hosts are of different sizes")
            .seen(seen)
            .why("the smaller size's limit holds for both directions of a closed loop, and its CPU for its end")
            .remedy("use one size at both ends, as the providers' own test guides do"),
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
            "each direction is governed by its sender, so that they differ for a reason that is not the path",
        )
        .remedy("set the same at both ends, or set `congestion` in the plan's workloads")
        .command(format!("sysctl -w {name}={wanted}")),
    )
}

fn kernel(ends: &Ends<'_>) -> Option<Finding> {
    let seen = ends.differ(|host, _| host.kernel.clone(), String::clone)?;
    Some(
        Finding::new("kernel-differs", Severity::Note, "the two hosts run different kernels")
            .seen(seen)
            .why("drivers and TCP of different versions perform differently")
            .remedy("run the same kernel where the ends are compared"),
    )
}
