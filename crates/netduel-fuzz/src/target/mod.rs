//! The targets, one file for each kind of input. [`host`] has what two of them share; the others must not import each other.
pub(crate) mod baseline;
pub(crate) mod bed;
pub(crate) mod commentary;
pub(crate) mod data_socket;
pub(crate) mod ethtool;
mod host;
pub(crate) mod icmp;
pub(crate) mod in_band;
pub(crate) mod metadata;
pub(crate) mod netlink;
pub(crate) mod pairing;
pub(crate) mod plan;
pub(crate) mod protocol;
pub(crate) mod redact;
pub(crate) mod run_file;
pub(crate) mod testpmd;
