//! A host that is reached with a key of the user's ssh-agent(1), and as the user and at the port of the plan.
use std::fs;
use std::process::{Child, Command, Stdio};

use super::{PORT, Scene, assert_names, with_sshd};
use crate::support::{Finished, until};

const SOCKET_VARIABLE: &str = "SSH_AUTH_SOCK";

/// An ssh-agent with the user's key. A shell ends it at the end of its input, which comes with the end of the test, however that ends.
struct Agent {
    shell: Child,
    socket: String,
}

impl Agent {
    fn start(scene: &Scene) -> Self {
        let socket = scene.at("agent");
        let script = format!("ssh-agent -D -a {socket} > /dev/null & read -r line; kill $!; wait");
        let shell = Command::new("sh").args(["-c", &script]).stdin(Stdio::piped()).spawn().unwrap();
        let agent = Self { shell, socket };
        let takes_key = || {
            let mut add = Command::new("ssh-add");
            add.args(["-q", &scene.at("user_key")]).env(SOCKET_VARIABLE, &agent.socket);
            add.stdin(Stdio::null()).stderr(Stdio::null()).status().unwrap().success()
        };
        assert!(until(takes_key), "ssh-agent has not taken the key");
        agent
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        drop(self.shell.stdin.take());
        drop(self.shell.wait());
    }
}

#[test]
fn key_of_an_agent_and_user_and_port_of_the_plan_are_used() {
    with_sshd("ssh::agent::key_of_an_agent_and_user_and_port_of_the_plan_are_used", |scene| {
        // Its settings alone reach no host.
        let config = format!(
            "Host vm1\nHostName 127.0.0.1\nUser nobody\nPort 1\nIdentityFile none\nUserKnownHostsFile {}\n\
             GlobalKnownHostsFile /dev/null\n",
            scene.at("known_hosts")
        );
        fs::write(scene.at("ssh_config"), config).unwrap();
        let plan = scene.plan(&format!("user = \"root\"\nport = {PORT}"), "", 2);
        let without_agent = scene.netduel(&["run", &plan]).env_remove(SOCKET_VARIABLE).output().unwrap();
        let refused = Finished::from(without_agent).expect_code(3);
        assert_names(&refused.stderr, &["Permission denied (publickey)"]);

        let agent = Agent::start(scene);
        let with_agent = scene.netduel(&["run", &plan]).env(SOCKET_VARIABLE, &agent.socket).output().unwrap();
        let run = Finished::from(with_agent).expect_code(0);
        assert_names(&run.stderr, &["copied netduel", "trial   4/4"]);
        drop(agent);
        scene.assert_nothing_left();
    });
}
