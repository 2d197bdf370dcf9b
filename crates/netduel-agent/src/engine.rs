//! An end whose traffic our own engines make or take (`netduel-load`), with the path events of a failover beside it.
use netduel_control::agent::{FailureKind, WorkError};
use netduel_load::{ClientEnd, LoadError, Running, ServerEnd};
use netduel_model::data_ports::ListenAt;
use netduel_model::failover::PathEvent;
use netduel_model::ids::Token;
use netduel_model::sample::LiveFigures;
use netduel_model::workload::{Role, Workload};
use netduel_sys::clock;

use crate::failure::traffic;
use crate::host_changes::HostChanges;
use crate::kernel_bypass::{self, OnInterface};
use crate::path_events::{self, EventThread, OwnInterfaces};
use crate::placement::{DataAddress, placed};
use crate::treatment::{GuardCommand, Treatments};
use crate::trial_end::{
    EndResult, Lingering, Notify, Prepared, PreparedEnd, Reading, RunningEnd, ServerAddress,
};

/// An end of the engines that is ready to start.
struct Engine {
    end: Side,
    on_interface: Option<OnInterface>,
    /// What is done to this host's interfaces while the traffic runs, by place in the plan.
    events: Vec<(u32, PathEvent)>,
}

enum Side {
    Server(ServerEnd),
    Client(ClientEnd),
}

/// Traffic of the engines.
struct RunningEngine {
    running: Running,
    on_interface: Option<OnInterface>,
    events: Option<EventThread<OwnInterfaces>>,
}

/// A server's end that binds its own sockets.
pub(crate) fn server(workload: &Workload, listen: ListenAt, token: Token) -> Result<Prepared, WorkError> {
    server_by(workload, DataAddress::Own(listen.address), HostChanges::OfPlan, |workload| {
        netduel_load::prepare_server(workload, listen, token)
    })
}

/// A server's end whose sockets are made by `prepare`, for example those behind a port that many tests share.
///
/// # Errors
/// When this host cannot be that end.
pub fn server_by(
    workload: &Workload,
    address: DataAddress<'_>,
    changes: HostChanges,
    prepare: impl FnOnce(&Workload) -> Result<ServerEnd, LoadError>,
) -> Result<Prepared, WorkError> {
    changes.check(workload, address)?;
    let (workload, placement) = placed(workload, Role::Server, address)?;
    let end = prepare(&workload).map_err(traffic)?;
    let (end, on_interface) = kernel_bypass::server_over(end, &workload, address)?;
    let ports = end.ports().to_vec();
    let events = path_events::of(&workload, Role::Server);
    let engine = Engine { end: Side::Server(end), on_interface, events };
    Ok(Prepared { end: Box::new(engine), ports, placement })
}

/// A client's end.
pub(crate) fn client(workload: &Workload, server: &ServerAddress<'_>) -> Result<Prepared, WorkError> {
    let ServerAddress { peer, ports, token, deadline, bind } = *server;
    let (workload, placement) = placed(workload, Role::Client, DataAddress::Towards(peer, bind))?;
    let end = netduel_load::prepare_bound_client(&workload, peer, ports, token, deadline, bind);
    let (end, on_interface) = kernel_bypass::client_over(end.map_err(traffic)?, &workload, peer, bind)?;
    let events = path_events::of(&workload, Role::Client);
    let engine = Engine { end: Side::Client(end), on_interface, events };
    Ok(Prepared { end: Box::new(engine), ports: Vec::new(), placement })
}

impl PreparedEnd for Engine {
    fn start(
        self: Box<Self>,
        reading: Reading<'_>,
        notify: Notify,
    ) -> Result<Box<dyn RunningEnd>, WorkError> {
        reading()?;
        let Self { end, on_interface, events } = *self;
        let running = match end {
            Side::Server(end) => end.start(notify),
            Side::Client(end) => end.start(notify),
        };
        let mut started = Box::new(RunningEngine { running, on_interface, events: None });
        if events.is_empty() {
            return Ok(started);
        }
        let own = OwnInterfaces(Treatments::new(GuardCommand::of_this_program()));
        match EventThread::begin(events, clock::monotonic_ns(), own) {
            Ok(events) => {
                started.events = Some(events);
                Ok(started)
            }
            Err(error) => {
                started.abort()?;
                let message = format!("failed to start a thread for the events of the path: {error}");
                Err(WorkError { kind: FailureKind::Environment, message })
            }
        }
    }
}

impl RunningEnd for RunningEngine {
    fn live(&self) -> LiveFigures {
        self.running.live()
    }

    fn finish(&self) {
        self.running.finish();
    }

    fn is_done(&self) -> bool {
        self.running.is_done()
    }

    fn result(self: Box<Self>, reading: Reading<'_>) -> Result<EndResult, WorkError> {
        let Self { running, on_interface, events } = *self;
        // First, so that the interface is restored even if the traffic failed.
        let made = events.map(EventThread::end);
        let report = running.join().map_err(traffic);
        // What is not restored outlasts the trial, however that went.
        made.as_ref().map_or(Ok(()), |(_, problems)| no_problems(problems))?;
        let mut report = report?;
        if let (Some((events, _)), Some(failover)) = (made, &mut report.failover) {
            failover.events = events;
        }
        reading()?;
        let lingering = on_interface.map(|kept| Box::new(kept) as Box<dyn Lingering>);
        Ok(EndResult { report, lingering })
    }

    fn abort(self: Box<Self>) -> Result<(), WorkError> {
        self.running.abort();
        let problems = self.events.map(EventThread::end).map(|(_, problems)| problems).unwrap_or_default();
        // The report of an aborted trial is of no use, but its threads must be gone before the next trial.
        drop(self.running.join());
        if let Some(kept) = self.on_interface {
            kept.remove();
        }
        no_problems(&problems)
    }
}

fn no_problems(problems: &[String]) -> Result<(), WorkError> {
    if problems.is_empty() {
        return Ok(());
    }
    Err(WorkError { kind: FailureKind::NotRestored, message: problems.join("; ") })
}
