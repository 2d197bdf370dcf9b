//! The machine and its kernel: cores and nodes, clock rate, firewall and connection tracking, huge pages, metadata.
use netduel_model::snapshot::{HostSnapshot, Interface, Provider};

use super::drivers;
use super::finding::{Finding, Severity};
use super::nic::{carriers, has_hardware};
use crate::words::ranges;

/// Rules that every packet may have to pass, from which on they are felt: about 17 ns each in our lab.
const RULES_MANY: u32 = 50;

/// What is known of a host beside its snapshot.
#[derive(Debug, Clone, Default)]
pub struct HostContext {
    /// Cores that a plan pins threads to on this host; empty when it pins none.
    pub pinned: Vec<u16>,
}

pub(super) fn find(host: &HostSnapshot, context: &HostContext) -> Vec<Finding> {
    let mut found: Vec<Finding> =
        carriers(host).filter_map(|interface| other_node(host, interface, context)).collect();
    let others =
        [allowed(host), governor(host), rules(host), tracking(host), huge_pages(host), metadata(host)];
    found.extend(others.into_iter().flatten());
    found
}

/// Cores that threads will run on, as far as it is settled: those of the plan, else those that the process may use.
fn settled<'a>(host: &'a HostSnapshot, context: &'a HostContext) -> Option<(&'a [u16], &'static str)> {
    if !context.pinned.is_empty() {
        return Some((&context.pinned, "the plan pins threads to"));
    }
    host.processor.as_ref()?.allowed.as_deref().map(|cores| (cores, "this process may run on"))
}

fn other_node(host: &HostSnapshot, interface: &Interface, context: &HostContext) -> Option<Finding> {
    let number = interface.device.node.filter(|_| host.nodes.len() > 1)?;
    let node = host.nodes.iter().find(|node| node.number == number)?;
    let (cores, whose) = settled(host, context)?;
    if cores.is_empty() || cores.iter().any(|core| node.cores.contains(core)) {
        return None;
    }
    let name = &interface.name;
    let near = ranges(node.cores.iter().copied());
    let distance = host.nodes.iter().find(|other| other.cores.iter().any(|core| cores.contains(core)));
    let distance = distance
        .and_then(|other| other.distances.get(host.nodes.iter().position(|node| node.number == number)?))
        .map(|distance| format!("distance between the nodes {distance}, 10 is the node itself"));
    let mut finding = Finding::new(
        "other-node",
        Severity::Warning,
        format!("{name} is on node {number}, and no core that is used is"),
    )
    .on(name)
    .seen(format!("{name}: node {number}, cores {near}; {whose} {}", ranges(cores.iter().copied())));
    if let Some(distance) = distance {
        finding = finding.seen(distance);
    }
    Some(
        finding
            .why("every packet crosses between the nodes, which costs throughput and latency")
            .remedy("use cores of the device's node, or let netduel choose them: pin = \"auto\"")
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
            .seen(format!("allowed are {} (sched_getaffinity)", ranges(allowed.iter().copied())))
            .why("a container, a service or taskset keeps the others; figures are those of the cores that are left")
            .remedy("widen the set, unless it is what you want to measure")
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
        Finding::new(
            "clock-rate-governor",
            severity,
            format!("the governor of the clock rate is {governor}"),
        )
        .seen(format!("scaling_governor {governor}"))
        .why("a core that waits for packets is slowed down, so that latency grows when there is little to do")
        .remedy("set the governor to performance while you measure")
        .command("cpupower frequency-set -g performance"),
    )
}

fn rules(host: &HostSnapshot) -> Option<Finding> {
    let filter = host.filter.as_ref()?;
    let nft = filter.nft_rules.unwrap_or(0);
    if nft == 0 && filter.iptables.is_empty() {
        return None;
    }
    let severity = if nft >= RULES_MANY { Severity::Warning } else { Severity::Note };
    let mut finding =
        Finding::new("packet-filter", severity, "a firewall looks at packets of this network stack");
    if nft > 0 {
        finding = finding.seen(format!("{nft} rules of nftables"));
    }
    if !filter.iptables.is_empty() {
        finding = finding.seen(format!("tables of iptables: {}", filter.iptables.join(", ")));
    }
    Some(
        finding
            .why("each rule that a packet meets costs CPU time, and a port that is not let through stops a trial")
            .remedy("look which rules meet the traffic; compare with and without them where that is allowed")
            .command(if nft > 0 { "nft list ruleset" } else { "iptables-save" }),
    )
}

fn tracking(host: &HostSnapshot) -> Option<Finding> {
    let (now, most) = host.filter.as_ref()?.tracked?;
    if now == 0 || most == 0 {
        return None;
    }
    let share = now as f64 / most as f64;
    let (severity, what) = match share {
        share if share >= 0.9 => (Severity::Problem, "the table of tracked connections is nearly full"),
        share if share >= 0.6 => (Severity::Warning, "the table of tracked connections fills up"),
        _ => (Severity::Note, "connections are tracked"),
    };
    let finding = Finding::new("connection-tracking", severity, what)
        .seen(format!("{now} of at most {most} ({})", crate::words::percent(share)))
        .why(
            "every packet is looked up, every new connection entered, and a full table drops new connections",
        );
    Some(if severity == Severity::Note {
        finding
            .remedy("nothing, unless connections a second are measured")
            .command("sysctl net.netfilter.nf_conntrack_count")
    } else {
        finding
            .remedy("raise the limit, or do not track the traffic of the test")
            .command(format!("sysctl -w net.netfilter.nf_conntrack_max={}", most * 2))
    })
}

/// Huge pages matter where a function was given to a program that works on packets itself.
fn huge_pages(host: &HostSnapshot) -> Option<Finding> {
    let given = host.pci_functions.iter().find(|function| drivers::is_given_away(function))?;
    let any = host.nodes.iter().flat_map(|node| &node.huge_pages).any(|pages| pages.total > 0);
    if any || host.nodes.is_empty() {
        return None;
    }
    Some(
        Finding::new(
            "no-huge-pages",
            Severity::Note,
            "a network function was given to a program, and there are no huge pages",
        )
        .seen(format!("{}, driver {}", drivers::words(given), given.driver.as_deref().unwrap_or_default()))
        .why(
            "DPDK programs such as testpmd do not start without huge pages, or run with --no-huge and slower",
        )
        .remedy("set some aside, on the node of the device")
        .command("sysctl -w vm.nr_hugepages=1024"),
    )
}

fn metadata(host: &HostSnapshot) -> Option<Finding> {
    let cloud = host.cloud.as_ref()?;
    let failure = cloud.metadata_failure.as_deref().filter(|_| has_hardware(host))?;
    let asked = [
        ("size", cloud.size.is_none()),
        ("region", cloud.region.is_none()),
        ("zone", cloud.zone.is_none()),
        ("placement", cloud.placement.is_none()),
        ("physical host", cloud.physical_host.is_none()),
    ];
    let unknown: Vec<&str> =
        asked.iter().filter(|(_, is_absent)| *is_absent).map(|(what, _)| *what).collect();
    let much = if cloud.size.is_none() && cloud.region.is_none() { "nothing" } else { "not everything" };
    let (why, remedy) = if cloud.size.is_none() {
        (
            "a limit of the size cannot be named, nor how near two hosts are",
            "let this host reach it, or name the limit with --expect-mbps",
        )
    } else {
        ("how near two hosts are may not be known", "let this host reach it")
    };
    let finding = Finding::new(
        "metadata-unknown",
        Severity::Note,
        format!("{}'s metadata service told {much}", cloud.provider),
    )
    .seen(failure)
    .seen(format!("not told: {}", unknown.join(", ")))
    .why(why)
    .remedy(remedy);
    Some(match ask(cloud.provider) {
        Some(command) => finding.command(command),
        None => finding,
    })
}

/// The command that asks a provider's service for the machine's size.
fn ask(provider: Provider) -> Option<&'static str> {
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
