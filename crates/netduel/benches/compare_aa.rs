//! Gates between stored runs, by the commands of a pipeline: how many of 20 comparisons of a path with itself fail, and how many of 5 losses of
//! a tenth are caught. Fails when more comparisons than the level allows fail, or a loss is missed.
//!
//! Each comparison is of two runs of the same plan in the lab, one directly after the other, the first of them as a baseline file. The gate
//! fails at a regression of 5 %. Verdicts "higher" and "lower" of all sizes are counted beside it: two runs share no block, so these contain
//! what changed between the runs of the machine. `NETDUEL_COMPARE_AA=N` makes N comparisons and N losses; then nothing is judged.
#[path = "support/binomial.rs"]
mod binomial;

use std::path::Path;
use std::process::{Command, Output, Stdio};

use binomial::interval;
use serde_json::Value;

/// Comparisons of a path with itself.
const COMPARISONS: u32 = 20;
/// Comparisons with a loss of a tenth.
const LOSSES: u32 = 5;
/// The variable with another number of both.
const VARIABLE: &str = "NETDUEL_COMPARE_AA";
/// The accepted probability of a false verdict of a command, with a confidence of 95 %.
const LEVEL: f64 = 0.05;
/// The exit code of a failed gate.
const GATE_FAILED: i32 = 11;
/// The rate of the wire, and a tenth less.
const RATES: [&str; 2] = ["100 Mbit/s", "90 Mbit/s"];

fn main() {
    let asked =
        std::env::var(VARIABLE).ok().map(|text| text.parse::<u32>().expect("a number of comparisons"));
    let [comparisons, losses] = [COMPARISONS, LOSSES].map(|own| asked.unwrap_or(own));
    let (mut failed, mut differing) = (0, 0);
    for number in 0..comparisons {
        let (code, verdicts) = compared(RATES[0], RATES[0]);
        failed += u64::from(code == GATE_FAILED);
        let is_different =
            verdicts.iter().any(|verdict| verdict.starts_with("higher") || verdict.starts_with("lower"));
        differing += u64::from(is_different);
        println!("compare-aa: comparison {}: exit code {code}; {}", number + 1, verdicts.join("; "));
    }
    let mut caught = 0;
    for number in 0..losses {
        let (code, verdicts) = compared(RATES[0], RATES[1]);
        caught += u32::from(code == GATE_FAILED);
        println!("compare-aa: loss {}: exit code {code}; {}", number + 1, verdicts.join("; "));
    }
    let (low, high) = interval(u64::from(comparisons), failed);
    println!(
        "compare-aa: {failed} of {comparisons} comparisons of a path with itself fail the gate: at least {:.1} %, at most {:.1} % (exact binomial \
         interval, 95 %); accepted: {:.0} %; {differing} have a verdict \"higher\" or \"lower\" of any size",
        low * 100.0,
        high * 100.0,
        LEVEL * 100.0
    );
    println!("compare-aa: {caught} of {losses} losses of a tenth are caught by a gate at 5 %");
    println!("figure false-alarms {failed} comparisons");
    println!("figure different-runs {differing} comparisons");
    println!("figure losses-caught {caught} losses");
    if asked.is_some() {
        println!("compare-aa: not judged: {VARIABLE} is set");
        return;
    }
    assert!(low <= LEVEL, "more false alarms than the level allows");
    assert_eq!(caught, losses, "a loss of a tenth was missed");
}

/// Two runs with these rates, the first as a baseline file: the exit code of the gate, and kind and words of each verdict.
fn compared(before: &str, after: &str) -> (i32, Vec<String>) {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let at = folder.path();
    measured(at, before);
    let baseline = netduel(at, &["runs", "baseline", "last", "--out", "baseline.json"]);
    assert!(baseline.status.success(), "{}", String::from_utf8_lossy(&baseline.stderr));
    measured(at, after);
    let gate = ["--fail-if", "throughput < -5 %", "--fail-if", "latency-p50 > 5 %", "--json"];
    let output = netduel(at, &[&["compare", "baseline.json", "last"][..], &gate].concat());
    let code = output.status.code().expect("an exit code");
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(code == 0 || code == GATE_FAILED, "{code}: {words}");
    let document: Value = serde_json::from_slice(&output.stdout).expect("a document");
    let each = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let metrics = each(&document["comparisons"]).into_iter().flat_map(|one| each(&one["metrics"]));
    let verdicts = metrics.flat_map(|metric| each(&metric["comparisons"])).map(|one| {
        let of = |key: &str| one["verdict"][key].as_str().unwrap_or_default().to_owned();
        format!("{} {}", of("kind"), of("text"))
    });
    (code, verdicts.collect())
}

/// A run with this rate of the wire, stored in the folder.
fn measured(folder: &Path, rate: &str) {
    // A plan has two arms at least; an A/A run has its arm twice.
    let plan = format!(
        "name = \"gate\"\nquestion = \"Is the path as before?\"\n[lab]\ncap = \"{rate}\"\n[hosts.a]\nlaunch = \"lab\"\n[hosts.b]\nlaunch = \"lab\"\n\
         [[arms]]\nname = \"path\"\nclient = \"a\"\nserver = \"b\"\n\
         [[workloads]]\nname = \"bulk\"\ntype = \"tcp-stream\"\nduration = \"500 ms\"\ncongestion = \"cubic\"\nmetrics = [\"throughput\"]\n\
         [[workloads]]\nname = \"rr\"\ntype = \"tcp-rr\"\nduration = \"200 ms\"\nmetrics = [\"latency-p50\"]\n\
         [design]\naa = true\nblocks_min = 8\nblocks_max = 8\n"
    );
    std::fs::write(folder.join("plan.toml"), plan).expect("the plan can be written");
    let run = netduel(folder, &["run", "plan.toml", "--quiet"]);
    assert!(run.status.success(), "the run failed: {}\n{}", run.status, String::from_utf8_lossy(&run.stderr));
}

/// The program with these arguments and a store in this folder.
fn netduel(folder: &Path, words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_netduel"));
    command.args(words).current_dir(folder).env("NETDUEL_STORE", folder.join("store"));
    // In a workflow of GitHub commands print more.
    command.env_remove("GITHUB_ACTIONS").stdin(Stdio::null()).output().expect("the program can be started")
}
