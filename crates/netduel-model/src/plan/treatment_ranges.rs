//! The quantities of treatments, for the ranges of the table: agents check a request with them, as a plan was checked. No range is
//! defined here.
use super::resolved::TreatmentAction;
use super::tuning::{CoreChoice, RssSpread};
use crate::workload::{CORE, DESCRIPTORS, OutOfRange, Setting, TREATMENT};

impl TreatmentAction {
    /// The first quantity that is out of its range. Agents refuse such a treatment, as a plan does.
    pub fn out_of_range(&self) -> Option<OutOfRange> {
        OutOfRange::first(self.settings(), |key| self.number(key))
    }

    fn settings(&self) -> &'static [Setting] {
        match self {
            Self::Ring { .. } => &[DESCRIPTORS],
            Self::Rps { .. } | Self::Xps { .. } | Self::IrqAffinity { .. } => &[CORE],
            _ => TREATMENT,
        }
    }

    /// A quantity by its key in a plan, in the unit of its range.
    fn number(&self, key: &str) -> Option<u64> {
        match (self, key) {
            (Self::Mtu { mtu, .. }, "mtu") => Some((*mtu).into()),
            (
                Self::Queues { queues, .. } | Self::Rss { table: RssSpread::Equal { queues }, .. },
                "queues",
            ) => Some((*queues).into()),
            (Self::Rss { table: RssSpread::Weights { weights }, .. }, "queues") => Some(weights.len() as u64),
            (Self::Ring { descriptors, .. }, "value") => Some((*descriptors).into()),
            // The range begins with 0, so the highest core is the one that may be beyond it.
            (
                Self::Rps { cores: CoreChoice::Cores { cores }, .. }
                | Self::Xps { cores: CoreChoice::Cores { cores }, .. }
                | Self::IrqAffinity { cores: CoreChoice::Cores { cores }, .. },
                "core",
            ) => cores.iter().max().map(|core| (*core).into()),
            _ => None,
        }
    }
}
