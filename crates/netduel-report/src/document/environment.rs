//! The environment: a row for each fact, a column for each host.
use netduel_model::run::Run;

use super::block::{Block, Scope, Section};
use super::table::{Cell, Column, Table};
use crate::analysis::Analysis;
use crate::words;

/// The facts of the environment that are versions of programs, drivers and images.
const VERSIONS: [&str; 7] =
    ["Driver of the interface", "System", "Kernel", "Hypervisor", "DPDK", "rdma-core", "Image"];

/// The versions of each host, for the appendix; absent for a run without facts of its hosts.
pub(super) fn versions(run: &Run, analysis: &Analysis) -> Option<Table> {
    let rows = words::environment(analysis).into_iter();
    let versions: Vec<words::EnvironmentRow> = rows.filter(|(title, _)| VERSIONS.contains(title)).collect();
    (!versions.is_empty()).then(|| table(run, analysis, versions))
}

/// The section; absent for a run without facts of its hosts.
pub(super) fn section(run: &Run, analysis: &Analysis) -> Option<Section> {
    let rows = words::environment(analysis);
    (!rows.is_empty()).then(|| Section {
        anchor: "environment".to_owned(),
        title: "Environment".to_owned(),
        scope: Scope::Reference,
        blocks: vec![Block::Table(table(run, analysis, rows))],
    })
}

fn table(run: &Run, analysis: &Analysis, rows: Vec<words::EnvironmentRow>) -> Table {
    let hosts = words::environment_hosts(analysis);
    let program = run.header.program.trim_start_matches("netduel ").to_owned();
    let programs = vec![Cell::Text(program); hosts.len()];
    let mut table =
        Table::new([Column::key("")].into_iter().chain(hosts.into_iter().map(Column::text)).collect());
    for (title, cells) in rows {
        let cells = cells.into_iter().map(|cell| cell.map_or(Cell::Absent, Cell::Text));
        table.rows.push([Cell::from(title)].into_iter().chain(cells).collect());
    }
    table.rows.push([Cell::from("netduel")].into_iter().chain(programs).collect());
    table
}
