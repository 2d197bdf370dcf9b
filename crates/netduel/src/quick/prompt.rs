//! Asks for one line on the terminal of standard input without showing it. The terminal's settings are restored before every return;
//! Ctrl-C arrives as a character, so that no signal from the keyboard ends the program in between.
use std::io::{self, Read as _, Write as _};

use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

/// Ctrl-C, Ctrl-D and Ctrl-\ as characters.
const INTERRUPT: [u8; 3] = [3, 4, 0x1c];
/// Backspace, as terminals send it.
const BACKSPACE: [u8; 2] = [8, 0x7f];

/// Restores the settings when it is dropped.
struct Unseen(Termios);

impl Unseen {
    fn begin() -> io::Result<Self> {
        let before = tcgetattr(io::stdin())?;
        let mut unseen = before.clone();
        unseen.local_modes.remove(LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG);
        tcsetattr(io::stdin(), OptionalActions::Drain, &unseen)?;
        Ok(Self(before))
    }
}

impl Drop for Unseen {
    fn drop(&mut self) {
        // The terminal may be gone.
        let _ = tcsetattr(io::stdin(), OptionalActions::Drain, &self.0);
    }
}

/// The line, without its end; `None` after Ctrl-C.
///
/// # Errors
/// Errors of the terminal; `InvalidData` for a line that is longer than `length_max` bytes, or no UTF-8.
pub fn line(question: &str, length_max: u64) -> io::Result<Option<String>> {
    let unseen = Unseen::begin()?;
    let mut terminal = io::stderr();
    // A question that cannot be written may still be answered.
    drop(terminal.write_all(question.as_bytes()).and_then(|()| terminal.flush()));
    let mut line = Vec::new();
    let answer = loop {
        let mut byte = [0];
        match io::stdin().read(&mut byte) {
            Ok(0) => break Ok(true),
            Ok(_) if matches!(byte[0], b'\n' | b'\r') => break Ok(true),
            Ok(_) if INTERRUPT.contains(&byte[0]) => break Ok(false),
            Ok(_) if BACKSPACE.contains(&byte[0]) => drop(line.pop()),
            Ok(_) if line.len() as u64 == length_max => {
                break Err(io::Error::new(io::ErrorKind::InvalidData, "the line is too long"));
            }
            Ok(_) => line.push(byte[0]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => break Err(error),
        }
    };
    drop(unseen);
    drop(writeln!(terminal));
    if !answer? {
        return Ok(None);
    }
    String::from_utf8(line).map(Some).map_err(|_| io::Error::from(io::ErrorKind::InvalidData))
}
