//! How often lost agents were started again, and why they were lost. It starts none.
use std::collections::{BTreeMap, BTreeSet};

use netduel_model::ids::HostName;

use super::error::{RunError, RunErrorKind, TrialError};

/// How often the agent of a host is started again without a valid trial of that host between: the next loss ends the run. As with the trials of an
/// arm, what three attempts in a row do not survive is no accident. Three at their slowest, 190 s each (first message, description, lock and end of the
/// process), are within the time for which the agents of the other hosts wait between two trials.
pub const RESTARTS_MAX: u32 = 3;

/// Why a host has no agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Loss {
    /// The kind of failure.
    pub(super) kind: RunErrorKind,
    /// The reason, with the host.
    pub(super) reason: String,
}

impl Loss {
    /// From the error of a trial.
    pub(super) fn of(error: &TrialError) -> Self {
        Self { kind: error.kind().0, reason: error.to_string() }
    }
}

/// The losses of the hosts of a run.
#[derive(Debug, Default)]
pub(super) struct Restarts {
    /// Those since the last valid trial of each host.
    in_a_row: BTreeMap<HostName, Vec<Loss>>,
    /// Hosts whose agent was started again in this run.
    hosts: BTreeSet<HostName>,
}

impl Restarts {
    /// Notes a loss. Returns the number of the restart that follows, from 1 since the last valid trial of the host.
    ///
    /// # Errors
    /// [`RunError::LostRepeatedly`] after [`RESTARTS_MAX`] restarts.
    pub(super) fn note(&mut self, host: &HostName, loss: Loss) -> Result<u32, RunError> {
        let kind = loss.kind;
        let losses = self.in_a_row.entry(host.clone()).or_default();
        losses.push(loss);
        let number = u32::try_from(losses.len()).unwrap_or(u32::MAX);
        if number > RESTARTS_MAX {
            let reasons = losses.iter().map(|loss| loss.reason.clone()).collect();
            return Err(RunError::LostRepeatedly { host: host.clone(), kind, reasons });
        }
        self.hosts.insert(host.clone());
        Ok(number)
    }

    /// A trial of these hosts is valid: their next loss is the first one again.
    pub(super) fn forget_losses<'a>(&mut self, hosts: impl IntoIterator<Item = &'a HostName>) {
        for host in hosts {
            self.in_a_row.remove(host);
        }
    }

    /// Whether the agent of a host was started again in this run.
    pub(super) fn has(&self, host: &HostName) -> bool {
        self.hosts.contains(host)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_in_a_row_end_the_run_with_each_reason_and_others_do_not() {
        let [one, other] = ["a", "b"].map(|name| HostName::new(name).unwrap());
        let loss = |kind: RunErrorKind, reason: &str| Loss { kind, reason: reason.to_owned() };
        let mut restarts = Restarts::default();
        for number in 1..=RESTARTS_MAX {
            let lost = restarts.note(&one, loss(RunErrorKind::Host, "connection reset"));
            assert_eq!(lost.unwrap(), number);
        }
        assert_eq!(restarts.note(&other, loss(RunErrorKind::Host, "killed")).unwrap(), 1);
        let error = restarts.note(&one, loss(RunErrorKind::Environment, "no route")).unwrap_err();
        assert_eq!(error.kind(), RunErrorKind::Environment, "that of the last loss");
        let text = error.to_string();
        assert!(text.starts_with("host a lost its agent 4 times without a valid trial between: "), "{text}");
        assert!(text.ends_with(": (1 to 3) connection reset; (4) no route"), "{text}");
        restarts.forget_losses([&one]);
        assert_eq!(restarts.note(&one, loss(RunErrorKind::Host, "killed")).unwrap(), 1);
        assert!(restarts.has(&one));
    }
}
