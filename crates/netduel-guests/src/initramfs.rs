//! The file system of a guest: programs of this machine and of the fetched packages with their libraries, modules, and netduel. It has no
//! key and no scene; a bed passes both at boot.
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::archive::Archive;
use crate::error::{Result, file};
use crate::kernel::Modules;
use crate::kernels::Kernel;
use crate::machine_files::{add_file, add_program, find, write};
use crate::packages::KERNEL_PACKAGE;
use crate::prepared::Prepared;
use crate::program::text_of;
use crate::scene;

/// Programs of this machine, which tests and netduel call in guests. dash is the shell, because busybox' own prefers its applets, for
/// example `ip`, to the real programs.
const OF_THIS_MACHINE: [&str; 6] = ["dash", "ip", "tc", "ethtool", "ss", "iperf3"];
/// Programs of the fetched packages: the ssh server, and the setting of a NIC's time stamps.
const OF_PACKAGES: [&str; 2] = ["dropbear", "hwstamp_ctl"];
/// Applets that must not hide the programs of the same name.
const NOT_OF_BUSYBOX: [&str; 6] = ["ip", "tc", "ethtool", "ss", "sh", "sha256sum"];
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

fn add_programs(archive: &mut Archive, prepared: &Prepared) -> Result<()> {
    let (busybox, library_path) = (busybox(prepared), prepared.library_path());
    add_file(archive, "bin/busybox", &busybox)?;
    for name in OF_THIS_MACHINE {
        add_program(archive, &library_path, &find(name)?)?;
    }
    for name in OF_PACKAGES {
        add_program(archive, &library_path, &prepared.unpacked(&format!("usr/sbin/{name}")))?;
    }
    archive.link("bin/sh", "dash");
    archive.file("bin/sha256sum", EXECUTABLE, include_bytes!("sha256sum.sh"));
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
