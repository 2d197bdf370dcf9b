//! Hosts of `launch = "ssh"`: one connection of the user's own OpenSSH for each host, and a copy of this program there. It measures nothing,
//! and knows no messages of agents.
//!
//! Every connection ends with this process, however that ends: see [`master`].
mod agents;
mod binary;
mod cloud_init;
mod compression;
mod configuration;
mod exposure;
mod host_keys;
mod jumps;
mod master;
mod obstacle;
mod options;
mod preparation;
mod refusal;
mod scripts;
mod sockets;
mod stop;
mod upload;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::mpsc::channel;
use std::thread::{self, Builder};

use netduel_model::ids::HostName;
use netduel_model::plan::SshHost;

pub use agents::SshAgents;
use binary::Binaries;
pub use binary::own_checksum;
pub use host_keys::known_hosts_of_bed;
use master::Master;
use obstacle::Obstacle;
use preparation::{Preparation, Shared};
use sockets::SocketFolder;
use stop::Stop;

/// What the failure of a host means for the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnFailure {
    /// Their preparation stops, and their connections end.
    StopOthers,
    /// Nothing. [`SshHosts::argv`] returns the reason for the failed host.
    Continue,
}

/// Why the hosts of a run are not prepared.
#[derive(Debug)]
pub enum NotPrepared {
    /// The user ended the program.
    Interrupted,
    /// The first host that failed, and why.
    Failed {
        /// The host.
        host: HostName,
        /// The reason, and what to do.
        reason: String,
    },
}

/// The connections of a run, opened when its hosts are prepared.
#[derive(Debug, Default)]
pub struct SshHosts {
    binaries: Binaries,
    /// The folder of the command line, in place of that of each host.
    folder: Option<String>,
    is_quiet: bool,
    /// Whether the run has connected to its hosts earlier.
    is_resumed: bool,
    masters: BTreeMap<HostName, Master>,
    /// Hosts that were prepared and whose agents were not started yet.
    prepared: BTreeMap<HostName, Result<Vec<String>, String>>,
    /// Dropped after the masters, which remove their sockets.
    sockets: Option<SocketFolder>,
    opened: u32,
}

impl SshHosts {
    /// Without connections. The programs and the folder are those of the command line, which precede the others.
    pub fn new(programs: &[PathBuf], folder: Option<&str>, is_quiet: bool) -> Self {
        let binaries = Binaries::new(programs);
        Self { binaries, folder: folder.map(str::to_owned), is_quiet, ..Self::default() }
    }

    /// From now on VMs of a bed need a host key that is known: the run that is resumed has connected to its hosts earlier.
    pub fn resume(&mut self) {
        self.is_resumed = true;
    }

    /// Prepares hosts at the same time, each in a thread of its own.
    ///
    /// # Errors
    /// With [`OnFailure::StopOthers`], when a host failed.
    pub fn prepare<'a>(
        &mut self,
        hosts: impl IntoIterator<Item = (&'a HostName, &'a SshHost)>,
        on_failure: OnFailure,
    ) -> Result<(), NotPrepared> {
        // The preparation of the agent's start reports what is missing for this one.
        let Ok(stop) = Stop::new() else { return Ok(()) };
        let preparations: Vec<_> =
            hosts.into_iter().filter_map(|(name, ssh)| self.preparation(name, ssh).ok()).collect();
        let shared = Shared { binaries: &self.binaries, is_quiet: self.is_quiet, stop: &stop };
        let (ended, results) = channel();
        thread::scope(|scope| {
            for mut preparation in preparations {
                let ended = ended.clone();
                let work = move || {
                    let result = preparation.run(shared);
                    let Preparation { name, mut master, .. } = preparation;
                    let (has_failed, kept) = (result.is_err(), master.take_if(|_| result.is_ok()));
                    // Before the others stop, so that the first result with an error is the cause. The receiver outlives this thread.
                    drop(ended.send((name, kept, result)));
                    if has_failed && on_failure == OnFailure::StopOthers {
                        shared.stop.fail();
                    }
                    // The connection of a failed host ends here, as do those of the others in their threads.
                    drop(master);
                };
                // A host without a thread is prepared when its agent is started.
                drop(Builder::new().name("ssh-host".to_owned()).spawn_scoped(scope, work));
            }
        });
        drop(ended);
        for (host, master, result) in results {
            self.masters.extend(master.map(|master| (host.clone(), master)));
            match result {
                Err(Obstacle::Interrupted) if on_failure == OnFailure::StopOthers => {
                    return Err(NotPrepared::Interrupted);
                }
                Err(obstacle) if on_failure == OnFailure::StopOthers => {
                    return Err(NotPrepared::Failed { host, reason: obstacle.to_string() });
                }
                result => drop(self.prepared.insert(host, result.map_err(|obstacle| obstacle.to_string()))),
            }
        }
        Ok(())
    }

    /// The argv that starts the agent of a host. A host that is not prepared, for example because it had no thread, is prepared now.
    ///
    /// # Errors
    /// Why that is not possible, and what to do.
    pub fn argv(&mut self, name: &HostName, ssh: &SshHost) -> Result<Vec<String>, String> {
        self.prepared
            .remove(name)
            .unwrap_or_else(|| self.prepare_now(name, ssh).map_err(|obstacle| obstacle.to_string()))
    }

    /// The last line that the connection of a host printed. `None` while it lives, and for hosts without one.
    fn last_line(&mut self, name: &HostName) -> Option<String> {
        self.masters.get_mut(name)?.last_line()
    }

    /// The agent of a host did not start: before the next one, the program there is compared and tried again.
    fn forget_program(&mut self, name: &HostName) {
        if let Some(master) = self.masters.get_mut(name) {
            master.program = None;
        }
    }

    fn prepare_now(&mut self, name: &HostName, ssh: &SshHost) -> Result<Vec<String>, Obstacle> {
        let stop = Stop::new()?;
        let mut preparation = self.preparation(name, ssh)?;
        let shared = Shared { binaries: &self.binaries, is_quiet: self.is_quiet, stop: &stop };
        let result = preparation.run(shared);
        self.masters.extend(preparation.master.map(|master| (name.clone(), master)));
        result
    }

    fn preparation(&mut self, name: &HostName, ssh: &SshHost) -> Result<Preparation, Obstacle> {
        self.opened += 1;
        let sockets = match &self.sockets {
            Some(sockets) => sockets,
            None => self.sockets.insert(SocketFolder::new()?),
        };
        let socket = sockets.socket(self.opened);
        let folder = self.folder.clone().or_else(|| ssh.folder.clone());
        let ssh = SshHost { folder, ..ssh.clone() };
        let (master, is_known) = (self.masters.remove(name), self.is_resumed);
        Ok(Preparation { name: name.clone(), ssh, master, socket, is_known })
    }
}
