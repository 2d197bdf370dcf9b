//! The environment of a test: size, place, processor and its layout, memory, interfaces, versions.
use std::collections::BTreeSet;

use netduel_model::dpdk::DpdkReport;
use netduel_model::packet_path::{PacketEngine, PacketPath, PacketReceiver};
use netduel_model::size;
use netduel_model::snapshot::{HostSnapshot, Interface, KernelSettings, LOOPBACK, Processor};
use netduel_model::units::{human_bit_rate, plural};
use netduel_model::workload::{Role, UdpStream, Workload};

use super::host::{bytes, caches, huge_pages, interface as interface_words, place};
use super::metric::packet_rate;
use super::text::{plain, ranges};
use crate::analysis::{Analysis, PacketSpread, WorkloadAnalysis, size_of};
use crate::findings::{self, Acceleration, accelerations, queue_count};

/// A fact of each host, in the order of the hosts; `None` where it is unknown.
pub type EnvironmentRow = (&'static str, Vec<Option<String>>);

/// The heading of each column: the name of the host.
pub fn environment_hosts(analysis: &Analysis) -> Vec<String> {
    analysis.inspection.hosts.iter().map(|host| plain(&host.name)).collect()
}

/// The environment: a row for each fact that is known of at least one host.
pub fn environment(analysis: &Analysis) -> Vec<EnvironmentRow> {
    let hosts = &analysis.inspection.hosts;
    let of = |fact: &dyn Fn(&str, &HostSnapshot) -> Option<String>| -> Vec<Option<String>> {
        hosts.iter().map(|host| fact(&host.name, &host.snapshot).map(|text| plain(&text))).collect()
    };
    let known = |name: &str, host: &HostSnapshot| size::named(&size_of(analysis, name, host)?);
    let used = |name: &str| used_interfaces(analysis, name);
    let rows: Vec<EnvironmentRow> = vec![
        ("Size", of(&|name, host| size_of(analysis, name, host))),
        (
            "Network bandwidth of the size",
            of(&|name, host| {
                known(name, host)
                    .map(|size| format!("{} ({})", human_bit_rate(size.rate().0 as f64), size.source()))
            }),
        ),
        ("Region", of(&|_, host| place(host.cloud.as_ref()?))),
        ("Placement", of(&|_, host| host.cloud.as_ref()?.placement.clone())),
        ("Isolated size", of(&|name, host| known(name, host).map(is_isolated))),
        ("Maximum NICs of the size", of(&|name, host| known(name, host).map(|size| size.nics.to_string()))),
        ("Cores online", of(&|_, host| (host.cores > 0).then(|| host.cores.to_string()))),
        ("Memory", of(&|_, host| host.memory_bytes.map(bytes))),
        ("NICs", of(&|name, host| nics(host, &used(name)))),
        ("Interface of the default route", of(&|_, host| listed_or_none(&host.default_routes))),
        ("Accelerated networking", of(&|_, host| acceleration(host))),
        ("Data interface", of(&|name, host| interfaces(host, &used(name), interface_words))),
        (
            "Queues of the interface",
            of(&|name, host| {
                interfaces(host, &used(name), |interface| {
                    queue_count(interface).map(|(now, _)| now.to_string()).unwrap_or_default()
                })
            }),
        ),
        (
            "NUMA node of the interface",
            of(&|name, host| {
                interfaces(host, &used(name), |interface| {
                    interface.device.numa_node.map(|node| node.to_string()).unwrap_or_default()
                })
            }),
        ),
        ("Product of the interface", of(&|name, host| interfaces(host, &used(name), product))),
        ("Driver of the interface", of(&|name, host| interfaces(host, &used(name), driver))),
        ("Architecture", of(&|_, host| host.machine.clone())),
        ("CPU model", of(&|_, host| host.cpu_model.clone())),
        ("CPU identity", of(&|_, host| host.processor.as_ref()?.identity.clone())),
        ("Sockets", of(&|_, host| host.processor.as_ref()?.sockets.map(|sockets| sockets.to_string()))),
        ("Cores per socket", of(&|_, host| host.processor.as_ref().and_then(cores_per_socket))),
        ("Threads per core", of(&|_, host| host.processor.as_ref().and_then(threads_per_core))),
        ("Caches of the first core", of(&|_, host| host.processor.as_ref().and_then(caches))),
        ("NUMA nodes", of(&|_, host| nodes(host))),
        ("Huge pages", of(&|_, host| huge_pages(&host.numa_nodes, true))),
        ("Transparent huge pages", of(&|_, host| kernel(host, |set| set.transparent_huge_pages.clone()))),
        ("SMT", of(&|_, host| kernel(host, |set| set.smt.as_deref().map(smt)))),
        ("CPU vulnerabilities", of(&|_, host| kernel(host, vulnerabilities))),
        (
            "Kernel boot parameters that affect results",
            of(&|_, host| kernel(host, |set| listed_or_none(&set.boot_options))),
        ),
        ("System", of(&|_, host| host.os.clone())),
        ("Kernel", of(&|_, host| host.kernel.clone())),
        ("Hypervisor", of(&|_, host| hypervisor(host))),
        ("DPDK", of(&|name, _| testpmd(analysis, name, |dpdk| Some(dpdk.version.clone())))),
        ("rdma-core", of(&|name, _| testpmd(analysis, name, |dpdk| dpdk.rdma_core.clone()))),
        ("Image", of(&|_, host| host.cloud.as_ref()?.image.clone())),
    ];
    rows.into_iter().filter(|(_, cells)| cells.iter().any(Option::is_some)).collect()
}

/// Whether a machine of a size has its host to itself.
fn is_isolated(size: &size::Size) -> String {
    if size.is_isolated { "yes" } else { "no" }.to_owned()
}

/// Names in one text; absent without any.
fn listed_or_none(names: &[String]) -> Option<String> {
    (!names.is_empty()).then(|| names.join(", "))
}

/// A setting of the kernel.
fn kernel(host: &HostSnapshot, read: impl Fn(&KernelSettings) -> Option<String>) -> Option<String> {
    read(host.kernel_settings.as_ref()?)
}

/// The state of SMT in words; the kernel writes some states as one word.
fn smt(state: &str) -> String {
    match state {
        "notsupported" => "not supported",
        "notimplemented" => "not implemented",
        state => state,
    }
    .to_owned()
}

/// The vulnerabilities of a CPU by what its kernel does: `mitigated: spectre_v1, spectre_v2; vulnerable: mmio_stale_data`.
fn vulnerabilities(settings: &KernelSettings) -> Option<String> {
    let of = |word: &str| {
        let states = settings.vulnerabilities.iter().filter(|(_, state)| standing(state) == word);
        let names: Vec<&str> = states.map(|(name, _)| name.as_str()).collect();
        (!names.is_empty()).then(|| format!("{word}: {}", names.join(", ")))
    };
    let parts: Vec<String> = ["mitigated", "vulnerable", "unknown"].into_iter().filter_map(of).collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// What the kernel does against a vulnerability. Its words begin with `Mitigation`, `Vulnerable` or `Unknown`; those of `itlb_multihit` are
/// about KVM (`KVM: Mitigation: Split huge pages`), or `Processor vulnerable` in a kernel without KVM (`Documentation/admin-guide/hw-vuln`).
fn standing(state: &str) -> &'static str {
    let state = state.strip_prefix("KVM: ").unwrap_or(state);
    if state.starts_with("Mitigation") {
        "mitigated"
    } else if state.starts_with("Vulnerable") || state == "Processor vulnerable" {
        "vulnerable"
    } else {
        "unknown"
    }
}

/// The state of accelerated networking of each paravirtual interface that can have it.
fn acceleration(host: &HostSnapshot) -> Option<String> {
    let states: Vec<String> = accelerations(host)
        .into_iter()
        .map(|(interface, state)| format!("{}: {}", interface.name, state.words()))
        .collect();
    listed_or_none(&states)
}

/// The product of an interface on the PCI bus, by its ids; empty for others and for unknown ones.
fn product(interface: &Interface) -> String {
    let product = interface.device.pci.as_ref().and_then(findings::product);
    product.unwrap_or_default().to_owned()
}

/// The products of the interfaces that carried the data, each once; the kind or the driver of those without one.
pub fn nic_products(analysis: &Analysis) -> Vec<String> {
    let mut products = Vec::new();
    for host in &analysis.inspection.hosts {
        let used = carriers(analysis, &host.name);
        for interface in host.snapshot.interfaces.iter().filter(|own| used.contains(&own.name)) {
            let name = match (product(interface), &interface.kind, &interface.driver) {
                (product, ..) if !product.is_empty() => product,
                (_, Some(kind), _) => format!("{kind} (virtual)"),
                (_, None, Some(driver)) => format!("driver {driver}"),
                (_, None, None) => continue,
            };
            let name = plain(&name);
            if !products.contains(&name) {
                products.push(name);
            }
        }
    }
    products
}

/// Driver and firmware of an interface; empty when unknown.
fn driver(interface: &Interface) -> String {
    let firmware = interface.device.firmware.as_ref().filter(|firmware| !firmware.is_empty());
    let firmware = firmware.map(|firmware| format!("firmware {firmware}"));
    [interface.driver.clone(), firmware].into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// Interfaces that a host used for data, over all arms: those that carried it, and those whose addresses it had.
fn used_interfaces(analysis: &Analysis, host: &str) -> Vec<String> {
    let own = ends(analysis).filter(|end| end.host == host).map(|end| end.interface.clone());
    let mut names: Vec<String> = own.chain(carriers(analysis, host)).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// Interfaces that carried the data of a host, over all arms: those of packets, and those that an arm expects. testpmd has the addresses of a
/// paravirtual interface, and drives the virtual function below it.
fn carriers(analysis: &Analysis, host: &str) -> Vec<String> {
    let own = ends(analysis).filter(|end| end.host == host);
    let carrier = |end: &PacketSpread| function_below(analysis, end).unwrap_or_else(|| end.interface.clone());
    let mut names: Vec<String> = own.map(carrier).collect();
    for arm in &analysis.plan.arms {
        let of_host =
            [Role::Client, Role::Server].into_iter().filter(|role| arm.pair.host(*role).as_str() == host);
        names.extend(of_host.filter_map(|role| arm.expected(role)).map(str::to_owned));
    }
    names
}

/// The virtual function below the paravirtual interface of an end with testpmd.
fn function_below(analysis: &Analysis, end: &PacketSpread) -> Option<String> {
    end.dpdk.as_ref()?;
    let host = analysis.inspection.hosts.iter().find(|host| host.name == end.host)?;
    let states = accelerations(&host.snapshot).into_iter();
    let mut own = states.filter(|(interface, _)| interface.name == end.interface);
    match own.next()? {
        (
            _,
            Acceleration::Active { function }
            | Acceleration::Paired { function }
            | Acceleration::Idle { function, .. },
        ) => Some(function),
        _ => None,
    }
}

/// A fact of several interfaces, with the name of the interface if there is more than one.
fn interfaces(host: &HostSnapshot, names: &[String], fact: impl Fn(&Interface) -> String) -> Option<String> {
    let known: Vec<String> = host
        .interfaces
        .iter()
        .filter(|interface| names.contains(&interface.name))
        .map(|interface| (interface, fact(interface)))
        .filter(|(_, fact)| !fact.is_empty())
        .map(|(interface, fact)| format!("{}: {fact}", interface.name))
        .collect();
    (!known.is_empty()).then(|| known.join("; "))
}

/// A fact of testpmd, if it was an end.
fn testpmd(analysis: &Analysis, host: &str, fact: impl Fn(&DpdkReport) -> Option<String>) -> Option<String> {
    ends(analysis).filter(|end| end.host == host).find_map(|end| fact(end.dpdk.as_ref()?))
}

/// Every end of every arm.
fn ends(analysis: &Analysis) -> impl Iterator<Item = &PacketSpread> {
    let arms = analysis.workloads.iter().flat_map(|workload| &workload.arms);
    arms.flat_map(|arm| &arm.packets).flat_map(|way| &way.spread)
}

/// Interfaces with hardware behind them; without any, the kinds of the virtual ones among the `used`, as [`nic_products`] names them.
fn nics(host: &HostSnapshot, used: &[String]) -> Option<String> {
    let hardware =
        host.interfaces.iter().filter(|interface| interface.kind.is_none() && interface.name != LOOPBACK);
    let names: Vec<&str> = hardware.map(|interface| interface.name.as_str()).collect();
    match names.as_slice() {
        [] if host.interfaces.is_empty() => None,
        [] => {
            let own = host.interfaces.iter().filter(|interface| used.contains(&interface.name));
            let kinds: BTreeSet<&str> = own.filter_map(|interface| interface.kind.as_deref()).collect();
            let kinds: Vec<&str> = kinds.into_iter().collect();
            let kinds = if kinds.is_empty() { String::new() } else { format!(" ({})", kinds.join(", ")) };
            Some(format!("none but virtual{kinds}"))
        }
        names => Some(format!("{} ({})", names.len(), names.join(", "))),
    }
}

fn cores_per_socket(processor: &Processor) -> Option<String> {
    let (cores, sockets) = (processor.physical_cores.len(), processor.sockets? as usize);
    (cores > 0 && sockets > 0 && cores.is_multiple_of(sockets)).then(|| (cores / sockets).to_string())
}

fn threads_per_core(processor: &Processor) -> Option<String> {
    processor.physical_cores.iter().map(Vec::len).max().map(|threads| threads.to_string())
}

fn nodes(host: &HostSnapshot) -> Option<String> {
    let known: Vec<String> = host
        .numa_nodes
        .iter()
        .map(|node| format!("node{}: {}", node.number, ranges(node.cores.iter().copied())))
        .collect();
    (!known.is_empty()).then(|| known.join("; "))
}

/// By the kernel's log, by the machine's own name, or by what the instance metadata and the machine show.
fn hypervisor(host: &HostSnapshot) -> Option<String> {
    let by_cloud = || Some(host.cloud.as_ref()?.provider.words().to_owned());
    host.hypervisor.clone().or_else(|| host.platform.clone()).or_else(by_cloud)
}

/// The test in words, for readers who do not know plans: once if all arms do the same, else by arm. Empty for other workloads.
pub fn test_description(workload: &WorkloadAnalysis) -> Vec<String> {
    let mut each: Vec<(&str, String)> = Vec::new();
    for arm in &workload.arms {
        let facts = arm.workload.traffic.facts();
        let (Some(path), Some(flows)) = (facts.packets, facts.flows) else { continue };
        let ends =
            [(Role::Client, flows.direction.client_sends()), (Role::Server, flows.direction.server_sends())];
        for (sender, _) in ends.into_iter().filter(|(_, sends)| *sends) {
            each.push((arm.arm.as_str(), description(&arm.workload, path, flows, sender)));
        }
    }
    match each.as_slice() {
        [(_, first), others @ ..] if others.iter().all(|(_, other)| other == first) => vec![first.clone()],
        each => each.iter().map(|(arm, text)| format!("{arm}: {text}")).collect(),
    }
}

fn description(workload: &Workload, path: &PacketPath, flows: &UdpStream, sender: Role) -> String {
    let UdpStream { flows, rate, size, .. } = flows;
    let search = path.search.as_ref();
    let pace = match (rate, search) {
        (Some(rate), _) => format!("at {}", packet_rate(rate.0 as f64 / 8.0 / size.0.max(1) as f64)),
        (None, Some(search)) => {
            let goals: Vec<&str> = search.goals.iter().map(|goal| goal.name.as_str()).collect();
            format!("at the rates of a search for {}", goals.join(" and "))
        }
        (None, None) => "unpaced".to_owned(),
    };
    let takes = if search.is_some() { "Each search takes at most" } else { "Each trial takes" };
    let queues = path.queues.map(|queues| format!(" over {}", plural(queues, "queue"))).unwrap_or_default();
    let maker = match path.engine {
        PacketEngine::Socket => "through UDP sockets, in batches per system call",
        PacketEngine::Xdp => "by kernel bypass (AF_XDP)",
        PacketEngine::Dpdk => "by kernel bypass (DPDK testpmd, txonly)",
        PacketEngine::Kernel => "from the kernel (BPF test run of an XDP program)",
    };
    let taker = match path.receiver {
        PacketReceiver::Socket => "through UDP sockets",
        PacketReceiver::Dpdk => "by kernel bypass (DPDK testpmd, rxonly)",
        PacketReceiver::Xdp => "by kernel bypass (AF_XDP)",
        PacketReceiver::Count => "in the driver, where an XDP program counts and drops each packet",
    };
    format!(
        "The {} sends {} B frames ({size} of UDP payload) in {}{queues}, {pace}, {maker}. The other end receives them {taker}. {takes} {}.",
        sender,
        path.frame,
        plural(*flows, "flow"),
        workload.timing.duration,
    )
}
