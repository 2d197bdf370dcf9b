//! The record of a change: what its guard needs to undo it. The only file that knows every kind of treatment; a kind has its checks,
//! its change, its way back and their words in a file of its own.
use netduel_model::plan::TreatmentAction;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::change::{Change, Original};
use super::error::TreatmentError;
use super::resource::{self, HostResource};
use super::roots::Roots;
use super::steering::{self, Steering};
use super::{coalesce, command, irq, mtu, offload, pci, queues, ring, rss, sysctl, vf};

/// A change that is ready, and the record with which it is undone.
pub(super) type Ready = (Record, Box<dyn Change>);

/// Declares the kinds of records, each with the type of its original state.
macro_rules! kinds {
    ($($kind:ident($original:ty),)+) => {
        /// The original state of what a treatment changes, as an agent hands it to its guard.
        #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
        #[serde(tag = "kind", rename_all = "kebab-case")]
        pub(super) enum Record {
            $($kind($original),)+
        }

        impl Record {
            fn original(&self) -> &dyn Original {
                match self {
                    $(Self::$kind(original) => original,)+
                }
            }
        }

        $(impl From<$original> for Record {
            fn from(original: $original) -> Self {
                Self::$kind(original)
            }
        })+
    };
}

kinds! {
    Offload(offload::OffloadOriginal),
    Mtu(mtu::MtuOriginal),
    Sysctl(sysctl::SysctlOriginal),
    Link(vf::LinkOriginal),
    Pci(pci::PciOriginal),
    Queues(queues::QueuesOriginal),
    Rss(rss::RssOriginal),
    Ring(ring::RingOriginal),
    Coalesce(coalesce::CoalesceOriginal),
    QueueFiles(steering::QueueFilesOriginal),
    IrqAffinity(irq::IrqOriginal),
    Resource(resource::ResourceOriginal),
    Command(command::CommandOriginal),
}

impl Record {
    /// Undoes, and reads back whether the host took it.
    pub(super) fn undo(&self) -> Result<(), TreatmentError> {
        let original = self.original();
        original.restore().map_err(|failed| TreatmentError::NotUndone {
            what: original.what(),
            cause: format!("failed to {failed}"),
            by_hand: original.by_hand(),
        })
    }

    /// What was changed, for messages.
    pub(super) fn what(&self) -> String {
        self.original().what()
    }

    /// The mark of processes that may still be at work on this change.
    pub(super) fn mark(&self) -> Option<&str> {
        self.original().mark()
    }
}

/// Reads what is there and checks whether a treatment can be made; changes nothing.
pub(super) fn treatment(action: &TreatmentAction, roots: &Roots) -> Result<Ready, TreatmentError> {
    use TreatmentAction as Action;
    // A coordinator has checked its plan. A program that only speaks the protocol of one may not have.
    if let Some(out) = action.out_of_range() {
        return Err(TreatmentError::OutOfRange { change: action.words(), out });
    }
    match action {
        Action::Path { .. } => Err(TreatmentError::PathIsTheLabs),
        Action::AzureNic { .. } | Action::AzurePlacement { .. } => Err(TreatmentError::IsTheProviders),
        Action::Offload { interface, feature, enabled } => {
            ready(offload::prepare(interface, feature, *enabled))
        }
        Action::Mtu { interface, mtu } => ready(mtu::prepare(interface, *mtu)),
        Action::Sysctl { name, value } => ready(sysctl::prepare(name, value)),
        Action::Vf { interface } => ready(vf::prepare(interface)),
        Action::Pci { interface } => ready(pci::prepare(&roots.sys, interface)),
        Action::Queues { interface, queues } => ready(queues::prepare(interface, *queues)),
        Action::Rss { interface, table } => ready(rss::prepare(interface, table)),
        Action::Ring { interface, ring, descriptors } => ready(ring::prepare(interface, *ring, *descriptors)),
        Action::Coalesce { interface, parameter, value } => {
            ready(coalesce::prepare(interface, parameter, *value))
        }
        Action::Rps { interface, cores } => ready(steering::prepare(interface, Steering::Receive, cores)),
        Action::Xps { interface, cores } => ready(steering::prepare(interface, Steering::Transmit, cores)),
        Action::IrqAffinity { interface, cores } => ready(irq::prepare(roots, interface, cores)),
        Action::Command { command, undo } => ready(command::prepare(command, undo)),
    }
}

/// The same for resources of another program.
pub(super) fn resource(resource: &HostResource) -> Result<Ready, TreatmentError> {
    ready(resource::prepare(resource))
}

fn ready<O: Into<Record>, C: Change + 'static>(
    prepared: Result<(O, C), TreatmentError>,
) -> Result<Ready, TreatmentError> {
    prepared.map(|(original, change)| (original.into(), Box::new(change) as Box<dyn Change>))
}

#[cfg(test)]
mod tests {
    use netduel_model::plan::tuning::{Ring, RssSpread};

    use super::*;

    impl Record {
        /// The record of a sysctl, for tests.
        pub(in crate::treatment) fn of_sysctl(name: &str, value: &str) -> Self {
            serde_json::from_value(serde_json::json!({ "kind": "sysctl", "name": name, "value": value }))
                .unwrap()
        }
    }

    #[test]
    fn quantity_out_of_the_range_of_plans_is_refused_with_the_range() {
        let interface = || "no-such".to_owned();
        let ring =
            |descriptors| TreatmentAction::Ring { interface: interface(), ring: Ring::Rx, descriptors };
        let queues = |queues| TreatmentAction::Queues { interface: interface(), queues };
        let rss = |table| TreatmentAction::Rss { interface: interface(), table };
        for (action, words) in [
            (
                TreatmentAction::Mtu { interface: interface(), mtu: 575 },
                "mtu is 575; 576 to 65535 bytes is allowed",
            ),
            (ring(0), "value is 0; 1 to 1048576 is allowed"),
            (ring(1_048_577), "value is 1048577; 1 to 1048576 is allowed"),
            (queues(0), "queues is 0; 1 to 1024 is allowed"),
            (queues(1025), "queues is 1025; 1 to 1024 is allowed"),
            (rss(RssSpread::Equal { queues: 0 }), "queues is 0; 1 to 1024 is allowed"),
            (rss(RssSpread::Weights { weights: vec![1; 1025] }), "queues is 1025; 1 to 1024 is allowed"),
        ] {
            let refused = treatment(&action, &Roots::default()).err().map(|error| error.to_string());
            assert!(refused.as_ref().is_some_and(|text| text.ends_with(words)), "{action:?}: {refused:?}");
        }
        // The next check is that of the interface.
        for action in [ring(1), ring(1_048_576), queues(1), queues(1024)] {
            let refused = treatment(&action, &Roots::default()).err();
            assert!(matches!(refused, Some(TreatmentError::NoInterface { .. })), "{action:?}: {refused:?}");
        }
    }

    #[test]
    fn what_could_not_be_undone_says_how_to_do_it_by_hand() {
        let failed = Record::of_sysctl("net.no.such", "1\t2").undo().unwrap_err();
        assert!(failed.is_left_behind());
        let text = failed.to_string();
        assert!(text.contains("`net.no.such`") && text.contains("sysctl -w 'net.no.such=1\t2'"), "{text}");
    }
}
