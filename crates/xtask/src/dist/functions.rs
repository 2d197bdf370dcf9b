//! Uses a program as a user does: host inspection, a plan, and a quick test over loopback. It judges no rate: an emulator is slow.
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::machine::Machine;
use super::system::{output_of, remake};
use crate::workspace;

/// A plan that needs neither hosts nor devices.
const PLAN: &str = "plans/streams.toml";

/// A plan with two agents of this machine, which are processes of the program.
const RUN: &str = r#"
name = "dist"
question = "Does the program run a plan?"
hosts = { a = { launch = "local" }, b = { launch = "local", addresses = ["127.0.0.1"] } }
arms = [{ name = "one", client = "a", server = "b" }, { name = "two", client = "a", server = "b", set = { streams = 2 } }]
workloads = [{ name = "bulk", type = "tcp-stream", duration = "500 ms" }]
design = { blocks_min = 2, blocks_max = 2 }
"#;

/// What is used, and where.
#[derive(Debug)]
pub struct Functions<'a> {
    /// That of the program.
    pub machine: Machine,
    /// The program.
    pub program: &'a Path,
    /// A folder for what the program stores, which is made anew.
    pub scratch: &'a Path,
}

/// Ends the server however the test ends.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        // It ends by itself after its test.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Functions<'_> {
    /// Tries all of them; a line for people.
    pub fn check(&self) -> Result<String> {
        remake(self.scratch)?;
        self.inspects().context("the program does not inspect this host")?;
        self.checks_a_plan().context("the program does not check a plan")?;
        self.measures().context("the program does not measure over loopback")?;
        self.runs_a_plan().context("the program does not run a plan")?;
        Ok("inspects a host, checks a plan, measures TCP over loopback, and runs a plan with two agents"
            .to_owned())
    }

    fn inspects(&self) -> Result<()> {
        let words = ["inspect", "--json", "--no-metadata", "--fail-on", "never"];
        let document = document(self.netduel().args(words))?;
        let architecture = &document["hosts"][0]["facts"]["architecture"];
        // The kernel is that of this machine, also below an emulator.
        ensure!(architecture == std::env::consts::ARCH, "it is a host with the architecture {architecture}");
        Ok(())
    }

    fn checks_a_plan(&self) -> Result<()> {
        let plan = workspace::root().join(PLAN);
        let document = document(self.netduel().args(["plan", "check", "--json"]).arg(plan))?;
        ensure!(document["trials_per_block"].as_u64() > Some(0), "the plan has no trials");
        Ok(())
    }

    fn runs_a_plan(&self) -> Result<()> {
        let plan = self.scratch.join("plan.toml");
        fs::write(&plan, RUN).with_context(|| format!("failed to write {}", plan.display()))?;
        let document = document(self.netduel().args(["run", "--json"]).arg(plan))?;
        let arms = &document["workloads"][0]["metrics"][0]["arms"];
        let arms = arms.as_array().context("the run has no result")?;
        let rates = arms.iter().filter(|arm| arm["median"].as_f64() > Some(0.0)).count();
        ensure!(rates == 2, "the run has a rate for {rates} arms and not for both");
        Ok(())
    }

    fn measures(&self) -> Result<()> {
        let words = ["serve", "--json", "--bind", "127.0.0.1", "--port", "0", "--ephemeral", "--one-off"];
        let mut serve = self.netduel();
        serve.args(words).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut server = Server(serve.spawn().context("failed to start the server")?);
        let mut line = String::new();
        let output = server.0.stdout.take().context("the server has no output")?;
        BufReader::new(output).read_line(&mut line).context("failed to read from the server")?;
        let ready: Value =
            serde_json::from_str(&line).with_context(|| format!("the server printed {line:?}"))?;
        let pairing =
            ready["pairings"][0]["string"].as_str().context("the server printed no pairing string")?;
        let test = document(self.netduel().args(["tcp", pairing, "--time", "1", "--json"]))?;
        let rate = &test["tests"][0]["metrics"][0]["value"];
        ensure!(rate.as_f64() > Some(0.0), "the rate is {rate}");
        Ok(())
    }

    fn netduel(&self) -> Command {
        let mut command = self.machine.command(&self.program.to_string_lossy());
        command.env("XDG_STATE_HOME", self.scratch).env("NETDUEL_STORE", self.scratch);
        command
    }
}

fn document(command: &mut Command) -> Result<Value> {
    serde_json::from_slice(&output_of(command)?).context("the program printed no JSON document")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn program_without_functions_is_refused() {
        let machine = Machine::ALL.into_iter().find(|machine| machine.is_native()).unwrap();
        let scratch = tempfile::tempdir().unwrap();
        // It succeeds whatever its arguments are.
        let functions = Functions { machine, program: Path::new("true"), scratch: scratch.path() };
        assert_eq!(functions.check().unwrap_err().to_string(), "the program does not inspect this host");
    }
}
