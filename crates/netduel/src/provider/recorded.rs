//! The provider as a run knows it: the run and its reports keep its errors, and no subscription, which is the user's. It calls no `az` and changes
//! nothing.
use netduel_azure::command::without_subscriptions;
use netduel_control::coordinator::{GuestCheck, HostChange, Provider, ProviderError};
use netduel_model::ids::HostName;
use netduel_model::plan::TreatmentAction;
use netduel_model::units::Nanos;

use super::AzureProvider;

/// A provider whose errors have a placeholder in place of subscriptions.
pub(super) struct Recorded(pub(super) AzureProvider);

impl Recorded {
    fn text(&self, text: &str) -> String {
        without_subscriptions(text, self.0.home.subscription.as_deref())
    }

    fn recorded<T>(&self, result: Result<T, ProviderError>) -> Result<T, ProviderError> {
        result.map_err(|error| match error {
            ProviderError::Interrupted => ProviderError::Interrupted,
            ProviderError::WhileRunning(reason) => ProviderError::WhileRunning(self.text(&reason)),
            ProviderError::Failed(reason) => ProviderError::Failed(self.text(&reason)),
        })
    }
}

impl Provider for Recorded {
    fn pending(&mut self, wanted: &[(HostName, TreatmentAction)]) -> Result<Vec<HostChange>, ProviderError> {
        let pending = self.0.pending(wanted);
        self.recorded(pending)
    }

    fn change(&mut self, change: &HostChange) -> Result<Vec<GuestCheck>, ProviderError> {
        let changed = self.0.change(change);
        self.recorded(changed)
    }

    fn change_stopped(&mut self, change: &HostChange) -> Result<Vec<GuestCheck>, ProviderError> {
        let changed = self.0.change_stopped(change);
        self.recorded(changed)
    }

    fn present(&self) -> Vec<(HostName, GuestCheck)> {
        self.0.present()
    }

    fn may_stop(&self) -> bool {
        self.0.may_stop()
    }

    fn patience(&self) -> (Nanos, Nanos) {
        self.0.patience()
    }

    fn restore(&mut self) -> Vec<(HostName, String)> {
        let left = self.0.restore();
        left.into_iter().map(|(host, detail)| (host, self.text(&detail))).collect()
    }
}
