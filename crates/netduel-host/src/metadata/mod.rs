//! Facts from a cloud's metadata service. It is queried only when the firmware of the machine names that cloud. A failure is a fact
//! (`metadata_failure`), not an error. Must not query secrets.
mod answer;
mod aws;
mod azure;
mod gcp;
mod http;
pub mod response;

use netduel_model::snapshot::Provider;

pub(crate) use answer::Answer;

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
