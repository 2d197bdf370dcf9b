//! The file system of guests with DPDK's testpmd of this machine and drivers of their NICs. Starts nothing.
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::archive::Archive;
use crate::error::{Result, file};
use crate::machine_files::{add_file, add_libraries, add_program, find, write};

const PROGRAM: &str = "dpdk-testpmd";
/// The folder of the drivers of Debian's build, and the first part of its subfolder's name before the version.
const FOLDER: &str = "lib/x86_64-linux-gnu/dpdk";
const DRIVERS: &str = "pmds-";
/// What testpmd loads at its start, without the suffix `.so`: buses, the pools of buffers, and the NICs.
const LOADED: [&str; 5] =
    ["librte_bus_pci", "librte_bus_vdev", "librte_mempool_ring", "librte_net_virtio", "librte_net_e1000"];

/// Makes the file system from that without testpmd. There is none where testpmd or one of the drivers is not
/// installed.
pub fn make(path: &Path, without: &Path, library_path: &str) -> Result<()> {
    if let Some(dpdk) = archive(library_path)? {
        let mut both = fs::read(without).map_err(file("read", without))?;
        // The kernel unpacks one archive after the other.
        both.extend(dpdk.finished());
        return write(path, &both);
    }
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(file("remove", path)(error)),
        _ => Ok(()),
    }
}

fn archive(library_path: &str) -> Result<Option<Archive>> {
    let (Ok(program), Some(folder)) = (find(PROGRAM), drivers()) else { return Ok(None) };
    let mut archive = Archive::default();
    // testpmd has its sockets there.
    archive.link("var/run", "../run");
    add_program(&mut archive, library_path, &program)?;
    let version = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
    for driver in LOADED {
        let link = folder.join(format!("{driver}.so"));
        // The name by which other libraries need it.
        let target = fs::read_link(&link).ok();
        let Some(name) = target.as_deref().and_then(Path::file_name) else { return Ok(None) };
        let library = format!("lib/{}", name.to_string_lossy());
        add_file(&mut archive, &library, &link)?;
        add_libraries(&mut archive, library_path, &link)?;
        // A link: a library that is loaded from two files registers itself twice.
        archive.link(&format!("{FOLDER}/{version}/{driver}.so"), &format!("/{library}"));
    }
    Ok(Some(archive))
}

/// The folder of the drivers.
fn drivers() -> Option<PathBuf> {
    let entries = fs::read_dir(Path::new("/usr").join(FOLDER)).ok()?;
    let is_of_drivers = |path: &PathBuf| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(DRIVERS)) && path.is_dir()
    };
    entries.flatten().map(|entry| entry.path()).find(is_of_drivers)
}
