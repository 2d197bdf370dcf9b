//! What the user who runs a plan lets it do: programs that it names, and sysctls outside of the network. Pure; the settings that a plan has are
//! in `spec`.
use super::problem::one_of;
use super::resolved::ResolvedPlan;
use super::uses::HostUses;
use crate::shell;
use crate::sysctl::{BESIDE_NET, NET, is_permitted};

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
                shell::line(words)
            ),
            allowed: "read what it does, then leave out --no-commands".to_owned(),
        })
    }

    /// Why a sysctl may not be changed; `None` when it may.
    pub(super) fn refuse_sysctl(self, name: &str) -> Option<Forbidden> {
        let is_permitted = self.every_sysctl || is_permitted(name);
        (!is_permitted).then(|| Forbidden {
            wrong: format!("changes {name:?}, which is no sysctl of the network"),
            allowed: format!(
                "without further permission a plan changes {NET}* and {}; to permit all sysctls of this plan, add --allow-sysctl",
                one_of(BESIDE_NET)
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
    fn sysctls_of_the_network_and_of_the_table_need_no_permission() {
        let usual = Permissions::default();
        for name in BESIDE_NET.into_iter().chain(["net.ipv4.tcp_sack", "net.core.rmem_max"]) {
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
