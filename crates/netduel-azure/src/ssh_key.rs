//! The public key that may log in to the VMs of a bed. No private key is read beyond the moment in which it is refused.
use std::fmt;

/// Longest text of a key file that is looked at, bytes: an RSA key of 16384 bits has 2,800.
pub const TEXT_LEN_MAX: usize = 16 << 10;
/// The kinds of keys that VMs of Azure accept.
const KINDS: [&str; 2] = ["ssh-ed25519", "ssh-rsa"];

/// A public key without its comment, which often is the name of a person and a machine.
#[derive(Clone, PartialEq, Eq)]
pub struct PublicKey(String);

/// Why a text is no public key that VMs accept. The text itself is never shown: it may be a private key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// It is a private key.
    #[error("it is a private key; name the file of the public key, which ends with .pub")]
    Private,
    /// It has more than one line.
    #[error("it has more than one key, and a bed has one; name a file with one key as `ssh_key`")]
    Several,
    /// Another kind of key.
    #[error(
        "it is no key of the kind ssh-ed25519 or ssh-rsa, which VMs of Azure accept; make one with `ssh-keygen -t ed25519`"
    )]
    Kind,
}

impl PublicKey {
    /// Reads the text of a key file.
    ///
    /// # Errors
    /// [`KeyError`] when it is not one key of a kind that VMs of Azure accept.
    pub fn parse(text: &str) -> Result<Self, KeyError> {
        if text.contains("PRIVATE KEY") {
            return Err(KeyError::Private);
        }
        let mut lines = text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#'));
        let line = lines.next().ok_or(KeyError::Kind)?;
        if lines.next().is_some() {
            return Err(KeyError::Several);
        }
        let mut words = line.split_whitespace();
        let (kind, key) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let is_base64 = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=');
        if KINDS.contains(&kind) && !key.is_empty() && key.bytes().all(is_base64) {
            Ok(Self(format!("{kind} {key}")))
        } else {
            Err(KeyError::Kind)
        }
    }

    /// Kind and key.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PublicKey(...)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comment_of_a_key_is_left_out() {
        let key = PublicKey::parse("ssh-ed25519 AAAAC3Nz+/= me@laptop \"; reboot\n\n").unwrap();
        assert_eq!(key.as_str(), "ssh-ed25519 AAAAC3Nz+/=");
    }

    #[test]
    fn what_is_no_public_key_is_refused_without_its_text() {
        for (text, error) in [
            ("-----BEGIN OPENSSH PRIVATE KEY-----\nb3Blb\n", KeyError::Private),
            ("ssh-rsa AAAA a\nssh-rsa BBBB b\n", KeyError::Several),
            ("", KeyError::Kind),
            ("ssh-dss AAAA", KeyError::Kind),
            ("ssh-rsa", KeyError::Kind),
            ("ssh-rsa $(id)", KeyError::Kind),
            ("from=\"*\" ssh-rsa AAAA", KeyError::Kind),
        ] {
            assert_eq!(PublicKey::parse(text), Err(error), "{text}");
            assert!(!error.to_string().contains("AAAA"));
        }
    }
}
