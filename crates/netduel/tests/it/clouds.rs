//! The commands of the plan for AWS, by the real AWS CLI against moto, a server on loopback that stands for AWS. The CLI checks their form, and moto
//! that the network interface exists; it does not keep the setting of ENA Express. `cargo xtask test clouds` installs both.
use std::ffi::OsStr;
use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, ChildStderr, Command, Stdio};

use netduel_model::plan::{TreatmentAction, parse};
use netduel_test_support::not_requested;

use crate::support::{Bench, Finished};

/// The folder with `aws` and `moto_server`, set by xtask.
const FOLDER_VARIABLE: &str = "NETDUEL_AWS_FOLDER";
const PLAN: &str = include_str!("../../../../plans/aws-ena-express.toml");
/// The network interfaces that the plan names.
const NAMED: [&str; 2] = ["eni-11111111111111111", "eni-22222222222222222"];

/// moto, which ends with this.
struct Moto {
    programs: PathBuf,
    bench: Bench,
    server: Child,
    /// Its log: without a reader it could not write.
    _log: BufReader<ChildStderr>,
    endpoint: String,
}

impl Drop for Moto {
    fn drop(&mut self) {
        // It may have ended.
        drop(self.server.kill());
        drop(self.server.wait());
    }
}

impl Moto {
    fn start(programs: PathBuf) -> Self {
        let bench = Bench::new();
        let mut server = Command::new(programs.join("moto_server"));
        bench.mark(&mut server);
        // The kernel chooses the port, which the log names.
        server.args(["-H", "127.0.0.1", "-p", "0"]).stdin(Stdio::null()).stdout(Stdio::null());
        let mut server = server.stderr(Stdio::piped()).spawn().unwrap();
        let mut log = BufReader::new(server.stderr.take().unwrap());
        let mut seen = String::new();
        let endpoint = loop {
            let mut line = String::new();
            assert!(log.read_line(&mut line).unwrap() > 0, "moto ended:\n{seen}");
            if let Some((_, address)) = line.split_once("Running on ") {
                break address.trim().to_owned();
            }
            seen.push_str(&line);
        };
        Self { programs, bench, server, _log: log, endpoint }
    }

    /// Runs `aws` with these arguments.
    fn aws<S: AsRef<OsStr>>(&self, words: &[S]) -> Finished {
        let mut aws = Command::new(self.programs.join("aws"));
        self.bench.mark(&mut aws);
        aws.args(words)
            .env("HOME", self.bench.path())
            .env("AWS_ENDPOINT_URL", &self.endpoint)
            .env("AWS_ACCESS_KEY_ID", "x")
            .env("AWS_SECRET_ACCESS_KEY", "x")
            .env("AWS_DEFAULT_REGION", "us-east-1")
            .env("AWS_PAGER", "")
            .env("NO_PROXY", "127.0.0.1")
            .stdin(Stdio::null());
        Finished::from(aws.output().unwrap())
    }

    /// What `aws ec2` answers to this, as a word.
    #[track_caller]
    fn word(&self, words: &[&str], query: &str) -> String {
        let words = [&["ec2"][..], words, &["--query", query, "--output", "text"]].concat();
        self.aws(&words).expect_code(0).stdout.trim().to_owned()
    }
}

/// Every command and undo of the plan, in its order.
fn commands() -> Vec<Vec<String>> {
    let plan = parse(PLAN, "aws-ena-express.toml").unwrap_or_else(|errors| panic!("{errors}"));
    let treatments = plan.arms.into_iter().flat_map(|arm| arm.treatments);
    treatments
        .flat_map(|treatment| match treatment.action {
            TreatmentAction::Command { command, undo } => [command, undo],
            other => panic!("{other:?}"),
        })
        .collect()
}

#[test]
fn aws_cli_takes_the_commands_of_the_plan_for_ena_express() {
    let Some(programs) = std::env::var_os(FOLDER_VARIABLE).map(PathBuf::from) else {
        return not_requested("the AWS CLI against moto; run `cargo xtask test clouds`");
    };
    let moto = Moto::start(programs);
    let subnet = moto.word(&["describe-subnets"], "Subnets[0].SubnetId");
    let make = ["create-network-interface", "--subnet-id", &subnet];
    let made = NAMED.map(|_| moto.word(&make, "NetworkInterface.NetworkInterfaceId"));
    let commands = commands();
    // Two arms, two interfaces, each with an undo.
    assert_eq!(commands.len(), 8);
    for command in &commands {
        let (program, words) = command.split_first().unwrap();
        assert_eq!(program, "aws");
        let refused = moto.aws(words).stderr;
        assert!(refused.contains("InvalidNetworkInterfaceID.NotFound"), "{command:?}: {refused}");
        let named = |word: &String| word.replace(NAMED[0], &made[0]).replace(NAMED[1], &made[1]);
        let words: Vec<String> = words.iter().map(named).collect();
        moto.aws(&words).expect_code(0);
        let misspelt = |word: &String| word.replace("EnaSrdEnabled", "EnaSrd");
        let words: Vec<String> = words.iter().map(misspelt).collect();
        let refused = moto.aws(&words).stderr;
        assert!(refused.contains("Unknown parameter"), "{words:?}: {refused}");
    }
}
