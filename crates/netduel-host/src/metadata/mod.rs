//! What a cloud's metadata service tells its guest of the machine. Asked only where the machine says that it runs in that cloud;
//! whatever goes wrong is a fact (`metadata_failure`) and never an error. Must ask for nothing that is secret.
mod aws;
mod azure;
mod gcp;
mod http;

use netduel_model::snapshot::{Cloud, Provider};
use serde_json::Value;

use crate::file::shown;
use crate::source::MetadataService;

/// What a service told of a machine, in the fields of [`Cloud`]; what it did not tell is absent.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Told {
    pub size: Option<String>,
    pub region: Option<String>,
    pub zone: Option<String>,
    pub physical_zone: Option<String>,
    pub instance: Option<String>,
    pub placement: Option<String>,
    pub fault_domain: Option<String>,
    pub physical_host: Option<String>,
    pub image: Option<String>,
    /// Why it told nothing, or not everything.
    pub failure: Option<String>,
}

impl Told {
    /// Nothing, and why.
    fn nothing(failure: String) -> Self {
        Self { failure: Some(failure), ..Self::default() }
    }

    /// Puts what was told into `cloud`. The physical host that the hypervisor itself has named stays: the service knows only
    /// of hosts that somebody has rented whole.
    pub fn complete(self, cloud: &mut Cloud) {
        // Whoever answers at that address must not write to somebody's terminal.
        let clean = |text: Option<String>| text.map(|text| shown(&text)).filter(|text| !text.is_empty());
        cloud.size = clean(self.size);
        cloud.region = clean(self.region);
        cloud.zone = clean(self.zone);
        cloud.physical_zone = clean(self.physical_zone);
        cloud.instance = clean(self.instance).or_else(|| cloud.instance.take());
        cloud.placement = clean(self.placement);
        cloud.fault_domain = clean(self.fault_domain);
        cloud.physical_host = cloud.physical_host.take().or(clean(self.physical_host));
        cloud.image = clean(self.image);
        cloud.metadata_failure = clean(self.failure);
    }
}

/// Asks the service of a provider; absent for a provider that has none.
pub(crate) fn ask(provider: Provider, service: MetadataService) -> Option<Told> {
    let mut client = http::Client::new(service);
    match provider {
        Provider::Azure => Some(azure::ask(&mut client)),
        Provider::Aws => Some(aws::ask(&mut client)),
        Provider::Gcp => Some(gcp::ask(&mut client)),
        _ => None,
    }
}

/// A text of an object of JSON, by the names on the way to it; an empty one is absent.
fn text(value: &Value, way: &[&str]) -> Option<String> {
    let found = way.iter().try_fold(value, |value, name| value.get(name))?;
    let text = match found {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        _ => return None,
    };
    (!text.is_empty()).then_some(text)
}

/// An answer that should be an object of JSON.
fn object(body: &str, what: &str) -> Result<Value, String> {
    let value: Value = serde_json::from_str(body).map_err(|cause| format!("{what} is not JSON: {cause}"))?;
    if value.is_object() { Ok(value) } else { Err(format!("{what} is JSON, but no object")) }
}
