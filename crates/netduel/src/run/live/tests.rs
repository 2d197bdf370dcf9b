//! Screens of recorded runs at several sizes, compared with files. `cargo xtask bless` writes them.
use netduel_control::coordinator::Policy as _;
use netduel_model::ids::{ArmName, RunId};
use netduel_model::metric::Metric;
use netduel_model::run::{Run, RunEnd};
use netduel_model::sample::{LiveFigures, LiveRoundTrips};
use netduel_model::trial::{Slot, Validity};
use netduel_model::units::Nanos;
use netduel_model::warning::Warning;
use netduel_model::workload::Role;
use netduel_store::Store;

use super::*;
use crate::figure::lose_all;
use crate::run::PlanPolicy;
use crate::run::live::canvas::Line;
use crate::run::live::screen::{DETAILS_FROM, PAUSE_MAX_MIN, SIZE_MIN};

const S: u64 = 1_000_000_000;

#[test]
fn guide_states_the_sizes_of_terminals() {
    let guide = include_str!("../../../../../docs/live.md");
    let ((columns, lines), (columns_min, lines_min)) = (LARGE, SIZE_MIN);
    for size in [
        format!("at least {columns} columns and {lines} lines"),
        format!("fewer than {columns_min} columns or {lines_min} lines"),
        format!("at least {DETAILS_FROM} lines"),
    ] {
        assert!(guide.contains(&size), "{size}");
    }
}

#[test]
fn guide_states_the_longest_pause() {
    let guide = include_str!("../../../../../docs/live.md");
    let longest = format!("A pause ends by itself after {PAUSE_MAX_MIN} minutes,");
    assert!(guide.contains(&longest), "{longest}");
}

fn recorded(name: &str) -> Run {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../netduel-store/tests/golden");
    let file = folder.join(format!("format-{name}.netduel"));
    Store::at(&folder).read(file.to_str().expect("a plain path")).expect("a run")
}

/// A run that repeats the blocks of a recorded one, with slightly other bytes in each, up to a trial in flight in block `blocks`.
fn state(run: &Run, blocks: u32) -> State {
    let mut plan = run.header.plan.clone();
    plan.design.blocks_max = 12;
    let mut state = State::new(&plan, Vec::new());
    let mut now_ns = 0;
    let mut apply = |state: &mut State, event: Event| {
        now_ns += S / 2;
        state.apply(&event, now_ns);
    };
    let per_block = plan.trials_per_block();
    let id = RunId::new("recorded-20261125-120000-7f3a").expect("a name");
    apply(&mut state, Event::RunStarted { id, trials_max: 12 * per_block, trials_done: 0 });
    let first: Vec<Trial> = run.trials.iter().filter(|trial| trial.slot.block == 0).cloned().collect();
    for block in 0..blocks {
        for (index, trial) in first.iter().enumerate() {
            let mut trial = trial.clone();
            trial.slot.block = block;
            trial.attempt = 0;
            vary(&mut trial, u64::from(block) * 7 + index as u64);
            if block == 1 && index == 1 {
                trial.validity = Validity::WrongPath { reason: "the bytes went through eth0".to_owned() };
            }
            let slot = trial.slot.clone();
            apply(&mut state, Event::TrialStarted { slot, duration_ns: S });
            apply(&mut state, Event::TrialFinished { trial: Box::new(trial) });
        }
        apply(&mut state, Event::BlockFinished { block });
    }
    if let Some(next) = first.first() {
        let slot = Slot { block: blocks, ..next.slot.clone() };
        apply(&mut state, Event::TrialStarted { slot, duration_ns: 10 * S });
        for step in 1..8_u64 {
            let figures = LiveFigures {
                elapsed_ns: step * S,
                received_bytes: 1_000_000_000 * step + 100_000_000 * (step % 3),
                retransmits: Some(step * 3),
                lost: Some(2),
                round_trips: Some(LiveRoundTrips {
                    count: 9,
                    p50_ns: 41_000,
                    p99_ns: 88_000,
                    max_ns: 99_000,
                }),
                ..LiveFigures::default()
            };
            apply(&mut state, Event::TrialProgress { role: Role::Client, figures });
        }
    }
    for text in ["host a is ready", "warning: clock steps of the host b make its figures doubtful"] {
        state.message(text);
    }
    state
}

/// Makes the bytes of a trial differ by some percent from block to block.
fn vary(trial: &mut Trial, seed: u64) {
    let share = |bytes: u64| bytes + bytes / 1000 * (seed * 2_654_435_761 % 40);
    for end in [&mut trial.client, &mut trial.server].into_iter().flatten() {
        for report in [&mut end.report.received, &mut end.report.sent].into_iter().flatten() {
            report.bytes = share(report.bytes);
            report.series.iter_mut().for_each(|interval| interval.bytes = share(interval.bytes));
        }
    }
}

fn view() -> View {
    View {
        details: false,
        help: false,
        theme: Theme::Dark,
        glyphs: Glyphs::UNICODE,
        paused: false,
        stopping: false,
    }
}

fn text(lines: &[Line]) -> String {
    lines.iter().map(|line| line.text() + "\n").collect()
}

/// Compares a screen with its file.
fn assert_screen(name: &str, lines: &[Line]) {
    let file =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("src/run/live/screens/{name}.txt"));
    let shown = text(lines);
    if std::env::var_os("NETDUEL_BLESS").is_some() {
        std::fs::create_dir_all(file.parent().expect("a folder")).expect("made");
        std::fs::write(&file, shown).expect("written");
        return;
    }
    let expected = std::fs::read_to_string(&file).expect("a screen; write it with `cargo xtask bless`");
    assert_eq!(shown, expected, "{name}:\n{shown}");
}

const SIZES: [(usize, usize); 3] = [(80, 24), (120, 40), (200, 60)];

#[test]
fn run_in_progress_is_shown_at_each_size() {
    let state = state(&recorded("2-real-treatments"), 5);
    for (width, height) in SIZES {
        let lines = screen(&state, &view(), (width, height), 90 * S);
        assert_screen(&format!("running-{width}x{height}"), &lines);
    }
}

#[test]
fn details_and_ascii_are_shown() {
    let state = state(&recorded("2-real-treatments"), 5);
    let view = View { details: true, glyphs: Glyphs::ASCII, paused: true, ..view() };
    let lines = screen(&state, &view, (100, 30), 90 * S);
    assert!(text(&lines).is_ascii(), "{}", text(&lines));
    assert_screen("details-100x30", &lines);
}

#[test]
fn screen_of_fifty_lines_has_all_metrics_and_verdicts_in_words() {
    let state = calm([10, 12], &["as-usual", "changed"], 10);
    let shown = |height| text(&screen(&state, &view(), (240, height), S));
    let (low, tall) = (shown(49), shown(50));
    assert_eq!(state.rows.len(), 2, "{:?}", state.rows);
    for row in &state.rows {
        let name = format!("udp {}", row.metric.to_lowercase());
        // Once among the comparisons, and once among the arms. Without details these have the workload's name alone.
        assert_eq!((low.matches(&name).count(), tall.matches(&name).count()), (1, 2), "{name}:\n{tall}");
        assert!(!low.contains(&row.verdict) && tall.contains(&row.verdict), "{}:\n{tall}", row.verdict);
    }
    assert!(low.contains("d details") && !tall.contains("d details"), "the key has no effect there:\n{tall}");
    let details = text(&screen(&state, &View { details: true, ..view() }, (240, 49), S));
    assert_eq!(details.lines().nth(6), tall.lines().nth(6), "the key has the same effect");
}

#[test]
fn metric_that_only_another_arm_has_is_among_the_details() {
    let mut state = calm([10, 12], &["as-usual", "changed"], 10);
    let names: Vec<String> =
        state.rows.iter().map(|row| format!("udp {}", row.metric.to_lowercase())).collect();
    let baseline = state.plan.arms.first_mut().expect("a baseline");
    baseline.workloads.iter_mut().for_each(|workload| workload.metrics.truncate(1));
    let shown = text(&screen(&state, &View { details: true, ..view() }, (240, 49), S));
    assert_eq!(names.len(), 2, "{names:?}");
    for name in names {
        assert_eq!(shown.matches(&name).count(), 2, "{name} among the arms and the comparisons:\n{shown}");
    }
}

#[test]
fn quick_test_has_neither_a_pause_nor_a_run_to_resume() {
    let mut state = state(&recorded("2-real-packets"), 0);
    let shown = |state: &State, help| text(&screen(state, &View { help, ..view() }, (120, 40), S));
    let of_run = shown(&state, true);
    assert!(of_run.contains("p pause") && of_run.contains("--resume"), "{of_run}");
    state.is_quick_test = true;
    for help in [false, true] {
        let of_test = shown(&state, help);
        assert!(of_test.contains("q stop") && !of_test.contains("pause"), "{of_test}");
        assert!(!of_test.contains("--resume"), "{of_test}");
    }
}

#[test]
fn every_size_is_filled_exactly() {
    let runs = ["2-real-treatments", "2-real-failover", "2-real-packets", "2-every"].map(recorded);
    for run in &runs {
        for blocks in [0, 1, 9] {
            let state = state(run, blocks);
            for view in [view(), View { details: true, ..view() }, View { help: true, ..view() }] {
                for size in
                    [(10, 5), (79, 23), (80, 24), (101, 30), (119, 40), (120, 40), (200, 60), (400, 200)]
                {
                    let lines = screen(&state, &view, size, 90 * S);
                    assert_eq!(lines.len(), size.1, "{size:?}");
                    assert!(lines.iter().all(|line| line.width() == size.0), "{size:?}: {}", text(&lines));
                }
            }
        }
    }
}

#[test]
fn run_that_begins_has_a_screen_before_its_first_event() {
    let state = State::new(&recorded("2-real-treatments").header.plan, Vec::new());
    let shown = text(&screen(&state, &view(), (80, 24), 0));
    assert!(shown.contains("starting") && shown.contains("q stop"), "{shown}");
}

#[test]
fn end_of_the_run_and_a_pause_are_named() {
    let mut state = state(&recorded("2-real-treatments"), 2);
    let shown = |state: &State, view: &View| text(&screen(state, view, (120, 40), 90 * S));
    assert!(shown(&state, &View { paused: true, ..view() }).contains("pause after this trial"));
    assert!(shown(&state, &View { stopping: true, ..view() }).contains("stopping"));
    state.apply(&Event::RunFinished { end: RunEnd::PrecisionReached }, 0);
    let end = shown(&state, &view());
    assert!(end.contains("every interval is") || end.contains("precision"), "{end}");
}

/// A run of these arms after so many blocks. The first two have the same values in each block: of a rate, which is compared as a ratio, and of
/// the loss, which is compared as a difference.
fn calm(blocks_min_max: [u32; 2], arms: &[&str], blocks: u32) -> State {
    calm_with(blocks_min_max, arms, blocks, &RATE_AND_LOSS, |_| {})
}

const RATE_AND_LOSS: [Metric; 2] = [Metric::DatagramRate, Metric::Loss];

/// The same with these metrics and altered trials.
fn calm_with(
    [blocks_min, blocks_max]: [u32; 2],
    arms: &[&str],
    blocks: u32,
    metrics: &[Metric],
    alter: impl Fn(&mut Trial),
) -> State {
    let run = recorded("2-real-treatments");
    let mut plan = run.header.plan.clone();
    (plan.design.blocks_min, plan.design.blocks_max) = (blocks_min, blocks_max);
    plan.workloads.retain(|name| name.as_str() == "udp");
    plan.arms.retain(|arm| arms.contains(&arm.name.as_str()));
    for workload in plan.arms.iter_mut().flat_map(|arm| &mut arm.workloads) {
        workload.metrics = metrics.to_vec();
    }
    let is_valid = |trial: &&Trial| trial.is_valid() && trial.slot.workload.as_str() == "udp";
    let valid = run.trials.iter().find(is_valid).expect("a valid trial");
    after_blocks(&plan, blocks, |block, arm| {
        let mut trial = valid.clone();
        (trial.slot.block, trial.slot.arm) =
            (block, plan.arms[usize::try_from(arm).expect("an arm")].name.clone());
        alter(&mut trial);
        trial
    })
}

/// A run of two arms and one metric, whose ratio differs from block to block by some percent.
fn uneven(blocks: u32) -> State {
    let run = recorded("2-real-treatments");
    let mut plan = run.header.plan.clone();
    (plan.design.blocks_min, plan.design.blocks_max) = (6, 40);
    plan.workloads.retain(|name| name.as_str() == "stream");
    plan.arms.truncate(2);
    for workload in plan.arms.iter_mut().flat_map(|arm| &mut arm.workloads) {
        workload.metrics = vec![Metric::Throughput];
    }
    let is_valid = |trial: &&Trial| trial.is_valid() && trial.slot.workload.as_str() == "stream";
    let valid = run.trials.iter().find(is_valid).expect("a valid trial");
    after_blocks(&plan, blocks, |block, arm| {
        let mut trial = valid.clone();
        vary(&mut trial, arm * (u64::from(block) * u64::from(block) * 7 + 3));
        trial
    })
}

/// The state after so many blocks, in which the first two arms have these trials, by block and place of the arm.
fn after_blocks(plan: &ResolvedPlan, blocks: u32, trial: impl Fn(u32, u64) -> Trial) -> State {
    let mut state = State::new(plan, Vec::new());
    let id = RunId::new("x").expect("a name");
    let trials_max = plan.design.blocks_max * plan.trials_per_block();
    state.apply(&Event::RunStarted { id, trials_max, trials_done: 0 }, 0);
    for block in 0..blocks {
        for (arm, place) in plan.arms.iter().take(2).zip(0..) {
            let mut trial = trial(block, place);
            (trial.slot.block, trial.slot.arm) = (block, arm.name.clone());
            state.apply(&Event::TrialFinished { trial: Box::new(trial) }, 0);
        }
        state.apply(&Event::BlockFinished { block }, 0);
    }
    state
}

#[test]
fn comparison_has_its_interval_and_the_curve_of_its_widths() {
    let state = uneven(12);
    let [row] = state.rows.as_slice() else { panic!("{:?}", state.rows) };
    let (first, last) = (row.widths.first().expect("a width"), row.widths.last().expect("a width"));
    assert!(row.widths.len() > 2 && last < first, "{:?}", row.widths);
    let shown = text(&screen(&state, &view(), (200, 40), S));
    let line = shown.lines().find(|line| line.contains("stream throughput  ")).expect("the comparison");
    // The estimate with its interval, the interval on an axis, the half-width, and a curve from the widest to the narrowest.
    assert!(line.contains(&row.interval) && row.interval.contains('['), "{}: {line}", row.interval);
    assert!(line.contains('●'), "{line}");
    let half = format!("+-{} █", row.half);
    assert!(row.half.ends_with(" %") && line.contains(&half) && line.contains('▁'), "no {half}: {line}");
}

#[test]
fn interval_of_a_difference_has_its_half_width_in_its_unit() {
    let state = calm([10, 12], &["as-usual", "changed"], 10);
    let loss = state.rows.iter().find(|row| row.ratio.is_none()).expect("the loss");
    assert_eq!(loss.half, "0 percentage points");
    let shown = text(&screen(&state, &view(), (200, 40), S));
    assert!(shown.contains("+-0 percentage points"), "{shown}");
}

#[test]
fn values_that_are_bounds_have_their_sign() {
    let shown = |silent: u32| {
        let state = calm_with([10, 12], &["as-usual", "changed"], 10, &RATE_AND_LOSS, |trial| {
            if trial.slot.arm.as_str() == "as-usual" || trial.slot.block >= silent {
                return;
            }
            // Nothing of what was sent arrived.
            for end in [&mut trial.client, &mut trial.server].into_iter().flatten() {
                let samples = end.report.received.iter_mut().flat_map(|flow| &mut flow.series);
                samples.for_each(|sample| (sample.bytes, sample.messages) = (0, 0));
            }
        });
        let of_rate = state.values.iter().filter(|((_, _, metric), _)| *metric == Metric::DatagramRate);
        let signs: Vec<bool> = of_rate.map(|(_, values)| values.median.starts_with("< ")).collect();
        let row = state.rows.first().expect("a comparison");
        (signs, row.interval.clone(), row.ratio.is_some(), row.verdict.clone())
    };
    let (signs, interval, has_ratio, verdict) = shown(0);
    assert!(signs == [false, false] && has_ratio && interval.starts_with("1.00x ["), "{interval}");
    assert!(verdict.starts_with("no difference"), "{verdict}");
    let (signs, interval, has_ratio, verdict) = shown(10);
    assert!(signs == [false, true] && has_ratio && interval.starts_with("<= 0.0"), "{interval}");
    assert!(verdict.starts_with("at most "), "{verdict}");
    // In half of the blocks nothing arrived: the estimate may be too high, and no interval shows how much.
    let (signs, interval, has_ratio, verdict) = shown(5);
    assert!(signs == [false, true] && !has_ratio && interval.is_empty(), "{interval}");
    assert!(verdict.starts_with("inconclusive"), "{verdict}");
}

#[test]
fn trials_whose_result_was_too_bad_for_a_value_are_in_the_median_and_the_verdict() {
    let shown = |lost: u32| {
        let state = calm_with([10, 12], &["as-usual", "changed"], 10, &[Metric::Jitter], |trial| {
            if trial.slot.arm.as_str() == "changed" && trial.slot.block < lost {
                lose_all(trial);
            }
        });
        let medians: Vec<String> = state.values.values().map(|values| values.median.clone()).collect();
        let [row] = state.rows.as_slice() else { panic!("{:?}", state.rows) };
        let drawn = text(&screen(&state, &view(), (120, 40), S));
        assert!(medians.iter().all(|median| drawn.contains(median)), "{medians:?}:\n{drawn}");
        let [usual, changed] = <[String; 2]>::try_from(medians).expect("two arms");
        (usual, changed, row.interval.clone(), row.verdict.clone())
    };
    let (usual, changed, interval, verdict) = shown(0);
    assert!(usual == changed && !interval.is_empty(), "{usual} {changed} {interval}");
    assert!(verdict.starts_with("no difference"), "{verdict}");
    let (usual, changed, interval, verdict) = shown(2);
    assert!(changed == format!(">= {usual}") && interval.is_empty(), "{changed} {interval}");
    assert!(verdict.starts_with("inconclusive"), "{verdict}");
    let (_, changed, interval, verdict) = shown(10);
    assert!(changed == "no value" && interval.is_empty(), "{changed} {interval}");
    assert_eq!(verdict, "inconclusive: no value in 10 valid trials of changed");
}

#[test]
fn stop_at_the_precision_is_announced_exactly_when_the_run_stops() {
    let is_announced =
        |state: &State| text(&screen(state, &view(), (120, 40), S)).contains("precision reached: stopping");
    let two = ["as-usual", "changed"];
    assert!(!is_announced(&calm([10, 12], &two, 9)), "a block before the least number of them");
    assert!(is_announced(&calm([10, 12], &two, 10)));
    assert!(!is_announced(&calm([12, 12], &two, 10)), "the number of blocks is fixed");

    let mut state = calm([10, 12], &["as-usual", "changed", "wrong"], 10);
    assert!(!is_announced(&state), "an arm has no value");
    let arm = ArmName::new("wrong").expect("a name");
    let warning = Warning::ArmDropped { arm, reason: "refused".to_owned() };
    state.apply(&Event::Warned { warning }, 0);
    state.apply(&Event::BlockFinished { block: 9 }, 0);
    assert!(is_announced(&state), "a dropped arm does not count");
}

#[test]
fn pause_that_the_run_has_ended_does_not_hold_up_later_trials() {
    let plan = recorded("2-real-treatments").header.plan;
    let controls = Controls::default();
    let mut policy = PlanPolicy { plan: &plan, controls: controls.clone() };
    controls.toggle_pause();
    assert!(policy.is_paused());
    policy.pause_ended(Nanos::from_millis(600_000));
    assert!(!policy.is_paused() && !controls.is_paused());
    controls.toggle_pause();
    assert!(policy.is_paused(), "the key pauses again");
}

#[test]
fn live_figures_are_replaced_and_events_are_kept_in_their_order() {
    let mut inbox = Inbox::default();
    let progress = |bytes: u64| Event::TrialProgress {
        role: Role::Client,
        figures: LiveFigures { received_bytes: bytes, ..LiveFigures::default() },
    };
    let block = |block: u32| Event::BlockFinished { block };
    for event in [progress(1), progress(2), block(0), progress(3), block(1), progress(4), progress(5)] {
        inbox.push(0, &event);
    }
    let taken: Vec<Event> = inbox.take().into_iter().map(|(_, event)| event).collect();
    assert_eq!(taken, [progress(2), block(0), progress(3), block(1), progress(5)]);
    assert!(inbox.take().is_empty());
}

#[test]
fn resumed_run_shows_the_trials_of_its_complete_blocks() {
    let run = recorded("2-real-treatments");
    let plan = &run.header.plan;
    let per_block = plan.trials_per_block();
    let arms = plan.arms.iter().map(|arm| &arm.name);
    let kinds = arms.flat_map(|arm| plan.workloads.iter().map(move |workload| (arm, workload)));
    let slots = (0..2).flat_map(|block| {
        kinds.clone().zip(0..).map(move |((arm, workload), position)| Slot {
            block,
            position,
            arm: arm.clone(),
            workload: workload.clone(),
        })
    });
    let mut earlier: Vec<Trial> =
        slots.map(|slot| Trial { slot, ..run.trials.first().expect("a trial").clone() }).collect();
    // The run was interrupted in its second block.
    earlier.pop();
    let mut state = State::new(plan, earlier);
    let id = RunId::new("x").expect("a name");
    state.apply(&Event::RunStarted { id, trials_max: 4 * per_block, trials_done: per_block }, 0);
    assert_eq!(state.marks.len(), per_block as usize, "the second block is repeated");
    assert_eq!(state.done, per_block);
}
