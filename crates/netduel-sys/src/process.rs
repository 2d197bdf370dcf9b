//! Processes: parent-death signal, pidfd, reaping.
