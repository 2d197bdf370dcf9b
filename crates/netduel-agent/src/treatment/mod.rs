//! Treatments: changes of the host for an arm, always undone.
//!
//! The order of every change: read the original, hand the way back to the guard, wait for its word, change, read back.
//! So no single process can be killed in a way that leaves a change behind: the guard undoes for a dead agent, and an
//! agent whose guard died undoes by itself. A change that takes more than setting a value, a command, may find its undo
//! run twice, or run though the command was not: see `docs/design/0005-observation-and-treatments.md`.
mod coalesce;
mod command;
mod error;
mod guard;
mod irq;
mod lent_device;
mod lifeline;
mod loan;
mod mtu;
mod offload;
mod pci;
mod queues;
mod ring;
mod rss;
mod steering;
mod sysctl;
mod sysfs;
mod undo;
mod vf;

use std::path::PathBuf;

use netduel_model::plan::TreatmentAction;

pub use error::TreatmentError;
pub use guard::guard_main;
pub use lifeline::GuardCommand;
pub use loan::Loan;

use guard::Request;
use lifeline::Lifeline;
use steering::Steering;
use undo::Undo;

/// Where the kernel's files are: `/sys` and `/proc`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Roots {
    /// `/sys`.
    pub sys: PathBuf,
    /// `/proc`.
    pub proc: PathBuf,
}

impl Default for Roots {
    fn default() -> Self {
        Self { sys: "/sys".into(), proc: "/proc".into() }
    }
}

/// A change that is ready to be made.
enum Change {
    Offload(offload::OffloadChange),
    Mtu(mtu::MtuChange),
    Sysctl(sysctl::SysctlChange),
    Vf(vf::VfChange),
    Pci(pci::PciChange),
    Queues(queues::QueuesChange),
    Rss(rss::RssChange),
    Ring(ring::RingChange),
    Coalesce(coalesce::CoalesceChange),
    Steering(steering::SteeringChange),
    Irq(irq::IrqChange),
    Command(command::CommandChange),
    Loan(loan::LoanChange),
}

impl Change {
    /// Reads what is there and checks whether the change can be made; changes nothing.
    fn prepare(action: &TreatmentAction, roots: &Roots) -> Result<(Undo, Self), TreatmentError> {
        use TreatmentAction as Action;
        Ok(match action {
            Action::Path { .. } => return Err(TreatmentError::PathIsTheLabs),
            Action::Offload { interface, feature, enabled } => {
                with(offload::prepare(interface, feature, *enabled)?, Self::Offload)
            }
            Action::Mtu { interface, mtu } => with(mtu::prepare(interface, *mtu)?, Self::Mtu),
            Action::Sysctl { name, value } => with(sysctl::prepare(name, value)?, Self::Sysctl),
            Action::Vf { interface } => with(vf::prepare(interface)?, Self::Vf),
            Action::Pci { interface } => with(pci::prepare(&roots.sys, interface)?, Self::Pci),
            Action::Queues { interface, queues } => with(queues::prepare(interface, *queues)?, Self::Queues),
            Action::Rss { interface, table } => with(rss::prepare(interface, table)?, Self::Rss),
            Action::Ring { interface, ring, descriptors } => {
                with(ring::prepare(interface, *ring, *descriptors)?, Self::Ring)
            }
            Action::Coalesce { interface, parameter, value } => {
                with(coalesce::prepare(interface, parameter, *value)?, Self::Coalesce)
            }
            Action::Rps { interface, cores } => {
                with(steering::prepare(interface, Steering::Receive, cores)?, Self::Steering)
            }
            Action::Xps { interface, cores } => {
                with(steering::prepare(interface, Steering::Transmit, cores)?, Self::Steering)
            }
            Action::IrqAffinity { interface, cores } => {
                with(irq::prepare(roots, interface, cores)?, Self::Irq)
            }
            Action::Command { command, undo } => with(command::prepare(command, undo)?, Self::Command),
        })
    }

    fn make(&self) -> Result<(), TreatmentError> {
        match self {
            Self::Offload(change) => change.make(),
            Self::Mtu(change) => change.make(),
            Self::Sysctl(change) => change.make(),
            Self::Vf(change) => change.make(),
            Self::Pci(change) => change.make(),
            Self::Queues(change) => change.make(),
            Self::Rss(change) => change.make(),
            Self::Ring(change) => change.make(),
            Self::Coalesce(change) => change.make(),
            Self::Steering(change) => change.make(),
            Self::Irq(change) => change.make(),
            Self::Command(change) => change.make(),
            Self::Loan(change) => change.make(),
        }
    }
}

/// The way back, and the change as one of its kind.
fn with<T>((undo, change): (Undo, T), kind: fn(T) -> Change) -> (Undo, Change) {
    (undo, kind(change))
}

/// A change that is in force, or may be.
struct Applied {
    id: u64,
    undo: Undo,
}

/// The changes that this agent has made to its host and not yet undone.
pub struct Treatments {
    command: GuardCommand,
    /// Started with the first change.
    lifeline: Option<Lifeline>,
    applied: Vec<Applied>,
    last_id: u64,
    roots: Roots,
}

impl Treatments {
    /// Nothing is changed yet, and no guard is started yet.
    pub fn new(guard: GuardCommand) -> Self {
        Self::with_roots(guard, Roots::default())
    }

    /// As [`Self::new`], with the kernel's files elsewhere, where somebody can play the kernel.
    pub fn with_roots(guard: GuardCommand, roots: Roots) -> Self {
        Self { command: guard, lifeline: None, applied: Vec::new(), last_id: 0, roots }
    }

    /// How many changes are in force.
    pub fn applied(&self) -> usize {
        self.applied.len()
    }

    /// Makes the changes in order. When one fails, those of this call are undone at once, the failed one included: a
    /// command may have done half of its work.
    ///
    /// # Errors
    /// The first failure, with what could not be undone after it.
    pub fn apply(&mut self, actions: &[TreatmentAction]) -> Result<(), TreatmentError> {
        let prepare = |action: &TreatmentAction, roots: &Roots| Change::prepare(action, roots);
        self.apply_each(actions, prepare)
    }

    /// Lends these to a program that is not ours; they are given back with everything else.
    ///
    /// # Errors
    /// As [`Self::apply`], and when another program has one of them.
    pub fn lend(&mut self, loans: &[Loan]) -> Result<(), TreatmentError> {
        self.apply_each(loans, |loan, _| Ok(with(loan::prepare(loan)?, Change::Loan)))
    }

    fn apply_each<T>(
        &mut self,
        all: &[T],
        prepare: impl Fn(&T, &Roots) -> Result<(Undo, Change), TreatmentError>,
    ) -> Result<(), TreatmentError> {
        let earlier = self.applied.len();
        for one in all {
            let made = prepare(one, &self.roots).and_then(|(undo, change)| self.apply_one(undo, &change));
            if let Err(failed) = made {
                // Without a guard nothing may stay changed.
                let keep = if self.lifeline.is_some() { earlier } else { 0 };
                let left = self.undo_down_to(keep);
                if left.is_empty() {
                    return Err(failed);
                }
                return Err(TreatmentError::AndNotUndone { failed: Box::new(failed), left });
            }
        }
        Ok(())
    }

    fn apply_one(&mut self, undo: Undo, change: &Change) -> Result<(), TreatmentError> {
        if self.lifeline.is_none() {
            self.lifeline = Some(Lifeline::start(&self.command)?);
        }
        self.last_id += 1;
        let id = self.last_id;
        let is_command = undo.mark().is_some();
        self.ask(id, &Request::Keep { id, undo: undo.clone(), running: is_command })?;
        self.applied.push(Applied { id, undo });
        change.make()?;
        if is_command {
            self.ask(id, &Request::Running { id, running: false })?;
        }
        Ok(())
    }

    /// Undoes every change, the last first. A change that could not be undone stays on the list, to be tried again.
    ///
    /// # Errors
    /// What could not be undone; and, after everything was undone, that the guard was lost
    /// ([`TreatmentError::is_left_behind`] tells the two apart).
    pub fn undo_all(&mut self) -> Result<(), Vec<TreatmentError>> {
        let errors = self.undo_down_to(0);
        if errors.is_empty() { Ok(()) } else { Err(errors) }
    }

    /// Undoes all but the first `keep` changes, the last first.
    fn undo_down_to(&mut self, keep: usize) -> Vec<TreatmentError> {
        let mut errors = Vec::new();
        let mut left = Vec::new();
        while self.applied.len() > keep {
            let Some(applied) = self.applied.pop() else { break };
            let id = applied.id;
            if applied.undo.mark().is_some() {
                // Should the agent die in the midst of the undo command, the guard must not run beside it.
                errors.extend(self.tell(id, &Request::Running { id, running: true }));
            }
            match applied.undo.undo() {
                Ok(()) => errors.extend(self.tell(id, &Request::Forget { id })),
                Err(failed) => {
                    errors.push(failed);
                    left.push(applied);
                }
            }
        }
        self.applied.extend(left.into_iter().rev());
        errors
    }

    /// Asks the guard; without one there is nobody to ask.
    fn ask(&mut self, id: u64, request: &Request) -> Result<(), TreatmentError> {
        self.tell(id, request).map_or(Ok(()), Err)
    }

    /// Tells the guard, and notices when it is gone.
    fn tell(&mut self, id: u64, request: &Request) -> Option<TreatmentError> {
        let failed = self.lifeline.as_mut()?.ask(id, request).err()?;
        self.lifeline = None;
        Some(failed)
    }
}

impl Drop for Treatments {
    fn drop(&mut self) {
        // What fails here stays with the guard, which tries again and tells when the lifeline closes below.
        let _ = self.undo_all();
    }
}
