//! What the user's configuration says of a host, as `ssh -G` prints it. It connects nothing.
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Duration;

use netduel_control::launcher::{AgentProcess, Arrival};
use netduel_model::ids::HostName;
use netduel_model::plan::SshHost;
use netduel_sys::clock::monotonic_ns;

use super::obstacle::Obstacle;
use super::options;
use super::refusal::{self, Named};
use super::stop::Stop;

/// Timeout of ssh, nanoseconds: a configuration may run commands (`Match exec`) and look up names.
const TIMEOUT_NS: u64 = 60_000_000_000;
/// Longest configuration, bytes: it has a hundred lines.
const LEN_MAX: usize = 256 << 10;
/// Interval of the checks of [`Stop`].
const STOP_INTERVAL: Duration = Duration::from_millis(50);
/// Timeout of the end of ssh after its output has ended.
const END_PATIENCE: Duration = Duration::from_secs(3);
/// Unread pieces of output.
const ARRIVALS_MAX: usize = 8;

/// What `ssh -G` printed.
#[derive(Debug, Default)]
pub struct Configuration {
    /// A key and its value on each line, with the defaults of ssh. Empty when ssh refuses the configuration.
    lines: String,
    /// The message with which ssh refused it; empty otherwise.
    refusal: String,
}

impl Configuration {
    /// Asks ssh. `name` is the host of the plan, for errors; `further` are options beside those of every host.
    pub fn of(name: &HostName, ssh: &SshHost, further: &[String], stop: &Stop) -> Result<Self, Obstacle> {
        let argv: Vec<String> = ["ssh", "-G"]
            .map(str::to_owned)
            .into_iter()
            .chain(options::of_host(ssh))
            .chain(further.iter().cloned())
            .chain(options::destination(ssh))
            .collect();
        let (sender, arrivals) = sync_channel(ARRIVALS_MAX);
        let process = AgentProcess::start(name.as_str(), &argv, 0, sender)
            .map_err(|error| Obstacle::NoSsh(error.into()))?;
        let deadline_ns = monotonic_ns().saturating_add(TIMEOUT_NS);
        let mut bytes = Vec::new();
        let is_whole = loop {
            match arrivals.recv_timeout(STOP_INTERVAL) {
                Ok((_, Arrival::Bytes(more))) => bytes.extend(more),
                Ok((_, Arrival::End)) | Err(RecvTimeoutError::Disconnected) => break true,
                Err(RecvTimeoutError::Timeout) => {}
            }
            if let Err(stopped) = stop.check() {
                drop(process.end(Duration::ZERO));
                return Err(stopped);
            }
            if bytes.len() > LEN_MAX || monotonic_ns() >= deadline_ns {
                break false;
            }
        };
        let ended = process.end(if is_whole { END_PATIENCE } else { Duration::ZERO }).0;
        if !is_whole {
            let (seconds, last_words) = (TIMEOUT_NS / 1_000_000_000, ended.last_words);
            return Err(Obstacle::Silent { ssh: Box::new(ssh.clone()), seconds, last_words });
        }
        let is_accepted = ended.status.is_some_and(|status| status.success());
        let lines = String::from_utf8_lossy(&bytes).into_owned();
        Ok(if is_accepted {
            Self { lines, refusal: String::new() }
        } else {
            Self { lines: String::new(), refusal: ended.last_words.trim().to_owned() }
        })
    }

    fn value(&self, key: &str) -> Option<&str> {
        self.lines.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(' '))
    }

    /// The message with which ssh refused the configuration; empty when it did not.
    pub fn refusal(&self) -> &str {
        &self.refusal
    }

    /// Whether ssh would ask the user about an unknown host key, if it could.
    pub fn asks_for_host_key(&self) -> bool {
        self.value("stricthostkeychecking") == Some("ask")
    }

    /// Whether ssh canonicalizes the name of a host without a proxy, and only then.
    pub fn canonicalizes_without_proxy(&self) -> bool {
        self.value("canonicalizehostname") == Some("true")
    }

    /// Whether another configuration is the same, apart from how the host is reached.
    pub fn is_same_host(&self, other: &Self) -> bool {
        let is_of_host = |line: &&str| {
            !["proxy", "controlpath ", "canonicalizehostname "].iter().any(|start| line.starts_with(start))
        };
        self.lines.lines().filter(is_of_host).eq(other.lines.lines().filter(is_of_host))
    }

    /// Whether the user has set no timeout of a connection.
    pub fn has_no_connect_timeout(&self) -> bool {
        self.value("connecttimeout") == Some("none")
    }

    /// The socket of the user's shared connection, with its tokens replaced; absent where an option cannot state it as it is.
    pub fn control_path(&self) -> Option<&str> {
        let path = self.value("controlpath").filter(|path| !path.eq_ignore_ascii_case("none"))?;
        (!path.contains(['"', '\\', '$'])).then_some(path)
    }

    /// The host as ssh names it in its messages.
    pub fn named(&self, ssh: &SshHost) -> Named {
        let hostname = self.hostname(ssh).to_owned();
        let port = self.value("port").and_then(|port| port.parse().ok()).or(ssh.port);
        let alias = self.value("hostkeyalias");
        let key = alias.map_or_else(|| refusal::key_name(&hostname, port), str::to_owned);
        let login = format!("{}@{hostname}", self.value("user").unwrap_or_default());
        let never_asks = self.value("stricthostkeychecking") == Some("true");
        Named { ssh: ssh.clone(), login, key, hostname, port, never_asks }
    }

    fn hostname<'a>(&'a self, ssh: &'a SshHost) -> &'a str {
        self.value("hostname").unwrap_or_else(|| options::bare_host(ssh))
    }

    /// The jump hosts of a host (`ProxyJump`) in the order in which they are connected. `ssh` is the host.
    pub fn jump_hosts(&self, ssh: &SshHost) -> Vec<SshHost> {
        let list = self.value("proxyjump").filter(|list| !list.eq_ignore_ascii_case("none"));
        let parts = list.into_iter().flat_map(|list| list.split(','));
        parts.map(|part| self.jump_host(part, ssh)).collect()
    }

    /// `[USER@]HOST[:PORT]` or the same as a URI. An IPv6 address is in brackets.
    fn jump_host(&self, part: &str, ssh: &SshHost) -> SshHost {
        let part = part.trim();
        let part = part.strip_prefix("ssh://").map_or(part, |uri| uri.trim_end_matches('/'));
        let (user, rest) = part.rsplit_once('@').map_or((None, part), |(user, rest)| (Some(user), rest));
        let (host, port) = match rest.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((host, after)) => (host, after.strip_prefix(':')),
            None => match rest.split_once(':') {
                // With more colons it is an IPv6 address.
                Some((host, port)) if !port.contains(':') => (host, Some(port)),
                _ => (rest, None),
            },
        };
        SshHost {
            user: user.map(|user| self.expanded(user, ssh)),
            port: port.and_then(|port| port.parse().ok()),
            ..SshHost::of(&self.expanded(host, ssh))
        }
    }

    /// A text with what its tokens stand for (TOKENS in ssh_config(5)).
    fn expanded(&self, text: &str, ssh: &SshHost) -> String {
        let mut expanded = String::new();
        let mut letters = text.chars();
        while let Some(letter) = letters.next() {
            let token = if letter == '%' { letters.next() } else { None };
            match (letter, token) {
                ('%', Some('h')) => expanded.push_str(self.hostname(ssh)),
                ('%', Some('n')) => {
                    // Earlier versions of ssh do not print it.
                    expanded.push_str(self.value("host").unwrap_or_else(|| options::bare_host(ssh)));
                }
                ('%', Some('p')) => expanded.push_str(self.value("port").unwrap_or("22")),
                ('%', Some('r')) => expanded.push_str(self.value("user").unwrap_or_default()),
                (letter, None) | (_, Some(letter)) => expanded.push(letter),
            }
        }
        expanded
    }
}

#[cfg(test)]
impl Configuration {
    /// Of what ssh would print.
    pub fn of_text(text: &str) -> Self {
        Self { lines: text.to_owned(), refusal: String::new() }
    }

    /// Of a host whose configuration ssh refuses.
    pub fn of_refusal(text: &str) -> Self {
        Self { lines: String::new(), refusal: text.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jump_hosts_are_read_in_every_form_that_ssh_prints() {
        let lines =
            "host t\nuser me\nhostname 10.9.9.9\nport 2222\nproxyusefdpass no\nstricthostkeychecking ask\n";
        let words = |list: &str| -> Vec<String> {
            let found = Configuration::of_text(&format!("{lines}proxyjump {list}\n"));
            let one = |jump: SshHost| options::destination(&jump).join(" ");
            found.jump_hosts(&SshHost::of("t")).into_iter().map(one).collect()
        };
        let cases: [(&str, &[&str]); 6] = [
            ("c:7", &["-p 7 -- c"]),
            ("ssh://u@b1:33,%r@b2", &["-l u -p 33 -- b1", "-l me -- b2"]),
            ("ssh://b1/,jump-%n,%h", &["-- b1", "-- jump-t", "-- 10.9.9.9"]),
            ("u@[fd00::1]:22,[fd00::2],fd00::3", &["-l u -p 22 -- fd00::1", "-- fd00::2", "-- fd00::3"]),
            ("a%%b,a@b@c", &["-- a%b", "-l a@b -- c"]),
            ("none", &[]),
        ];
        for (list, expected) in cases {
            assert_eq!(words(list), expected, "{list}");
        }
        assert!(Configuration::default().jump_hosts(&SshHost::of("t")).is_empty());
    }

    #[test]
    fn user_before_a_host_is_no_part_of_its_name() {
        // What versions of ssh print that print neither the host nor a host name.
        let found = Configuration::of_text("proxyjump jump-%n,jump-%h\n");
        let jumps = found.jump_hosts(&SshHost::of("me@vm1"));
        assert_eq!(jumps.iter().map(|jump| jump.host.as_str()).collect::<Vec<_>>(), ["jump-vm1"; 2]);
    }

    #[test]
    fn host_is_named_as_in_the_messages_of_ssh() {
        let named = |lines: &str| Configuration::of_text(lines).named(&SshHost::of("vm1"));
        let plain = named("user me\nhostname 10.0.0.4\nport 22\nstricthostkeychecking true\n");
        assert_eq!((plain.login.as_str(), plain.key.as_str()), ("me@10.0.0.4", "10.0.0.4"));
        assert!(plain.never_asks);
        let other = named("user me\nhostname fd00::1\nport 2222\nstricthostkeychecking ask\n");
        assert_eq!((other.key.as_str(), other.never_asks), ("[fd00::1]:2222", false));
        assert_eq!(named("hostname 10.0.0.4\nport 2222\nhostkeyalias jump\n").key, "jump");
    }

    #[test]
    fn path_of_a_shared_connection_is_known_where_an_option_can_state_it() {
        let path = |value: &str| Configuration::of_text(&format!("controlpath {value}\n"));
        assert_eq!(path("/run/a b/0f%").control_path(), Some("/run/a b/0f%"));
        for value in ["none", "/run/\"x", "/run/${HOME}", "/run/\\x"] {
            assert_eq!(path(value).control_path(), None, "{value}");
        }
        assert_eq!(Configuration::default().control_path(), None);
    }

    #[test]
    fn key_is_asked_for_only_where_the_configuration_says_so() {
        for (value, asks) in [("ask", true), ("true", false), ("accept-new", false), ("false", false)] {
            let found = Configuration::of_text(&format!("port 22\nstricthostkeychecking {value}\n"));
            assert_eq!(found.asks_for_host_key(), asks, "{value}");
        }
        assert!(!Configuration::default().asks_for_host_key());
    }
}
