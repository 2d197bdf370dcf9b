//! `bench`: the macro benches of the binary. Collects their figures; measures nothing itself.
//!
//! A bench is a `[[bench]]` with `harness = false`, or a program. It prints one line for each figure: `figure NAME VALUE UNIT`,
//! for example `figure control-cpu-share 0.4 %`. All other output is for readers.
use std::fs::OpenOptions;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::stopwatch::Stopwatch;
use crate::{setup, step, workspace};

/// The file with the figures of all runs, one line each, relative to the root of the workspace.
const HISTORY: &str = "target/bench.jsonl";

/// A macro bench.
struct Bench {
    /// Its name here and in the manifest.
    name: &'static str,
    /// What its figures measure.
    what: &'static str,
    /// Its crate.
    package: &'static str,
    /// Its cargo target.
    form: Form,
}

/// The kind of a bench's cargo target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// A `[[bench]]`, which takes no arguments and is run with all others.
    Target,
    /// A `[[bench]]` with its own command line. It takes long, so it runs only by name, and it ends with this program.
    LongTarget,
    /// The program of a crate with its own command line. It takes long, so it runs only by name, and it ends with this program.
    Program {
        /// Whether it compares netduel with programs of system packages.
        needs_packages: bool,
    },
}

/// All macro benches. A new one is a line here and a file `benches/NAME.rs` in its crate, or a crate with a program.
const BENCHES: [Bench; 11] = [
    Bench {
        name: "aa",
        what: "how many of 200 comparisons of a path with itself have a false verdict or a false warning (about six minutes)",
        package: "netduel",
        form: Form::Target,
    },
    Bench {
        name: "compare-aa",
        what: "false alarms of gates between stored runs, and losses that they catch (about fifteen minutes)",
        package: "netduel",
        form: Form::Target,
    },
    Bench {
        name: "overhead",
        what: "CPU that the control channel and the observers cost a trial, and that of the live view",
        package: "netduel",
        form: Form::Target,
    },
    Bench {
        name: "precision",
        what: "delays of queues and rates of token buckets of known size, each as a share of the truth (about three minutes)",
        package: "netduel",
        form: Form::Target,
    },
    Bench {
        name: "schedule",
        what: "time to lay out a schedule of 10,000 trials",
        package: "netduel",
        form: Form::Target,
    },
    Bench {
        name: "search",
        what: "the search for the rate without loss against a sweep of all rates (about eight minutes)",
        package: "netduel",
        form: Form::Target,
    },
    Bench {
        name: "kill",
        what: "kill -9 of random processes in random phases of runs, and what is left: --kills N, --seed N, --from N",
        package: "netduel",
        form: Form::LongTarget,
    },
    Bench {
        name: "attack",
        what: "changed run files and plans, and names of another user: --flips N, --plans N, --names N, --seed N",
        package: "netduel",
        form: Form::LongTarget,
    },
    Bench {
        name: "siege",
        what: "quick tests with and without 10,000 strangers at the server's port: --pairs N, --seconds N",
        package: "netduel",
        form: Form::LongTarget,
    },
    Bench {
        name: "peers",
        what: "our engines against iperf3, sockperf, qperf, nuttcp, neper and testpmd",
        package: "netduel-bench",
        form: Form::Program { needs_packages: true },
    },
    Bench {
        name: "simulate",
        what: "whole runs in virtual time, each with faults from a seed: --seeds N, --from N, --seed N",
        package: "netduel-simulation",
        form: Form::Program { needs_packages: false },
    },
];

/// A figure that a bench printed.
#[derive(Debug, Clone, PartialEq)]
struct Figure {
    name: String,
    value: f64,
    unit: String,
}

/// Runs all benches, or the named one with the arguments after its name; `false` when one failed.
pub fn run(words: &[String]) -> Result<bool> {
    let (only, arguments) = match words.split_first() {
        Some((name, arguments)) => (Some(name.as_str()), arguments),
        None => (None, &[][..]),
    };
    let is_chosen = |bench: &&Bench| only.map_or(bench.form == Form::Target, |name| name == bench.name);
    let chosen: Vec<&Bench> = BENCHES.iter().filter(is_chosen).collect();
    if chosen.is_empty() {
        let names: Vec<&str> = BENCHES.iter().map(|bench| bench.name).collect();
        bail!("there is no such bench; there are: {}", names.join(", "));
    }
    if let Some(bench) = chosen.iter().find(|bench| bench.form == Form::Target && !arguments.is_empty()) {
        bail!("the bench {} takes no arguments", bench.name);
    }
    let mut all_passed = true;
    let mut figures = Vec::new();
    for bench in chosen {
        println!("\n== {}: {}", bench.name, bench.what);
        match run_one(bench, arguments) {
            Ok(found) => figures.extend(found.into_iter().map(|figure| (bench.name, figure))),
            Err(error) => {
                println!("{error:#}");
                all_passed = false;
            }
        }
    }
    print_table(&figures);
    if !figures.is_empty() {
        append(&json_line(commit().as_deref(), &figures))?;
    }
    Ok(all_passed)
}

fn run_one(bench: &Bench, arguments: &[String]) -> Result<Vec<Figure>> {
    let mut command = match bench.form {
        Form::Target | Form::LongTarget => {
            let mut command = step::cargo(["bench", "--package", bench.package, "--bench", bench.name]);
            if bench.form == Form::LongTarget {
                command.args(["--", "--lifeline"]).args(arguments).stdin(Stdio::piped());
            }
            command
        }
        Form::Program { needs_packages } => {
            if needs_packages {
                setup::run()?;
            }
            let mut command =
                step::cargo(["run", "--quiet", "--release", "--package", bench.package, "--", "--lifeline"]);
            command.args(arguments).stdin(Stdio::piped());
            command
        }
    };
    println!("$ {}", step::shown(&command));
    let watch = Stopwatch::start();
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .with_context(|| format!("failed to start `{}`", step::shown(&command)))?;
    // The kernel closes the other end of its lifeline when this program ends, whatever the cause.
    let lifeline = child.stdin.take();
    let mut text = String::new();
    for line in BufReader::new(child.stdout.take().context("stdout is a pipe")?).lines() {
        let line = line.context("failed to read what the bench prints")?;
        println!("{line}");
        text += &line;
        text.push('\n');
    }
    let status = child.wait().context("failed to wait for the bench")?;
    drop(lifeline);
    println!("took {watch}");
    if !status.success() {
        bail!("the bench failed: {status}");
    }
    let figures = figures_of(&text)?;
    if figures.is_empty() && arguments.is_empty() {
        bail!("the bench printed no line `figure NAME VALUE UNIT`");
    }
    Ok(figures)
}

fn figures_of(text: &str) -> Result<Vec<Figure>> {
    text.lines()
        .filter_map(|line| Some((line, line.strip_prefix("figure ")?)))
        .map(|(line, rest)| {
            let words: Vec<&str> = rest.split_whitespace().collect();
            let [name, value, unit] = words[..] else { bail!("not `figure NAME VALUE UNIT`: {line}") };
            let value: f64 = value.parse().with_context(|| format!("not a number in: {line}"))?;
            if !value.is_finite() {
                bail!("not a finite number in: {line}");
            }
            Ok(Figure { name: name.to_owned(), value, unit: unit.to_owned() })
        })
        .collect()
}

fn print_table(figures: &[(&str, Figure)]) {
    if figures.is_empty() {
        return;
    }
    println!("\n{:<12}{:<48}{:>14} unit", "bench", "figure", "value");
    for (bench, figure) in figures {
        println!("{bench:<12}{:<48}{:>14} {}", figure.name, figure.value, figure.unit);
    }
}

/// The measured commit, marked when files differ from it; absent outside a repository.
fn commit() -> Option<String> {
    let output = Command::new("git")
        .args(["describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"])
        .current_dir(workspace::root())
        .stdin(Stdio::null())
        .output()
        .ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn json_line(commit: Option<&str>, figures: &[(&str, Figure)]) -> String {
    let commit = commit.map_or_else(|| "null".to_owned(), json_text);
    let cores =
        std::thread::available_parallelism().map_or_else(|_| "null".to_owned(), |cores| cores.to_string());
    let entries: Vec<String> = figures
        .iter()
        .map(|(bench, figure)| {
            format!(
                "{{\"bench\":{},\"name\":{},\"value\":{},\"unit\":{}}}",
                json_text(bench),
                json_text(&figure.name),
                figure.value,
                json_text(&figure.unit)
            )
        })
        .collect();
    format!("{{\"commit\":{commit},\"cores\":{cores},\"figures\":[{}]}}", entries.join(","))
}

/// A JSON string (RFC 8259 section 7).
fn json_text(text: &str) -> String {
    let mut json = String::from("\"");
    for character in text.chars() {
        match character {
            '"' | '\\' => json.extend(['\\', character]),
            control if control < ' ' => json.extend(format!("\\u{:04x}", u32::from(control)).chars()),
            other => json.push(other),
        }
    }
    json.push('"');
    json
}

fn append(line: &str) -> Result<()> {
    let path = workspace::root().join(HISTORY);
    let mut file = OpenOptions::new()
        .create(true)
        .append(true)
        .open(&path)
        .with_context(|| format!("failed to open {}", path.display()))?;
    writeln!(file, "{line}").with_context(|| format!("failed to write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(name: &str, value: f64, unit: &str) -> Figure {
        Figure { name: name.into(), value, unit: unit.into() }
    }

    #[test]
    fn figures_are_parsed_among_other_lines() {
        let text = "Warming up\nfigure cpu-share 0.4 %\nfigures follow\nfigure gap 31.5 ms\n";
        assert_eq!(figures_of(text).unwrap(), [figure("cpu-share", 0.4, "%"), figure("gap", 31.5, "ms")]);
    }

    #[test]
    fn non_numeric_figure_is_rejected() {
        for text in ["figure a NaN s", "figure a fast s", "figure a 1", "figure a 1 s more"] {
            assert!(figures_of(text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_line_is_json_with_the_commit() {
        let line = json_line(Some("abc-dirty"), &[("overhead", figure("a\"b", 0.5, "%"))]);
        assert!(line.starts_with("{\"commit\":\"abc-dirty\",\"cores\":"), "{line}");
        let entry = "{\"bench\":\"overhead\",\"name\":\"a\\\"b\",\"value\":0.5,\"unit\":\"%\"}";
        assert!(line.ends_with(&format!(",\"figures\":[{entry}]}}")), "{line}");
    }
}
