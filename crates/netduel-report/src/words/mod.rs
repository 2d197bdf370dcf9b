//! The words of a report: verdicts, values, workloads, ends. Every format takes them from here, so all say the same.
mod datagrams;
mod environment;
pub mod failover;
mod host;
mod limits;
mod metric;
mod packets;
mod placements;
mod run;
pub mod search;
mod stamps;
mod text;
mod treatment;
mod verdict;
mod warnings;

pub use datagrams::{datagrams, datagrams_title, direction};
pub use environment::{
    EnvironmentRow, common_size, environment, environment_hosts, test_description, testpmd_commands,
};
pub use host::{Fact, interface, interface_facts, machine_facts, node, node_title, place};
pub use limits::{LIMITS_TITLE, QUEUES_TITLE, limits, queues};
pub use metric::{PPS, is_of_packets, metric_title, metric_value, packet_rate};
pub use packets::{PACKETS_TITLE, PacketTable, packets, packets_commentary, published};
pub use placements::{PLACEMENTS_TITLE, placement, placements};
pub use run::{
    commands, end, parts, parts_title, proofs, rules, trials, workload, workload_of_arms, zero_copy,
};
pub use stamps::{STAMPS_TITLE, StampTable, error, stamps, stamps_of_trial};
pub use text::{date, date_and_time, percent, plain, times};
pub use treatment::{changes, treatment};
pub use verdict::{Clause, Tone, answer, clauses, interval, joint, tone, value, verdict};
pub use warnings::{warning_text, warnings};
