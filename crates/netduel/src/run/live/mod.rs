//! The live view: a run on the whole terminal while it works. A thread of its own draws it, so that a slow terminal and a busy machine delay
//! frames only: the coordinator leaves its events in a box and goes on.
mod canvas;
mod screen;
mod state;
mod terminal;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::Builder;
use std::time::Duration;

use netduel_model::event::Event;
use netduel_model::plan::ResolvedPlan;
use netduel_model::trial::Trial;
use netduel_sys::clock::monotonic_ns;

use crate::cli::shared::LiveArgs;
use crate::console;
use crate::signal;
use canvas::{Glyphs, Theme};
use screen::{View, screen};
use state::State;
use terminal::{Key, Terminal, size_of};

/// From this size on a terminal shows the view without `--live`: columns and lines.
const LARGE: (usize, usize) = (100, 30);
/// Time between two looks at keys and events, at least; frames are no more frequent.
const TICK: Duration = Duration::from_millis(100);
/// Time between two frames when nothing happens: the time left goes on.
const REDRAW_NS: u64 = 1_000_000_000;
/// Time for the last frame and the restored terminal. A terminal that takes nothing more must not stop the run.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// Events that the coordinator left for the view, with their times. Live figures replace older ones: frames are dropped, events are not.
#[derive(Default)]
struct Inbox {
    events: Vec<(u64, Event)>,
    progress: [Option<(u64, Event)>; 2],
    is_closed: bool,
}

impl Inbox {
    fn push(&mut self, now_ns: u64, event: &Event) {
        if let Event::TrialProgress { role, .. } = event {
            self.progress[*role as usize] = Some((now_ns, event.clone()));
            return;
        }
        // Figures of the former trial would be taken for those of the next one.
        let progress = std::mem::take(&mut self.progress);
        self.events.extend(progress.into_iter().flatten());
        self.events.push((now_ns, event.clone()));
    }

    fn take(&mut self) -> Vec<(u64, Event)> {
        let mut events = std::mem::take(&mut self.events);
        events.extend(std::mem::take(&mut self.progress).into_iter().flatten());
        events
    }
}

/// What the keys of the view ask of the run.
#[derive(Debug, Clone, Default)]
pub struct Controls {
    paused: Arc<AtomicBool>,
}

impl Controls {
    /// Whether no further trial is to start.
    pub fn is_paused(&self) -> bool {
        self.paused.load(Ordering::Relaxed)
    }

    /// Ends a pause that has lasted its longest time.
    pub fn end_pause(&self) {
        self.paused.store(false, Ordering::Relaxed);
    }

    fn toggle_pause(&self) {
        self.paused.fetch_xor(true, Ordering::Relaxed);
    }
}

/// The live view of a run.
pub struct Live {
    inbox: Arc<Mutex<Inbox>>,
    controls: Controls,
    closed: Receiver<()>,
}

fn locked(inbox: &Mutex<Inbox>) -> MutexGuard<'_, Inbox> {
    // A thread that panicked has left a whole box: it only adds and takes.
    inbox.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Live {
    /// The view of a run.
    pub fn open(args: LiveArgs, quiet: bool, plan: &ResolvedPlan, earlier: &[Trial]) -> Option<Self> {
        Self::open_if_wanted(args, !quiet, || State::new(plan, earlier.to_vec()))
    }

    /// The view of a quick test. It is the default for a test that prints lines for people, and only where standard output is a
    /// terminal too: scripts read these lines.
    pub fn open_for_test(args: LiveArgs, has_lines: bool, plan: &ResolvedPlan) -> Option<Self> {
        let is_default = has_lines && std::io::IsTerminal::is_terminal(&std::io::stdout());
        Self::open_if_wanted(args, is_default, || {
            let mut state = State::new(plan, Vec::new());
            state.is_quick_test = true;
            state
        })
    }

    /// The view when the options ask for it, or when it is the default and the terminal is large. Standard error has to be a terminal that
    /// netduel may use.
    fn open_if_wanted(args: LiveArgs, is_default: bool, state: impl FnOnce() -> State) -> Option<Self> {
        let is_wanted = args.live || is_default;
        if args.no_live || !is_wanted {
            return None;
        }
        let stderr = std::io::stderr();
        let is_terminal = std::io::IsTerminal::is_terminal(&stderr) && console::has_control_sequences();
        if !is_terminal {
            if args.live {
                console::tell(
                    "warning: --live needs a terminal as standard error; progress is printed in lines",
                );
            }
            return None;
        }
        let (width, height) = size_of(&stderr);
        if !args.live && (width < LARGE.0 || height < LARGE.1) {
            return None;
        }
        match Self::start(state()) {
            Ok(live) => Some(live),
            Err(error) => {
                if args.live {
                    console::tell(&format!("warning: failed to show the live view: {error}"));
                }
                None
            }
        }
    }

    fn start(state: State) -> std::io::Result<Self> {
        let interrupted = signal::interrupted()?;
        // The second signal may come before the thread of the view has seen the first one.
        signal::before_end(leave)?;
        let terminal = Terminal::open()?;
        console::hold();
        let inbox = Arc::new(Mutex::new(Inbox::default()));
        let controls = Controls::default();
        let (done, closed) = channel::<()>();
        let drawing = Drawing {
            terminal,
            state,
            view: View {
                details: false,
                help: false,
                theme: if has_colours() { Theme::Dark } else { Theme::Mono },
                glyphs: if has_unicode() { Glyphs::UNICODE } else { Glyphs::ASCII },
                paused: false,
                stopping: false,
            },
            inbox: inbox.clone(),
            controls: controls.clone(),
            interrupted,
        };
        let started = Builder::new().name("live view".to_owned()).spawn(move || {
            drawing.run();
            // Messages go to the terminal again: after an interrupt the run ends without the view.
            console::release();
            // The run may not wait for it any more.
            let _ = done.send(());
        });
        if let Err(error) = started {
            terminal::restore();
            console::release();
            return Err(error);
        }
        Ok(Self { inbox, controls, closed })
    }

    /// What the keys ask of the run.
    pub fn controls(&self) -> Controls {
        self.controls.clone()
    }

    /// Shows an event. Never waits for the terminal.
    pub fn event(&self, event: &Event) {
        locked(&self.inbox).push(monotonic_ns(), event);
    }

    /// Ends the view and restores the terminal.
    pub fn close(self) {
        locked(&self.inbox).is_closed = true;
        let _ = self.closed.recv_timeout(CLOSE_TIMEOUT);
        terminal::restore();
        console::release();
    }
}

/// Restores the terminal, with the messages that the view held back, before the second signal ends the program.
fn leave() {
    terminal::restore_in_turn();
    console::release();
}

/// Whether colours are wanted (no-color.org).
fn has_colours() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// Whether the locale has UTF-8 characters: the first of these variables that is set decides (setlocale(3)).
fn has_unicode() -> bool {
    let set = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(set).unwrap_or_default();
    let locale = locale.to_lowercase();
    locale.contains("utf-8") || locale.contains("utf8")
}

/// The thread of the view.
struct Drawing {
    terminal: Terminal,
    state: State,
    view: View,
    inbox: Arc<Mutex<Inbox>>,
    controls: Controls,
    interrupted: Arc<AtomicBool>,
}

impl Drawing {
    fn run(mut self) {
        let mut drawn_ns = 0;
        let mut size = (0, 0);
        loop {
            let keys = self.terminal.keys(TICK);
            for key in &keys {
                self.press(*key);
            }
            if self.interrupted.load(Ordering::Relaxed) {
                // A last frame would only delay the end.
                return;
            }
            let (events, is_closed) = {
                let mut inbox = locked(&self.inbox);
                (inbox.take(), inbox.is_closed)
            };
            let messages = console::take_shown();
            let now_ns = monotonic_ns();
            let has_changed = !(keys.is_empty() && events.is_empty() && messages.is_empty());
            for (at_ns, event) in &events {
                self.state.apply(event, *at_ns);
            }
            for text in &messages {
                self.state.message(text);
            }
            let is_resized = std::mem::replace(&mut size, self.terminal.size()) != size;
            if has_changed || is_resized || is_closed || now_ns.saturating_sub(drawn_ns) >= REDRAW_NS {
                drawn_ns = now_ns;
                // The run ends a long pause, so the keys alone do not know of it.
                self.view.paused = self.controls.is_paused();
                let lines = screen(&self.state, &self.view, size, now_ns);
                if self.terminal.draw(&lines, self.view.theme).is_err() {
                    return;
                }
            }
            if is_closed {
                return;
            }
        }
    }

    fn press(&mut self, key: Key) {
        match key {
            Key::Stop if !self.view.stopping => {
                self.view.stopping = true;
                let own = rustix::process::getpid();
                // A process may always send itself a signal.
                let _ = rustix::process::kill_process(own, rustix::process::Signal::INT);
            }
            Key::Stop => {}
            Key::Pause if self.state.is_quick_test => {}
            Key::Pause => self.controls.toggle_pause(),
            Key::Details => self.view.details = !self.view.details,
            Key::Theme => self.view.theme = self.view.theme.next(),
            Key::Help => self.view.help = !self.view.help,
        }
    }
}

#[cfg(test)]
mod tests;
