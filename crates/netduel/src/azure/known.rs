//! The beds that this user has created here and not deleted, by the parameters of their deployments. Azure alone knows whether they exist.
use std::fs::{self, DirEntry};

use netduel_model::resource_name::is_name;

use crate::exit::Failure;
use crate::program;

/// The file with the parameters of a deployment, in the folder of its bed.
pub const PARAMETERS: &str = "parameters.json";

/// Their names.
pub fn list() -> Result<Vec<String>, Failure> {
    // There is no folder before the first bed.
    let Ok(entries) = fs::read_dir(program::beds_folder()?) else { return Ok(Vec::new()) };
    let has_parameters = |entry: &DirEntry| entry.path().join(PARAMETERS).exists();
    let folders = entries.flatten().filter(has_parameters);
    let names = folders.filter_map(|folder| folder.file_name().into_string().ok());
    let mut names: Vec<String> = names.filter(|name| is_name(name)).collect();
    names.sort();
    Ok(names)
}

/// Removes the parameters of a deleted bed, which have the public key and the prefixes for ssh. Its template stays.
pub fn forget(bed: &str) {
    if let Ok(folder) = program::beds_folder() {
        // A bed that was created elsewhere has none here.
        drop(fs::remove_file(folder.join(bed).join(PARAMETERS)));
    }
}
