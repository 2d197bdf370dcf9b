//! What a program that is not ours is lent for a trial, and how it is given back: it may end without tidying up.
use netduel_sys::link;
use netduel_sys::xdp::attachment;
use serde::{Deserialize, Serialize};

use super::error::TreatmentError;
use super::offload::index_of;
use super::undo::Undo;

/// What is lent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Loan {
    /// An interface whose flags and XDP program are the program's while it runs.
    Interface {
        /// Its name.
        interface: String,
    },
}

/// How it was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "lent", rename_all = "kebab-case")]
pub(super) enum Lent {
    /// An interface without an XDP program.
    Interface { interface: String, index: u32, promiscuous: bool },
}

/// Reads what is there, and refuses what is in use; changes nothing.
pub(super) fn prepare(loan: &Loan) -> Result<(Undo, LoanChange), TreatmentError> {
    match loan {
        Loan::Interface { interface } => {
            let index = index_of(interface)?;
            let doing = || format!("lend {interface} to another program");
            let refused = |cause| TreatmentError::about_interface(interface, doing(), cause);
            if let Some(number) = attachment::program(index).map_err(refused)? {
                let why = format!(
                    "an XDP program is on it (number {number} in `bpftool prog`): another program uses it; end that, or take it off with \
                     `ip link set dev {interface} xdp off`"
                );
                return Err(TreatmentError::Unsupported {
                    doing: doing(),
                    interface: interface.clone(),
                    why,
                });
            }
            let promiscuous = link::is_promiscuous(interface).map_err(refused)?;
            let lent = Lent::Interface { interface: interface.clone(), index, promiscuous };
            Ok((Undo::Lent(lent), LoanChange))
        }
    }
}

/// Lending an interface changes nothing of it; the borrower does.
#[derive(Debug)]
pub(super) struct LoanChange;

impl LoanChange {
    /// Makes the change.
    #[expect(clippy::unused_self, clippy::unnecessary_wraps, reason = "the form of all changes")]
    pub(super) fn make(&self) -> Result<(), TreatmentError> {
        Ok(())
    }
}

impl Lent {
    /// The interface's index, when it is one.
    pub(super) fn index(&self) -> u32 {
        match self {
            Self::Interface { index, .. } => *index,
        }
    }

    /// Makes it as it was. The interface may have another name by now.
    pub(super) fn give_back(&self, interface: &str) -> Result<(), TreatmentError> {
        match self {
            Self::Interface { index, promiscuous, .. } => {
                let doing = || format!("take back {interface}");
                let refused = |cause| TreatmentError::about_interface(interface, doing(), cause);
                attachment::detach(*index).map_err(refused)?;
                if link::is_promiscuous(interface).map_err(refused)? != *promiscuous {
                    link::set_promiscuous(interface, *promiscuous).map_err(refused)?;
                }
                Ok(())
            }
        }
    }

    /// What it is, for messages.
    pub(super) fn what(&self) -> String {
        match self {
            Self::Interface { interface, .. } => format!("the flags and the XDP program of {interface}"),
        }
    }

    /// How to do it without this program.
    pub(super) fn by_hand(&self) -> String {
        match self {
            Self::Interface { interface, promiscuous, .. } => {
                let word = if *promiscuous { "on" } else { "off" };
                format!("`ip link set dev {interface} xdp off promisc {word}`")
            }
        }
    }
}
