//! `--redact`: one set of pseudonyms for everything that a command prints and writes. The pseudonyms are made in `netduel_model::redact`.
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use netduel_model::plan::ResolvedPlan;
use netduel_model::redact::{RedactError, Redactor};
use netduel_model::run::Run;
use netduel_report::baseline::Baseline;

use crate::exit::{Failure, Kind};

/// The pseudonyms of this process; absent without `--redact`. Messages have them too, wherever they are made.
static REDACTOR: OnceLock<Mutex<Redactor>> = OnceLock::new();

/// Begins to redact, when the option is given.
pub fn begin(is_wanted: bool) {
    if is_wanted {
        REDACTOR.get_or_init(Mutex::default);
    }
}

/// Whether `--redact` was given.
pub fn is_on() -> bool {
    REDACTOR.get().is_some()
}

/// The pseudonyms of this process.
fn redactor() -> Option<MutexGuard<'static, Redactor>> {
    // A thread that panicked while it held the names has left them whole: they are only added to.
    REDACTOR.get().map(|redactor| redactor.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Redacts something with the pseudonyms of this process; unchanged without `--redact`.
fn with<T>(value: T, redact: impl FnOnce(&mut Redactor, &T) -> Result<T, RedactError>) -> Result<T, Failure> {
    let Some(mut redactor) = redactor() else { return Ok(value) };
    redact(&mut redactor, &value).map_err(|error| Failure::new(Kind::Internal, error))
}

/// Learns the names of a value before anything of it is printed.
pub fn learn(value: &impl serde::Serialize) -> Result<(), Failure> {
    let Some(mut redactor) = redactor() else { return Ok(()) };
    redactor.learn(value).map_err(|error| Failure::new(Kind::Internal, error))
}

/// Learns the names of a plan before anything of it is shown, and decides how its arms and workloads are called.
pub fn learn_plan(plan: &ResolvedPlan) -> Result<(), Failure> {
    learn(plan)?;
    if let Some(mut redactor) = redactor() {
        redactor.show_names(plan);
    }
    Ok(())
}

/// Learns the names of a run before anything of it, or of another run of the same output, is shown.
pub fn learn_run(run: &Run) -> Result<(), Failure> {
    let Some(mut redactor) = redactor() else { return Ok(()) };
    redactor.learn_run(run).map_err(|error| Failure::new(Kind::Internal, error))
}

/// Learns the name of a resource of a cloud, or of a subscription, before a message has it.
pub fn learn_resource(name: &str) {
    if let Some(mut redactor) = redactor() {
        redactor.learn_resource(name);
    }
}

/// Learns the names in the text of a plan with errors before they are shown.
pub fn learn_plan_text(text: &str) {
    if let Some(mut redactor) = redactor() {
        redactor.learn_plan_text(text);
    }
}

/// Learns the names in a baseline file before anything of it, or of a run beside it, is shown.
pub fn learn_baseline(baseline: &Baseline) -> Result<(), Failure> {
    let Some(mut redactor) = redactor() else { return Ok(()) };
    baseline.learn(&mut redactor).map_err(|error| Failure::new(Kind::Internal, error))
}

/// A redacted baseline file as it is shown beside runs.
pub fn baseline(baseline: &Baseline) -> Result<Baseline, Failure> {
    let Some(mut redactor) = redactor() else { return Ok(baseline.clone()) };
    baseline.redacted(&mut redactor).map_err(|error| Failure::new(Kind::Internal, error))
}

/// A run as it is shown.
pub fn run(run: Run) -> Result<Run, Failure> {
    with(run, |redactor, run| {
        redactor.learn_run(run)?;
        redactor.redact_run(run)
    })
}

/// A text as it is shown.
pub fn text(text: &str) -> String {
    redactor().map_or_else(|| text.to_owned(), |mut redactor| redactor.text(text))
}

/// Learns values and returns them as they are shown.
pub fn value<T: serde::Serialize + serde::de::DeserializeOwned>(value: T) -> Result<T, Failure> {
    with(value, |redactor, value| {
        redactor.learn(value)?;
        redactor.redact(value)
    })
}

/// What a command line calls a host, as it is shown.
pub fn host(name: &str) -> String {
    redactor().map_or_else(|| name.to_owned(), |mut redactor| redactor.host(name))
}
