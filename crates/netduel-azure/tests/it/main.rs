//! Beds from the outside: templates compared with golden files and with the published resource types, and the driver with answers of `az`.
#![forbid(unsafe_code)]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on ends here")]
mod down;
mod fake;
mod inventory;
mod prepare;
mod resource;
mod template;
mod watch;

use std::path::PathBuf;

use netduel_model::bed::{Bed, parse};

/// A file of the project.
fn project_file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").join(name)
}

/// A bed of a size with both arms in `westeurope`, with these keys.
fn bed(keys: &str) -> Bed {
    let text = format!("name = \"x\"\nregion = \"westeurope\"\nsize = \"Standard_D4s_v3\"\n{keys}\n");
    parse(&text, "x.toml").unwrap_or_else(|errors| panic!("{errors}"))
}
