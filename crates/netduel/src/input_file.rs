//! Files that commands read whole: regular files of a limited size, to which no other user has planted a link. A pipe may never have a writer and
//! a device may have no end. No output of the command replaces them. Nothing here knows their content.
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::string::FromUtf8Error;

use netduel_store::folder;
use rustix::fs::OFlags;

use crate::kept_files::note_input;

/// What some editors put before a text.
const BYTE_ORDER_MARK: char = '\u{feff}';
/// The same in UTF-16, of both byte orders.
const UTF16_MARKS: [&[u8]; 2] = [b"\xff\xfe", b"\xfe\xff"];

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
    folder::check_input(path)?;
    let file =
        OpenOptions::new().read(true).custom_flags(OFlags::NONBLOCK.bits().cast_signed()).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    note_input(path);
    Ok(file)
}

/// Opens a file, a device or a pipe, for whose other end it waits.
pub fn open_any(path: &Path) -> io::Result<File> {
    folder::check_input(path)?;
    File::open(path)
}

fn read_opened(file: File, most: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(most as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > most {
        return Err(io::Error::other(format!("it is longer than {} KiB", most >> 10)));
    }
    Ok(bytes)
}

/// The text of a file in UTF-8, without a byte order mark.
pub fn text_of(bytes: Vec<u8>) -> io::Result<String> {
    let text = String::from_utf8(bytes).map_err(|error| no_text(&error))?;
    match text.strip_prefix(BYTE_ORDER_MARK) {
        Some(rest) => Ok(rest.to_owned()),
        None => Ok(text),
    }
}

fn no_text(error: &FromUtf8Error) -> io::Error {
    let bytes = error.as_bytes();
    if UTF16_MARKS.iter().any(|mark| bytes.starts_with(mark)) {
        let text = "it is text in UTF-16; save it as UTF-8, or convert it with `iconv -f UTF-16 -t UTF-8`";
        return io::Error::other(text);
    }
    let valid = bytes.iter().take(error.utf8_error().valid_up_to());
    let line = valid.filter(|byte| **byte == b'\n').count() + 1;
    io::Error::other(format!("it is not UTF-8 text from line {line} on; save it as UTF-8"))
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
        let error = read_text(&file, 8).expect_err("no text").to_string();
        assert_eq!(error, "it is not UTF-8 text from line 1 on; save it as UTF-8");
    }

    #[test]
    fn text_has_no_byte_order_mark_and_another_encoding_is_named() {
        let text = |bytes: &[u8]| text_of(bytes.to_vec()).map_err(|error| error.to_string());
        assert_eq!(text(b"\xef\xbb\xbfname = 1\r\n"), Ok("name = 1\r\n".to_owned()));
        assert_eq!(text("a\u{feff}".as_bytes()), Ok("a\u{feff}".to_owned()));
        let utf16 = text(b"\xff\xfen\0").expect_err("another encoding");
        assert!(utf16.starts_with("it is text in UTF-16; ") && utf16.contains("`iconv "), "{utf16}");
        let latin1 = text(b"a\nb\nc\xe9\n").expect_err("another encoding");
        assert!(latin1.starts_with("it is not UTF-8 text from line 3 on; "), "{latin1}");
    }
}
