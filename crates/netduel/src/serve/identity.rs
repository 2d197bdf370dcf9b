//! The identity of a standing server: key, certificate and pairing secret, stored so that pairings survive a restart. Only the
//! owner can read the file; it is replaced atomically.
use std::fmt::Display;
use std::fs::{DirBuilder, File};
use std::io::{self, ErrorKind, Read as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use netduel_model::socket_name::SocketName;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::exit::{self, Failure, Kind, OrFail as _};
use crate::output_file::{self, Readers};
use crate::program;
use crate::quick::tls::{ServerIdentity, fingerprint};
use netduel_model::pairing::{Pairing, SECRET_LEN};

/// Version of the file.
/// - 1: the first.
const FORMAT: u32 = 1;
const FILE: &str = "identity.json";
/// Maximum size of an identity file, bytes.
const FILE_LEN_MAX: u64 = 64 << 10;
const EPHEMERAL: &str = "serve with --ephemeral";
/// For what is no identity. The loss of one would end the pairings.
const REMOVE: &str = "remove it, or serve with --ephemeral";
const DRAW_ANEW: &str = "create a new one with --new-identity, and pair again";
/// The name in the certificate; clients compare the certificate itself and ignore the name.
const CERTIFICATE_NAME: &str = "netduel";

fn unreadable(path: &Path, why: &dyn Display, remedy: &str) -> Failure {
    let text = format!("failed to read the identity {}: {why}; {remedy}", path.display());
    Failure::message(Kind::Environment, text)
}

/// Opens the file without following links and without blocking.
fn open_to_read(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(descriptor) => Ok(File::from(descriptor)),
        Err(Errno::LOOP) => Err(io::Error::other("it is a symbolic link")),
        Err(error) => Err(error.into()),
    }
}

/// A user who can read the key can impersonate this server, and a user who can write to its folder can replace the key.
fn check_ownership(path: &Path, file: &File) -> Result<(), Failure> {
    let metadata = file.metadata().map_err(|error| unreadable(path, &error, DRAW_ANEW))?;
    let remedy = "a user who has read the key can impersonate this server; create a new one with --new-identity, and pair again";
    if !metadata.is_file() {
        return Err(unreadable(path, &"it is not a regular file", REMOVE));
    }
    if metadata.uid() != rustix::process::geteuid().as_raw() {
        return Err(unreadable(
            path,
            &"it belongs to another user",
            "serve as that user, or with --ephemeral",
        ));
    }
    if metadata.mode() & 0o077 != 0 {
        return Err(unreadable(path, &"others may read it", remedy));
    }
    let folder = path.parent().unwrap_or(path);
    let mode = std::fs::metadata(folder).map_err(|error| unreadable(path, &error, DRAW_ANEW))?.mode();
    if mode & 0o022 != 0 {
        let remedy = format!("chmod 700 {}, and create a new one with --new-identity", folder.display());
        return Err(unreadable(path, &"other users can write to its folder and replace it", &remedy));
    }
    Ok(())
}

/// An identity.
#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Identity {
    format: u32,
    /// DER.
    certificate: Vec<u8>,
    /// PKCS #8, DER.
    key: Vec<u8>,
    secret: [u8; SECRET_LEN],
}

impl Identity {
    /// A new identity.
    pub fn draw() -> Result<Self, Failure> {
        let made =
            rcgen::generate_simple_self_signed(vec![CERTIFICATE_NAME.to_owned()]).map_err(|error| {
                Failure::caused(Kind::Environment, format!("failed to create a certificate: {error}"), error)
            })?;
        let secret = netduel_sys::random::bytes16().kind(Kind::Environment)?;
        let certificate = made.cert.der().to_vec();
        Ok(Self { format: FORMAT, certificate, key: made.signing_key.serialize_der(), secret })
    }

    /// The stored identity; a new one when there is none, or when `anew`.
    pub fn kept(anew: bool) -> Result<Self, Failure> {
        Self::kept_in(&program::state_folder()?.join("serve"), anew)
    }

    fn kept_in(folder: &Path, anew: bool) -> Result<Self, Failure> {
        let path = folder.join(FILE);
        if !anew && let Some(kept) = Self::read(&path)? {
            return Ok(kept);
        }
        let identity = Self::draw()?;
        match identity.write(&path, anew) {
            Ok(()) => Ok(identity),
            // Another server of this user, started at the same moment, has stored its identity first.
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Self::read(&path)?.ok_or_else(|| {
                let text =
                    format!("failed to store the identity in {}: it was removed meanwhile", path.display());
                Failure::message(Kind::Store, text)
                    .remedy("start the server again, or serve with --ephemeral")
            }),
            Err(error) => {
                let doing = format!("store the identity in {}", path.display());
                Err(exit::unwritten(Kind::Store, doing, error, EPHEMERAL))
            }
        }
    }

    fn read(path: &Path) -> Result<Option<Self>, Failure> {
        let file = match open_to_read(path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => {
                let doing = format!("read the identity {}", path.display());
                // A link has a text; an error of the kernel says nothing about the file.
                let otherwise = if error.raw_os_error().is_some() { EPHEMERAL } else { REMOVE };
                return Err(exit::unread(Kind::Environment, doing, error, otherwise));
            }
        };
        check_ownership(path, &file)?;
        let mut text = String::new();
        let read = file.take(FILE_LEN_MAX).read_to_string(&mut text);
        read.map_err(|error| unreadable(path, &error, DRAW_ANEW))?;
        let identity: Self =
            serde_json::from_str(&text).map_err(|error| unreadable(path, &error, DRAW_ANEW))?;
        if identity.format != FORMAT {
            let why = format!("it has format {}, and this netduel supports {FORMAT}", identity.format);
            return Err(unreadable(path, &why, DRAW_ANEW));
        }
        Ok(Some(identity))
    }

    /// Stores the file atomically; `AlreadyExists` when there is one, unless it is to be replaced.
    fn write(&self, path: &Path, replace: bool) -> io::Result<()> {
        let folder = path.parent().map_or_else(PathBuf::new, Path::to_path_buf);
        DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
        let text = serde_json::to_vec(self)?;
        let write = if replace { output_file::replace } else { output_file::create };
        write(path, &text, Readers::Owner)
    }

    /// The string for clients that reach this server under `host`.
    pub fn pairing(&self, server: SocketName) -> Pairing {
        Pairing { server, fingerprint: fingerprint(&self.certificate), secret: self.secret }
    }

    /// The TLS server configuration for control connections.
    pub fn for_tls(&self) -> Result<ServerIdentity, Failure> {
        ServerIdentity::new(&self.certificate, &self.key, self.secret).kind(Kind::Environment)
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{Permissions, set_permissions, write};
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    use std::thread;

    use netduel_formats::{examples, fingerprint, uncovered};
    use schemars::generate::SchemaSettings;
    use serde_json::Value;

    use super::*;

    /// The newest format that a release of netduel writes. Formats up to this never change.
    const RELEASED: u32 = 0;
    /// The fingerprint of the file in this format.
    const FINGERPRINT: &str = "7e90fb940153e3a8";

    fn folder() -> (tempfile::TempDir, PathBuf) {
        let outer = tempfile::tempdir().expect("a folder");
        let folder = outer.path().join("state/serve");
        (outer, folder)
    }

    fn failure(folder: &Path) -> String {
        Identity::kept_in(folder, false).err().expect("a failure").to_string()
    }

    #[test]
    fn identity_is_private_and_kept_until_replaced() {
        let (_outer, folder) = folder();
        let first = Identity::kept_in(&folder, false).expect("created");
        let mode = |path: &Path| std::fs::metadata(path).expect("there").mode() & 0o777;
        assert_eq!((mode(&folder), mode(&folder.join(FILE))), (0o700, 0o600));
        let again = Identity::kept_in(&folder, false).expect("kept");
        assert_eq!((&again.certificate, again.secret), (&first.certificate, first.secret));
        let other = Identity::kept_in(&folder, true).expect("created again");
        assert!(other.secret != first.secret && other.certificate != first.certificate);
        assert_eq!(Identity::kept_in(&folder, false).expect("kept").secret, other.secret);
        let names: Vec<_> = std::fs::read_dir(&folder).expect("listed").flatten().collect();
        assert_eq!(names.len(), 1, "{names:?}");
    }

    /// Format 1 as it is stored. A change of the file needs the next format, and the text of each older one stays.
    #[test]
    fn stored_text_is_that_of_its_format() {
        const STORED: &str = r#"{"format":1,"certificate":[48,1,255],"key":[2,254],"secret":[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16]}"#;
        let read: Identity = serde_json::from_str(STORED).expect("an identity");
        assert_eq!(
            (read.format, read.certificate.as_slice(), read.key.as_slice()),
            (1, &[48, 1, 255][..], &[2, 254][..])
        );
        assert_eq!(read.secret, std::array::from_fn(|index| index as u8 + 1));
        assert_eq!(serde_json::to_string(&read).expect("a text"), STORED);
        let drawn = Identity::draw().expect("an identity");
        assert_eq!(drawn.format, FORMAT);
        assert_eq!(FORMAT, read.format, "the text above is of another format: add that of this one");
    }

    /// The stored text above does not show an added field that is optional; the schema does.
    #[test]
    fn changed_file_needs_a_new_format() {
        let generator = SchemaSettings::draft2020_12().for_serialize().into_generator();
        let schema = generator.into_root_schema_for::<Identity>().to_value();
        let reread = |example: Value| {
            let read: Identity = serde_json::from_value(example).expect("an identity");
            serde_json::to_value(&read).expect("a document")
        };
        let documents: Vec<Value> = examples(&schema, &|_, _| None).into_iter().map(reread).collect();
        assert_eq!(uncovered(&schema, &documents), [""; 0]);
        let remedy = if FORMAT > RELEASED {
            "this format is unreleased: set FINGERPRINT"
        } else {
            "this format is released and must not change: raise FORMAT"
        };
        assert_eq!(fingerprint(&schema), FINGERPRINT, "the file of format {FORMAT} changed; {remedy}");
    }

    #[test]
    fn file_accessible_to_others_is_rejected() {
        let (_outer, folder) = folder();
        let path = folder.join(FILE);
        Identity::kept_in(&folder, false).expect("created");
        set_permissions(&path, Permissions::from_mode(0o640)).expect("set");
        assert!(failure(&folder).contains("others may read it"));
        set_permissions(&path, Permissions::from_mode(0o600)).expect("set");
        set_permissions(&folder, Permissions::from_mode(0o770)).expect("set");
        assert!(failure(&folder).contains("write to its folder and replace it"));
        set_permissions(&folder, Permissions::from_mode(0o700)).expect("set");
        std::fs::rename(&path, folder.join("elsewhere")).expect("moved");
        symlink(folder.join("elsewhere"), &path).expect("linked");
        assert!(failure(&folder).contains("symbolic link; remove it"));
    }

    #[test]
    fn identity_that_cannot_be_opened_is_not_to_be_removed() {
        let (outer, _) = folder();
        let file = outer.path().join("state");
        write(&file, "").expect("written");
        let failure = failure(&file);
        assert!(failure.contains("serve with --ephemeral") && !failure.contains("remove"), "{failure}");
    }

    #[test]
    fn invalid_identity_file_is_reported_with_the_remedy() {
        let (_outer, folder) = folder();
        Identity::kept_in(&folder, false).expect("created");
        let path = folder.join(FILE);
        let newer = std::fs::read_to_string(&path).expect("read").replacen("\"format\":1", "\"format\":2", 1);
        for (text, needle) in [("", "EOF"), ("{}", "missing field"), (newer.as_str(), "it has format 2")] {
            write(&path, text).expect("written");
            let failure = failure(&folder);
            assert!(failure.contains(needle) && failure.contains("--new-identity"), "{failure}");
        }
        Identity::kept_in(&folder, true).expect("created again");
        Identity::kept_in(&folder, false).expect("kept");
    }

    #[test]
    fn concurrently_started_servers_share_one_identity() {
        let (_outer, folder) = folder();
        let secrets: Vec<_> = thread::scope(|scope| {
            let draw = || Identity::kept_in(&folder, false).expect("an identity").secret;
            let started: Vec<_> = (0..4).map(|_| scope.spawn(draw)).collect();
            started.into_iter().map(|thread| thread.join().expect("no panic")).collect()
        });
        assert!(secrets.iter().all(|secret| *secret == secrets[0]));
    }
}
