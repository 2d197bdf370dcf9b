//! Jump hosts (`ProxyJump` in ssh_config(5)). ssh starts itself for each of them without the options of its own command line, so that a jump
//! host could ask for a password at the terminal. Here they become a `ProxyCommand` with the options of every connection. The user's
//! configuration applies to each of them, as with `ProxyJump`. It connects nothing.
use std::collections::VecDeque;
use std::iter::once;
use std::path::Path;

use netduel_model::ids::HostName;
use netduel_model::plan::SshHost;

use super::configuration::Configuration;
use super::obstacle::Obstacle;
use super::options;
use super::refusal::Named;
use super::stop::Stop;

/// Jump hosts of a host at most: each doubles the escapes in the command of the one before it.
const JUMPS_MAX: usize = 8;

/// What ssh replaces by the address of the next host, in brackets for IPv6. The quotes are for the shell; ssh uses the same.
const NEXT_HOST: &str = "'[%h]:%p'";

/// Settings with which `ssh -G` prints what a command in place of `ProxyJump` makes of a host.
const SOME_PROXY: [&str; 2] = ["ProxyCommand=ssh", "ProxyUseFdpass=no"];

/// The way to a host.
#[derive(Debug, Default)]
pub struct Way {
    /// The options of the host beside those of every host: the way over its jump hosts.
    pub options: Vec<String>,
    /// The host, and the jump hosts before it.
    pub hosts: Vec<Named>,
    /// The messages with which `ssh -G` refused the configurations of some of them.
    refusals: Vec<String>,
}

impl Way {
    fn of(hops: &[Hop]) -> Self {
        let refusals = hops.iter().map(|hop| hop.found.refusal()).filter(|refusal| !refusal.is_empty());
        Self {
            options: options_of(hops),
            hosts: hops.iter().map(|hop| hop.found.named(&hop.ssh)).collect(),
            refusals: refusals.map(str::to_owned).collect(),
        }
    }

    /// What ssh printed at the end of a connection, and the messages of `ssh -G` that it does not have: without its answer no jump host is known.
    pub fn with_refusals(&self, printed: String) -> String {
        let more = self.refusals.iter().filter(|refusal| !printed.contains(refusal.as_str()));
        let more: Vec<String> = more.map(|refusal| format!("ssh -G: {refusal}")).collect();
        once(printed).filter(|printed| !printed.is_empty()).chain(more).collect::<Vec<_>>().join("\n")
    }
}

/// A host on the way.
#[derive(Debug)]
struct Hop {
    ssh: SshHost,
    found: Configuration,
    /// ssh canonicalizes the name of a host without a proxy, and then reads in its configuration that it has one.
    is_canonicalized: bool,
}

/// The way to a host. `name` is the host of the plan, for errors.
pub fn find(name: &HostName, ssh: &SshHost, stop: &Stop) -> Result<Way, Obstacle> {
    Ok(Way::of(&way_to(ssh, |hop, further| Configuration::of(name, hop, further, stop))?))
}

/// A host and the jump hosts before it, from the host to the one that is connected first. `configuration` is that of a host with further options.
fn way_to(
    ssh: &SshHost,
    mut configuration: impl FnMut(&SshHost, &[String]) -> Result<Configuration, Obstacle>,
) -> Result<Vec<Hop>, Obstacle> {
    let some_proxy: Vec<String> =
        SOME_PROXY.iter().flat_map(|&setting| options::option(setting.to_owned())).collect();
    let mut way: Vec<Hop> = Vec::new();
    let mut ahead = VecDeque::from([ssh.clone()]);
    while let Some(next) = ahead.pop_front() {
        if way.len() > JUMPS_MAX || way.iter().any(|hop| hop.ssh == next) {
            return Err(Obstacle::Jumps { host: ssh.host.clone(), most: JUMPS_MAX, next: next.host });
        }
        let found = configuration(&next, &[])?;
        let mut is_canonicalized = false;
        // Within a list the jump host before another one replaces those of its own configuration.
        if ahead.is_empty() {
            ahead.extend(found.jump_hosts(&next).into_iter().rev());
            // With a jump host in the first reading ssh does not canonicalize; then a command in its place changes nothing.
            is_canonicalized = !ahead.is_empty()
                && found.canonicalizes_without_proxy()
                && !found.is_same_host(&configuration(&next, &some_proxy)?);
        }
        way.push(Hop { ssh: next, found, is_canonicalized });
    }
    Ok(way)
}

/// The options of the first host of a way.
fn options_of(way: &[Hop]) -> Vec<String> {
    let Some((host, jumps)) = way.split_first() else { return Vec::new() };
    let mut settings = Vec::new();
    if host.found.asks_for_host_key() {
        // ssh cannot ask. It refuses the key in both cases, but only in this one names the host.
        settings.push("StrictHostKeyChecking=yes".to_owned());
    }
    if host.is_canonicalized {
        settings.push("CanonicalizeHostname=always".to_owned());
    }
    if !jumps.is_empty() {
        settings.push(format!("ProxyCommand={}", command(jumps)));
        settings.push("ProxyUseFdpass=no".to_owned());
    }
    settings.into_iter().flat_map(options::option).collect()
}

/// The command that connects to the host before a way. A shell reads it, after ssh has replaced sequences with a percent sign.
fn command(way: &[Hop]) -> String {
    let Some((host, jumps)) = way.split_first() else { return String::new() };
    // A shared connection of the user is used; one that begins here would outlive the run, and have the settings of the run.
    let mut settings = vec!["ControlMaster=no".to_owned()];
    if host.found.has_no_connect_timeout() {
        settings.push(options::CONNECT_TIMEOUT.to_owned());
    }
    if !jumps.is_empty() {
        // The hash %C has the jump hosts since OpenSSH 9.6, and this command has none.
        let path = host.found.control_path();
        settings.extend(path.map(|path| format!("ControlPath=\"{}\"", options::escaped(Path::new(path)))));
    }
    let own = once("ssh".to_owned()).chain(options::of_host(&host.ssh));
    let own = own.chain(settings.into_iter().flat_map(options::option)).chain(options_of(way));
    own.map(|word| escaped(&word))
        .chain(["-W".to_owned(), NEXT_HOST.to_owned()])
        .chain(options::destination(&host.ssh).into_iter().map(|word| escaped(&word)))
        .collect::<Vec<_>>()
        .join(" ")
}

/// A word of the command, also a whole command within it. It has no quotes of its own: their rules differ from those by which ssh checks a
/// setting, and between shells within each other.
fn escaped(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "-_./:=,@+".contains(c);
    let mut text = String::with_capacity(word.len());
    for letter in word.chars() {
        match letter {
            '%' => text.push_str("%%"),
            plain if is_plain(plain) => text.push(plain),
            special => text.extend(['\\', special]),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The way to vm1 with these configurations by host; other hosts have none.
    fn way(configurations: &[(&str, &str)]) -> Result<Vec<Hop>, Obstacle> {
        way_to(&SshHost::of("vm1"), |hop, _| {
            let found = configurations.iter().find(|(host, _)| *host == hop.host);
            Ok(found.map(|(_, text)| Configuration::of_text(text)).unwrap_or_default())
        })
    }

    /// The words of a command after ssh and a shell have read it.
    fn words(command: &str, next: &str) -> Vec<String> {
        let (mut words, mut letters, mut is_quoted) = (vec![String::new()], command.chars(), false);
        let push = |text: &str, words: &mut Vec<String>| words.last_mut().expect("a word").push_str(text);
        while let Some(letter) = letters.next() {
            match letter {
                '%' => match letters.next() {
                    Some('%') => push("%", &mut words),
                    Some('h') => push(next, &mut words),
                    Some('p') => push("22", &mut words),
                    other => panic!("{other:?} in {command}"),
                },
                '\\' => push(&letters.next().expect("a letter").to_string(), &mut words),
                '\'' => is_quoted = !is_quoted,
                ' ' => words.push(String::new()),
                plain => push(&plain.to_string(), &mut words),
            }
        }
        assert!(!is_quoted, "an open quote in {command}");
        words
    }

    /// The command of the jump hosts in options.
    fn proxy(options: &[String]) -> Option<&str> {
        options.iter().find_map(|option| option.strip_prefix("ProxyCommand="))
    }

    #[test]
    fn jump_host_gets_the_options_of_its_host_and_its_own_configuration() {
        let found = way(&[
            ("vm1", "stricthostkeychecking ask\nproxyjump ops@jump:2222\n"),
            ("jump", "stricthostkeychecking accept-new\nconnecttimeout none\n"),
        ]);
        assert_eq!(
            options_of(&found.expect("a way")),
            [
                "-o",
                "StrictHostKeyChecking=yes",
                "-o",
                "ProxyCommand=ssh -T -o BatchMode=yes -o ClearAllForwardings=yes -o ForwardAgent=no -o ForwardX11=no -o PermitLocalCommand=no \
                 -o RemoteCommand=none -o ControlMaster=no -o ConnectTimeout=20 -W '[%h]:%p' -l ops -p 2222 -- jump",
                "-o",
                "ProxyUseFdpass=no"
            ]
        );
        assert!(options_of(&way(&[("vm1", "port 22\n")]).expect("a way")).is_empty());
    }

    #[test]
    fn each_of_several_jump_hosts_is_reached_by_the_one_before_it_and_asks_nothing() {
        // The first of the list has a jump host in its own configuration. That of the last one is replaced by the list.
        let found = way(&[
            ("vm1", "proxyjump a,u@b:7,c\n"),
            ("c", "stricthostkeychecking ask\nproxyjump elsewhere\n"),
            ("a", "proxyjump 50%%off\n"),
        ]);
        let mut options = options_of(&found.expect("a way"));
        let mut next = "vm1";
        for (host, ends) in [
            ("c", "-W [vm1]:22 -- c"),
            ("b", "-W [c]:22 -l u -p 7 -- b"),
            ("a", "-W [b]:22 -- a"),
            ("50%off", "-W [a]:22 -- 50%off"),
        ] {
            options = words(proxy(&options).expect(host), next);
            let line = options.join(" ");
            assert!(line.starts_with("ssh -T -o BatchMode=yes ") && line.ends_with(ends), "{host}: {line}");
            let is_strict = options.contains(&"StrictHostKeyChecking=yes".to_owned());
            assert_eq!(is_strict, host == "c", "{host}: {line}");
            next = host;
        }
        assert_eq!(proxy(&options), None);
    }

    #[test]
    fn timeout_and_shared_connection_of_a_jump_host_are_those_of_its_configuration() {
        let found = way(&[
            ("vm1", "proxyjump a\ncontrolpath /run/vm1\n"),
            ("a", "proxyjump b\nconnecttimeout 5\ncontrolpath /run/100% a\n"),
            ("b", "connecttimeout none\ncontrolpath /run/b\n"),
        ]);
        let host = options_of(&found.expect("a way"));
        // The connection to the host has a socket of its own.
        assert!(!host.iter().any(|word| word.starts_with("ControlPath")), "{host:?}");
        let first = words(proxy(&host).expect("a jump host"), "vm1");
        assert!(first.contains(&"ControlPath=\"/run/100%% a\"".to_owned()), "{first:?}");
        assert!(!first.iter().any(|word| word.starts_with("ConnectTimeout")), "{first:?}");
        // ssh finds the path of a host without jump hosts by itself.
        let second = words(proxy(&first).expect("a jump host"), "a");
        assert!(!second.iter().any(|word| word.starts_with("ControlPath")), "{second:?}");
        assert!(second.contains(&options::CONNECT_TIMEOUT.to_owned()), "{second:?}");
    }

    #[test]
    fn refused_configuration_is_a_part_of_the_later_error() {
        let found = way_to(&SshHost::of("vm1"), |hop, _| {
            Ok(match hop.host.as_str() {
                "vm1" => Configuration::of_text("proxyjump a;b\n"),
                _ => Configuration::of_refusal("hostname contains invalid characters"),
            })
        });
        let way = Way::of(&found.expect("a way"));
        let refused = "ssh -G: hostname contains invalid characters";
        assert_eq!(way.with_refusals(String::new()), refused);
        assert_eq!(way.with_refusals("closed".to_owned()), format!("closed\n{refused}"));
        let same = "hostname contains invalid characters\nclosed";
        assert_eq!(way.with_refusals(same.to_owned()), same);
    }

    #[test]
    fn name_is_canonicalized_where_a_command_in_place_of_the_jump_host_would_prevent_it() {
        let canonical = "canonicalizehostname true\n";
        let of = |without: &str, with: &str| {
            let found = way_to(&SshHost::of("vm1"), |hop, further| {
                let lines = if further.is_empty() { without } else { with };
                Ok(if hop.host == "vm1" { Configuration::of_text(lines) } else { Configuration::default() })
            });
            let options = options_of(&found.expect("a way"));
            options.contains(&"CanonicalizeHostname=always".to_owned())
        };
        let full = format!("user alice\nhostname vm1.example.test\n{canonical}proxyjump bastion\n");
        let short = format!("user root\nhostname vm1\n{canonical}");
        assert!(of(&full, &format!("{short}proxycommand ssh\n")));
        assert!(!of(&format!("{short}proxyjump bastion\n"), &format!("{short}proxycommand ssh\n")));
        assert!(!of(&full.replace("true", "always"), &short));
        assert!(!of(&full.replace("bastion", "none"), &short));
    }

    #[test]
    fn words_of_a_command_are_those_that_were_escaped() {
        for word in ["a b", "~/x", "it's; $(rm) `x` \"y\"", "100%h", "[fd00::1%eth0]", "a\\b", "ä*?"] {
            let read = words(&escaped(&escaped(word)), "next");
            assert_eq!(words(&read.join(" "), "next"), [word]);
        }
    }

    #[test]
    fn jump_hosts_without_an_end_are_named() {
        let found = way(&[("vm1", "proxyjump a\n"), ("a", "proxyjump b\n"), ("b", "proxyjump a\n")]);
        let error = found.expect_err("a loop").to_string();
        assert!(error.contains("the jump hosts of vm1") && error.contains("at a"), "{error}");
        let list: Vec<String> = (0..=JUMPS_MAX).map(|number| format!("jump{number}")).collect();
        let of = |list: &[String]| {
            let text = format!("proxyjump {}\n", list.join(","));
            way(&[("vm1", text.as_str())]).map(|way| way.len())
        };
        assert_eq!(of(&list[1..]).expect("a way"), JUMPS_MAX + 1);
        assert!(of(&list).is_err());
    }
}
