//! Checks the files that were written: each is read again, installed by the system's own tools into an empty folder, and started there.
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use super::contents::File;
use super::machine::{Machine, as_root};
use super::oci;
use super::release::Release;
use super::system::{output_of, read, remake};

/// What is checked, and where.
#[derive(Debug)]
pub struct Check<'a> {
    /// The version that the program must name.
    pub release: &'a Release,
    /// That of the program.
    pub machine: Machine,
    /// A folder, which each check makes anew.
    pub root: &'a Path,
}

impl Check<'_> {
    /// Unpacks an archive with the system's tar; the program is in `folder`.
    pub fn archive(&self, archive: &Path, folder: &str, files: &[File]) -> Result<()> {
        remake(self.root)?;
        extract(archive, self.root)?;
        same_files(self.root, files)?;
        self.starts(&self.root.join(folder), "/netduel")
    }

    /// Installs a Debian package with an empty database.
    pub fn deb(&self, package: &Path, files: &[File]) -> Result<()> {
        remake(self.root)?;
        for folder in ["info", "updates"] {
            remake(&self.root.join("var/lib/dpkg").join(folder))?;
        }
        let status = self.root.join("var/lib/dpkg/status");
        fs::write(&status, "").with_context(|| format!("failed to write {}", status.display()))?;
        let mut dpkg = as_root("dpkg");
        // Its log is otherwise that of this machine, whose settings may also leave out documentation, as in containers.
        dpkg.arg("--root").arg(self.root).arg("--log").arg(self.root.join("dpkg.log"));
        dpkg.args(["--path-include", "*", "--force-architecture", "--install"]).arg(package);
        output_of(&mut dpkg)?;
        same_files(self.root, files)?;
        self.starts(self.root, "/usr/bin/netduel")
    }

    /// Installs an rpm with a new database.
    pub fn rpm(&self, package: &Path, files: &[File]) -> Result<()> {
        remake(self.root)?;
        let mut rpm = as_root("rpm");
        rpm.arg("--root").arg(self.root).args(["--dbpath", "/var/lib/rpm", "--ignorearch", "--nosignature"]);
        output_of(rpm.arg("--install").arg(package))?;
        same_files(self.root, files)?;
        self.starts(self.root, "/usr/bin/netduel")
    }

    /// Checks an archive with the image of this machine, also what older versions of `docker load` read of it.
    pub fn image(&self, archive: &Path, files: &[File]) -> Result<()> {
        let (layout, entry) = self.layout(archive)?;
        self.image_of(&layout, &entry, files)?;
        let docker = json(&read(&layout.join("manifest.json"))?)?;
        for path in [&docker[0]["Config"], &docker[0]["Layers"][0]] {
            let path = path.as_str().context("manifest.json names no blob")?;
            ensure!(layout.join(path).is_file(), "manifest.json names {path}, which is not in the archive");
        }
        Ok(())
    }

    /// Unpacks an archive of images; its folder, and the one entry of its index.
    fn layout(&self, archive: &Path) -> Result<(PathBuf, Value)> {
        let layout = self.root.join("layout");
        remake(self.root)?;
        remake(&layout)?;
        extract(archive, &layout)?;
        let index = json(&read(&layout.join("index.json"))?)?;
        let entries = index["manifests"].as_array().context("index.json names no manifests")?;
        ensure!(entries.len() == 1, "index.json names {} manifests and not one", entries.len());
        Ok((layout, entries[0].clone()))
    }

    /// Follows a descriptor to its layers, and starts the entry point of the image.
    fn image_of(&self, layout: &Path, descriptor: &Value, files: &[File]) -> Result<()> {
        let root = self.root.join("root");
        remake(&root)?;
        let manifest = json(&described(layout, descriptor)?)?;
        let config = json(&described(layout, &manifest["config"])?)?;
        for architecture in [&descriptor["platform"]["architecture"], &config["architecture"]] {
            ensure!(architecture == self.machine.debian(), "the image is for {architecture}");
        }
        let layers = manifest["layers"].as_array().context("the manifest has no layers")?;
        for (number, layer) in layers.iter().enumerate() {
            described(layout, layer)?;
            let blob = layout.join(blob(layer)?);
            extract(&blob, &root)?;
            let plain = output_of(Command::new("gzip").args(["--decompress", "--stdout"]).arg(&blob))?;
            let expected = format!("sha256:{}", oci::sha256(&plain));
            ensure!(
                config["rootfs"]["diff_ids"][number] == expected.as_str(),
                "layer {number} of the image has another content than its configuration says"
            );
        }
        same_files(&root, files)?;
        let program = config["config"]["Entrypoint"][0].as_str().context("the image has no entry point")?;
        self.starts(&root, program)
    }

    /// Starts the program with the folder as its root.
    fn starts(&self, root: &Path, program: &str) -> Result<()> {
        let output = output_of(self.machine.command_in(root, program).arg("--version"))?;
        let expected = format!("netduel {}\n", self.release.version);
        let printed = String::from_utf8_lossy(&output);
        ensure!(printed == expected, "the program printed {printed:?}, not {expected:?}");
        Ok(())
    }
}

/// Checks an archive with an image for each machine.
pub fn images(
    release: &Release,
    root: &Path,
    archive: &Path,
    expected: &[(Machine, Vec<File>)],
) -> Result<()> {
    let Some((first, _)) = expected.first() else { bail!("there are no images to check") };
    let (layout, entry) = Check { release, machine: *first, root }.layout(archive)?;
    let index = json(&described(&layout, &entry)?)?;
    let images = index["manifests"].as_array().context("the index names no images")?;
    ensure!(
        images.len() == expected.len(),
        "the index names {} images and not {}",
        images.len(),
        expected.len()
    );
    for (descriptor, (machine, files)) in images.iter().zip(expected) {
        Check { release, machine: *machine, root }.image_of(&layout, descriptor, files)?;
    }
    Ok(())
}

/// Compares the list of checksums with the files beside it, by the tool that users take for it.
pub fn sums(folder: &Path, list: &str) -> Result<()> {
    output_of(Command::new("sha256sum").args(["--check", "--strict", list]).current_dir(folder)).map(|_| ())
}

fn extract(archive: &Path, folder: &Path) -> Result<()> {
    output_of(as_root("tar").arg("--extract").arg("--file").arg(archive).arg("--directory").arg(folder))
        .map(|_| ())
}

/// Every file is where it belongs, with its content and its permissions.
fn same_files(root: &Path, files: &[File]) -> Result<()> {
    for file in files {
        let path = root.join(&file.path);
        ensure!(read(&path)? == file.bytes, "{} has another content", path.display());
        let found = path.metadata().with_context(|| format!("failed to look at {}", path.display()))?;
        let (found, expected) = (found.permissions().mode() & 0o7777, file.permissions);
        ensure!(found == expected, "{} has the permissions {found:o} and not {expected:o}", path.display());
    }
    Ok(())
}

fn json(bytes: &[u8]) -> Result<Value> {
    serde_json::from_slice(bytes).context("failed to read JSON of the image")
}

/// The path of the blob of a descriptor.
fn blob(descriptor: &Value) -> Result<String> {
    let digest = descriptor["digest"].as_str().and_then(|digest| digest.strip_prefix("sha256:"));
    digest.map(|digest| format!("{}/{digest}", oci::BLOBS)).context("a descriptor has no SHA-256")
}

/// The blob of a descriptor, whose digest and size are right.
fn described(layout: &Path, descriptor: &Value) -> Result<Vec<u8>> {
    let path = blob(descriptor)?;
    let bytes = read(&layout.join(&path))?;
    if !path.ends_with(&oci::sha256(&bytes)) || descriptor["size"] != bytes.len() {
        bail!("the blob {path} of the image has another digest or size");
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::contents::write_below;
    use super::*;

    #[test]
    fn installed_file_with_other_permissions_is_refused() {
        let root = tempfile::tempdir().unwrap();
        let file = |permissions| File { path: "usr/bin/p".to_owned(), permissions, bytes: b"p".to_vec() };
        for (written, is_same) in [(0o755, true), (0o4755, false), (0o775, false)] {
            write_below(root.path(), &[file(written)]).unwrap();
            assert_eq!(same_files(root.path(), &[file(0o755)]).is_ok(), is_same, "{written:o}");
        }
    }

    #[test]
    fn changed_blob_is_refused() {
        let layout = std::env::temp_dir().join(format!("netduel-layout-{}", std::process::id()));
        remake(&layout.join(oci::BLOBS)).unwrap();
        let digest = oci::sha256(b"abc");
        fs::write(layout.join(oci::BLOBS).join(&digest), "abc").unwrap();
        let descriptor = |size| json!({ "digest": format!("sha256:{digest}"), "size": size });
        let whole = described(&layout, &descriptor(3));
        let other_size = described(&layout, &descriptor(4));
        fs::write(layout.join(oci::BLOBS).join(&digest), "abd").unwrap();
        let changed = described(&layout, &descriptor(3));
        fs::remove_dir_all(&layout).unwrap();
        assert_eq!(whole.unwrap(), b"abc");
        assert!(other_size.is_err() && changed.is_err());
    }
}
