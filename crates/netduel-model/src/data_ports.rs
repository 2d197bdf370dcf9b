//! The ports of a host that carry data, as a plan writes them, and what a probe of them found. Opens no socket.
use std::borrow::Cow;
use std::fmt;
use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// A range of ports: `5210` or `5210-5219`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct DataPorts {
    first: u16,
    last: u16,
}

/// A text is no range of ports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a port or a range in ascending order is needed, for example \"5210\" or \"5210-5219\"")]
pub struct NotPorts;

impl DataPorts {
    /// From the first to the last; `None` when the first is behind the last. The range of the numbers is that of the setting.
    pub fn new(first: u16, last: u16) -> Option<Self> {
        (first <= last).then_some(Self { first, last })
    }

    /// The ports, in order.
    pub fn numbers(self) -> RangeInclusive<u16> {
        self.first..=self.last
    }

    /// The first and the last.
    pub fn ends(self) -> [u16; 2] {
        [self.first, self.last]
    }

    /// How many there are.
    pub fn count(self) -> u32 {
        u32::from(self.last - self.first) + 1
    }
}

impl FromStr for DataPorts {
    type Err = NotPorts;

    fn from_str(text: &str) -> Result<Self, NotPorts> {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let number = |text: &str| {
            let is_digits = text.bytes().all(|byte| byte.is_ascii_digit());
            text.parse::<u16>().ok().filter(|_| is_digits).ok_or(NotPorts)
        };
        Self::new(number(first)?, number(last)?).ok_or(NotPorts)
    }
}

/// As a plan has it.
impl fmt::Display for DataPorts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.first == self.last {
            write!(f, "{}", self.first)
        } else {
            write!(f, "{}-{}", self.first, self.last)
        }
    }
}

impl TryFrom<String> for DataPorts {
    type Error = NotPorts;

    fn try_from(text: String) -> Result<Self, NotPorts> {
        text.parse()
    }
}

impl From<DataPorts> for String {
    fn from(ports: DataPorts) -> Self {
        ports.to_string()
    }
}

impl JsonSchema for DataPorts {
    fn schema_name() -> Cow<'static, str> {
        "DataPorts".into()
    }
    fn inline_schema() -> bool {
        true
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": "^[0-9]{1,5}(-[0-9]{1,5})?$", "examples": ["5210-5219"] })
    }
}

/// Where a server listens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListenAt {
    /// The address of this host.
    pub address: IpAddr,
    /// The ports to choose from; those of the kernel when absent.
    pub ports: Option<DataPorts>,
}

/// With a port that the kernel chooses.
impl From<IpAddr> for ListenAt {
    fn from(address: IpAddr) -> Self {
        Self { address, ports: None }
    }
}

/// The ports that servers of trials need at a time. TCP and UDP have numbers of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct PortNeeds {
    /// Whether TCP is used, with one port for all connections.
    pub tcp: bool,
    /// UDP ports, one for each flow.
    pub udp: u32,
}

impl PortNeeds {
    /// The larger of each.
    #[must_use]
    pub fn max(self, other: Self) -> Self {
        Self { tcp: self.tcp || other.tcp, udp: self.udp.max(other.udp) }
    }

    /// Numbers that a range must have.
    pub fn count(self) -> u32 {
        self.udp.max(u32::from(self.tcp))
    }
}

/// The protocol of a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PortProtocol {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
}

impl fmt::Display for PortProtocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tcp => "TCP",
            Self::Udp => "UDP",
        })
    }
}

/// What a client found at a port of a server that listens there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProbedPort {
    /// Its protocol.
    pub protocol: PortProtocol,
    /// Its number.
    pub port: u16,
    /// How it answered.
    pub answer: PortAnswer,
}

/// The answer of a port.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum PortAnswer {
    /// The handshake succeeded.
    Open {
        /// The client's own address.
        local: IpAddr,
    },
    /// A reset, or an ICMP message that names the port or a firewall.
    Refused {
        /// The error of the system call.
        error: String,
    },
    /// None before the timeout.
    Dropped {
        /// The timeout, seconds.
        seconds: u64,
    },
    /// Another program answered, or the client could not send.
    Failed {
        /// The reason.
        reason: String,
    },
}

/// A client as the server of a probe saw it: the server received its packets, whether the handshake was completed or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProbeSource {
    /// The protocol.
    pub protocol: PortProtocol,
    /// The server's port.
    pub port: u16,
    /// The source address of its packets.
    pub address: IpAddr,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn range_is_read_as_it_is_written_and_nothing_else_is() {
        for (text, count) in [("1", 1), ("5210", 1), ("5210-5219", 10), ("1-65535", 65_535)] {
            let ports: DataPorts = text.parse().unwrap();
            assert_eq!((ports.to_string().as_str(), ports.count()), (text, count));
        }
        for text in ["", "65536", "9-8", "+5", "5-+6", "5 - 6", "5-", "-5", "5-6-7", "5,6"] {
            assert_eq!(text.parse::<DataPorts>(), Err(NotPorts), "{text}");
        }
        assert_eq!("7-7".parse::<DataPorts>().unwrap().to_string(), "7");
    }
}
