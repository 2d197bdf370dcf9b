//! The machine and its kernel: cores and nodes, clock rate, firewall and connection tracking, huge pages, metadata.
use netduel_model::snapshot::{HostSnapshot, Interface, Provider};

use super::drivers;
use super::finding::{Finding, Severity};
use super::nic::{carriers, has_hardware};
use crate::words::ranges;

/// From this number on, the rules that each packet passes cost noticeable CPU time: about 17 ns each in the lab.
const RULES_MANY: u32 = 50;

/// Facts of a host that its snapshot does not contain.
#[derive(Debug, Clone, Default)]
pub struct HostContext {
    /// Cores to which a plan pins threads on this host; empty when it pins none.
    pub pinned: Vec<u16>,
}

pub(super) fn find(host: &HostSnapshot, context: &HostContext) -> Vec<Finding> {
    let mut found: Vec<Finding> =
        carriers(host).filter_map(|interface| other_node(host, interface, context)).collect();
    let others = [
        unread(host),
        allowed(host),
        governor(host),
        rules(host),
        tracking(host),
        huge_pages(host),
        metadata(host),
    ];
    found.extend(others.into_iter().flatten());
    found
}

/// Most rules need facts of procfs. Every kernel has these there, so a host without any of them was not read, and it is not known to be
/// without faults.
fn unread(host: &HostSnapshot) -> Option<Finding> {
    let is_read = host.kernel.is_some()
        || host.boot_id.is_some()
        || host.memory_bytes.is_some()
        || host.cores > 0
        || !host.sysctls.is_empty();
    if is_read {
        return None;
    }
    Some(
        Finding::new("facts-unread", Severity::Problem, "the facts of this host could not be read")
            .seen("no kernel release, boot id, memory, core or sysctl in /proc")
            .why("most rules could not be checked, and trials fail without the counters of /proc")
            .remedy("mount /proc where netduel runs, readable as a whole (not with subset=pid)")
            .command("mount -t proc proc /proc"),
    )
}

/// Cores of the threads, as far as known, with their origin: those of the plan, else those that the process may use.
fn usable_cores<'a>(host: &'a HostSnapshot, context: &'a HostContext) -> Option<(&'a [u16], &'static str)> {
    if !context.pinned.is_empty() {
        return Some((&context.pinned, "the plan pins threads to cores"));
    }
    host.processor.as_ref()?.allowed.as_deref().map(|cores| (cores, "netduel may run on cores"))
}

fn other_node(host: &HostSnapshot, interface: &Interface, context: &HostContext) -> Option<Finding> {
    let number = interface.device.numa_node.filter(|_| host.numa_nodes.len() > 1)?;
    let node = host.numa_nodes.iter().find(|node| node.number == number)?;
    let (cores, origin) = usable_cores(host, context)?;
    if cores.is_empty() || cores.iter().any(|core| node.cores.contains(core)) {
        return None;
    }
    let name = &interface.name;
    let near = ranges(node.cores.iter().copied());
    let distance = host.numa_nodes.iter().find(|other| other.cores.iter().any(|core| cores.contains(core)));
    let distance = distance
        .and_then(|other| other.distances.get(host.numa_nodes.iter().position(|node| node.number == number)?))
        .map(|distance| format!("distance between the nodes {distance} (a node to itself: 10)"));
    let mut finding = Finding::new(
        "other-node",
        Severity::Warning,
        format!("{name} is on NUMA node {number}, and all cores in use are on other nodes"),
    )
    .on(name)
    .seen(format!("{name}: node {number}, cores {near}; {origin} {}", ranges(cores.iter().copied())));
    if let Some(distance) = distance {
        finding = finding.seen(distance);
    }
    Some(
        finding
            .why("every packet crosses between NUMA nodes, which reduces throughput and adds latency")
            .remedy("use cores of the device's node, or set pin_client = \"auto\" and pin_server = \"auto\" in the plan")
            .command(format!("taskset -c {near} netduel ...")),
    )
}

fn allowed(host: &HostSnapshot) -> Option<Finding> {
    let allowed = host.processor.as_ref()?.allowed.as_deref()?;
    if allowed.is_empty() || allowed.len() >= host.cores as usize {
        return None;
    }
    let what = format!("netduel may use {} of {} cores", allowed.len(), host.cores);
    Some(
        Finding::new("cores-withheld", Severity::Note, what)
            .seen(format!("allowed cores: {} (sched_getaffinity)", ranges(allowed.iter().copied())))
            .why("a container, a service or taskset excludes the other cores; results hold for the allowed cores only")
            .remedy("allow more cores, unless the restriction is intended")
            .command("grep Cpus_allowed_list /proc/self/status; cat /proc/self/cgroup"),
    )
}

fn governor(host: &HostSnapshot) -> Option<Finding> {
    let governor = host.processor.as_ref()?.governor.as_deref()?;
    let severity = match governor {
        "powersave" | "conservative" => Severity::Warning,
        "ondemand" | "schedutil" => Severity::Note,
        _ => return None,
    };
    Some(
        Finding::new("clock-rate-governor", severity, format!("the CPU frequency governor is {governor}"))
            .seen(format!("scaling_governor {governor}"))
            .why("the frequency of a core drops while it waits for packets, so latency is higher at low load")
            .remedy("set the governor to performance during measurements")
            .command("cpupower frequency-set -g performance"),
    )
}

fn rules(host: &HostSnapshot) -> Option<Finding> {
    let filter = host.firewall.as_ref()?;
    let nft = filter.nft_rules.unwrap_or(0);
    if nft == 0 && filter.iptables.is_empty() {
        return None;
    }
    let severity = if nft >= RULES_MANY { Severity::Warning } else { Severity::Note };
    let mut finding =
        Finding::new("packet-filter", severity, "firewall rules are active in this network namespace");
    if nft > 0 {
        finding = finding.seen(format!("{nft} nftables rules"));
    }
    if !filter.iptables.is_empty() {
        finding = finding.seen(format!("iptables tables: {}", filter.iptables.join(", ")));
    }
    Some(
        finding
            .why("each rule that a packet passes costs CPU time, and a blocked port makes trials fail")
            .remedy("check which rules apply to the traffic of the test; compare with and without them where that is allowed")
            .command(if nft > 0 { "nft list ruleset" } else { "iptables-save" }),
    )
}

fn tracking(host: &HostSnapshot) -> Option<Finding> {
    let (now, most) = host.firewall.as_ref()?.conntrack?;
    if now == 0 || most == 0 {
        return None;
    }
    let share = now as f64 / most as f64;
    let (severity, what) = match share {
        share if share >= 0.9 => (Severity::Problem, "the connection tracking table is nearly full"),
        share if share >= 0.6 => (Severity::Warning, "the connection tracking table is filling up"),
        _ => (Severity::Note, "connection tracking is on"),
    };
    let finding = Finding::new("connection-tracking", severity, what)
        .seen(format!("{now} of at most {most} entries ({})", crate::words::percent(share)))
        .why(
            "each packet costs a lookup and each new connection an entry; a full table drops new connections",
        );
    Some(if severity == Severity::Note {
        finding
            .remedy("none needed, unless you measure connections per second")
            .command("sysctl net.netfilter.nf_conntrack_count")
    } else {
        finding
            .remedy("raise the limit, or exclude the traffic of the test from tracking")
            .command(format!("sysctl -w net.netfilter.nf_conntrack_max={}", most.saturating_mul(2)))
    })
}

/// Huge pages matter where a function is bound to a user-space program.
fn huge_pages(host: &HostSnapshot) -> Option<Finding> {
    let given = host.pci_functions.iter().find(|function| drivers::is_user_space(function))?;
    let any = host.numa_nodes.iter().flat_map(|node| &node.huge_pages).any(|pages| pages.total > 0);
    if any || host.numa_nodes.is_empty() {
        return None;
    }
    Some(
        Finding::new(
            "no-huge-pages",
            Severity::Note,
            "a network function is bound to a user-space driver, and there are no huge pages",
        )
        .seen(format!("{}, driver {}", drivers::words(given), given.driver.as_deref().unwrap_or_default()))
        .why("DPDK programs such as testpmd need huge pages; with --no-huge they run, but slower")
        .remedy("reserve huge pages on the NUMA node of the device")
        .command("sysctl -w vm.nr_hugepages=1024"),
    )
}

fn metadata(host: &HostSnapshot) -> Option<Finding> {
    let cloud = host.cloud.as_ref()?;
    let failure = cloud.metadata_failure.as_deref().filter(|_| has_hardware(host))?;
    let fields = [
        ("size", cloud.size.is_none()),
        ("region", cloud.region.is_none()),
        ("zone", cloud.zone.is_none()),
        ("placement", cloud.placement.is_none()),
        ("physical host", cloud.physical_host.is_none()),
    ];
    let unknown: Vec<&str> =
        fields.iter().filter(|(_, is_absent)| *is_absent).map(|(name, _)| *name).collect();
    let answer = if cloud.size.is_none() && cloud.region.is_none() { "no" } else { "an incomplete" };
    let (why, remedy) = if cloud.size.is_none() {
        (
            "the limit of the size and the placement of the hosts stay unknown",
            "allow access to 169.254.169.254, or give the limit with --expect-mbps",
        )
    } else {
        ("the placement of the hosts can stay unknown", "allow access to 169.254.169.254")
    };
    let finding = Finding::new(
        "metadata-unknown",
        Severity::Note,
        format!("the metadata service of {} gave {answer} answer", cloud.provider),
    )
    .seen(failure)
    .seen(format!("unknown: {}", unknown.join(", ")))
    .why(why)
    .remedy(remedy);
    Some(match query(cloud.provider) {
        Some(command) => finding.command(command),
        None => finding,
    })
}

/// The command that queries a provider's service for the size of the machine.
fn query(provider: Provider) -> Option<&'static str> {
    match provider {
        Provider::Azure => Some(
            "curl -s -m 2 -H Metadata:true 'http://169.254.169.254/metadata/instance/compute?api-version=2021-02-01'",
        ),
        Provider::Aws => Some(
            "curl -s -m 2 -H \"X-aws-ec2-metadata-token: $(curl -s -m 2 -X PUT -H 'X-aws-ec2-metadata-token-ttl-seconds: 30' \
             http://169.254.169.254/latest/api/token)\" http://169.254.169.254/latest/dynamic/instance-identity/document",
        ),
        Provider::Gcp => Some(
            "curl -s -m 2 -H 'Metadata-Flavor: Google' http://169.254.169.254/computeMetadata/v1/instance/machine-type",
        ),
        _ => None,
    }
}
