//! The networks of a bed, which arms of plans name. Nothing here knows a bed.
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::plan::value::choices;
use crate::word::word;

/// A network of a bed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BedNetwork {
    /// That of ssh, where the size has NICs enough for one of its own.
    Management,
    /// That of the NICs without accelerated networking (`two-nic`).
    Synthetic,
    /// That of the NICs with accelerated networking (`two-nic`).
    Accelerated,
    /// That of the NICs for tests (all other types of bed).
    Test,
}

impl fmt::Display for BedNetwork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(word(self))
    }
}

choices!(BedNetwork);
