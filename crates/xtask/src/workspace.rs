//! Where the workspace lies and what the environment asks for. Decides nothing.
use std::path::PathBuf;

/// The root of the workspace: cargo says where this crate is, when it runs it and when it tests it.
pub fn root() -> PathBuf {
    let here = std::env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    here.ancestors().nth(2).map_or_else(|| here.clone(), PathBuf::from)
}

/// The cargo that runs us, so that one toolchain does everything.
pub fn cargo() -> PathBuf {
    std::env::var_os("CARGO").map_or_else(|| PathBuf::from("cargo"), PathBuf::from)
}

/// Whether what cannot run is a failure (`REQUIRE_ALL=1`).
pub fn requires_all() -> bool {
    std::env::var_os("REQUIRE_ALL").is_some_and(|value| value == "1")
}

/// Whether a machine without a person runs us (`CI=true`).
pub fn in_ci() -> bool {
    std::env::var_os("CI").is_some_and(|value| value == "true")
}
