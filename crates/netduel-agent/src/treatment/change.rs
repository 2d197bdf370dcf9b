//! The two halves of a treatment: a change that is ready, and the way back. Nothing here knows any kind of treatment.
use super::error::TreatmentError;

/// A change that is ready to be made: what it needs was read and checked.
pub(super) trait Change: Send {
    /// Makes the change and reads back whether the host took it.
    fn make(&self) -> Result<(), TreatmentError>;
    /// Reads whether the host has the change, and changes nothing: what it has instead is [`TreatmentError::NotTaken`].
    fn read_back(&self) -> Result<(), TreatmentError>;
    /// Whether it is a setting of an interface or its device, which events on the path and programs of others change, too.
    fn is_of_interface(&self) -> bool {
        true
    }
    /// The interface whose device the driver may stop and start for the change: its link goes then, and returns after the call.
    fn restarts(&self) -> Option<&str> {
        None
    }
}

/// The original state of what a treatment changes. Agent and guard restore it by the same code; the guard has it before the
/// change is made.
pub(super) trait Original {
    /// Restores it and reads it back. Restoring twice must be the same as restoring once: a process that dies between
    /// restoring and reporting leaves it to the other.
    fn restore(&self) -> Result<(), TreatmentError>;
    /// What was changed, for messages.
    fn what(&self) -> String;
    /// The commands that restore it without this program.
    fn by_hand(&self) -> String;
    /// The mark of processes that may still be at work on the change.
    fn mark(&self) -> Option<&str> {
        None
    }
}
