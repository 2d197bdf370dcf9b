//! Beds: what a user writes about the VMs that netduel deploys (`spec`), whether it makes sense (`check`), what is deployed (`resolved`), and
//! its VMs, NICs and subnets (`layout`); and what a run records of its bed (`recorded`). Nothing here knows the provider's formats or opens a file.
mod check;
pub mod layout;
pub mod money;
pub mod network;
pub mod prefix;
pub mod recorded;
pub mod resolved;
mod schema;
pub mod shutdown;
pub mod spec;
mod sysctls;

pub use layout::Layout;
pub use network::BedNetwork;
pub use recorded::{BedNic, BedVm, RunBed, SeenNic, SeenVf, VfUse, VmFacts};
pub use resolved::Bed;
pub use schema::schema;
pub use spec::{BedSpec, BedType, Families, Image, Placement};
pub use sysctls::Sysctls;

use crate::plan::PlanErrors;
use crate::plan::problem::Problems;
use crate::plan::shape::read_text;

/// Reads and checks a bed, and writes out every default. `file` is how the text is named in errors.
///
/// # Errors
/// [`PlanErrors`] with every problem that was found.
pub fn parse(text: &str, file: &str) -> Result<Bed, PlanErrors> {
    let mut problems = Problems::of(text, "bed");
    let Some(spec) = read_text::<BedSpec>(text, &mut problems) else {
        return Err(problems.into_errors(file));
    };
    judged(&spec, problems, file)
}

/// Checks a bed whose keys are in no file, and writes out every default. `source` stands for the file in errors, whose lines are all 1.
///
/// # Errors
/// As [`parse`].
pub fn check(spec: &BedSpec, source: &str) -> Result<Bed, PlanErrors> {
    judged(spec, Problems::of("", "bed"), source)
}

fn judged(spec: &BedSpec, mut problems: Problems<'_>, file: &str) -> Result<Bed, PlanErrors> {
    match check::resolve(spec, &mut problems) {
        Some(bed) if problems.len() == 0 => Ok(bed),
        _ => Err(problems.into_errors(file)),
    }
}
