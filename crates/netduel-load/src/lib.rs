//! Traffic: one file per workload and engine. Threads, no async.
