//! Proofs of the pairing's secret: a keyed hash over a value known only to both ends of this TLS session, so that a proof cannot
//! be replayed in another session or relayed.
use ring::error::Unspecified;
use ring::hmac;
use rustls::Connection;

/// Bytes of a proof.
pub const LENGTH: usize = 32;
const LABEL: &[u8] = b"EXPORTER-netduel-pairing-1";
const CLIENT: &[u8] = b"client";
const SERVER: &[u8] = b"server";

/// Each side has a different proof, so that one cannot be returned as the other.
fn exported(connection: &Connection, side: &[u8]) -> Result<[u8; 32], Unspecified> {
    connection.export_keying_material([0; 32], LABEL, Some(side)).map_err(|_| Unspecified)
}

fn of(connection: &Connection, secret: &[u8], side: &[u8]) -> Result<[u8; LENGTH], Unspecified> {
    let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, secret), &exported(connection, side)?);
    tag.as_ref().try_into().map_err(|_| Unspecified)
}

fn check(connection: &Connection, secret: &[u8], side: &[u8], proof: &[u8]) -> Result<(), Unspecified> {
    // ring compares in constant time.
    hmac::verify(&hmac::Key::new(hmac::HMAC_SHA256, secret), &exported(connection, side)?, proof)
}

/// The client's proof, sent first.
pub fn of_client(connection: &Connection, secret: &[u8]) -> Result<[u8; LENGTH], Unspecified> {
    of(connection, secret, CLIENT)
}

/// The server's proof.
pub fn of_server(connection: &Connection, secret: &[u8]) -> Result<[u8; LENGTH], Unspecified> {
    of(connection, secret, SERVER)
}

/// Whether the client knows the secret.
pub fn check_client(connection: &Connection, secret: &[u8], proof: &[u8]) -> Result<(), Unspecified> {
    check(connection, secret, CLIENT, proof)
}

/// Whether the server knows the secret.
pub fn check_server(connection: &Connection, secret: &[u8], proof: &[u8]) -> Result<(), Unspecified> {
    check(connection, secret, SERVER, proof)
}
