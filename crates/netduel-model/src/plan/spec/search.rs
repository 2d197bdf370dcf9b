//! What a search looks for, as it is written in a plan.
//!
//! The doc comments are the descriptions in the JSON Schema and in the guide: they speak to the plan's author.
use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use toml::de::DeValue;

use crate::plan::problem::Problems;
use crate::plan::shape::shape;
use crate::plan::value::{Raw, Value};
use crate::search::SearchPreset;
use crate::units::{Nanos, Percent};

/// What a search looks for, as it is written: goals with a name, or of one's own.
#[derive(Debug, Clone, PartialEq)]
pub enum SearchSpec {
    /// By their names.
    Presets(Vec<SearchPreset>),
    /// One's own.
    Goals(Vec<SearchGoalSpec>),
}

impl Value for SearchSpec {
    fn read(raw: &Raw<'_>, path: &str, problems: &mut Problems<'_>) -> Option<Self> {
        match raw.get_ref() {
            DeValue::Array(array)
                if array.iter().any(|element| matches!(element.get_ref(), DeValue::Table(_))) =>
            {
                Vec::read(raw, path, problems).map(Self::Goals)
            }
            DeValue::Array(_) => Vec::read(raw, path, problems).map(Self::Presets),
            _ => SearchPreset::read(raw, path, problems).map(|preset| Self::Presets(vec![preset])),
        }
    }
}

impl JsonSchema for SearchSpec {
    fn schema_name() -> Cow<'static, str> {
        "SearchSpec".into()
    }
    fn inline_schema() -> bool {
        true
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let one = generator.subschema_for::<SearchPreset>();
        let presets = generator.subschema_for::<Vec<SearchPreset>>();
        let goals = generator.subschema_for::<Vec<SearchGoalSpec>>();
        json_schema!({ "anyOf": [one, presets, goals] })
    }
}

shape! {
    /// A goal of a search, in the terms of RFC 9971. Every key has a default: that of the goal that it is like.
    pub struct SearchGoalSpec {
        /// The goal whose values are taken for keys that are left out, default `no-drop`.
        optional like: SearchPreset,
        /// Final trial duration: only trials of this length prove a load good.
        optional final_trial: Nanos,
        /// Duration sum: how much of such trials a load needs at most, at least one. Default: in the proportion of the goal
        /// that it is like.
        optional duration_sum: Nanos,
        /// Loss ratio: the share of packets that a good trial may lose, less than 50 %.
        optional loss_ratio: Percent,
        /// Exceed ratio: the share of trials at a load that may lose more, less than 100 %.
        optional exceed_ratio: Percent,
        /// Width: how far apart, relative to the upper one, the bounds may be at the end; no less than `loss_ratio`.
        optional width: Percent,
        /// Initial trial duration: the shortest trial, no longer than `final_trial`.
        optional initial_trial: Nanos,
        /// Pause before each trial, in which buffers run empty: 500 ms of `no-drop` and `partial-drop`, and the 7 s of RFC 2544
        /// (section 23) of the others. A search takes the longest of its goals.
        optional settle: Nanos,
    }
}
