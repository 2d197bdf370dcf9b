//! Jump hosts (`ProxyJump` in ssh_config(5)). ssh starts itself for each of them without the options of its own command line, so that a jump
//! host could ask for a password at the terminal. Here they become a `ProxyCommand` with the options of every connection. The user's
//! configuration applies to each of them, as with `ProxyJump`. It connects nothing.
use std::collections::VecDeque;
use std::iter::once;

use netduel_model::ids::HostName;
use netduel_model::plan::SshHost;

use super::configuration::Configuration;
use super::obstacle::Obstacle;
use super::options;
use super::stop::Stop;

/// Jump hosts of a host at most: each doubles the escapes in the command of the one before it.
const JUMPS_MAX: usize = 8;

/// What ssh replaces by the address of the next host, in brackets for IPv6. The backslashes are for the shell.
const NEXT_HOST: &str = r"\[%h\]:%p";

/// A host on the way.
#[derive(Debug)]
struct Hop {
    ssh: SshHost,
    asks_for_host_key: bool,
}

/// The options of a host beside those of every host: the way over its jump hosts. `name` is the host of the plan, for errors.
pub fn options(name: &HostName, ssh: &SshHost, stop: &Stop) -> Result<Vec<String>, Obstacle> {
    Ok(options_of(&way_to(ssh, |hop| Configuration::of(name, hop, stop))?))
}

/// A host and the jump hosts before it, from the host to the one that is connected first.
fn way_to(
    ssh: &SshHost,
    mut configuration: impl FnMut(&SshHost) -> Result<Configuration, Obstacle>,
) -> Result<Vec<Hop>, Obstacle> {
    let mut way: Vec<Hop> = Vec::new();
    let mut ahead = VecDeque::from([ssh.clone()]);
    while let Some(next) = ahead.pop_front() {
        if way.len() > JUMPS_MAX || way.iter().any(|hop| hop.ssh == next) {
            return Err(Obstacle::Jumps { host: ssh.host.clone(), most: JUMPS_MAX, next: next.host });
        }
        let found = configuration(&next)?;
        // Within a list the jump host before another one replaces those of its own configuration.
        if ahead.is_empty() {
            ahead.extend(found.jump_hosts(&next).into_iter().rev());
        }
        way.push(Hop { ssh: next, asks_for_host_key: found.asks_for_host_key() });
    }
    Ok(way)
}

/// The options of the first host of a way.
fn options_of(way: &[Hop]) -> Vec<String> {
    let Some((host, jumps)) = way.split_first() else { return Vec::new() };
    let mut settings = Vec::new();
    if host.asks_for_host_key {
        // ssh cannot ask. It refuses the key in both cases, but only in this one names the host.
        settings.push("StrictHostKeyChecking=yes".to_owned());
    }
    if !jumps.is_empty() {
        settings.push(format!("ProxyCommand={}", command(jumps)));
        settings.push("ProxyUseFdpass=no".to_owned());
    }
    settings.into_iter().flat_map(options::option).collect()
}

/// The command that connects to the host before a way. A shell reads it, after ssh has replaced sequences with a percent sign.
fn command(way: &[Hop]) -> String {
    let Some(host) = way.first() else { return String::new() };
    let own = once("ssh".to_owned()).chain(options::of_host(&host.ssh));
    let own = own.chain(options::option(options::CONNECT_TIMEOUT.to_owned())).chain(options_of(way));
    own.map(|word| escaped(&word))
        .chain(["-W".to_owned(), NEXT_HOST.to_owned()])
        .chain(options::destination(&host.ssh).into_iter().map(|word| escaped(&word)))
        .collect::<Vec<_>>()
        .join(" ")
}

/// A word of the command. It has no quotes, whose rules differ between shells, and from those by which ssh checks a setting.
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
        way_to(&SshHost::of("vm1"), |hop| {
            let found = configurations.iter().find(|(host, _)| *host == hop.host);
            Ok(found.map(|(_, text)| Configuration::of_text(text)).unwrap_or_default())
        })
    }

    /// The words of a command after ssh and a shell have read it.
    fn words(command: &str, next: &str) -> Vec<String> {
        let (mut words, mut letters) = (vec![String::new()], command.chars());
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
                ' ' => words.push(String::new()),
                plain => push(&plain.to_string(), &mut words),
            }
        }
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
            ("jump", "stricthostkeychecking accept-new\n"),
        ]);
        assert_eq!(
            options_of(&found.expect("a way")),
            [
                "-o",
                "StrictHostKeyChecking=yes",
                "-o",
                "ProxyCommand=ssh -T -o BatchMode=yes -o ClearAllForwardings=yes -o ForwardAgent=no -o ForwardX11=no -o PermitLocalCommand=no \
                 -o RemoteCommand=none -o ConnectTimeout=20 -W \\[%h\\]:%p -l ops -p 2222 -- jump",
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
