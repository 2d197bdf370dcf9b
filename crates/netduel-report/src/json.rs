//! The JSON documents for users, as separate types: stored and internal types may change independently.
//!
//! The rules are in docs/json.md: stable keys, units in names, no absent keys, null for a missing value, times as ISO 8601 beside a
//! number, text for integers that may exceed 2^53. [`schema::DOCUMENTS`] lists the documents.
pub mod baseline;
pub mod bed;
pub mod compare;
pub mod ends;
pub mod envelope;
pub mod error;
pub mod facts;
pub mod failover;
pub mod figures;
pub mod history;
pub mod host_counters;
pub mod hosts;
pub mod inspect;
pub mod lab;
pub mod listing;
pub mod packets;
pub mod parts;
pub mod plan;
pub mod quick;
pub mod report;
pub mod schema;
pub mod search;
pub mod serve;
pub mod warning;
