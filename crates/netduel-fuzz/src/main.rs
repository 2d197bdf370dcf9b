//! One target under libFuzzer, whose options are the arguments. It exists with the feature `libfuzzer` only, and must not be started but by
//! `cargo xtask fuzz`, which has the compiler add the counters of coverage.
#![no_main]

use std::sync::OnceLock;

use netduel_fuzz::{TARGET_VARIABLE, Target, find};

static TARGET: OnceLock<&'static Target> = OnceLock::new();

/// The target that the environment names; ends the program without one.
fn chosen() -> &'static Target {
    TARGET.get_or_init(|| {
        let name = std::env::var(TARGET_VARIABLE).unwrap_or_default();
        find(&name).unwrap_or_else(|| {
            panic!("failed to find the fuzz target {name:?}: set {TARGET_VARIABLE} to a name of TARGETS in src/lib.rs")
        })
    })
}

libfuzzer_sys::fuzz_target!(init: { chosen(); }, |bytes: &[u8]| (chosen().run)(bytes));
