//! An end of a trial, whatever program makes or takes its traffic. The agent takes a trial through these traits and knows no tool.
//!
//! Preparing is a constructor, of which each implementation has its own. It binds or connects sockets, chooses cores, and brings
//! programs to where only the order to start is missing. No byte of traffic moves before [`PreparedEnd::start`].
use std::net::IpAddr;
use std::time::Duration;

use netduel_control::agent::WorkError;
use netduel_model::data_ports::ListenAt;
use netduel_model::ids::Token;
use netduel_model::observation::Placement;
use netduel_model::sample::{EndReport, LiveFigures};
use netduel_model::workload::Workload;
use netduel_sys::local_bind::LocalBind;

/// Called once when the traffic is over by itself.
pub type Notify = Box<dyn Fn() + Send + Sync>;

/// Has the host's counters read, once. An end decides when: it knows when nothing moves yet, and how long its device is there.
pub type Reading<'a> = &'a mut dyn FnMut() -> Result<(), WorkError>;

/// An end that is ready to start.
pub trait PreparedEnd {
    /// Has the counters read and starts the traffic; returns at once. On an error nothing of it goes on.
    ///
    /// # Errors
    /// When the traffic cannot be started, or the counters cannot be read.
    fn start(self: Box<Self>, reading: Reading<'_>, notify: Notify)
    -> Result<Box<dyn RunningEnd>, WorkError>;
}

/// An end whose traffic runs.
pub trait RunningEnd {
    /// Figures so far.
    fn live(&self) -> LiveFigures;
    /// The peer is done: drain and end. Returns at once.
    fn finish(&self);
    /// Whether [`Self::result`] would return without waiting for traffic.
    fn is_done(&self) -> bool;
    /// Waits for the end of the traffic, has the counters read, and restores the resources of the end that the other end does not need.
    ///
    /// # Errors
    /// When the traffic failed, or something could not be restored.
    fn result(self: Box<Self>, reading: Reading<'_>) -> Result<EndResult, WorkError>;
    /// Stops the traffic, and returns when nothing of it is left.
    ///
    /// # Errors
    /// When something could not be restored.
    fn abort(self: Box<Self>) -> Result<(), WorkError>;
}

/// What is left of an end whose trial is over: the other end still needs it, or its host has not been read yet.
pub trait Lingering {
    /// Ends it.
    ///
    /// # Errors
    /// When something could not be restored.
    fn end(self: Box<Self>) -> Result<(), WorkError>;
}

/// An end that was prepared, and what is known of it.
pub struct Prepared {
    /// The end.
    pub end: Box<dyn PreparedEnd>,
    /// Ports of a server, in the order of the streams.
    pub ports: Vec<u16>,
    /// The cores that were chosen for it; absent when none were to be chosen.
    pub placement: Option<Placement>,
}

/// What an end has come to.
pub struct EndResult {
    /// What it counted.
    pub report: EndReport,
    /// What is left of it until the next trial.
    pub lingering: Option<Box<dyn Lingering>>,
}

/// Prepares the ends of trials: chooses the implementation by the workload.
pub trait Ends {
    /// A server's end.
    ///
    /// # Errors
    /// When this host cannot be that end.
    fn server(&self, workload: &Workload, listen: ListenAt, token: Token) -> Result<Prepared, WorkError>;
    /// A client's end; the server has its sockets.
    ///
    /// # Errors
    /// As [`Self::server`], and when the server cannot be reached before the deadline.
    fn client(&self, workload: &Workload, server: &ServerAddress<'_>) -> Result<Prepared, WorkError>;
}

/// Where a client finds its server, and from where it connects.
#[derive(Debug, Clone, Copy)]
pub struct ServerAddress<'a> {
    /// Its address.
    pub peer: IpAddr,
    /// Its ports, in the order of the streams.
    pub ports: &'a [u16],
    /// Secret of the trial.
    pub token: Token,
    /// How long connecting may take.
    pub deadline: Duration,
    /// The address or interface of this host that its sockets are bound to.
    pub bind: &'a LocalBind,
}
