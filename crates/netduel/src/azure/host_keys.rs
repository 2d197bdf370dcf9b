//! The host keys of the VMs of a bed, which ssh keeps beside the other files of the bed.
use crate::exit::{Failure, Kind};
use crate::output_file;
use crate::ssh::known_hosts_of_bed;

/// Makes the folder in which ssh keeps them.
pub fn prepare(bed: &str) -> Result<(), Failure> {
    let file = known_hosts_of_bed(bed)?;
    let Some(folder) = file.parent() else { return Ok(()) };
    output_file::create_folder(folder).map_err(|error| {
        let text = format!("failed to create the folder {}: {error}", folder.display());
        Failure::caused(Kind::Store, text, error)
            .remedy("free space or correct the permissions, or set XDG_STATE_HOME to another folder")
    })
}

/// Removes them: the next bed of this name has others.
pub fn forget(bed: &str) {
    if let Ok(file) = known_hosts_of_bed(bed) {
        // There is none before the first run on the bed.
        drop(std::fs::remove_file(file));
    }
}
