//! The store through its public interface: finding runs, damaged files, killed writers, full disks, and the golden files of its
//! formats.
#![forbid(unsafe_code)]
mod bounds;
mod change;
mod child;
mod death;
mod finding;
mod full_disk;
mod golden;
mod missing;
mod removed;
mod resuming;
mod sample;
mod truncation;
