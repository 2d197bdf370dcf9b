//! Lets rpmbuild(8) make the package, because the header of an rpm is a database with digests of its own.
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use super::contents::{self, File};
use super::machine::Machine;
use super::release::{DESCRIPTION, MAINTAINER, Release};
use super::system::{self, output_of};

/// The program that makes packages, and Debian's package of it.
pub const PROGRAM: &str = "rpmbuild";
pub const DEBIAN_PACKAGE: &str = "rpm";

/// The whole package; `scratch` is a folder for its parts, which is made anew.
pub fn package(release: &Release, machine: Machine, files: &[File], scratch: &Path) -> Result<Vec<u8>> {
    system::remake(scratch)?;
    let root = scratch.join("root");
    contents::write_below(&root, files)?;
    let spec = scratch.join("netduel.spec");
    fs::write(&spec, spec_file(release, files))
        .with_context(|| format!("failed to write {}", spec.display()))?;
    output_of(
        Command::new(PROGRAM)
            .args(["-bb", "--quiet", "--target", machine.name()])
            .arg("--define")
            .arg(format!("_topdir {}", scratch.join("build").display()))
            .arg("--define")
            .arg(format!("_rpmdir {}", scratch.display()))
            .args(["--define", "_rpmfilename netduel.rpm"])
            .arg(&spec)
            .env("NETDUEL_ROOT", &root)
            .env("SOURCE_DATE_EPOCH", release.time_s.to_string()),
    )?;
    system::read(&scratch.join("netduel.rpm"))
}

/// The description of the package. The files are finished: nothing is stripped, compressed or searched for dependencies.
fn spec_file(release: &Release, files: &[File]) -> String {
    let Release { version, .. } = release;
    let mut text = format!(
        "%global debug_package %{{nil}}\n\
         %global __os_install_post %{{nil}}\n\
         %global _build_id_links none\n\
         %global _buildhost localhost\n\
         %global use_source_date_epoch_as_buildtime 1\n\
         %global clamp_mtime_to_source_date_epoch 1\n\
         %global _binary_payload w9.gzdio\n\
         Name: netduel\n\
         Version: {version}\n\
         Release: 1\n\
         Summary: {DESCRIPTION}\n\
         License: Apache-2.0 OR MIT\n\
         Packager: {MAINTAINER}\n\
         AutoReqProv: no\n\
         %description\n\
         {DESCRIPTION}.\n\
         %install\n\
         mkdir -p %{{buildroot}}\n\
         cp -a \"$NETDUEL_ROOT\"/. %{{buildroot}}/\n\
         %files\n\
         %dir %attr(0755, root, root) /usr/share/doc/netduel\n\
         %dir %attr(0755, root, root) /usr/share/licenses/netduel\n"
    );
    for file in files {
        let marks = [("usr/share/doc/", "%doc "), ("usr/share/licenses/", "%license ")];
        let mark =
            marks.into_iter().find(|(folder, _)| file.path.starts_with(folder)).map_or("", |(_, mark)| mark);
        let _ = writeln!(text, "{mark}%attr({:04o}, root, root) /{}", file.permissions, file.path);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spec_lists_each_file_with_its_permissions() {
        let release = Release { version: "1.2.3".to_owned(), time_s: 0 };
        let files = [
            ("usr/bin/netduel", 0o755),
            ("usr/share/doc/netduel/README.md", 0o644),
            ("usr/share/licenses/netduel/LICENSE", 0o644),
        ]
        .map(|(path, permissions)| File { path: path.to_owned(), permissions, bytes: Vec::new() });
        let text = spec_file(&release, &files);
        assert!(text.contains("\nVersion: 1.2.3\n"), "{text}");
        let (_, list) = text.split_once("%files\n").unwrap();
        let expected = "%dir %attr(0755, root, root) /usr/share/doc/netduel\n\
                        %dir %attr(0755, root, root) /usr/share/licenses/netduel\n\
                        %attr(0755, root, root) /usr/bin/netduel\n\
                        %doc %attr(0644, root, root) /usr/share/doc/netduel/README.md\n\
                        %license %attr(0644, root, root) /usr/share/licenses/netduel/LICENSE\n";
        assert_eq!(list, expected);
    }
}
