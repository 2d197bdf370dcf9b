//! Names of labs and of the lock of a host in the abstract namespace (unix(7)), which any user may hold: labs must work beside them.
use std::os::fd::OwnedFd;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, listen, socket_with};
use rustix::process::{Uid, geteuid};
use rustix::thread::set_thread_res_uid;

use crate::netduel;
use crate::random::Choices;

/// `nobody`, a user without any right.
const STRANGER: u32 = 65534;
/// The lab.
const LAB: &str = "attack";
/// The name that a host's lock had before it became a file.
const LOCK: &str = "netduel-host-lock";
/// Descriptors of this process beside the names.
const OTHER_DESCRIPTORS: u64 = 256;

/// Starts, uses and removes a lab while another user holds the names.
pub fn attack(folder: &Path, count: u64, mut random: Choices) -> Result<&'static str> {
    netduel_sys::descriptor_limit::raise(count + OTHER_DESCRIPTORS)
        .context("failed to raise the limit of descriptors")?;
    let prefix = format!("netduel-lab-{}-", geteuid().as_raw());
    let of_keeper = |number: u64| format!("{prefix}{number:016x}-{LAB}");
    let mut names = vec![LOCK.to_owned(), format!("{prefix}{LAB}"), of_keeper(0), of_keeper(u64::MAX)];
    let known = names.len() as u64;
    names.extend((known..count).map(|_| of_keeper(random.below(u64::MAX))));
    random.shuffle(&mut names);
    let strangers = held(&names).context("failed to hold the names as another user")?;
    let must = |words: &[&str]| -> Result<String> {
        let ended = netduel(folder, words)?;
        ensure!(ended.code == 0, "`netduel {}` ended with {}: {}", words.join(" "), ended.code, ended.stderr);
        Ok(ended.stdout)
    };
    must(&["lab", "up", LAB, "--rules", "0"])?;
    let status = must(&["lab", "status", "--json"])?;
    let status: serde_json::Value = serde_json::from_str(&status).context("failed to read `lab status`")?;
    let labs = status["labs"].as_array().map(Vec::len);
    must(&["lab", "path", "--lab", LAB, "accelerated"])?;
    must(&["lab", "exec", "--lab", LAB, "a", "--", "true"])?;
    must(&["lab", "down", "--all"])?;
    ensure!(labs == Some(1), "{labs:?} labs are listed");
    drop(strangers);
    Ok("ignored")
}

/// Listening sockets with these names, of another user: the kernel records that of the calling thread.
fn held(names: &[String]) -> Result<Vec<OwnedFd>> {
    let stranger = Uid::from_raw(STRANGER);
    set_thread_res_uid(stranger, stranger, Uid::ROOT)?;
    let held = names.iter().map(|name| -> Result<OwnedFd> {
        let socket = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
        bind(&socket, &SocketAddrUnix::new_abstract_name(name.as_bytes())?)?;
        listen(&socket, 1)?;
        Ok(socket)
    });
    let held = held.collect();
    set_thread_res_uid(Uid::ROOT, Uid::ROOT, Uid::ROOT)?;
    held
}
