//! Beds on Azure: what is deployed as an ARM template, and the user's own `az` that deploys and deletes it.
//!
//! It has no credentials, starts no shell, keeps no state and prints nothing. The resource group of a bed, with its tag, is the only record
//! that the bed exists.
#![forbid(unsafe_code)]

pub mod az;
pub mod command;
pub mod deployment;
pub mod resource;
pub mod ssh_key;
pub mod tags;
pub mod template;
