//! How large a plan may be. What is judged by these numbers stands in `check::sizes` and in the schema.

/// Hosts, arms and workloads of a plan at most, each size of `frames` counted as a workload: a run connects to every host at once, and
/// tables of a report have a column for each arm.
pub const HOSTS_MAX: usize = 256;
/// See [`HOSTS_MAX`].
pub const ARMS_MAX: usize = 256;
/// See [`HOSTS_MAX`].
pub const WORKLOADS_MAX: usize = 256;
/// Trials of a block at most: with the shortest workloads a block of so many takes minutes, and no host drifts as little as that.
pub(super) const TRIALS_PER_BLOCK_MAX: usize = 1024;
