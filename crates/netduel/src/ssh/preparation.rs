//! The preparation of one host: its connection, and the program of this build there. It starts no agent.
use std::path::PathBuf;

use netduel_model::ids::HostName;
use netduel_model::plan::SshHost;

use super::binary::{Binaries, Binary};
use super::master::{Master, TriedProgram};
use super::obstacle::{self, Obstacle};
use super::scripts::{self, Probe};
use super::stop::Stop;
use super::upload::Upload;

/// Timeout of an answer over a connection that was made earlier, nanoseconds.
const REUSE_TIMEOUT_NS: u64 = 10_000_000_000;

/// What all hosts share.
#[derive(Debug, Clone, Copy)]
pub struct Shared<'a> {
    /// The programs.
    pub binaries: &'a Binaries,
    /// Whether progress is not shown.
    pub is_quiet: bool,
    /// What ends it early.
    pub stop: &'a Stop,
}

/// A host to be prepared.
#[derive(Debug)]
pub struct Preparation {
    /// The host.
    pub name: HostName,
    /// How it is reached.
    pub ssh: SshHost,
    /// Its connection, when it has one.
    pub master: Option<Master>,
    /// The socket of a new connection.
    pub socket: PathBuf,
    /// Whether the run has connected to it earlier.
    pub is_known: bool,
}

impl Preparation {
    /// The argv that starts the agent of the host: it is connected, and has the program of this build.
    pub fn run(&mut self, shared: Shared<'_>) -> Result<Vec<String>, Obstacle> {
        let Shared { binaries, is_quiet, stop } = shared;
        if let Some(argv) = self.argv_of_tried_program(stop)? {
            return Ok(argv);
        }
        let machine = self.machine(stop)?;
        let (ssh, Some(master)) = (&self.ssh, &mut self.master) else { return Err(Obstacle::Interrupted) };
        let binary = &binaries.for_machine(&machine, &ssh.host)?;
        let probe = Probe::parse(&master.ask(&scripts::probe(ssh.folder(), binary), stop)?)?;
        let is_there = probe.checksum.as_deref() == Some(binary.checksum.as_str());
        if !is_there {
            Upload { ssh, binary, probe: &probe, is_quiet }.run(master, stop)?;
        }
        let state = check_start(master, ssh, binary, &probe.file, stop)?;
        let argv = master.session_argv(&scripts::agent(ssh, &probe.file));
        master.program = state.map(|state| TriedProgram { file: probe.file, state });
        Ok(argv)
    }

    /// The argv that starts the agent again with the program that was compared and started over the same connection. `None` where the
    /// connection or the file is another one.
    fn argv_of_tried_program(&mut self, stop: &Stop) -> Result<Option<Vec<String>>, Obstacle> {
        let tried = self.master.as_ref().and_then(|master| master.program.clone());
        let Some(TriedProgram { file, state }) = tried else { return Ok(None) };
        let answer = self.ask_again(&scripts::state(&file), stop)?;
        let is_same = answer.as_deref().and_then(scripts::state_in) == Some(state.as_str());
        let master = self.master.as_ref().filter(|_| is_same);
        Ok(master.map(|master| master.session_argv(&scripts::agent(&self.ssh, &file))))
    }

    /// What `uname -sm` prints on the host, by its connection, or by a new one when that was lost.
    pub fn machine(&mut self, stop: &Stop) -> Result<String, Obstacle> {
        if let Some(machine) = self.ask_again(scripts::MACHINE, stop)? {
            return Ok(machine);
        }
        let master = Master::open(&self.name, &self.ssh, self.socket.clone(), self.is_known, stop)?;
        self.master.insert(master).ask(scripts::MACHINE, stop)
    }

    /// What a script prints over the connection that was made earlier. `None` without one, and when it was lost.
    fn ask_again(&mut self, script: &str, stop: &Stop) -> Result<Option<String>, Obstacle> {
        let Some(master) = &mut self.master else { return Ok(None) };
        match master.ask_within(script, REUSE_TIMEOUT_NS, stop) {
            Ok(answer) => Ok(Some(answer)),
            Err(stopped @ (Obstacle::Interrupted | Obstacle::Abandoned)) => Err(stopped),
            // It may have been lost together with the agent; a new one tells why.
            Err(_) => {
                self.master = None;
                Ok(None)
            }
        }
    }
}

/// Starts the program once, so that a program that cannot run, or is of another version, is an error with its reason, and not an agent that
/// ended early. Returns the state of its file, on a host with stat(1).
fn check_start(
    master: &mut Master,
    ssh: &SshHost,
    binary: &Binary,
    file: &str,
    stop: &Stop,
) -> Result<Option<String>, Obstacle> {
    let answer = master.ask(&scripts::start(ssh, file), stop)?;
    let (status, output) = scripts::status_and_output(&answer);
    if status == Some(0) {
        // sudo may print lines of its own.
        let expected = concat!("netduel ", env!("CARGO_PKG_VERSION"));
        let is_same = output.lines().any(|line| line.trim_end() == expected);
        let state = scripts::state_in(&answer).map(str::to_owned);
        return if is_same { Ok(state) } else { Err(obstacle::of_version(ssh, binary, output)) };
    }
    Err(obstacle::of_start(ssh, binary, file, status, output))
}
