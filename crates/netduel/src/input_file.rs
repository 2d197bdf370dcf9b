//! Files that commands read whole: regular files of a limited size. A pipe may never have a writer and a device may have no end. Nothing here
//! knows their content.
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use rustix::fs::OFlags;

/// Reads a regular file of at most `most` bytes.
pub fn read(path: &Path, most: usize) -> io::Result<Vec<u8>> {
    read_opened(open(path)?, most)
}

/// Reads a regular file of at most `most` bytes of UTF-8 text.
pub fn read_text(path: &Path, most: usize) -> io::Result<String> {
    text_of(read(path, most)?)
}

/// Reads a file of [`open()`], as [`read_text`].
pub fn read_opened_text(file: File, most: usize) -> io::Result<String> {
    text_of(read_opened(file, most)?)
}

/// Opens a regular file. Opening a pipe must not wait for its other end.
pub fn open(path: &Path) -> io::Result<File> {
    let file =
        OpenOptions::new().read(true).custom_flags(OFlags::NONBLOCK.bits().cast_signed()).open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::Error::other("it is not a regular file")) }
}

fn read_opened(file: File, most: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(most as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > most {
        return Err(io::Error::other(format!("it is longer than {} KiB", most >> 10)));
    }
    Ok(bytes)
}

fn text_of(bytes: Vec<u8>) -> io::Result<String> {
    String::from_utf8(bytes).map_err(|_| io::Error::other("it is not UTF-8 text"))
}

#[cfg(test)]
mod tests {
    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use super::*;

    #[test]
    fn pipe_device_and_folder_are_refused_and_a_file_up_to_its_length() {
        let folder = tempfile::tempdir().expect("a folder");
        let (pipe, file) = (folder.path().join("pipe"), folder.path().join("file"));
        mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("a pipe");
        // Each is opened without waiting for a writer, and nothing of it is read.
        for other in [pipe.as_path(), Path::new("/dev/zero"), folder.path()] {
            let error = read_text(other, 8).expect_err("no file").to_string();
            assert_eq!(error, "it is not a regular file", "{}", other.display());
        }
        std::fs::write(&file, "x".repeat(2048)).expect("written");
        assert_eq!(read_text(&file, 2048).expect("read").len(), 2048);
        assert_eq!(read(&file, 2047).expect_err("longer").to_string(), "it is longer than 1 KiB");
        std::fs::write(&file, b"\xff").expect("written");
        assert_eq!(read_text(&file, 8).expect_err("no text").to_string(), "it is not UTF-8 text");
    }
}
