//! Failed calls of streams, round trips and events. Those of datagrams stand with their counts.
use super::block::Block;
use super::table::{Cell, Column, Table};
use crate::analysis::{ArmAnalysis, FailedCall, WorkloadAnalysis};

/// The section of a workload; empty without a failed call.
pub(super) fn blocks(workload: &WorkloadAnalysis) -> Vec<Block> {
    let mut table = Table::new(["arm", "end", "call"].map(Column::key).to_vec());
    table.columns.push(Column::text("error"));
    table.columns.extend(["times", "trials"].map(Column::number));
    table.rows = workload.arms.iter().filter(|arm| arm.datagrams.is_empty()).flat_map(rows).collect();
    if table.rows.is_empty() {
        return Vec::new();
    }
    table.notes.push(
        "totals of all valid trials. A trial goes on after a failed call, and its rate and its latency contain the effect. The settings (setsockopt) are those \
         that a host refused, or granted in part"
            .to_owned(),
    );
    vec![Block::Heading("Failed calls".to_owned()), Block::Table(table)]
}

fn rows(arm: &ArmAnalysis) -> Vec<Vec<Cell>> {
    let row = |failed: &FailedCall| {
        vec![
            arm.arm.as_str().into(),
            failed.role.word().into(),
            failed.call.as_str().into(),
            failed.error.as_str().into(),
            Cell::Count(failed.count),
            Cell::Number(format!("{} of {}", failed.trials, arm.trials)),
        ]
    };
    arm.errors.iter().map(row).collect()
}
