//! The terminal of the live view: keys, frames, and giving it back as it was. Knows nothing of a run.
use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::sync::{Mutex, Once, PoisonError};
use std::time::Duration;

use netduel_report::words;
use netduel_sys::clock;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;
use rustix::process::getpgrp;
use rustix::termios::{
    InputModes, LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcgetpgrp, tcsetattr,
};

use super::canvas::{Line, Theme};

/// The terminal that controls this process, whatever standard input and output are.
const TERMINAL: &str = "/dev/tty";
/// Alternate screen, no cursor, no wrapping: a character wider than one column must not move the next line.
const ENTER: &str = "\u{1b}[?1049h\u{1b}[?25l\u{1b}[?7l\u{1b}[2J";
const LEAVE: &str = "\u{1b}[0m\u{1b}[?7h\u{1b}[?25h\u{1b}[?1049l";
/// Value of a special character that switches it off (`_POSIX_VDISABLE` on Linux).
const DISABLED: u8 = 0;

/// What restores the terminal; absent when it is as it was.
static SAVED: Mutex<Option<(File, Termios)>> = Mutex::new(None);
static PANIC_HOOK: Once = Once::new();

/// A key that does something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    Stop,
    Pause,
    Details,
    Theme,
    Help,
}

impl Key {
    /// The keys among these bytes. An escape sequence, as of an arrow key, is none: it ends what was read.
    pub fn all(bytes: &[u8]) -> Vec<Self> {
        let plain = bytes.iter().take_while(|byte| **byte != 0x1b);
        plain
            .filter_map(|byte| match byte {
                b'q' | b'Q' => Some(Self::Stop),
                b'p' | b'P' => Some(Self::Pause),
                b'd' | b'D' => Some(Self::Details),
                b't' | b'T' => Some(Self::Theme),
                b'?' | b'h' => Some(Self::Help),
                _ => None,
            })
            .collect()
    }
}

/// The terminal in its alternate screen. Dropping it restores the terminal; so does a panic of any thread.
pub struct Terminal {
    file: File,
    /// The frame on the screen, for the lines that changed.
    shown: Vec<String>,
    size: (usize, usize),
}

impl Terminal {
    /// Takes the terminal over.
    ///
    /// # Errors
    /// When there is none, or another process has it: this one runs in the background.
    pub fn open() -> io::Result<Self> {
        let flags = OFlags::NOCTTY.bits().cast_signed();
        let file =
            std::os::unix::fs::OpenOptionsExt::custom_flags(OpenOptions::new().read(true).write(true), flags)
                .open(TERMINAL)?;
        if tcgetpgrp(&file)? != getpgrp() {
            return Err(io::Error::other("netduel runs in the background"));
        }
        let saved = tcgetattr(&file)?;
        let mut own = saved.clone();
        // Ctrl-C stays a signal. A stopped process would leave the terminal in the alternate screen, and so would Ctrl-\; Ctrl-S would stop
        // the frames.
        own.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO);
        own.input_modes.remove(InputModes::IXON);
        for code in [SpecialCodeIndex::VSUSP, SpecialCodeIndex::VQUIT] {
            own.special_codes[code] = DISABLED;
        }
        own.special_codes[SpecialCodeIndex::VMIN] = 0;
        own.special_codes[SpecialCodeIndex::VTIME] = 0;
        let restoring = file.try_clone()?;
        PANIC_HOOK.call_once(|| {
            let before = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |panic| {
                restore();
                before(panic);
            }));
        });
        *SAVED.lock().unwrap_or_else(PoisonError::into_inner) = Some((restoring, saved));
        let mut terminal = Self { file, shown: Vec::new(), size: (0, 0) };
        let entered = tcsetattr(&terminal.file, OptionalActions::Now, &own)
            .map_err(io::Error::from)
            .and_then(|()| terminal.file.write_all(ENTER.as_bytes()));
        entered.map(|()| terminal)
    }

    /// Columns and lines now.
    pub fn size(&self) -> (usize, usize) {
        size_of(&self.file)
    }

    /// The keys that were pressed; waits for the first for this time.
    pub fn keys(&mut self, time: Duration) -> Vec<Key> {
        let timeout = Timespec { tv_sec: 0, tv_nsec: time.subsec_nanos().into() };
        let mut fds = [PollFd::new(&self.file, PollFlags::IN)];
        let mut bytes = [0; 64];
        match poll(&mut fds, Some(&timeout)) {
            Ok(1..) => match self.file.read(&mut bytes) {
                Ok(length) if length > 0 => Key::all(&bytes[..length]),
                // A terminal that has hung up is always readable.
                _ => {
                    clock::sleep_until(clock::monotonic_ns() + time.as_nanos() as u64);
                    Vec::new()
                }
            },
            _ => Vec::new(),
        }
    }

    /// Draws a frame: the lines that differ from those on the screen.
    ///
    /// # Errors
    /// When the terminal is gone, or was restored by a panic.
    pub fn draw(&mut self, lines: &[Line], theme: Theme) -> io::Result<()> {
        let size = self.size();
        let mut bytes = String::new();
        if size != self.size {
            self.size = size;
            self.shown.clear();
            bytes.push_str("\u{1b}[0m\u{1b}[2J");
        }
        let frame: Vec<String> = lines.iter().map(|line| encoded(line, theme)).collect();
        for (row, line) in frame.iter().enumerate() {
            if self.shown.get(row) != Some(line) {
                // A line has the width of the terminal. Erasing its rest would erase its last character, on which the cursor stays.
                let _ = write!(bytes, "\u{1b}[{};1H{line}\u{1b}[0m", row + 1);
            }
        }
        self.shown = frame;
        if SAVED.lock().unwrap_or_else(PoisonError::into_inner).is_none() {
            return Err(io::Error::other("the terminal is restored"));
        }
        self.file.write_all(bytes.as_bytes())
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        restore();
    }
}

/// Columns and lines of a terminal; those of the smallest screen when it does not say.
pub fn size_of(terminal: impl std::os::fd::AsFd) -> (usize, usize) {
    terminal_size::terminal_size_of(terminal)
        .map_or(super::screen::SIZE_MIN, |(width, height)| (usize::from(width.0), usize::from(height.0)))
}

/// A line with the control sequences of its styles.
fn encoded(line: &Line, theme: Theme) -> String {
    let mut text = String::new();
    for (style, piece) in &line.0 {
        // Of a resumed run the name of the plan is whatever its file has.
        let piece = words::plain(piece);
        match theme.sgr(*style) {
            "" => text.push_str(&piece),
            sgr => {
                let _ = write!(text, "\u{1b}[{sgr}m{piece}\u{1b}[0m");
            }
        }
    }
    text
}

/// Gives the terminal back as it was. Does nothing the second time, and while another thread does it.
pub fn restore() {
    // A panic while the lock is held must not wait for itself.
    if let Ok(mut saved) = SAVED.try_lock() {
        give_back(&mut saved);
    }
}

/// As [`restore`], but waits for another thread that does it.
pub fn restore_in_turn() {
    give_back(&mut SAVED.lock().unwrap_or_else(PoisonError::into_inner));
}

fn give_back(saved: &mut Option<(File, Termios)>) {
    if let Some((mut file, modes)) = saved.take() {
        // The terminal may have hung up.
        drop(file.write_all(LEAVE.as_bytes()));
        let _ = tcsetattr(&file, OptionalActions::Flush, &modes);
    }
}

#[cfg(test)]
mod tests {
    use super::super::canvas::Style;
    use super::*;

    #[test]
    fn arrow_keys_and_unknown_keys_do_nothing() {
        assert_eq!(Key::all(b"pq"), [Key::Pause, Key::Stop]);
        assert_eq!(Key::all(b"xd?"), [Key::Details, Key::Help]);
        // Arrow down, and a key F1 whose sequence ends with a letter of a key.
        assert!(Key::all(b"\x1b[B").is_empty() && Key::all(b"\x1bOP").is_empty());
    }

    #[test]
    fn theme_without_colours_has_none() {
        let line = Line::of(Style::Good, "a").with(Style::Accent, "b").with(Style::Bad, "c");
        assert_eq!(encoded(&line, Theme::Mono), "ab\u{1b}[1mc\u{1b}[0m");
        assert!(encoded(&line, Theme::Dark).contains("\u{1b}[92ma"));
    }

    #[test]
    fn sequences_in_a_text_do_not_reach_the_terminal() {
        let line = Line::of(Style::Plain, "x\u{1b}[2J").with(Style::Strong, "y\n\u{9b}1m");
        assert_eq!(encoded(&line, Theme::Mono), "x\u{fffd}[2J\u{1b}[1my \u{fffd}1m\u{1b}[0m");
    }
}
