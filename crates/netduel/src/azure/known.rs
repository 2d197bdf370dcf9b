//! The beds that this user has created here and not deleted, by the parameters of their deployments. Azure alone knows whether they exist: a bed that
//! was deleted by other means is forgotten by the next command to which Azure does not show it.
use std::fs::{self, DirEntry};

use netduel_azure::deployment::Subscription;
use netduel_model::resource_name::is_name;

use crate::exit::Failure;
use crate::output_file::{self, Readers};
use crate::program;

/// The file with the parameters of a deployment, in the folder of its bed.
pub const PARAMETERS: &str = "parameters.json";
/// The file with the id of the subscription in which Azure has, or may have, the bed. There is none while `up` asks for it: no other command
/// takes it for a deleted one then.
const SUBSCRIPTION: &str = "subscription";

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
        for file in [PARAMETERS, SUBSCRIPTION] {
            // A bed that was created elsewhere has none here.
            drop(fs::remove_file(folder.join(bed).join(file)));
        }
    }
}

/// Forgets the beds of a subscription that it does not have any more.
pub fn forget_gone(subscription: &Subscription, exists: impl Fn(&str) -> bool) {
    let (Ok(folder), Ok(beds)) = (program::beds_folder(), list()) else { return };
    for bed in beds.iter().filter(|bed| !exists(bed)) {
        let noted = fs::read_to_string(folder.join(bed).join(SUBSCRIPTION));
        if noted.is_ok_and(|id| id == subscription.id) {
            forget(bed);
        }
    }
}

/// Notes the subscription in which Azure has, or may have, a bed. `None` removes the note, while `up` creates the bed: a bed without one is
/// known until `down`.
pub fn note(bed: &str, subscription: Option<&Subscription>) {
    let Ok(folder) = program::beds_folder() else { return };
    let file = folder.join(bed).join(SUBSCRIPTION);
    match subscription {
        Some(subscription) => drop(output_file::replace(&file, subscription.id.as_bytes(), Readers::Owner)),
        None => drop(fs::remove_file(file)),
    }
}
