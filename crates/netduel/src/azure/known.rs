//! The beds that this user has created here and not deleted, by the parameters of their deployments. Azure alone knows whether they exist: a bed that
//! was deleted by other means is forgotten by the next command to which Azure does not show it.
use std::fs::{self, DirEntry};

use netduel_azure::deployment::Subscription;
use netduel_azure::tags::Tags;
use netduel_azure::template;
use netduel_model::bed::Bed;
use netduel_model::resource_name::{SUBSCRIPTION_LEN_MAX, is_name, is_subscription};

use super::bed_file::read_bed;
use crate::cli::azure::BedArg;
use crate::exit::{Failure, Kind};
use crate::input_file;
use crate::output_file::{self, Readers};
use crate::program;

/// The file with the parameters of a deployment, in the folder of its bed.
pub const PARAMETERS: &str = "parameters.json";
/// Longest such file, bytes: it has a public key, prefixes for ssh and tags, 2 KiB as a rule.
const PARAMETERS_LEN_MAX: usize = 256 << 10;
/// The bed file of the last `up` that Azure has accepted, every default written out, without the keys of its user.
pub const BED_FILE: &str = "bed.toml";
/// The same while `up` waits for the answer of Azure.
pub const BED_DRAFT: &str = "bed.draft.toml";
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

/// A bed of [`list`] whose subscription is noted: what is known here of a bed that Azure has, or may have.
pub struct Noted {
    /// The tags of its last `up`.
    pub tags: Tags,
    /// The id of its subscription.
    pub subscription: String,
}

/// All of them. A bed whose files cannot be read is left out: no command needs them.
pub fn noted() -> Vec<Noted> {
    let (Ok(folder), Ok(beds)) = (program::beds_folder(), list()) else { return Vec::new() };
    let noted = |bed: String| {
        let folder = folder.join(&bed);
        let parameters = input_file::read_text(&folder.join(PARAMETERS), PARAMETERS_LEN_MAX).ok()?;
        let tags = template::tags_of_parameters(&parameters).filter(|tags| tags.bed == bed)?;
        let id = input_file::read_text(&folder.join(SUBSCRIPTION), SUBSCRIPTION_LEN_MAX).ok()?;
        is_subscription(&id).then_some(Noted { tags, subscription: id })
    };
    beds.into_iter().filter_map(noted).collect()
}

/// The bed of an argument without asking Azure: its file, or for a name that of the last `up` from here that Azure has accepted.
pub fn described(bed: &BedArg) -> Result<Bed, Failure> {
    let name = match bed {
        BedArg::File(path) => return read_bed(path),
        BedArg::Name(name) => name,
    };
    let folder = program::beds_folder()?.join(name);
    let file = folder.join(BED_FILE);
    // The draft is that of an `up` that waits for the answer, or was killed before it came.
    if file.exists() && !folder.join(BED_DRAFT).exists() {
        return read_bed(&file);
    }
    let text = format!(
        "failed to find the file of the bed {name}: no `netduel azure up` on this machine stored it, or Azure did not answer the last one"
    );
    Err(Failure::message(Kind::Usage, text).remedy("name the file in place of the bed: --bed BED.toml"))
}

/// Removes the parameters of a deleted bed, which have the public key and the prefixes for ssh, and its file. Its template stays.
pub fn forget(bed: &str) {
    if let Ok(folder) = program::beds_folder() {
        for file in [PARAMETERS, BED_FILE, BED_DRAFT, SUBSCRIPTION] {
            // A bed that was created elsewhere has none here.
            drop(fs::remove_file(folder.join(bed).join(file)));
        }
    }
}

/// Forgets the beds of a subscription that it does not have any more.
pub fn forget_gone(subscription: &Subscription, exists: impl Fn(&str) -> bool) {
    let (Ok(folder), Ok(beds)) = (program::beds_folder(), list()) else { return };
    for bed in beds.iter().filter(|bed| !exists(bed)) {
        let noted = input_file::read_text(&folder.join(bed).join(SUBSCRIPTION), SUBSCRIPTION_LEN_MAX);
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
