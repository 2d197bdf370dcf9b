//! What a warning is about: arm, workload, metric and hosts.
use super::Warning;
use crate::ids::{ArmName, HostName, WorkloadName};
use crate::metric::Metric;

/// What a warning names; a part that it does not name is absent or empty.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Subject<'a> {
    /// The arm.
    pub arm: Option<&'a ArmName>,
    /// The workload.
    pub workload: Option<&'a WorkloadName>,
    /// The metric.
    pub metric: Option<Metric>,
    /// The hosts.
    pub hosts: Vec<&'a HostName>,
}

impl Warning {
    /// Whether it is about the file of the run, not about what was measured.
    pub fn is_about_the_file(&self) -> bool {
        matches!(self, Self::RecordsDamaged { .. } | Self::RecordIncomplete { .. })
    }

    /// Whether it is why figures lack trials that were measured. Every output states it, or its command does where the format has no place.
    pub fn leaves_trials_out(&self) -> bool {
        self.is_about_the_file() || matches!(self, Self::BlockIncomplete { .. })
    }

    /// What it is about.
    pub fn subject(&self) -> Subject<'_> {
        let none = Subject::default;
        match self {
            Self::Drift { arm, workload, metric, .. }
            | Self::Autocorrelation { arm, workload, metric, .. }
            | Self::Bimodal { arm, workload, metric, .. }
            | Self::OutlierBlock { arm, workload, metric, .. }
            | Self::LowerBound { arm, workload, metric, .. } => {
                Subject { arm: Some(arm), workload: Some(workload), metric: Some(*metric), ..none() }
            }
            Self::RateCapped { arm, workload, .. }
            | Self::TokenBucketBurst { arm, workload, .. }
            | Self::ReceiverOverrun { arm, workload, .. }
            | Self::DatagramsNotPackets { arm, workload, .. }
            | Self::ZeroCopyFellBack { arm, workload, .. }
            | Self::TransactionsFailed { arm, workload, .. }
            | Self::RequestsLost { arm, workload, .. }
            | Self::ScheduleMissed { arm, workload, .. }
            | Self::RateMissed { arm, workload, .. }
            | Self::NoNapiInstance { arm, workload, .. }
            | Self::TimestampsDiffer { arm, workload }
            | Self::TimestampsIncomplete { arm, workload, .. }
            | Self::NoRoundTrips { arm, workload, .. } => {
                Subject { arm: Some(arm), workload: Some(workload), ..none() }
            }
            Self::CountsDisagree { arm, workload, host, .. }
            | Self::ConnectionsDiffered { arm, workload, host, .. } => {
                Subject { arm: Some(arm), workload: Some(workload), hosts: vec![host], ..none() }
            }
            Self::PathChanged { arm, .. }
            | Self::ArmNotProven { arm }
            | Self::ArmDropped { arm, .. }
            | Self::TrialsExcluded { arm, .. } => Subject { arm: Some(arm), ..none() },
            Self::StealTime { host, .. }
            | Self::CpuContention { host, .. }
            | Self::ConcurrentTests { host, .. }
            | Self::ClockStep { host, .. }
            | Self::PlacementChanged { host, .. }
            | Self::BedDisagrees { host, .. }
            | Self::SettingsRestored { host, .. }
            | Self::HostDiffered { host, .. }
            | Self::UndoFailed { host, .. } => Subject { hosts: vec![host], ..none() },
            Self::RecordsDamaged { .. } | Self::RecordIncomplete { .. } | Self::BlockIncomplete { .. } => {
                none()
            }
            Self::SharedMachine { client, server } | Self::AddressTranslated { client, server, .. } => {
                Subject { hosts: vec![client, server], ..none() }
            }
        }
    }
}
