//! What the user who runs a plan lets it do: programs that it names, and sysctls outside of the network; and sysctls that are no
//! treatments. Pure; the settings that a plan has are in `spec`.
use super::problem::one_of;
use super::resolved::ResolvedPlan;
use super::uses::HostUses;

/// Sysctls outside of `net.` that a plan may change without further permission: each moves work in time or between cores, and none can
/// run a program, take memory away or open the host to others.
pub const SYSCTLS_BESIDE_NET: [&str; 7] = [
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
const SYSCTLS_WITH_EFFECTS: [(&str, &str); 9] = [
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
const NET: &str = "net.";

/// What a write to a sysctl changes that writing the earlier value does not restore, as a clause; absent when it changes its value only. A
/// dot in the name may be written `/`.
pub fn effect_of_sysctl(name: &str) -> Option<&'static str> {
    let name = name.replace('/', ".");
    let is_meant = |pattern: &str| match pattern.split_once('*') {
        None => name == pattern,
        Some((start, end)) => {
            let scope = name.strip_prefix(start).and_then(|rest| rest.strip_suffix(end));
            scope.is_some_and(|scope| !scope.is_empty() && scope != "default")
        }
    };
    SYSCTLS_WITH_EFFECTS.iter().find(|(pattern, _)| is_meant(pattern)).map(|(_, effect)| *effect)
}

/// What a plan may do beside traffic and changes of the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Permissions {
    /// Run programs that it names: launchers, treatments, testpmd.
    pub commands: bool,
    /// Change any sysctl.
    pub every_sysctl: bool,
}

/// Those of a plan without further permission.
impl Default for Permissions {
    fn default() -> Self {
        Self { commands: true, every_sysctl: false }
    }
}

/// Something that a plan does and may not do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Forbidden {
    /// What it does, as a fragment.
    pub wrong: String,
    /// What to do.
    pub allowed: String,
}

impl Permissions {
    /// Why a program may not be run; `None` when it may.
    pub(super) fn refuse_command(self, words: &[String]) -> Option<Forbidden> {
        (!self.commands).then(|| Forbidden {
            wrong: format!(
                "runs `{}`, and --no-commands forbids programs that a plan names",
                words.join(" ")
            ),
            allowed: "read what it does, then leave out --no-commands".to_owned(),
        })
    }

    /// Why a sysctl may not be changed; `None` when it may.
    pub(super) fn refuse_sysctl(self, name: &str) -> Option<Forbidden> {
        let is_permitted = self.every_sysctl || name.starts_with(NET) || SYSCTLS_BESIDE_NET.contains(&name);
        (!is_permitted).then(|| Forbidden {
            wrong: format!("changes {name:?}, which is no sysctl of the network"),
            allowed: format!(
                "without further permission a plan changes {NET}* and {}; to permit all sysctls of this plan, add --allow-sysctl",
                one_of(SYSCTLS_BESIDE_NET)
            ),
        })
    }

    /// The first thing that a plan without a text, that of a stored run, does and may not do, and the host on which it does.
    pub fn refuse(self, plan: &ResolvedPlan) -> Option<(String, Forbidden)> {
        plan.uses().into_iter().find_map(|host| Some((host.name.to_string(), self.refuse_host(&host)?)))
    }

    fn refuse_host(self, host: &HostUses<'_>) -> Option<Forbidden> {
        let launcher = host.launcher().and_then(|words| self.refuse_command(words));
        let mut commands = host.commands.iter().filter(|command| command.is_of_plan);
        launcher
            .or_else(|| commands.find_map(|command| self.refuse_command(&command.words)))
            .or_else(|| host.sysctls.iter().find_map(|(name, _)| self.refuse_sysctl(name)))
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
            assert!(effect_of_sysctl(name).is_some_and(|effect| effect.contains(lost)), "{name}");
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
            assert_eq!(effect_of_sysctl(name), None, "{name}");
        }
    }

    #[test]
    fn sysctls_of_the_network_and_of_the_table_need_no_permission() {
        let usual = Permissions::default();
        for name in SYSCTLS_BESIDE_NET.into_iter().chain(["net.ipv4.tcp_sack", "net.core.rmem_max"]) {
            assert_eq!(usual.refuse_sysctl(name), None, "{name}");
        }
        for name in
            ["kernel.core_pattern", "kernel.modprobe", "vm.drop_caches", "net", "network.x", "fs.file-max"]
        {
            assert!(usual.refuse_sysctl(name).is_some(), "{name}");
            assert_eq!(Permissions { every_sysctl: true, ..usual }.refuse_sysctl(name), None, "{name}");
        }
    }
}
