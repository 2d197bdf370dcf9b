//! The file of a bed, other files that it names, and whether a plan fits a bed.
use std::path::Path;

use netduel_model::bed::{self, Bed, RunBed};
use netduel_model::plan::{self, BedFault, ResolvedPlan};
use netduel_model::shell;

use crate::exit::{Failure, Kind, OrFail as _, unread};
use crate::input_file;

/// Longest bed file, bytes: a hundred times that of one with every key.
const BED_LEN_MAX: usize = 64 << 10;

/// Reads a regular text file of at most `most` bytes. `otherwise`: what helps where it cannot be read, whatever the cause is.
pub fn read_text(what: &str, path: &Path, most: usize, otherwise: &str) -> Result<String, Failure> {
    input_file::read_text(path, most)
        .map_err(|error| unread(Kind::Usage, format!("read the {what} {}", path.display()), error, otherwise))
}

/// Reads and checks a bed.
pub fn read_bed(path: &Path) -> Result<Bed, Failure> {
    let text = read_text("bed", path, BED_LEN_MAX, "name another bed file")?;
    bed::parse(&text, &path.display().to_string()).kind(Kind::Usage)
}

/// Refuses a plan that uses no VM of a bed.
pub fn check_hosts(path: &Path, plan: &ResolvedPlan) -> Result<(), Failure> {
    if plan.vms().next().is_some() {
        return Ok(());
    }
    let text = format!("failed to use {} on a bed: it has no host with `bed`", path.display());
    Err(Failure::message(Kind::Usage, text).remedy(format!(
        "write bed = \"vm1\" into the hosts that are VMs of the bed, or run the plan without a bed: `netduel run {}`",
        shell::word(&path.to_string_lossy())
    )))
}

/// Refuses a plan that uses a VM of a bed, for `netduel run`, which uses none.
pub fn refuse_vms(path: &Path, plan: &ResolvedPlan) -> Result<(), Failure> {
    let Some((host, vm)) = plan.vms().next() else { return Ok(()) };
    let text = format!(
        "failed to run {}: the host {host} is {vm} of a bed, and `netduel run` uses no bed",
        path.display()
    );
    let path = shell::word(&path.to_string_lossy());
    Err(Failure::message(Kind::Usage, text).remedy(format!("use `netduel azure run {path}`")))
}

/// Refuses a plan that uses no VM of a bed, or needs what the bed does not have. `text` is that of the plan's file.
pub fn check_fit(path: &Path, text: &str, plan: &ResolvedPlan, bed: &RunBed) -> Result<(), Failure> {
    check_hosts(path, plan)?;
    plan.fits_bed(bed).map_err(|faults| misfit(path, text, &faults))
}

/// What a plan needs and the bed does not have, with the line of a key that says so.
pub fn misfit(path: &Path, text: &str, faults: &[BedFault]) -> Failure {
    let line = |fault: &BedFault| plan::line_of(text, &fault.key()?);
    let shown = |fault: &BedFault| match line(fault) {
        Some(line) => format!("line {line}: {fault}"),
        None => fault.to_string(),
    };
    let lines: Vec<String> = faults.iter().map(shown).collect();
    Failure::message(Kind::Usage, format!("{} does not fit the bed: {}", path.display(), lines.join("; ")))
}
