//! How large a plan may be. What is judged by these numbers stands in `check::sizes` and in the schema.

/// Hosts, arms and workloads of a plan at most, each size of `frames` counted as a workload: a run connects to every host at once, and
/// tables of a report have a column for each arm.
pub const HOSTS_MAX: usize = 256;
/// See [`HOSTS_MAX`].
pub const ARMS_MAX: usize = 256;
/// See [`HOSTS_MAX`].
pub const WORKLOADS_MAX: usize = 256;
