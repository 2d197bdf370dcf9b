//! What a cloud's metadata service says of the machine. Asked only where the machine says that it runs in that cloud;
//! whatever goes wrong is a fact (`metadata_failure`) and never an error. Must ask for nothing that is secret.
mod answer;
mod aws;
mod azure;
mod gcp;
mod http;

use netduel_model::snapshot::Provider;

pub(crate) use answer::Answer;

use crate::source::MetadataService;

/// Queries the service of a provider; absent for a provider without one.
pub(crate) fn ask(provider: Provider, service: MetadataService) -> Option<Answer> {
    let mut client = http::Client::new(service);
    match provider {
        Provider::Azure => Some(azure::ask(&mut client)),
        Provider::Aws => Some(aws::ask(&mut client)),
        Provider::Gcp => Some(gcp::ask(&mut client)),
        _ => None,
    }
}
