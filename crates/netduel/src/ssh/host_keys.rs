//! Where ssh finds the host keys of a VM of a bed. It connects nothing.
use std::path::PathBuf;

use netduel_model::plan::SshHost;
use netduel_model::resource_name::is_name;

use crate::exit::Failure;
use crate::program;

/// The file with the host keys of a bed.
pub fn known_hosts_of_bed(bed: &str) -> Result<PathBuf, Failure> {
    Ok(program::beds_folder()?.join(bed).join("known_hosts"))
}

/// The file for a host; `None` for one of no bed, whose keys are in the user's own file.
pub fn file_of(ssh: &SshHost) -> Option<PathBuf> {
    // A bed from a run file must not name another folder.
    let bed = ssh.bed.as_deref().filter(|bed| is_name(bed))?;
    known_hosts_of_bed(bed).ok()
}
