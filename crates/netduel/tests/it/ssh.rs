//! Hosts of `launch = "ssh"`, with a real sshd on a loopback address of a network namespace of its own. Its users, keys and folders are
//! those of the test.
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use netduel_test_support::{NewNamespace, skip, write_program};
use rustix::process::{Pid, Signal};

use crate::support::{Bench, Finished, LATENCY, UnderWay, signal, signal_those_left, until};

mod agent;
mod compression;
mod ended_copy;
mod folder;
mod jump_host;
mod ordinary_user;
mod restart;
mod same_configuration;

/// sshd(8) is outside of the search path of ordinary users, and wants its own path as an absolute one.
const SSHD: &str = "/usr/sbin/sshd";
/// In a network namespace of its own no other program has it.
const PORT: u16 = 2222;
/// The folder of sshd's privilege separation is made at boot elsewhere.
const PREPARE: &str = "ip link set lo up\nmount -t tmpfs tmpfs /run\nmkdir -m 755 /run/sshd";

/// An sshd, and the configuration of its client.
struct Scene {
    // Before the folder of its files.
    sshd: Sshd,
    bench: Bench,
}

/// An sshd with the keys and the home of a scene.
struct Sshd(Child);

/// Runs a test in its namespace; says so where it cannot run.
#[track_caller]
fn with_sshd(test: &str, body: impl FnOnce(&Scene)) {
    if !rustix::process::geteuid().is_root() {
        return skip("sshd changes its user, for which it needs root");
    }
    if !Path::new(SSHD).exists() {
        return skip(
            "there is no sshd; it is in the package openssh-server, which also starts it as a service",
        );
    }
    NewNamespace { prepare: PREPARE, ..NewNamespace::default() }.run(test, || body(&Scene::new()));
}

impl Scene {
    fn new() -> Self {
        let bench = Bench::new();
        let at = |name: &str| bench.path().join(name).display().to_string();
        for folder in ["home", "bin", "client-bin", "tmp"] {
            fs::create_dir(bench.path().join(folder)).unwrap();
        }
        for key in ["host_key", "user_key", "other_key"] {
            let mut keygen = Command::new("ssh-keygen");
            keygen.args(["-q", "-t", "ed25519", "-N", "", "-f", &at(key)]);
            assert!(keygen.status().unwrap().success());
        }
        fs::copy(at("user_key.pub"), at("authorized_keys")).unwrap();
        let host_key = fs::read_to_string(at("host_key.pub")).unwrap();
        fs::write(at("known_hosts"), format!("[127.0.0.1]:{PORT} {host_key}vm2 {host_key}")).unwrap();
        let sshd = Sshd::start(&bench, "sshd", "127.0.0.1");
        let config = format!(
            "Host vm2\nHostKeyAlias vm2\nHost vm1 vm2\nHostName 127.0.0.1\nPort {PORT}\nUser root\nIdentityFile {}\nIdentitiesOnly yes\nIdentityAgent none\n\
             UserKnownHostsFile {}\nGlobalKnownHostsFile /dev/null\n",
            at("user_key"),
            at("known_hosts"),
        );
        fs::write(at("ssh_config"), config).unwrap();
        let scene = Self { sshd, bench };
        // ssh finds the configuration of a user by the password database, not by HOME.
        scene.program("client-bin/ssh", &format!("exec /usr/bin/ssh -F {} \"$@\"", scene.at("ssh_config")));
        // Without optimization the program is large, and takes seconds to compress.
        scene.program("bin/gzip", "exit 1");
        scene
    }

    /// Lets the hosts use the gzip of this machine, for a test of what is sent to them.
    fn use_gzip(&self) {
        fs::remove_file(self.at("bin/gzip")).unwrap();
    }

    fn at(&self, name: &str) -> String {
        self.bench.path().join(name).display().to_string()
    }

    fn program(&self, name: &str, script: &str) {
        write_program(self.at(name), format!("#!/bin/sh\n{script}\n"));
    }

    fn netduel(&self, words: &[&str]) -> Command {
        let mut command = self.bench.netduel(words);
        let path = std::env::var("PATH").unwrap();
        command.env("PATH", format!("{}:{path}", self.at("client-bin"))).env("TMPDIR", self.at("tmp"));
        command.env_remove("XDG_RUNTIME_DIR");
        command
    }

    fn run(&self, words: &[&str]) -> Finished {
        Finished::from(self.netduel(words).output().unwrap())
    }

    /// A plan with one host by ssh, the first in order: it holds the lock of the network namespace that both share. `keys` are added to it, and `treatment` to both arms.
    fn plan(&self, keys: &str, treatment: &str, blocks: u32) -> String {
        let arm = |name: &str| {
            let treatment = treatment.replace("NAME", name);
            format!(
                "[[arms]]\nname = \"{name}\"\nclient = \"vm1\"\nserver = \"workstation\"\ntreatments = [{treatment}]\n"
            )
        };
        let plan = self.bench.plan(&format!(
            "name = \"ssh\"\nquestion = \"Is it reached?\"\n[hosts.vm1]\nlaunch = \"ssh\"\nhost = \"vm1\"\n{keys}\n\
             [hosts.workstation]\nlaunch = \"local\"\naddresses = [\"127.0.0.1\"]\n{}{}{LATENCY}\n\
             [design]\nblocks_min = {blocks}\nblocks_max = {blocks}\n",
            arm("one"),
            arm("two"),
        ));
        plan.display().to_string()
    }

    /// A plan with two hosts by ssh, which copy the program to folders of their own. `treatment` is that of both arms.
    fn plan_of_two(&self, treatment: &str, blocks: u32) -> String {
        let host = |name: &str| {
            let folder = self.at(&format!("home/{name}"));
            format!("[hosts.{name}]\nlaunch = \"ssh\"\nhost = \"{name}\"\nfolder = \"{folder}\"\n")
        };
        let arm = |name: &str| {
            format!(
                "[[arms]]\nname = \"{name}\"\nclient = \"vm1\"\nserver = \"vm2\"\ntreatments = [{treatment}]\n"
            )
        };
        let plan = self.bench.plan(&format!(
            "name = \"two\"\nquestion = \"Are both reached?\"\n{}{}addresses = [\"127.0.0.1\"]\n{}{}{LATENCY}\n\
             [design]\nblocks_min = {blocks}\nblocks_max = {blocks}\n",
            host("vm1"),
            host("vm2"),
            arm("one"),
            arm("two"),
        ));
        plan.display().to_string()
    }

    /// Lets the first step on a host wait for that on another host, from now on.
    fn let_hosts_meet(&self) {
        let met = self.at("met");
        // It is there when they have met before.
        drop(fs::remove_dir_all(&met));
        fs::create_dir(&met).unwrap();
        self.program(
            "bin/uname",
            &format!(
                "touch {met}/$$\nwhile [ \"$(ls {met} | wc -l)\" -lt 2 ]; do sleep 0.02; done\nexec /usr/bin/uname \"$@\""
            ),
        );
    }

    /// The copies of the program below a folder.
    fn copies(&self, folder: &str) -> Vec<PathBuf> {
        let builds = fs::read_dir(self.at(folder)).into_iter().flatten().flatten();
        builds.map(|build| build.path().join("netduel")).collect()
    }

    /// The processes of sshd for connections.
    fn connections(&self) -> Vec<Pid> {
        self.sshd.connections()
    }

    /// Neither processes, nor connections, nor folders of sockets are left.
    fn assert_nothing_left(&self) {
        self.bench.assert_nothing_left();
        assert!(until(|| self.connections().is_empty()), "a connection is left");
        let left: Vec<_> = fs::read_dir(self.at("tmp")).unwrap().flatten().collect();
        assert!(left.is_empty(), "{left:?}");
    }
}

impl Sshd {
    /// Starts it; the name is that of its files. Its log is NAME.log.
    fn start(bench: &Bench, name: &str, address: &str) -> Self {
        Self::start_with_programs(bench, name, address, "/usr/bin:/bin:/usr/sbin:/sbin")
    }

    /// Starts it with a search path for its sessions, which follows the folder `bin`.
    fn start_with_programs(bench: &Bench, name: &str, address: &str, programs: &str) -> Self {
        let at = |name: &str| bench.path().join(name).display().to_string();
        let (config_file, log_file) = (at(&format!("{name}_config")), at(&format!("{name}.log")));
        let mut marked = Command::new("true");
        bench.mark(&mut marked);
        let marks = marked.get_envs().filter_map(|(name, value)| {
            Some(format!(" {}={}", name.to_str().unwrap(), value?.to_str().unwrap()))
        });
        let marks: String = marks.collect();
        let config = format!(
            "ListenAddress {address}:{PORT}\nHostKey {}\nAuthorizedKeysFile {}\nStrictModes no\nUsePAM no\n\
             PasswordAuthentication no\nKbdInteractiveAuthentication no\nPermitRootLogin yes\nPidFile none\n\
             SetEnv HOME={} PATH={}:{programs}{marks}\n",
            at("host_key"),
            at("authorized_keys"),
            at("home"),
            at("bin"),
        );
        fs::write(&config_file, config).unwrap();
        // It ends with the tests however they end: it overwrites its environment, which has the mark of the run, with its title.
        let sshd = Command::new("setpriv")
            .args(["--pdeathsig", "TERM", SSHD, "-D", "-e", "-f", &config_file])
            .stdin(Stdio::null())
            .stderr(fs::File::create(&log_file).unwrap())
            .spawn()
            .unwrap();
        let log = || fs::read_to_string(&log_file).unwrap();
        assert!(until(|| log().contains("Server listening")), "{}", log());
        Self(sshd)
    }

    /// Its processes for connections.
    fn connections(&self) -> Vec<Pid> {
        let parent = self.0.id().to_string();
        let entries = fs::read_dir("/proc").unwrap().flatten();
        let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
        let is_child = |pid: &i32| {
            let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
            status.lines().any(|line| line.strip_prefix("PPid:").is_some_and(|own| own.trim() == parent))
        };
        pids.filter(is_child).filter_map(Pid::from_raw).collect()
    }
}

impl Drop for Sshd {
    fn drop(&mut self) {
        // It may have ended.
        signal_those_left(self.connections(), Signal::KILL);
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

#[test]
fn run_over_ssh_copies_the_program_once_and_keeps_two_builds() {
    with_sshd("ssh::run_over_ssh_copies_the_program_once_and_keeps_two_builds", |scene| {
        scene.use_gzip();
        let folder = "home/.cache/netduel";
        for build in ["0.0.1-aaaaaaaaaaaaaaaa", "0.0.2-bbbbbbbbbbbbbbbb", "0.0.3-cccccccccccccccc", "notes"] {
            fs::create_dir_all(scene.at(&format!("{folder}/{build}"))).unwrap();
            fs::write(scene.at(&format!("{folder}/{build}/netduel")), "old").unwrap();
        }
        let plan = scene.plan("", "", 2);
        let first = scene.run(&["run", &plan]).expect_code(0);
        assert_eq!(first.stderr.matches("copying netduel (").count(), 1, "{}", first.stderr);
        assert_eq!(first.stderr.matches("valid").count(), 0, "{}", first.stderr);
        // Two builds and the folder that is no build.
        assert_eq!(scene.copies(folder).len(), 3, "{:?}", scene.copies(folder));
        assert!(scene.copies(folder).contains(&PathBuf::from(scene.at(&format!("{folder}/notes/netduel")))));
        scene.assert_nothing_left();

        let second = scene.run(&["run", &plan]).expect_code(0);
        assert!(!second.stderr.contains("cop"), "{}", second.stderr);

        let own = fs::read(env!("CARGO_BIN_EXE_netduel")).unwrap();
        let copy = scene.copies(folder).into_iter().find(|path| fs::read(path).unwrap() == own).unwrap();
        fs::write(&copy, &own[..own.len() / 2]).unwrap();
        let third = scene.run(&["inspect", "ssh:vm1", "--no-metadata", "--fail-on", "never"]).expect_code(0);
        assert!(third.stderr.contains("replacing a damaged copy"), "{}", third.stderr);
        assert_eq!(fs::read(&copy).unwrap(), own);
        scene.assert_nothing_left();
    });
}

/// The refusal of a run, as it is printed.
#[track_caller]
fn refusal(scene: &Scene, keys: &str) -> String {
    let plan = scene.plan(keys, "", 2);
    let refused = scene.run(&["run", &plan]).expect_code(3);
    scene.assert_nothing_left();
    refused.stderr
}

#[track_caller]
fn assert_names(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part:?} is missing in:\n{text}");
    }
}

#[test]
fn error_of_a_refused_connection_contains_the_message_of_ssh() {
    with_sshd("ssh::error_of_a_refused_connection_contains_the_message_of_ssh", |scene| {
        let known = fs::read_to_string(scene.at("known_hosts")).unwrap();
        fs::write(scene.at("known_hosts"), "").unwrap();
        assert_names(&refusal(scene, ""), &["Host key verification failed", "run `ssh vm1` once"]);

        let other = fs::read_to_string(scene.at("other_key.pub")).unwrap();
        fs::write(scene.at("known_hosts"), format!("[127.0.0.1]:{PORT} {other}")).unwrap();
        assert_names(
            &refusal(scene, ""),
            &["REMOTE HOST IDENTIFICATION HAS CHANGED", "ssh-keygen -R", "@@@@"],
        );

        fs::write(scene.at("known_hosts"), known).unwrap();
        fs::write(scene.at("authorized_keys"), other).unwrap();
        assert_names(&refusal(scene, ""), &["Permission denied (publickey)", "ssh-add"]);
    });
}

#[test]
fn two_hosts_are_prepared_at_the_same_time() {
    with_sshd("ssh::two_hosts_are_prepared_at_the_same_time", |scene| {
        // One of them compresses the program for both.
        scene.use_gzip();
        scene.let_hosts_meet();
        let plan = scene.plan_of_two("", 2);
        let first = scene.run(&["run", &plan]).expect_code(0);
        for host in ["vm1", "vm2"] {
            assert_names(&first.stderr, &[&format!("{host}: copying netduel ("), &format!("{host}: copied")]);
            assert_eq!(scene.copies(&format!("home/{host}")).len(), 1);
        }
        scene.assert_nothing_left();

        scene.let_hosts_meet();
        let words = ["inspect", "--plan", &plan, "--no-metadata", "--fail-on", "never"];
        scene.run(&words).expect_code(0);
        scene.assert_nothing_left();
    });
}

#[test]
fn first_host_that_fails_ends_the_preparation_of_the_others() {
    with_sshd("ssh::first_host_that_fails_ends_the_preparation_of_the_others", |scene| {
        // The first host in order answers when the run is over; the other one refuses.
        let (asked, go) = (scene.at("asked"), scene.at("go"));
        let wait = format!("touch {asked}; while [ ! -e {go} ]; do sleep 0.02; done");
        scene.program("bin/uname", &format!("{wait}\nexec /usr/bin/uname \"$@\""));
        let ssh = format!("exec /usr/bin/ssh -F {} \"$@\"", scene.at("ssh_config"));
        let late = format!("case $* in *'-- vm2 '*) while [ ! -e {asked} ]; do sleep 0.02; done;; esac");
        scene.program("client-bin/ssh", &format!("{late}\n{ssh}"));
        let known = fs::read_to_string(scene.at("known_hosts")).unwrap();
        fs::write(scene.at("known_hosts"), known.replace("vm2 ", "vm3 ")).unwrap();
        let refused = scene.run(&["run", &scene.plan_of_two("", 2)]).expect_code(3);
        assert_names(&refused.stderr, &["agent of host vm2", "Host key verification failed"]);
        assert!(!refused.stderr.contains("vm1"), "{}", refused.stderr);
        fs::write(go, "").unwrap();
        scene.assert_nothing_left();
    });
}

#[test]
fn sudo_runs_the_agent_unless_it_needs_a_password() {
    with_sshd("ssh::sudo_runs_the_agent_unless_it_needs_a_password", |scene| {
        scene.program("bin/sudo", "echo 'sudo: a password is required' >&2\nexit 1");
        assert_names(&refusal(scene, "sudo = true"), &["sudo: a password is required", "NOPASSWD"]);
        scene.program(
            "bin/sudo",
            &format!("[ \"$1\" = -n ] || exit 1\nshift\necho \"$@\" >>{}\nexec \"$@\"", scene.at("sudo.log")),
        );
        let plan = scene.plan("sudo = true", "", 2);
        scene.run(&["run", &plan]).expect_code(0);
        assert_names(&fs::read_to_string(scene.at("sudo.log")).unwrap(), &["/netduel agent"]);
        scene.assert_nothing_left();
    });
}

#[test]
fn other_machine_and_program_that_cannot_start_are_named() {
    with_sshd("ssh::other_machine_and_program_that_cannot_start_are_named", |scene| {
        scene.program("bin/uname", "echo Linux sparc64");
        assert_names(&refusal(scene, ""), &["machine sparc64", "--remote-program"]);
        scene.program("bin/uname", "echo Darwin arm64");
        assert_names(&refusal(scene, ""), &["Darwin", "Linux only"]);
        fs::remove_file(scene.at("bin/uname")).unwrap();

        // A program whose loader the host does not have.
        let mut program = fs::read("/bin/true").unwrap();
        let name = b"/lib64/ld-linux";
        let Some(at) = program.windows(name.len()).position(|part| part == name) else {
            return skip("/bin/true has another loader than that of glibc on x86-64");
        };
        program[at + 1..at + 4].copy_from_slice(b"xyz");
        fs::write(scene.at("foreign"), program).unwrap();
        let plan = scene.plan("", "", 2);
        let refused = scene.run(&["run", &plan, "--remote-program", &scene.at("foreign")]).expect_code(3);
        assert_names(
            &refused.stderr,
            &["does not start", "/xyz64/ld-linux", "not static", &scene.at("foreign")],
        );
        // It starts, and is no netduel of this version.
        let refused = scene.run(&["run", &plan, "--remote-program", "/bin/true"]).expect_code(3);
        assert_names(&refused.stderr, &["/bin/true was copied", "prints", env!("CARGO_PKG_VERSION")]);
        scene.assert_nothing_left();
    });
}

/// The second example of the README as it is printed, between two names of this machine; only its blocks are fewer and shorter.
#[test]
fn example_of_the_readme_runs_between_two_hosts() {
    with_sshd("ssh::example_of_the_readme_runs_between_two_hosts", |scene| {
        let readme = include_str!("../../../../README.md");
        let (_, plan) = readme.split_once("```toml\nname = \"eight\"").expect("the plan");
        let (plan, commands) = plan.split_once("```").expect("the end of the plan");
        fs::write(scene.at("eight.toml"), format!("name = \"eight\"{plan}")).unwrap();
        // The address of the server in the plan.
        let address = ["address", "add", "192.0.2.7/32", "dev", "lo"];
        assert!(Command::new("ip").args(address).status().unwrap().success());

        // The lines of the README as far as their comments.
        let words = |start: &str| -> Vec<&str> {
            let mut lines = commands.lines().filter_map(|line| line.strip_prefix("    netduel "));
            let line = lines.find(|line| line.starts_with(start)).expect(start);
            line.split('#').next().unwrap().split_whitespace().collect()
        };
        scene.run(&words("plan check eight.toml")).expect_code(0);
        let few = ["--set", "blocks_min=2", "--set", "blocks_max=2", "--set", "duration=\"500 ms\""];
        let run = scene.run(&[&words("run eight.toml --out report")[..], &few].concat()).expect_code(0);
        assert_names(&run.stderr, &["copied netduel"]);
        assert_names(&fs::read_to_string(scene.at("report/report.html")).unwrap(), &["eight TCP streams"]);
        scene.run(&words("report last --out report.md")).expect_code(0);
        assert_names(&fs::read_to_string(scene.at("report.md")).unwrap(), &["eight TCP streams", "bulk"]);
        scene.assert_nothing_left();
    });
}

#[test]
fn run_goes_on_after_a_lost_connection_and_waits_for_its_former_agent() {
    with_sshd("ssh::run_goes_on_after_a_lost_connection_and_waits_for_its_former_agent", |scene| {
        // From the second trial on the undo ends when the file is there: the former agent is undoing while the next one asks for the host.
        let (go, applied, undone) = (scene.at("go"), scene.at("applied"), scene.at("undone"));
        let apply = format!("echo NAME >>{applied}");
        let undo =
            format!("[ ! -s {undone} ] || while [ ! -e {go} ]; do sleep 0.02; done; echo NAME >>{undone}");
        let treatment = format!(
            "{{ command = [\"sh\", \"-c\", \"{apply}\"], undo = [\"sh\", \"-c\", \"{undo}\"], on = \"client\" }}"
        );
        let count = |file: &str| fs::read_to_string(file).unwrap_or_default().lines().count();
        let plan = scene.plan("", &treatment, 3);
        let mut under_way = UnderWay::start(scene.netduel(&["run", &plan, "--json"]));
        under_way.wait_for("trial   1/");
        assert!(until(|| count(&applied) > count(&undone)), "no treatment is in force");
        signal_those_left(scene.connections(), Signal::KILL);
        under_way.wait_for("host vm1 is ready");
        fs::write(&go, "").unwrap();
        let run = under_way.finish().expect_code(0);
        // The reason is in what the connection printed, not the session of the agent.
        assert_names(&run.stderr, &["trial   6/6", "host vm1 vanished", "; its connection ended with: "]);
        assert!(!run.stderr.contains("in use"), "{}", run.stderr);
        assert_eq!(count(&applied), count(&undone), "a treatment was not undone, or twice");
        scene.assert_nothing_left();
    });
}

#[test]
fn killed_coordinator_leaves_no_connection() {
    with_sshd("ssh::killed_coordinator_leaves_no_connection", |scene| {
        let plan = scene.plan("", "", 200);
        let mut under_way = UnderWay::start(scene.netduel(&["run", &plan]));
        under_way.wait_for("trial   1/");
        signal(under_way.pid(), Signal::KILL);
        assert_eq!(under_way.finish().code, None);
        scene.bench.assert_nothing_left();
        assert!(until(|| scene.connections().is_empty()), "a connection outlives its run");
        // The next one removes the folder of the sockets.
        scene.run(&["inspect", "ssh:vm1", "--no-metadata", "--fail-on", "never"]).expect_code(0);
        scene.assert_nothing_left();
    });
}
