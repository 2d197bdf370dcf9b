//! What the files for installation contain: one list for every format. The program writes its own man pages and completions.
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use anyhow::{Context, Result};

use super::gzip::gzip;
use super::licences;
use super::machine::Machine;
use super::system::{output_of, read, remake};
use crate::workspace;

/// For people, at the root of the workspace.
const README: &str = "README.md";
/// The licence of netduel, at the root of the workspace.
const LICENCES: [&str; 3] = ["LICENSE", "LICENSE-APACHE", "LICENSE-MIT"];

/// The shells, with the name of the file that each looks for.
const SHELLS: [(&str, &str); 3] = [("bash", "netduel"), ("zsh", "_netduel"), ("fish", "netduel.fish")];

/// Where distributions keep licences, and files for zsh; the other folders are the same everywhere.
#[derive(Debug, Clone, Copy)]
pub enum Layout {
    /// Debian and its descendants: all licences in one file.
    Debian,
    /// Fedora, openSUSE and their descendants, and zsh itself.
    Other,
}

/// A file below the root of a system or of an archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// Without a slash at its start.
    pub path: String,
    /// For example `0o755`.
    pub permissions: u32,
    /// The content.
    pub bytes: Vec<u8>,
}

impl File {
    fn new(path: String, permissions: u32, bytes: &[u8]) -> Self {
        Self { path, permissions, bytes: bytes.to_vec() }
    }
}

/// The files without their places, by name.
#[derive(Debug)]
pub struct Contents {
    program: Vec<u8>,
    pages: Vec<(String, Vec<u8>)>,
    completions: Vec<(&'static str, Vec<u8>)>,
    readme: Vec<u8>,
    /// First those of netduel.
    licences: Vec<(&'static str, Vec<u8>)>,
}

impl Contents {
    /// Reads the program and the texts, and lets the program write the rest; `scratch` is a folder for that, which is made anew.
    pub fn collect(machine: Machine, program: &Path, third_party: Vec<u8>, scratch: &Path) -> Result<Self> {
        remake(scratch)?;
        let command = || machine.command(&program.to_string_lossy());
        output_of(command().arg("man").arg(scratch))?;
        let mut pages = Vec::new();
        for entry in fs::read_dir(scratch).context("failed to list the man pages")? {
            let path = entry.context("failed to list the man pages")?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            pages.push((name, read(&path)?));
        }
        pages.sort();
        let mut completions = Vec::new();
        for (shell, name) in SHELLS {
            completions.push((name, output_of(command().args(["completions", shell]))?));
        }
        let readme = read(&workspace::root().join(README))?;
        let mut own = Vec::new();
        for name in LICENCES {
            own.push((name, read(&workspace::root().join(name))?));
        }
        own.push((licences::FILE, third_party));
        Ok(Self { program: read(program)?, pages, completions, readme, licences: own })
    }

    /// The files of a package, below the root of the system.
    pub fn installed(&self, layout: Layout) -> Result<Vec<File>> {
        let mut files = vec![File::new("usr/bin/netduel".to_owned(), 0o755, &self.program)];
        for (name, page) in &self.pages {
            files.push(File::new(format!("usr/share/man/man1/{name}.gz"), 0o644, &gzip(page)?));
        }
        for (name, text) in &self.completions {
            let folder = match (*name, layout) {
                ("netduel", _) => "bash-completion/completions",
                ("_netduel", Layout::Debian) => "zsh/vendor-completions",
                ("_netduel", Layout::Other) => "zsh/site-functions",
                _ => "fish/vendor_completions.d",
            };
            files.push(File::new(format!("usr/share/{folder}/{name}"), 0o644, text));
        }
        files.push(File::new(format!("usr/share/doc/netduel/{README}"), 0o644, &self.readme));
        match layout {
            Layout::Debian => {
                let texts: Vec<&[u8]> = self.licences.iter().map(|(_, text)| text.as_slice()).collect();
                files.push(File::new(
                    "usr/share/doc/netduel/copyright".to_owned(),
                    0o644,
                    &texts.join(&b'\n'),
                ));
            }
            Layout::Other => files.extend(
                self.licences
                    .iter()
                    .map(|(name, text)| File::new(format!("usr/share/licenses/netduel/{name}"), 0o644, text)),
            ),
        }
        Ok(files)
    }

    /// The files of an archive that is unpacked anywhere, below one folder.
    pub fn unpacked(&self, folder: &str) -> Vec<File> {
        let mut files = vec![File::new(format!("{folder}/netduel"), 0o755, &self.program)];
        let pages = self.pages.iter().map(|(name, page)| (format!("man/man1/{name}"), page));
        let shells = SHELLS.iter().zip(&self.completions);
        let completions =
            shells.map(|((shell, _), (_, text))| (format!("completions/netduel.{shell}"), text));
        let texts = self.licences.iter().map(|(name, text)| ((*name).to_owned(), text));
        let texts = texts.chain([(README.to_owned(), &self.readme)]);
        for (name, bytes) in pages.chain(completions).chain(texts) {
            files.push(File::new(format!("{folder}/{name}"), 0o644, bytes));
        }
        files
    }
}

/// Writes files below a folder, with their permissions.
pub fn write_below(folder: &Path, files: &[File]) -> Result<()> {
    for file in files {
        let path = folder.join(&file.path);
        let parent = path.parent().unwrap_or(folder);
        fs::create_dir_all(parent).with_context(|| format!("failed to make {}", parent.display()))?;
        fs::write(&path, &file.bytes)
            .and_then(|()| fs::set_permissions(&path, fs::Permissions::from_mode(file.permissions)))
            .with_context(|| format!("failed to write {}", path.display()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> Contents {
        Contents {
            program: b"program".to_vec(),
            pages: vec![("netduel.1".to_owned(), b".TH netduel".to_vec())],
            completions: SHELLS.iter().map(|(shell, name)| (*name, shell.as_bytes().to_vec())).collect(),
            readme: b"readme".to_vec(),
            licences: LICENCES
                .into_iter()
                .chain([licences::FILE])
                .map(|name| (name, format!("text of {name}").into_bytes()))
                .collect(),
        }
    }

    #[test]
    fn each_shell_finds_its_completions() {
        let content = |layout, path: &str| {
            let files = example().installed(layout).unwrap();
            files
                .into_iter()
                .find(|file| file.path == path)
                .map(|file| String::from_utf8(file.bytes).unwrap())
        };
        for layout in [Layout::Debian, Layout::Other] {
            let bash = content(layout, "usr/share/bash-completion/completions/netduel");
            assert_eq!(bash.as_deref(), Some("bash"));
            let fish = content(layout, "usr/share/fish/vendor_completions.d/netduel.fish");
            assert_eq!(fish.as_deref(), Some("fish"));
        }
        let zsh = content(Layout::Debian, "usr/share/zsh/vendor-completions/_netduel");
        assert_eq!(zsh.as_deref(), Some("zsh"));
        let zsh = content(Layout::Other, "usr/share/zsh/site-functions/_netduel");
        assert_eq!(zsh.as_deref(), Some("zsh"));
    }

    #[test]
    fn only_the_program_is_executable_and_licences_are_everywhere() {
        let lists = [
            example().installed(Layout::Debian).unwrap(),
            example().installed(Layout::Other).unwrap(),
            example().unpacked("netduel-1"),
        ];
        for files in lists {
            let executable: Vec<&[u8]> = files
                .iter()
                .filter(|file| file.permissions & 0o111 != 0)
                .map(|file| file.bytes.as_slice())
                .collect();
            assert_eq!(executable, [b"program"]);
            for name in LICENCES.into_iter().chain([licences::FILE]) {
                let text = format!("text of {name}");
                let has_text =
                    |file: &&File| String::from_utf8_lossy(&file.bytes).lines().any(|line| line == text);
                let folder = files.iter().find(has_text).and_then(|file| file.path.rsplit_once('/'));
                let folder = folder.map_or_else(|| panic!("{name} is missing"), |(folder, _)| folder);
                assert!(
                    ["usr/share/doc/netduel", "usr/share/licenses/netduel", "netduel-1"].contains(&folder),
                    "{folder}"
                );
            }
        }
    }
}
