//! Products that break a promise. With them the tests show that the judges notice it; no seed draws one.
use netduel_model::trial::{Trial, Validity};

/// What the coordinator, an agent or a guard does wrong, in every seed that gives occasion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sabotage {
    /// Each trial is stored twice.
    StoresTwice,
    /// A valid trial is stored without the server's end.
    StoresOneEnd,
    /// A failed trial is stored as valid.
    StoresFailedAsValid,
    /// The lab stays on the path of the first arm.
    KeepsPath,
    /// Agents report treatments as undone, and leave them in place.
    KeepsTreatments,
    /// The guards of killed agents end without restoring their hosts.
    RestoresNothing,
    /// Agents report a lock that they do not hold.
    TakesNoLock,
    /// Agents are given up while they prepare a server.
    GivesUpAgents,
    /// A lost agent ends the run.
    RestartsNoAgents,
    /// Each line to an agent is sent twice.
    RepeatsLines,
    /// Agents are not ended.
    LeavesAgents,
    /// Blocks begin without a check of the precision.
    SkipsPrecision,
    /// The run ends as precise enough at the first check.
    EndsEarly,
    /// The run goes on after an interrupt.
    IgnoresInterrupts,
    /// The run takes minutes to notice an interrupt.
    StopsLate,
    /// Stored warnings are not shown.
    HidesWarnings,
    /// The record of the last trial is lost when the end of the run is stored.
    LosesRecord,
    /// Agents describe their hosts once, and report the same at the end of each block.
    DescribesOnce,
}

/// The records of one trial that reach the store.
pub(crate) fn records(sabotage: Option<Sabotage>, trial: &Trial) -> Vec<Trial> {
    let mut record = trial.clone();
    match sabotage {
        Some(Sabotage::StoresTwice) => return vec![record.clone(), record],
        Some(Sabotage::StoresOneEnd) if record.is_valid() => record.server = None,
        Some(Sabotage::StoresFailedAsValid) if matches!(record.validity, Validity::Failed { .. }) => {
            record.validity = Validity::Valid;
        }
        _ => {}
    }
    vec![record]
}
