//! The options of netduel leave what the user's configuration says of a host and of its jump hosts: `ssh -G` prints the same with and without
//! them. No host is connected.
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use netduel_test_support::{NewNamespace, skip, write_program};

use crate::support::Bench;

/// The configurations name addresses that no test connects to.
const SSH: &str = "/usr/bin/ssh";
/// ssh canonicalizes a name that has an address; it looks up the name with a dot at its end.
const PREPARE: &str = "mount -t tmpfs tmpfs /run\necho '10.1.1.1 vm1.example.test vm1.example.test.' >/run/hosts\n\
                       mount --bind /run/hosts /etc/hosts";

const CANONICAL: &str = "CanonicalizeHostname yes\nCanonicalDomains example.test\n";

/// A folder with a configuration, and a program `ssh` that connects to nothing.
struct Scene(Bench);

impl Scene {
    fn new(config: &str) -> Self {
        let scene = Self(Bench::new());
        for folder in ["bin", "words", "tmp"] {
            fs::create_dir(scene.0.path().join(folder)).unwrap();
        }
        fs::write(scene.at("ssh_config"), config).unwrap();
        // It records its words. ssh starts its ProxyCommand, which is this program again, and ends when that ends.
        let real = format!("exec {SSH} -F {} \"$@\"", scene.at("ssh_config"));
        write_program(
            scene.at("bin/ssh"),
            format!(
                "#!/bin/sh\nfor word in \"$@\"; do [ \"$word\" != -G ] || {real}; done\n\
                 printf '%s\\n' \"$@\" >{}/$$\n\
                 case \"$*\" in *ProxyCommand=*) {real};; esac\nexit 255\n",
                scene.at("words")
            ),
        );
        scene
    }

    fn at(&self, name: &str) -> String {
        self.0.path().join(name).display().to_string()
    }

    /// The words of the ssh processes of netduel to vm1 and its jump hosts, by host.
    fn words(&self) -> BTreeMap<String, Vec<String>> {
        let path = format!("{}:{}", self.at("bin"), std::env::var("PATH").unwrap());
        let mut netduel = self.0.netduel(["inspect", "ssh:vm1", "--no-metadata", "--fail-on", "never"]);
        netduel.env("PATH", path).env("TMPDIR", self.at("tmp")).env("SHELL", "/bin/sh");
        // No host is reached.
        drop(netduel.env_remove("XDG_RUNTIME_DIR").output().unwrap());
        let records = fs::read_dir(self.at("words")).unwrap().flatten();
        let of_record = |record: fs::DirEntry| {
            let text = fs::read_to_string(record.path()).unwrap();
            let mut words: Vec<String> = text.lines().map(str::to_owned).collect();
            let end = words.iter().position(|word| word == "--").expect("a destination");
            // A command follows the host.
            words.truncate(end + 2);
            (words[end + 1].clone(), words)
        };
        records.map(of_record).collect()
    }

    /// What `ssh -G` prints of a host.
    fn facts(&self, words: &[String]) -> Vec<String> {
        let mut ssh = Command::new(SSH);
        let output = ssh.args(["-F", &self.at("ssh_config"), "-G"]).args(words).output().unwrap();
        assert!(output.status.success(), "{words:?}: {output:?}");
        let is_compared = |line: &&str| {
            ["user ", "hostname ", "port ", "identityfile "].iter().any(|key| line.starts_with(key))
        };
        let text = String::from_utf8(output.stdout).unwrap();
        text.lines().filter(is_compared).map(str::to_owned).collect()
    }
}

/// User, port and host of these words, as a person writes them.
fn destination(words: &[String]) -> Vec<String> {
    let end = words.len() - 2;
    let named = words[..end].windows(2).filter(|two| two[0] == "-l" || two[0] == "-p");
    named.flatten().cloned().chain(words[end..].iter().cloned()).collect()
}

#[test]
fn user_and_name_and_keys_of_each_host_are_those_of_the_configuration() {
    if !Path::new(SSH).exists() {
        return skip("there is no ssh; it is in the package openssh-client");
    }
    let test = "ssh::same_configuration::user_and_name_and_keys_of_each_host_are_those_of_the_configuration";
    NewNamespace { prepare: PREPARE, ..NewNamespace::default() }.run(test, || {
        let canonical = |jump: &str, rest: &str| {
            format!("{CANONICAL}{jump}Host *.example.test\nUser alice\nIdentityFile /keys/alice\n{rest}")
        };
        let cases: [(String, &[&str], &str); 5] = [
            (
                "Host vm1\nProxyJump bastion\nMatch final host vm1\nUser alice\nIdentityFile /keys/final\n"
                    .to_owned(),
                &["bastion", "vm1"],
                "user alice",
            ),
            (canonical("", "ProxyJump bastion\n"), &["bastion", "vm1"], "hostname vm1.example.test"),
            // ssh does not canonicalize the name of a host that has a jump host before.
            (canonical("Host vm1\nProxyJump bastion\n", ""), &["bastion", "vm1"], "hostname vm1"),
            (
                "Host vm1\nProxyJump a,u@b:7\nHost a\nPort 2200\nHost b\nUser other\nIdentityFile /keys/b\n"
                    .to_owned(),
                &["a", "b", "vm1"],
                "hostname vm1",
            ),
            (
                "Host bastion\nProxyJump none\nUser root\nHost *\nProxyJump bastion\nUser bob\n".to_owned(),
                &["bastion", "vm1"],
                "user bob",
            ),
        ];
        for (config, hosts, expected) in cases {
            let scene = Scene::new(&config);
            let words = scene.words();
            assert_eq!(words.keys().collect::<Vec<_>>(), hosts, "{config}");
            for (host, own) in &words {
                assert_eq!(scene.facts(own), scene.facts(&destination(own)), "{host} of:\n{config}{own:?}");
            }
            assert!(scene.facts(&words["vm1"]).contains(&expected.to_owned()), "{config}");
            scene.0.assert_nothing_left();
        }
    });
}
