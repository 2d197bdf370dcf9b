//! netduel outside of the guests, as a user has it on a workstation: its hosts are the guests, over ssh.
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use netduel_guests::{Bed, Prepared};
use netduel_test_support::{RealAz, write_program};
use serde_json::Value;

use super::pace::{Pace, Paces};
use super::{prepared, run_in_both};

/// The variable with a folder in which reports of beds are kept for people. Without it they go with their bed.
const KEPT: &str = "NETDUEL_KEEP_REPORTS";

/// The program, with the configuration of ssh of a bed.
pub struct Coordinator {
    netduel: PathBuf,
    folder: PathBuf,
    paces: Paces,
    /// The `az` of its commands, if it is the real one.
    real_az: Option<RealAz>,
}

/// What the program printed.
pub struct Printed {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Coordinator {
    /// For the guests of this bed, with this pace of its boot for the plans. Its files are in the bed's folder and go with it.
    pub fn new(bed: &mut Bed, pace: Pace) -> Self {
        let prepared: Prepared = prepared().unwrap();
        install(bed, &prepared);
        let folder = bed.folder().join("coordinator");
        fs::create_dir(&folder).unwrap();
        // ssh finds the configuration of a user by the password database, not by HOME.
        let ssh = folder.join("ssh");
        // The machines of the README and the public addresses of a bed are the guests.
        let config = fs::read_to_string(bed.ssh_config()).unwrap();
        let config = config
            .replace("Host a\n", "Host a vm1 192.0.2.7\n")
            .replace("Host b\n", "Host b vm2 192.0.2.8\n");
        let path = folder.join("ssh_config");
        fs::write(&path, config).unwrap();
        let script = format!("#!/bin/sh\nexec /usr/bin/ssh -F \"{}\" \"$@\"\n", path.display());
        write_program(&ssh, script);
        Self { netduel: prepared.netduel(), folder, paces: Paces::since_boot(pace), real_az: None }
    }

    /// Lets its commands use the real `az`, in the namespaces of the bed; false where that is not possible.
    #[track_caller]
    pub fn use_real_az(&mut self, bed: &Bed) -> bool {
        let folder = self.folder.join("azure");
        fs::create_dir(&folder).unwrap();
        self.real_az = RealAz::start(&folder, &|program: &Path| bed.command(program));
        self.real_az.is_some()
    }

    /// The real `az` of its commands.
    pub fn real_az(&self) -> Option<&RealAz> {
        self.real_az.as_ref()
    }

    /// The folder of its files.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Writes a plan, whose times are those of a quiet machine; returns its path.
    pub fn plan(&self, text: &str) -> String {
        let path = self.folder.join("plan.toml");
        fs::write(&path, self.paces.of_next_plan().plan(text)).unwrap();
        path.display().to_string()
    }

    /// The option that sets the duration of a workload, as it is on a quiet machine.
    pub fn duration(&self, text: &str) -> String {
        format!("duration=\"{}\"", self.paces.of_next_plan().time(text))
    }

    /// A rate, as it is on a quiet machine, for the next plan.
    pub fn rate(&self, rate: u64) -> u64 {
        self.paces.of_next_plan().rate(rate)
    }

    /// Writes a file into the folder that is the first of the program's search path; returns its path.
    pub fn file(&self, name: &str, text: &str) -> String {
        let path = self.folder.join(name);
        write_program(&path, text);
        path.display().to_string()
    }

    /// The program with these arguments, in the namespaces of the bed.
    pub fn command(&self, bed: &Bed, words: &[&str]) -> Command {
        let path = std::env::var("PATH").unwrap();
        let mut command = bed.command(&self.netduel);
        command
            .args(words)
            .env("PATH", format!("{}:{path}", self.folder.display()))
            .env("NETDUEL_STORE", self.folder.join("store"))
            .env("XDG_STATE_HOME", self.folder.join("state"))
            .stdin(Stdio::null());
        if let Some(az) = &self.real_az {
            az.surround(&mut command, &self.folder);
        }
        command
    }

    /// Runs it to its end.
    pub fn run(&self, bed: &Bed, words: &[&str]) -> Printed {
        Printed::from(self.command(bed, words).output().unwrap())
    }

    /// A run of a plan that ends with code 0; returns its report.
    #[track_caller]
    pub fn report(&self, bed: &Bed, plan: &str) -> Value {
        let plan = self.plan(plan);
        self.run(bed, &["run", &plan, "--json"]).expect_code(0).document()
    }

    /// The stored trials of the run of a report.
    #[track_caller]
    pub fn trials(&self, report: &Value) -> Vec<Value> {
        let name = format!("{}.netduel", report["run"]["id"].as_str().unwrap());
        let text = fs::read_to_string(self.folder.join("store").join(name)).unwrap();
        let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        lines.filter_map(|mut line| Some(line.get_mut("trial")?.take())).collect()
    }

    /// What `netduel inspect` knows of these targets.
    #[track_caller]
    pub fn inspect(&self, bed: &Bed, words: &[&str]) -> Value {
        let words: Vec<&str> = INSPECT.iter().chain(words).copied().collect();
        self.run(bed, &words).expect_code(0).document()
    }
}

/// Keeps the page of a folder with a report as NAME.html, where the variable names a place for it.
pub fn keep(report: &Path, name: &str) {
    let Some(kept) = std::env::var_os(KEPT).map(PathBuf::from) else { return };
    fs::create_dir_all(&kept).unwrap();
    fs::copy(report.join("report.html"), kept.join(format!("{name}.html"))).unwrap();
}

/// The words of `netduel inspect` for its document, whatever it finds.
pub const INSPECT: [&str; 5] = ["inspect", "--json", "--no-metadata", "--fail-on", "never"];

/// Both guests have the coordinator's build where it looks for one, so that only a test of the copy waits for a copy. A file system of a guest
/// with an older build gets a copy all the same: the checksum of the file counts.
fn install(bed: &mut Bed, prepared: &Prepared) {
    let printed = Command::new(prepared.netduel()).args(["agent", "--checksum"]).output().unwrap();
    let checksum = String::from_utf8(printed.stdout).unwrap();
    // The digits of the checksum that name a build.
    let folder = format!("~/.cache/netduel/{}-{}", env!("CARGO_PKG_VERSION"), &checksum[..16]);
    run_in_both(bed.guests(), |_| format!("mkdir -p {folder} && ln -s /bin/netduel {folder}/netduel"));
}

impl From<Output> for Printed {
    fn from(output: Output) -> Self {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        Self { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
    }
}

impl Printed {
    #[track_caller]
    pub fn expect_code(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "stdout:\n{}\nstderr:\n{}", self.stdout, self.stderr);
        self
    }

    /// The hosts that got a copy of the program.
    pub fn copies(&self) -> usize {
        self.stderr.matches("copying netduel (").count()
    }

    #[track_caller]
    pub fn document(&self) -> Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("{error}\n{}\n{}", self.stdout, self.stderr))
    }
}

/// A plan with the hosts `a` and `b`, whose data goes to `b` at this address. `arms` are pairs of a name and further keys of the arm.
pub fn plan(address: &str, arms: &[(&str, &str)], workloads: &str, blocks: u32) -> String {
    let arms = arms
        .iter()
        .map(|(name, keys)| format!("[[arms]]\nname = \"{name}\"\nclient = \"a\"\nserver = \"b\"\n{keys}\n"));
    format!(
        "name = \"guests\"\nquestion = \"Does it hold on real drivers?\"\n[hosts.a]\nlaunch = \"ssh\"\nhost = \"a\"\n\
         [hosts.b]\nlaunch = \"ssh\"\nhost = \"b\"\naddresses = [\"{address}\"]\n{}{workloads}\n\
         [design]\nblocks_min = {blocks}\nblocks_max = {blocks}\n",
        arms.collect::<String>()
    )
}

/// Round trips for a second, 100 of them, each of [`REQUEST_BYTES`]: little traffic beside that of ssh.
pub const FEW_ROUND_TRIPS: &str = "[[workloads]]\nname = \"rr\"\ntype = \"tcp-rr\"\nduration = \"1 s\"\n\
     request_rate = \"100 /s\"\nsize = \"64 B\"\n";
/// The bytes of a request of [`FEW_ROUND_TRIPS`].
pub const REQUEST_BYTES: u64 = 64;

/// The texts of the warnings of a report.
pub fn warnings(report: &Value) -> Vec<&str> {
    report["warnings"].as_array().unwrap().iter().map(|warning| warning["text"].as_str().unwrap()).collect()
}

/// Every trial counted, and no warning tells of other traffic or another path.
#[track_caller]
pub fn assert_all_valid(report: &Value, trials: u64) {
    assert_eq!(
        (report["trials_valid"].as_u64(), report["trials_excluded"].as_u64()),
        (Some(trials), Some(0)),
        "{:#}\n{:#}",
        report["warnings"],
        report["path_proofs"],
    );
}
