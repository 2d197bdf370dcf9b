//! Whole runs in virtual time: the product's coordinator and agent sessions over simulated hosts, links and store, with faults from a
//! seed. No thread, no wall clock, no socket, no file. Nothing imports it.
#![forbid(unsafe_code)]

mod agent;
mod calls;
pub mod campaign;
mod case;
mod fault;
mod judgement;
mod ledger;
mod patience;
mod random;
pub mod sabotage;
mod setting;
mod shrink;
mod surroundings;
mod truth;
mod work;
mod world;
