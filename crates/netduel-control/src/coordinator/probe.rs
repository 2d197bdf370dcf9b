//! The probe of data ports before the first trial: each pair of hosts, in each IP family and protocol of its workloads. It judges answers;
//! the agents open and probe.
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use netduel_model::data_ports::{PortAnswer, PortNeeds, ProbeSource, ProbedPort};
use netduel_model::ids::HostName;
use netduel_model::plan::{Arm, Host, Launch, Pair, ResolvedPlan, TreatmentAction};
use netduel_model::units::Nanos;
use netduel_model::warning::Warning;
use netduel_model::workload::Family;

use super::blocked_port::BlockedPort;
use super::conductor::Conductor;
use super::error::{RunError, TrialError};
use crate::protocol::{FromAgent, STEP_TIMEOUT_NS, ToAgent};

/// Timeout of a port, nanoseconds: TCP sends a SYN after 0, 1 and 3 s.
const PORT_TIMEOUT_NS: u64 = 5_000_000_000;

/// The probes of a plan: what the trials of each pair need in each family.
fn probes(plan: &ResolvedPlan) -> BTreeMap<(HostName, HostName, bool), PortNeeds> {
    let mut probes = BTreeMap::new();
    for arm in plan.arms.iter().filter(|arm| is_probed(plan, arm)) {
        let Pair { client, server } = &arm.pair;
        for workload in &arm.workloads {
            let needs = workload.traffic.facts().sockets.port_needs();
            if needs.count() > 0 {
                let is_ipv4 = workload.family == Family::Ipv4;
                let probe: &mut PortNeeds =
                    probes.entry((client.clone(), server.clone(), is_ipv4)).or_default();
                *probe = probe.max(needs);
            }
        }
    }
    probes
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
    /// Probes all pairs of the plan. A pair behind a NAT is a warning.
    ///
    /// # Errors
    /// [`RunError::PortBlocked`] for the first port that does not answer; what an agent refuses, and its loss.
    pub(super) fn probe_ports(&mut self) -> Result<(), TrialError> {
        let mut warned = BTreeSet::new();
        for ((client, server, is_ipv4), needs) in probes(self.hosts.plan) {
            let family = if is_ipv4 { Family::Ipv4 } else { Family::Ipv6 };
            let (probed, sources) = self.probe(&client, &server, family, needs)?;
            if let Some((local, seen)) = translated(&probed, &sources)
                && warned.insert((client.clone(), server.clone(), local, seen))
            {
                self.warned(Warning::AddressTranslated { client, server, local, seen });
            }
        }
        Ok(())
    }

    /// Probes one pair, and closes the ports in every case.
    fn probe(
        &mut self,
        client: &HostName,
        server: &HostName,
        family: Family,
        needs: PortNeeds,
    ) -> Result<(Vec<ProbedPort>, Vec<ProbeSource>), TrialError> {
        let address = self.address(server, family)?;
        let ports = self.hosts.plan.hosts.get(server).and_then(|host| host.data_ports);
        let token = (self.tokens)().map_err(RunError::Token)?;
        let message = ToAgent::OpenPorts { bind: address, ports, needs, token };
        let (tcp, udp) = match self.hosts.ask(server, &message, STEP_TIMEOUT_NS)? {
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
        if let Some(port) = probed.iter().find(|port| !matches!(port.answer, PortAnswer::Open { .. })) {
            let blocked = BlockedPort {
                client: client.clone(),
                server: server.clone(),
                address,
                from: self.hosts.plan.hosts.get(client).and_then(|host| address_like(host, address)),
                port: port.clone(),
                data_ports: ports,
                needs,
            };
            return Err(RunError::PortBlocked(Box::new(blocked)).into());
        }
        Ok((probed, sources))
    }
}

/// The address of a host of the same family.
fn address_like(host: &Host, other: IpAddr) -> Option<IpAddr> {
    host.addresses.iter().find(|address| address.is_ipv4() == other.is_ipv4()).copied()
}

/// The client's own address and the one that the server saw, where they differ.
fn translated(probed: &[ProbedPort], sources: &[ProbeSource]) -> Option<(IpAddr, IpAddr)> {
    probed.iter().find_map(|port| {
        let PortAnswer::Open { local } = port.answer else { return None };
        let seen = sources
            .iter()
            .find(|source| source.protocol == port.protocol && source.port == port.port)?
            .address;
        (seen != local).then_some((local, seen))
    })
}
