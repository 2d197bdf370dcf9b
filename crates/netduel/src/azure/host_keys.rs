//! The host keys of the VMs of a bed, which ssh keeps beside the other files of the bed.
use crate::exit::{Failure, Kind, unwritten};
use crate::output_file;
use crate::program;
use crate::ssh::known_hosts_of_bed;

/// Makes the folder in which ssh keeps them.
pub fn prepare(bed: &str) -> Result<(), Failure> {
    let file = known_hosts_of_bed(bed)?;
    let Some(folder) = file.parent() else { return Ok(()) };
    output_file::create_folder(folder).map_err(|error| {
        let doing = format!("create the folder {}", folder.display());
        unwritten(Kind::Store, doing, error, program::OTHER_STATE_FOLDER)
    })
}

/// Removes them: the next bed of this name has others.
pub fn forget(bed: &str) {
    if let Ok(file) = known_hosts_of_bed(bed) {
        // There is none before the first run on the bed.
        drop(std::fs::remove_file(file));
    }
}
