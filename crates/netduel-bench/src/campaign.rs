//! A campaign: blocks in which every comparison runs one pair, in random order; within a pair the order is random. The
//! JSON file is written after each block, so that an interrupted campaign keeps what it has.
use std::path::Path;

use anyhow::{Context, Result};
use netduel_stats::split_mix::SplitMix;
use netduel_sys::{clock, random};

use crate::arguments::Arguments;
use crate::cases::{self, Case};
use crate::cost::{Accounting, Counters};
use crate::hosts::Hosts;
use crate::launch::Site;
use crate::outcome::Outcome;
use crate::record::{Comparison, FORMAT, Pair, Peer, Placement, Record};
use crate::tool::Tool;
use crate::{machine, stage, summary, tool};

/// Time limit of a run beyond its traffic, nanoseconds.
const PATIENCE_NS: u64 = 30_000_000_000;

/// A selected comparison.
struct Plan {
    case: Case,
    placement: Placement,
}

/// Runs the selected comparisons.
pub fn run(arguments: &Arguments) -> Result<Record> {
    // Kernel threads are visible in the machine's `/proc` only.
    let counters = Counters::open();
    let accounting = Accounting::of_this_kernel(&machine::kernel()?);
    stage::mount_proc()?;
    let hosts = Hosts::build()?;
    let peers = tool::peers();
    let mut plans = Vec::new();
    for case in cases::chosen(&arguments.only)? {
        plans.extend(arguments.pin.placements().iter().map(|&placement| Plan { case, placement }));
    }
    let seed = if let Some(seed) = arguments.seed {
        seed
    } else {
        let [a, b, c, d, ..] = random::bytes16().context("failed to draw a seed")?;
        u64::from(u32::from_ne_bytes([a, b, c, d]))
    };
    let mut record = Record {
        format: FORMAT,
        command: command(arguments, seed),
        date: machine::utc(clock::realtime_ns()),
        commit: machine::commit(),
        optimised: !cfg!(debug_assertions),
        seed,
        pairs: arguments.pairs,
        seconds: arguments.seconds,
        machine: machine::describe(&hosts)?,
        accounting,
        results: plans.iter().map(|plan| begin(plan, &peers, arguments.seconds)).collect::<Result<_>>()?,
        peers,
    };
    eprintln!(
        "seed {seed}; {} comparisons, {} pairs of {} s each",
        plans.len(),
        record.pairs,
        record.seconds
    );
    let mut random = SplitMix::new(seed);
    for block in 1..=arguments.pairs {
        for index in order(&mut random, plans.len()) {
            let Plan { case, placement } = &plans[index];
            let ours_first = coin(&mut random);
            if record.results[index].missing.is_some() {
                continue;
            }
            let run = Runner {
                hosts: &hosts,
                counters: &counters,
                placement: *placement,
                seconds: arguments.seconds,
            };
            let pair = run.pair(case, ours_first);
            let result = &mut record.results[index];
            match pair {
                Ok(pair) => result.pairs.push(pair),
                Err(error) => result.failures.push(format!("pair {block}: {error:#}")),
            }
            eprintln!("{block}/{} {}", arguments.pairs, summary::last_pair(result, accounting));
        }
        write(&record, &arguments.json)?;
    }
    Ok(record)
}

/// The command that repeats the campaign.
fn command(arguments: &Arguments, seed: u64) -> String {
    let only = match arguments.only.as_slice() {
        [] => String::new(),
        names => format!(" --only {}", names.join(",")),
    };
    let (pairs, seconds) = (arguments.pairs, arguments.seconds);
    format!(
        "cargo xtask bench peers{only} --pin {} --pairs {pairs} --seconds {seconds} --seed {seed}",
        arguments.pin
    )
}

fn begin(plan: &Plan, peers: &[Peer], seconds: u32) -> Result<Comparison> {
    let program = plan.case.against.and_then(|tool| tool.program());
    let is_missing = |name: &str| peers.iter().any(|peer| peer.program == name && peer.version.is_none());
    let missing = program.filter(|name| is_missing(name));
    Ok(Comparison {
        case: plan.case.name.to_owned(),
        kind: plan.case.kind,
        ours: plan.case.ours.name.to_owned(),
        workload: tool::workload(plan.case.ours.traffic, seconds)?,
        against: plan.case.against.map(|tool| tool.label()),
        placement: plan.placement,
        segmented: plan.case.segmented,
        targets: plan.case.targets.to_vec(),
        missing: missing.map(tool::not_installed),
        failures: Vec::new(),
        pairs: Vec::new(),
    })
}

/// Runs pairs.
struct Runner<'a> {
    hosts: &'a Hosts,
    counters: &'a Counters,
    placement: Placement,
    seconds: u32,
}

impl Runner<'_> {
    fn pair(&self, case: &Case, ours_first: bool) -> Result<Pair> {
        self.hosts.set_udp_segmentation(!case.segmented)?;
        let ours = || self.once(&Tool::Ours(case.ours));
        let theirs = || case.against.as_ref().map(|tool| self.once(tool)).transpose();
        let (ours, theirs) = if ours_first {
            let ours = ours()?;
            (ours, theirs()?)
        } else {
            let theirs = theirs()?;
            (ours()?, theirs)
        };
        Ok(Pair { ours_first, ours, theirs })
    }

    fn once(&self, tool: &Tool) -> Result<Outcome> {
        let limit_ns = u64::from(self.seconds) * 1_000_000_000 + PATIENCE_NS;
        let deadline_ns = clock::monotonic_ns() + limit_ns;
        let site = Site { hosts: self.hosts, placement: self.placement, deadline_ns };
        tool.run(&site, self.counters, self.seconds)
    }
}

/// Replaces the file atomically.
fn write(record: &Record, path: &Path) -> Result<()> {
    let context = || format!("failed to write {}", path.display());
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).with_context(context)?;
    }
    let draft = path.with_extension("draft");
    std::fs::write(&draft, serde_json::to_string(record)?).with_context(context)?;
    std::fs::rename(&draft, path).with_context(context)
}

/// Heads or tails.
fn coin(random: &mut SplitMix) -> bool {
    random.bits() >> 63 == 1
}

/// 0 to `count` in random order (Fisher and Yates). The remainder's bias is below 2^-58 here.
fn order(random: &mut SplitMix, count: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    for last in (1..count).rev() {
        order.swap(last, (random.bits() % (last as u64 + 1)) as usize);
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_has_every_index_once_and_is_repeated_by_its_seed() {
        let of_seed = |seed| order(&mut SplitMix::new(seed), 50);
        let (one, again, other) = (of_seed(7), of_seed(7), of_seed(8));
        assert_eq!(one, again);
        assert_ne!(one, other);
        let mut sorted = one;
        sorted.sort_unstable();
        assert_eq!(sorted, (0..50).collect::<Vec<_>>());
    }

    #[test]
    fn coins_fall_on_both_sides() {
        let mut random = SplitMix::new(1);
        let heads = (0..1000).filter(|_| coin(&mut random)).count();
        assert!((400..600).contains(&heads), "{heads}");
    }
}
