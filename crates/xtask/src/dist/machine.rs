//! The processors that files are made for: their names in each format, and how a program of one is started here.
use std::path::Path;
use std::process::Command;

use super::system::output_of;
use crate::{setup, step};

/// A processor with 64 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Machine {
    /// x86-64.
    X86_64,
    /// arm64.
    Aarch64,
}

/// Lets the kernel start programs of another processor through the emulator, in a user namespace of its own (`binfmt_misc`), which ends with
/// the command. `F` keeps the emulator open, so that it is found from another root. Then it becomes the command.
const WITH_EMULATOR: &str = r#"
emulator=$(command -v "$1") && type=$2 && shift 2
mount -t binfmt_misc none /proc/sys/fs/binfmt_misc
mask='\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff'
printf %s ":netduel:M::\\x7fELF\\x02\\x01\\x01\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x02\\x00\\x$type\\x00:$mask:$emulator:F" \
    >/proc/sys/fs/binfmt_misc/register
exec "$@""#;

impl Machine {
    /// All of them, in the order in which they are built.
    pub const ALL: [Self; 2] = [Self::X86_64, Self::Aarch64];

    /// That of a name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|machine| machine.name() == name)
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

    /// Whether it is that of this program.
    pub fn is_native(self) -> bool {
        self.name() == std::env::consts::ARCH
    }

    /// The C compiler and linker for another processor, as GCC and Debian name it.
    pub fn cross_compiler(self) -> String {
        format!("{}-linux-gnu-gcc", self.name())
    }

    /// The static emulator of the package qemu-user-static.
    fn emulator(self) -> String {
        format!("qemu-{}-static", self.name())
    }

    /// Why a program for it cannot be started here, and what to do.
    pub fn obstacle(self) -> Option<String> {
        if self.is_native() {
            return None;
        }
        let emulator = self.emulator();
        if !step::is_installed(&emulator) {
            return Some(format!("there is no {emulator} (Debian: qemu-user-static)"));
        }
        let failed = output_of(&mut self.command("true")).err()?;
        Some(format!(
            "the kernel starts no programs of {} here (Linux 6.7 or newer does): {failed:#}",
            self.name()
        ))
    }

    /// A command that starts one program for it, which starts no other: without a namespace, which takes longer than the program.
    pub fn direct_command(self, program: &Path) -> Command {
        if self.is_native() {
            return Command::new(program);
        }
        let mut command = Command::new(self.emulator());
        command.arg(program);
        command
    }

    /// A command that starts a program for it.
    pub fn command(self, program: &str) -> Command {
        if self.is_native() {
            return Command::new(program);
        }
        // The lowest byte of `e_machine`, elf(5).
        let kind = match self {
            Self::X86_64 => "3e",
            Self::Aarch64 => "b7",
        };
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "--mount", "sh", "-ec", WITH_EMULATOR, "sh"]);
        command.args([&self.emulator(), kind, program]);
        command
    }

    /// A command that starts a static program in a folder as its root.
    pub fn command_in(self, root: &Path, program: &str) -> Command {
        let mut command = if self.is_native() { as_root("chroot") } else { self.command("chroot") };
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machine_has_the_names_of_each_format() {
        let names =
            Machine::ALL.map(|machine| [machine.name(), machine.debian(), &machine.target()].join(" "));
        assert_eq!(
            names,
            ["x86_64 amd64 x86_64-unknown-linux-gnu", "aarch64 arm64 aarch64-unknown-linux-gnu"]
        );
        assert_eq!((Machine::named("aarch64"), Machine::named("sparc64")), (Some(Machine::Aarch64), None));
        assert_eq!(Machine::ALL.iter().filter(|machine| machine.is_native()).count(), 1);
    }
}
