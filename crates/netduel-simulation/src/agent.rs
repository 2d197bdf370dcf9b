//! A simulated agent: process, session and links. The world drives it.
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::mpsc::sync_channel;

use netduel_control::agent::{Bounds, Input, Session, Waker};
use netduel_control::launcher::AgentId;
use netduel_model::ids::HostName;
use netduel_model::plan::ResolvedPlan;

use crate::fault::StartFault;
use crate::patience::Outstanding;
use crate::truth::Truth;
use crate::work::{Body, Process, SimulatedWork};

type AgentSession = Session<Box<SimulatedWork>, Box<Process>, Process>;

/// State of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Life {
    /// It runs.
    Running,
    /// It was killed, and its guard restores the host.
    Killed,
    /// It and its guard have ended.
    Gone,
}

/// An agent.
pub struct Agent {
    /// Its host.
    pub host: HostName,
    /// Its process.
    pub body: Rc<RefCell<Body>>,
    /// Its side of the conversation; absent in a process that is not an agent, and after its end.
    pub session: Option<AgentSession>,
    /// Inputs that it has not processed.
    pub inbox: VecDeque<Input>,
    /// When it can continue, nanoseconds.
    pub free_ns: u64,
    /// When it runs next, nanoseconds.
    pub next_run_ns: u64,
    /// Scheduled end of its traffic, nanoseconds.
    pub wake_ns: Option<u64>,
    /// Arrival of the last bytes in flight to it, nanoseconds.
    pub to_agent_ns: u64,
    /// Arrival of the last bytes in flight from it, nanoseconds.
    pub to_coordinator_ns: u64,
    /// State of its process.
    pub life: Life,
    /// Its exit status, as wait(2) has it.
    pub status: i32,
    /// Whether its connection is closed.
    pub is_cut: bool,
    /// Whether the coordinator has abandoned it.
    pub is_ended: bool,
    /// Whether its lines, its process or its connection had a fault.
    pub is_hampered: bool,
    /// The outstanding request of the coordinator.
    pub outstanding: Outstanding,
}

impl Agent {
    /// An agent that starts now and can continue at `free_ns`.
    pub fn new(
        (id, host): (AgentId, &HostName),
        (now_ns, free_ns): (u64, u64),
        fault: Option<StartFault>,
        truth: &Rc<RefCell<Truth>>,
        plan: &Rc<ResolvedPlan>,
    ) -> Self {
        let body = Body {
            id,
            host: host.clone(),
            local_ns: now_ns,
            is_dead: false,
            dies_in: match fault {
                Some(StartFault::DiesIn(task)) => Some(task),
                _ => None,
            },
            done_ns: None,
            is_reset: false,
            output: Vec::new(),
        };
        let body = Rc::new(RefCell::new(body));
        let process = Process(body.clone());
        let is_no_agent =
            matches!(fault, Some(StartFault::Mute | StartFault::OtherVersion | StartFault::EndsAtOnce));
        let session = (!is_no_agent).then(|| {
            let (truth, plan) = (truth.clone(), plan.clone());
            let work = SimulatedWork { process: process.clone(), truth, plan, job: None };
            // Nothing wakes the session from a thread here: its end of traffic is an event of the world.
            let waker = Waker::new(sync_channel(1).0);
            let program = ("simulated agent", Bounds::default());
            Session::new(process.clone(), Box::new(work), waker, Box::new(process), program)
        });
        Self {
            host: host.clone(),
            body,
            session,
            inbox: VecDeque::new(),
            free_ns,
            next_run_ns: u64::MAX,
            wake_ns: None,
            to_agent_ns: 0,
            to_coordinator_ns: 0,
            life: Life::Running,
            status: 0,
            is_cut: false,
            is_ended: false,
            is_hampered: fault.is_some(),
            outstanding: Outstanding::default(),
        }
    }

    /// Whether it and its guard have ended.
    pub fn is_gone(&self) -> bool {
        self.life == Life::Gone
    }
}
