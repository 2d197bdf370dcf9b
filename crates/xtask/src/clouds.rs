//! `test clouds`: installs the AWS CLI, and moto that stands for AWS, into a folder below target, and runs the commands of the plan for AWS with them.
use anyhow::Result;
use netduel_test_support::{REQUIRE_ALL, SKIPPED};

use crate::workspace::requires_all;
use crate::{repeat, virtual_environment};

/// Below the target folder; another list of packages needs another name.
const FOLDER: &str = "target/clouds-python-1";
const PACKAGES: [&str; 2] = ["awscli==1.46.2", "moto[ec2,server]==5.2.5"];
/// The variable that names the folder with the programs `aws` and `moto_server` to the tests.
const FOLDER_VARIABLE: &str = "NETDUEL_AWS_FOLDER";

/// Installs the packages, then runs the tests. The arguments are those of `cargo xtask test`. Where they cannot be installed, as without a
/// network, the tests are skipped.
pub fn test(arguments: &[String]) -> Result<bool> {
    let programs = match virtual_environment::prepare(FOLDER, &PACKAGES) {
        Err(error) if !requires_all() => {
            println!("{SKIPPED} the tests with the AWS CLI: {error:#}; a failure with {REQUIRE_ALL}=1");
            return Ok(true);
        }
        prepared => prepared?,
    };
    let words = ["-p", "netduel", "--test", "it", "clouds"];
    let mut words: Vec<String> = words.map(str::to_owned).to_vec();
    words.extend_from_slice(arguments);
    repeat::run(&words, &[(FOLDER_VARIABLE, programs.as_os_str())])
}
