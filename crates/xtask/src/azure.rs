//! `test azure`: installs the Azure CLI into a folder below target, and runs the tests that need the real one. Some of them run in guests, which
//! are prepared for them. Nothing else is installed.
use anyhow::Result;
use netduel_test_support::{AZ_FOLDER_VARIABLE, REQUIRE_ALL, SKIPPED};

use crate::workspace::requires_all;
use crate::{guests, repeat, virtual_environment};

/// The version of the Azure CLI that the tests were written with.
const VERSION: &str = "2.91.0";

/// Installs `az`, then runs its tests. The arguments are those of `cargo xtask test`. Where `az` cannot be installed, as without a network, the
/// tests are skipped.
pub fn test(arguments: &[String]) -> Result<bool> {
    // The version in the name makes another version a new folder.
    let folder = format!("target/azure-cli-{VERSION}");
    let package = format!("azure-cli=={VERSION}");
    let programs = match virtual_environment::prepare(&folder, &[package.as_str()]) {
        Err(error) if !requires_all() => {
            println!("{SKIPPED} the tests with the real az: {error:#}; a failure with {REQUIRE_ALL}=1");
            return Ok(true);
        }
        prepared => prepared?,
    };
    let guests = guests::prepare_for_tests(requires_all())?;
    // Of the whole workspace: a part of it has other features of the libraries, and is built for minutes.
    let words = ["--workspace", "--test", "it", "real_az"];
    let mut words: Vec<String> = words.map(str::to_owned).to_vec();
    words.extend_from_slice(arguments);
    repeat::run(&words, &[(AZ_FOLDER_VARIABLE, programs.as_os_str()), guests.variable()])
}
