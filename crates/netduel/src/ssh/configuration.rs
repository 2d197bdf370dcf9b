//! What the user's configuration says of a host, as `ssh -G` prints it. It connects nothing.
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Duration;

use netduel_control::launcher::{AgentProcess, Arrival};
use netduel_model::ids::HostName;
use netduel_model::plan::SshHost;
use netduel_sys::clock::monotonic_ns;

use super::obstacle::Obstacle;
use super::options;
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

/// A key and its value on each line, with the defaults of ssh. Empty when ssh refuses the configuration: the connection then fails with its
/// message.
#[derive(Debug, Default)]
pub struct Configuration(String);

impl Configuration {
    /// Asks ssh. `name` is the host of the plan, for errors.
    pub fn of(name: &HostName, ssh: &SshHost, stop: &Stop) -> Result<Self, Obstacle> {
        let argv: Vec<String> = ["ssh", "-G"]
            .map(str::to_owned)
            .into_iter()
            .chain(options::of_host(ssh))
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
        Ok(if is_accepted { Self(String::from_utf8_lossy(&bytes).into_owned()) } else { Self::default() })
    }

    fn value(&self, key: &str) -> Option<&str> {
        self.0.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(' '))
    }

    /// Whether ssh would ask the user about an unknown host key, if it could.
    pub fn asks_for_host_key(&self) -> bool {
        self.value("stricthostkeychecking") == Some("ask")
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
                ('%', Some('h')) => expanded.push_str(self.value("hostname").unwrap_or(&ssh.host)),
                ('%', Some('n')) => expanded.push_str(self.value("host").unwrap_or(&ssh.host)),
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
        Self(text.to_owned())
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
    fn key_is_asked_for_only_where_the_configuration_says_so() {
        for (value, asks) in [("ask", true), ("true", false), ("accept-new", false), ("false", false)] {
            let found = Configuration::of_text(&format!("port 22\nstricthostkeychecking {value}\n"));
            assert_eq!(found.asks_for_host_key(), asks, "{value}");
        }
        assert!(!Configuration::default().asks_for_host_key());
    }
}
