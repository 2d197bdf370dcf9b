//! The result of an inspection: facts and findings of hosts.
use std::collections::BTreeMap;

use netduel_model::bed::RunBed;
use netduel_model::ids::HostName;
use netduel_model::plan::{Launch, Pair, ResolvedPlan};
use netduel_model::snapshot::HostSnapshot;
use netduel_model::units::plural;
use netduel_model::workload::Role;

use crate::findings::{Finding, HostContext, PairContext, Severity, of_bed, of_host, of_pair};
use crate::words;

/// A host with its findings.
#[derive(Debug, Clone)]
pub struct InspectedHost {
    /// The name in the plan or on the command line.
    pub name: String,
    /// Its location in the plan, in words; absent for a host without a plan.
    pub place: Option<String>,
    /// The facts.
    pub snapshot: HostSnapshot,
    /// Findings, most severe first.
    pub findings: Vec<Finding>,
}

/// A pair of hosts with its findings.
#[derive(Debug, Clone)]
pub struct InspectedPair {
    /// Client, or the first host on the command line.
    pub client: String,
    /// Server.
    pub server: String,
    /// Findings, most severe first.
    pub findings: Vec<Finding>,
}

/// The result of an inspection.
#[derive(Debug, Clone, Default)]
pub struct Inspection {
    /// Each host.
    pub hosts: Vec<InspectedHost>,
    /// Each pair.
    pub pairs: Vec<InspectedPair>,
    /// Hosts that could not be inspected, with the reason.
    pub failed: Vec<(String, String)>,
}

/// A finding of a bed as a report has it: a command of `az` comes with what the run does not keep.
fn of_report(finding: Finding) -> Finding {
    if !finding.command.as_ref().is_some_and(|command| command.starts_with("az ")) {
        return finding;
    }
    let remedy = format!("{}; {}", finding.remedy, words::SUBSCRIPTION_OF_AZ);
    Finding { remedy, ..finding }
}

impl InspectedHost {
    /// The facts of the machine in words, the machine size first.
    pub fn facts(&self) -> Vec<words::Fact> {
        let place = self.place.iter().map(|place| ("location", place.clone()));
        place.chain(words::machine_facts(&self.snapshot)).collect()
    }

    /// Whether it is another name of a host, with this finding of that.
    fn shares(&self, other: &Self, finding: &Finding) -> bool {
        self.snapshot.same_network(&other.snapshot) && self.findings.contains(finding)
    }
}

/// The findings of a host as a page lists them.
#[derive(Debug)]
pub(crate) struct HostFindings<'a> {
    /// The host.
    pub host: &'a InspectedHost,
    /// Those that are listed at it, most severe first.
    pub listed: Vec<Finding>,
    /// The number of those that are listed at an earlier name of the host, by that name.
    pub elsewhere: BTreeMap<&'a str, usize>,
}

impl Inspection {
    /// From the hosts of a plan; pairs are those of its arms.
    pub fn of_plan(plan: &ResolvedPlan, hosts: &BTreeMap<HostName, HostSnapshot>) -> Self {
        let mut pairs: Vec<&Pair> = Vec::new();
        for arm in &plan.arms {
            if !pairs.contains(&&arm.pair) {
                pairs.push(&arm.pair);
            }
        }
        let host = |name: &HostName, snapshot: &HostSnapshot| {
            let context = HostContext { pinned: pinned(plan, name) };
            let place = plan.hosts.get(name).map(|host| words::launch(&host.launch));
            InspectedHost { place, ..inspected(name.to_string(), snapshot.clone(), &context) }
        };
        Self {
            hosts: hosts.iter().map(|(name, snapshot)| host(name, snapshot)).collect(),
            pairs: pairs.into_iter().filter_map(|pair| of_arm(plan, pair, hosts)).collect(),
            failed: Vec::new(),
        }
    }

    /// With the findings about the bed of the hosts, if there is one.
    #[must_use]
    pub fn with_bed(
        mut self,
        bed: Option<&RunBed>,
        plan: &ResolvedPlan,
        hosts: &BTreeMap<HostName, HostSnapshot>,
    ) -> Self {
        for found in bed.into_iter().flat_map(|bed| of_bed(bed, plan, hosts)) {
            if let Some(host) = self.hosts.iter_mut().find(|host| host.name == found.host.as_str()) {
                host.findings.push(of_report(found.finding));
                host.findings.sort_by_key(|finding| finding.severity);
            }
        }
        self
    }

    /// From hosts on the command line; the first is compared with each of the others.
    pub fn of_hosts(hosts: Vec<(String, HostSnapshot)>) -> Self {
        let pairs = match hosts.as_slice() {
            [] => Vec::new(),
            [(first, client), others @ ..] => others
                .iter()
                .map(|(other, server)| {
                    let names = [first.clone(), other.clone()];
                    let context = PairContext { names, ..PairContext::default() };
                    InspectedPair {
                        client: first.clone(),
                        server: other.clone(),
                        findings: of_pair(client, server, &context),
                    }
                })
                .collect(),
        };
        let hosts = hosts
            .into_iter()
            .map(|(name, snapshot)| inspected(name, snapshot, &HostContext::default()))
            .collect();
        Self { hosts, pairs, failed: Vec::new() }
    }

    /// All findings with their host or pair, hosts first: `a`, `a and b`. A machine with two names has its findings once, with both.
    pub fn findings(&self) -> impl Iterator<Item = (String, &Finding)> {
        let hosts = self.hosts.iter().enumerate().flat_map(move |(index, host)| {
            host.findings.iter().filter_map(move |finding| {
                if self.earlier_name(index, host, finding).is_some() {
                    return None;
                }
                let others = self.hosts.iter().skip(index + 1).filter(|other| other.shares(host, finding));
                let names: Vec<&str> =
                    std::iter::once(host).chain(others).map(|host| host.name.as_str()).collect();
                Some((names.join(", "), finding))
            })
        });
        let pairs = self.pairs.iter().flat_map(|pair| {
            pair.findings.iter().map(move |finding| (format!("{} and {}", pair.client, pair.server), finding))
        });
        hosts.chain(pairs)
    }

    /// The findings of each host, in the order of the hosts. A machine with two names has its findings at the first of them.
    pub(crate) fn by_host(&self) -> impl Iterator<Item = HostFindings<'_>> {
        self.hosts.iter().enumerate().map(move |(index, host)| {
            let mut elsewhere: BTreeMap<&str, usize> = BTreeMap::new();
            let mut listed = Vec::new();
            for finding in &host.findings {
                match self.earlier_name(index, host, finding) {
                    Some(name) => *elsewhere.entry(name).or_default() += 1,
                    None => listed.push(finding.clone()),
                }
            }
            HostFindings { host, listed, elsewhere }
        })
    }

    /// The first name before this one of the same machine, if it has the finding as well.
    fn earlier_name(&self, index: usize, host: &InspectedHost, finding: &Finding) -> Option<&str> {
        let earlier = self.hosts.iter().take(index).find(|other| other.shares(host, finding))?;
        Some(&earlier.name)
    }

    /// One line for each finding of at least this severity, most severe first: `problem at a: eth0 is up without carrier`.
    pub fn lines(&self, at_least: Severity) -> Vec<String> {
        let mut chosen: Vec<(String, &Finding)> =
            self.findings().filter(|(_, finding)| finding.severity <= at_least).collect();
        chosen.sort_by_key(|(_, finding)| finding.severity);
        chosen
            .iter()
            .map(|(place, finding)| format!("{} at {place}: {}", finding.severity.word(), finding.what))
            .collect()
    }

    /// The number of findings of each severity up to this one: `1 problem and 2 warnings`; empty without any.
    pub fn counted(&self, at_least: Severity) -> String {
        let count = |severity: Severity| {
            let count = self.findings().filter(|(_, finding)| finding.severity == severity).count();
            (severity <= at_least && count > 0).then(|| plural(count, severity.word()))
        };
        let counts: Vec<String> =
            [Severity::Problem, Severity::Warning, Severity::Note].into_iter().filter_map(count).collect();
        words::listed(&counts.iter().map(String::as_str).collect::<Vec<_>>())
    }

    /// The highest severity.
    pub fn worst(&self) -> Option<Severity> {
        self.findings().map(|(_, finding)| finding.severity).min()
    }
}

fn inspected(name: String, snapshot: HostSnapshot, context: &HostContext) -> InspectedHost {
    let findings = of_host(&snapshot, context);
    InspectedHost { name, place: None, snapshot, findings }
}

/// Cores that the workloads of a plan pin threads to on a host.
fn pinned(plan: &ResolvedPlan, host: &HostName) -> Vec<u16> {
    let mut cores = Vec::new();
    for arm in &plan.arms {
        for workload in &arm.workloads {
            if &arm.pair.client == host {
                cores.extend(&workload.pin_client);
            }
            if &arm.pair.server == host {
                cores.extend(&workload.pin_server);
            }
        }
    }
    cores.sort_unstable();
    cores.dedup();
    cores
}

fn of_arm(
    plan: &ResolvedPlan,
    pair: &Pair,
    hosts: &BTreeMap<HostName, HostSnapshot>,
) -> Option<InspectedPair> {
    let (client, server) = (hosts.get(&pair.client)?, hosts.get(&pair.server)?);
    let ends = [&pair.client, &pair.server];
    let on_this_machine = |name: &&HostName| {
        plan.hosts.get(*name).is_some_and(|host| {
            !matches!(
                host.launch,
                Launch::Command { .. } | Launch::Ssh(_) | Launch::Paired { .. } | Launch::Bed { .. }
            )
        })
    };
    let context = PairContext {
        names: ends.map(ToString::to_string),
        addresses: ends
            .map(|name| plan.hosts.get(name).map(|host| host.addresses.clone()).unwrap_or_default()),
        expected: [Role::Client, Role::Server].map(|role| {
            let mut arms = plan.arms.iter().filter(|arm| arm.pair == *pair);
            arms.find_map(|arm| arm.expected(role)).map(str::to_owned)
        }),
        one_machine_intended: ends.iter().all(on_this_machine),
    };
    Some(InspectedPair {
        client: pair.client.to_string(),
        server: pair.server.to_string(),
        findings: of_pair(client, server, &context),
    })
}
