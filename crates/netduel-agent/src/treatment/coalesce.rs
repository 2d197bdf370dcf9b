//! Interrupt coalescing (`ethtool -C`), one parameter at a time.
use netduel_sys::ethtool::{Coalesce, CoalesceParameter};

use super::error::TreatmentError;
use super::offload::{door, index_of};
use super::undo::Undo;

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
) -> Result<(Undo, CoalesceChange), TreatmentError> {
    let index = index_of(interface)?;
    let about = |cause| TreatmentError::about_device(interface, doing(interface, parameter, value), cause);
    let known = CoalesceParameter::ALL.into_iter().find(|known| known.name() == parameter);
    let known = known.ok_or_else(|| about(rustix::io::Errno::INVAL.into()))?;
    let now = door()?.coalesce(interface).map_err(about)?;
    // An adaptive driver writes its own choice into the other parameters, so all are set back.
    let original = CoalesceParameter::ALL.map(|each| now.value(each)).to_vec();
    let undo =
        Undo::Coalesce { interface: interface.to_owned(), index, parameter: parameter.to_owned(), original };
    Ok((undo, CoalesceChange { interface: interface.to_owned(), parameter: known, value }))
}

fn doing(interface: &str, parameter: &str, value: u32) -> String {
    format!("set {parameter} of {interface} to {value}")
}

impl CoalesceChange {
    /// Makes the change and reads back whether it took.
    pub(super) fn make(&self) -> Result<(), TreatmentError> {
        let Self { interface, parameter, value } = self;
        let doing = || doing(interface, parameter.name(), *value);
        let about = |cause| TreatmentError::about_device(interface, doing(), cause);
        let mut door = door()?;
        let mut wanted = door.coalesce(interface).map_err(about)?;
        if wanted.value(*parameter) == *value {
            return Ok(());
        }
        wanted.set_value(*parameter, *value);
        door.set_coalesce(interface, &wanted).map_err(about)?;
        let now = door.coalesce(interface).map_err(about)?.value(*parameter);
        if now == *value {
            return Ok(());
        }
        Err(TreatmentError::NotTaken { doing: doing(), answered: format!("{now} (drivers round)") })
    }
}

/// Sets all parameters as they were.
pub(super) fn restore(interface: &str, original: &[u32]) -> Result<(), TreatmentError> {
    let doing = || format!("restore interrupt coalescing of {interface}");
    let about = |cause| TreatmentError::about_device(interface, doing(), cause);
    let mut wanted = Coalesce::default();
    for (parameter, value) in CoalesceParameter::ALL.into_iter().zip(original) {
        wanted.set_value(parameter, *value);
    }
    let mut door = door()?;
    if door.coalesce(interface).map_err(about)? == wanted {
        return Ok(());
    }
    door.set_coalesce(interface, &wanted).map_err(about)?;
    let now = door.coalesce(interface).map_err(about)?;
    let adaptive = [CoalesceParameter::AdaptiveRx, CoalesceParameter::AdaptiveTx]
        .iter()
        .any(|each| wanted.value(*each) != 0);
    let different: Vec<String> = CoalesceParameter::ALL
        .into_iter()
        // What an adaptive driver chooses at this moment is its own affair.
        .filter(|each| {
            !adaptive || matches!(each, CoalesceParameter::AdaptiveRx | CoalesceParameter::AdaptiveTx)
        })
        .filter(|each| now.value(*each) != wanted.value(*each))
        .map(|each| format!("{} {}", each.name(), now.value(each)))
        .collect();
    if different.is_empty() {
        return Ok(());
    }
    Err(TreatmentError::NotTaken { doing: doing(), answered: different.join(", ") })
}

#[cfg(test)]
mod tests {
    use netduel_model::plan::tuning::COALESCE_PARAMETERS;

    use super::*;

    #[test]
    fn a_plan_may_name_every_parameter_of_the_kernel_and_no_other() {
        assert_eq!(CoalesceParameter::ALL.map(CoalesceParameter::name), COALESCE_PARAMETERS);
    }
}
