//! Files of the kernel's package: the bootable kernel out of the compressed image, and modules in the order of their dependencies.
//! Loads nothing.
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::{Error, Result, file};
use crate::program::{output_of, succeeds, text_of};

/// Offsets in the kernel's boot header (Documentation/arch/x86/boot.rst).
const SETUP_SECTORS: usize = 0x1f1;
const MAGIC: usize = 0x202;
const PAYLOAD_OFFSET: usize = 0x248;
const PAYLOAD_LEN: usize = 0x24c;
const SECTOR: usize = 512;
/// The payload ends with the length of its contents.
const LENGTH_LEN: usize = 4;
/// How kernels are compressed: the first bytes, and the program that uncompresses. Debian's are xz until 6.1.
const COMPRESSIONS: [(&[u8], &str); 2] =
    [(&[0x28, 0xb5, 0x2f, 0xfd], "zstd"), (&[0xfd, 0x37, 0x7a, 0x58, 0x5a, 0x00], "xz")];

/// Writes the uncompressed kernel of the package; QEMU starts it faster than the compressed image. `program` gives a program by its name.
pub fn extract(package: &Path, program: impl FnOnce(&str) -> Command, vmlinux: &Path) -> Result<()> {
    let boot = package.join("boot");
    let image_path = names(&boot)?
        .into_iter()
        .find(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("vmlinuz-")));
    let image_path = image_path.ok_or_else(|| Error::Missing {
        what: format!("a kernel in {}", boot.display()),
        remedy: "the kernel's package has another layout".to_owned(),
    })?;
    let image = fs::read(&image_path).map_err(file("read", &image_path))?;
    let (payload, compression) = payload(&image).ok_or_else(|| Error::Contents {
        path: image_path,
        reason: "it is no x86 kernel image with a payload of zstd or xz".to_owned(),
    })?;
    let compressed = vmlinux.with_extension("compressed");
    fs::write(&compressed, payload).map_err(file("write", &compressed))?;
    let input = fs::File::open(&compressed).map_err(file("open", &compressed))?;
    let output = fs::File::create(vmlinux).map_err(file("write", vmlinux))?;
    let mut command = program(compression);
    command.args(["--decompress", "--quiet", "--stdout"]).stdin(input).stdout(output);
    succeeds(&mut command, "uncompress the kernel")?;
    fs::remove_file(&compressed).map_err(file("remove", &compressed))
}

/// The compressed kernel in an image, and the program that uncompresses it.
fn payload(image: &[u8]) -> Option<(&[u8], &'static str)> {
    if image.get(MAGIC..MAGIC + 4)? != b"HdrS" {
        return None;
    }
    let number = |at: usize| Some(u32::from_le_bytes(image.get(at..at + 4)?.try_into().ok()?) as usize);
    let setup_len = (usize::from(*image.get(SETUP_SECTORS)?) + 1) * SECTOR;
    let start = setup_len.checked_add(number(PAYLOAD_OFFSET)?)?;
    let end = start.checked_add(number(PAYLOAD_LEN)?.checked_sub(LENGTH_LEN)?)?;
    let payload = image.get(start..end)?;
    let (_, program) = COMPRESSIONS.into_iter().find(|(magic, _)| payload.starts_with(magic))?;
    Some((payload, program))
}

/// The modules of a kernel's package.
#[derive(Debug)]
pub struct Modules {
    /// Files by name of the module, some compressed.
    files: BTreeMap<String, PathBuf>,
    built_in: String,
    busybox: PathBuf,
    /// Contents by name.
    read: BTreeMap<String, Vec<u8>>,
}

impl Modules {
    /// Finds the files. `busybox` uncompresses them.
    pub fn find(package: &Path, busybox: PathBuf) -> Result<Self> {
        let root = package.join("lib/modules");
        let list = text_of(
            Command::new("find").arg(&root).args(["-name", "*.ko", "-o", "-name", "*.ko.xz"]),
            "list the modules of the kernel's package",
        )?;
        let files = list.lines().filter_map(|line| {
            let path = PathBuf::from(line);
            let file = path.file_name()?.to_str()?;
            Some((name_of(file.strip_suffix(".xz").unwrap_or(file).strip_suffix(".ko")?), path))
        });
        let mut built_in = String::new();
        for version in names(&root)? {
            built_in.push_str(&fs::read_to_string(version.join("modules.builtin")).unwrap_or_default());
        }
        Ok(Self { files: files.collect(), built_in, busybox, read: BTreeMap::new() })
    }

    /// The names of a module and of those that it needs, in the order of loading; none for a part of the kernel itself.
    pub fn order(&mut self, module: &str) -> Result<Vec<String>> {
        let mut order = Vec::new();
        self.add(module, &mut order)?;
        Ok(order)
    }

    /// What [`Self::order`] named.
    pub fn contents(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.read.iter().map(|(name, contents)| (name.as_str(), contents.as_slice()))
    }

    fn add(&mut self, module: &str, order: &mut Vec<String>) -> Result<()> {
        let name = name_of(module);
        if order.contains(&name) {
            return Ok(());
        }
        let Some(path) = self.files.get(&name) else {
            let is_built_in = self.built_in.lines().any(|line| {
                line.rsplit('/').next().and_then(|file| file.strip_suffix(".ko")).map(name_of).as_ref()
                    == Some(&name)
            });
            return if is_built_in { Ok(()) } else { Err(no_module(&name)) };
        };
        if !self.read.contains_key(&name) {
            let contents = if path.extension().is_some_and(|extension| extension == "xz") {
                let mut unxz = Command::new(&self.busybox);
                output_of(unxz.args(["unxz", "-c"]).arg(path), &format!("uncompress {}", path.display()))?
            } else {
                fs::read(path).map_err(file("read", path))?
            };
            self.read.insert(name.clone(), contents);
        }
        let needed = self.read.get(&name).map(|contents| depends(contents)).unwrap_or_default();
        for other in needed {
            self.add(&other, order)?;
        }
        order.push(name);
        Ok(())
    }
}

fn no_module(name: &str) -> Error {
    Error::Missing {
        what: format!("the module {name} in the kernel's package"),
        remedy: "the kernel has no such driver, or another name for it".to_owned(),
    }
}

/// The kernel treats both characters as one in names of modules.
fn name_of(module: &str) -> String {
    module.replace('-', "_")
}

/// The modules that a module names in its section `.modinfo`.
fn depends(contents: &[u8]) -> Vec<String> {
    const KEY: &[u8] = b"\0depends=";
    let Some(at) = contents.windows(KEY.len()).position(|window| window == KEY) else { return Vec::new() };
    let value = contents[at + KEY.len()..].split(|byte| *byte == 0).next().unwrap_or_default();
    let value = String::from_utf8_lossy(value);
    value.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

fn names(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).map_err(file("list", folder))?;
    entries.map(|entry| Ok(entry.map_err(file("list", folder))?.path())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn payload_is_found_by_the_boot_header() {
        let mut image = vec![0; 0x1000];
        image[SETUP_SECTORS] = 3;
        image[MAGIC..MAGIC + 4].copy_from_slice(b"HdrS");
        image[PAYLOAD_OFFSET..PAYLOAD_OFFSET + 4].copy_from_slice(&16_u32.to_le_bytes());
        image[PAYLOAD_LEN..PAYLOAD_LEN + 4].copy_from_slice(&12_u32.to_le_bytes());
        let start = 4 * SECTOR + 16;
        assert_eq!(payload(&image), None);
        for (magic, program) in COMPRESSIONS {
            image[start..start + magic.len()].copy_from_slice(magic);
            let found = payload(&image).map(|(payload, program)| (payload.len(), program));
            assert_eq!(found, Some((8, program)));
        }
        assert_eq!(payload(&image[..start + 4]), None);
        assert_eq!(payload(&[]), None);
    }

    #[test]
    fn dependencies_are_read_from_the_module() {
        assert_eq!(depends(b"x\0author=y\0depends=failover,net_x\0name=z\0"), ["failover", "net_x"]);
        assert_eq!(depends(b"x\0depends=\0"), [""; 0]);
        assert_eq!(depends(b"x"), [""; 0]);
    }
}
