//! Reports of synthetic runs in every format: texts, values, hostile texts, and the page in a real browser.
#![expect(clippy::unwrap_used, reason = "what a test builds for itself has to be there")]

mod bed;
mod bed_findings;
mod both_ends;
mod bounds;
mod browser;
mod builder;
mod compare;
mod counter_ratios;
mod crossover;
mod datagrams;
mod doubts;
mod evidence;
mod exports;
mod failover;
mod figures;
mod findings;
mod formats;
mod history;
mod hostile;
mod hosts;
mod json;
mod look;
mod machines;
mod nonsense;
mod old_runs;
mod open_loop;
mod packets;
mod pipelines;
mod publication;
mod quick;
mod redaction;
mod search;
mod stamps;
mod warned;
mod windows;
