//! The texts of a report: verdicts, values, workloads, how a run ended. All formats take them from here.
mod answer;
mod bottleneck;
pub mod compare;
mod datagrams;
mod environment;
pub mod failover;
mod host;
mod legend;
mod limits;
mod loopback;
mod measure;
mod method;
pub(crate) mod metric;
mod packets;
mod placements;
pub(crate) mod published;
mod repetition;
mod reproduce;
mod run;
pub mod search;
mod setting;
pub(crate) mod text;
pub mod tone;
mod treatment;
mod uses;
mod verdict;
mod warnings;
mod without_value;

pub(crate) use answer::largest_drop;
pub use answer::{answer, is_inconclusive};
pub use bottleneck::{
    arms_through_the_switch, bottleneck, lab_difference, lab_path, reason, switch_in_softirq, switches_passed,
};
pub use datagrams::{datagrams, datagrams_title, direction};
pub use environment::{EnvironmentRow, environment, environment_hosts, nic_products, test_description};
pub use host::{
    Fact, caches, huge_pages, interface, interface_facts, machine_facts, node, node_title, place,
};
pub use legend::{error_rates, verdict_legend, verdict_legend_brief};
pub use limits::{QueueRow, limit_shares, packets_by_core, queues};
pub(crate) use loopback::loopback_counters;
pub use measure::{few_round_trips, measure, value};
pub(crate) use method::has_proven_trials;
pub use method::method;
pub use metric::{PPS, metric_value, metric_value_or_bound, packet_rate};
pub use netduel_model::units::plural;
pub(crate) use packets::{of_way as packets_of_way, rule as packets_rule};
pub use packets::{packets_commentary, published};
pub use placements::{placement, placements};
pub use published::{
    beside_published, other_sizes, published_for, published_legend, published_rule, published_title,
    published_tone, published_value, published_verdict,
};
pub use repetition::{bed_name, commands, own_command};
pub use reproduce::{
    ArmCommands, WorkloadCommands, commands_of_tests, has_events, is_in_lab, lab_command, pairings,
    preparation, settings_of_arms,
};
pub use run::{
    end_of, ended, has_plan_file, load_effects, not_included, parts_title, proofs, question,
    quick_test_as_plan, rules, too_few_blocks, trials, workload, workload_of_arms, zero_copy,
};
pub use setting::{SETTINGS, SUBSCRIPTION_OF_AZ, settings_of_command_line};
pub(crate) use text::ranges;
pub use text::{
    controls_output, date, date_and_time, end_and_host, listed, percent, percent_at_least, plain,
    significant, times,
};
pub use tone::Tone;
pub use treatment::{changes, server, treatment};
pub use uses::{brief_launch, launch, uses};
pub(crate) use verdict::not_comparable;
pub use verdict::{blocks_worth_naming, half_width, shown_effect, times_with_interval, tone, verdict};
pub use warnings::{
    Sentence, marks, warning_heads, warning_marks, warning_numbers, warning_sentences, warning_text, warnings,
};
pub(crate) use without_value::reason_of_worst;
pub use without_value::without_value;
