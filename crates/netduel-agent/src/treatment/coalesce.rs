//! Interrupt coalescing (`ethtool -C`), one parameter at a time.
use std::io;

use netduel_model::plan::tuning::COALESCE_PARAMETERS;
use netduel_sys::ethtool::{Coalesce, CoalesceParameter};
use rustix::io::Errno;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::change::{Change, Original};
use super::device::ethtool_socket;
use super::error::{TreatmentError, feature_words};
use super::recorded_interface::RecordedInterface;

/// All parameters of interrupt coalescing in the kernel's order, and the one that is changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(super) struct CoalesceOriginal {
    interface: RecordedInterface,
    parameter: String,
    original: Vec<u32>,
}

impl Original for CoalesceOriginal {
    fn restore(&self) -> Result<(), TreatmentError> {
        self.interface.restore(|interface, _| restore(interface, &self.original))
    }

    fn what(&self) -> String {
        format!("the change of {} of {}", self.parameter, self.interface)
    }

    fn by_hand(&self) -> String {
        let Self { interface, parameter, original, .. } = self;
        let place = COALESCE_PARAMETERS.iter().position(|name| name == parameter);
        let value = place.and_then(|place| original.get(place)).copied().unwrap_or_default();
        let value = if parameter.starts_with("adaptive-") {
            feature_words(value != 0).to_owned()
        } else {
            value.to_string()
        };
        format!("`ethtool -C {interface} {parameter} {value}`")
    }
}

/// A change that is ready to be made.
#[derive(Debug)]
pub(super) struct CoalesceChange {
    interface: String,
    parameter: CoalesceParameter,
    value: u32,
}

/// Reads what is there and checks whether the change can be made.
pub(super) fn prepare(
    interface: &str,
    parameter: &str,
    value: u32,
) -> Result<(CoalesceOriginal, CoalesceChange), TreatmentError> {
    let recorded = RecordedInterface::read(interface)?;
    let about = |cause| TreatmentError::about_device(interface, doing(interface, parameter, value), cause);
    let known = CoalesceParameter::ALL.into_iter().find(|known| known.name() == parameter);
    let known = known.ok_or_else(|| about(Errno::INVAL.into()))?;
    let now = ethtool_socket()?.coalesce(interface).map_err(about)?;
    // An adaptive driver writes its own choice into the other parameters, so all are set back.
    let original = CoalesceParameter::ALL.map(|each| now.value(each)).to_vec();
    let undo = CoalesceOriginal { interface: recorded, parameter: parameter.to_owned(), original };
    Ok((undo, CoalesceChange { interface: interface.to_owned(), parameter: known, value }))
}

fn doing(interface: &str, parameter: &str, value: u32) -> String {
    format!("set {parameter} of {interface} to {value}")
}

impl Change for CoalesceChange {
    fn make(&self) -> Result<(), TreatmentError> {
        let Self { interface, parameter, value } = self;
        let doing = doing(interface, parameter.name(), *value);
        let about = |cause| TreatmentError::about_device(interface, doing.clone(), cause);
        let mut socket = ethtool_socket()?;
        let mut wanted = socket.coalesce(interface).map_err(about)?;
        if wanted.value(*parameter) == *value {
            return Ok(());
        }
        wanted.set_value(*parameter, *value);
        socket
            .set_coalesce(interface, &wanted)
            .map_err(|cause| refusal(interface, *parameter, doing.clone(), cause))?;
        let now = socket.coalesce(interface).map_err(about)?.value(*parameter);
        if now == *value {
            return Ok(());
        }
        Err(TreatmentError::NotTaken { doing, answered: format!("{now} (drivers round)") })
    }

    fn read_back(&self) -> Result<(), TreatmentError> {
        let Self { interface, parameter, value } = self;
        let doing = doing(interface, parameter.name(), *value);
        let about = |cause| TreatmentError::about_device(interface, doing.clone(), cause);
        let now = ethtool_socket()?.coalesce(interface).map_err(about)?;
        let found = now.value(*parameter);
        // What an adaptive driver chooses meanwhile is its own affair.
        let is_chosen = is_adaptive(&now) && !ADAPTIVE.contains(parameter);
        if found == *value || is_chosen {
            return Ok(());
        }
        Err(TreatmentError::NotTaken { doing, answered: found.to_string() })
    }

    fn restarts(&self) -> Option<&str> {
        Some(&self.interface)
    }
}

/// As [`TreatmentError::about_device`]. A driver whose receive and transmit queues share interrupts has one value for both, and refuses
/// another for transmission (`igb_set_coalesce` in Linux).
fn refusal(interface: &str, parameter: CoalesceParameter, doing: String, cause: io::Error) -> TreatmentError {
    let is_refused = cause.raw_os_error() == Some(Errno::INVAL.raw_os_error());
    if is_refused && parameter.name().starts_with("tx-") {
        let why = format!(
            "its driver refuses this value ({cause}); where a receive and a transmit queue share an interrupt, as with igb, \
             `rx-usecs` sets both"
        );
        return TreatmentError::unsupported(interface, doing, why);
    }
    TreatmentError::about_device(interface, doing, cause)
}

const ADAPTIVE: [CoalesceParameter; 2] = [CoalesceParameter::AdaptiveRx, CoalesceParameter::AdaptiveTx];

/// Whether the driver chooses the other parameters.
fn is_adaptive(values: &Coalesce) -> bool {
    ADAPTIVE.iter().any(|each| values.value(*each) != 0)
}

/// Sets all parameters as they were.
pub(super) fn restore(interface: &str, original: &[u32]) -> Result<(), TreatmentError> {
    let doing = || format!("restore interrupt coalescing of {interface}");
    let about = |cause| TreatmentError::about_device(interface, doing(), cause);
    let mut wanted = Coalesce::default();
    for (parameter, value) in CoalesceParameter::ALL.into_iter().zip(original) {
        wanted.set_value(parameter, *value);
    }
    let mut socket = ethtool_socket()?;
    if socket.coalesce(interface).map_err(about)? == wanted {
        return Ok(());
    }
    socket.set_coalesce(interface, &wanted).map_err(about)?;
    let now = socket.coalesce(interface).map_err(about)?;
    let adaptive = is_adaptive(&wanted);
    let different: Vec<String> = CoalesceParameter::ALL
        .into_iter()
        // What an adaptive driver chooses at this moment is its own affair.
        .filter(|each| !adaptive || ADAPTIVE.contains(each))
        .filter(|each| now.value(*each) != wanted.value(*each))
        .map(|each| format!("{} {}", each.name(), now.value(each)))
        .collect();
    TreatmentError::unless_taken(doing, &different)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refused_transmit_value_names_the_parameter_that_sets_both() {
        let refused =
            |parameter| refusal("pf0", parameter, "set it".to_owned(), Errno::INVAL.into()).to_string();
        assert!(refused(CoalesceParameter::TxUsecs).contains("`rx-usecs` sets both"));
        assert!(!refused(CoalesceParameter::RxUsecs).contains("sets both"));
    }

    #[test]
    fn a_plan_may_name_every_parameter_of_the_kernel_and_no_other() {
        assert_eq!(CoalesceParameter::ALL.map(CoalesceParameter::name), COALESCE_PARAMETERS);
    }
}
