//! Pairing strings, which a person pastes, and texts that may contain one.
use netduel_model::pairing::{Pairing, without_strings};
use netduel_model::socket_name::SocketName;

/// Parses a text as a string, and as the name of a server in a string.
pub(crate) fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match text.parse::<Pairing>() {
        Ok(pairing) => check(&pairing),
        Err(error) => assert!(!error.to_string().contains(|c: char| c.is_control()), "{error:?}"),
    }
    let clean = without_strings(text);
    assert_eq!(without_strings(&clean), clean, "a string remains");
    // No input has the right checksum by chance: the name goes into a string that is made for it.
    let (port, host) = text.split_once(':').unwrap_or(("5210", text));
    if let Some(server) = port.parse().ok().and_then(|port| SocketName::new(host, port)) {
        assert!(
            !server.host().contains(['/', '\0', '\u{1b}']) && !server.host().starts_with('-'),
            "{server:?}"
        );
        check(&Pairing { server, fingerprint: [7; 32], secret: [9; 16] });
    }
}

/// A string is read as it was written, and no message contains it.
fn check(pairing: &Pairing) {
    let text = pairing.to_string();
    assert_eq!(text.parse().as_ref(), Ok(pairing));
    assert!(!without_strings(&format!("failed with {text}")).contains(&text));
}
