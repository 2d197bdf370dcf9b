//! The answer of a metadata service, and how its JSON is read. Must not know any one service.
use netduel_model::snapshot::Cloud;
use serde_json::Value;

use crate::file::shown;

/// The answer of a metadata service, in the fields of [`Cloud`]; missing fields are absent.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Answer {
    pub size: Option<String>,
    pub region: Option<String>,
    pub zone: Option<String>,
    pub physical_zone: Option<String>,
    pub instance: Option<String>,
    pub placement: Option<String>,
    pub fault_domain: Option<String>,
    pub physical_host: Option<String>,
    pub image: Option<String>,
    /// Why the answer is missing or incomplete.
    pub failure: Option<String>,
}

impl Answer {
    /// A missing answer, and its reason.
    pub fn nothing(failure: String) -> Self {
        Self { failure: Some(failure), ..Self::default() }
    }

    /// Writes the answer into `cloud`. A physical host from the hypervisor is kept: the service names dedicated hosts only.
    pub fn complete(self, cloud: &mut Cloud) {
        // An answer must not send control characters to a terminal.
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

/// The text at a path of names in a JSON object; an empty one is absent.
pub fn text(value: &Value, path: &[&str]) -> Option<String> {
    let found = path.iter().try_fold(value, |value, name| value.get(name))?;
    let text = match found {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        _ => return None,
    };
    (!text.is_empty()).then_some(text)
}

/// Parses a body that should be a JSON object.
pub fn object(body: &str, what: &str) -> Result<Value, String> {
    let value: Value = serde_json::from_str(body).map_err(|cause| format!("{what} is not JSON: {cause}"))?;
    if value.is_object() { Ok(value) } else { Err(format!("{what} is not a JSON object")) }
}
