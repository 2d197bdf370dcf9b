//! Which host ssh refused, or was refused by: the destination, or a jump host before it, by what ssh printed. Pure.
use netduel_model::plan::SshHost;

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

/// User and host of a login that was refused.
pub fn login(printed: &str) -> Option<&str> {
    let logins = printed.lines().filter_map(|line| line.trim().split_once(": Permission denied ("));
    logins.map(|(login, _)| login).find(|login| is_name(login))
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
        assert_eq!(file_of_key("Offending key for IP in /x:1\nOffending RSA key in x:1"), None);
    }
}
