//! Fetches Debian packages with apt-get's own lists and unpacks them into a folder. Nothing is installed, and apt's state of this
//! machine is only read.
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::{Error, Result, file};
use crate::kernel;
use crate::kernels::Kernel;
use crate::prepared::Prepared;
use crate::program::{output_of, text_of};

/// The release whose packages fit together, and its suite with a QEMU that has `igb` (8.0 or later).
const RELEASE: &str = "bookworm";
const SUITE: &str = "bookworm-backports";
/// The package that depends on the suite's current kernel. The cloud kernel has no igb, igbvf and e1000e.
const KERNEL: &str = "linux-image-amd64";
/// QEMU with the libraries that a Debian without a desktop lacks, and what guests run.
const PACKAGES: [&str; 21] = [
    "qemu-system-x86",
    "qemu-system-common",
    "qemu-system-data",
    "seabios",
    "ipxe-qemu",
    "libcapstone4",
    "libpmem1",
    "libslirp0",
    "libvdeplug2",
    "libfuse3-3",
    "libaio1",
    "liburing2",
    "libndctl6",
    "libdaxctl1",
    "busybox-static",
    "dropbear-bin",
    "libtomcrypt1",
    "libtommath1",
    "linuxptp",
    "xz-utils",
    "zstd",
];

/// Below the folder of packages: programs and their data. Below that of a kernel: its package, and the bootable kernel. Below both: the mark of
/// completeness.
pub const PROGRAMS: &str = "programs";
pub const KERNEL_PACKAGE: &str = "package";
pub const VMLINUX: &str = "vmlinux";
const COMPLETE: &str = "complete";

/// Fetches and unpacks QEMU and the programs of guests, or does nothing when they are there.
pub fn fetch(prepared: &Prepared) -> Result<()> {
    let wanted = format!("{SUITE} {}\n", PACKAGES.join(" "));
    when_missing(&prepared.packages(), &wanted, |partial| {
        download(partial, SUITE, |apt| download_packages(apt, &PACKAGES))?;
        unpack(partial, PROGRAMS)
    })
}

/// Fetches and unpacks a kernel, or does nothing when it is there. The programs have to be there.
pub fn fetch_kernel(prepared: &Prepared, kernel: Kernel) -> Result<()> {
    let wanted = format!("{} {KERNEL}\n", kernel.suite());
    when_missing(&prepared.kernel_folder(kernel), &wanted, |partial| {
        download(partial, kernel.suite(), |apt| {
            let name = current_kernel(apt, kernel.suite())?;
            download_packages(apt, &[&name])
        })?;
        unpack(partial, KERNEL_PACKAGE)?;
        kernel::extract(
            &partial.join(KERNEL_PACKAGE),
            |program| {
                let mut command = Command::new(prepared.unpacked(&format!("usr/bin/{program}")));
                command.env("LD_LIBRARY_PATH", prepared.library_path());
                command
            },
            &partial.join(VMLINUX),
        )
    })
}

/// Makes a folder unless it has the mark of what is wanted. It appears under its name when it is complete.
fn when_missing(complete: &Path, wanted: &str, make: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
    if fs::read_to_string(complete.join(COMPLETE)).is_ok_and(|found| found == wanted) {
        return Ok(());
    }
    let partial = complete.with_extension("partial");
    remove(&partial)?;
    fs::create_dir_all(&partial).map_err(file("make the folder", &partial))?;
    make(&partial)?;
    let mark = partial.join(COMPLETE);
    fs::write(&mark, wanted).map_err(file("write", &mark))?;
    remove(complete)?;
    fs::rename(&partial, complete).map_err(file("rename", &partial))
}

/// The folders of libraries in the folder of packages.
pub fn library_path(packages: &Path) -> String {
    let programs = packages.join(PROGRAMS);
    let folders = ["usr/lib/x86_64-linux-gnu", "lib/x86_64-linux-gnu"];
    folders.map(|folder| programs.join(folder).display().to_string()).join(":")
}

fn remove(folder: &Path) -> Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(file("remove the folder", folder)(error))
        }
        _ => Ok(()),
    }
}

/// apt-get or apt-cache with the lists and the cache of a folder.
type Apt<'a> = &'a dyn Fn(&str) -> Command;

/// Runs `wanted` where the lists of the suite are known; what it downloads is in the folder `downloads`.
fn download(partial: &Path, suite: &str, wanted: impl FnOnce(Apt<'_>) -> Result<()>) -> Result<()> {
    for folder in ["lists/partial", "cache/archives/partial", "downloads"] {
        let folder = partial.join(folder);
        fs::create_dir_all(&folder).map_err(file("make the folder", &folder))?;
    }
    let sources = partial.join("release.sources");
    let list = partial.join("release.list");
    let (stanza, line) = own_sources(suite)?;
    fs::write(&sources, stanza).map_err(file("write", &sources))?;
    fs::write(&list, line).map_err(file("write", &list))?;
    let apt = |program: &str| {
        let mut command = Command::new(program);
        let setting = |name: &str, path: PathBuf| format!("{name}={}", path.display());
        for setting in [
            setting("Dir::State::lists", partial.join("lists")),
            setting("Dir::Cache", partial.join("cache")),
            setting("Dir::Etc::sourceparts", partial.to_owned()),
            "Dir::Etc::sourcelist=/dev/null".to_owned(),
            format!("APT::Default-Release={suite}"),
            // Without it, a list that could not be fetched is a warning.
            "APT::Update::Error-Mode=any".to_owned(),
            "Acquire::Languages=none".to_owned(),
        ] {
            command.args(["-o", &setting]);
        }
        command.current_dir(partial.join("downloads")).env("LC_ALL", "C");
        command
    };
    output_of(
        apt("apt-get").args(["--quiet", "update"]),
        &format!("fetch the lists of packages of {suite}"),
    )?;
    wanted(&apt)
}

/// The name of the package with the kernel that a suite has now.
fn current_kernel(apt: Apt<'_>, suite: &str) -> Result<String> {
    let depends = text_of(
        apt("apt-cache").args(["depends", "--important", KERNEL]),
        &format!("find the kernel that {KERNEL} of {suite} depends on"),
    )?;
    let kernel = depends.lines().find_map(|line| line.trim().strip_prefix("Depends: "));
    kernel.map(str::to_owned).ok_or_else(|| Error::Missing {
        what: format!("the kernel that {KERNEL} of {suite} depends on"),
        remedy: format!("apt-cache printed {depends:?}"),
    })
}

fn download_packages(apt: Apt<'_>, names: &[&str]) -> Result<()> {
    let purpose = format!("download {}", names.join(" "));
    output_of(apt("apt-get").args(["--quiet", "download"]).args(names), &purpose).map(drop)
}

/// Unpacks what was downloaded into the folder `target`.
fn unpack(partial: &Path, target: &str) -> Result<()> {
    let downloads = partial.join("downloads");
    let target = partial.join(target);
    fs::create_dir_all(&target).map_err(file("make the folder", &target))?;
    let entries = fs::read_dir(&downloads).map_err(file("list", &downloads))?;
    for entry in entries {
        let package = entry.map_err(file("list", &downloads))?.path();
        output_of(
            Command::new("dpkg-deb").arg("--extract").arg(&package).arg(&target),
            &format!("unpack {}", package.display()),
        )?;
    }
    // Only what was unpacked is used later.
    for folder in ["downloads", "lists", "cache"] {
        remove(&partial.join(folder))?;
    }
    Ok(())
}

/// This machine's source of the release, for the suites of the guests: as a stanza, or as a line of the older format.
fn own_sources(suite: &str) -> Result<(String, String)> {
    // Packages of another release would not fit to this machine's libraries, but a kernel needs none.
    let suites = if suite.starts_with(RELEASE) { vec![RELEASE, SUITE] } else { vec![suite] };
    let folder = Path::new("/etc/apt/sources.list.d");
    let mut files: Vec<PathBuf> = fs::read_dir(folder)
        .map(|entries| entries.filter_map(|entry| Some(entry.ok()?.path())).collect())
        .unwrap_or_default();
    files.sort();
    files.push(PathBuf::from("/etc/apt/sources.list"));
    for path in files {
        // A source that cannot be read serves apt no better.
        let text = fs::read_to_string(&path).unwrap_or_default();
        let extension = path.extension().unwrap_or_default();
        if let Some(stanza) = (extension == "sources").then(|| stanza_of(&text, &suites)).flatten() {
            return Ok((stanza, String::new()));
        }
        if let Some(line) = (extension == "list").then(|| line_of(&text, &suites)).flatten() {
            return Ok((String::new(), line));
        }
    }
    Err(Error::Missing {
        what: format!("a source of {RELEASE} among apt's sources"),
        remedy: "the guests' QEMU needs the libraries of Debian 12; use such a machine or container"
            .to_owned(),
    })
}

/// The first stanza of the release (sources.list(5), deb822 style), with the suites replaced.
fn stanza_of(text: &str, suites: &[&str]) -> Option<String> {
    let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    let text = lines.join("\n");
    let has = |stanza: &str, field: &str, word: &str| {
        let values = stanza.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
        values.is_some_and(|values| values.split_whitespace().any(|found| found == word))
    };
    let stanza = text.split("\n\n").find(|stanza| {
        has(stanza, "Types", "deb") && has(stanza, "Suites", RELEASE) && !has(stanza, "Enabled", "no")
    })?;
    let lines = stanza.trim().lines().map(|line| {
        if line.starts_with("Suites:") {
            format!("Suites: {}\n", suites.join(" "))
        } else {
            format!("{line}\n")
        }
    });
    Some(lines.collect())
}

/// The first line of the release (sources.list(5), one-line style), for each of the suites.
fn line_of(text: &str, suites: &[&str]) -> Option<String> {
    let line = text
        .lines()
        .map(str::trim)
        .find(|line| line.starts_with("deb ") && line.split_whitespace().any(|word| word == RELEASE))?;
    let with = |suite: &str| line.replacen(&format!(" {RELEASE} "), &format!(" {suite} "), 1);
    Some(suites.iter().map(|suite| with(suite) + "\n").collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn source_of_the_release_gets_the_suite() {
        let text = "Types: deb\nURIs: http://mirror/security\nSuites: bookworm-security\n\n# comment\nTypes: deb deb-src\n\
                    URIs: http://mirror/debian\nSuites: bookworm bookworm-updates\nComponents: main\nSigned-By: /key.gpg\n";
        let expected = "Types: deb deb-src\nURIs: http://mirror/debian\nSuites: bookworm bookworm-backports\nComponents: main\n\
                        Signed-By: /key.gpg\n";
        let of = |text: &str| stanza_of(text, &[RELEASE, SUITE]);
        assert_eq!(of(text).as_deref(), Some(expected));
        assert_eq!(of(&text.replace("Suites: bookworm ", "Suites: trixie ")), None);
        assert_eq!(of(&text.replace("Components", "Enabled: no\nComponents")), None);
        let older = expected.replace("bookworm bookworm-backports", "bullseye");
        assert_eq!(stanza_of(text, &["bullseye"]), Some(older));
        let lines =
            "# deb http://old bookworm main\ndeb [signed-by=/key.gpg] http://mirror/debian bookworm main\n";
        let expected = "deb [signed-by=/key.gpg] http://mirror/debian bookworm main\n\
                        deb [signed-by=/key.gpg] http://mirror/debian bookworm-backports main\n";
        assert_eq!(line_of(lines, &[RELEASE, SUITE]).as_deref(), Some(expected));
        assert_eq!(line_of("deb http://mirror/debian trixie main\n", &[RELEASE]), None);
    }
}
