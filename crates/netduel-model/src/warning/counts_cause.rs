//! Why figures of programs and of interfaces do not add up, and what to do about it. Words and no arithmetic.
use serde::{Deserialize, Serialize};

use super::{Warning, trials_in_words};
use crate::units::human_si;

/// Why an interface's count differs from what the programs counted, as far as the figures tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CountsCause {
    /// The interface carried more than the trial's traffic.
    OtherTraffic,
    /// What the interface received was dropped on its way to the program's socket.
    DroppedBehind,
    /// The interface's counter leaves out, or is late.
    NotCounted,
}

impl CountsCause {
    pub(super) fn advice(self) -> &'static str {
        match self {
            Self::OtherTraffic => {
                "other traffic used the interface: stop it, or the figures are those of a shared path"
            }
            Self::DroppedBehind => {
                "it arrived at the host and was dropped before the program's socket: look for a filter or firewall there, and \
                 at the drops in softnet_stat; that part of the loss is not the path's"
            }
            Self::NotCounted => {
                "the interface's counter leaves out what passes it by (XDP, offloads), or the bytes took another way"
            }
        }
    }
}

impl Warning {
    /// The sentence of figures that do not add up.
    pub(super) fn about_counts(&self) -> String {
        let Self::CountsDisagree {
            arm,
            workload,
            host,
            interface,
            sent,
            counted_bytes,
            expected_min_bytes,
            expected_max_bytes,
            sender_bytes,
            receiver_bytes,
            cause,
            trials,
        } = self
        else {
            unreachable!("this is the sentence of that doubt alone")
        };
        let [counted, min, max, sender, receiver] =
            [counted_bytes, expected_min_bytes, expected_max_bytes, sender_bytes, receiver_bytes]
                .map(|bytes| human_si(*bytes as f64, "B"));
        format!(
            "counts disagree: in {workload} of {arm} interface {interface} of host {host} {} {counted} where {min} to {max} were \
             expected ({sender} of payload sent, {receiver} received, and headers), in {}; {}",
            if *sent { "sent" } else { "received" },
            trials_in_words(*trials),
            cause.advice()
        )
    }
}
