//! `dist`: the files for installation, in `target/dist`, each checked after it was written
//! ([0035](../../../../docs/design/0035-dist.md)). It installs nothing on this machine.
mod build;
mod contents;
mod deb;
mod gzip;
mod machine;
mod oci;
mod release;
mod rpm;
mod start_time;
mod tar;
mod verify;

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use netduel_test_support::{REQUIRE_ALL, requires_all};

use contents::{Contents, File, Layout};
use machine::Machine;
use release::Release;
use verify::Check;

use crate::{step, workspace};

const USAGE: &str = "\
usage: cargo xtask dist

Builds a static program for the processor of this machine and packs it into target/dist: .tar.gz, .deb, .rpm, an OCI image for
`docker load`, and SHA256SUMS. Installs each file into an empty folder and starts the program there. The first build takes minutes.
Says what it skips because a program is missing, and how to install that; REQUIRE_ALL=1 makes a failure of each skip.
";

/// Below the root of the workspace: the files, and all that is needed to make them.
const FOLDER: &str = "target/dist";
const BUILD_FOLDER: &str = "target/dist-build";
const SUMS: &str = "SHA256SUMS";

/// A run of this command.
struct Dist {
    release: Release,
    machine: Machine,
    folder: PathBuf,
    build_folder: PathBuf,
    /// Names of the files that were written and checked.
    written: Vec<String>,
    skipped: Vec<String>,
}

/// Makes the files; `Ok(false)` when the arguments are not valid.
pub fn run(arguments: &[String]) -> Result<bool> {
    if !arguments.is_empty() {
        print!("{USAGE}");
        return Ok(arguments == ["--help"]);
    }
    let root = workspace::root();
    let mut dist = Dist {
        release: Release::read()?,
        machine: Machine::native()?,
        folder: root.join(FOLDER),
        build_folder: root.join(BUILD_FOLDER),
        written: Vec::new(),
        skipped: Vec::new(),
    };
    contents::remake(&dist.folder)?;
    dist.make()?;
    dist.close()
}

impl Dist {
    /// Builds the program and writes all files.
    fn make(&mut self) -> Result<()> {
        let program = build::program(self.machine, &self.build_folder)?;
        let bytes = build::checked_size(&program)?;
        println!("ok: the program has {:.1} MB", bytes as f64 / 1e6);
        let contents = Contents::collect(&program, &self.scratch("man"))?;
        self.archive(&contents)?;
        self.deb(&contents)?;
        self.image(&contents)?;
        self.rpm(&contents)?;
        println!("{}", start_time::measured(&program)?);
        Ok(())
    }

    fn archive(&mut self, contents: &Contents) -> Result<()> {
        let folder = format!("netduel-{}-{}", self.release.version, self.machine.name());
        let files = contents.unpacked(&folder);
        let mut archive = tar::Tar::new(self.release.time_s);
        for file in &files {
            archive.file(&file.path, file.permissions, &file.bytes)?;
        }
        let bytes = gzip::gzip(&archive.finished())?;
        self.write(format!("{folder}.tar.gz"), &bytes, |check, path| check.archive(path, &folder, &files))
    }

    fn deb(&mut self, contents: &Contents) -> Result<()> {
        let files = contents.installed(Layout::Debian)?;
        let name = format!("netduel_{}_{}.deb", self.release.version, self.machine.debian());
        let bytes = deb::package(&self.release, self.machine, &files)?;
        let Some(name) = self.if_installed("dpkg", "dpkg", name) else { return Ok(()) };
        self.write(name, &bytes, |check, path| check.deb(path, &files))
    }

    fn image(&mut self, contents: &Contents) -> Result<()> {
        let files: Vec<File> = contents.installed(Layout::Other)?;
        let name = format!("netduel-{}-{}.oci.tar", self.release.version, self.machine.name());
        let bytes = oci::image(&self.release, self.machine, &files)?;
        self.write(name, &bytes, |check, path| check.image(path, &files))
    }

    fn rpm(&mut self, contents: &Contents) -> Result<()> {
        let name = format!("netduel-{}-1.{}.rpm", self.release.version, self.machine.name());
        let Some(name) = self.if_installed(rpm::PROGRAM, rpm::DEBIAN_PACKAGE, name) else { return Ok(()) };
        let files = contents.installed(Layout::Other)?;
        let bytes = rpm::package(&self.release, self.machine, &files, &self.scratch("rpm"))?;
        self.write(name, &bytes, |check, path| check.rpm(path, &files))
    }

    /// Writes a file and checks it. A file that fails its check does not stay.
    fn write(
        &mut self,
        name: String,
        bytes: &[u8],
        check: impl FnOnce(&Check<'_>, &Path) -> Result<()>,
    ) -> Result<()> {
        let path = self.folder.join(&name);
        fs::write(&path, bytes).with_context(|| format!("failed to write {}", path.display()))?;
        let root = self.scratch("root");
        let checked = check(&Check { release: &self.release, root: &root }, &path);
        if let Err(error) = checked {
            let _ = fs::remove_file(&path);
            return Err(error.context(format!("{name} does not pass its check")));
        }
        println!("ok: {name}: {:.1} MB, installed in an empty root and started", bytes.len() as f64 / 1e6);
        self.written.push(name);
        Ok(())
    }

    /// The name of the file, unless the program that makes or checks it is missing: such a file is not made.
    fn if_installed(&mut self, program: &str, package: &str, name: String) -> Option<String> {
        if step::is_installed(program) {
            return Some(name);
        }
        self.skip(format!("{name}: there is no {program} (Debian: {package})"));
        None
    }

    fn skip(&mut self, reason: String) {
        println!("skipped: {reason}");
        self.skipped.push(reason);
    }

    /// A folder for the parts of one step.
    fn scratch(&self, step: &str) -> PathBuf {
        self.build_folder.join(step)
    }

    /// Writes the checksums.
    fn close(self) -> Result<bool> {
        let mut sums = String::new();
        for name in &self.written {
            let bytes = contents::read(&self.folder.join(name))?;
            let _ = writeln!(sums, "{}  {name}", oci::sha256(&bytes));
        }
        let path = self.folder.join(SUMS);
        fs::write(&path, sums).with_context(|| format!("failed to write {}", path.display()))?;
        verify::sums(&self.folder, SUMS)?;
        println!("{} files and {SUMS} are in {FOLDER}; skipped: {}", self.written.len(), self.skipped.len());
        if requires_all() && !self.skipped.is_empty() {
            bail!("{REQUIRE_ALL}=1 and something was skipped: {}", self.skipped.join("; "));
        }
        Ok(true)
    }
}
