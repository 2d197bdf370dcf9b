//! A bed: a network namespace and a process namespace without names, with the bridges, taps and guests of a scene. Everything in it ends
//! when its holder does, and the holder ends with the process that made the bed.
use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::Duration;

use crate::bed_folder::BedFolder;
use crate::error::{Error, Result, file};
use crate::guest::Guest;
use crate::prepared::Prepared;
use crate::program::not_started;
use crate::qemu::{self, Machine};
use crate::scene::Scene;
use crate::set_up;
use crate::stopwatch::Stopwatch;

/// Set in every process of a bed: the path of its folder.
pub const BED_VARIABLE: &str = "NETDUEL_BED";
/// The names of the guests; their numbers are 1 and 2.
const NAMES: [&str; 2] = ["a", "b"];
const READY: &str = "ready";
const PURPOSE: &str = "make the namespaces of a test bed";

/// A bed. Dropping it ends everything in it.
#[derive(Debug)]
pub struct Bed {
    /// The guests; dropped after the holder ended, so that their processes have ended.
    guests: Vec<Guest>,
    /// unshare(1), whose child is the first process of the bed. The kernel ends that child with it.
    holder: Child,
    /// The first process reads it, and ends at its end of file. No other process has it.
    lifeline: Option<ChildStdin>,
    /// The id of the first process.
    first_process: u32,
    /// The process namespace. Entering a namespace whose first process ended fails, even when another process has its id.
    process_namespace: File,
    folder: BedFolder,
    /// What a boot had reached, and how long after its start.
    boot_times: Vec<(&'static str, Duration)>,
}

impl Bed {
    /// Makes the namespaces, boots both guests of the scene and sets up their interfaces.
    pub fn boot(prepared: &Prepared, scene: &'static Scene) -> Result<Self> {
        let watch = Stopwatch::start();
        let mut bed = Self::empty(prepared, scene)?;
        bed.boot_times.push(("namespaces", watch.elapsed()));
        let key = bed.folder.make_key()?;
        for (name, number) in NAMES.into_iter().zip(1..) {
            let machine = Machine { scene, name, number, key: &key };
            let mut qemu = bed.command(&prepared.qemu());
            qemu.args(machine.arguments(prepared)).env("LD_LIBRARY_PATH", prepared.library_path());
            let ssh = bed.words(Path::new("ssh")).chain(bed.folder.ssh_options()).collect();
            bed.guests.push(Guest::start(machine, qemu, ssh, bed.folder.path().to_owned())?);
        }
        let mut ports = Vec::new();
        // Both start before the first is waited for: QEMU reads the kernel and the file system before it answers.
        for (name, guest) in NAMES.into_iter().zip(&mut bed.guests) {
            guest.take_control()?;
            ports.push((name, guest.ssh_port()?));
        }
        bed.boot_times.push(("control of QEMU", watch.elapsed()));
        bed.folder.write_ssh_config(&ports)?;
        for guest in &bed.guests {
            guest.wait_until_ready()?;
        }
        bed.boot_times.push(("ssh servers", watch.elapsed()));
        // At a time: each guest has a core, and waits for its links.
        let set_up = |(guest, number): (&Guest, u8)| guest.ssh(&set_up::script(scene, number)).map(drop);
        std::thread::scope(|scope| {
            let threads: Vec<_> =
                bed.guests.iter().zip(1..).map(|guest| scope.spawn(move || set_up(guest))).collect();
            let joined = threads
                .into_iter()
                .map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
            joined.collect::<Result<()>>()
        })?;
        bed.boot_times.push(("interfaces", watch.elapsed()));
        Ok(bed)
    }

    /// The namespaces with bridges and taps, without guests.
    pub fn empty(prepared: &Prepared, scene: &Scene) -> Result<Self> {
        let folder = BedFolder::make(prepared)?;
        let mut command = Command::new("unshare");
        command.args(["--net", "--pid", "--fork", "--kill-child", "--", "sh", "-ec", &script(scene)]);
        command
            .env(BED_VARIABLE, folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        // Not in the group of the terminal: Ctrl-C is for the program that made the bed.
        command.process_group(0);
        let mut holder = command.spawn().map_err(|source| not_started(&command, PURPOSE, source))?;
        let lifeline = holder.stdin.take();
        let printed = holder.stdout.take().map_or_else(Vec::new, |output| {
            let lines = BufReader::new(output).lines().map_while(std::result::Result::ok);
            let mut printed = Vec::new();
            for line in lines {
                let is_ready = line == READY;
                printed.push(line);
                if is_ready {
                    break;
                }
            }
            printed
        });
        let first_process = match &printed[..] {
            [id, ready] if ready == READY => id.parse().ok(),
            _ => None,
        };
        let Some(first_process) = first_process else {
            drop(lifeline);
            let mut output = printed.join("\n");
            if let Some(mut errors) = holder.stderr.take() {
                // Without the errors, the error shows what came before.
                let _ = errors.read_to_string(&mut output);
            }
            let status = holder.wait().map_or_else(|error| error.to_string(), |status| status.to_string());
            return Err(Error::Program {
                purpose: format!("{PURPOSE}: root, unshare(1) and ip(8) are needed"),
                command: "unshare --net --pid sh".to_owned(),
                status,
                output,
            });
        };
        let path = PathBuf::from(format!("/proc/{first_process}/ns/pid"));
        let process_namespace = File::open(&path).map_err(file("open", &path))?;
        Ok(Self {
            guests: Vec::new(),
            holder,
            lifeline,
            first_process,
            process_namespace,
            folder,
            boot_times: Vec::new(),
        })
    }

    /// Both guests; none in an empty bed.
    pub fn guests(&mut self) -> &mut [Guest] {
        &mut self.guests
    }

    /// What the boot had reached, in order, and how long after its start; nothing in an empty bed.
    pub fn boot_times(&self) -> &[(&'static str, Duration)] {
        &self.boot_times
    }

    /// A command in the namespaces of the bed; it ends with the bed.
    pub fn command(&self, program: &Path) -> Command {
        let mut words = self.words(program);
        let mut command = Command::new(words.next().unwrap_or_default());
        command.args(words).env(BED_VARIABLE, self.folder.path()).process_group(0);
        command
    }

    /// As [`Self::command`], in the group of the terminal: for a program that a person uses.
    pub fn interactive_command(&self, program: &Path) -> Command {
        let mut words = self.words(program);
        let mut command = Command::new(words.next().unwrap_or_default());
        command.args(words).env(BED_VARIABLE, self.folder.path());
        command
    }

    /// The configuration for `ssh -F`, with the hosts `a` and `b`; for commands in the bed.
    pub fn ssh_config(&self) -> PathBuf {
        self.folder.ssh_config()
    }

    /// The folder of the bed; the value of [`BED_VARIABLE`] in its processes.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The id of the first process, with which everything in the bed ends.
    pub fn first_process(&self) -> u32 {
        self.first_process
    }

    /// Waits until the holder has ended, and with it everything in the bed. The caller does not end it: another process has to.
    pub fn wait_for_end(&mut self) -> Result<()> {
        let status = self.holder.wait();
        status.map(drop).map_err(file("wait for the holder of", self.folder.path()))
    }

    /// nsenter(1) with the namespaces of the bed, and the program.
    fn words(&self, program: &Path) -> impl Iterator<Item = String> + use<> {
        let (own, descriptor) = (std::process::id(), self.process_namespace.as_raw_fd());
        [
            "nsenter".to_owned(),
            format!("--net=/proc/{}/ns/net", self.first_process),
            format!("--pid=/proc/{own}/fd/{descriptor}"),
            "--".to_owned(),
            program.display().to_string(),
        ]
        .into_iter()
    }
}

impl Drop for Bed {
    fn drop(&mut self) {
        drop(self.lifeline.take());
        // The kernel has ended everything in the process namespace when its first process is reaped.
        let _ = self.holder.wait();
        self.guests.clear();
    }
}

/// What the first process does: prints its id outside of the bed, makes the network, and waits for the end of its input. The shell itself
/// reads the id, so that it is not that of a child.
fn script(scene: &Scene) -> String {
    let mut lines = vec![
        "read -r id rest < /proc/self/stat".to_owned(),
        "echo \"$id\"".to_owned(),
        "ip link set lo up".to_owned(),
        // The bed's own hosts send nothing on its wires.
        "echo 1 > /proc/sys/net/ipv6/conf/all/disable_ipv6".to_owned(),
        "echo 1 > /proc/sys/net/ipv6/conf/default/disable_ipv6".to_owned(),
    ];
    for wire in scene.wires() {
        lines.push(format!("ip link add wire{wire} type bridge mcast_snooping 0"));
        lines.push(format!("ip link set wire{wire} up"));
    }
    for (guest, nic) in NAMES.into_iter().flat_map(|guest| scene.nics.iter().map(move |nic| (guest, nic))) {
        let tap = qemu::tap(guest, nic);
        let multi_queue = if nic.device.tap_queues() > 1 { " multi_queue" } else { "" };
        lines.push(format!("ip tuntap add {tap} mode tap vnet_hdr{multi_queue}"));
        lines.push(format!("ip link set {tap} master wire{} up", nic.wire));
    }
    lines.push(format!("echo {READY}"));
    lines.push("exec cat > /dev/null 2>&1".to_owned());
    lines.join("\n")
}
