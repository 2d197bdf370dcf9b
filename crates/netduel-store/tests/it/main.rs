//! The store from the outside: finding, damage, sudden death, full disks, and the golden files of its formats.
#![forbid(unsafe_code)]
mod child;
mod death;
mod finding;
mod full_disk;
mod golden;
mod sample;
mod truncation;
