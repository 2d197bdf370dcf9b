//! Quick tests against `netduel serve`: one trial, a line for each interval, a summary. A quick test is a run of a plan with one
//! arm, one workload and one block, so that values, path proof and storage are those of every run.
pub mod args;
mod bind;
mod held_lines;
pub mod known;
mod link;
pub mod options;
mod output;
mod plan;
mod policy;
mod prompt;
#[cfg(test)]
mod ranges;
mod reach;
#[cfg(test)]
mod reproduced;
pub mod string_input;
pub mod tls;
pub mod values;

use std::cell::RefCell;

use netduel_control::coordinator::RunError;
use netduel_control::protocol::Limits;
use netduel_model::plan::ResolvedPlan;
use netduel_model::run::RunEnd;
use netduel_model::trial::{Trial, Validity};
use netduel_model::units::Nanos;
use netduel_model::workload::{Role, Workload};
use netduel_report::analysis::expected;
use netduel_report::json::quick::{QuickDocument, QuickTest};
use netduel_report::quick::SummaryInput;

use crate::console::{page_layout, print, print_json, tell};
use crate::exit::{Failure, Kind};
use crate::run::{Live, RunSource, System, run_failure};
use crate::run_store::{for_store, open_store, writable_store};
use crate::{program, redaction};
use args::{CommonArgs, CrrArgs, PpsArgs, RrArgs, TcpArgs, UdpArgs};
use output::{Format, Output};
use plan::Test;
use policy::QuickPolicy;

pub use known::command as pair;
pub use link::command as link;

/// `netduel tcp`.
pub fn tcp(args: &TcpArgs) -> Result<(), Failure> {
    run(&args.common, &Test::tcp(args))
}

/// `netduel udp`.
pub fn udp(args: &UdpArgs) -> Result<(), Failure> {
    run(&args.common, &Test::udp(args))
}

/// `netduel rr`.
pub fn round_trip(args: &RrArgs) -> Result<(), Failure> {
    run(&args.common, &Test::round_trip(args))
}

/// `netduel crr`.
pub fn connections(args: &CrrArgs) -> Result<(), Failure> {
    run(&args.common, &Test::connections(args))
}

/// Prints the failure of a command line that is invalid as the only event of its test.
pub fn print_failure_event(failure: &Failure) {
    output::failed(Format::JsonStream, failure, ("", &[]), Vec::new());
}

/// `netduel pps`: one test, or a sweep of several, whose values are in a table at the end.
pub fn packets(args: &PpsArgs) -> Result<(), Failure> {
    redaction::begin(args.common.redact.redact);
    let tests = Test::packets(args);
    // All are validated before the first one runs: the last size may be invalid.
    let placeholder = reach::placeholder(&args.common);
    for test in &tests {
        test.plan(&args.common, "server", placeholder).inspect_err(|failure| {
            output::failed(Format::of(&args.common), failure, ("", &[]), Vec::new());
        })?;
    }
    let done = run_all(&args.common, &tests)?;
    if done.len() > 1 && Format::of(&args.common) == Format::Text {
        let rows: Vec<SummaryInput<'_>> = done.iter().map(Tested::input).collect();
        print(&format!("\n{}", netduel_report::quick::sweep(&rows, page_layout().0)))?;
    }
    Ok(())
}

fn run(common: &CommonArgs, test: &Test) -> Result<(), Failure> {
    redaction::begin(common.redact.redact);
    run_all(common, std::slice::from_ref(test)).map(drop)
}

/// A finished test.
struct Tested {
    workload: Workload,
    trial: Trial,
    shared_machine: bool,
}

impl Tested {
    fn input(&self) -> SummaryInput<'_> {
        let Self { workload, trial, shared_machine } = self;
        SummaryInput { workload, trial, shared_machine: *shared_machine, expected: None, mtus: [None; 2] }
    }
}

/// A test with a result.
struct Done {
    tested: Tested,
    for_program: Option<QuickTest>,
    /// Whether the hosts were restored after it.
    restored: Result<(), Failure>,
}

/// The JSON output of the finished tests.
#[derive(Default)]
struct ForPrograms {
    server: String,
    tests: Vec<QuickTest>,
}

/// Runs the tests one after the other. One JSON document contains all.
fn run_all(common: &CommonArgs, tests: &[Test]) -> Result<Vec<Tested>, Failure> {
    let format = Format::of(common);
    let mut for_programs = ForPrograms::default();
    let mut done = Vec::new();
    for test in tests {
        if !done.is_empty() && format == Format::Text {
            print("\n")?;
        }
        done.push(run_for(common, test, &mut for_programs)?);
    }
    if format == Format::Json {
        let ForPrograms { server, tests } = for_programs;
        print_json(&QuickDocument::of(&server, tests, None, &program::origin()))?;
    }
    Ok(done)
}

fn run_for(common: &CommonArgs, test: &Test, for_programs: &mut ForPrograms) -> Result<Tested, Failure> {
    let failed = |failure: &Failure, for_programs: &ForPrograms, intervals| {
        output::failed(Format::of(common), failure, (&for_programs.server, &for_programs.tests), intervals);
    };
    let (server, plan) =
        ready(common, test).inspect_err(|failure| failed(failure, for_programs, Vec::new()))?;
    redaction::learn(&plan).inspect_err(|failure| failed(failure, for_programs, Vec::new()))?;
    for_programs.server = redaction::text(&server.words());
    let workload = plan.arms.first().and_then(|arm| arm.workloads.first());
    let workload =
        workload.ok_or_else(|| Failure::message(Kind::Internal, "the plan of a quick test is empty"))?;
    let output = RefCell::new(Output::new(common, workload));
    let Done { tested, for_program, restored } =
        execute(common, &server, (test, &plan, workload), &output)
            .inspect_err(|failure| failed(failure, for_programs, output.borrow().intervals_json()))?;
    for_programs.tests.extend(for_program);
    restored.inspect_err(|failure| failed(failure, for_programs, Vec::new()))?;
    Ok(tested)
}

/// Finds the server and builds the plan.
fn ready(common: &CommonArgs, test: &Test) -> Result<(reach::Server, ResolvedPlan), Failure> {
    if common.interval != Nanos(0) && common.interval < Limits::PROGRESS_MIN {
        let least = Limits::PROGRESS_MIN;
        let text = format!("-i {}: the shortest interval is {least}; 0 prints no lines", common.interval);
        return Err(Failure::message(Kind::Usage, text));
    }
    let is_tagged = common.tags.title.is_some() || !common.tags.notes.is_empty();
    if is_tagged && !common.save {
        let text = "--title and --note are stored with a run: add --save";
        return Err(Failure::message(Kind::Usage, text));
    }
    bind::check(common)?;
    if common.save {
        // A test whose result cannot be stored is not worth running.
        writable_store(&common.store)?;
    }
    // The values are validated before any network access; the address is not known yet, and no rule depends on it.
    test.plan(common, "server", reach::placeholder(common))?;
    let server = reach::server(common)?;
    let plan = test.plan(common, &server.at, server.address)?;
    Ok((server, plan))
}

#[expect(clippy::too_many_lines, reason = "the steps of a test in their order")]
fn execute(
    common: &CommonArgs,
    server: &reach::Server,
    (test, plan, workload): (&Test, &ResolvedPlan, &Workload),
    output: &RefCell<Output>,
) -> Result<Done, Failure> {
    output.borrow().begin(workload, (&redaction::text(&server.words()), test.rate_per_stream))?;
    let source = if common.save {
        let plan_text = test.plan_text(common, &server.at, server.address, &program::command_line())?;
        RunSource::New {
            plan_text,
            annotations: common.tags.annotations(&[]),
            reports: Vec::new(),
            bed: None,
        }
    } else {
        RunSource::Unstored
    };
    let store = open_store(&common.store)?;
    let mut system = System::new(plan, source, store, None)?;
    if let Some(bind) = &common.bind {
        // The agent of this host binds the data sockets, the link to the server the control connection.
        system.agent_arguments = vec!["--bind".to_owned(), bind.to_string()];
    }
    let progress = if common.interval == Nanos(0) { Nanos(1_000_000_000) } else { common.interval };
    let mut policy = QuickPolicy { plan, progress, failure: None };
    let has_lines = Format::of(common) == Format::Text && !common.quiet.quiet;
    let live = Live::open_for_test(common.live, has_lines, plan);
    if live.is_some() {
        output.borrow_mut().hold_lines();
    }
    let (result, closed) = system.run(&mut policy, |event| {
        if let Some(live) = &live {
            live.event(event);
        }
        output.borrow_mut().event(event);
    });
    if let Some(live) = live {
        live.close();
        // On the terminal that the view had.
        output.borrow_mut().release_lines();
    }
    let hosts = &closed.hosts;
    match (&closed.trial, result) {
        (_, Ok(RunEnd::Interrupted)) => Err(Failure::message(Kind::Interrupted, output.borrow().stopped())),
        (Some(trial), result) => {
            if let Validity::Failed { reason } = &trial.validity {
                let kind = match result {
                    Err(error) => run_failure(error).kind,
                    Ok(_) => policy.failure.unwrap_or(Kind::Host),
                };
                return Err(Failure::message(
                    kind,
                    format!("the test with {} failed {}: {reason}", server.words(), output.borrow().so_far()),
                ));
            }
            let mut snapshots = hosts.values();
            let shared = match (snapshots.next(), snapshots.next()) {
                (Some(one), Some(other)) => one.same_machine(other),
                _ => false,
            };
            let expected = plan.arms.first().and_then(|arm| expected::of(plan, hosts, arm, workload));
            let id = closed.id.filter(|_| common.save);
            let mtus = [Role::Client, Role::Server].map(|role| {
                let host = hosts.get(plan.arms.first()?.pair.host(role))?;
                netduel_report::quick::mtu(&trial.end(role)?.observation, host)
            });
            redaction::learn(hosts)?;
            let (plan, trial) = (redaction::value(plan.clone())?, redaction::value(trial.clone())?);
            let summary = SummaryInput {
                workload,
                trial: &trial,
                shared_machine: shared,
                expected: expected.as_ref(),
                mtus,
            };
            let for_program = output.borrow_mut().end(&plan, id.as_ref(), summary)?;
            if let Some(id) = id {
                tell(&format!("stored as run {id} ({})", for_store(&format!("netduel report {id}"))));
            }
            let tested = Tested { workload: workload.clone(), trial, shared_machine: shared };
            let restored = match result {
                Err(error @ RunError::NotRestored { .. }) => Err(run_failure(error)),
                _ => Ok(()),
            };
            Ok(Done { tested, for_program, restored })
        }
        (None, Err(error)) => Err(run_failure(error)),
        (None, Ok(_)) => Err(Failure::message(Kind::Host, "the test ended without a result")),
    }
}
