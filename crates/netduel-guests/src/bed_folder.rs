//! The temporary folder of a bed: key, configuration and connections of ssh. It is removed with the bed; the next bed removes that of a killed
//! one, whose lock is free.
use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::error::{Error, Result, file};
use crate::prepared::Prepared;
use crate::program::output_of;

const LOCK: &str = "lock";
const KEY: &str = "key";
const SSH_CONFIG: &str = "ssh_config";
/// Commands in a guest share a connection, because making one takes an emulated processor some 0.2 s. The first command makes it, and it ends with
/// the bed.
const SHARED: [&str; 2] = ["ControlMaster=auto", "ControlPersist=yes"];

/// Distinguishes the beds of one process.
static NEXT: AtomicU32 = AtomicU32::new(1);

/// A locked folder.
#[derive(Debug)]
pub struct BedFolder {
    path: PathBuf,
    /// Locked while the bed exists. The kernel unlocks it when the process ends in any way; no child inherits it.
    _lock: File,
}

impl BedFolder {
    /// Removes the folders of beds that ended without removing theirs, and makes a new one.
    pub fn make(prepared: &Prepared) -> Result<Self> {
        let beds = prepared.folder().join("beds");
        fs::create_dir_all(&beds).map_err(file("make the folder", &beds))?;
        // A folder without a locked lock is an abandoned one only while no other process is between making and locking.
        let path = beds.join(LOCK);
        let making = File::create(&path).map_err(file("open", &path))?;
        making.lock().map_err(file("lock", &path))?;
        remove_abandoned(&beds)?;
        let path = beds.join(format!("{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed)));
        fs::create_dir(&path).map_err(file("make the folder", &path))?;
        let lock_path = path.join(LOCK);
        let lock = File::create(&lock_path).map_err(file("open", &lock_path))?;
        lock.lock().map_err(file("lock", &lock_path))?;
        Ok(Self { path, _lock: lock })
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Makes a key for ssh; returns its public part in base64.
    pub fn make_key(&self) -> Result<String> {
        let path = self.path.join(KEY);
        let mut command = Command::new("ssh-keygen");
        command.args(["-q", "-t", "ed25519", "-N", "", "-C", "netduel", "-f"]).arg(&path);
        output_of(&mut command, "make a key for ssh into guests")?;
        let public = path.with_extension("pub");
        let text = fs::read_to_string(&public).map_err(file("read", &public))?;
        text.split_whitespace().nth(1).map(str::to_owned).ok_or_else(|| Error::Contents {
            path: public,
            reason: format!("ssh-keygen wrote {text:?}, which is no public key"),
        })
    }

    /// The configuration for `ssh -F`, with a host for each guest.
    pub fn ssh_config(&self) -> PathBuf {
        self.path.join(SSH_CONFIG)
    }

    /// The options of an ssh that runs in the folder. Those of the shared connection are not in the configuration, which other programs read, too.
    pub fn ssh_options(&self) -> Vec<String> {
        let configuration = ["-F".to_owned(), self.ssh_config().display().to_string()];
        let shared = SHARED.iter().flat_map(|setting| ["-o".to_owned(), (*setting).to_owned()]);
        configuration.into_iter().chain(shared).collect()
    }

    /// Writes the configuration, with name and port of each guest.
    pub fn write_ssh_config(&self, guests: &[(&str, u16)]) -> Result<()> {
        let key = self.path.join(KEY);
        let hosts = guests.iter().map(|(name, port)| format!("Host {name}\n  Port {port}\n"));
        let text = hosts.collect::<String>()
            + &format!(
                "Host *\n  HostName 127.0.0.1\n  User root\n  IdentityFile \"{}\"\n  IdentitiesOnly yes\n  BatchMode yes\n  \
                 StrictHostKeyChecking no\n  UserKnownHostsFile /dev/null\n  LogLevel ERROR\n",
                key.display()
            );
        let path = self.ssh_config();
        fs::write(&path, text).map_err(file("write", &path))
    }
}

impl Drop for BedFolder {
    fn drop(&mut self) {
        // The next bed removes what remains.
        let _ = fs::remove_dir_all(&self.path);
    }
}

fn remove_abandoned(beds: &Path) -> Result<()> {
    for entry in fs::read_dir(beds).map_err(file("list", beds))? {
        let path = entry.map_err(file("list", beds))?.path();
        if !path.is_dir() {
            continue;
        }
        let is_held = match File::open(path.join(LOCK)) {
            Ok(lock) => matches!(lock.try_lock(), Err(TryLockError::WouldBlock)),
            // Its process ended between making the folder and its lock, or the bed removes it just now.
            Err(_) => false,
        };
        if !is_held {
            match fs::remove_dir_all(&path) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(file("remove", &path)(error));
                }
                _ => {}
            }
        }
    }
    Ok(())
}
