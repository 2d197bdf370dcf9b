//! The error of a port that does not answer: both hosts, the direction, and the rule that opens it. Pure.
use std::fmt;
use std::net::IpAddr;

use netduel_model::data_ports::{DataPorts, PortAnswer, PortNeeds, PortProtocol, ProbedPort};
use netduel_model::ids::HostName;
use netduel_model::socket_name::SERVE_PORT;
use netduel_model::word::word;

/// A port of a server that a client does not reach, or whose answers do not reach the client.
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
    /// The source address of the client's packets at the server; absent when none arrived.
    pub arrived: Option<IpAddr>,
    /// The port, and its answer.
    pub port: ProbedPort,
    /// The data ports of the server.
    pub data_ports: Option<DataPorts>,
    /// What the trials with this server need.
    pub needs: PortNeeds,
}

/// The ports of a pair that are blocked, one of each protocol. Never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockedPorts(pub Vec<BlockedPort>);

impl fmt::Display for BlockedPorts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, blocked) in self.0.iter().enumerate() {
            let separator = if index == 0 { "" } else { "\n" };
            write!(f, "{separator}{blocked}")?;
        }
        Ok(())
    }
}

/// The rule of each firewall, with its name.
type Rules = [(&'static str, String); 5];

impl BlockedPort {
    /// Whether the packets of the client arrive, and the answers of the server do not.
    fn is_way_back(&self) -> bool {
        matches!(self.port.answer, PortAnswer::Dropped { .. }) && self.arrived.is_some()
    }

    /// The ports of a rule: those of the plan, or as many as are needed.
    fn ports(&self) -> DataPorts {
        let further = u16::try_from(self.needs.count().saturating_sub(1)).unwrap_or(u16::MAX);
        self.data_ports
            .or_else(|| DataPorts::new(SERVE_PORT, SERVE_PORT.saturating_add(further)))
            .expect("the port of `netduel serve` is a port, and as many follow it as a plan can need")
    }

    /// The protocol in lower case, as rules name it.
    fn protocol(&self) -> &'static str {
        word(&self.port.protocol)
    }

    /// The ports with a colon between the first and the last.
    fn colon(&self) -> String {
        let [first, last] = self.ports().ends();
        if first == last { first.to_string() } else { format!("{first}:{last}") }
    }

    /// Rules at the server for packets of the client.
    fn rules_there(&self) -> Rules {
        let (ports, [first, last]) = (self.ports(), self.ports().ends());
        let (small, colon) = (self.protocol(), self.colon());
        let large = match self.port.protocol {
            PortProtocol::Tcp => "Tcp",
            PortProtocol::Udp => "Udp",
        };
        let (ranges, cidr, bits, any) = match self.address {
            IpAddr::V4(_) => ("IpRanges", "CidrIp", 32, "0.0.0.0/0"),
            IpAddr::V6(_) => ("Ipv6Ranges", "CidrIpv6", 128, "::/0"),
        };
        let source = self.from.map_or_else(|| any.to_owned(), |from| format!("{from}/{bits}"));
        [
            ("nftables", format!("nft insert rule inet filter input {small} dport {ports} accept")),
            ("ufw", format!("ufw allow {colon}/{small}")),
            ("firewalld", format!("firewall-cmd --add-port={ports}/{small}")),
            (
                "Azure NSG",
                format!(
                    "az network nsg rule create -g GROUP --nsg-name NSG -n netduel-{small} --priority 300 --direction Inbound --access \
                     Allow --protocol {large} --source-address-prefixes {source} --destination-port-ranges {ports} --subscription \
                     SUBSCRIPTION"
                ),
            ),
            (
                "AWS security group",
                format!(
                    "aws ec2 authorize-security-group-ingress --group-id GROUP --ip-permissions \
                     'IpProtocol={small},FromPort={first},ToPort={last},{ranges}=[{{{cidr}={source}}}]'"
                ),
            ),
        ]
    }

    /// Rules at the client for answers of the server. Firewalls that track connections let answers pass, so one of these does not track
    /// them, or the server's host filters what it sends.
    fn rules_back(&self) -> Rules {
        let (ports, small, colon, address) = (self.ports(), self.protocol(), self.colon(), self.address);
        let (ip, block, bits) = match address {
            IpAddr::V4(_) => ("ip", "--cidr-block", 32),
            IpAddr::V6(_) => ("ip6", "--ipv6-cidr-block", 128),
        };
        [
            (
                "nftables",
                format!(
                    "nft insert rule inet filter input {ip} saddr {address} {small} sport {ports} accept"
                ),
            ),
            ("ufw", format!("ufw allow proto {small} from {address} port {colon}")),
            ("firewalld", format!("firewall-cmd --add-source-port={ports}/{small}")),
            (
                "Azure NSG",
                "it lets answers pass without a rule; see the route tables and the firewalls between the subnets".to_owned(),
            ),
            (
                "AWS security group",
                format!(
                    "it lets answers pass without a rule, but a network ACL does not: aws ec2 create-network-acl-entry --network-acl-id ACL \
                     --ingress --rule-number 300 --rule-action allow --protocol {small} --port-range From=1024,To=65535 {block} \
                     {address}/{bits}"
                ),
            ),
        ]
    }

    /// What was found at the port. The remedy follows.
    fn finding(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { client, server, arrived, port: ProbedPort { protocol, answer, .. }, .. } = self;
        let packets = match protocol {
            PortProtocol::Tcp => "SYN segments",
            PortProtocol::Udp => "datagrams",
        };
        match (answer, arrived) {
            (PortAnswer::Dropped { seconds }, Some(source)) => write!(
                f,
                "the answer is dropped: {server} received packets of {client} from {source} and answered, and {client} received nothing \
                 within {seconds} s; the output rules of {server}, the input rules of {client} or a firewall between them drop the packets, \
                 or the route back is wrong"
            ),
            (PortAnswer::Dropped { seconds }, None) => write!(
                f,
                "dropped, no answer within {seconds} s; {server} did not receive the {packets} of {client}; the output rules of {client}, \
                 the input rules of {server} or a firewall between them drop the packets, or the route is wrong"
            ),
            (PortAnswer::Refused { error }, _) => write!(
                f,
                "refused ({error}) although the agent listens; a firewall rejects the packets, the address is another host's, or the route is \
                 wrong"
            ),
            (PortAnswer::Failed { reason }, _) => write!(f, "failed to {reason}"),
            // It is no error.
            (PortAnswer::Open { .. }, _) => f.write_str("open"),
        }
    }
}

impl fmt::Display for BlockedPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { client, server, address, port: ProbedPort { protocol, port, answer }, .. } = self;
        write!(f, "host {client} does not reach host {server} at {address}, {protocol} port {port}: ")?;
        self.finding(f)?;
        if !matches!(answer, PortAnswer::Dropped { .. } | PortAnswer::Refused { .. }) {
            return Ok(());
        }
        let (at, rules) =
            if self.is_way_back() { (client, self.rules_back()) } else { (server, self.rules_there()) };
        match self.data_ports {
            Some(_) => write!(f, "; allow it on {at}:")?,
            None => {
                write!(f, "; set `data_ports = \"{}\"` for {server}, and allow it on {at}:", self.ports())?;
            }
        }
        rules.iter().try_for_each(|(name, rule)| write!(f, "\n  {name}: {rule}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocked(protocol: PortProtocol, address: &str, data_ports: Option<DataPorts>) -> BlockedPort {
        BlockedPort {
            client: "near".parse().unwrap(),
            server: "far".parse().unwrap(),
            address: address.parse().unwrap(),
            from: None,
            arrived: None,
            port: ProbedPort { protocol, port: 5211, answer: PortAnswer::Dropped { seconds: 5 } },
            data_ports,
            needs: PortNeeds { tcp: true, udp: 3 },
        }
    }

    fn assert_parts(blocked: &BlockedPort, parts: &[&str]) {
        let text = blocked.to_string();
        for part in parts {
            assert!(text.contains(part), "{part}\n{text}");
        }
    }

    #[test]
    fn rules_open_the_range_of_the_plan() {
        let parts = [
            "host near does not reach host far at 192.0.2.7, UDP port 5211: dropped, no answer within 5 s; far did not receive the datagrams \
             of near",
            "; allow it on far:\n  nftables: nft insert rule inet filter input udp dport 5210-5219 accept",
            "\n  ufw: ufw allow 5210:5219/udp",
            "\n  firewalld: firewall-cmd --add-port=5210-5219/udp",
            "--protocol Udp --source-address-prefixes 0.0.0.0/0 --destination-port-ranges 5210-5219 --subscription SUBSCRIPTION\n",
            "'IpProtocol=udp,FromPort=5210,ToPort=5219,IpRanges=[{CidrIp=0.0.0.0/0}]'",
        ];
        assert_parts(&blocked(PortProtocol::Udp, "192.0.2.7", DataPorts::new(5210, 5219)), &parts);
    }

    #[test]
    fn rules_without_data_ports_name_the_key_and_enough_ports() {
        let parts = [
            "far did not receive the SYN segments of near",
            "set `data_ports = \"5210-5212\"` for far, and allow it on far:",
            "ufw allow 5210:5212/tcp",
            "Ipv6Ranges=[{CidrIpv6=::/0}]",
        ];
        assert_parts(&blocked(PortProtocol::Tcp, "2001:db8::7", None), &parts);
    }

    #[test]
    fn dropped_answer_has_rules_for_the_client() {
        let arrived = Some("192.0.2.1".parse().unwrap());
        let four =
            BlockedPort { arrived, ..blocked(PortProtocol::Udp, "192.0.2.7", DataPorts::new(5210, 5219)) };
        let parts = [
            "UDP port 5211: the answer is dropped: far received packets of near from 192.0.2.1 and answered",
            "; allow it on near:\n  nftables: nft insert rule inet filter input ip saddr 192.0.2.7 udp sport 5210-5219 accept",
            "\n  ufw: ufw allow proto udp from 192.0.2.7 port 5210:5219",
            "\n  firewalld: firewall-cmd --add-source-port=5210-5219/udp",
            "--port-range From=1024,To=65535 --cidr-block 192.0.2.7/32",
        ];
        assert_parts(&four, &parts);
        let arrived = Some("2001:db8::1".parse().unwrap());
        let six =
            BlockedPort { arrived, ..blocked(PortProtocol::Tcp, "2001:db8::7", DataPorts::new(5211, 5211)) };
        let parts = [
            "input ip6 saddr 2001:db8::7 tcp sport 5211 accept",
            "ufw allow proto tcp from 2001:db8::7 port 5211",
            "--ipv6-cidr-block 2001:db8::7/128",
        ];
        assert_parts(&six, &parts);
    }

    #[test]
    fn ports_of_both_protocols_have_their_rules() {
        let ports = [PortProtocol::Tcp, PortProtocol::Udp]
            .map(|protocol| blocked(protocol, "192.0.2.7", DataPorts::new(5211, 5211)));
        let text = BlockedPorts(ports.to_vec()).to_string();
        let at = |part: &str| text.find(part).unwrap_or_else(|| panic!("{part}\n{text}"));
        assert!(
            text.starts_with("host near does not reach host far at 192.0.2.7, TCP port 5211: "),
            "{text}"
        );
        assert!(
            at("ufw allow 5211/tcp")
                < at("\nhost near does not reach host far at 192.0.2.7, UDP port 5211: ")
        );
        assert!(at("UDP port 5211: ") < at("ufw allow 5211/udp"));
    }

    #[test]
    fn rejected_packet_has_rules_for_the_server() {
        let mut rejected = blocked(PortProtocol::Tcp, "192.0.2.7", DataPorts::new(5211, 5211));
        rejected.port.answer = PortAnswer::Refused { error: "Connection refused".to_owned() };
        let parts = ["refused (Connection refused)", "; allow it on far:", "ufw allow 5211/tcp"];
        assert_parts(&rejected, &parts);
    }

    #[test]
    fn failure_of_the_client_has_no_rule() {
        let mut failed = blocked(PortProtocol::Tcp, "192.0.2.7", DataPorts::new(5211, 5211));
        failed.port.answer = PortAnswer::Failed { reason: "draw random bytes".to_owned() };
        let text = failed.to_string();
        assert!(text.ends_with("TCP port 5211: failed to draw random bytes"), "{text}");
    }
}
