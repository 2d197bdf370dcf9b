//! The programs that can be copied to a host: their checksums, and what their ELF headers say. It starts and copies nothing.
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use super::compression::Compressed;
use super::obstacle::Obstacle;
use crate::cli::shared::PROGRAM_MIB_MAX;
use crate::{input_file, program};

/// Digits of the checksum in the name of a folder: as many as an agent tells of its build.
const BUILD_DIGITS: usize = 16;
/// Longest program, bytes.
const PROGRAM_LEN_MAX: usize = (PROGRAM_MIB_MAX as usize) << 20;

/// A program file.
#[derive(Debug, Clone)]
pub struct Binary {
    /// Its path on this machine.
    pub path: PathBuf,
    /// Its bytes.
    pub bytes: Arc<Vec<u8>>,
    /// Its bytes as gzip(1) reads them.
    pub compressed: Compressed,
    /// Its SHA-256 in hexadecimal digits.
    pub checksum: String,
    /// The machine that it is built for, as `uname -m` names it; `None` for one without a name here.
    pub machine: Option<&'static str>,
    /// The loader of a program that is not static.
    pub loader: Option<String>,
}

impl Binary {
    fn read(path: &Path) -> Result<Self, Obstacle> {
        let failed = |source| Obstacle::Unreadable { path: path.to_owned(), source };
        let bytes = input_file::read(path, PROGRAM_LEN_MAX).map_err(failed)?;
        if !bytes.starts_with(b"\x7fELF") {
            return Err(Obstacle::NoProgram { path: path.to_owned() });
        }
        let (machine, loader) = (machine(&bytes), loader(&bytes));
        let (checksum, compressed) = (checksum(&bytes), Compressed::default());
        Ok(Self { path: path.to_owned(), bytes: Arc::new(bytes), compressed, checksum, machine, loader })
    }

    /// The name of its folder on a host: version and build.
    pub fn folder_name(&self) -> String {
        format!("{}-{}", env!("CARGO_PKG_VERSION"), self.checksum.get(..BUILD_DIGITS).unwrap_or_default())
    }
}

/// This program, those of the command line, and those that are installed with this one.
#[derive(Debug)]
pub struct Binaries {
    others: Vec<PathBuf>,
    /// The folder of this program; `None` when the kernel does not name it.
    folder: Option<PathBuf>,
    /// Read once, by the first host that needs one: those of the command line, and this program.
    read: Mutex<Option<Vec<Binary>>>,
}

impl Default for Binaries {
    fn default() -> Self {
        Self::new(&[])
    }
}

impl Binaries {
    /// The programs of the command line come first.
    pub fn new(others: &[PathBuf]) -> Self {
        let own = std::env::current_exe().ok();
        let folder = own.and_then(|own| own.parent().map(Path::to_owned));
        Self { others: others.to_vec(), folder, read: Mutex::new(None) }
    }

    /// The program for a host, by what `uname -sm` printed there.
    pub fn for_machine(&self, uname: &str, host: &str) -> Result<Binary, Obstacle> {
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if read.is_none() {
            let own = PathBuf::from("/proc/self/exe");
            let all = self.others.iter().chain([&own]).map(|path| Binary::read(path));
            *read = Some(all.collect::<Result<_, _>>()?);
        }
        let known = read.get_or_insert_default();
        let mut words = uname.split_whitespace();
        let (kernel, machine) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        if kernel != "Linux" {
            return Err(Obstacle::Kernel { host: host.to_owned(), kernel: kernel.to_owned() });
        }
        if let Some(binary) = known.iter().find(|binary| binary.machine == Some(machine)) {
            return Ok(binary.clone());
        }
        let places = self.folder.as_deref().map(|folder| places(folder, machine)).unwrap_or_default();
        let Some(path) = places.iter().find(|path| path.is_file()) else {
            return Err(Obstacle::Machine {
                host: host.to_owned(),
                machine: machine.to_owned(),
                own: std::env::consts::ARCH,
                place: places.first().cloned(),
            });
        };
        let binary = Binary::read(path)?;
        if binary.machine != Some(machine) {
            return Err(Obstacle::Misplaced { path: path.clone(), machine: machine.to_owned() });
        }
        known.push(binary.clone());
        Ok(binary)
    }
}

/// Where the program for another machine is looked for, by the folder of this one: beside it, in the archive of that machine where both are
/// unpacked side by side, and in the folder of libraries of an installation.
fn places(folder: &Path, machine: &str) -> Vec<PathBuf> {
    // A host chose the name; it must not lead elsewhere.
    if !machine.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
        return Vec::new();
    }
    let (name, around) = (format!("netduel-{machine}"), folder.parent().unwrap_or(folder));
    let archive = format!("netduel-{}-{machine}", env!("CARGO_PKG_VERSION"));
    let mut places = vec![
        folder.join(&name),
        around.join("lib/netduel").join(&name),
        around.join(archive).join("netduel"),
    ];
    // The first one is the remedy of an error: programs of another processor do not belong in a search path.
    if folder.ends_with("bin") {
        places.swap(0, 1);
    }
    places
}

/// The path of a program for messages.
pub fn shown(path: &Path) -> String {
    let path = if path == Path::new("/proc/self/exe") { program::path() } else { path.to_owned() };
    path.display().to_string()
}

fn hexadecimal(bytes: &[u8]) -> String {
    let mut digits = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        // Writing to a string cannot fail.
        let _ = write!(digits, "{byte:02x}");
    }
    digits
}

/// The SHA-256 of some bytes, in hexadecimal digits.
pub fn checksum(bytes: &[u8]) -> String {
    hexadecimal(ring::digest::digest(&ring::digest::SHA256, bytes).as_ref())
}

/// The SHA-256 of this program's file.
pub fn own_checksum() -> std::io::Result<String> {
    Ok(checksum(&std::fs::read("/proc/self/exe")?))
}

/// `e_machine` of elf(5), at byte 18, as `uname -m` names it.
fn machine(elf: &[u8]) -> Option<&'static str> {
    Some(match number(elf, 18, 2)? {
        3 => "i686",
        // ppc64 and ppc64le share a number; byte 5 tells the order of bytes.
        21 if elf.get(5) == Some(&1) => "ppc64le",
        22 => "s390x",
        40 => "armv7l",
        62 => "x86_64",
        183 => "aarch64",
        243 => "riscv64",
        258 => "loongarch64",
        _ => return None,
    })
}

/// The path of `PT_INTERP` of elf(5) in a program of 64 bits.
fn loader(elf: &[u8]) -> Option<String> {
    /// The class and the type of program header, of elf(5).
    const CLASS_64: u8 = 2;
    const PT_INTERP: u64 = 3;
    if elf.get(4) != Some(&CLASS_64) {
        return None;
    }
    let (table, size, count) = (number(elf, 32, 8)?, number(elf, 54, 2)?, number(elf, 56, 2)?);
    for index in 0..count {
        let header = usize::try_from(table.checked_add(index.checked_mul(size)?)?).ok()?;
        if number(elf, header, 4)? == PT_INTERP {
            let start = usize::try_from(number(elf, header.checked_add(8)?, 8)?).ok()?;
            let length = usize::try_from(number(elf, header.checked_add(32)?, 8)?).ok()?;
            let text = elf.get(start..start.checked_add(length)?)?;
            return Some(String::from_utf8_lossy(text).trim_end_matches('\0').to_owned());
        }
    }
    None
}

/// An unsigned number of an ELF file, in the file's order of bytes.
fn number(elf: &[u8], at: usize, length: usize) -> Option<u64> {
    const LITTLE_ENDIAN: u8 = 1;
    let bytes = elf.get(at..at.checked_add(length)?)?;
    let push = |value: u64, byte: &u8| (value << 8) | u64::from(*byte);
    Some(if elf.get(5) == Some(&LITTLE_ENDIAN) {
        bytes.iter().rev().fold(0, push)
    } else {
        bytes.iter().fold(0, push)
    })
}

#[cfg(test)]
impl Binary {
    /// A program without bytes.
    pub(super) fn without_bytes() -> Self {
        Self {
            path: PathBuf::from("netduel"),
            bytes: Arc::default(),
            compressed: Compressed::default(),
            checksum: checksum(b""),
            machine: None,
            loader: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_program_is_built_for_this_machine() {
        let binaries = Binaries::new(&[]);
        let binary =
            binaries.for_machine(&format!("Linux {}\n", std::env::consts::ARCH), "h").expect("it fits");
        assert_eq!(binary.checksum, own_checksum().expect("it is readable"));
        assert_eq!(binary.folder_name().len(), env!("CARGO_PKG_VERSION").len() + 1 + BUILD_DIGITS);
    }

    #[test]
    fn other_machine_and_other_kernel_are_named() {
        let binaries = Binaries::new(&[]);
        let text = binaries.for_machine("Linux sparc64", "h").unwrap_err().to_string();
        assert!(text.contains("sparc64") && text.contains("--remote-program"), "{text}");
        let text = binaries.for_machine("Darwin arm64", "h").unwrap_err().to_string();
        assert!(text.contains("Darwin") && text.contains("Linux only"), "{text}");
    }

    /// This program as one for another machine, which no host here can start.
    fn program_for(machine: u8) -> Vec<u8> {
        let mut elf = std::fs::read("/proc/self/exe").expect("it is readable");
        elf[18..20].copy_from_slice(&[machine, 0]);
        elf
    }

    #[test]
    fn program_for_another_machine_is_found_where_it_is_installed() {
        let root = tempfile::tempdir().expect("a folder");
        for (bin, place) in [
            ("bin", "bin/netduel-riscv64".to_owned()),
            ("usr/bin", "usr/lib/netduel/netduel-riscv64".to_owned()),
            ("x/netduel-x", format!("x/netduel-{}-riscv64/netduel", env!("CARGO_PKG_VERSION"))),
        ] {
            let (folder, place) = (root.path().join(bin), root.path().join(place));
            let binaries = Binaries { folder: Some(folder), ..Binaries::new(&[]) };
            let missing = binaries.for_machine("Linux riscv64", "h").unwrap_err().to_string();
            assert!(missing.contains("--remote-program"), "{missing}");
            std::fs::create_dir_all(place.parent().expect("a folder")).expect("it is made");
            std::fs::write(&place, program_for(243)).expect("it is written");
            let found = binaries.for_machine("Linux riscv64", "h").expect("it is there");
            assert_eq!((found.path, found.machine), (place, Some("riscv64")));
        }
    }

    #[test]
    fn misplaced_program_is_named_and_a_host_chooses_no_path() {
        let root = tempfile::tempdir().expect("a folder");
        let binaries = Binaries { folder: Some(root.path().to_owned()), ..Binaries::new(&[]) };
        let place = root.path().join("netduel-riscv64");
        std::fs::write(&place, program_for(22)).expect("it is written");
        let text = binaries.for_machine("Linux riscv64", "h").unwrap_err().to_string();
        assert!(text.contains(&place.display().to_string()) && text.contains("not for riscv64"), "{text}");
        assert_eq!(places(root.path(), "x/../../riscv64"), Vec::<PathBuf>::new());
    }

    #[test]
    fn damaged_header_is_no_machine_and_no_loader() {
        let elf = std::fs::read("/proc/self/exe").expect("it is readable");
        for length in [0, 4, 5, 18, 20, 60, 64, 100, 4000] {
            let part = &elf[..length.min(elf.len())];
            drop((machine(part), loader(part)));
        }
        let mut wild = elf[..64].to_vec();
        wild[32..40].fill(0xff);
        assert_eq!(loader(&wild), None);
    }
}
