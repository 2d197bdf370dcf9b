//! Facts from a cloud's metadata service. It is queried only when the firmware of the machine names that cloud. A failure is a fact
//! (`metadata_failure`), not an error. Must not query secrets.
mod answer;
mod aws;
mod azure;
mod gcp;
mod http;
pub mod response;

use netduel_model::snapshot::{Cloud, Provider};

pub(crate) use answer::Answer;

use crate::platform;
use crate::source::MetadataService;

/// Queries the service of a provider; absent for a provider without one.
pub(crate) fn query(provider: Provider, service: MetadataService) -> Option<Answer> {
    let mut client = http::Client::new(service);
    match provider {
        Provider::Azure => Some(azure::query(&mut client)),
        Provider::Aws => Some(aws::query(&mut client)),
        Provider::Gcp => Some(gcp::query(&mut client)),
        _ => None,
    }
}

/// What a snapshot says of a machine whose metadata service has this document. Absent for a provider whose service has none: Google Cloud's
/// answers with single values.
pub fn of_document(provider: Provider, body: &str) -> Option<Cloud> {
    let answer = match provider {
        Provider::Azure => azure::of_document(body),
        Provider::Aws => aws::of_document(body),
        _ => return None,
    };
    let mut cloud = platform::of(provider, String::new());
    answer.unwrap_or_else(Answer::nothing).complete(&mut cloud);
    Some(cloud)
}
