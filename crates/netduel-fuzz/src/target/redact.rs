//! Texts of hosts, with pseudonyms in place of the names in them.
use netduel_model::plan::{Launch, SshHost};
use netduel_model::redact::Redactor;
use netduel_model::snapshot::{HostSnapshot, Interface};

/// Bytes of an input at most. Each name is looked for at each word: a longer text takes long and reaches nothing else.
const LEN_MAX: usize = 4096;

/// Redacts a text as a field of each kind and as words. A host and a user that are known before have their pseudonyms in all of it.
pub(crate) fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(&bytes[..bytes.len().min(LEN_MAX)]) else { return };
    let mut redactor = Redactor::default();
    let known = SshHost { user: Some("mallory".to_owned()), ..SshHost::of("db-prod7") };
    redactor.learn(&Launch::Ssh(known)).expect("a launcher is JSON");
    let host = snapshot(text);
    redactor.learn(&host).expect("a snapshot is JSON");
    redactor.redact(&host).expect("a snapshot with pseudonyms is a snapshot");
    redactor.host(text);
    let shown = redactor.text(&format!("mallory@db-prod7 {text}"));
    assert!(shown.starts_with("user-1@host-1 "), "{shown:?}");
}

/// A host that consists of a text: a name, a version, identifiers and texts.
fn snapshot(text: &str) -> HostSnapshot {
    let of_host = || Some(text.to_owned());
    let interface = Interface { name: text.to_owned(), mac: of_host(), ..Interface::default() };
    HostSnapshot {
        hostname: of_host(),
        kernel: of_host(),
        boot_id: of_host(),
        interfaces: vec![interface],
        ..HostSnapshot::default()
    }
}
