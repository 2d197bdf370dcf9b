//! The processors that files can be made for, with their names in each format, and how a program is started in another root.
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

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
    /// That of this program.
    pub fn native() -> Result<Self> {
        [Self::X86_64, Self::Aarch64]
            .into_iter()
            .find(|machine| machine.name() == std::env::consts::ARCH)
            .with_context(|| {
                format!("failed to name packages for {}: use x86-64 or arm64", std::env::consts::ARCH)
            })
    }

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
}

/// A command that starts a static program in a folder as its root.
pub fn command_in(root: &Path, program: &str) -> Command {
    let mut command = as_root("chroot");
    command.arg(root).arg(program);
    command
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
