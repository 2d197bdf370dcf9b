//! Google Compute Engine's metadata server (<https://cloud.google.com/compute/docs/metadata/predefined-metadata-keys>). Each key is
//! requested separately: the whole tree contains scripts and keys of the owner, which must not be stored.
use super::answer::Answer;
use super::http::Client;

const HEADER: &str = "Metadata-Flavor: Google";
const INSTANCE: &str = "/computeMetadata/v1/instance/";

pub(super) fn query(client: &mut Client) -> Answer {
    let mut failure = None;
    // "Not found" means that the machine lacks the property; it is not a failure.
    let mut value = |key: &str| {
        if failure.is_some() {
            return None;
        }
        match client.get(&format!("{INSTANCE}{key}"), &[HEADER]) {
            Ok(value) => value.map(|value| value.trim().to_owned()).filter(|value| !value.is_empty()),
            Err(cause) => {
                failure = Some(cause);
                None
            }
        }
    };
    let keys = ["machine-type", "zone", "id", "image", "attributes/physical_host"];
    let [size, zone, instance, image, physical_host] = keys.map(&mut value);
    let zone = zone.as_deref().map(last_part);
    Answer {
        size: size.as_deref().map(last_part),
        // `us-central1-a` lies in `us-central1`.
        region: zone.as_ref().and_then(|zone| Some(zone.rsplit_once('-')?.0.to_owned())),
        zone,
        instance,
        image: image.map(|image| image.trim_start_matches("projects/").to_owned()),
        physical_host,
        failure,
        ..Answer::default()
    }
}

/// The last part of `projects/123/machineTypes/n2-standard-8`.
fn last_part(path: &str) -> String {
    path.rsplit('/').next().unwrap_or(path).to_owned()
}
