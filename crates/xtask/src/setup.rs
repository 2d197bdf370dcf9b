//! `setup`: the system packages that tests need, from one list. Installs on Debian and Ubuntu only.
use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use netduel_test_support::REQUIRE_ALL;

use crate::workspace::requires_all;
use crate::{step, workspace};

/// The list, relative to the root of the workspace.
pub const PACKAGE_LIST: &str = "crates/xtask/debian-packages.txt";

/// The words after the name of a package that only CI installs: it starts a service, or is large for what few people change.
const CI_ONLY: [&str; 2] = ["service", "ci"];

/// A package of the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Package {
    /// Its name in Debian.
    pub name: String,
    /// The tests that need it, and their purpose.
    pub reason: String,
    /// Whether it is only installed with `REQUIRE_ALL=1` and in CI, see [`CI_ONLY`].
    pub is_ci_only: bool,
}

/// Installs missing packages. Silent when nothing is missing. Packages that cannot be installed are listed, and are an error only
/// with `REQUIRE_ALL=1` and in CI.
pub fn run() -> Result<()> {
    let list = workspace::root().join(PACKAGE_LIST);
    let text =
        std::fs::read_to_string(&list).with_context(|| format!("failed to read {}", list.display()))?;
    let mut packages = parse(&text)?;
    packages.retain(|package| !package.is_ci_only || requires_all());
    let missing = missing_of(&packages);
    if missing.is_empty() {
        return Ok(());
    }
    let obstacle = match prefix() {
        Ok(prefix) => {
            println!("installing for tests: {}", names(&missing).join(" "));
            install(&prefix, &missing);
            "apt-get could not install them, its messages are above"
        }
        Err(obstacle) => obstacle,
    };
    let missing = missing_of(&packages);
    if missing.is_empty() {
        return Ok(());
    }
    println!("not installed, because {obstacle}:");
    for package in &missing {
        println!("  {}: {}", package.name, package.reason);
    }
    println!("by hand: apt-get install --no-install-recommends {}", names(&missing).join(" "));
    if requires_all() {
        bail!("{} packages are missing; with {REQUIRE_ALL}=1 and in CI all are required", missing.len());
    }
    Ok(())
}

/// Parses the list: one name per line, after it a word of [`CI_ONLY`] where one applies, and the reason after `#`.
pub fn parse(text: &str) -> Result<Vec<Package>> {
    let mut packages = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let Some((name, reason)) = line.split_once('#') else {
            bail!("{PACKAGE_LIST}:{}: say after `#` which tests need {line}", index + 1);
        };
        let (name, is_ci_only) = match name.trim().split_once(' ') {
            Some((name, word)) if CI_ONLY.contains(&word.trim()) => (name, true),
            _ => (name.trim(), false),
        };
        packages.push(Package { name: name.to_owned(), reason: reason.trim().to_owned(), is_ci_only });
    }
    Ok(packages)
}

fn names(packages: &[Package]) -> Vec<&str> {
    packages.iter().map(|package| package.name.as_str()).collect()
}

/// The packages that are not installed according to dpkg: all of them without dpkg.
fn missing_of(packages: &[Package]) -> Vec<Package> {
    let output = Command::new("dpkg-query")
        .args(["--show", "--showformat", "${Package} ${db:Status-Status}\\n"])
        .args(names(packages))
        .stdin(Stdio::null())
        .output();
    // dpkg-query fails on an unknown name, but still prints the others.
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    let installed: BTreeSet<&str> =
        text.lines().filter_map(|line| line.strip_suffix(" installed")).map(str::trim).collect();
    packages.iter().filter(|package| !installed.contains(package.name.as_str())).cloned().collect()
}

/// The command prefix for `apt-get`, or the reason why nothing can be installed.
fn prefix() -> Result<Vec<&'static str>, &'static str> {
    let release = std::fs::read_to_string("/etc/os-release").unwrap_or_default();
    if !is_debian(&release) || !Path::new("/usr/bin/apt-get").exists() {
        return Err("this is neither Debian nor Ubuntu, and package names differ elsewhere");
    }
    if is_root() {
        return Ok(vec!["env"]);
    }
    let sudo_works = Command::new("sudo")
        .args(["-n", "true"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    if sudo_works {
        Ok(vec!["sudo", "-n", "env"])
    } else {
        Err("this user is not root and has no sudo without a password")
    }
}

/// Whether os-release(5) names Debian, Ubuntu or a derivative.
fn is_debian(release: &str) -> bool {
    release
        .lines()
        .filter_map(|line| line.strip_prefix("ID=").or_else(|| line.strip_prefix("ID_LIKE=")))
        .flat_map(|value| value.trim_matches(['"', '\'']).split_whitespace())
        .any(|id| matches!(id, "debian" | "ubuntu"))
}

/// Whether the effective user is root (proc_pid_status(5): real, effective, saved, file system).
pub fn is_root() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    status
        .lines()
        .find_map(|line| line.strip_prefix("Uid:"))
        .and_then(|ids| ids.split_whitespace().nth(1))
        .is_some_and(|effective| effective == "0")
}

/// Installs all packages at once, and one by one if that fails: a name that this release lacks must not block the others. Failed
/// packages remain missing.
fn install(prefix: &[&str], packages: &[Package]) {
    let updated = step::succeeds(&mut apt_get(prefix, &["update"]));
    if !updated.unwrap_or(false) {
        println!("apt-get update failed; going on with the package lists that are here");
    }
    let with = |names: &[&str]| {
        let mut words = vec!["install", "--yes", "--no-install-recommends"];
        words.extend_from_slice(names);
        step::succeeds(&mut apt_get(prefix, &words)).unwrap_or(false)
    };
    let all = names(packages);
    if !with(&all) && all.len() > 1 {
        for name in all {
            with(&[name]);
        }
    }
}

/// apt-get without questions; it waits for another apt-get to finish.
fn apt_get(prefix: &[&str], words: &[&str]) -> Command {
    let mut command = Command::new(prefix[0]);
    command
        .args(&prefix[1..])
        .args(["DEBIAN_FRONTEND=noninteractive", "NEEDRESTART_SUSPEND=1", "apt-get", "--quiet"])
        .args(["-o", "DPkg::Lock::Timeout=600", "-o", "Acquire::Retries=3"])
        .args(["-o", "Dpkg::Options::=--force-confdef", "-o", "Dpkg::Options::=--force-confold"])
        .args(words)
        .stdin(Stdio::null());
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_has_a_name_and_a_reason() {
        let packages = parse("# head\n\niperf3   # a peer\nsshd service # hosts\nrpm ci # files\n").unwrap();
        let package = |name: &str, reason: &str, is_ci_only: bool| Package {
            name: name.to_owned(),
            reason: reason.to_owned(),
            is_ci_only,
        };
        let expected = [
            package("iperf3", "a peer", false),
            package("sshd", "hosts", true),
            package("rpm", "files", true),
        ];
        assert_eq!(packages, expected);
    }

    #[test]
    fn package_without_a_reason_is_reported_with_its_line() {
        let error = parse("# head\niperf3\n").unwrap_err().to_string();
        assert!(error.contains(":2:") && error.contains("iperf3"), "{error}");
    }

    #[test]
    fn the_list_of_this_workspace_is_well_formed() {
        let text = std::fs::read_to_string(workspace::root().join(PACKAGE_LIST)).unwrap();
        parse(&text).unwrap();
    }

    #[test]
    fn debian_and_derivatives_are_recognized() {
        for (release, expected) in [
            ("ID=debian\n", true),
            ("NAME=x\nID=ubuntu\nID_LIKE=debian\n", true),
            ("ID=linuxmint\nID_LIKE=\"ubuntu debian\"\n", true),
            ("ID=fedora\nID_LIKE=\"rhel\"\n", false),
            ("VERSION_ID=debian\n", false),
        ] {
            assert_eq!(is_debian(release), expected, "{release}");
        }
    }

    #[test]
    fn unknown_package_counts_as_missing() {
        let package =
            Package { name: "no-such-package-at-all".into(), reason: "test".into(), is_ci_only: false };
        assert_eq!(missing_of(std::slice::from_ref(&package)), [package]);
    }
}
