//! Amazon EC2's metadata service, version 2: a token first
//! (<https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/instancedata-data-retrieval.html>).
use super::answer::{Answer, object, text};
use super::http::Client;

/// Lifetime of the token, seconds; one snapshot needs less than one.
const TOKEN: (&str, &str) = ("/latest/api/token", "X-aws-ec2-metadata-token-ttl-seconds: 30");
/// Size, region, zone, image and the machine's own id in one document.
const IDENTITY: &str = "/latest/dynamic/instance-identity/document";
/// Maximum length of a token; about 56 characters are usual.
const TOKEN_LEN_MAX: usize = 512;

pub(super) fn query(client: &mut Client) -> Answer {
    let (token, mut answer) = match identity(client) {
        Ok(found) => found,
        Err(failure) => return Answer::nothing(failure),
    };
    let header = format!("X-aws-ec2-metadata-token: {token}");
    // "Not found" means that the machine lacks the property; it is not a failure.
    let mut placement = |name: &str| {
        if answer.failure.is_some() {
            return None;
        }
        match client.get(&format!("/latest/meta-data/placement/{name}"), &[&header]) {
            Ok(value) => value.filter(|value| !value.is_empty()),
            Err(failure) => {
                answer.failure = Some(failure);
                None
            }
        }
    };
    let [physical_zone, group, partition, host] =
        ["availability-zone-id", "group-name", "partition-number", "host-id"].map(&mut placement);
    Answer { physical_zone, placement: group, fault_domain: partition, physical_host: host, ..answer }
}

/// A token, and the answer that the identity document has.
fn identity(client: &mut Client) -> Result<(String, Answer), String> {
    let token = client.put(TOKEN.0, &[TOKEN.1])?.ok_or("the service issues no tokens (404)")?;
    // It becomes a header line of the next requests.
    if token.is_empty() || token.len() > TOKEN_LEN_MAX || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err("invalid token of the service".to_owned());
    }
    let header = format!("X-aws-ec2-metadata-token: {token}");
    let body = client.get(IDENTITY, &[&header])?.ok_or("the service has no identity document (404)")?;
    Ok((token, of_document(&body)?))
}

/// The answer that the identity document has, JSON.
pub(super) fn of_document(body: &str) -> Result<Answer, String> {
    let identity = object(body, "the identity document")?;
    let of = |name: &str| text(&identity, &[name]);
    Ok(Answer {
        size: of("instanceType"),
        region: of("region"),
        zone: of("availabilityZone"),
        instance: of("instanceId"),
        image: of("imageId"),
        ..Answer::default()
    })
}
