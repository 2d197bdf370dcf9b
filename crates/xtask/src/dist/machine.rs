//! The processors that files are made for: their names in each format, and how a program of one is started here.
use std::path::Path;
use std::process::Command;

use crate::setup;

/// A processor with 64 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Machine {
    /// x86-64.
    X86_64,
    /// arm64.
    Aarch64,
}

impl Machine {
    /// All of them, in the order in which they are built.
    pub const ALL: [Self; 2] = [Self::X86_64, Self::Aarch64];

    /// The name in `uname -m`, in rpm and in Rust.
    pub fn name(self) -> &'static str {
        match self {
            Self::X86_64 => "x86_64",
            Self::Aarch64 => "aarch64",
        }
    }

    /// The name in Debian and in OCI images.
    pub fn debian(self) -> &'static str {
        match self {
            Self::X86_64 => "amd64",
            Self::Aarch64 => "arm64",
        }
    }

    /// The target of rustc.
    pub fn target(self) -> String {
        format!("{}-unknown-linux-gnu", self.name())
    }

    /// Whether it is that of this program.
    pub fn is_native(self) -> bool {
        self.name() == std::env::consts::ARCH
    }

    /// The program of the package qemu-user that runs programs of another processor.
    pub fn emulator(self) -> String {
        format!("qemu-{}", self.name())
    }

    /// The C compiler and linker for another processor, as GCC and Debian name it.
    pub fn cross_compiler(self) -> String {
        format!("{}-linux-gnu-gcc", self.name())
    }

    /// A command that starts a program for it.
    pub fn command(self, program: &Path) -> Command {
        if self.is_native() {
            return Command::new(program);
        }
        let mut command = Command::new(self.emulator());
        command.arg(program);
        command
    }

    /// A command that starts a static program in a folder as its root. The emulator is no part of that folder, so it starts the
    /// program in its place; it finds no library of that processor elsewhere either.
    pub fn command_in(self, root: &Path, program: &str) -> Command {
        if !self.is_native() {
            return self.command(&root.join(program.trim_start_matches('/')));
        }
        let mut command = as_root("chroot");
        command.arg(root).arg(program);
        command
    }
}

/// A command with the rights of root over files of this user: as root, or in a user namespace of its own.
pub fn as_root(program: &str) -> Command {
    if setup::is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("unshare");
    command.args(["--map-root-user", program]);
    command
}
