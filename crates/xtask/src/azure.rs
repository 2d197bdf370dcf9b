//! `test azure`: installs the Azure CLI into a folder below target, and runs the tests that need the real one. Nothing else is installed.
use anyhow::Result;
use netduel_test_support::{REQUIRE_ALL, SKIPPED};

use crate::workspace::requires_all;
use crate::{repeat, virtual_environment};

/// Below the target folder; the version in its name makes another version a new folder.
const FOLDER: &str = "target/azure-cli-2.91.0";
/// The version that the tests were written with.
const PACKAGE: &str = "azure-cli==2.91.0";
/// The variable that names the folder with the program `az` to the tests.
const FOLDER_VARIABLE: &str = "NETDUEL_AZ_FOLDER";

/// Installs `az`, then runs its tests. The arguments are those of `cargo xtask test`. Where `az` cannot be installed, as without a network, the
/// tests are skipped.
pub fn test(arguments: &[String]) -> Result<bool> {
    let programs = match virtual_environment::prepare(FOLDER, &[PACKAGE]) {
        Err(error) if !requires_all() => {
            println!("{SKIPPED} the tests with the real az: {error:#}; a failure with {REQUIRE_ALL}=1");
            return Ok(true);
        }
        prepared => prepared?,
    };
    let mut words: Vec<String> = ["-p", "netduel", "--test", "it", "real_az"].map(str::to_owned).to_vec();
    words.extend_from_slice(arguments);
    repeat::run(&words, &[(FOLDER_VARIABLE, programs.as_os_str())])
}
