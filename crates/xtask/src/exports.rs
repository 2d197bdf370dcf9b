//! `test exports`: installs pandas and what executes notebooks into a folder below target, and runs the tests that read Parquet files with them.
use anyhow::Result;
use netduel_test_support::{REQUIRE_ALL, SKIPPED};

use crate::workspace::requires_all;
use crate::{repeat, virtual_environment};

/// Below the target folder; another list of packages needs another name.
const FOLDER: &str = "target/exports-python-1";
/// What the notebook imports, and what executes it.
const PACKAGES: [&str; 4] = ["pandas==2.3.3", "pyarrow==22.0.0", "nbclient==0.10.2", "ipykernel==7.1.0"];
/// The variable that names the folder with the program `python` to the tests.
const FOLDER_VARIABLE: &str = "NETDUEL_PYTHON_FOLDER";

/// Installs the packages, then runs the tests with the feature `parquet`. The arguments are those of `cargo xtask test`. Where they cannot be
/// installed, as without a network, the tests are skipped.
pub fn test(arguments: &[String]) -> Result<bool> {
    let programs = match virtual_environment::prepare(FOLDER, &PACKAGES) {
        Err(error) if !requires_all() => {
            println!("{SKIPPED} the tests of Parquet files: {error:#}; a failure with {REQUIRE_ALL}=1");
            return Ok(true);
        }
        prepared => prepared?,
    };
    let words = ["-p", "netduel", "--features", "parquet", "--test", "it", "parquet"];
    let mut words: Vec<String> = words.map(str::to_owned).to_vec();
    words.extend_from_slice(arguments);
    repeat::run(&words, &[(FOLDER_VARIABLE, programs.as_os_str())])
}
