//! What a resolved plan does to its hosts, and what of it a user can forbid: a stored run has no text to name a line of.
use netduel_model::plan::{HostUses, Permissions, ResolvedPlan, SshHost, parse_with};

const EVERYTHING: Permissions = Permissions { commands: true, every_sysctl: true };

fn plan(far: &str, treatments: &str, workload: &str) -> ResolvedPlan {
    let arm = |name: &str| {
        format!("[[arms]]\nname = \"{name}\"\nclient = \"a\"\nserver = \"b\"\ntreatments = [{treatments}]\n")
    };
    let text = format!(
        "name = \"x\"\nquestion = \"?\"\n[hosts.a]\nlaunch = \"local\"\n[hosts.b]\n{far}\naddresses = [\"192.0.2.1\"]\n{}{}\
         [[workloads]]\nname = \"w\"\n{workload}\n",
        arm("one"),
        arm("other")
    );
    parse_with(&text, "p", &[], EVERYTHING).unwrap_or_else(|errors| panic!("{text}\n{errors}"))
}

const LOCAL: &str = "launch = \"local\"";
const SSH: &str = "launch = \"command\"\ncommand = [\"ssh\", \"b\"]";
const TCP: &str = "type = \"tcp-stream\"";
const DPDK: &str = "type = \"pps\"\ngenerator = \"dpdk\"";

#[test]
fn each_thing_is_listed_once_at_the_hosts_that_it_is_done_to() {
    let treatments = "{ command = [\"x\"], undo = [\"y\"], on = \"server\" }, { sysctl = \"net.ipv4.tcp_sack\", value = \"0\" }, \
        { mtu = 1400, interface = \"eth0\", on = \"client\" }";
    let plan = plan(SSH, treatments, TCP);
    let uses = plan.uses();
    let [a, b] = uses.as_slice() else { panic!("{uses:?}") };
    assert_eq!((a.launcher(), a.commands.len(), a.sysctls.len(), a.treatments.len()), (None, 0, 1, 1));
    assert_eq!(b.launcher(), Some(["ssh".to_owned(), "b".to_owned()].as_slice()));
    assert_eq!(
        (b.commands.len(), b.sysctls.as_slice(), b.treatments.len()),
        (1, [("net.ipv4.tcp_sack".to_owned(), "0".to_owned())].as_slice(), 0)
    );
    assert_eq!(
        (b.commands[0].words.as_slice(), b.commands[0].undo.as_slice()),
        (["x".to_owned()].as_slice(), ["y".to_owned()].as_slice())
    );
}

#[test]
fn settings_of_a_host_need_root_there_and_programs_may_not() {
    for (treatments, expected) in [
        ("", [false, false]),
        ("{ mtu = 1400, interface = \"eth0\", on = \"client\" }", [true, false]),
        ("{ sysctl = \"net.ipv4.tcp_sack\", value = \"0\", on = \"server\" }", [false, true]),
        ("{ command = [\"x\"], undo = [\"y\"] }", [false, false]),
    ] {
        let plan = plan(LOCAL, treatments, TCP);
        let needs: Vec<bool> = plan.uses().iter().map(HostUses::needs_root).collect();
        assert_eq!(needs, expected, "{treatments}");
    }
}

#[test]
fn host_by_ssh_is_root_by_sudo_or_by_the_user_of_the_plan() {
    let host =
        |host: &str, user: Option<&str>| SshHost { user: user.map(str::to_owned), ..SshHost::of(host) };
    for (ssh, expected) in [
        (host("h", None), false),
        (SshHost { sudo: true, ..host("h", None) }, true),
        (host("h", Some("root")), true),
        (host("root@h", None), true),
        (host("ssh://root@h:22", None), true),
        (host("me@h", None), false),
        (host("root@h", Some("me")), false),
    ] {
        assert_eq!(ssh.is_root(), expected, "{ssh:?}");
    }
}

#[test]
fn programs_of_a_stored_plan_are_refused_with_the_host() {
    let without = Permissions { commands: false, ..EVERYTHING };
    let command = "{ command = [\"x\", \"y\"], undo = [\"z\"], on = \"client\" }";
    let arguments = format!("{DPDK}\ndpdk = {{ args = [\"--burst=64\"] }}");
    for (plan, expected) in [
        (plan(LOCAL, "", TCP), None),
        (plan(SSH, "", TCP), Some(("b", "runs `ssh b`"))),
        (plan(LOCAL, command, TCP), Some(("a", "runs `x y`"))),
        (plan(LOCAL, "", &arguments), Some(("a", "runs `dpdk-testpmd --burst=64`"))),
        // testpmd itself is the choice of netduel.
        (plan(LOCAL, "", DPDK), None),
    ] {
        assert_eq!(EVERYTHING.refuse(&plan), None);
        match (without.refuse(&plan), expected) {
            (None, None) => {}
            (Some((host, forbidden)), Some((named, wrong))) => {
                assert!(host == named && forbidden.wrong.starts_with(wrong), "{host}: {forbidden:?}");
            }
            (refused, _) => panic!("{refused:?} in place of {expected:?}"),
        }
    }
}

#[test]
fn sysctls_of_a_stored_plan_need_the_permission_again() {
    let changing =
        |name: &str| plan(LOCAL, &format!("{{ sysctl = \"{name}\", value = \"1\", on = \"server\" }}"), TCP);
    assert_eq!(Permissions::default().refuse(&changing("net.ipv4.tcp_sack")), None);
    let (host, forbidden) =
        Permissions::default().refuse(&changing("kernel.core_pattern")).expect("it is refused");
    assert_eq!(host, "b");
    assert!(
        forbidden.wrong.contains("kernel.core_pattern") && forbidden.allowed.contains("--allow-sysctl"),
        "{forbidden:?}"
    );
}
