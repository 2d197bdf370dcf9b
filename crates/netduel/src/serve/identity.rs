//! What a standing server is known by: a key, a certificate and the secret of its pairings, kept so that pairings survive a
//! restart. The file is the owner's alone; it is written whole or not at all.
use std::fs::{DirBuilder, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::exit::{Failure, Kind, OrFail as _};
use crate::program;
use crate::quick::pairing::{Pairing, SECRET_LEN};
use crate::quick::tls::{ServerIdentity, fingerprint};

/// Version of the file.
/// - 1: the first.
const FORMAT: u32 = 1;
/// The name in the certificate; clients know the certificate itself and look at no name.
const CERTIFICATE_NAME: &str = "netduel";

/// An identity.
#[derive(Serialize, Deserialize)]
pub struct Identity {
    format: u32,
    /// DER.
    certificate: Vec<u8>,
    /// PKCS #8, DER.
    key: Vec<u8>,
    secret: [u8; SECRET_LEN],
}

impl Identity {
    /// A new one.
    pub fn draw() -> Result<Self, Failure> {
        let made =
            rcgen::generate_simple_self_signed(vec![CERTIFICATE_NAME.to_owned()]).map_err(|error| {
                Failure::message(Kind::Environment, format!("failed to make a certificate: {error}"))
            })?;
        let secret = netduel_sys::random::bytes16().kind(Kind::Environment)?;
        let certificate = made.cert.der().to_vec();
        Ok(Self { format: FORMAT, certificate, key: made.signing_key.serialize_der(), secret })
    }

    /// The kept one; a new one when there is none, or when `anew`.
    pub fn kept(anew: bool) -> Result<Self, Failure> {
        let path = program::state_folder()?.join("serve").join("identity.json");
        if !anew && let Some(kept) = Self::read(&path)? {
            return Ok(kept);
        }
        let identity = Self::draw()?;
        identity.write(&path)?;
        Ok(identity)
    }

    fn read(path: &Path) -> Result<Option<Self>, Failure> {
        let failed = |why: &dyn std::fmt::Display, remedy: &str| {
            let text = format!("failed to read the identity {}: {why}; {remedy}", path.display());
            Failure::message(Kind::Environment, text)
        };
        let metadata = match std::fs::metadata(path) {
            Ok(metadata) => metadata,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed(&error, "or serve with --ephemeral")),
        };
        if metadata.permissions().mode() & 0o077 != 0 {
            let remedy = "whoever read it can pose as this server: draw a new one with --new-identity";
            return Err(failed(&"others may read it", remedy));
        }
        let remedy = "draw a new one with --new-identity, and pair again";
        let text = std::fs::read_to_string(path).map_err(|error| failed(&error, remedy))?;
        let identity: Self = serde_json::from_str(&text).map_err(|error| failed(&error, remedy))?;
        if identity.format != FORMAT {
            return Err(failed(
                &format!("it is of format {}, this netduel knows {FORMAT}", identity.format),
                remedy,
            ));
        }
        Ok(Some(identity))
    }

    fn write(&self, path: &Path) -> Result<(), Failure> {
        let failed = |error: std::io::Error| {
            let text = format!(
                "failed to keep the identity in {}: {error}; or serve with --ephemeral",
                path.display()
            );
            Failure::message(Kind::Store, text)
        };
        let folder = path.parent().map_or_else(PathBuf::new, Path::to_path_buf);
        DirBuilder::new().recursive(true).mode(0o700).create(&folder).map_err(failed)?;
        let text = serde_json::to_vec(self).kind(Kind::Internal)?;
        let beside = folder.join(format!(".part-{}", std::process::id()));
        let written = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&beside)
            .and_then(|mut file| file.write_all(&text).and_then(|()| file.sync_all()))
            .and_then(|()| std::fs::rename(&beside, path));
        written.map_err(|error| {
            drop(std::fs::remove_file(&beside));
            failed(error)
        })
    }

    /// The string for clients that reach this server under `host`.
    pub fn pairing(&self, host: String, port: u16) -> Pairing {
        Pairing { host, port, fingerprint: fingerprint(&self.certificate), secret: self.secret }
    }

    /// For the control connections.
    pub fn for_tls(&self) -> Result<ServerIdentity, Failure> {
        ServerIdentity::new(&self.certificate, &self.key, self.secret).kind(Kind::Environment)
    }
}
