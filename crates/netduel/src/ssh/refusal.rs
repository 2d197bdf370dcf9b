//! Which host ssh refused, or was refused by: the destination, or a jump host before it, by what ssh printed. Pure.
use netduel_model::plan::SshHost;

/// The port of ssh, which known_hosts leaves out.
pub const DEFAULT_PORT: u16 = 22;

/// A host of a connection as ssh names it in its messages.
#[derive(Debug, Clone)]
pub struct Named {
    /// How it is reached.
    pub ssh: SshHost,
    /// User and host in the refusal of a login.
    pub login: String,
    /// The name of its key in known_hosts.
    pub key: String,
    /// Its address or name for a connection.
    pub hostname: String,
    /// Its port; absent for the default.
    pub port: Option<u16>,
    /// Whether ssh refuses unknown host keys without a question, by the user's configuration.
    pub never_asks: bool,
}

/// The name of a host's key in known_hosts.
pub fn key_name(host: &str, port: Option<u16>) -> String {
    match port {
        Some(port) if port != DEFAULT_PORT => format!("[{host}]:{port}"),
        _ => host.to_owned(),
    }
}

/// The host whose key ssh refused, as known_hosts names it; `None` where ssh does not say.
pub fn host_of_key(printed: &str) -> Option<&str> {
    printed.lines().filter_map(refused_key).find(|host| is_name(host))
}

fn refused_key(line: &str) -> Option<&str> {
    let refused = line.trim().strip_suffix(" and you have requested strict checking.")?;
    match refused.strip_prefix("Host key for ") {
        Some(changed) => changed.strip_suffix(" has changed"),
        None => refused.split_once(" host key is known for ").map(|(_, host)| host),
    }
}

/// The file with the key that ssh expected instead.
pub fn file_of_key(printed: &str) -> Option<&str> {
    printed.lines().find_map(expected_key)
}

fn expected_key(line: &str) -> Option<&str> {
    let (_, place) = line.trim().strip_prefix("Offending ")?.split_once(" key in ")?;
    let (file, number) = place.rsplit_once(':')?;
    (file.starts_with('/') && number.parse::<u64>().is_ok()).then_some(file)
}

/// A login that was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RefusedLogin<'a> {
    /// User and host.
    pub name: &'a str,
    /// Whether the host would also ask questions, for example for a second factor.
    pub has_questions: bool,
}

/// The first login that was refused.
pub fn login(printed: &str) -> Option<RefusedLogin<'_>> {
    let mut logins = printed.lines().filter_map(|line| line.trim().split_once(": Permission denied ("));
    let (name, methods) = logins.find(|(name, _)| is_name(name))?;
    let mut methods = methods.split([',', ')']);
    Some(RefusedLogin { name, has_questions: methods.any(|method| method == "keyboard-interactive") })
}

/// Whether a text can be a part of a command that a user copies: a server may print anything.
fn is_name(text: &str) -> bool {
    SshHost::is_plain_word(text) && !text.contains(['*', '?', '!', '#', '~'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_that_a_shell_would_interpret_is_no_name() {
        let known = |host: &str| {
            format!("No RSA host key is known for {host} and you have requested strict checking.\r\n")
        };
        for host in ["jump", "[fd00::1]:2222", "10.0.0.4"] {
            assert_eq!(host_of_key(&format!("banner\n{}", known(host))), Some(host));
        }
        for host in ["$(rm -r x)", "-oProxyCommand=x", "a b", "`x`", ""] {
            assert_eq!(host_of_key(&known(host)), None, "{host}");
        }
        assert_eq!(host_of_key("Host key verification failed."), None);
        assert_eq!(login("x;y: Permission denied (publickey)."), None);
        for (methods, has_questions) in [("publickey", false), ("publickey,keyboard-interactive", true)] {
            let printed = format!("me@vm1: Permission denied ({methods}).\nkeyboard-interactive");
            assert_eq!(login(&printed), Some(RefusedLogin { name: "me@vm1", has_questions }));
        }
        assert_eq!(file_of_key("Offending key for IP in /x:1\nOffending RSA key in x:1"), None);
    }
}
