//! What the settings of a few types have beyond the table of settings; every other type keeps these defaults. It knows no type.
use super::setting::{OutOfRange, Range};
use super::terms::Family;
use crate::failover::PathEvent;

/// The settings of a type of workload.
pub(super) trait Particular {
    /// The part of the range of a key that is left beside other settings, and those in words; absent where it is the whole range.
    fn narrowed(&self, _key: &str, _range: Range, _family: Family) -> Option<(Range, String)> {
        None
    }

    /// A value that no plan sets, and that does not follow from the others as a plan has it.
    fn misfit(&self, _family: Family) -> Option<OutOfRange> {
        None
    }

    /// Makes one step of its search of it: packets at this rate, or as fast as it can.
    fn set_step(&mut self, _packets_per_s: Option<u64>) {}

    /// Sets the interfaces of both ends that its packets go over, where they bypass the network stack.
    fn set_interfaces(&mut self, _client: Option<&String>, _server: Option<&String>) {}

    /// Its events, whose interfaces are known later than the plan.
    fn events_mut(&mut self) -> &mut [PathEvent] {
        &mut []
    }
}
