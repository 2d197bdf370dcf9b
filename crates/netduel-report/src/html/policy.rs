//! The content security policy of the page: our own scripts by hash, and nothing else.
use std::fmt::Write as _;

use sha2::{Digest, Sha256};

/// The policy that allows exactly these inline scripts, inline styles, an image within the page if there is one, and no request at all.
pub(super) fn content_security_policy(scripts: &[String], has_image: bool) -> String {
    let mut sources = String::new();
    for script in scripts {
        let _ = write!(sources, " 'sha256-{}'", base64(&Sha256::digest(script.as_bytes())));
    }
    let images = if has_image { " img-src data:;" } else { "" };
    format!(
        "default-src 'none'; script-src{sources}; style-src 'unsafe-inline';{images} base-uri 'none'; form-action 'none'"
    )
}

/// Standard base64 with padding (RFC 4648 section 4): twelve lines instead of a dependency.
pub fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let word = chunk
            .iter()
            .enumerate()
            .fold(0_u32, |word, (index, byte)| word | u32::from(*byte) << (16 - 8 * index));
        for position in 0..4 {
            let digit = (word >> (18 - 6 * position)) & 63;
            text.push(if position <= chunk.len() { char::from(ALPHABET[digit as usize]) } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_matches_the_test_vectors_of_rfc_4648() {
        for (bytes, text) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(base64(bytes.as_bytes()), text);
        }
    }

    #[test]
    fn the_hash_is_the_one_that_browsers_compute() {
        // `printf 'alert(1)' | openssl dgst -sha256 -binary | base64`
        let policy = content_security_policy(&["alert(1)".to_owned()], false);
        assert!(policy.contains("'sha256-bhHHL3z2vDgxUt0W3dWQOrprscmda2Y5pLsLg4GF+pI='"), "{policy}");
    }
}
