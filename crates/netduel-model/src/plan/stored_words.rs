//! Whether the words of a stored plan that start agents, or become arguments of `az`, are those that a plan file may have: a run file may be
//! from elsewhere, and nothing has checked its plan. The rules are those of the check of a plan file. Names of sysctls and interfaces are not
//! judged here: agents check those that they receive.
use crate::ids::HostName;
use crate::json_text::quoted;
use crate::lab;
use crate::plan::resolved::{Host, Launch, ResolvedPlan, SshHost, TreatmentAction};
use crate::resource_name::{is_name, is_resource};
use crate::socket_name::SocketName;

impl ResolvedPlan {
    /// The first word of a stored plan that no plan file may have, as a clause; `None` when it has none.
    pub fn misplaced_word(&self) -> Option<String> {
        let of_host = |(name, host): (&HostName, &Host)| {
            Some(format!("the launcher of its host {name} has {}", host.launch.misplaced_word()?))
        };
        let mut treatments = self.arms.iter().flat_map(|arm| &arm.treatments);
        let of_treatments = || treatments.find_map(|treatment| treatment.action.misplaced_word());
        self.hosts.iter().find_map(of_host).or_else(of_treatments)
    }
}

impl Launch {
    /// Whether a word is the file name of a named network namespace.
    pub(crate) fn is_namespace(word: &str) -> bool {
        !word.is_empty() && !matches!(word, "." | "..") && !word.contains(['/', '\0'])
    }

    fn misplaced_word(&self) -> Option<String> {
        match self {
            Self::Local | Self::Command { .. } => None,
            Self::Lab { guest } => {
                refused(guest, lab::GUESTS.contains(&guest.as_str()), "a guest of the lab")
            }
            Self::Netns { name } => {
                refused(name, Self::is_namespace(name), "the name of a network namespace")
            }
            Self::Paired { address } => {
                refused(address, SocketName::parse(address).is_some(), "HOST or HOST:PORT")
            }
            Self::Bed { vm, folder, .. } => {
                refused(vm, is_name(vm), "the name of a VM").or_else(|| misplaced_folder(folder.as_deref()))
            }
            Self::Ssh(ssh) => {
                let mut words = [Some(&ssh.host), ssh.user.as_ref()].into_iter().flatten();
                words
                    .find_map(|word| refused(word, SshHost::is_plain_word(word), "a host or user for ssh"))
                    .or_else(|| misplaced_folder(ssh.folder.as_deref()))
            }
        }
    }
}

impl TreatmentAction {
    fn misplaced_word(&self) -> Option<String> {
        let (name, further) = match self {
            Self::AzureNic { nic, resource_group, .. } => (nic, [resource_group.as_ref(), None]),
            Self::AzurePlacement { vm, group, resource_group } => {
                (vm, [Some(group), resource_group.as_ref()])
            }
            _ => return None,
        };
        let mut names = std::iter::once(name).chain(further.into_iter().flatten());
        names
            .find_map(|name| refused(name, is_resource(name), "the name of an Azure resource"))
            .map(|wrong| format!("a treatment has {wrong}"))
    }
}

fn misplaced_folder(folder: Option<&str>) -> Option<String> {
    let folder = folder?;
    refused(folder, SshHost::is_folder(folder), "a folder of a host")
}

fn refused(word: &str, is_allowed: bool, what: &str) -> Option<String> {
    (!is_allowed).then(|| format!("{:?}, which is not {what}", quoted(word)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::parse;

    const PLAN: &str = "name = \"x\"\nquestion = \"?\"\n[hosts.a]\nlaunch = \"local\"\n[hosts.b]\nlaunch = \"local\"\n\
        addresses = [\"192.0.2.1\"]\n[[arms]]\nname = \"p\"\nclient = \"a\"\nserver = \"b\"\n[[arms]]\nname = \"q\"\nclient = \"a\"\n\
        server = \"b\"\nset = { streams = 2 }\n[[workloads]]\nname = \"w\"\ntype = \"tcp-stream\"\n";

    fn with(launch: Launch) -> Option<String> {
        let mut plan = parse(PLAN, "plan.toml").unwrap();
        plan.hosts.values_mut().next().unwrap().launch = launch;
        plan.misplaced_word()
    }

    #[test]
    fn launchers_that_a_plan_file_may_have_are_those_that_a_stored_plan_may_have() {
        let (user, folder) = (Some("me".to_owned()), Some("~/n".to_owned()));
        let ssh = SshHost { user, folder, ..SshHost::of("vm1") };
        for launch in [
            Launch::Local,
            Launch::Lab { guest: "a".to_owned() },
            Launch::Netns { name: "far".to_owned() },
            Launch::Command { prefix: vec!["kubectl".to_owned(), "-x".to_owned()] },
            Launch::Ssh(ssh),
            Launch::Ssh(SshHost::of("me@[fd00::1]")),
            Launch::Paired { address: "[fd00::1]:5210".to_owned() },
            Launch::Bed { vm: "vm1".to_owned(), sudo: true, folder: None },
        ] {
            assert_eq!(with(launch.clone()), None, "{launch:?}");
        }
    }

    #[test]
    fn word_of_a_launcher_that_no_plan_file_may_have_is_named() {
        let ssh = SshHost::of("vm1");
        let text = |text: &str| Some(text.to_owned());
        for (launch, word) in [
            (Launch::Lab { guest: "--lab=x".to_owned() }, "--lab=x"),
            (Launch::Netns { name: "../x".to_owned() }, "../x"),
            (Launch::Ssh(SshHost::of("-oProxyCommand=x")), "-oProxyCommand=x"),
            (Launch::Ssh(SshHost::of("vm1;x")), "vm1;x"),
            (Launch::Ssh(SshHost { user: text("$(x)"), ..ssh.clone() }), "$(x)"),
            (Launch::Ssh(SshHost { folder: text("x/y"), ..ssh }), "x/y"),
            (Launch::Paired { address: "--help".to_owned() }, "--help"),
            (Launch::Bed { vm: "-x".to_owned(), sudo: true, folder: None }, "-x"),
        ] {
            let wrong = with(launch).unwrap();
            assert!(wrong.starts_with("the launcher of its host a has ") && wrong.contains(word), "{wrong}");
        }
        let long = with(Launch::Netns { name: "/".repeat(1 << 20) }).unwrap();
        assert!(long.len() < 1000, "{} bytes", long.len());
    }

    #[test]
    fn name_of_a_resource_that_no_plan_file_may_have_is_named() {
        let nic = |nic: &str, resource_group: Option<&str>| TreatmentAction::AzureNic {
            nic: nic.to_owned(),
            resource_group: resource_group.map(str::to_owned),
            accelerated: true,
        };
        let placement = |group: &str| TreatmentAction::AzurePlacement {
            vm: "vm1".to_owned(),
            group: group.to_owned(),
            resource_group: None,
        };
        for (action, is_allowed) in [
            (nic("vm1-test", Some("mine")), true),
            (nic("--ids", None), false),
            (nic("vm1-test", Some("@x")), false),
            (placement("near"), true),
            (placement("@/etc/passwd"), false),
        ] {
            assert_eq!(action.misplaced_word().is_none(), is_allowed, "{action:?}");
        }
    }
}
