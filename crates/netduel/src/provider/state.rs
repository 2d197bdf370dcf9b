//! What treatments of the provider change: a NIC or the placement of a VM, always with a state of its own. Nothing is asked or changed here.
use netduel_azure::resource::{self, Place};
use netduel_control::coordinator::{GuestCheck, ProviderError};
use netduel_model::plan::TreatmentAction;

use super::home::Home;
use super::undo::Undo;

/// What is changed, whatever its state is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Resource {
    /// The proximity placement group of a VM.
    Placement { place: Place, vm: String },
    /// Accelerated networking of a NIC.
    Nic { place: Place, nic: String },
}

/// A resource in a state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum State {
    /// A VM in a proximity placement group, by name or id; in none when it is absent.
    Placement { place: Place, vm: String, group: Option<String> },
    /// A NIC with accelerated networking on or off.
    Nic { place: Place, nic: String, accelerated: bool },
}

impl State {
    /// The state that a treatment wants; `None` for a treatment that is not of the provider, and without a resource group.
    pub(super) fn of(action: &TreatmentAction, home: &Home) -> Option<Self> {
        let place = |own: &Option<String>| {
            let group = own.clone().or_else(|| home.group.clone())?;
            Some(Place { subscription: home.subscription.clone(), group })
        };
        match action {
            TreatmentAction::AzureNic { nic, resource_group, accelerated } => {
                let place = place(resource_group)?;
                Some(Self::Nic { place, nic: nic.clone(), accelerated: *accelerated })
            }
            TreatmentAction::AzurePlacement { vm, group, resource_group } => {
                let place = place(resource_group)?;
                Some(Self::Placement { place, vm: vm.clone(), group: Some(group.clone()) })
            }
            _ => None,
        }
    }

    /// The resource that has it.
    pub(super) fn resource(&self) -> Resource {
        match self {
            Self::Placement { place, vm, .. } => Resource::Placement { place: place.clone(), vm: vm.clone() },
            Self::Nic { place, nic, .. } => Resource::Nic { place: place.clone(), nic: nic.clone() },
        }
    }

    /// Where the resource is.
    pub(super) fn place(&self) -> &Place {
        let (Self::Placement { place, .. } | Self::Nic { place, .. }) = self;
        place
    }

    /// Whether both are one state of one resource. A group may be named in one and have its id in the other.
    pub(super) fn is(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Placement { group: one, .. }, Self::Placement { group: another, .. }) => {
                self.resource() == other.resource()
                    && resource::is_same_placement(one.as_deref(), another.as_deref())
            }
            _ => self == other,
        }
    }

    /// In words of the user.
    pub(super) fn words(&self) -> String {
        match self {
            Self::Nic { nic, accelerated, .. } => {
                format!("accelerated networking of {nic} {}", if *accelerated { "on" } else { "off" })
            }
            Self::Placement { vm, group: Some(group), .. } => {
                format!("{vm} in the proximity group {}", group.rsplit('/').next().unwrap_or_default())
            }
            Self::Placement { vm, group: None, .. } => format!("{vm} in no proximity group"),
        }
    }

    /// The command with which a person gives a NIC this state; `None` for a placement.
    pub(super) fn switch(&self) -> Option<String> {
        match self {
            Self::Nic { place, nic, accelerated } => Some(switch(place, nic, *accelerated)),
            Self::Placement { .. } => None,
        }
    }

    /// What its guest must show; nothing of a placement. A NIC without a MAC address cannot be found in the guest: it is not verified, and that is
    /// no success.
    pub(super) fn check(&self, mac: Option<String>) -> Result<Option<GuestCheck>, ProviderError> {
        let Self::Nic { nic, accelerated, .. } = self else { return Ok(None) };
        match mac {
            Some(mac) => Ok(Some(GuestCheck { nic: nic.clone(), mac, has_vf: *accelerated })),
            None => Err(ProviderError::WhileRunning(format!(
                "Azure names no MAC address of {nic}, so its VM cannot show whether it was switched"
            ))),
        }
    }

    /// The command that returns the resource to this state; `stops`: with its VM stopped. The VM of a placement is always stopped.
    pub(super) fn undo(&self, stops: bool) -> Undo {
        match self {
            Self::Nic { place, nic, accelerated } => {
                Undo::Nic { place: place.clone(), nic: nic.clone(), accelerated: *accelerated, stops }
            }
            Self::Placement { place, vm, group } => {
                Undo::Placement { place: place.clone(), vm: vm.clone(), group: group.clone() }
            }
        }
    }
}

/// The command with which a person switches accelerated networking of a NIC.
pub(super) fn switch(place: &Place, nic: &str, accelerated: bool) -> String {
    let name = format!("--resource-group {} --name {nic}", place.group);
    format!("az network nic update {name} --accelerated-networking {accelerated}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place() -> Place {
        Place { subscription: None, group: "g".to_owned() }
    }

    fn placed(vm: &str, group: Option<&str>) -> State {
        State::Placement { place: place(), vm: vm.to_owned(), group: group.map(str::to_owned) }
    }

    #[test]
    fn state_of_a_nic_has_its_words_its_command_and_its_undo() {
        let off = State::Nic { place: place(), nic: "n".to_owned(), accelerated: false };
        assert_eq!(off.resource(), Resource::Nic { place: place(), nic: "n".to_owned() });
        assert_eq!(off.words(), "accelerated networking of n off");
        let switch = "az network nic update --resource-group g --name n --accelerated-networking false";
        assert_eq!(off.switch().as_deref(), Some(switch));
        let undo = Undo::Nic { place: place(), nic: "n".to_owned(), accelerated: false, stops: true };
        assert_eq!(off.undo(true), undo);
        assert!(off.check(Some("00:0d:3a:00:00:01".to_owned())).is_ok_and(|check| check.is_some()));
        assert!(matches!(off.check(None), Err(ProviderError::WhileRunning(_))));
    }

    #[test]
    fn state_of_a_placement_has_its_words_and_its_undo() {
        let id = "/subscriptions/s/resourceGroups/g/near";
        assert_eq!(placed("vm1", Some(id)).words(), "vm1 in the proximity group near");
        assert_eq!(placed("vm1", None).words(), "vm1 in no proximity group");
        for group in [Some("near"), None] {
            let state = placed("vm1", group);
            let (place, vm) = (place(), "vm1".to_owned());
            assert_eq!(state.undo(false), Undo::Placement { place, vm, group: group.map(str::to_owned) });
            assert_eq!(state.switch(), None);
            assert!(state.check(None).is_ok_and(|check| check.is_none()));
        }
    }

    #[test]
    fn placements_are_compared_for_one_vm_by_name_or_id() {
        let id = "/subscriptions/s/resourceGroups/g/Near";
        assert!(placed("vm1", Some("near")).is(&placed("vm1", Some(id))));
        assert!(!placed("vm1", Some("near")).is(&placed("vm2", Some("near"))));
        assert!(!placed("vm1", Some("near")).is(&placed("vm1", None)));
    }
}
