//! Checks of stored and transmitted formats against their JSON Schema: coverage by a set of documents, generated documents with
//! full coverage, a fingerprint without prose, and reference pages. For tests only: no product crate depends on it.
//!
//! It knows the keywords that `schemars` writes, and no types of netduel.
#![forbid(unsafe_code)]

mod cover;
mod examples;
mod fingerprint;
pub mod markdown;
mod node;
mod reference;

pub use cover::{uncovered, violations};
pub use examples::examples;
pub use fingerprint::fingerprint;
pub use reference::reference;
