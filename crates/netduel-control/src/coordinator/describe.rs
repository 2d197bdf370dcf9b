//! Descriptions of hosts without a run, a lock or a change. The failure of one host does not affect the others.
use std::collections::BTreeMap;

use netduel_model::event::Event;
use netduel_model::ids::HostName;
use netduel_model::snapshot::HostSnapshot;

use super::conversation::Hosts;
use super::error::{RunError, TrialError};
use crate::protocol::{DESCRIBE_TIMEOUT_NS, FromAgent, ToAgent};

/// The description of each host, or why there is none.
pub type Described = BTreeMap<HostName, Result<HostSnapshot, RunError>>;

/// The user interrupted it.
struct Interrupted;

impl Hosts<'_> {
    /// Starts the agents of all hosts of the plan, collects their descriptions in parallel, and ends the agents. `None` after an interrupt.
    pub(super) fn describe(mut self, metadata: bool) -> Option<Described> {
        let described = self.describe_each(metadata);
        self.end_all();
        for warning in self.take_warnings() {
            (self.listener)(Event::Warned { warning });
        }
        described.ok()
    }

    fn describe_each(&mut self, metadata: bool) -> Result<Described, Interrupted> {
        let hosts: Vec<HostName> = self.plan.hosts.keys().cloned().collect();
        let mut failed: BTreeMap<HostName, RunError> = BTreeMap::new();
        for host in &hosts {
            if let Err(error) = self.launch(host) {
                note(host, error, &mut failed)?;
            }
        }
        for host in &hosts {
            if self.heard_from(host, &mut failed)?.is_some() {
                let request = ToAgent::Describe { without_metadata: !metadata };
                // It has just answered, so it is running.
                drop(self.request(host, &request, DESCRIBE_TIMEOUT_NS));
            }
        }
        let mut described = Described::new();
        for host in hosts {
            if let Some(answer) = self.heard_from(&host, &mut failed)? {
                match self.described(&host, answer) {
                    Ok(snapshot) => {
                        described.insert(host, Ok(snapshot));
                        continue;
                    }
                    Err(error) => note(&host, error, &mut failed)?,
                }
            }
            let error = failed.remove(&host).expect("a host without a description has a reason");
            described.insert(host, Err(error));
        }
        Ok(described)
    }

    /// The answer of a host; `None` when it failed. Failures of other hosts meanwhile are recorded.
    fn heard_from(
        &mut self,
        host: &HostName,
        failed: &mut BTreeMap<HostName, RunError>,
    ) -> Result<Option<FromAgent>, Interrupted> {
        while !failed.contains_key(host) {
            match self.answer(host) {
                Ok(answer) => return Ok(Some(answer)),
                Err(error) => note(host, error, failed)?,
            }
        }
        Ok(None)
    }
}

/// Records why this host, or another, has no answer.
fn note(
    requested: &HostName,
    error: TrialError,
    failed: &mut BTreeMap<HostName, RunError>,
) -> Result<(), Interrupted> {
    let host = match &error {
        TrialError::Lost { host, .. } | TrialError::Refused { host, .. } => host.clone(),
        TrialError::Interrupted | TrialError::NotTreated(_) | TrialError::Failed(_) => requested.clone(),
    };
    let error = error.into_run_error().ok_or(Interrupted)?;
    failed.entry(host).or_insert(error);
    Ok(())
}
