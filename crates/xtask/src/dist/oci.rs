//! Writes container images: an OCI image layout (image-spec 1.0) with one image or one for each machine, as a tar archive. An image has one
//! layer. `manifest.json` describes the blobs of a single image to versions of `docker load` that read no layout.
use anyhow::Result;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::contents::File;
use super::gzip::gzip;
use super::machine::Machine;
use super::release::Release;
use super::tar::Tar;

/// The folder of blobs, each named by its SHA-256.
pub const BLOBS: &str = "blobs/sha256";
/// The program in the image.
const ENTRY_POINT: &str = "/usr/bin/netduel";

const INDEX: &str = "application/vnd.oci.image.index.v1+json";
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const LAYER: &str = "application/vnd.oci.image.layer.v1.tar+gzip";

/// The parts of the image of a machine.
#[derive(Debug)]
pub struct Image {
    machine: Machine,
    config: Vec<u8>,
    layer: Vec<u8>,
    manifest: Vec<u8>,
}

impl Image {
    /// From the files of its layer.
    pub fn new(release: &Release, machine: Machine, files: &[File]) -> Result<Self> {
        let mut layer = Tar::new(release.time_s);
        for file in files {
            layer.file(&file.path, file.permissions, &file.bytes)?;
        }
        // Sockets and journals of labs and agents.
        layer.folder("tmp", 0o1777)?;
        let layer = layer.finished();
        let config = json!({
            "architecture": machine.debian(),
            "os": "linux",
            "config": { "Entrypoint": [ENTRY_POINT], "Env": ["PATH=/usr/bin"] },
            "rootfs": { "type": "layers", "diff_ids": [format!("sha256:{}", sha256(&layer))] },
        });
        let layer = gzip(&layer)?;
        let config = config.to_string().into_bytes();
        let manifest = json!({
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": descriptor(CONFIG, &config),
            "layers": [descriptor(LAYER, &layer)],
        });
        Ok(Self { machine, config, layer, manifest: manifest.to_string().into_bytes() })
    }

    fn descriptor(&self) -> Value {
        let mut descriptor = descriptor(MANIFEST, &self.manifest);
        descriptor["platform"] = json!({ "architecture": self.machine.debian(), "os": "linux" });
        descriptor
    }
}

/// An archive with one image, which all versions of `docker load` read.
pub fn single(release: &Release, image: &Image) -> Result<Vec<u8>> {
    let docker = json!([{
        "Config": blob(&image.config),
        "RepoTags": [name(release)],
        "Layers": [blob(&image.layer)],
    }]);
    let docker = docker.to_string();
    archive(release, std::slice::from_ref(image), image.descriptor(), &[("manifest.json", docker.as_bytes())])
}

/// An archive with an image for each machine below one name. The older format of Docker has no such thing.
pub fn multiple(release: &Release, images: &[Image]) -> Result<Vec<u8>> {
    let manifests: Vec<Value> = images.iter().map(Image::descriptor).collect();
    let index = json!({ "schemaVersion": 2, "mediaType": INDEX, "manifests": manifests });
    let index = index.to_string().into_bytes();
    archive(release, images, descriptor(INDEX, &index), &[(blob(&index).as_str(), index.as_slice())])
}

/// The layout with one entry, the blobs of images, and other files.
fn archive(
    release: &Release,
    images: &[Image],
    mut entry: Value,
    others: &[(&str, &[u8])],
) -> Result<Vec<u8>> {
    entry["annotations"] = json!({
        "org.opencontainers.image.ref.name": release.version,
        "io.containerd.image.name": format!("docker.io/library/{}", name(release)),
    });
    let index = json!({ "schemaVersion": 2, "manifests": [entry] });
    let mut archive = Tar::new(release.time_s);
    archive.file("oci-layout", 0o644, json!({ "imageLayoutVersion": "1.0.0" }).to_string().as_bytes())?;
    archive.file("index.json", 0o644, index.to_string().as_bytes())?;
    for (path, bytes) in others {
        archive.file(path, 0o644, bytes)?;
    }
    for bytes in images.iter().flat_map(|image| [&image.manifest, &image.config, &image.layer]) {
        archive.file(&blob(bytes), 0o644, bytes)?;
    }
    Ok(archive.finished())
}

fn name(release: &Release) -> String {
    format!("netduel:{}", release.version)
}

/// The SHA-256 in lower-case hexadecimal digits.
pub fn sha256(bytes: &[u8]) -> String {
    format!("{:x}", Sha256::digest(bytes))
}

fn blob(bytes: &[u8]) -> String {
    format!("{BLOBS}/{}", sha256(bytes))
}

fn descriptor(media_type: &str, bytes: &[u8]) -> Value {
    json!({ "mediaType": media_type, "digest": format!("sha256:{}", sha256(bytes)), "size": bytes.len() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptor_has_digest_and_size_of_its_bytes() {
        // The first example of FIPS 180-2.
        let digest = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(descriptor("a/b", b"abc"), json!({ "mediaType": "a/b", "digest": digest, "size": 3 }));
    }

    #[test]
    fn same_files_give_the_same_image() {
        let release = Release { version: "1.2.3".to_owned(), time_s: 1 };
        let files =
            [File { path: "usr/bin/netduel".to_owned(), permissions: 0o755, bytes: b"program".to_vec() }];
        let image = |machine| Image::new(&release, machine, &files).unwrap();
        let first = single(&release, &image(Machine::X86_64)).unwrap();
        assert_eq!(first, single(&release, &image(Machine::X86_64)).unwrap());
        assert_ne!(first, single(&release, &image(Machine::Aarch64)).unwrap());
    }
}
