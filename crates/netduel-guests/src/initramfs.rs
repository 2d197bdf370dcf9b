//! The file system of a guest: programs of this machine and of the fetched packages with their libraries, modules, and netduel. It has no
//! key and no scene; a bed passes both at boot.
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::archive::Archive;
use crate::error::{Error, Result, file};
use crate::kernel::Modules;
use crate::kernels::Kernel;
use crate::packages::KERNEL_PACKAGE;
use crate::prepared::Prepared;
use crate::program::{output_of, text_of};
use crate::scene;

/// Programs of this machine, which tests and netduel call in guests. dash is the shell, because busybox' own prefers its applets, for
/// example `ip`, to the real programs.
const OF_THIS_MACHINE: [&str; 6] = ["dash", "ip", "tc", "ethtool", "ss", "iperf3"];
/// Programs of the fetched packages: the ssh server, and the setting of a NIC's time stamps.
const OF_PACKAGES: [&str; 2] = ["dropbear", "hwstamp_ctl"];
/// Applets that must not hide those of this machine.
const NOT_OF_BUSYBOX: [&str; 5] = ["ip", "tc", "ethtool", "ss", "sh"];
/// Modules for treatments, in addition to those of scenes' NICs.
const OTHER_MODULES: [&str; 16] = [
    "bonding",
    "sch_netem",
    "sch_htb",
    "sch_tbf",
    "sch_fq",
    "sch_ingress",
    "cls_bpf",
    "cls_matchall",
    "act_mirred",
    "ifb",
    "veth",
    "bridge",
    "pktgen",
    "8021q",
    "tcp_bbr",
    "nf_tables",
];
const EXECUTABLE: u32 = 0o755;
const READABLE: u32 = 0o644;

/// Makes the archive.
pub fn make(prepared: &Prepared, kernel: Kernel) -> Result<()> {
    let mut archive = Archive::default();
    for folder in ["dev", "proc", "sys", "tmp", "run", "var/log", "etc/dropbear", "usr"] {
        archive.folder(folder, EXECUTABLE);
    }
    for folder in ["root", "root/.ssh"] {
        archive.folder(folder, 0o700);
    }
    for (link, target) in
        [("usr/bin", "../bin"), ("usr/lib", "../lib"), ("usr/sbin", "../bin"), ("sbin", "bin")]
    {
        archive.link(link, target);
    }
    add_programs(&mut archive, prepared)?;
    let netduel = prepared.netduel();
    let program = fs::read(&netduel).map_err(file("read", &netduel))?;
    archive.file("bin/netduel", EXECUTABLE, &program);
    add_modules(&mut archive, prepared, kernel)?;
    archive.file("init", EXECUTABLE, include_bytes!("init.sh"));
    archive.file("scene.sh", READABLE, include_bytes!("scene.sh"));
    for (path, text) in [
        ("etc/passwd", "root:x:0:0:root:/root:/bin/sh\n"),
        ("etc/group", "root:x:0:\n"),
        ("etc/shells", "/bin/sh\n"),
    ] {
        archive.file(path, READABLE, text.as_bytes());
    }
    write(&prepared.initramfs(kernel), &archive.finished())
}

/// Writes an archive, which appears under its name when it is complete.
pub fn write(path: &Path, archive: &[u8]) -> Result<()> {
    let partial = path.with_extension("partial");
    fs::write(&partial, archive).map_err(file("write", &partial))?;
    fs::rename(&partial, path).map_err(file("rename", &partial))
}

fn add_programs(archive: &mut Archive, prepared: &Prepared) -> Result<()> {
    let busybox = busybox(prepared);
    add_file(archive, "bin/busybox", &busybox)?;
    for name in OF_THIS_MACHINE {
        add_program(archive, prepared, &find(name)?)?;
    }
    for name in OF_PACKAGES {
        add_program(archive, prepared, &prepared.unpacked(&format!("usr/sbin/{name}")))?;
    }
    archive.link("bin/sh", "dash");
    let applets = text_of(Command::new(&busybox).arg("--list"), "list the applets of busybox")?;
    for applet in applets.lines().filter(|applet| !NOT_OF_BUSYBOX.contains(applet)) {
        archive.link(&format!("bin/{applet}"), "busybox");
    }
    Ok(())
}

fn add_modules(archive: &mut Archive, prepared: &Prepared, kernel: Kernel) -> Result<()> {
    let package = prepared.kernel_folder(kernel).join(KERNEL_PACKAGE);
    let mut modules = Modules::find(&package, busybox(prepared))?;
    for module in scene::modules(kernel).into_iter().chain(OTHER_MODULES) {
        // Nothing for a part of the kernel itself.
        let order: Vec<String> = modules.order(module)?.iter().map(|name| format!("{name}\n")).collect();
        archive.file(&format!("modules/{module}.order"), READABLE, order.concat().as_bytes());
    }
    for (name, contents) in modules.contents() {
        archive.file(&format!("modules/{name}.ko"), READABLE, contents);
    }
    Ok(())
}

fn busybox(prepared: &Prepared) -> PathBuf {
    prepared.unpacked("bin/busybox")
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

/// Adds a program and its libraries.
pub fn add_program(archive: &mut Archive, prepared: &Prepared, program: &Path) -> Result<()> {
    let name = program.file_name().unwrap_or_default().to_string_lossy();
    add_file(archive, &format!("bin/{name}"), program)?;
    add_libraries(archive, prepared, program)
}

/// Adds the libraries that a program or a library needs.
pub fn add_libraries(archive: &mut Archive, prepared: &Prepared, program: &Path) -> Result<()> {
    let mut command = Command::new("ldd");
    command.arg(program).env("LD_LIBRARY_PATH", prepared.library_path());
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
