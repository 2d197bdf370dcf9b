//! Files of this machine in an archive: programs with the libraries that they need. It knows no folder of guests.
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::archive::Archive;
use crate::error::{Error, Result, file};
use crate::program::output_of;

const EXECUTABLE: u32 = 0o755;

/// Writes an archive, which appears under its name when it is complete.
pub fn write(path: &Path, archive: &[u8]) -> Result<()> {
    let partial = path.with_extension("partial");
    fs::write(&partial, archive).map_err(file("write", &partial))?;
    fs::rename(&partial, path).map_err(file("rename", &partial))
}

/// A program of this machine, in PATH or in the folders of administrators.
pub fn find(name: &str) -> Result<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(["/usr/sbin", "/sbin"].map(PathBuf::from));
    let found = folders.map(|folder| folder.join(name)).find(|program| program.is_file());
    found.ok_or_else(|| Error::Missing {
        what: format!("the program {name}, which guests need"),
        remedy: format!("install it (`cargo xtask setup`, or the package that contains {name})"),
    })
}

/// Adds a program and its libraries, of which some are in these folders.
pub fn add_program(archive: &mut Archive, library_path: &str, program: &Path) -> Result<()> {
    let name = program.file_name().unwrap_or_default().to_string_lossy();
    add_file(archive, &format!("bin/{name}"), program)?;
    add_libraries(archive, library_path, program)
}

/// Adds the libraries that a program or a library needs.
pub fn add_libraries(archive: &mut Archive, library_path: &str, program: &Path) -> Result<()> {
    let mut command = Command::new("ldd");
    command.arg(program).env("LD_LIBRARY_PATH", library_path);
    let listed = output_of(&mut command, &format!("list the libraries of {}", program.display()))?;
    for library in libraries(&String::from_utf8_lossy(&listed)) {
        let name = library.rsplit('/').next().unwrap_or(library);
        let folder = if name.starts_with("ld-linux") { "lib64" } else { "lib" };
        add_file(archive, &format!("{folder}/{name}"), Path::new(library))?;
    }
    Ok(())
}

/// Adds a file of this machine, unless one of this name exists.
pub fn add_file(archive: &mut Archive, path: &str, source: &Path) -> Result<()> {
    if !archive.contains(path) {
        let contents = fs::read(source).map_err(file("read", source))?;
        archive.file(path, EXECUTABLE, &contents);
    }
    Ok(())
}

/// The files that ldd(1) lists.
fn libraries(listed: &str) -> impl Iterator<Item = &str> {
    listed.lines().filter_map(|line| line.split_whitespace().find(|word| word.starts_with('/')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_the_files_of_ldd() {
        let listed = "\tlinux-vdso.so.1 (0x00007ffe)\n\tlibm.so.6 => /lib/x86_64-linux-gnu/libm.so.6 (0x00007f)\n\
                      \t/lib64/ld-linux-x86-64.so.2 (0x00007f)\n";
        let found: Vec<&str> = libraries(listed).collect();
        assert_eq!(found, ["/lib/x86_64-linux-gnu/libm.so.6", "/lib64/ld-linux-x86-64.so.2"]);
    }
}
