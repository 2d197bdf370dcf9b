//! The error of a port that does not answer: both hosts, what was found, and the rule that opens it. Pure.
use std::fmt;
use std::net::IpAddr;

use netduel_model::data_ports::{DataPorts, PortAnswer, PortNeeds, PortProtocol, ProbedPort};
use netduel_model::ids::HostName;
use netduel_model::socket_name::SERVE_PORT;

/// A port of a server that a client does not reach.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockedPort {
    /// The client host.
    pub client: HostName,
    /// The server host.
    pub server: HostName,
    /// The address of the server.
    pub address: IpAddr,
    /// The address of the client that the plan names.
    pub from: Option<IpAddr>,
    /// The port, and its answer.
    pub port: ProbedPort,
    /// The data ports of the server.
    pub data_ports: Option<DataPorts>,
    /// What the trials of the pair need.
    pub needs: PortNeeds,
}

impl BlockedPort {
    /// The ports of a rule: those of the plan, or as many as are needed.
    fn ports(&self) -> DataPorts {
        let count = u16::try_from(self.needs.count().saturating_sub(1)).unwrap_or(u16::MAX);
        self.data_ports
            .or_else(|| DataPorts::new(SERVE_PORT, SERVE_PORT.saturating_add(count)))
            .expect("the port of `netduel serve` is a port, and as many follow it as a plan can need")
    }

    /// The rule of each firewall, with its name.
    fn rules(&self) -> [(&'static str, String); 5] {
        let (ports, [first, last]) = (self.ports(), self.ports().ends());
        let (small, large) = match self.port.protocol {
            PortProtocol::Tcp => ("tcp", "Tcp"),
            PortProtocol::Udp => ("udp", "Udp"),
        };
        let (ranges, cidr, bits, any) = match self.address {
            IpAddr::V4(_) => ("IpRanges", "CidrIp", 32, "0.0.0.0/0"),
            IpAddr::V6(_) => ("Ipv6Ranges", "CidrIpv6", 128, "::/0"),
        };
        let source = self.from.map_or_else(|| any.to_owned(), |from| format!("{from}/{bits}"));
        let colon = if first == last { first.to_string() } else { format!("{first}:{last}") };
        let rules = [
            ("nftables", format!("nft insert rule inet filter input {small} dport {ports} accept")),
            ("ufw", format!("ufw allow {colon}/{small}")),
            ("firewalld", format!("firewall-cmd --add-port={ports}/{small}")),
            (
                "Azure NSG",
                format!(
                    "az network nsg rule create -g GROUP --nsg-name NSG -n netduel-{small} --priority 300 --direction Inbound --access \
                     Allow --protocol {large} --source-address-prefixes {source} --destination-port-ranges {ports}"
                ),
            ),
            (
                "AWS security group",
                format!(
                    "aws ec2 authorize-security-group-ingress --group-id GROUP --ip-permissions \
                     'IpProtocol={small},FromPort={first},ToPort={last},{ranges}=[{{{cidr}={source}}}]'"
                ),
            ),
        ];
        rules
    }
}

impl fmt::Display for BlockedPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { client, server, address, port: ProbedPort { protocol, port, answer }, .. } = self;
        write!(f, "host {client} does not reach host {server} at {address}, {protocol} port {port}: ")?;
        match answer {
            PortAnswer::Dropped { seconds } => {
                write!(
                    f,
                    "dropped, no answer within {seconds} s; a firewall on the way there or back drops the packets, or the route is wrong"
                )?;
            }
            PortAnswer::Refused { error } => {
                write!(
                    f,
                    "refused ({error}) although the agent listens; a firewall rejects the packets, or the address is another host's"
                )?;
            }
            PortAnswer::Failed { reason } => return write!(f, "failed to {reason}"),
            // It is no error.
            PortAnswer::Open { .. } => return write!(f, "open"),
        }
        match self.data_ports {
            Some(_) => write!(f, "; allow it on {server}:")?,
            None => write!(f, "; set `data_ports = \"{}\"` for {server}, and allow it there:", self.ports())?,
        }
        self.rules().iter().try_for_each(|(name, rule)| write!(f, "\n  {name}: {rule}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocked(protocol: PortProtocol, address: &str, data_ports: Option<DataPorts>) -> String {
        let blocked = BlockedPort {
            client: "near".parse().unwrap(),
            server: "far".parse().unwrap(),
            address: address.parse().unwrap(),
            from: None,
            port: ProbedPort { protocol, port: 5211, answer: PortAnswer::Dropped { seconds: 5 } },
            data_ports,
            needs: PortNeeds { tcp: true, udp: 3 },
        };
        blocked.to_string()
    }

    #[test]
    fn rules_open_the_range_of_the_plan() {
        let text = blocked(PortProtocol::Udp, "192.0.2.7", DataPorts::new(5210, 5219));
        for part in [
            "host near does not reach host far at 192.0.2.7, UDP port 5211: dropped",
            "\n  nftables: nft insert rule inet filter input udp dport 5210-5219 accept",
            "\n  ufw: ufw allow 5210:5219/udp",
            "\n  firewalld: firewall-cmd --add-port=5210-5219/udp",
            "--protocol Udp --source-address-prefixes 0.0.0.0/0 --destination-port-ranges 5210-5219",
            "'IpProtocol=udp,FromPort=5210,ToPort=5219,IpRanges=[{CidrIp=0.0.0.0/0}]'",
        ] {
            assert!(text.contains(part), "{part}\n{text}");
        }
    }

    #[test]
    fn rules_without_data_ports_name_the_key_and_enough_ports() {
        let text = blocked(PortProtocol::Tcp, "2001:db8::7", None);
        assert!(text.contains("set `data_ports = \"5210-5212\"` for far"), "{text}");
        assert!(text.contains("ufw allow 5210:5212/tcp"), "{text}");
        assert!(text.contains("Ipv6Ranges=[{CidrIpv6=::/0}]"), "{text}");
    }
}
