//! Writes Debian packages (deb(5)): an `ar` archive of a version, the control data and the files.
use std::fmt::Write as _;

use anyhow::Result;

use super::contents::File;
use super::gzip::gzip;
use super::machine::Machine;
use super::release::{DESCRIPTION, MAINTAINER, Release};
use super::tar::Tar;

/// The whole package. The program is static, so it depends on no package; it starts `ssh` for hosts that are reached by it.
pub fn package(release: &Release, machine: Machine, files: &[File]) -> Result<Vec<u8>> {
    let mut data = Tar::new(release.time_s);
    for file in files {
        data.file(&format!("./{}", file.path), file.permissions, &file.bytes)?;
    }
    let data = data.finished();
    let mut control = Tar::new(release.time_s);
    control.file("./control", 0o644, control_file(release, machine, data.len()).as_bytes())?;
    let mut archive = Ar::new(release.time_s);
    archive.file("debian-binary", b"2.0\n");
    archive.file("control.tar.gz", &gzip(&control.finished())?);
    archive.file("data.tar.gz", &gzip(&data)?);
    Ok(archive.bytes)
}

/// The fields of deb-control(5).
fn control_file(release: &Release, machine: Machine, installed_bytes: usize) -> String {
    let mut text = String::new();
    for (field, value) in [
        ("Package", "netduel".to_owned()),
        ("Version", release.version.clone()),
        ("Architecture", machine.debian().to_owned()),
        ("Maintainer", MAINTAINER.to_owned()),
        ("Installed-Size", installed_bytes.div_ceil(1024).to_string()),
        ("Suggests", "openssh-client".to_owned()),
        ("Section", "net".to_owned()),
        ("Priority", "optional".to_owned()),
        ("Description", DESCRIPTION.to_owned()),
    ] {
        let _ = writeln!(text, "{field}: {value}");
    }
    text
}

/// An archive of the format `ar` with the fields that deb(5) reads.
#[derive(Debug)]
struct Ar {
    bytes: Vec<u8>,
    time_s: u64,
}

impl Ar {
    fn new(time_s: u64) -> Self {
        Self { bytes: b"!<arch>\n".to_vec(), time_s }
    }

    fn file(&mut self, name: &str, contents: &[u8]) {
        // Name, time, user, group, mode, size.
        let header =
            format!("{name:<16}{:<12}{:<6}{:<6}{:<8}{:<10}`\n", self.time_s, 0, 0, "100644", contents.len());
        self.bytes.extend_from_slice(header.as_bytes());
        self.bytes.extend_from_slice(contents);
        if contents.len() % 2 == 1 {
            self.bytes.push(b'\n');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_of_ar_begin_at_even_offsets() {
        let mut archive = Ar::new(5);
        archive.file("odd", b"abc");
        archive.file("even", b"de");
        let expected = "!<arch>\n\
                        odd             5           0     0     100644  3         `\nabc\n\
                        even            5           0     0     100644  2         `\nde";
        assert_eq!(String::from_utf8(archive.bytes).unwrap(), expected);
    }

    #[test]
    fn control_data_names_version_architecture_and_size_in_kib() {
        let release = Release { version: "1.2.3".to_owned(), time_s: 0 };
        let text = control_file(&release, Machine::Aarch64, 1025);
        assert!(text.starts_with("Package: netduel\nVersion: 1.2.3\nArchitecture: arm64\n"), "{text}");
        assert!(text.contains("\nInstalled-Size: 2\n") && text.ends_with('\n'), "{text}");
        assert!(text.lines().all(|line| line.split_once(": ").is_some_and(|(_, value)| !value.is_empty())));
    }
}
