//! A pseudo-terminal (pty(7)), for programs that are line-buffered on a terminal and fully buffered on a pipe.
use std::io;
use std::os::fd::OwnedFd;

use rustix::fs::{Mode, OFlags, open};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

/// Both ends of a new pseudo-terminal.
#[derive(Debug)]
pub struct Pty {
    /// The controlling end. Reading returns `EIO` when no process has the other end open.
    pub user: OwnedFd,
    /// The end of the program. It does not become the controlling terminal of the process that opens it. Each `\n` written to it
    /// is read as `\r\n`.
    pub program: OwnedFd,
}

impl Pty {
    /// Opens one.
    ///
    /// # Errors
    /// When `/dev/pts` is not mounted, or no pseudo-terminal or descriptor is available.
    pub fn open() -> io::Result<Self> {
        let user = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
        grantpt(&user)?;
        unlockpt(&user)?;
        let name = ptsname(&user, Vec::new())?;
        let program = open(name, OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty())?;
        Ok(Self { user, program })
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::{Read as _, Write as _};

    use super::*;

    #[test]
    fn output_of_the_program_is_read_until_it_closes_its_end() {
        let Pty { user, program } = Pty::open().unwrap();
        let mut program = File::from(program);
        program.write_all(b"ready\n").unwrap();
        let mut user = File::from(user);
        let mut bytes = [0; 64];
        let length = user.read(&mut bytes).unwrap();
        assert_eq!(&bytes[..length], b"ready\r\n");
        drop(program);
        assert_eq!(user.read(&mut bytes).unwrap_err().raw_os_error(), Some(libc::EIO));
    }
}
