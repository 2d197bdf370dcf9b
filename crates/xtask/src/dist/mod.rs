//! `dist`: the files for installation, in `target/dist`, each checked after it was written
//! ([0035](../../../../docs/design/0035-dist.md)). It installs nothing on this machine.
mod build;
mod contents;
mod deb;
mod functions;
mod gzip;
mod licences;
mod machine;
mod oci;
mod quick;
mod release;
mod rpm;
mod start_time;
mod system;
mod tar;
mod toolchain;
mod verify;

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use netduel_test_support::REQUIRE_ALL;

use contents::{Contents, File, Layout};
use functions::Functions;
use machine::Machine;
use oci::Image;
pub use quick::compiles;
use release::Release;
use toolchain::Toolchain;
use verify::Check;

use crate::workspace::requires_all;
use crate::{step, workspace};

const USAGE: &str = "\
usage: cargo xtask dist [MACHINE ...]

Builds a static program for x86_64 and aarch64, or for the machines that are named, and packs it into target/dist: .tar.gz, .deb, .rpm,
OCI images, and SHA256SUMS. Installs each file into an empty folder and starts the program there; QEMU starts that of the other machine.
Prints size and start time of each program, and fails for one of 20 MB or more.
The first build takes minutes. Says what it skips because a program is missing, and how to install that; REQUIRE_ALL=1 or CI=true
makes a failure of each skip.
";

/// Below the root of the workspace: the files, and all that is needed to make them.
const FOLDER: &str = "target/dist";
const BUILD_FOLDER: &str = "target/dist-build";
const SUMS: &str = "SHA256SUMS";

/// A run of this command.
struct Dist {
    release: Release,
    folder: PathBuf,
    build_folder: PathBuf,
    /// Names of the files that were written and checked.
    written: Vec<String>,
    /// For an archive of all machines, with the files of each.
    images: Vec<(Image, (Machine, Vec<File>))>,
    skipped: Vec<String>,
}

/// Makes the files; `Ok(false)` when the arguments are not valid.
pub fn run(arguments: &[String]) -> Result<bool> {
    let named: Option<Vec<Machine>> = arguments.iter().map(|name| Machine::named(name)).collect();
    let Some(named) = named else {
        print!("{USAGE}");
        return Ok(arguments == ["--help"]);
    };
    let machines = if named.is_empty() { Machine::ALL.to_vec() } else { named };
    let mut dist = Dist::new(FOLDER)?;
    for machine in machines {
        match Toolchain::find(machine).and_then(|found| machine.obstacle().map_or(Ok(found), Err)) {
            Ok(toolchain) => dist.build_and_make(machine, toolchain)?,
            Err(missing) => dist.skip(format!("the files for {}: {missing}", machine.name())),
        }
    }
    dist.image_of_all()?;
    dist.close()
}

impl Dist {
    /// Without files. `folder` is below the root of the workspace, and is made anew.
    fn new(folder: &str) -> Result<Self> {
        let root = workspace::root();
        let dist = Self {
            release: Release::read()?,
            folder: root.join(folder),
            build_folder: root.join(BUILD_FOLDER),
            written: Vec::new(),
            images: Vec::new(),
            skipped: Vec::new(),
        };
        system::remake(&dist.folder)?;
        Ok(dist)
    }

    /// Builds the program for a machine, tries it, and writes all its files.
    fn build_and_make(&mut self, machine: Machine, toolchain: Toolchain) -> Result<()> {
        let program = build::program(machine, toolchain, &self.build_folder)?;
        let bytes = build::checked_size(&program)?;
        println!("ok: the program for {} has {:.1} MB", machine.name(), bytes as f64 / 1e6);
        self.make(machine, &program, licences::collect(machine, toolchain)?)?;
        println!("{}", start_time::measured(machine, &program)?);
        Ok(())
    }

    /// Tries a program, and writes all its files.
    fn make(&mut self, machine: Machine, program: &Path, third_party: Vec<u8>) -> Result<()> {
        let scratch = self.scratch("functions", machine);
        let functions = Functions { machine, program, scratch: &scratch };
        println!("ok: {}: {}", machine.name(), functions.check()?);
        let contents = Contents::collect(machine, program, third_party, &self.scratch("man", machine))?;
        self.archive(machine, &contents)?;
        self.deb(machine, &contents)?;
        self.image(machine, &contents)?;
        self.rpm(machine, &contents)
    }

    fn archive(&mut self, machine: Machine, contents: &Contents) -> Result<()> {
        let folder = format!("netduel-{}-{}", self.release.version, machine.name());
        let files = contents.unpacked(&folder);
        let mut archive = tar::Tar::new(self.release.time_s);
        for file in &files {
            archive.file(&file.path, file.permissions, &file.bytes)?;
        }
        let bytes = gzip::gzip(&archive.finished())?;
        self.write(format!("{folder}.tar.gz"), machine, &bytes, |check, path| {
            check.archive(path, &folder, &files)
        })
    }

    fn deb(&mut self, machine: Machine, contents: &Contents) -> Result<()> {
        let files = contents.installed(Layout::Debian)?;
        let name = format!("netduel_{}_{}.deb", self.release.version, machine.debian());
        let bytes = deb::package(&self.release, machine, &files)?;
        let Some(name) = self.if_installed("dpkg", "dpkg", name) else { return Ok(()) };
        self.write(name, machine, &bytes, |check, path| check.deb(path, &files))
    }

    fn image(&mut self, machine: Machine, contents: &Contents) -> Result<()> {
        let files: Vec<File> = contents.installed(Layout::Other)?;
        let name = format!("netduel-{}-{}.oci.tar", self.release.version, machine.name());
        let image = Image::new(&self.release, machine, &files)?;
        let bytes = oci::single(&self.release, &image)?;
        self.write(name, machine, &bytes, |check, path| check.image(path, &files))?;
        self.images.push((image, (machine, files)));
        Ok(())
    }

    fn rpm(&mut self, machine: Machine, contents: &Contents) -> Result<()> {
        let name = format!("netduel-{}-1.{}.rpm", self.release.version, machine.name());
        let Some(name) = self.if_installed(rpm::PROGRAM, rpm::DEBIAN_PACKAGE, name) else { return Ok(()) };
        let files = contents.installed(Layout::Other)?;
        let bytes = rpm::package(&self.release, machine, &files, &self.scratch("rpm", machine))?;
        self.write(name, machine, &bytes, |check, path| check.rpm(path, &files))
    }

    /// One archive with the images of all machines, if there are several.
    fn image_of_all(&mut self) -> Result<()> {
        let (images, files): (Vec<_>, Vec<_>) = std::mem::take(&mut self.images).into_iter().unzip();
        let [(first, _), _, ..] = &files[..] else { return Ok(()) };
        let bytes = oci::multiple(&self.release, &images)?;
        self.write(format!("netduel-{}.oci.tar", self.release.version), *first, &bytes, |check, path| {
            verify::images(check.release, check.root, path, &files)
        })
    }

    /// Writes a file and checks it. A file that fails its check does not stay.
    fn write(
        &mut self,
        name: String,
        machine: Machine,
        bytes: &[u8],
        check: impl FnOnce(&Check<'_>, &Path) -> Result<()>,
    ) -> Result<()> {
        let path = self.folder.join(&name);
        fs::write(&path, bytes).with_context(|| format!("failed to write {}", path.display()))?;
        let root = self.scratch("root", machine);
        let checked = check(&Check { release: &self.release, machine, root: &root }, &path);
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
    fn scratch(&self, step: &str, machine: Machine) -> PathBuf {
        self.build_folder.join(step).join(machine.name())
    }

    /// Writes the checksums.
    fn close(self) -> Result<bool> {
        let mut sums = String::new();
        for name in &self.written {
            let bytes = system::read(&self.folder.join(name))?;
            let _ = writeln!(sums, "{}  {name}", oci::sha256(&bytes));
        }
        let path = self.folder.join(SUMS);
        fs::write(&path, sums).with_context(|| format!("failed to write {}", path.display()))?;
        verify::sums(&self.folder, SUMS)?;
        println!(
            "{} files and {SUMS} are in {}; skipped: {}",
            self.written.len(),
            self.folder.display(),
            self.skipped.len()
        );
        if requires_all() && !self.skipped.is_empty() {
            let skipped = self.skipped.join("; ");
            bail!("with {REQUIRE_ALL}=1 and in CI nothing may be skipped, and this was: {skipped}");
        }
        Ok(true)
    }
}
