//! What a trial may change on the host of its server, and the refusal of anything more. It makes no change.
use std::fs;

use netduel_control::agent::{FailureKind, WorkError};
use netduel_model::workload::{Role, Workload};

use crate::failure::{environment, usage};
use crate::kernel_bypass;
use crate::path_events;
use crate::placement::DataAddress;

/// What the kernel has without loading a module, of all users of the host.
const CONGESTION_CONTROLS: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";

/// What a trial may change on the host of its server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostChanges {
    /// What the plan says: its author has started the agent.
    OfPlan,
    /// Nothing but the XDP program of a test, where the packets of its client arrive: the workload is that of a client, which checked it by
    /// rules of its own, or not at all.
    None,
}

impl HostChanges {
    /// Refuses a workload that changes more, before anything of it exists.
    pub(crate) fn check(self, workload: &Workload, address: DataAddress<'_>) -> Result<(), WorkError> {
        match self {
            Self::OfPlan => Ok(()),
            Self::None => {
                check_events(workload)?;
                check_congestion(workload)?;
                check_interface(workload, address)
            }
        }
    }
}

fn check_events(workload: &Workload) -> Result<(), WorkError> {
    if path_events::of(workload, Role::Server).is_empty() {
        return Ok(());
    }
    let message = "netduel serve makes no changes to its host, so it performs no events of a path; \
                   name the other end in `on`, or start an agent there with launch = \"command\"";
    Err(usage(message.to_owned()))
}

/// For a privileged process the kernel loads the module of a congestion control that it lacks (`tcp_ca_find_autoload` in
/// net/ipv4/tcp_cong.c), and the module stays.
fn check_congestion(workload: &Workload) -> Result<(), WorkError> {
    let Some(name) = workload.traffic.facts().tcp.congestion else { return Ok(()) };
    let available = fs::read_to_string(CONGESTION_CONTROLS).map_err(|error| {
        let message = format!("failed to read {CONGESTION_CONTROLS}: {error}");
        WorkError { kind: FailureKind::Environment, message }
    })?;
    if available.split_whitespace().any(|known| known == name) {
        return Ok(());
    }
    Err(usage(format!(
        "netduel serve loads no kernel module for its clients, and its host offers no congestion control `{name}`, only {}; \
         use one of these, or load the module there first",
        available.trim()
    )))
}

/// A program is attached where the client's packets arrive. Elsewhere it would meet the traffic of others: some drivers restart the
/// interface for it.
fn check_interface(workload: &Workload, address: DataAddress<'_>) -> Result<(), WorkError> {
    let packets = workload.traffic.facts().packets.filter(|packets| packets.is_raw(Role::Server));
    let Some(name) = packets.and_then(|packets| packets.interface(Role::Server)) else { return Ok(()) };
    let path = kernel_bypass::server_path(address, None)?;
    if path.carries_all_of(name).map_err(environment)? {
        return Ok(());
    }
    Err(usage(format!(
        "netduel serve attaches no XDP program to {name} for this client, whose packets arrive at {}; name that one in \
         `expect_interface`, leave it out, or start an agent there with launch = \"command\"",
        path.interface
    )))
}
