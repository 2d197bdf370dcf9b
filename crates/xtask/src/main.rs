//! `cargo xtask <check|test|tidy|bless|fuzz|bench|guests|dist|setup>`: checks, tests, benches, files for installation and set-up of this workspace.
//!
//! It needs a Rust toolchain only. It must not import a crate of the product, because it has to build and check when the product
//! does not compile.
#![forbid(unsafe_code)]

mod azure;
mod bench;
mod binaries;
mod bless;
mod busy;
mod check;
mod clouds;
mod dist;
mod exports;
mod fuzz;
mod guests;
mod jenkins_schema;
mod leftovers;
mod licences;
mod reduction;
mod repeat;
mod setup;
mod step;
mod stopwatch;
mod test_run;
mod tidy;
mod transcript;
mod virtual_environment;
mod warden;
mod workspace;

use std::process::ExitCode;

use anyhow::Result;

const USAGE: &str = "\
usage: cargo xtask <command>

  check           everything that CI runs: format, lints, tidy, documentation, licences, tests, fuzzing
  test [ARGS]     install what tests need, run all tests, list what was skipped, look for what was left behind;
                  ARGS narrow it down as with `cargo test`, for example `-p netduel-model`
    --repeat N    run the suite without guests N times and name every test that was not green every time;
                  `cargo xtask test guests --repeat N --busy` is for the tests in guests
    --busy        run it beside two busy loops
  test guests     prepare and run the tests in guests with real NIC drivers, and no others; takes ARGS, --repeat and --busy
  test azure      install the Azure CLI below target (730 MB) and run the tests with it; part of `check` in CI
                  and with REQUIRE_ALL=1, no part of `test`
  test exports    fetch the schema of Jenkins and validate JUnit XML with it; install pandas below target (400 MB) and read Parquet
                  files and the example notebook with it; part of `check` as the tests of azure are
  test clouds     install the AWS CLI and moto, which stands for AWS, below target, and run the commands of the plan for AWS
                  with them; part of no other command
  tidy            the rules of this workspace that no other tool knows
  bless           write golden files, schemas, reference pages and snapshots of tests anew, and list what changed
  fuzz --quick    every fuzz target for up to a minute; `cargo xtask fuzz --help` for longer runs
  bench [NAME]    macro benches: a table, and one line in target/bench.jsonl
  bench peers     our engines against other tools; `cargo xtask bench peers --help` for its options
  guests          prepare such guests, or boot a scene of them: `cargo xtask guests --help`
  dist [MACHINE]  make the files for installation in target/dist, and check them; `cargo xtask dist --help`
  setup           install the system packages that tests need (Debian, Ubuntu)

REQUIRE_ALL=1 or CI=true makes a failure of each skip.
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (command, rest) = match arguments.split_first() {
        Some((command, rest)) => (command.as_str(), rest),
        None => ("", &[][..]),
    };
    let passed = match (command, rest) {
        ("check", []) => Ok(check::run()),
        ("test", [word, rest @ ..]) if word == "guests" => guests::test(rest),
        ("test", [word, rest @ ..]) if word == "azure" => azure::test(rest),
        ("test", [word, rest @ ..]) if word == "exports" => exports::test(rest),
        ("test", [word, rest @ ..]) if word == "clouds" => clouds::test(rest),
        ("test", [word]) if word == "dist" => dist::compiles(),
        ("test", []) => guests::test_all(),
        ("test", rest) => repeat::run(rest, &[]),
        ("guests", rest) => guests::run(rest),
        ("tidy", []) => tidy::run(),
        ("bless", []) => bless::run(),
        ("fuzz", rest) => fuzz::run(rest),
        ("bench", rest) => bench::run(rest),
        ("dist", rest) => dist::run(rest),
        (warden::COMMAND, [mark]) => warden::watch(mark),
        ("setup", []) => setup::run().map(|()| true),
        ("help" | "--help" | "-h", _) => {
            print!("{USAGE}");
            Ok(true)
        }
        _ => {
            eprint!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    exit_code(passed)
}

/// With `Ok(false)` the reason is already printed.
fn exit_code(passed: Result<bool>) -> ExitCode {
    match passed {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}
