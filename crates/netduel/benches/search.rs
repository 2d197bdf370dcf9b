//! The search for the highest rate without loss against a sweep of all rates around it, in the lab, behind a constant limit (its
//! token bucket): compares results and cost. Targets: within 2 %, in a tenth of the time.
//!
//! The sweep tests every rate in steps of 1 % over a range that contains the limit, each with as many trials of the same length
//! as the goal has, and judges each by the goal's own rule. The known range is an advantage of the sweep.
mod support;

use netduel_model::metric::Metric;
use netduel_model::run::Run;
use netduel_model::search::{SearchPreset, SearchState};
use netduel_model::trial::Trial;
use netduel_report::analysis::value_of;
use support::stored_run;

/// The rate limit of the wire: 3302 frames of 1514 bytes per second. Bucket and queue add a few hundredths to that in two
/// seconds, and drain in a tenth of the time between two trials, so that trials do not influence each other. The receiver's
/// buffers are large, so that a receiver that waits for a core loses nothing.
const CAP: &str = "40 Mbit/s";
/// Rates of the sweep, packets per second: about 20 % on either side of the limit.
const RANGE: (f64, f64) = (2_700.0, 4_100.0);
/// Ratio of successive rates of the sweep.
const STEP: f64 = 1.01;
/// Blocks of either plan; each block runs the path twice.
const BLOCKS: u32 = 2;

fn main() {
    let goal = SearchPreset::NoDrop.goal();
    let searched = campaign(
        "[[workloads]]\nname = \"rate\"\ntype = \"pps\"\nflows = 2\nframe = 1518\nwindow = \"4 MiB\"\nsearch = \"no-drop\"\n",
    );
    let (mut found, mut seconds) = (Vec::new(), Vec::new());
    for trial in &searched.trials {
        let report = trial.search.as_ref().expect("a trial of this plan is a search");
        let spent_ns: u64 = report.steps.iter().map(|step| step.output.effective_duration_ns).sum();
        let result = report.results.first().expect("a search has a result for its goal");
        println!(
            "search: {:?}, bounds {:?} and {:?}, {} trials, {:.1} s",
            result.state,
            result.lower,
            result.upper,
            report.steps.len(),
            spent_ns as f64 / 1e9
        );
        if result.state == SearchState::Regular {
            found.extend(result.conditional_throughput);
            seconds.push(spent_ns as f64 / 1e9);
        }
    }
    let rates = rates();
    let swept =
        campaign(&rates.iter().map(|rate| paced(*rate, goal.final_trial.as_secs_f64())).collect::<String>());
    let truth = highest(&swept, &rates, goal.exceed_ratio);
    let sweep_s = swept.trials.len() as f64 * seconds_each(&swept);
    // The sweep has as many trials per rate as the goal may request.
    let (rate, search_s) = (median(&mut found), median(&mut seconds));
    let off = rate / truth - 1.0;
    println!(
        "search: {rate:.0} packets/s in {search_s:.1} s; sweep of {} rates, {} trials each: {truth:.0} packets/s in {sweep_s:.0} s",
        rates.len(),
        swept.trials.len() / rates.len()
    );
    println!("figure search-off-sweep {:.2} %", 100.0 * off);
    println!("figure search-time-of-sweep {:.2} %", 100.0 * search_s / sweep_s);
    assert_eq!(found.len(), searched.trials.len(), "every search has a regular result");
    assert!(off.abs() <= 0.02, "the search is not within 2 % of the sweep");
    assert!(search_s <= 0.1 * sweep_s, "the search takes more than a tenth of the time of the sweep");
}

/// The rates of the sweep, ascending.
fn rates() -> Vec<u64> {
    let rate = std::iter::successors(Some(RANGE.0), |rate| Some(rate * STEP));
    rate.take_while(|rate| *rate <= RANGE.1).map(|rate| rate as u64).collect()
}

fn paced(rate: u64, seconds: f64) -> String {
    format!(
        "[[workloads]]\nname = \"r{rate}\"\ntype = \"pps\"\nflows = 2\nframe = 1518\nwindow = \"4 MiB\"\npacket_rate = \"{rate} /s\"\n\
         duration = \"{seconds} s\"\nwarmup = \"100 ms\"\ncooldown = \"0 s\"\nmetrics = [\"loss\"]\n"
    )
}

/// Runs these workloads in the lab, and returns the stored run.
fn campaign(workloads: &str) -> Run {
    let text = format!(
        "name = \"search\"\nquestion = \"What does the path carry without loss?\"\n[lab]\ncap = \"{CAP}\"\n[hosts.a]\n\
         launch = \"lab\"\n[hosts.b]\nlaunch = \"lab\"\n[[arms]]\nname = \"path\"\nclient = \"a\"\nserver = \"b\"\n\
         treatments = [{{ path = \"accelerated\" }}]\n{workloads}\n[design]\naa = true\nblocks_min = {BLOCKS}\nblocks_max = {BLOCKS}\n"
    );
    // With so few blocks there may be no verdict (6); none is needed.
    stored_run(&text, &[0, 6])
}

/// The highest rate below all that fail: a rate fails when a larger share of its trials has loss than the goal allows.
fn highest(run: &Run, rates: &[u64], exceed_ratio: f64) -> f64 {
    let mut highest = 0;
    for rate in rates {
        let name = format!("r{rate}");
        let own: Vec<&Trial> =
            run.trials.iter().filter(|trial| trial.slot.workload.as_str() == name).collect();
        let lossy = own.iter().filter(|trial| loss(run, trial) > 0.0).count();
        println!("sweep: {rate} packets/s: {lossy} of {} trials lost packets", own.len());
        if lossy as f64 > exceed_ratio * own.len() as f64 {
            break;
        }
        highest = *rate;
    }
    highest as f64
}

fn loss(run: &Run, trial: &Trial) -> f64 {
    let arm = run.header.plan.arm(&trial.slot.arm).expect("the trial's arm is the plan's");
    let workload = arm.workload(&trial.slot.workload).expect("the trial's workload is the plan's");
    value_of(Metric::Loss, workload, trial, true).expect("both ends counted")
}

/// Duration of a trial including its overhead, seconds: from the start of the first to that of the last.
fn seconds_each(run: &Run) -> f64 {
    let started = || run.trials.iter().map(|trial| trial.started_unix_ms);
    let (first, last) = (started().min().unwrap_or(0), started().max().unwrap_or(0));
    (last - first) as f64 / 1e3 / (run.trials.len().max(2) - 1) as f64
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
