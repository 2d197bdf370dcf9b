//! Attaches a program to an interface by a link: it runs while the descriptor of the link is open.
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};

use super::call::{Command, call, own};
use super::program::Program;

/// Where a program is attached (include/uapi/linux/bpf.h, `enum bpf_attach_type`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Attach {
    /// Ingress in the driver. On a veth it disables segmentation offload for the peer; to count, use tcx.
    Xdp = 37,
    /// Ingress, before the network stack (Linux 6.6 and later).
    TcxIngress = 46,
    /// Egress, after the network stack and before the queue (Linux 6.6 and later).
    TcxEgress = 47,
}

impl Attach {
    /// The first kernel that has it.
    const fn since(self) -> (u32, u32) {
        match self {
            // `BPF_LINK_CREATE` for XDP.
            Self::Xdp => (5, 9),
            Self::TcxIngress | Self::TcxEgress => (6, 6),
        }
    }
}

/// The start of `union bpf_attr` for `BPF_LINK_CREATE`, with the part for tcx.
#[repr(C)]
#[derive(Default)]
struct LinkAttributes {
    program: u32,
    interface: u32,
    attach_type: u32,
    flags: u32,
    relative: u32,
    padding: u32,
    expected_revision: u64,
}

/// An attached program. Dropping it detaches the program.
#[derive(Debug)]
pub struct Link {
    #[expect(dead_code, reason = "held for its end alone")]
    descriptor: OwnedFd,
}

impl Link {
    /// Attaches `program` to the interface with this index in the calling thread's network namespace, after programs that are already
    /// attached.
    ///
    /// # Errors
    /// `EINVAL` when the program's kind does not fit, `ENODEV` without such an interface, `EBUSY` when another XDP program is attached,
    /// `EPERM` without CAP_NET_ADMIN; an error without a number when the kernel is too old.
    pub fn attach(program: &Program, attach: Attach, interface: u32) -> io::Result<Self> {
        let mut attributes = LinkAttributes {
            program: program.descriptor().as_raw_fd() as u32,
            interface,
            attach_type: attach as u32,
            ..LinkAttributes::default()
        };
        // SAFETY: the structure is that of the command, and holds no address.
        let result = unsafe { call(Command::LinkCreate, &mut attributes) };
        let descriptor = result.map_err(|error| too_old(attach).unwrap_or(error))?;
        // SAFETY: the kernel has just opened it for us.
        let descriptor = unsafe { own(descriptor) };
        Ok(Self { descriptor })
    }
}

/// The error of a kernel without this attachment, which returns `EINVAL` as for any other mistake.
fn too_old(attach: Attach) -> Option<io::Error> {
    let name = rustix::system::uname();
    let release = name.release().to_string_lossy();
    let (major, minor) = attach.since();
    (version(&release)? < (major, minor)).then(|| {
        let words = format!("{attach:?} needs Linux {major}.{minor} or later, and this is {release}");
        io::Error::new(io::ErrorKind::Unsupported, words)
    })
}

/// The first two numbers of a kernel's release.
fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|character: char| !character.is_ascii_digit()).map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_is_parsed_from_releases_of_all_kinds() {
        assert_eq!(version("6.18.44-fc-v669"), Some((6, 18)));
        assert_eq!(version("5.9"), Some((5, 9)));
        assert_eq!(version("6"), None);
        assert!((5, 15) < Attach::TcxIngress.since() && (6, 18) > Attach::TcxEgress.since());
    }
}
