//! Path proof: the interfaces that carried the bytes, by arm and end.
use std::collections::BTreeMap;

use netduel_model::ids::ArmName;
use netduel_model::plan::Arm;
use netduel_model::run::Run;
use netduel_model::units::human_si;
use netduel_model::workload::Role;

use super::block::{Block, Scope, Section, list};
use super::chart::{Bar, Bars, Chart, Figure, Paint, Segment};
use super::table::{Cell, Column, Table};
use super::topology;
use crate::analysis::{Analysis, PathShares};
use crate::total::{self, Total};
use crate::words;

/// The section.
pub(super) fn section(run: &Run, analysis: &Analysis) -> Section {
    let sentences = words::proofs(analysis);
    let blocks = if sentences.is_empty() {
        let plan = &analysis.plan;
        let text = if !plan.arms.iter().any(Arm::is_proven) {
            "No arm names an expected interface, so no path is proven. Set `expect_interface`."
        } else if words::has_proven_trials(plan) {
            "No trial has the proof of its path."
        } else {
            "Trials with events have no proof of path, because events change the path. The section of the workload has the interfaces in order of time."
        };
        vec![Block::Paragraph(text.into())]
    } else {
        let paths = analysis.workloads.iter().flat_map(|workload| &workload.arms).flat_map(|arm| &arm.paths);
        let note = words::loopback_counters(paths.map(|path| path.expected.as_str()));
        vec![list(sentences.into_iter().chain(note)), Block::Figure(Box::new(figure(analysis)))]
    };
    // A bed has a drawing of its own.
    let drawing = if run.header.bed.is_none() { topology::figure(&analysis.plan) } else { None };
    let drawing = drawing.map(|figure| Block::Figure(Box::new(figure)));
    let blocks = drawing.into_iter().chain(blocks).collect();
    Section { anchor: "path".to_owned(), title: "Path proof".to_owned(), scope: Scope::Detail, blocks }
}

fn figure(analysis: &Analysis) -> Figure {
    let ends =
        analysis.plan.arms.iter().flat_map(|arm| [Role::Client, Role::Server].map(|role| (&arm.name, role)));
    let rows = ends.filter_map(|(arm, role)| bar(analysis, arm, role)).collect();
    Figure {
        title: "Share of bytes by interface".to_owned(),
        reading: "All trials together. Bridges and bonds are excluded: their bytes are counted on the interfaces below them. Dotted: \
                  interfaces that the plan does not expect."
            .to_owned(),
        alternative: "share of bytes by interface; the list above has the same".to_owned(),
        chart: Chart::Bars(Bars { legend: Vec::new(), rows }),
        data: Some(table(analysis)),
        in_text: false,
    }
}

/// The bytes of an arm at one end, over all workloads.
fn bar(analysis: &Analysis, arm: &ArmName, role: Role) -> Option<Bar> {
    let paths: Vec<&PathShares> = analysis
        .workloads
        .iter()
        .flat_map(|workload| &workload.arms)
        .filter(|figures| &figures.arm == arm)
        .flat_map(|figures| &figures.paths)
        .filter(|path| path.role == role)
        .collect();
    let first = paths.first()?;
    let mut sums: BTreeMap<&str, u64> = BTreeMap::new();
    for (name, bytes) in paths.iter().flat_map(|path| &path.bytes) {
        total::add(sums.entry(name).or_default(), *bytes);
    }
    let total = sums.values().total().max(1) as f64;
    let mut interfaces: Vec<(&str, u64)> = sums.into_iter().collect();
    interfaces.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
    let segment = |(name, bytes): (&str, u64)| {
        let share = bytes as f64 / total;
        let paint = if name == first.expected { Paint::Expected } else { Paint::Other };
        Segment { title: String::new(), share, label: format!("{name} {}", words::percent(share)), paint }
    };
    Some(Bar {
        title: arm.to_string(),
        detail: words::end_and_host(role, &first.host),
        whole: String::new(),
        segments: interfaces.into_iter().map(segment).collect(),
    })
}

fn table(analysis: &Analysis) -> Table {
    let mut table = Table::new(["Workload", "Arm", "End", "Expected"].map(Column::key).into_iter().collect());
    table.columns.extend(["Min share", "Proven trials"].map(Column::number));
    table.columns.push(Column::text("Bytes by interface"));
    for workload in &analysis.workloads {
        for (arm, path) in workload.arms.iter().flat_map(|arm| arm.paths.iter().map(move |path| (arm, path)))
        {
            let bytes: Vec<String> = path
                .bytes
                .iter()
                .map(|(name, bytes)| format!("{name} {}", human_si(*bytes as f64, "B")))
                .collect();
            table.rows.push(vec![
                workload.name.as_str().into(),
                arm.arm.as_str().into(),
                Cell::Text(words::end_and_host(path.role, &path.host)),
                path.expected.as_str().into(),
                Cell::number(path.share_min.map(words::percent)),
                Cell::Number(format!("{} of {}", path.proven, path.trials)),
                Cell::Text(bytes.join(", ")),
            ]);
        }
    }
    table
}
