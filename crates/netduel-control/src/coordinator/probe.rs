//! The probe of data ports before the first trial: each pair of hosts, in each IP family and protocol of its workloads. It judges answers;
//! the agents open and probe.
use std::collections::BTreeMap;
use std::net::IpAddr;

use netduel_model::data_ports::{PortAnswer, PortNeeds, PortProtocol, ProbeSource, ProbedPort};
use netduel_model::ids::HostName;
use netduel_model::plan::{Arm, Host, Launch, Pair, ResolvedPlan, TreatmentAction};
use netduel_model::snapshot::HostSnapshot;
use netduel_model::units::Nanos;
use netduel_model::warning::Warning;

use super::blocked_port::{BlockedPort, BlockedPorts};
use super::conductor::Conductor;
use super::error::{PlanFault, RunError, TrialError};
use super::trial::address;
use crate::protocol::{FailureKind, FromAgent, STEP_TIMEOUT_NS, ToAgent};

/// Timeout of a port, nanoseconds: TCP sends a SYN after 0, 1 and 3 s.
const PORT_TIMEOUT_NS: u64 = 5_000_000_000;

/// One probe: a client, its server, and the address of the server.
type Route = (HostName, HostName, IpAddr);

/// The probes of a plan: what the trials of each pair need at each address.
///
/// # Errors
/// When a server has no address of a family.
fn probes(plan: &ResolvedPlan) -> Result<BTreeMap<Route, PortNeeds>, PlanFault> {
    let mut probes = BTreeMap::new();
    for arm in plan.arms.iter().filter(|arm| is_probed(plan, arm)) {
        let Pair { client, server } = &arm.pair;
        for workload in &arm.workloads {
            let needs = workload.traffic.facts().sockets.port_needs();
            if needs.count() > 0 {
                let address = address(plan, arm, workload.family)?;
                let probe: &mut PortNeeds =
                    probes.entry((client.clone(), server.clone(), address)).or_default();
                *probe = probe.max(needs);
            }
        }
    }
    Ok(probes)
}

/// Guests of the lab have paths that are treatments, and a paired server listens already. A command may open a firewall or add an
/// address.
fn is_probed(plan: &ResolvedPlan, arm: &Arm) -> bool {
    let is_command =
        arm.treatments.iter().any(|treatment| matches!(treatment.action, TreatmentAction::Command { .. }));
    let is_reached = |host: &HostName| {
        let launch = plan.hosts.get(host).map(|host| &host.launch);
        launch.is_some_and(|launch| !matches!(launch, Launch::Lab { .. } | Launch::Paired { .. }))
    };
    !is_command && is_reached(&arm.pair.client) && is_reached(&arm.pair.server)
}

impl Conductor<'_> {
    /// Probes all pairs of the plan. A pair behind a NAT is a warning, unless it is one of those in `known`.
    ///
    /// # Errors
    /// [`RunError::PortsBlocked`] for the first pair with a port that does not answer; [`RunError::AddressElsewhere`]; what an agent refuses, and its
    /// loss.
    pub(super) fn probe_ports(&mut self, known: &[Warning]) -> Result<(), TrialError> {
        let mut found = Vec::new();
        let probed = self.probe_pairs(&mut found);
        // After the loss of an agent the probe is repeated.
        if !matches!(probed, Err(TrialError::Lost { .. })) {
            for warning in found.into_iter().filter(|warning| !known.contains(warning)) {
                self.warned(warning);
            }
        }
        probed
    }

    fn probe_pairs(&mut self, found: &mut Vec<Warning>) -> Result<(), TrialError> {
        let probes = probes(self.hosts.plan)?;
        for ((client, server, address), needs) in &probes {
            let (client, server, address) = (client.clone(), server.clone(), *address);
            let (probed, sources) = self.probe(&client, &server, address, *needs)?;
            // Most firewalls that block one protocol block the other, and one error is to have the rules for both.
            let of_each = [PortProtocol::Tcp, PortProtocol::Udp].into_iter();
            let blocked: Vec<BlockedPort> = of_each
                .filter_map(|protocol| probed.iter().find(|port| port.protocol == protocol && !is_open(port)))
                .map(|port| {
                    let of_server = probes.iter().filter(|((_, other, _), _)| *other == server);
                    let hosts = &self.hosts.plan.hosts;
                    BlockedPort {
                        client: client.clone(),
                        server: server.clone(),
                        address,
                        from: hosts.get(&client).and_then(|host| address_like(host, address)),
                        arrived: source_of(port, &sources),
                        port: port.clone(),
                        data_ports: hosts.get(&server).and_then(|host| host.data_ports),
                        needs: of_server.fold(PortNeeds::default(), |sum, (_, needs)| sum.max(*needs)),
                    }
                })
                .collect();
            if !blocked.is_empty() {
                return Err(RunError::PortsBlocked(BlockedPorts(blocked)).into());
            }
            if let Some((local, seen)) = translated(&probed, &sources) {
                let warning = Warning::AddressTranslated { client, server, local, seen };
                if !found.contains(&warning) {
                    found.push(warning);
                }
            }
        }
        Ok(())
    }

    /// Probes one pair, and closes the ports in every case.
    fn probe(
        &mut self,
        client: &HostName,
        server: &HostName,
        address: IpAddr,
        needs: PortNeeds,
    ) -> Result<(Vec<ProbedPort>, Vec<ProbeSource>), TrialError> {
        let ports = self.hosts.plan.hosts.get(server).and_then(|host| host.data_ports);
        let token = (self.tokens)().map_err(RunError::Token)?;
        let message = ToAgent::OpenPorts { bind: address, ports, needs, token };
        let opened = self.hosts.ask_despite_other_losses(server, &message, STEP_TIMEOUT_NS);
        let (tcp, udp) = match opened.map_err(|error| self.or_elsewhere(server, address, error))? {
            FromAgent::PortsOpen { tcp, udp } => (tcp, udp),
            other => return Err(self.hosts.unexpected(server, &other, &message)),
        };
        let timeout = Nanos(PORT_TIMEOUT_NS);
        let message = ToAgent::ProbePorts { peer: address, tcp, udp, token, timeout };
        let probed = self.hosts.ask_despite_other_losses(
            client,
            &message,
            PORT_TIMEOUT_NS.saturating_add(STEP_TIMEOUT_NS),
        );
        let closed = if self.hosts.is_running(server) {
            self.hosts.ask_despite_other_losses(server, &ToAgent::ClosePorts, STEP_TIMEOUT_NS).map(Some)
        } else {
            Ok(None)
        };
        let probed = match probed? {
            FromAgent::Probed { ports } => ports,
            other => return Err(self.hosts.unexpected(client, &other, &message)),
        };
        let sources = match closed? {
            Some(FromAgent::PortsClosed { sources }) => sources,
            Some(other) => return Err(self.hosts.unexpected(server, &other, &ToAgent::ClosePorts)),
            None => Vec::new(),
        };
        Ok((probed, sources))
    }

    /// The refusal of a server, or that it does not have the address at which it is to listen. A port in use is another kind of failure.
    fn or_elsewhere(&self, server: &HostName, address: IpAddr, error: TrialError) -> TrialError {
        let Some(snapshot) = self.snapshots.get(server) else { return error };
        let has_it = snapshot.interfaces.iter().any(|interface| interface.addresses.contains(&address));
        let own = addresses(snapshot);
        match error {
            TrialError::Refused { host, kind: FailureKind::Traffic, message: reason }
                if !has_it && !own.is_empty() =>
            {
                RunError::AddressElsewhere { host, address, own: own.join(", "), reason }.into()
            }
            other => other,
        }
    }
}

/// The addresses of a host at which another one may reach it, for people.
fn addresses(snapshot: &HostSnapshot) -> Vec<String> {
    let is_local = |address: &IpAddr| match address {
        IpAddr::V4(four) => four.is_loopback() || four.is_link_local(),
        IpAddr::V6(six) => six.is_loopback() || six.is_unicast_link_local(),
    };
    let of_all = snapshot.interfaces.iter().flat_map(|interface| interface.addresses.iter().copied());
    of_all.filter(|address| !is_local(address)).map(|address| address.to_string()).collect()
}

/// The address of a host of the same family.
fn address_like(host: &Host, other: IpAddr) -> Option<IpAddr> {
    host.addresses.iter().find(|address| address.is_ipv4() == other.is_ipv4()).copied()
}

fn is_open(port: &ProbedPort) -> bool {
    matches!(port.answer, PortAnswer::Open { .. })
}

/// The source address that the server saw at a port.
fn source_of(port: &ProbedPort, sources: &[ProbeSource]) -> Option<IpAddr> {
    let is_there = |source: &&ProbeSource| source.protocol == port.protocol && source.port == port.port;
    sources.iter().find(is_there).map(|source| source.address)
}

/// The client's own address and the one that the server saw, where they differ.
fn translated(probed: &[ProbedPort], sources: &[ProbeSource]) -> Option<(IpAddr, IpAddr)> {
    probed.iter().find_map(|port| {
        let PortAnswer::Open { local } = port.answer else { return None };
        let seen = source_of(port, sources)?;
        (seen != local).then_some((local, seen))
    })
}

#[cfg(test)]
mod tests {
    use netduel_model::plan::parse;

    use super::*;

    /// A TCP stream by IPv4 and four flows by IPv6.
    const WORKLOADS: &str = "[[workloads]]\nname = \"stream\"\ntype = \"tcp-stream\"\n\
                             [[workloads]]\nname = \"flows\"\ntype = \"udp-stream\"\nrate = \"1 Mbit/s\"\nflows = 4\nfamily = \"ipv6\"\n";

    fn plan_of(arms: &str) -> ResolvedPlan {
        let host = |name: &str, number: u32| {
            format!(
                "[hosts.{name}]\nlaunch = \"netns\"\nnetns = \"{name}\"\naddresses = [\"192.0.2.{number}\", \"2001:db8::{number}\"]\n"
            )
        };
        let text = format!(
            "name = \"probes\"\nquestion = \"Which?\"\n{}{}{arms}{WORKLOADS}",
            host("a", 1),
            host("b", 2)
        );
        parse(&text, "plan.toml").unwrap_or_else(|errors| panic!("{errors}"))
    }

    /// The probes of a plan with these arms, as text.
    fn probes_of(arms: &str) -> Vec<String> {
        let plan = plan_of(arms);
        let of = |((client, server, address), needs): (&Route, &PortNeeds)| {
            let family = if address.is_ipv4() { 4 } else { 6 };
            format!("{client} {server} IPv{family} tcp {} udp {}", u8::from(needs.tcp), needs.udp)
        };
        probes(&plan).expect("each server has addresses").iter().map(of).collect()
    }

    fn arm(name: &str, client: &str, server: &str, more: &str) -> String {
        format!("[[arms]]\nname = \"{name}\"\nclient = \"{client}\"\nserver = \"{server}\"\n{more}\n")
    }

    #[test]
    fn each_ordered_pair_is_probed_in_the_families_and_protocols_of_its_workloads() {
        let more = "set = { flows = 7 }";
        let arms = [arm("one", "a", "b", ""), arm("same", "a", "b", more), arm("back", "b", "a", "")];
        let expected =
            ["a b IPv4 tcp 1 udp 0", "a b IPv6 tcp 0 udp 7", "b a IPv4 tcp 1 udp 0", "b a IPv6 tcp 0 udp 4"];
        assert_eq!(probes_of(&arms.concat()), expected);
    }

    #[test]
    fn arms_with_commands_are_not_probed() {
        let command = "treatments = [{ on = \"server\", command = [\"true\"], undo = [\"true\"] }]";
        let arms = [arm("one", "a", "b", command), arm("back", "b", "a", "")];
        assert_eq!(probes_of(&arms.concat()), ["b a IPv4 tcp 1 udp 0", "b a IPv6 tcp 0 udp 4"]);
    }

    #[test]
    fn each_network_of_a_server_is_probed() {
        let arms = [arm("one", "a", "b", ""), arm("two", "a", "b", "")];
        let mut plan = plan_of(&arms.concat());
        plan.arms[1].server_addresses = vec!["198.51.100.2".parse().unwrap(), "2001:db8::2".parse().unwrap()];
        let probes = probes(&plan).expect("each server has addresses");
        let probed: Vec<String> = probes.keys().map(|(_, _, address)| address.to_string()).collect();
        assert_eq!(probed, ["192.0.2.2", "198.51.100.2", "2001:db8::2"]);
    }

    #[test]
    fn translated_address_is_that_of_the_same_port() {
        let port = |protocol, local: &str| ProbedPort {
            protocol,
            port: 5210,
            answer: PortAnswer::Open { local: local.parse().unwrap() },
        };
        let source =
            |protocol, address: &str| ProbeSource { protocol, port: 5210, address: address.parse().unwrap() };
        let probed = [port(PortProtocol::Tcp, "10.0.0.1"), port(PortProtocol::Udp, "10.0.0.1")];
        let (tcp, udp) = (PortProtocol::Tcp, PortProtocol::Udp);
        assert_eq!(translated(&probed, &[source(tcp, "10.0.0.1"), source(udp, "10.0.0.1")]), None);
        let seen = translated(&probed, &[source(tcp, "10.0.0.1"), source(udp, "192.0.2.1")]);
        assert_eq!(seen, Some(("10.0.0.1".parse().unwrap(), "192.0.2.1".parse().unwrap())));
        assert_eq!(translated(&probed, &[]), None, "the server saw none");
    }
}
