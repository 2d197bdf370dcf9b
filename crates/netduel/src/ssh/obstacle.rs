//! Why no agent can be started by ssh, and what to do. Nothing is tried here.
use std::io;
use std::iter::once;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Output};

use netduel_model::file_error;
use netduel_model::plan::SshHost;
use netduel_model::shell;

use super::binary::{Binary, shown};
use super::compression::CompressionFailed;
use super::host_keys;
use super::options;
use super::refusal::{self, Named};
use super::scripts;
use crate::console::bounded_lines;

const VERSION: &str = env!("CARGO_PKG_VERSION");
/// How a user chooses the folder of the program on a host.
const NAME_FOLDER: &str = "with --remote-folder DIR, or with `folder` of the host in the plan";

/// A reason, as a fragment after the host's name.
#[derive(Debug, thiserror::Error)]
pub enum Obstacle {
    /// The user ended the program.
    #[error("stopped by the user")]
    Interrupted,
    /// Another host failed first.
    #[error("stopped because another host failed")]
    Abandoned,
    /// No handler of signals.
    #[error("failed to wait for signals: {0}")]
    Signals(#[source] io::Error),
    /// No random bytes.
    #[error("failed to draw random bytes: {0}")]
    Random(#[source] io::Error),
    /// No folder for the socket of a connection.
    #[error("failed to make a folder for the sockets of ssh{}; set TMPDIR to a short path that you can write", place(.0.as_ref()))]
    Sockets(Option<(PathBuf, io::Error)>),
    /// The program ssh does not start.
    #[error("failed to start ssh: {0}; install the OpenSSH client")]
    NoSsh(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// A connection was refused, or ended.
    #[error("{0}")]
    Connection(String),
    /// A loop of jump hosts.
    #[error(
        "the jump hosts of {host} are more than {most}, or a loop (at {next}); correct `ProxyJump` in the ssh configuration"
    )]
    Jumps {
        /// Destination.
        host: String,
        /// Most jump hosts.
        most: usize,
        /// The jump host that is one too many.
        next: String,
    },
    /// No answer.
    #[error("no answer from {} within {seconds} s{}; try `{}`", .ssh.host, after(.last_words), by_hand(.ssh))]
    Silent {
        /// How it is reached.
        ssh: Box<SshHost>,
        /// The timeout.
        seconds: u64,
        /// What ssh printed.
        last_words: String,
    },
    /// cloud-init does not end.
    #[error(
        "cloud-init did not end within {seconds} s; `cloud-init status --long` there says what it waits for"
    )]
    Unready {
        /// The time.
        seconds: u64,
    },
    /// Output without end.
    #[error("the shell of {host} prints without end before it runs a command; see its start files there")]
    Chatty {
        /// Destination.
        host: String,
    },
    /// Another answer than that of the script.
    #[error("the shell of the host gave an unexpected answer: {}", excerpt(.answer))]
    Unexpected {
        /// What it printed.
        answer: String,
    },
    /// Another user can replace the program on the host.
    #[error("another user of the host can replace netduel there, by the owner or mode of {}; {}", excerpt(.path), own_folder())]
    Exposed {
        /// The folder or file.
        path: String,
    },
    /// A program file of this machine cannot be read.
    #[error("failed to read {}: {source}; {}", shown(.path), unread_remedy(.source))]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The kernel's error.
        source: io::Error,
    },
    /// A file that is no program.
    #[error("{} is no Linux program; name a netduel with --remote-program", shown(.path))]
    NoProgram {
        /// The file.
        path: PathBuf,
    },
    /// Not Linux.
    #[error("{host} runs {kernel}, and netduel runs on Linux only")]
    Kernel {
        /// Destination.
        host: String,
        /// `uname -s` there.
        kernel: String,
    },
    /// No program for its machine.
    #[error(
        "{host} is of machine {machine}, and this netduel is built for {own}; {} (`cargo xtask dist` makes programs for x86_64 and \
         aarch64)", other_program(.machine, .place.as_deref())
    )]
    Machine {
        /// Destination.
        host: String,
        /// `uname -m` there.
        machine: String,
        /// The machine of this program.
        own: &'static str,
        /// A place where such a program is looked for.
        place: Option<PathBuf>,
    },
    /// A program of the name of another machine.
    #[error("{} is not for {machine}; replace it with a netduel {} for {machine}, or remove it", .path.display(), VERSION)]
    Misplaced {
        /// The file.
        path: PathBuf,
        /// The machine of its name.
        machine: String,
    },
    /// The program cannot be compressed.
    #[error(transparent)]
    Compression(#[from] CompressionFailed),
    /// The program cannot be copied.
    #[error("{0}")]
    Copy(String),
    /// The program does not start there.
    #[error("{0}")]
    Start(String),
}

fn place(failure: Option<&(PathBuf, io::Error)>) -> String {
    failure.map(|(place, error)| format!(" in {}: {error}", place.display())).unwrap_or_default()
}

fn other_program(machine: &str, place: Option<&Path>) -> String {
    let flag = "with --remote-program FILE";
    match place {
        Some(place) => {
            format!("copy a netduel {VERSION} for {machine} to {}, or name its file {flag}", place.display())
        }
        None => format!("name the file of a netduel {VERSION} for {machine} {flag}"),
    }
}

fn unread_remedy(error: &io::Error) -> String {
    file_error::remedy(file_error::to_read(error), "name another netduel with --remote-program")
}

/// What to do about a folder that another user can change.
fn own_folder() -> String {
    format!("correct them, or name a folder that only its user can change, {NAME_FOLDER}")
}

fn after(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!("; ssh printed: {text}") }
}

/// The command that removes the old key of a host.
fn removal(ssh: &SshHost, refused: Option<&str>, printed: &str) -> String {
    let name = || refusal::key_name(options::bare_host(ssh), ssh.port);
    let mut words = vec!["ssh-keygen".to_owned(), "-R".to_owned(), refused.map_or_else(name, str::to_owned)];
    let file = refusal::file_of_key(printed).map(str::to_owned);
    let file = file.or_else(|| host_keys::file_of(ssh).map(|file| shown(&file)));
    words.extend(file.into_iter().flat_map(|file| ["-f".to_owned(), file]));
    shell::line(words)
}

/// The command with which a user makes the same connection.
fn by_hand(ssh: &SshHost) -> String {
    let user = ssh.user.as_ref().map(|user| format!(" -l {user}")).unwrap_or_default();
    let port = ssh.port.map(|port| format!(" -p {port}")).unwrap_or_default();
    format!("ssh{user}{port} {}", ssh.host)
}

/// What to do about a host key that is not known.
fn unknown_key(ssh: &SshHost, way: &[Named], refused: Option<&str>) -> String {
    let is_refused = |jump: &Named| refused.is_some_and(|name| jump.key.eq_ignore_ascii_case(name));
    if let Some(file) = host_keys::file_of(ssh).filter(|_| !way.iter().skip(1).any(is_refused)) {
        return format!(
            "a resumed run needs the host keys of its VMs in {}: copy this file from the machine on which the run began, or begin a new run \
             when the bed was deleted",
            shown(&file)
        );
    }
    let key = refused.map_or_else(|| "its host key".to_owned(), |host| format!("the host key of {host}"));
    let named = refused.and_then(|name| way.iter().find(|host| host.key.eq_ignore_ascii_case(name)));
    let Some(strict) = named.filter(|host| host.never_asks) else {
        return format!("run `{}` once and compare and accept {key}", by_hand(ssh));
    };
    let port = strict.port.filter(|port| *port != refusal::DEFAULT_PORT);
    let port = port.into_iter().flat_map(|port| ["-p".to_owned(), port.to_string()]);
    let words = once("ssh-keyscan".to_owned()).chain(port).chain([strict.hostname.clone()]);
    let scan = shell::line(words);
    format!("add {key} to known_hosts, for example from `{scan}`, after you compared it")
}

/// What to do about a login that was refused. A shared connection helps for a jump host only: that to the destination is netduel's own.
fn refused_login(ssh: &SshHost, way: &[Named], printed: &str) -> String {
    let login = refusal::login(printed);
    let key = format!(
        "log in with a key that needs no password here: add it to the ssh agent (`ssh-add`) and to {} (`ssh-copy-id`)",
        login.map_or(ssh.host.as_str(), |login| login.name)
    );
    let asking = login.filter(|login| login.has_questions);
    let jump = asking.and_then(|login| way.iter().skip(1).find(|host| host.login == login.name));
    match jump {
        Some(jump) => format!(
            "open a shared connection to it first (`ControlMaster`, `ControlPath` in ~/.ssh/config, then `{}`), or {key}",
            by_hand(&jump.ssh)
        ),
        None => key,
    }
}

/// The end of a connection. What ssh printed is passed on in full. `way`: the host and the jump hosts before it.
pub fn of_connection(
    ssh: &SshHost,
    way: &[Named],
    is_first: bool,
    status: Option<ExitStatus>,
    printed: &str,
) -> Obstacle {
    let (host, by_hand) = (&ssh.host, by_hand(ssh));
    let refused = refusal::host_of_key(printed);
    let remedies = [
        (
            "REMOTE HOST IDENTIFICATION HAS CHANGED",
            format!(
                "make sure that {} was reinstalled, then remove its old key with `{}`",
                refused.unwrap_or(host),
                removal(ssh, refused, printed)
            ),
        ),
        ("Host key verification failed", unknown_key(ssh, way, refused)),
        ("Permission denied", refused_login(ssh, way, printed)),
        ("Could not resolve hostname", "correct `host`, or define the name in ~/.ssh/config".to_owned()),
    ];
    let remedy = remedies.into_iter().find(|(text, _)| printed.contains(text)).map(|(_, remedy)| remedy);
    let remedy = remedy.unwrap_or_else(|| format!("try `{by_hand}`"));
    let what = if is_first { "failed to connect by ssh to" } else { "lost the ssh connection to" };
    let how = status.map(|status| format!(" ({status})")).unwrap_or_default();
    Obstacle::Connection(format!("{what} {host}{how}{}; {remedy}", after(printed)))
}

/// Most lines of an excerpt.
const EXCERPT_LINES_MAX: usize = 24;

/// What a host printed, as a message shows it: the first lines, and of each the ends. A host may print any amount.
pub fn excerpt(printed: &str) -> String {
    let mut lines = printed.lines();
    let first: Vec<&str> = lines.by_ref().take(EXCERPT_LINES_MAX).collect();
    let first = bounded_lines(&first.join("\n"));
    if lines.next().is_some() { format!("{first}\n...") } else { first }
}

/// A copy that failed.
pub fn of_copy(ssh: &SshHost, file: &str, output: &Output) -> Obstacle {
    let other = format!("name a folder that its user can write, with space for the program, {NAME_FOLDER}");
    let again = "run again; if it happens again, check the disk of that folder";
    let gzip = "run again; if it happens again, repair gzip on the host, or take it out of the PATH of its ssh sessions: a host without gzip \
                gets the program uncompressed";
    let own = own_folder();
    let (what, remedy) = match output.status.code() {
        Some(scripts::NO_FOLDER) => ("the folder cannot be made", other.as_str()),
        Some(scripts::EXPOSED) => ("another user can replace it, by owner or mode", own.as_str()),
        Some(scripts::NOT_WRITTEN) => ("the file cannot be written", other.as_str()),
        Some(scripts::DAMAGED) => ("it arrived damaged", again),
        Some(scripts::NOT_DECOMPRESSED) => ("gzip there did not decompress it", gzip),
        Some(scripts::NOT_RENAMED) => ("the file cannot be replaced", other.as_str()),
        _ => ("the ssh session ended", "run again"),
    };
    let printed = excerpt(String::from_utf8_lossy(&output.stderr).trim());
    let printed = if printed.is_empty() { String::new() } else { format!(": {printed}") };
    Obstacle::Copy(format!("failed to copy netduel to {}:{file}: {what}{printed}; {remedy}", ssh.host))
}

/// A program of another version, which would not understand this one.
pub fn of_version(ssh: &SshHost, binary: &Binary, printed: &str) -> Obstacle {
    let (path, printed) = (shown(&binary.path), excerpt(printed));
    Obstacle::Start(format!(
        "{path} was copied to {}, and prints {printed:?} as its version; replace it with a netduel {VERSION}, the version of this program",
        ssh.host
    ))
}

/// A program that does not start on the host.
pub fn of_start(ssh: &SshHost, binary: &Binary, file: &str, status: Option<i32>, printed: &str) -> Obstacle {
    let path = shown(&binary.path);
    let other =
        "name a static netduel for its processor with --remote-program FILE (`cargo xtask dist` makes one)";
    let is_dynamic =
        status == Some(127) || printed.contains("shared libraries") || printed.contains("version `");
    let remedy = match &binary.loader {
        _ if ssh.sudo && printed.contains("sudo:") => {
            let user = ssh.user.as_deref().unwrap_or("the user");
            format!(
                "`sudo = true` needs sudo without a password: add `NOPASSWD: {file}` for {user} to the sudoers of the host, log in as \
                 root, or leave out `sudo`"
            )
        }
        Some(loader) if is_dynamic => format!(
            "{path} was copied, which is not static: it needs the loader {loader} and libraries that the host lacks; {other}"
        ),
        _ if status == Some(126) => {
            format!(
                "programs may not run from that folder (a mount with `noexec`?); name another {NAME_FOLDER}"
            )
        }
        _ => format!("{path} was copied; {other}"),
    };
    let status = status.map_or_else(|| "no status".to_owned(), |status| format!("exit code {status}"));
    let printed = excerpt(printed);
    Obstacle::Start(format!("{file} does not start on {} ({status}): {printed}; {remedy}", ssh.host))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_to_try_has_user_and_port_of_the_plan() {
        let plain = SshHost::of("vm1");
        let full = SshHost { user: Some("me".to_owned()), port: Some(2222), ..plain.clone() };
        for (ssh, command) in [(plain, "`ssh vm1`"), (full, "`ssh -l me -p 2222 vm1`")] {
            let refused =
                of_connection(&ssh, &[], true, None, "kex_exchange_identification: read: Connection reset");
            assert!(refused.to_string().ends_with(&format!("; try {command}")), "{refused}");
            let unknown = of_connection(&ssh, &[], true, None, "Host key verification failed.").to_string();
            assert!(unknown.contains(&format!("run {command} once")), "{unknown}");
            let silent = Obstacle::Silent { ssh: Box::new(ssh), seconds: 60, last_words: String::new() };
            assert_eq!(silent.to_string(), format!("no answer from vm1 within 60 s; try {command}"));
        }
    }

    #[test]
    fn remedy_names_the_jump_host_whose_key_or_login_was_refused() {
        let remedy = |printed: &str| {
            let text = of_connection(&SshHost::of("vm1"), &[], true, None, printed).to_string();
            let (_, remedy) = text.rsplit_once("; ").expect("a remedy");
            remedy.to_owned()
        };
        let closed = "Connection closed by UNKNOWN port 65535";
        let strict = "and you have requested strict checking.\nHost key verification failed.";
        assert_eq!(
            remedy(&format!("No ED25519 host key is known for jump {strict}\n{closed}")),
            "run `ssh vm1` once and compare and accept the host key of jump"
        );
        assert_eq!(
            remedy(&format!(
                "@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @\nOffending ECDSA key in /srv/a b/known_hosts:12\n\
                 Host key for [10.0.0.4]:2222 has changed {strict}\n{closed}"
            )),
            "make sure that [10.0.0.4]:2222 was reinstalled, then remove its old key with \
             `ssh-keygen -R '[10.0.0.4]:2222' -f '/srv/a b/known_hosts'`"
        );
        let denied = remedy(&format!("me@10.0.0.4: Permission denied (publickey).\n{closed}"));
        assert!(denied.ends_with("and to me@10.0.0.4 (`ssh-copy-id`)"), "{denied}");
    }

    #[test]
    fn output_of_a_host_without_end_is_shown_in_part() {
        for printed in ["x".repeat(200_000), "line\n".repeat(50_000), "\u{1b}[2J\n".repeat(50_000)] {
            let texts = [
                Obstacle::Unexpected { answer: printed.clone() }.to_string(),
                excerpt(&printed),
                excerpt(&format!("the reason\n{printed}")),
            ];
            assert!(texts.iter().all(|text| text.len() < 2_000), "{:?}", texts.map(|text| text.len()));
        }
        assert_eq!(excerpt("one\ntwo"), "one\ntwo");
        assert!(excerpt(&"line\n".repeat(25)).ends_with("line\n..."));
    }

    /// vm1 and a jump host before it.
    fn way() -> [Named; 2] {
        let named = |host: &str, address: &str, port: u16| Named {
            ssh: SshHost::of(host),
            login: format!("me@{address}"),
            key: refusal::key_name(address, Some(port)),
            hostname: address.to_owned(),
            port: Some(port),
            never_asks: true,
        };
        [named("vm1", "10.0.0.4", 22), named("jump", "10.0.0.5", 2222)]
    }

    #[test]
    fn old_key_is_removed_under_its_name_in_known_hosts() {
        let of = |host: &str, port: Option<u16>| SshHost { port, ..SshHost::of(host) };
        let cases = [
            (of("vm1", None), "vm1"),
            (of("me@vm1", Some(22)), "vm1"),
            (of("me@vm1", Some(2222)), "'[vm1]:2222'"),
        ];
        for (ssh, name) in cases {
            let changed = of_connection(&ssh, &[], true, None, "REMOTE HOST IDENTIFICATION HAS CHANGED!");
            assert!(changed.to_string().ends_with(&format!("with `ssh-keygen -R {name}`")), "{changed}");
        }
    }

    #[test]
    fn key_that_ssh_never_offers_to_accept_is_added_by_hand() {
        let remedy = |name: &str, way: &[Named]| {
            let printed = format!(
                "No ED25519 host key is known for {name} and you have requested strict checking.\nHost key verification failed."
            );
            of_connection(&SshHost::of("vm1"), way, true, None, &printed).to_string()
        };
        let added = |name: &str, scan: &str| {
            format!(
                "; add the host key of {name} to known_hosts, for example from `{scan}`, after you compared it"
            )
        };
        let own = remedy("10.0.0.4", &way());
        assert!(own.ends_with(&added("10.0.0.4", "ssh-keyscan 10.0.0.4")), "{own}");
        let jump = remedy("[10.0.0.5]:2222", &way());
        assert!(jump.ends_with(&added("[10.0.0.5]:2222", "ssh-keyscan -p 2222 10.0.0.5")), "{jump}");
        let asks = way().map(|host| Named { never_asks: false, ..host });
        let accepted = remedy("10.0.0.4", &asks);
        let once = "run `ssh vm1` once and compare and accept the host key of 10.0.0.4";
        assert!(accepted.ends_with(once), "{accepted}");
    }

    #[test]
    fn jump_host_with_questions_is_reached_by_a_shared_connection() {
        let refused = |login: &str, methods: &str| {
            let printed = format!("{login}: Permission denied ({methods}).\nConnection closed.");
            of_connection(&SshHost::of("vm1"), &way(), true, None, &printed).to_string()
        };
        let shared = "open a shared connection to it first (`ControlMaster`, `ControlPath` in ~/.ssh/config, then `ssh jump`)";
        let asking = refused("me@10.0.0.5", "publickey,keyboard-interactive");
        assert!(asking.contains(&format!("; {shared}, or log in with a key")), "{asking}");
        assert!(!refused("me@10.0.0.5", "publickey,password").contains("shared connection"));
        // netduel's own connection to the destination uses no other.
        assert!(!refused("me@10.0.0.4", "publickey,keyboard-interactive").contains("shared connection"));
    }
}
