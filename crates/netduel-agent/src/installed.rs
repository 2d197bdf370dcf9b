//! The ends that this program has. The one place that chooses between them: a further program that makes traffic is a line here and
//! a file of its own.
use netduel_control::agent::WorkError;
use netduel_model::data_ports::ListenAt;
use netduel_model::ids::Token;
use netduel_model::workload::{Role, Workload};

use crate::trial_end::{Ends, Prepared, ServerAddress};
use crate::{dpdk, engine};

/// Our own engines, and DPDK's testpmd.
#[derive(Debug, Clone, Copy, Default)]
pub struct Installed;

/// The program of others that makes or takes the packets at an end of this workload; `None` where our own engines do.
pub fn foreign_program(workload: &Workload, role: Role) -> Option<&'static str> {
    dpdk::settings(workload, role).map(|_| "testpmd")
}

impl Ends for Installed {
    fn server(&self, workload: &Workload, listen: ListenAt, token: Token) -> Result<Prepared, WorkError> {
        match foreign_program(workload, Role::Server) {
            Some(_) => dpdk::server(workload, listen, token),
            None => engine::server(workload, listen, token),
        }
    }

    fn client(&self, workload: &Workload, server: &ServerAddress<'_>) -> Result<Prepared, WorkError> {
        match foreign_program(workload, Role::Client) {
            Some(_) => dpdk::client(workload, server),
            None => engine::client(workload, server),
        }
    }
}
