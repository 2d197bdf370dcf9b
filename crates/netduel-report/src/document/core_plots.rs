//! Plots of CPU time by core.
use serde_json::{Value, json};

use super::chart::{Chart, Figure, Paint, Plot};
use super::scale::short;
use super::table::{Cell, Column, Table};
use crate::analysis::{CoreShare, WorkloadAnalysis};

/// Machines with more cores than this show only the cores with work.
const CORES_SHOWN_ALL: usize = 16;

/// A core with a smaller busy share is not shown.
const CORE_BUSY_MIN: f64 = 0.02;

/// A plot for each machine of a workload. Arms with other pairs may have other machines, so the longest list counts.
pub(super) fn by_machine(workload: &WorkloadAnalysis) -> Vec<Figure> {
    let count = workload.arms.iter().map(|arm| arm.machines.len()).max().unwrap_or(0);
    (0..count).map(|index| of_machine(workload, index)).collect()
}

fn of_machine(workload: &WorkloadAnalysis, index: usize) -> Figure {
    let machine = workload.arms.iter().find_map(|arm| arm.machines.get(index));
    let title = machine.map(|machine| machine.title.clone()).unwrap_or_default();
    let mut table = Table::new(vec![Column::key("Arm"), Column::key("Core")]);
    let classes = classes(workload, index);
    table.columns.extend(classes.iter().chain(&["idle"]).map(|class| Column::of(*class, "%")));
    for (arm, core) in workload
        .arms
        .iter()
        .filter_map(|arm| Some((arm, arm.machines.get(index)?)))
        .flat_map(|(arm, machine)| machine.cores.iter().map(move |core| (arm, core)))
    {
        let shares = core.classes().into_iter().take(classes.len()).chain([core.idle]);
        let head = [Cell::from(arm.arm.as_str()), Cell::Text(core.core.to_string())];
        let shares = shares.map(|share| Cell::Number(format!("{:.1}", share * 100.0)));
        table.rows.push(head.into_iter().chain(shares).collect());
    }
    let colours = classes.iter().zip(0_u8..);
    let legend = colours.map(|(class, number)| ((*class).to_owned(), Paint::Class(number))).collect();
    Figure {
        title: format!("CPU by core: {title}"),
        reading: reading(classes),
        alternative: "CPU time by core, class and arm; the table below has the numbers".to_owned(),
        chart: Chart::Plot(Plot::new("cores", cores(workload, index)).with_legend(legend)),
        data: Some(table),
        in_text: false,
    }
}

fn reading(classes: &[&str]) -> String {
    let shares =
        "Share of the time of each core by class, over the whole of all valid trials; the rest is idle.";
    if classes.len() < CoreShare::CLASSES.len() {
        return shares.to_owned();
    }
    format!("{shares} Unaccounted: busy time that the kernel assigned to no class.")
}

/// The classes of a machine. The last one is absent where every core has all its time in the others.
fn classes(workload: &WorkloadAnalysis, machine: usize) -> &'static [&'static str] {
    let machines = workload.arms.iter().filter_map(|arm| arm.machines.get(machine));
    let is_complete = machines.flat_map(|machine| &machine.cores).all(|core| core.unaccounted == 0.0);
    let all = &CoreShare::CLASSES;
    if is_complete { &all[..all.len() - 1] } else { all }
}

/// The cores of a machine with enough work over all arms, ascending.
fn shown_cores(workload: &WorkloadAnalysis, machine: usize) -> Vec<u16> {
    let all = || {
        workload
            .arms
            .iter()
            .filter_map(move |arm| arm.machines.get(machine))
            .flat_map(|machine| &machine.cores)
    };
    let mut cores: Vec<u16> = all().map(|core| core.core).collect();
    cores.sort_unstable();
    cores.dedup();
    if cores.len() > CORES_SHOWN_ALL {
        let busy = |wanted: &u16| {
            all().any(|core| core.core == *wanted && core.classes().iter().sum::<f64>() >= CORE_BUSY_MIN)
        };
        cores.retain(busy);
    }
    cores
}

fn cores(workload: &WorkloadAnalysis, index: usize) -> Value {
    let shown = shown_cores(workload, index);
    let classes = classes(workload, index);
    let rows: Vec<Value> = workload
        .arms
        .iter()
        .enumerate()
        .filter_map(|(arm, figures)| Some((arm, figures.machines.get(index)?)))
        .flat_map(|(arm, machine)| machine.cores.iter().map(move |core| (arm, core)))
        .filter(|(_, core)| shown.contains(&core.core))
        .flat_map(|(arm, core)| {
            core.classes()
                .into_iter()
                .take(classes.len())
                .enumerate()
                .map(move |(class, share)| json!([arm, core.core, class, short(share * 100.0)]))
        })
        .collect();
    json!({ "cores": shown, "classes": classes, "rows": rows })
}
