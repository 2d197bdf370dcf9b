//! A running guest: its QEMU, console, ssh and control. It belongs to a bed, with which it ends.
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Output, Stdio};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use serde_json::{Value, json};

use crate::console::{Console, State};
use crate::error::{Error, Result};
use crate::program::{any_output_of, failure, not_started};
use crate::qemu::{self, Machine};
use crate::qmp::{Answers, Qmp};
use crate::scene::Scene;

/// Bound of everything that is waited for: a boot, what QEMU does at once, a command over ssh. A boot takes 5 s on an idle machine, and 35 s
/// with a load of 6 per core; what takes a hundred times as long does not come any more.
const BOUND: Duration = Duration::from_secs(500);

/// A guest.
#[derive(Debug)]
pub struct Guest {
    name: String,
    number: u8,
    scene: &'static Scene,
    /// The nsenter(1) whose child is QEMU; it ends with it.
    process: Child,
    qmp: Qmp<ChildStdin>,
    console: Console,
    readers: Vec<JoinHandle<()>>,
    /// The command that ssh and its arguments are added to, as words: it enters the namespaces of the bed.
    ssh: Vec<String>,
    /// The folder in which that command runs.
    folder: PathBuf,
}

/// A connection that commands in a guest share, one after the other.
#[derive(Debug, Clone, Copy)]
enum Connection {
    /// Of commands whose end is awaited.
    OneByOne,
    /// Of a command that may go on beside one of those.
    Beside,
}

impl Connection {
    /// The setting of ssh. The path is relative to the folder of the bed: sockets have short paths only.
    fn path(self) -> &'static str {
        match self {
            Self::OneByOne => "ControlPath=connection-%n",
            Self::Beside => "ControlPath=beside-%n",
        }
    }
}

impl Guest {
    /// Starts QEMU and waits for nothing; [`Self::take_control`] comes next. `ssh` is the command that reaches guests by their names, in the folder.
    pub fn start(machine: Machine<'_>, mut qemu: Command, ssh: Vec<String>, folder: PathBuf) -> Result<Self> {
        let Machine { name, number, scene, .. } = machine;
        let purpose = format!("start guest {name}");
        qemu.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = qemu.spawn().map_err(|source| not_started(&qemu, &purpose, source))?;
        let (console, answers) = (Console::default(), Answers::default());
        let pipes = (process.stdin.take(), process.stdout.take(), process.stderr.take());
        let (Some(input), Some(output), Some(errors)) = pipes else {
            return Err(not_started(&qemu, &purpose, std::io::Error::other("no pipes to QEMU")));
        };
        let of_console = console.clone();
        let of_answers = answers.clone();
        let readers = vec![
            reader(&qemu, move || of_console.read(errors))?,
            reader(&qemu, move || of_answers.read(output))?,
        ];
        let qmp = Qmp::new(input, answers);
        Ok(Self { name: name.to_owned(), number, scene, process, qmp, console, readers, ssh, folder })
    }

    /// Waits until QEMU takes commands.
    pub fn take_control(&mut self) -> Result<()> {
        self.qmp.negotiate(BOUND).map_err(|reason| {
            // QEMU's own message comes before its end, which the reader of the console sees.
            let _ = self.process.kill();
            let _ = self.process.wait();
            self.console.wait_for_end(BOUND);
            self.failed("get QEMU's control", &reason)
        })
    }

    /// Its name, `a` or `b`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Waits until its ssh server runs.
    pub fn wait_until_ready(&self) -> Result<()> {
        match self.console.wait(BOUND) {
            Some(State::Ready) => Ok(()),
            Some(State::Ended) => Err(self.failed("boot", "QEMU ended")),
            None => Err(self.failed("boot", &format!("it is not ready after {} s", BOUND.as_secs()))),
        }
    }

    /// The port of its ssh server on the loopback interface of the bed.
    pub fn ssh_port(&mut self) -> Result<u16> {
        let monitor = json!({ "command-line": "info usernet" });
        let table = self.qmp("human-monitor-command", &monitor)?;
        port_in(table.as_str().unwrap_or_default())
            .ok_or_else(|| self.failed("find the port of ssh", &format!("`info usernet` printed {table}")))
    }

    /// Runs a command of the guest's shell and returns its standard output. An exit code other than 0 is an error.
    pub fn ssh(&self, script: &str) -> Result<String> {
        let output = self.ssh_output(script)?;
        if !output.status.success() {
            return Err(failure(
                &self.ssh_command(Connection::OneByOne, &[&self.name, script]),
                &format!("run a command in guest {}", self.name),
                &output,
            ));
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// As [`Self::ssh`], whatever its exit code.
    pub fn ssh_output(&self, script: &str) -> Result<Output> {
        let mut command = self.ssh_command(Connection::OneByOne, &[&self.name, script]);
        any_output_of(&mut command, &format!("run a command in guest {}", self.name))
    }

    /// Runs a command of QEMU's control protocol.
    pub fn qmp(&mut self, command: &str, arguments: &Value) -> Result<Value> {
        self.qmp.run(command, arguments, BOUND).map_err(|reason| self.refused(command, reason))
    }

    /// Plugs the device of a NIC of the scene again.
    pub fn plug(&mut self, interface: &str) -> Result<()> {
        self.add_device(interface, None)
    }

    /// Plugs a device of this model (as QEMU names it) into a free port of the scene.
    pub fn plug_model(&mut self, interface: &str, model: &str) -> Result<()> {
        self.add_device(interface, Some(model))
    }

    /// The MAC address of a NIC of the scene.
    pub fn mac(&self, interface: &str) -> Option<String> {
        Some(self.scene.mac(self.number, self.scene.nic(interface)?))
    }

    fn add_device(&mut self, interface: &str, model: Option<&str>) -> Result<()> {
        let nic = self.scene.nic(interface);
        let Some(properties) = nic.and_then(|nic| qemu::device(self.scene, self.number, nic, model)) else {
            let reason = format!("the scene {} has no device for {interface}", self.scene.name);
            return Err(self.refused("device_add", reason));
        };
        let properties = properties.into_iter().map(|(name, value)| (name.to_owned(), Value::String(value)));
        self.qmp("device_add", &Value::Object(properties.collect())).map(drop)
    }

    /// Unplugs a device, and waits until the guest let go of it.
    pub fn unplug(&mut self, interface: &str) -> Result<()> {
        self.qmp("device_del", &json!({ "id": interface }))?;
        let deleted = self.qmp.wait_for_event("DEVICE_DELETED", interface, BOUND);
        deleted.map_err(|reason| self.refused("device_del", reason))
    }

    /// Switches the guest off and waits until its QEMU ended.
    pub fn power_off(&mut self) -> Result<()> {
        self.qmp("quit", &json!({}))?;
        self.wait_for_end()
    }

    /// Waits until its QEMU ended.
    pub fn wait_for_end(&mut self) -> Result<()> {
        if self.console.wait_for_end(BOUND) {
            return Ok(());
        }
        Err(self.failed("end QEMU", &format!("it still runs after {} s", BOUND.as_secs())))
    }

    /// What its console and QEMU printed so far.
    pub fn console(&self) -> String {
        self.console.text()
    }

    /// A command as those of [`Self::ssh`], for a caller that waits for less than its end. It has a connection of its own, which one such command uses
    /// at a time: the ssh server (dropbear 2022.83) may close a session before it starts its command when another command of the connection ends.
    pub fn command_beside(&self, script: &str) -> Command {
        self.ssh_command(Connection::Beside, &[&self.name, script])
    }

    /// Ends the connections that its commands share, as far as there are any, and the commands that use them; the next command makes another. After a
    /// failure of its link the old one would wait as long again before it repeats what was lost.
    pub fn end_connections(&self) -> Result<()> {
        for connection in [Connection::OneByOne, Connection::Beside] {
            let mut command = self.ssh_command(connection, &["-O", "exit", &self.name]);
            // Where there is none, ssh prints that and ends with an exit code other than 0.
            any_output_of(&mut command, &format!("end a connection to guest {}", self.name))?;
        }
        Ok(())
    }

    fn ssh_command(&self, connection: Connection, words: &[&str]) -> Command {
        let mut command = Command::new("timeout");
        command.arg(BOUND.as_secs().to_string()).args(&self.ssh);
        command.args(["-o", connection.path()]).args(words).current_dir(&self.folder);
        command
    }

    fn failed(&self, waiting_for: &str, reason: &str) -> Error {
        Error::Guest {
            guest: self.name.clone(),
            waiting_for: waiting_for.to_owned(),
            reason: reason.to_owned(),
            console: self.console.end(),
        }
    }

    fn refused(&self, command: &str, reason: String) -> Error {
        Error::Qmp { guest: self.name.clone(), command: command.to_owned(), reason }
    }
}

impl Drop for Guest {
    /// Its bed has ended QEMU before.
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        for reader in self.readers.drain(..) {
            let _ = reader.join();
        }
    }
}

fn reader(qemu: &Command, read: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>> {
    let thread = Builder::new().name("guest-reader".to_owned()).spawn(read);
    thread.map_err(|source| not_started(qemu, "read what a guest prints", source))
}

/// The forwarded port in QEMU's table: protocol and state, descriptor, source address and port, and more.
fn port_in(table: &str) -> Option<u16> {
    let row = table.lines().find(|line| line.contains("HOST_FORWARD"))?;
    row.split_whitespace().nth(3)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn port_is_read_from_the_table() {
        let table = "Hub -1 (mgmt):\r\n  Protocol[State]    FD  Source Address  Port   Dest. Address  Port RecvQ SendQ\r\n  \
                     TCP[HOST_FORWARD]  12       127.0.0.1 43121       10.0.2.15    22     0     0\r\n";
        assert_eq!(port_in(table), Some(43121));
        assert_eq!(port_in("nothing"), None);
    }
}
