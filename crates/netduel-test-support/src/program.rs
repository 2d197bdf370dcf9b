//! Programs that a test makes and then starts. Another process writes them: a child that another test starts at that moment would
//! inherit the descriptor until it executes its program, and the kernel executes no file that is open for writing (`ETXTBSY`,
//! execve(2)).
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

/// Writes an executable file: the text of a script with its `#!` line, or the bytes of a program.
///
/// # Panics
/// If it cannot be written.
#[track_caller]
pub fn write_program(path: impl AsRef<Path>, content: impl AsRef<[u8]>) {
    let path = path.as_ref();
    let mut shell = Command::new("sh");
    shell.args(["-c", "cat > \"$1\" && chmod 755 \"$1\"", "sh"]).arg(path).stdin(Stdio::piped());
    let mut shell = shell.spawn().expect("sh is installed");
    shell.stdin.take().expect("it is a pipe").write_all(content.as_ref()).expect("the shell reads");
    assert!(shell.wait().expect("it ends").success(), "the program {} cannot be written", path.display());
}

/// Copies a program with its permissions.
///
/// # Panics
/// If it cannot be copied.
#[track_caller]
pub fn copy_program(from: impl AsRef<Path>, to: impl AsRef<Path>) {
    let (from, to) = (from.as_ref(), to.as_ref());
    let copied = Command::new("cp").arg("-p").arg(from).arg(to).status().expect("cp is installed");
    assert!(copied.success(), "{} cannot be copied to {}", from.display(), to.display());
}
