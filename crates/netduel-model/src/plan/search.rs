//! What a search looks for, as it is written in a plan.
//!
//! The doc comments are the descriptions in the JSON Schema and in the guide: they speak to the plan's author.
use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;
use toml::de::DeValue;

use crate::plan::problem::Problems;
use crate::plan::shape::shape;
use crate::plan::value::{Raw, Value, choices};
use crate::search::SearchPreset;
use crate::units::{Nanos, Percent};

/// The goals of a search, as the plan writes them: by name, or as tables.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum SearchSpec {
    /// Named goals.
    Presets(Vec<SearchPreset>),
    /// Goals as tables.
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
    /// A goal of a search, in the terms of RFC 9971, whose trials are the steps of the search. The goal `like` provides the default of each key.
    pub struct SearchGoalSpec {
        /// The named goal that provides the defaults, default `no-drop`.
        optional like: SearchPreset,
        /// Final trial duration: only steps of this length count as evidence for a load.
        optional final_trial: Nanos,
        /// Duration sum: the total duration of full-length steps that decides on a load, at least one step. Default: in the
        /// proportion of the goal `like`.
        optional duration_sum: Nanos,
        /// Loss ratio: the share of packets that a good step may lose, less than 50 %.
        optional loss_ratio: Percent,
        /// Exceed ratio: the share of steps at a load that may lose more, less than 100 %.
        optional exceed_ratio: Percent,
        /// Goal width: the largest final distance of the two bounds, relative to the upper bound; not less than `loss_ratio`.
        optional width: Percent,
        /// Initial trial duration: the shortest step, no longer than `final_trial`.
        optional initial_trial: Nanos,
        /// Pause before each step, in which buffers drain: 500 ms for `no-drop` and `partial-drop`, 7 s (RFC 2544, section 23) for the
        /// others. A search uses the longest pause of its goals.
        optional settle: Nanos,
    }
}

choices!(SearchPreset);
