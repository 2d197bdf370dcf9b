//! The live view in a real terminal: its screens, its keys, and the terminal afterwards.
use rustix::process::Signal;

use crate::serve::Server;
use crate::support::{Bench, LATENCY, PACED, TWO_PATHS, short_plan, signal, signal_those_left, until};
use crate::tmux::Tmux;

/// A shell without the settings of a user.
const SHELL: &str = "sh";
/// Control sequences that begin and end the alternate screen (xterm; `smcup` and `rmcup` in terminfo(5)).
const ALTERNATE: (&str, &str) = ("\u{1b}[?1049h", "\u{1b}[?1049l");
/// What begins the words of every verdict.
const VERDICTS: [&str; 5] =
    ["better: ", "worse: ", "no difference beyond ", "inconclusive: ", "not comparable: "];

/// Starts a run of two paths; `blocks` of them, so that it lasts until it is stopped or ends soon.
pub fn started<'b>(bench: &'b Bench, size: (u16, u16), blocks: u32, options: &str) -> Option<Tmux<'b>> {
    started_with("", bench, size, blocks, options)
}

/// As [`started`], with a variable in the environment of the run alone.
fn started_with<'b>(
    variable: &str,
    bench: &'b Bench,
    size: (u16, u16),
    blocks: u32,
    options: &str,
) -> Option<Tmux<'b>> {
    let workloads = format!("{PACED}{LATENCY}");
    bench.plan(&short_plan(TWO_PATHS, &workloads, &format!("blocks_min = {blocks}\nblocks_max = {blocks}")));
    let tmux = Tmux::start(bench, size, SHELL)?;
    tmux.send(&format!("{variable} netduel run plan.toml {options}; echo ended with $?"));
    tmux.press("Enter");
    Some(tmux)
}

/// The modes of the terminal, as stty prints them: echo and line editing as before.
pub fn assert_restored(tmux: &Tmux<'_>) {
    assert!(!tmux.is_alternate());
    tmux.send("clear; stty -a");
    tmux.press("Enter");
    let modes = tmux.wait_for("its modes", |screen| screen.contains("echoke"));
    for mode in [" icanon", " ixon", " echo ", "susp = ^Z", "quit = ^\\"] {
        assert!(modes.contains(mode), "{mode} is not restored:\n{modes}");
    }
}

#[test]
fn run_is_shown_on_terminals_of_three_sizes_and_its_verdicts_stay() {
    for size in [(80, 24), (120, 40), (200, 60)] {
        let bench = Bench::new();
        let Some(tmux) = started(&bench, size, 6, "--live") else { return };
        let parts = [
            "Arms",
            "synthetic",
            "accelerated",
            "Comparisons with synthetic",
            "Blocks: ",
            "CPU by core",
            "q stop",
        ];
        // A screen that is read while a frame is drawn has parts of two.
        let screen = tmux.wait_for("a comparison with all parts and the last column", |screen| {
            screen.contains("stream throughput")
                && parts.iter().all(|part| screen.contains(part))
                && screen.lines().next().is_some_and(|first| first.ends_with(" of 6"))
                && (size.1 < 50 || VERDICTS.iter().any(|words| screen.contains(words)))
        });
        assert_eq!(screen.lines().count(), usize::from(size.1), "{screen}");
        let last = tmux.wait_for("the end", |screen| screen.contains("ended with 0"));
        assert!(
            last.contains("Details: netduel report") || last.contains("details: netduel report"),
            "{last}"
        );
        assert!(VERDICTS.iter().any(|words| last.contains(words)), "{size:?} has no verdict:\n{last}");
        assert_had_view(&tmux, "Comparisons with synthetic");
        assert_restored(&tmux);
        bench.run(["report", "last"]).expect_code(0);
        drop(tmux);
        bench.assert_nothing_left();
    }
}

#[test]
fn key_q_stops_the_run_cleanly_and_restores_the_terminal() {
    let bench = Bench::new();
    let Some(tmux) = started(&bench, (100, 30), 500, "") else { return };
    tmux.wait_for("a finished trial", |screen| screen.contains("1 valid"));
    tmux.press("q");
    let screen = tmux.wait_for("the end", |screen| screen.contains("ended with 130"));
    assert!(screen.contains("finished trials are kept"), "{screen}");
    assert_restored(&tmux);
    drop(tmux);
    bench.assert_nothing_left();
}

#[test]
fn key_p_pauses_after_the_trial_in_flight_and_continues() {
    let bench = Bench::new();
    let Some(tmux) = started(&bench, (100, 30), 500, "") else { return };
    tmux.wait_for("a finished trial", |screen| screen.contains("1 valid"));
    tmux.press("p");
    let paused = tmux.wait_for("the pause", |screen| screen.contains("paused: p resumes"));
    let count = |screen: &str| screen.lines().find(|line| line.starts_with("Blocks")).map(str::to_owned);
    tmux.press("p");
    tmux.wait_for("the next trial", |screen| count(screen) != count(&paused));
    tmux.press("q");
    tmux.wait_for("the end", |screen| screen.contains("ended with 130"));
}

#[test]
fn keys_show_help_and_details_and_a_new_size_is_filled() {
    let bench = Bench::new();
    let Some(tmux) = started(&bench, (100, 30), 500, "") else { return };
    tmux.wait_for("the view", |screen| screen.contains("q stop"));
    tmux.press("?");
    tmux.wait_for("the help", |screen| screen.contains("as the first Ctrl-C does"));
    tmux.press("?");
    tmux.press("d");
    // Which one it is depends on the blocks that are finished by then.
    tmux.wait_for("verdicts", |screen| VERDICTS.iter().any(|words| screen.contains(words)));
    tmux.resize(160, 45);
    tmux.wait_for("two columns", |screen| screen.lines().filter(|line| line.contains('│')).count() > 30);
    tmux.resize(80, 24);
    // What a terminal cuts off has neither the end of the first line nor the last one.
    tmux.wait_for("a smaller screen", |screen| {
        screen.lines().next().is_some_and(|first| first.ends_with(" of 500"))
            && screen.lines().last().is_some_and(|last| last.contains("q stop"))
    });
    tmux.press("q");
    tmux.wait_for("the end", |screen| screen.contains("ended with 130"));
}

#[test]
fn key_t_selects_the_theme_and_no_color_starts_without_colours() {
    let (dark, bright, none) = ((true, false), (false, true), (false, false));
    // By the variable: the colours at the start, and those after each press of the key. An empty variable does not count
    // (no-color.org).
    for (variable, themes) in [
        ("", [bright, dark, none, bright]),
        ("NO_COLOR=", [bright, dark, none, bright]),
        ("NO_COLOR=1", [none, bright, dark, none]),
    ] {
        let bench = Bench::new();
        let Some(tmux) = started_with(variable, &bench, (100, 30), 500, "") else { return };
        let [first, others @ ..] = themes;
        // A valid trial has a colour, so that a screen without one means something.
        tmux.wait_for_colours(&format!("{variable:?}"), "1 valid", first);
        for theme in others {
            tmux.press("t");
            tmux.wait_for_colours(&format!("{variable:?} and the theme {theme:?}"), "q stop", theme);
        }
        tmux.press("q");
        tmux.wait_for("the end", |screen| screen.contains("ended with 130"));
    }
}

/// Whether the command has ended: the shell has printed its exit code, not only the command that was typed.
fn has_ended(screen: &str) -> bool {
    screen.split("ended with ").skip(1).any(|code| code.starts_with(|first: char| first.is_ascii_digit()))
}

/// Waits for the end of a command that prints lines: no screen on the way has the view.
fn assert_has_lines(tmux: &Tmux<'_>) -> String {
    tmux.wait_for("the end", |screen| {
        assert!(!screen.contains("q stop"), "{screen}");
        has_ended(screen)
    })
}

#[test]
fn small_terminal_and_no_live_have_lines() {
    let bench = Bench::new();
    for (size, options) in [((99, 30), ""), ((120, 40), "--no-live")] {
        let Some(tmux) = started(&bench, size, 1, options) else { return };
        assert_has_lines(&tmux);
    }
}

#[test]
fn signal_restores_the_terminal() {
    let bench = Bench::new();
    let Some(tmux) = started(&bench, (100, 30), 500, "") else { return };
    tmux.wait_for("a finished trial", |screen| screen.contains("1 valid"));
    let run = bench.find(&["run", "plan.toml"]);
    signal(*run.first().expect("the run"), Signal::TERM);
    tmux.wait_for("the end", |screen| screen.contains("ended with 130"));
    assert_restored(&tmux);
}

#[test]
fn second_signal_right_after_the_first_restores_the_terminal() {
    let bench = Bench::new();
    let Some(tmux) = started(&bench, (100, 30), 500, "") else { return };
    tmux.wait_for("a finished trial", |screen| screen.contains("1 valid"));
    let run = *bench.find(&["run", "plan.toml"]).first().expect("the run");
    signal(run, Signal::INT);
    // A second one of the same kind is none while the first waits for the process.
    signal_those_left([run], Signal::TERM);
    tmux.wait_for("the end", |screen| screen.contains("ended with 130"));
    assert_restored(&tmux);
    drop(tmux);
    bench.assert_nothing_left();
}

#[test]
fn redacted_view_and_bars_show_no_name() {
    let user = "mallory7";
    for option in ["--live", "--no-live"] {
        let bench = Bench::new();
        let plan = short_plan(TWO_PATHS, &format!("{PACED}{LATENCY}"), "blocks_min = 2\nblocks_max = 2");
        // The question shows that it is the name of a user.
        let plan = plan
            .replace("Which path is faster?", &format!("Is /Users/{user} faster?"))
            .replace("name = \"short\"", &format!("name = \"by-{user}\""))
            .replace("name = \"accelerated\"", &format!("name = \"for-{user}\""));
        assert_eq!(plan.matches(user).count(), 3, "{plan}");
        bench.plan(&plan);
        let Some(tmux) = Tmux::start(&bench, (120, 40), SHELL) else { return };
        tmux.send(&format!("netduel run plan.toml --redact {option}; echo ended with $?"));
        tmux.press("Enter");
        tmux.wait_for("the end", has_ended);
        if option == "--live" {
            assert_had_view(&tmux, "for-user-1");
        }
        assert!(until(|| tmux.recorded().contains("for-user-1")), "{option}: {:?}", tmux.recorded());
        assert!(!tmux.recorded().contains(user), "{option} shows {user}: {:?}", tmux.recorded());
    }
}

/// A stream that a machine whose cores are busy for minutes does not end.
const LONG: &str = r#"
[[workloads]]
name = "stream"
type = "tcp-stream"
rate = "20 Mbit/s"
duration = "600 s"
warmup = "100 ms"
cooldown = "0 ms"
congestion = "cubic"
"#;

/// The arm whose stream is in flight with a rate, as the view has it.
fn arm_in_flight(screen: &str) -> Option<&str> {
    let trial = screen.lines().find_map(|line| line.trim_start().strip_prefix("now  stream over "))?;
    trial.split_whitespace().next().filter(|_| trial.contains("bit/s"))
}

#[test]
fn agent_killed_in_a_trial_excludes_it_in_the_view_which_goes_on() {
    let bench = Bench::new();
    bench.plan(&short_plan(TWO_PATHS, LONG, "blocks_min = 2\nblocks_max = 2"));
    let size = (100, 30);
    let Some(tmux) = Tmux::start(&bench, size, SHELL) else { return };
    tmux.send("netduel run plan.toml; echo ended with $?");
    tmux.press("Enter");
    let screen = tmux.wait_for("traffic", |screen| arm_in_flight(screen).is_some());
    let first = arm_in_flight(&screen).unwrap_or_default();
    // The process inside the lab, not the wrapper that waits for it.
    let wrappers = bench.find(&["lab", "exec"]);
    let agent = bench.find(&["agent"]).into_iter().find(|pid| !wrappers.contains(pid));
    signal(agent.expect("no agent runs"), Signal::KILL);
    let row = format!("stream {first} ");
    let is_failed = |line: &str| line.trim_start().starts_with(&row) && line.contains('!');
    tmux.wait_for("the failed trial and the traffic of the next one", |screen| {
        screen.contains("Blocks: 0 valid, 1 excluded")
            && screen.lines().any(is_failed)
            && arm_in_flight(screen).is_some_and(|arm| arm != first)
    });
    assert!(tmux.is_alternate());
    tmux.press("q");
    let last = tmux.wait_for("the end", has_ended);
    assert!(last.contains("ended with 130"), "{last}");
    assert_had_view(&tmux, "1 excluded");
    assert_eq!(foreign_texts(&tmux.recorded(), size.0.into()), Vec::<String>::new());
    assert_restored(&tmux);
    drop(tmux);
    bench.assert_nothing_left();
}

/// What a terminal of this width got while it had the view and that is no line of it: the view places each line, which fills the width.
fn foreign_texts(recorded: &str, width: usize) -> Vec<String> {
    let view = recorded.split_once(ALTERNATE.0).and_then(|(_, rest)| rest.split_once(ALTERNATE.1));
    let (view, _) = view.expect("a view");
    let mut parts = view.split("\u{1b}[");
    let mut lines = vec![parts.next().unwrap_or_default().to_owned()];
    for part in parts {
        // A control sequence ends with a character of this range (ECMA-48); H moves the cursor.
        let length = part.find(|c: char| ('@'..='~').contains(&c)).map_or(0, |at| at + 1);
        let (sequence, text) = part.split_at(length);
        if sequence.ends_with('H') {
            lines.push(String::new());
        }
        lines.last_mut().expect("the first line").push_str(text);
    }
    let is_of_view = |line: &str| line.chars().count() == width && !line.contains(char::is_control);
    let (before, lines) = lines.split_first().expect("the first line");
    let before = Some(before).filter(|text| !text.is_empty());
    before.into_iter().chain(lines.iter().filter(|line| !is_of_view(line))).cloned().collect()
}

#[test]
fn text_of_another_program_in_a_view_is_found() {
    let (enter, leave) = ALTERNATE;
    let frame = "\u{1b}[0m\u{1b}[2J\u{1b}[1;1Hab\u{1b}[91mc\u{1b}[0m\u{1b}[0m\u{1b}[2;1Hdef\u{1b}[0m";
    let with = |text: &str| format!("$ run\r\n{enter}{frame}{text}\u{1b}[?25h{leave}done\r\n");
    assert!(foreign_texts(&with(""), 3).is_empty());
    assert_eq!(foreign_texts(&with("Killed\r\n"), 3), ["defKilled\r\n"]);
    assert_eq!(foreign_texts(&with("\u{1b}[1;1Hx"), 3), ["x"]);
}

/// Waits until the record of a terminal has the view in its alternate screen, with this text, and its end.
#[track_caller]
fn assert_had_view(tmux: &Tmux<'_>, text: &str) {
    let has_view = || {
        let all = tmux.recorded();
        let view = all.split_once(ALTERNATE.0).and_then(|(_, rest)| rest.split_once(ALTERNATE.1));
        view.is_some_and(|(view, _)| view.contains("q stop") && view.contains(text))
    };
    assert!(until(has_view), "no view with {text:?}: {:?}", tmux.recorded());
}

/// Starts a quick test of so many seconds.
fn quick_test<'s>(server: &'s Server, size: (u16, u16), seconds: u32, options: &str) -> Option<Tmux<'s>> {
    let tmux = Tmux::start(&server.bench, size, SHELL)?;
    tmux.send(&format!("netduel tcp {} -t {seconds} -b 20M {options}; echo ended with $?", server.string));
    tmux.press("Enter");
    Some(tmux)
}

#[test]
fn quick_test_is_shown_and_its_lines_are_printed_at_the_end() {
    let server = Server::start(&[]);
    for (size, options) in [((80, 24), "--live"), ((100, 30), "")] {
        let Some(tmux) = quick_test(&server, size, 2, options) else { return };
        let screen = tmux.wait_for("the end", |screen| screen.contains("ended with 0"));
        assert!(!tmux.is_alternate() && screen.contains("bottleneck"), "{screen}");
        assert_had_view(&tmux, "bit/s");
    }
    server.end();
}

#[test]
fn key_q_stops_a_quick_test_and_restores_the_terminal() {
    let server = Server::start(&[]);
    let Some(tmux) = quick_test(&server, (100, 30), 600, "") else { return };
    tmux.wait_for("a rate", |screen| screen.contains("q stop") && screen.contains("bit/s"));
    tmux.press("q");
    tmux.wait_for("the end", |screen| screen.contains("ended with 130"));
    assert_restored(&tmux);
    drop(tmux);
    server.end();
}

#[test]
fn quick_test_for_a_reader_of_lines_has_no_view() {
    let server = Server::start(&[]);
    // A size each: the server of a terminal is named after its size, and the former one may not have ended.
    for (size, options) in
        [((99, 30), ""), ((120, 40), "--no-live"), ((121, 40), "| cat"), ((122, 40), "--quiet")]
    {
        let Some(tmux) = quick_test(&server, size, 2, options) else { return };
        let screen = assert_has_lines(&tmux);
        assert!(screen.contains("bottleneck"), "{size:?} {options}: {screen}");
        assert!(!tmux.recorded().contains(ALTERNATE.0), "{size:?} {options} had a view");
    }
    server.end();
}
