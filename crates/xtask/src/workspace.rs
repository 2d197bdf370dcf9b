//! Location of the workspace, and settings from the environment. Decides nothing.
use std::path::PathBuf;

/// The root of the workspace; cargo sets the location of this crate for runs and tests.
pub fn root() -> PathBuf {
    let here = std::env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    here.ancestors().nth(2).map_or_else(|| here.clone(), PathBuf::from)
}

/// The cargo that started this program, so that all commands use one toolchain.
pub fn cargo() -> PathBuf {
    std::env::var_os("CARGO").map_or_else(|| PathBuf::from("cargo"), PathBuf::from)
}

/// Whether a skip is a failure, and everything that a test may need is installed: with `REQUIRE_ALL=1`, and in CI.
pub fn requires_all() -> bool {
    in_ci() || netduel_test_support::requires_all()
}

/// Whether this runs without a person watching (`CI=true`).
pub fn in_ci() -> bool {
    std::env::var_os("CI").is_some_and(|value| value == "true")
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    /// The files below a folder that ask for `REQUIRE_ALL=1` alone.
    fn askers(folder: &Path) -> Vec<PathBuf> {
        let asks = |line: &str| line.contains("netduel_test_support::") && line.contains("requires_all");
        let mut found = Vec::new();
        for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                found.extend(askers(&path));
            } else if fs::read_to_string(&path).is_ok_and(|text| text.lines().any(asks)) {
                found.push(path);
            }
        }
        found
    }

    #[test]
    fn skip_in_ci_is_a_failure_of_every_command() {
        let here = root().join("crates/xtask/src");
        assert_eq!(askers(&here), [here.join("workspace.rs")]);
    }
}
