//! Runs that a program of an older format stored: every output has the figures that the old program reported.
use std::path::{Path, PathBuf};

use netduel_model::dpdk::DpdkDevice;
use netduel_model::run::{Run, RunEnd};
use netduel_model::snapshot::PciFunction;
use netduel_model::workload::{Pps, Traffic};
use netduel_report::analysis::compare::{Side, compare};
use netduel_report::{analyse_run, csv, document, html, markdown, terminal, words};
use netduel_store::Store;

use crate::{hosts, json};

/// The runs that programs of older formats wrote, by format and name: each beside the CSV that the same program made of it.
const RUNS: [&str; 10] = [
    "1-real-excluded",
    "1-real-resumed",
    "1-real-types",
    "2-real-dpdk",
    "2-real-failover",
    "2-real-latency",
    "2-real-packets",
    "2-real-resumed",
    "2-real-search",
    "2-real-treatments",
];

/// Figures that the old program derived wrongly. Of an open loop it counted the requests that began in the steady window, also where the
/// path kept them beyond it: here 24, of which 16 were answered in the window. The window of a receiver began with its own start, here
/// 0.6 s before the first packet of testpmd.
const CORRECTED: [&str; 3] = [
    "latency-20261122-140009-dd30,2,9,0,synthetic,stamped,true,1795356034959,round-trip-rate,/s,50.526315789473685,",
    "dpdk-20261122-135858-af29,1,1,0,dpdk,small,true,1795355939294,throughput,bit/s,192604.0994708491,",
    "dpdk-20261122-135858-af29,1,1,0,dpdk,small,true,1795355939294,datagram-rate,/s,1337.5284685475633,",
];

/// The rates of workloads without a warm-up, whose window began with the start of the receiver and begins with the first data now, by up to
/// this factor.
const MOVED_MAX: f64 = 1.2;

fn golden(name: &str, extension: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../netduel-store/tests/golden");
    folder.join(format!("format-{name}.{extension}"))
}

/// One of [`RUNS`].
pub fn read(name: &str) -> Run {
    let file = golden(name, "netduel");
    let store = Store::open(file.parent().unwrap()).unwrap();
    store.read(file.to_str().unwrap()).unwrap()
}

/// A row of an old table, whose blocks counted from 0 and whose CPU time of a message was in microseconds. The heading stays as it is.
fn as_now(row: &str) -> String {
    let mut cells: Vec<String> = row.split(',').map(str::to_owned).collect();
    if let Ok(block) = cells[1].parse::<u32>() {
        cells[1] = (block + 1).to_string();
    }
    if cells[UNIT] == "us" {
        "ns".clone_into(&mut cells[UNIT]);
        cells[UNIT + 1] = (cells[UNIT + 1].parse::<f64>().unwrap() * 1e3).to_string();
    }
    rounded(&cells)
}

/// Column of the unit; that of the value follows.
const UNIT: usize = 9;

/// A row with the CPU time of a message to ten digits: the change of its unit may change the last one.
fn rounded(cells: &[String]) -> String {
    let mut cells = cells.to_vec();
    if cells[UNIT] == "ns" && cells[UNIT - 1].starts_with("cpu-per-") {
        cells[UNIT + 1] = format!("{:.9e}", cells[UNIT + 1].parse::<f64>().unwrap());
    }
    cells.join(",")
}

/// The samplers of these runs were delayed by up to 0.7 s.
#[test]
fn medians_of_packet_rates_lie_between_their_extremes() {
    for name in ["2-real-dpdk", "2-real-packets", "2-real-search"] {
        let analysis = analyse_run(&read(name));
        let ways = analysis.workloads.iter().flat_map(|workload| &workload.arms).flat_map(|arm| &arm.packets);
        let rates: Vec<_> = ways.flat_map(|way| [way.sent, way.received]).flatten().collect();
        assert!(!rates.is_empty(), "{name}");
        for rates in rates {
            let (min, max) = (rates.min.unwrap(), rates.max.unwrap());
            let is_between = min <= rates.median * (1.0 + 1e-9) && rates.median <= max * (1.0 + 1e-9);
            assert!(is_between, "{name}: {rates:?}");
        }
    }
}

/// A later program may know more metrics of an old trial. It must not know fewer, or give another value but a corrected one.
#[test]
fn every_figure_that_the_old_program_reported_is_reported_unchanged() {
    for name in RUNS {
        // The files are shortened by whole trials, and a block that lacks some counts only in a run with a regular end.
        let now = csv::trials(&Run { end: Some(RunEnd::BlockLimitReached), ..read(name) });
        let then = std::fs::read_to_string(golden(name, "csv")).unwrap();
        assert!(then.lines().count() > 1, "{name} has no figures");
        let rows = then.lines().map(as_now);
        // The last columns, `bound`, `doubt` and `settings`, are newer.
        let known: Vec<String> = now
            .lines()
            .filter_map(|line| line.rsplitn(4, ',').nth(3))
            .map(|row| rounded(&row.split(',').map(str::to_owned).collect::<Vec<_>>()))
            .collect();
        let has_moved = |row: &String| {
            let cells: Vec<&str> = row.split(',').collect();
            let (key, value) = (cells[..=UNIT].join(","), |cell: &str| cell.parse::<f64>().unwrap());
            let is_rate = ["throughput", "datagram-rate"].contains(&cells[UNIT - 1]);
            let same = known.iter().find(|now| now.starts_with(&format!("{key},")));
            is_rate
                && read(name).header.plan.arms.iter().flat_map(|arm| &arm.workloads).any(|workload| {
                    workload.name.as_str() == cells[UNIT - 4] && workload.timing.warmup.0 == 0
                })
                && same.is_some_and(|now| {
                    let now = value(now.split(',').nth(UNIT + 1).unwrap());
                    (1.0 / MOVED_MAX..MOVED_MAX).contains(&(now / value(cells[UNIT + 1])))
                })
        };
        let lost: Vec<String> = rows
            .filter(|row| !CORRECTED.contains(&row.as_str()) && !known.contains(row) && !has_moved(row))
            .collect();
        assert!(lost.is_empty(), "of {name}:\n{}\nis not in\n{now}", lost.join("\n"));
    }
}

#[test]
fn runs_of_an_older_program_are_shown_in_every_format() {
    for name in RUNS {
        let run = read(name);
        let report = document(&run);
        let arms = run.header.plan.arms.iter().map(|arm| arm.name.as_str());
        // Compares it with the schema.
        let json = json::report(&run).to_string();
        let pages =
            [terminal::report(&report, 120, false), markdown::page(&report), html::page(&report), json];
        for arm in arms {
            assert!(pages.iter().all(|page| page.replace('\\', "").contains(arm)), "{arm} of {name}");
        }
        assert!(pages[0].contains(&run.header.plan.question), "{name}: {}", pages[0]);
    }
}

#[test]
fn connect_time_of_a_failover_is_not_called_round_trip_parts() {
    let page = markdown::page(&document(&read("2-real-failover")));
    assert!(page.contains("### TCP connect time\n\n| part | arm | connections |"), "{page}");
    assert!(!page.contains("Round-trip parts"), "{page}");
    let page = markdown::page(&document(&read("2-real-latency")));
    assert!(page.contains("### Round-trip parts\n\n| part | arm | samples |"), "{page}");
}

#[test]
fn packet_report_has_the_command_lines_the_parameters_and_the_counters_of_testpmd() {
    let page = markdown::page(&document(&read("2-real-dpdk")));
    let html = html::page(&document(&read("2-real-dpdk")));
    // An arm without a valid trial has its test in words, too.
    for part in [
        "# small on dpdk, client a",
        "dpdk-testpmd -l 0,1 --main-lcore 1",
        "| net\\_af\\_packet | net\\_af\\_packet0 | 0 | 1 | the driver's | ordinary pages | one | 0 |",
        "dpdk: The client sends",
        "sockets: The client sends",
        "- `--txpkts`: length of a packet",
    ] {
        assert!(page.contains(part), "no {part} in {page}");
    }
    assert!(!page.contains("`--rss-udp`"), "an option that no command line has");
    assert!(html.contains("tx_good_packets") && html.contains("5536"), "the page has no counters");
}

/// The run of testpmd, with this version of rdma-core at both ends.
pub fn with_rdma_core(version: &str) -> Run {
    let mut run = read("2-real-dpdk");
    for trial in &mut run.trials {
        for end in [&mut trial.client, &mut trial.server].into_iter().flatten() {
            if let Some(dpdk) = &mut end.report.dpdk {
                dpdk.rdma_core = Some(version.to_owned());
            }
        }
    }
    run
}

#[test]
fn environment_of_testpmd_has_the_versions_of_dpdk_and_rdma_core() {
    let versions = |run: &Run| {
        let rows = words::environment(&analyse_run(run));
        let of = |name: &str| {
            let row = rows.iter().find(|(title, _)| *title == name);
            row.map(|(_, cells)| cells.iter().flatten().cloned().collect::<Vec<_>>().join(", "))
        };
        [of("DPDK"), of("rdma-core")]
    };
    let dpdk = Some("22.11.11, 22.11.11".to_owned());
    assert_eq!(versions(&read("2-real-dpdk")), [dpdk.clone(), None], "an earlier version did not read it");
    assert_eq!(versions(&with_rdma_core("44.0")), [dpdk, Some("44.0, 44.0".to_owned())]);
}

/// A run of testpmd on VMs of Azure with MANA: it has the addresses of the paravirtual interface, and drives the function below it.
pub fn on_mana() -> Run {
    let mut run = read("2-real-dpdk");
    for (name, mut own) in [("a", hosts::azure()), ("b", hosts::other())] {
        let function = &mut own.interfaces[2];
        function.driver = Some("mana".to_owned());
        function.device.pci = Some(PciFunction { vendor: 0x1414, device: 0x00ba, ..hosts::function() });
        run.header.hosts.insert(name.parse().unwrap(), own);
    }
    for trial in &mut run.trials {
        for end in [&mut trial.client, &mut trial.server].into_iter().flatten() {
            if let Some(packets) = &mut end.report.packets {
                "eth0".clone_into(&mut packets.interface);
            }
        }
    }
    let workloads = run.header.plan.arms.iter_mut().flat_map(|arm| &mut arm.workloads);
    for workload in workloads {
        if let Traffic::Pps(Pps { packets, .. }) = &mut workload.traffic
            && let Some(dpdk) = &mut packets.dpdk
        {
            dpdk.device = DpdkDevice::Mana;
        }
    }
    run
}

#[test]
fn environment_and_cover_of_testpmd_have_the_function_below_its_interface() {
    let run = on_mana();
    let analysis = analyse_run(&run);
    let mana = "Microsoft Azure Network Adapter Virtual Function";
    assert_eq!(words::nic_products(&analysis), [mana]);
    let rows = words::environment(&analysis);
    let of_first = |name: &str| {
        let row = rows.iter().find(|(title, _)| *title == name);
        row.and_then(|(_, cells)| cells[0].clone()).unwrap_or_else(|| panic!("no {name} in {rows:?}"))
    };
    assert_eq!(of_first("Product of the interface"), format!("enP1s1: {mana}"));
    assert_eq!(of_first("Driver of the interface"), "eth0: hv_netvsc; enP1s1: mana, firmware 14.25.8362");
    assert_eq!(of_first("NUMA node of the interface"), "enP1s1: 0");
}

#[test]
fn versions_of_testpmd_are_differences_between_runs_that_know_them() {
    let differences = |before: &Run, after: &Run| -> Vec<(String, Vec<Option<String>>)> {
        let analyses = [before, after].map(analyse_run);
        let comparison = compare(&[Side::of(before, &analyses[0]), Side::of(after, &analyses[1])], &[]);
        comparison.differences.iter().map(|one| (one.subject(), one.values.clone())).collect()
    };
    let values = |values: [&str; 2]| values.map(|value| Some(value.to_owned())).to_vec();
    let earlier = read("2-real-dpdk");
    let mut later = with_rdma_core("52.2");
    assert!(differences(&earlier, &later).is_empty(), "{:?}", differences(&earlier, &later));
    let expected = ["a", "b"].map(|host| (format!("rdma-core of host {host}"), values(["44.0", "52.2"])));
    assert_eq!(differences(&with_rdma_core("44.0"), &later), expected);
    for trial in &mut later.trials {
        if let Some(dpdk) = trial.server.as_mut().and_then(|end| end.report.dpdk.as_mut()) {
            dpdk.version = "24.11.1".to_owned();
        }
    }
    let expected = [("DPDK of host b".to_owned(), values(["22.11.11", "24.11.1"]))];
    assert_eq!(differences(&earlier, &later), expected);
    later.trials.clear();
    assert!(differences(&earlier, &later).is_empty(), "without a trial no version is known");
}
