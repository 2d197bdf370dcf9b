//! Hosts of `launch = "ssh"`: one connection of the user's own OpenSSH for each host, and a copy of this program there. It measures nothing,
//! and knows no messages of agents.
//!
//! Every connection ends with this process, however that ends: see [`master`].
mod binary;
mod master;
mod obstacle;
mod scripts;
mod sockets;
mod upload;

use std::collections::BTreeMap;
use std::path::PathBuf;

use netduel_model::ids::HostName;
use netduel_model::plan::SshHost;

pub use binary::own_checksum;
use binary::{Binaries, Binary};
use master::Master;
use obstacle::Obstacle;
use scripts::Probe;
use sockets::SocketFolder;

/// Timeout of an answer over a connection that was made earlier, nanoseconds.
const REUSE_TIMEOUT_NS: u64 = 10_000_000_000;

/// The connections of a run, opened when an agent is started.
#[derive(Debug, Default)]
pub struct SshHosts {
    binaries: Binaries,
    is_quiet: bool,
    masters: BTreeMap<HostName, Master>,
    /// Dropped after the masters, which remove their sockets.
    sockets: Option<SocketFolder>,
    opened: u32,
}

impl SshHosts {
    /// Without connections.
    pub fn new(programs: &[PathBuf], is_quiet: bool) -> Self {
        Self { binaries: Binaries::new(programs), is_quiet, ..Self::default() }
    }

    /// The argv that starts the agent of a host: it is connected, and has the program of this build.
    ///
    /// # Errors
    /// Why that is not possible, and what to do.
    pub fn argv(&mut self, name: &HostName, ssh: &SshHost) -> Result<Vec<String>, String> {
        self.connect(name, ssh).map_err(|obstacle| obstacle.to_string())
    }

    fn connect(&mut self, name: &HostName, ssh: &SshHost) -> Result<Vec<String>, Obstacle> {
        let machine = self.machine(name, ssh)?;
        let Some(master) = self.masters.get_mut(name) else { return Err(Obstacle::Interrupted) };
        let binary = self.binaries.for_machine(&machine, &ssh.host)?;
        let probe = Probe::parse(&master.ask(&scripts::probe(ssh.folder(), binary))?)?;
        let is_there = probe.checksum.as_deref() == Some(binary.checksum.as_str());
        if !is_there {
            let upload = upload::Upload { ssh, binary, probe: &probe, is_quiet: self.is_quiet };
            upload.run(master)?;
        }
        Self::check_start(master, ssh, binary, &probe.file)?;
        Ok(master.session_argv(&scripts::agent(ssh, &probe.file)))
    }

    /// What `uname -sm` prints on a host, by its connection, or by a new one when that was lost.
    fn machine(&mut self, name: &HostName, ssh: &SshHost) -> Result<String, Obstacle> {
        if let Some(master) = self.masters.get_mut(name) {
            match master.ask_within(scripts::MACHINE, REUSE_TIMEOUT_NS) {
                Ok(machine) => return Ok(machine),
                Err(Obstacle::Interrupted) => return Err(Obstacle::Interrupted),
                // It may have been lost together with the agent; the new one tells why.
                Err(_) => drop(self.masters.remove(name)),
            }
        }
        self.opened += 1;
        let folder = match &self.sockets {
            Some(folder) => folder,
            None => self.sockets.insert(SocketFolder::new()?),
        };
        let master = Master::open(name, ssh, folder.socket(self.opened))?;
        self.masters.entry(name.clone()).or_insert(master).ask(scripts::MACHINE)
    }

    /// Starts the program once, so that a program that cannot run is an error with its reason, and not an agent that ended early.
    fn check_start(master: &mut Master, ssh: &SshHost, binary: &Binary, file: &str) -> Result<(), Obstacle> {
        let answer = master.ask(&scripts::start(ssh, file))?;
        let (status, output) = scripts::status_and_output(&answer);
        if status == Some(0) && output.contains("netduel") {
            return Ok(());
        }
        Err(obstacle::of_start(ssh, binary, file, status, output))
    }
}
