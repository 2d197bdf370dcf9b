//! Skips of tests: the one reader of `REQUIRE_ALL`, and the line that `cargo xtask test` counts. For tests and xtask only: no product
//! crate depends on it.
#![forbid(unsafe_code)]

/// The variable that makes a failure of each skip, when it is `1`.
pub const REQUIRE_ALL: &str = "REQUIRE_ALL";
/// The beginning of the line that a skipped test prints.
pub const SKIPPED: &str = "skipped:";

/// Whether a skip is a failure (`REQUIRE_ALL=1`).
pub fn requires_all() -> bool {
    std::env::var_os(REQUIRE_ALL).is_some_and(|value| value == "1")
}

/// Prints that a test, or a part of it, checks nothing here; the caller then returns. The reason names the missing program,
/// permission or kernel feature, or the disturbance because of which nothing could be checked.
///
/// # Panics
/// With `REQUIRE_ALL=1`.
#[track_caller]
pub fn skip(reason: impl AsRef<str>) {
    let reason = reason.as_ref();
    assert!(!requires_all(), "{REQUIRE_ALL}=1, and this test cannot check anything here: {reason}");
    println!("{SKIPPED} {reason}");
}

/// Repeats the skips in the output of a test that ran again in another process: its caller captured them.
pub fn repeat_skips(output: &str) {
    for line in output.lines().filter(|line| line.trim_start().starts_with(SKIPPED)) {
        println!("{line}");
    }
}
