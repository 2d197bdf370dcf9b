//! `test azure`: installs the Azure CLI into a folder below target, and runs the tests that need the real one. Nothing else is installed.
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Result, bail};
use netduel_test_support::{REQUIRE_ALL, SKIPPED, requires_all};

use crate::{repeat, step, workspace};

/// Below the target folder; the version in its name makes another version a new folder.
const FOLDER: &str = "target/azure-cli-2.91.0";
/// The version that the tests were written with.
const PACKAGE: &str = "azure-cli==2.91.0";
/// The variable that names the folder with the program `az` to the tests.
const FOLDER_VARIABLE: &str = "NETDUEL_AZ_FOLDER";

/// Installs `az`, then runs its tests. The arguments are those of `cargo xtask test`. Where `az` cannot be installed, as without a network, the
/// tests are skipped.
pub fn test(arguments: &[String]) -> Result<bool> {
    let programs = match prepare() {
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

/// Makes a virtual environment of Python with `az`, unless a former call has completed one.
fn prepare() -> Result<PathBuf> {
    let folder = workspace::root().join(FOLDER);
    let programs = folder.join("bin");
    let is_complete = folder.join("complete");
    if is_complete.exists() {
        return Ok(programs);
    }
    let mut environment = Command::new("python3");
    if !step::succeeds(environment.args(["-m", "venv", "--clear"]).arg(&folder))? {
        bail!("python3 cannot make a virtual environment; its message is above (Debian: python3-venv)");
    }
    let mut install = Command::new(programs.join("python"));
    if !step::succeeds(install.args(["-m", "pip", "install", "--quiet", PACKAGE]))? {
        bail!("pip cannot install {PACKAGE}; its message is above");
    }
    std::fs::write(is_complete, "")?;
    Ok(programs)
}
