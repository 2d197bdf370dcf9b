//! `test exports`: tests that read what netduel exports with the means of others: JUnit XML after the schema of Jenkins, which is fetched, and
//! Parquet files with pandas, which is installed into a folder below target with what executes notebooks.
use anyhow::Result;
use netduel_test_support::{REQUIRE_ALL, SKIPPED};

use crate::test_run::Variable;
use crate::workspace::requires_all;
use crate::{jenkins_schema, repeat, virtual_environment};

/// Below the target folder; another list of packages needs another name.
const FOLDER: &str = "target/exports-python-1";
/// What the notebook imports, and what executes it.
const PACKAGES: [&str; 4] = ["pandas==2.3.3", "pyarrow==22.0.0", "nbclient==0.10.2", "ipykernel==7.1.0"];
/// The variable that names the folder with the program `python` to the tests.
const FOLDER_VARIABLE: &str = "NETDUEL_PYTHON_FOLDER";
/// The variable that names a further schema of JUnit XML to the tests.
const SCHEMA_VARIABLE: &str = "NETDUEL_JUNIT_XSD";

/// Fetches the schema and installs the packages, then runs the tests of JUnit XML, and those of Parquet files with the feature `parquet`. The
/// arguments are those of `cargo xtask test`. Where something cannot be fetched, as without a network, its tests are skipped.
pub fn test(arguments: &[String]) -> Result<bool> {
    let is_valid = match jenkins_schema::fetch() {
        Err(error) if !requires_all() => {
            println!("{SKIPPED} the schema of Jenkins: {error:#}; a failure with {REQUIRE_ALL}=1");
            true
        }
        fetched => {
            let schema = fetched?;
            // Of the whole workspace: a part of it has other features of the libraries, and is built for minutes.
            let words = ["--workspace", "--test", "it", "pipelines"];
            run(&words, arguments, &[(SCHEMA_VARIABLE, schema.as_os_str())])?
        }
    };
    let programs = match virtual_environment::prepare(FOLDER, &PACKAGES) {
        Err(error) if !requires_all() => {
            println!("{SKIPPED} the tests of Parquet files: {error:#}; a failure with {REQUIRE_ALL}=1");
            return Ok(is_valid);
        }
        prepared => prepared?,
    };
    // The feature has libraries of its own, with which most crates are built anew: only those that the program needs.
    let words = ["-p", "netduel", "--features", "parquet", "--test", "it", "parquet"];
    Ok(run(&words, arguments, &[(FOLDER_VARIABLE, programs.as_os_str())])? && is_valid)
}

fn run(words: &[&str], arguments: &[String], variables: &[Variable<'_>]) -> Result<bool> {
    let mut words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    words.extend_from_slice(arguments);
    repeat::run(&words, variables)
}
