//! A stage for benches that harm processes: mount, network and pid namespaces of their own, so that they see and hit no process of the
//! machine, and the kernel ends everything in them with their first process. Measures nothing.
use std::io::Read as _;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context as _, Result, ensure};
use rustix::process::{WaitOptions, wait};

/// Tells a process of a bench which one it is.
const ROLE: &str = "NETDUEL_BENCH_ROLE";
/// The first process of the namespaces: it reaps processes whose parent was killed.
const FIRST: &str = "first";
/// The bench itself.
const BENCH: &str = "bench";

/// Options of the programs that start a bench, not of its user.
#[derive(Debug, clap::Args)]
pub struct Start {
    /// End when standard input ends (for the program that started this one).
    #[arg(long, hide = true)]
    lifeline: bool,
    /// Given by `cargo bench`.
    #[arg(long, hide = true)]
    bench: bool,
}

/// Runs the bench in its own namespaces, and returns its exit code. It starts this program two more times: as the first process of the
/// namespaces, and as the bench. With [`Start::lifeline`] all end when standard input ends.
pub fn run(start: &Start, bench: impl FnOnce() -> Result<bool>) -> ExitCode {
    let done = match std::env::var(ROLE).as_deref() {
        Ok(BENCH) => bench(),
        Ok(FIRST) => first(start.lifeline),
        _ => outside(),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

fn again(command: &mut Command, role: &str) -> Result<()> {
    command.arg(std::env::current_exe().context("failed to find this program")?);
    command.args(std::env::args_os().skip(1)).env(ROLE, role);
    Ok(())
}

fn outside() -> Result<bool> {
    ensure!(rustix::process::geteuid().is_root(), "failed to make namespaces: run this bench as root");
    let mut command = Command::new("unshare");
    command.args(["--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc", "--"]);
    again(&mut command, FIRST)?;
    let status = command.status().context("failed to start `unshare`: install util-linux")?;
    Ok(status.success())
}

fn first(lifeline: bool) -> Result<bool> {
    if lifeline {
        std::thread::spawn(|| {
            while matches!(std::io::stdin().read(&mut [0; 256]), Ok(1..)) {}
            std::process::exit(1);
        });
    }
    // Journals, locks, names of namespaces and all files of the bench are under it, and end with the mount.
    must("mount", &["-t", "tmpfs", "tmpfs", "/run"])?;
    must("ip", &["link", "set", "lo", "up"])?;
    let mut command = Command::new("/proc/self/exe");
    command.args(std::env::args_os().skip(1)).env(ROLE, BENCH).stdin(Stdio::null());
    let bench = command.spawn().context("failed to start the bench")?;
    loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid == rustix::process::Pid::from_child(&bench) => {
                return Ok(status.exit_status() == Some(0));
            }
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error).context("failed to wait for the bench"),
        }
    }
}

/// Runs a program that must succeed, and returns its standard output.
pub fn must(program: &str, words: &[&str]) -> Result<String> {
    let shown = format!("{program} {}", words.join(" "));
    let output = Command::new(program)
        .args(words)
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("failed to start `{shown}`"))?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "`{shown}` failed: {}", errors.trim());
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// An empty folder for the bench.
pub fn folder(name: &str) -> Result<std::path::PathBuf> {
    let path = Path::new("/run").join(name);
    if path.exists() {
        std::fs::remove_dir_all(&path).with_context(|| format!("failed to remove {}", path.display()))?;
    }
    std::fs::create_dir_all(&path).with_context(|| format!("failed to make {}", path.display()))?;
    Ok(path)
}
