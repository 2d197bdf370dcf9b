//! What a user can do about an error of the kernel with a file, a folder or an output. Files are opened elsewhere.
use std::io::{Error, ErrorKind};

/// A disk or a terminal does not work (`EIO` in errno-base.h), for which the standard library has no kind.
const EIO: i32 = 5;
/// Too many open files of the machine and of the process (`ENFILE` and `EMFILE` in errno-base.h).
const NO_DESCRIPTOR: [i32; 2] = [23, 24];

/// About what was to be read; absent where the kernel's error does not show what helps.
pub fn to_read(error: &Error) -> Option<&'static str> {
    let kind = kind(error)?;
    Some(match kind {
        ErrorKind::NotFound | ErrorKind::NotADirectory => "correct its path",
        ErrorKind::IsADirectory => "name a file in this folder",
        ErrorKind::PermissionDenied => "give this user the permission to read it",
        _ => return to_open(error, kind),
    })
}

/// About what was to be written, created, renamed or removed; absent as in [`to_read`].
pub fn to_write(error: &Error) -> Option<&'static str> {
    let kind = kind(error)?;
    Some(match kind {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => "make room there",
        ErrorKind::FileTooLarge => RAISE_FILE_SIZE,
        ErrorKind::NotFound => "make sure that its folder exists",
        ErrorKind::NotADirectory | ErrorKind::AlreadyExists => "move the file that is in place of a folder",
        ErrorKind::IsADirectory => "remove the folder of this name",
        ErrorKind::PermissionDenied => "give this user the permission to write there",
        ErrorKind::ReadOnlyFilesystem => "mount its file system writable",
        _ => return to_open(error, kind),
    })
}

/// About a file that would exceed the limit of file sizes (`EFBIG`).
pub const RAISE_FILE_SIZE: &str = "raise the limit of file sizes (`ulimit -f`, LimitFSIZE= of a service)";

/// About a file for which no descriptor is left (`ENFILE` and `EMFILE`).
const RAISE_OPEN_FILES: &str =
    "raise the limit of open files (`ulimit -n`, LimitNOFILE= of a service, fs.file-max of the machine)";

/// Both remedies: that of the cause, where it is known, and what helps whatever the cause is. A limit holds for all files and places, so
/// that another one does not help.
pub fn remedy(of_cause: Option<&str>, otherwise: &str) -> String {
    match of_cause {
        Some(limit) if [RAISE_FILE_SIZE, RAISE_OPEN_FILES].contains(&limit) => limit.to_owned(),
        Some(of_cause) => format!("{of_cause}, or {otherwise}"),
        None => otherwise.to_owned(),
    }
}

/// The kind of an error of the kernel. One with a text of its own has its cause and its remedy there.
fn kind(error: &Error) -> Option<ErrorKind> {
    error.get_ref().is_none().then(|| error.kind())
}

fn to_open(error: &Error, kind: ErrorKind) -> Option<&'static str> {
    match error.raw_os_error() {
        Some(number) if NO_DESCRIPTOR.contains(&number) => Some(RAISE_OPEN_FILES),
        // Standard input and output may be a terminal, which has this error when it was closed.
        Some(EIO) => Some("check its disk (`dmesg`) or its terminal"),
        _ if kind == ErrorKind::InvalidFilename => Some("choose a shorter name"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_of_the_kernel_has_the_remedy_of_its_cause() {
        let of = |number: i32| Error::from_raw_os_error(number);
        // ENOSPC, EDQUOT, EFBIG, EACCES, EROFS, ENOENT, EISDIR and EMFILE.
        for (number, expected) in [
            (28, "make room"),
            (122, "make room"),
            (27, "`ulimit -f`"),
            (13, "permission to write"),
            (30, "writable"),
            (2, "its folder exists"),
            (21, "remove the folder"),
            (24, "`ulimit -n`"),
        ] {
            assert!(to_write(&of(number)).is_some_and(|text| text.contains(expected)), "{number}");
        }
        for (number, expected) in [(13, "permission to read"), (2, "correct its path"), (23, "`ulimit -n`")] {
            assert!(to_read(&of(number)).is_some_and(|text| text.contains(expected)), "{number}");
        }
        // ENOTTY has none of its own, and a text of netduel has its own.
        let planted = Error::new(ErrorKind::PermissionDenied, "x is a link of another user");
        for error in [of(25), planted] {
            assert_eq!((to_read(&error), to_write(&error)), (None, None), "{error}");
        }
        assert_eq!(remedy(to_write(&of(28)), "use y"), "make room there, or use y");
        assert_eq!(remedy(None, "use y"), "use y");
    }

    #[test]
    fn limit_of_the_process_has_no_other_file_as_its_remedy() {
        // EFBIG, ENFILE and EMFILE.
        for number in [27, 23, 24] {
            let text = remedy(to_write(&Error::from_raw_os_error(number)), "use y");
            assert!(text.starts_with("raise the limit of ") && !text.contains("use y"), "{number}: {text}");
        }
    }
}
