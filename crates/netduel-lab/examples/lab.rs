//! A lab from the command line: `lab up NAME [RULES [CAP [MTU [QUEUES]]]]`, `lab down NAME`, `lab status NAME`, `lab path NAME
//! synthetic|accelerated|direct`, `lab exec NAME HOST PROGRAM...`, `lab list`, `lab hold NAME` (attached, until standard input
//! ends). It is its own keeper.
use std::ffi::OsString;
use std::io::{Read, Write};
use std::process::ExitCode;

use netduel_lab::{KeeperCommand, Lab, LabError, Lifetime, keeper_main};
use netduel_model::ids::LabName;
use netduel_model::plan::resolved;
use netduel_model::plan::spec::LabPath;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if words.first().is_some_and(|word| word == "lab-keeper") {
        return code(keeper_main(&words[1..]));
    }
    match run(&words) {
        Ok(status) => code(status),
        Err(error) => {
            eprintln!("failed to {error}");
            ExitCode::from(3)
        }
    }
}

fn code(status: i32) -> ExitCode {
    ExitCode::from(u8::try_from(status).unwrap_or(255))
}

fn usage() -> i32 {
    eprintln!(
        "usage: lab up|hold NAME [RULES [CAP [MTU [QUEUES]]]] | down|status NAME | path NAME PATH | perform NAME EVENT GUEST | restore NAME | exec NAME HOST ARGV | list"
    );
    2
}

fn spec(words: &[String]) -> Option<resolved::Lab> {
    let rules = words.first().map_or(Some(600), |word| word.parse().ok())?;
    let cap = match words.get(1).map(String::as_str) {
        None | Some("none") => None,
        Some(text) => Some(text.parse().ok()?),
    };
    let mtu = words.get(2).map_or(Some(1500), |word| word.parse().ok())?;
    let queues = words.get(3).map_or(Some(1), |word| word.parse().ok())?;
    Some(resolved::Lab { rules, cap, mtu, queues })
}

fn path_of(word: &str) -> LabPath {
    match word {
        "synthetic" => LabPath::Synthetic,
        "accelerated" => LabPath::Accelerated,
        _ => LabPath::Direct,
    }
}

fn run(words: &[String]) -> Result<i32, LabError> {
    let keeper = KeeperCommand { program: "/proc/self/exe".into(), words: vec!["lab-keeper".to_owned()] };
    let texts: Vec<&str> = words.iter().map(String::as_str).collect();
    let name = |text: &str| LabName::new(text).ok();
    match texts.as_slice() {
        ["list"] => {
            for name in netduel_lab::list()? {
                println!("{name}");
            }
            Ok(0)
        }
        [verb @ ("up" | "hold"), lab, ..] => {
            let (Some(name), Some(spec)) = (name(lab), spec(&words[2..])) else { return Ok(usage()) };
            let lifetime = if *verb == "up" { Lifetime::Standing } else { Lifetime::Attached };
            let lab = Lab::up(&name, &spec, lifetime, &keeper)?;
            println!("keeper {}", lab.status()?.keeper_pid);
            let _ = std::io::stdout().flush();
            if lifetime == Lifetime::Attached {
                let _ = std::io::stdin().read_to_end(&mut Vec::new());
            }
            Ok(0)
        }
        ["down", lab] => {
            name(lab).map_or_else(|| Ok(usage()), |name| Lab::connect(&name)?.down().map(|()| 0))
        }
        ["status", lab] => name(lab).map_or_else(
            || Ok(usage()),
            |name| {
                let status = Lab::connect(&name)?.status()?;
                let json = serde_json::to_string_pretty(&status).expect("a status is plain data");
                println!("{json}");
                Ok(0)
            },
        ),
        ["path", lab, path @ ("synthetic" | "accelerated" | "direct")] => name(lab).map_or_else(
            || Ok(usage()),
            |name| {
                let path = path_of(path);
                let lab = Lab::connect(&name)?;
                let begin = netduel_sys::clock::monotonic_ns();
                lab.set_path(path)?;
                println!("{} us", (netduel_sys::clock::monotonic_ns() - begin) / 1_000);
                Ok(0)
            },
        ),
        ["perform", lab, kind, guest] => name(lab).map_or_else(
            || Ok(usage()),
            |name| {
                let Ok(kind) = serde_json::from_value((*kind).into()) else { return Ok(usage()) };
                let done = Lab::connect(&name)?.perform(kind, guest)?;
                println!("{}", serde_json::to_string(&done).expect("what was done is plain data"));
                Ok(0)
            },
        ),
        ["restore", lab] => {
            name(lab).map_or_else(|| Ok(usage()), |name| Lab::connect(&name)?.restore().map(|()| 0))
        }
        ["exec", lab, host, ..] => name(lab).map_or_else(
            || Ok(usage()),
            |name| {
                let argv: Vec<OsString> = std::env::args_os().skip(4).collect();
                netduel_lab::exec(&name, host, &argv)
            },
        ),
        _ => Ok(usage()),
    }
}
