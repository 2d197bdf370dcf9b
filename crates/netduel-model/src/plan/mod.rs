//! Plans: what a user writes (`spec`), and what is run (`resolved`, every default written out).
pub mod resolved;
pub mod spec;

pub use resolved::{Arm, Design, Host, Launch, Pair, ResolvedPlan, Treatment, TreatmentAction};
pub use spec::PlanSpec;
