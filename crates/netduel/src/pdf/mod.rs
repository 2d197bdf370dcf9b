//! PDF of a report: an installed browser of the Chromium family prints the page. Nothing is laid out here.
//!
//! The browser runs without a network of its own doing: the page loads nothing, and every name is unknown to it. It has a process group and a
//! folder of its own; both are gone when it ends, when it takes too long and after Ctrl-C.
mod browser;
mod folder;

use std::fmt::Write as _;
use std::io::{self, Read as _};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread::Builder;
use std::time::Duration;

use netduel_sys::process::{ends_within, spawn_bound};
use rustix::process::{Pid, PidfdFlags, Signal, geteuid, kill_process_group, pidfd_open};

use crate::console::tell;
use crate::exit::{Failure, Kind, unwritten};
use crate::signal;

pub use browser::Browser;
use folder::PrivateFolder;

/// Longest time for a report; the largest took a tenth of it on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);
/// Longest time in which a browser states its version.
const PATIENCE_VERSION: Duration = Duration::from_secs(20);
/// Longest wait for the last messages of a browser that has ended.
const PATIENCE_OUTPUT: Duration = Duration::from_secs(2);
/// Most of a browser's messages that is read, bytes.
const MESSAGES_MAX: u64 = 64 << 10;
/// The first version with page numbers and running heads (margin boxes of CSS).
const VERSION_OF_MARGINS: u32 = 131;

/// Options of every start: no first-run pages, no background traffic, no state outside of the folder.
const OPTIONS: [&str; 13] = [
    "--headless",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--no-default-browser-check",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-extensions",
    "--disable-breakpad",
    "--disable-dev-shm-usage",
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--hide-scrollbars",
];

/// Prints a page; the bytes of the PDF.
pub fn print(page: &str, browser: &Browser) -> Result<Vec<u8>, Failure> {
    let stop = signal::interrupted().map_err(|error| signal::unheard("Ctrl-C", error))?;
    let folder = PrivateFolder::new().map_err(|error| no_room("create a folder for the browser", error))?;
    let (source, target) = (folder.path().join("report.html"), folder.path().join("report.pdf"));
    std::fs::write(&source, page).map_err(|error| no_room("write the page for the browser", error))?;
    let version = version(browser, folder.path(), &stop)?;
    announce(browser, &version);
    let mut command = start(browser, folder.path());
    command
        .args(["--no-pdf-header-footer", "--generate-pdf-document-outline", "--window-size=1280,1600"])
        .arg(format!("--print-to-pdf={}", target.display()))
        .arg(url(&source));
    let messages = finished(&mut command, browser, PATIENCE, &stop)?;
    let pdf = std::fs::read(&target).ok().filter(|pdf| pdf.starts_with(b"%PDF-"));
    pdf.ok_or_else(|| no_pdf(browser, &messages.stderr))
}

/// The URL of a file by its absolute path. `#`, `?` and `%` have a meaning there, so all but the unreserved characters of RFC 3986 are encoded.
fn url(path: &Path) -> String {
    let mut url = "file://".to_owned();
    for byte in path.as_os_str().as_bytes() {
        if byte.is_ascii_alphanumeric() || b"/-._~".contains(byte) {
            url.push(char::from(*byte));
        } else {
            let _ = write!(url, "%{byte:02X}");
        }
    }
    url
}

/// Which browser prints, and how it is confined.
fn announce(browser: &Browser, version: &str) {
    let confined = if geteuid().is_root() {
        " without its sandbox, which root does not have; the page has netduel's own scripts only and loads nothing"
    } else {
        ""
    };
    tell(&format!("printing with {version} ({}){confined}", browser.path().display()));
    let major = browser::major(version);
    if major.is_some_and(|major| major < VERSION_OF_MARGINS) {
        tell(&format!(
            "warning: page numbers and running heads need version {VERSION_OF_MARGINS} of the browser"
        ));
    }
}

/// A command that starts the browser with its state in the folder.
fn start(browser: &Browser, folder: &Path) -> Command {
    let mut command = Command::new(browser.path());
    command.args(OPTIONS).arg(format!("--user-data-dir={}", folder.join("profile").display()));
    if geteuid().is_root() {
        // Chromium refuses to start as root otherwise.
        command.arg("--no-sandbox");
    }
    // Crash reports and caches of libraries go to the home folder otherwise.
    command.env("HOME", folder).env("XDG_CONFIG_HOME", folder).env("XDG_CACHE_HOME", folder);
    command
}

fn version(browser: &Browser, folder: &Path, stop: &Arc<AtomicBool>) -> Result<String, Failure> {
    let mut command = Command::new(browser.path());
    command.arg("--version").env("HOME", folder);
    let output = finished(&mut command, browser, PATIENCE_VERSION, stop)?;
    let version = output.stdout.lines().next().unwrap_or_default().trim().to_owned();
    if version.is_empty() { Err(no_pdf(browser, &output.stderr)) } else { Ok(version) }
}

/// What a browser wrote.
struct Messages {
    stdout: String,
    stderr: String,
}

/// Runs a command to its end; its process group is gone afterwards, however it ended.
fn finished(
    command: &mut Command,
    browser: &Browser,
    patience: Duration,
    stop: &Arc<AtomicBool>,
) -> Result<Messages, Failure> {
    let start = |error: io::Error| {
        let text = format!("failed to start the browser {}: {error}", browser.path().display());
        Failure::caused(Kind::Environment, text, error).remedy("name another browser with --browser")
    };
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    let mut child = spawn_bound(command).map_err(start)?;
    let (stdout, stderr) = (child.stdout.take().map(read), child.stderr.take().map(read));
    let pidfd = pidfd_open(Pid::from_child(&child), PidfdFlags::empty());
    let ended = pidfd.map_err(io::Error::from).and_then(|pidfd| ends_within(pidfd.as_fd(), patience, stop));
    end(&mut child);
    match ended {
        Ok(true) => {}
        Ok(false) if stop.load(Ordering::Relaxed) => {
            return Err(Failure::message(
                Kind::Interrupted,
                "stopped by the user before the PDF was printed",
            ));
        }
        Ok(false) => {
            let text = format!(
                "the browser {} did not end within {} s",
                browser.path().display(),
                patience.as_secs()
            );
            return Err(Failure::message(Kind::Environment, text)
                .remedy("repeat it on an idle machine, or print the page of `--format html` in a browser"));
        }
        Err(error) => return Err(start(error)),
    }
    // A process that left the group may hold the pipe open.
    let text = |output: Option<io::Result<Receiver<String>>>| {
        output.and_then(|output| output.ok()?.recv_timeout(PATIENCE_OUTPUT).ok()).unwrap_or_default()
    };
    Ok(Messages { stdout: text(stdout), stderr: text(stderr) })
}

/// Ends the browser and everything that it started.
fn end(child: &mut Child) {
    // On error the group has ended.
    let _ = kill_process_group(Pid::from_child(child), Signal::KILL);
    drop(child.wait());
}

/// Reads a pipe to its end: a browser that writes much would wait otherwise. What is beyond the limit is read and dropped.
fn read(mut pipe: impl io::Read + Send + 'static) -> io::Result<Receiver<String>> {
    let (done, receiver) = channel();
    Builder::new().name("browser-output".to_owned()).spawn(move || {
        let mut bytes = Vec::new();
        drop(pipe.by_ref().take(MESSAGES_MAX).read_to_end(&mut bytes));
        drop(io::copy(&mut pipe, &mut io::sink()));
        // Without a receiver the browser was given up.
        drop(done.send(String::from_utf8_lossy(&bytes).into_owned()));
    })?;
    Ok(receiver)
}

/// The folder for temporary files cannot have what the browser reads.
fn no_room(doing: &str, error: io::Error) -> Failure {
    unwritten(Kind::Environment, doing, error, "set TMPDIR to another folder")
}

/// The browser ended without a PDF; its messages say why.
fn no_pdf(browser: &Browser, messages: &str) -> Failure {
    let name = browser.path().display();
    if messages.contains("sandbox") && !geteuid().is_root() {
        let text = format!("the browser {name} cannot start its sandbox");
        return Failure::message(Kind::Environment, text).remedy(
            "allow user namespaces (sysctl kernel.unprivileged_userns_clone, kernel.apparmor_restrict_unprivileged_userns), or print the page of \
             `--format html` in a browser",
        );
    }
    let last = messages.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("without a message");
    Failure::message(Kind::Environment, format!("the browser {name} ended without a PDF: {}", last.trim()))
        .remedy("name another browser with --browser, or print the page of `--format html` in a browser")
}
