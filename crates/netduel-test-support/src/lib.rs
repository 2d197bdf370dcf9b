//! What tests of several crates share: skips (the one reader of `REQUIRE_ALL`, and the lines that `cargo xtask test` counts), tests
//! in a network namespace of their own, programs that a test makes, and the real `az`. For tests and xtask only: no product crate depends
//! on it.
#![forbid(unsafe_code)]

mod namespace;
mod program;
mod real_az;

pub use namespace::{NewNamespace, in_namespace};
pub use program::{copy_program, write_program};
pub use real_az::{AZ_FOLDER_VARIABLE, RealAz, az_folder};

/// The variable that makes a failure of each skip, when it is `1`.
pub const REQUIRE_ALL: &str = "REQUIRE_ALL";
/// The beginning of the line that a skipped test prints.
pub const SKIPPED: &str = "skipped:";

/// The beginning of the line that a test prints about figures that other programs disturbed.
pub const NOT_COMPARED: &str = "not compared:";

/// Whether a skip is a failure (`REQUIRE_ALL=1`).
pub fn requires_all() -> bool {
    std::env::var_os(REQUIRE_ALL).is_some_and(|value| value == "1")
}

/// Prints that a test, or a part of it, checks nothing here; the caller then returns. The reason names the missing program,
/// permission or kernel feature.
///
/// # Panics
/// With `REQUIRE_ALL=1`.
#[track_caller]
pub fn skip(reason: impl AsRef<str>) {
    let reason = reason.as_ref();
    assert!(!requires_all(), "{REQUIRE_ALL}=1, and this test cannot check anything here: {reason}");
    println!("{SKIPPED} {reason}");
}

/// Prints that other programs disturbed every figure of a comparison, which is therefore left out; the test still checks what a busy
/// machine cannot change. It is no failure, even with `REQUIRE_ALL=1`. `cargo xtask test` lists these lines, and a bench makes the
/// comparison on a quiet machine.
pub fn not_compared(reason: impl AsRef<str>) {
    println!("{NOT_COMPARED} {}", reason.as_ref());
}

/// Prints that a test checks nothing because it is no part of the suite and was not requested. It is no skip, even with
/// `REQUIRE_ALL=1`: the reason names the command that runs the test.
pub fn not_requested(reason: impl AsRef<str>) {
    println!("not requested: {}", reason.as_ref());
}

/// Repeats the lines of [`skip`] and [`not_compared`] in the output of a test that ran again in another process: its caller captured
/// them.
pub fn repeat_skips(output: &str) {
    let counted =
        |line: &&str| [SKIPPED, NOT_COMPARED].iter().any(|start| line.trim_start().starts_with(start));
    for line in output.lines().filter(counted) {
        println!("{line}");
    }
}
