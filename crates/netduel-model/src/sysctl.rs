//! Sysctls that netduel changes: their names and values, which of them a plan or a bed may change, and those whose change cannot be undone. Pure.

/// Sysctls outside of `net.` that a plan may change without further permission, and a bed may set: each moves work in time or between cores, and
/// none can run a program, take memory away or open the host to others.
pub const BESIDE_NET: [&str; 7] = [
    "kernel.nmi_watchdog",
    "kernel.numa_balancing",
    "kernel.sched_autogroup_enabled",
    "kernel.timer_migration",
    "vm.stat_interval",
    "vm.swappiness",
    "vm.zone_reclaim_mode",
];
/// Sysctls that are no treatments: a write changes more of the host than the value, and writing the earlier value does not restore it.
/// `*` is `all` or an interface. Each with what is lost. In Linux: `addrconf_ifdown`, `inet_forward_change`,
/// `addrconf_fixup_forwarding`, `addrconf_sysctl_addr_gen_mode` and `addrconf_sysctl_stable_secret`.
const WITH_EFFECTS: [(&str, &str); 9] = [
    ("net.ipv6.conf.*.disable_ipv6", DISABLE_IPV6),
    ("net.ipv6.conf.default.disable_ipv6", "an interface that appears meanwhile has no IPv6, and keeps that"),
    ("net.ipv4.ip_forward", FORWARDING_IPV4),
    ("net.ipv4.conf.all.forwarding", FORWARDING_IPV4),
    ("net.ipv6.conf.*.forwarding", FORWARDING_IPV6),
    ("net.ipv6.conf.*.addr_gen_mode", ADDR_GEN_MODE),
    (
        "net.ipv6.conf.default.addr_gen_mode",
        "an interface that appears meanwhile has addresses of the new mode, and keeps them",
    ),
    ("net.ipv6.conf.*.stable_secret", STABLE_SECRET),
    ("net.ipv6.conf.default.stable_secret", STABLE_SECRET),
];
const DISABLE_IPV6: &str =
    "with 1 the kernel removes IPv6 addresses and routes, and does not add them again with 0";
const FORWARDING_IPV4: &str = "the kernel also sets `forwarding` of `default` and of each interface and `accept_redirects` of `all`, and turns \
     off LRO; the earlier values of these are lost";
const FORWARDING_IPV6: &str = "with `all` the kernel also sets `forwarding` of `default` and of each interface, and with 1 it removes the \
     default routes that router advertisements added; both are lost";
const ADDR_GEN_MODE: &str = "the kernel adds a link-local address of the new mode and does not remove it again, and with `all` it also sets \
     `addr_gen_mode` of `default` and of each interface; the earlier values of these are lost";
const STABLE_SECRET: &str = "the kernel also sets `addr_gen_mode`, with `default` that of each interface, whose earlier value is lost, and a \
     secret is never removed again";
/// The beginning of the names of sysctls of the network.
pub const NET: &str = "net.";
/// Bytes of a value at most: a page less the final zero byte.
pub const VALUE_LEN_MAX: usize = 4095;

/// What a write to a sysctl changes that writing the earlier value does not restore, as a clause; absent when it changes its value only. A
/// dot in the name may be written `/`.
pub fn effect_of(name: &str) -> Option<&'static str> {
    let name = name.replace('/', ".");
    let is_meant = |pattern: &str| match pattern.split_once('*') {
        None => name == pattern,
        Some((start, end)) => {
            let scope = name.strip_prefix(start).and_then(|rest| rest.strip_suffix(end));
            scope.is_some_and(|scope| !scope.is_empty() && scope != "default")
        }
    };
    WITH_EFFECTS.iter().find(|(pattern, _)| is_meant(pattern)).map(|(_, effect)| *effect)
}

/// Whether plans and beds may change a sysctl without further permission.
pub fn is_permitted(name: &str) -> bool {
    name.starts_with(NET) || BESIDE_NET.contains(&name)
}

/// Whether a text is the dotted name of a sysctl: nothing in it leads out of `/proc/sys`.
pub fn is_name(name: &str) -> bool {
    let is_plain = |part: &str| part.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'));
    name.contains('.') && name.split('.').all(|part| !part.is_empty() && is_plain(part))
}

/// Whether a text can be the value of a sysctl: the kernel takes text up to its first zero byte, and not more than a page of it; an empty text is
/// not written at all.
pub fn is_value(value: &str) -> bool {
    let is_text = !value.is_empty() && !value.contains(|c: char| c.is_control() && c != '\t');
    is_text && value.len() <= VALUE_LEN_MAX
}

/// The interface that a sysctl is of, as `net.ipv4.conf.eth0.rp_filter` is. As in sysctl(8) a slash in the name stands for a dot within a word
/// (`net.ipv4.conf.eth0/100.mtu`).
pub fn interface_of(name: &str) -> Option<String> {
    let words: Vec<&str> = name.split('.').collect();
    match words.as_slice() {
        ["net", _, "conf" | "neigh", scope, _, ..] if !["all", "default"].contains(scope) => {
            Some(scope.replace('/', "."))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sysctls_that_change_more_than_their_value_are_known_in_every_spelling() {
        for (name, lost) in [
            ("net.ipv6.conf.all.disable_ipv6", "addresses and routes"),
            ("net.ipv6.conf.eth0.disable_ipv6", "addresses and routes"),
            ("net.ipv6.conf.eth0/100.disable_ipv6", "addresses and routes"),
            ("net/ipv6/conf/all/disable_ipv6", "addresses and routes"),
            ("net.ipv6.conf.default.disable_ipv6", "appears meanwhile"),
            ("net.ipv4.ip_forward", "accept_redirects"),
            ("net.ipv4.conf.all.forwarding", "accept_redirects"),
            ("net.ipv6.conf.all.forwarding", "router advertisements"),
            ("net.ipv6.conf.eth0.forwarding", "router advertisements"),
            ("net.ipv6.conf.all.addr_gen_mode", "link-local address"),
            ("net.ipv6.conf.eth0.addr_gen_mode", "link-local address"),
            ("net.ipv6.conf.default.addr_gen_mode", "appears meanwhile"),
            ("net.ipv6.conf.eth0.stable_secret", "never removed"),
            ("net.ipv6.conf.default.stable_secret", "never removed"),
        ] {
            assert!(effect_of(name).is_some_and(|effect| effect.contains(lost)), "{name}");
        }
        // These set nothing else; the first also turns off LRO of its interface.
        for name in [
            "net.ipv4.conf.eth0.forwarding",
            "net.ipv4.conf.default.forwarding",
            "net.ipv6.conf.default.forwarding",
            "net.ipv6.conf..disable_ipv6",
            "net.ipv6.conf.disable_ipv6",
            "net.ipv4.ip_forward_use_pmtu",
            "net.ipv6.conf.eth0.mc_forwarding",
            "net.ipv4.tcp_sack",
        ] {
            assert_eq!(effect_of(name), None, "{name}");
        }
    }
}
