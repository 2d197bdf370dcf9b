//! Parser of the output of `cargo test -- --show-output`: results, skips, failures with their texts, crashed binaries. No IO.
use std::collections::BTreeMap;

use netduel_test_support::{NOT_COMPARED, SKIPPED};

/// Start of the line that cargo prints before it tests the documentation of a crate.
const DOC_TESTS: &str = "   Doc-tests ";

/// Start of each line of libtest's list of failed tests.
const LISTED: &str = "    ";

/// A skipped test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skip {
    /// The binary and the test, or the binary alone when a child process printed it.
    pub test: String,
    /// The reason, as printed by the test.
    pub reason: String,
    /// Whether libtest counted the test as passed, because it printed `skipped: <reason>` and returned.
    pub counted_as_passed: bool,
}

/// The section of a binary's output.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
enum Section {
    /// Tests are running.
    #[default]
    Running,
    /// The captured output of passed tests, with the current test.
    Successes(Option<String>),
    /// The captured output of failed tests, with the current test.
    Failures(Option<String>),
}

/// The parser state for a whole `cargo test`.
#[derive(Debug, Default)]
pub struct Transcript {
    section: Section,
    binary: String,
    /// The crate whose unit tests ran last; its integration tests follow.
    unit: Option<String>,
    is_open: bool,
    /// cargo's summary lines, one per binary.
    pub results: Vec<String>,
    /// Skipped tests.
    pub skips: Vec<Skip>,
    /// Comparisons of passed tests that other programs disturbed: the test and the reason.
    pub not_compared: Vec<(String, String)>,
    /// Failed tests.
    pub failures: Vec<String>,
    /// The output of each failed test, by name.
    pub failure_texts: BTreeMap<String, String>,
    /// Time of the tests of each binary, seconds.
    pub seconds: BTreeMap<String, f64>,
    /// Binaries without a result: killed, aborted, or ended by `exit`.
    pub died: Vec<String>,
    libtest_passed: u64,
    libtest_failed: u64,
}

impl Transcript {
    /// That of one test binary, which was not started by cargo.
    pub fn of_binary(name: &str) -> Self {
        Self { binary: name.to_owned(), ..Self::default() }
    }

    /// Adds the results of another binary.
    pub fn absorb(&mut self, other: Self) {
        self.results.extend(other.results);
        self.skips.extend(other.skips);
        self.not_compared.extend(other.not_compared);
        self.failures.extend(other.failures);
        self.failure_texts.extend(other.failure_texts);
        for (binary, seconds) in other.seconds {
            *self.seconds.entry(binary).or_default() += seconds;
        }
        self.died.extend(other.died);
        self.libtest_passed += other.libtest_passed;
        self.libtest_failed += other.libtest_failed;
    }

    /// Parses the next line. Returns whether to show it: output of passed tests is hidden, and summary lines are printed at the
    /// end.
    pub fn take(&mut self, line: &str) -> bool {
        if let Some(binary) = binary_of(line) {
            self.close();
            self.enter(line, binary);
            return true;
        }
        if is_beginning(line) {
            self.is_open = true;
            self.section = Section::Running;
            return true;
        }
        if line.starts_with("test result: ") {
            self.take_result(line);
            return false;
        }
        match line {
            "successes:" => self.section = Section::Successes(None),
            "failures:" => self.section = Section::Failures(None),
            _ => return self.take_plain(line),
        }
        matches!(self.section, Section::Failures(_))
    }

    /// Integration tests carry the name of their crate, because the binary is called `it` in every crate.
    fn enter(&mut self, line: &str, binary: &str) {
        if line.contains(" unittests ") {
            self.unit = Some(binary.to_owned());
        }
        self.binary = match &self.unit {
            Some(unit) if line.contains(" tests/") => format!("{unit}/{binary}"),
            _ if line.starts_with(DOC_TESTS) => format!("{binary} (documentation)"),
            _ => binary.to_owned(),
        };
    }

    /// The output is complete.
    pub fn close(&mut self) {
        if self.is_open {
            self.died.push(self.binary.clone());
        }
        self.is_open = false;
        self.section = Section::Running;
    }

    /// Number of passed tests.
    pub fn passed(&self) -> u64 {
        let pretended = self.skips.iter().filter(|skip| skip.counted_as_passed).count() as u64;
        self.libtest_passed.saturating_sub(pretended)
    }

    /// Number of failed tests; a crashed binary counts as one.
    pub fn failed(&self) -> u64 {
        self.libtest_failed + self.died.len() as u64
    }

    fn take_result(&mut self, line: &str) {
        self.libtest_passed += number_before(line, "passed");
        self.libtest_failed += number_before(line, "failed");
        if let Some(seconds) = line
            .rsplit_once("finished in ")
            .and_then(|(_, time)| time.trim_end_matches('s').parse::<f64>().ok())
        {
            *self.seconds.entry(self.binary.clone()).or_default() += seconds;
        }
        self.results.push(line.to_owned());
        self.is_open = false;
        self.section = Section::Running;
    }

    fn take_plain(&mut self, line: &str) -> bool {
        match &mut self.section {
            Section::Running => {
                self.take_running(line);
                true
            }
            Section::Failures(test) => {
                // A child process can write into the middle of the line `test x ... FAILED`; these name it for certain.
                let named =
                    captured_of(line).or_else(|| line.strip_prefix(LISTED).filter(|_| test.is_none()));
                if let Some(name) = named.map(str::to_owned) {
                    *test = captured_of(line).map(str::to_owned);
                    self.fail(&name);
                } else if let Some(test) = test.clone() {
                    let text = self.failure_texts.entry(self.full_name(Some(&test))).or_default();
                    text.push_str(line);
                    text.push('\n');
                }
                true
            }
            Section::Successes(test) => {
                if let Some(name) = captured_of(line) {
                    *test = Some(name.to_owned());
                } else if let Some(reason) = line.trim_start().strip_prefix(SKIPPED) {
                    let test = test.clone();
                    self.skip(test.as_deref(), reason, true);
                } else if let Some(reason) = line.trim_start().strip_prefix(NOT_COMPARED) {
                    let test = test.clone();
                    self.not_compared.push((self.full_name(test.as_deref()), reason.trim().to_owned()));
                }
                false
            }
        }
    }

    fn take_running(&mut self, line: &str) {
        if let Some(reason) = line.trim_start().strip_prefix(SKIPPED) {
            self.skip(None, reason, true);
            return;
        }
        let Some((name, ending)) = line.strip_prefix("test ").and_then(|rest| rest.rsplit_once(" ... "))
        else {
            return;
        };
        if ending == "FAILED" {
            self.fail(name);
        } else if ending == "ignored" || ending.starts_with("ignored, ") {
            self.skip(Some(name), ending, false);
        }
    }

    fn fail(&mut self, test: &str) {
        let test = self.full_name(Some(test));
        if !self.failures.contains(&test) {
            self.failures.push(test);
        }
    }

    fn skip(&mut self, test: Option<&str>, reason: &str, counted_as_passed: bool) {
        let test = self.full_name(test);
        let reason = reason.trim();
        match self.skips.iter_mut().find(|skip| skip.test == test) {
            Some(skip) => skip.reason = format!("{}; {reason}", skip.reason),
            None => self.skips.push(Skip { test, reason: reason.to_owned(), counted_as_passed }),
        }
    }

    fn full_name(&self, test: Option<&str>) -> String {
        match test {
            Some(test) => format!("{} {test}", self.binary),
            None => self.binary.clone(),
        }
    }
}

/// The next binary, without folder and hash: `     Running unittests src/lib.rs (target/debug/deps/a-1f)`.
fn binary_of(line: &str) -> Option<&str> {
    if let Some(name) = line.strip_prefix(DOC_TESTS) {
        return Some(name);
    }
    let path = line.strip_prefix("     Running ")?.rsplit_once(" (")?.1.strip_suffix(')')?;
    let file = path.rsplit_once('/').map_or(path, |(_, file)| file);
    Some(file.rsplit_once('-').map_or(file, |(name, _)| name))
}

/// The test whose captured output follows: `---- name stdout ----`.
fn captured_of(line: &str) -> Option<&str> {
    line.strip_prefix("---- ")?.strip_suffix(" stdout ----")
}

/// Whether a line is libtest's `running 5 tests`.
fn is_beginning(line: &str) -> bool {
    let count = line
        .strip_prefix("running ")
        .and_then(|rest| rest.strip_suffix(" tests").or_else(|| rest.strip_suffix(" test")));
    count.is_some_and(|count| count.parse::<u64>().is_ok())
}

/// The number directly before a word: 5 in `test result: ok. 5 passed; 0 failed`.
fn number_before(line: &str, word: &str) -> u64 {
    let words: Vec<&str> = line.split_whitespace().map(|part| part.trim_end_matches([';', '.'])).collect();
    words.windows(2).find(|pair| pair[1] == word).and_then(|pair| pair[0].parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (Transcript, String) {
        let mut transcript = Transcript::default();
        let mut shown = String::new();
        for line in text.lines() {
            if transcript.take(line) {
                shown.push_str(line);
                shown.push('\n');
            }
        }
        transcript.close();
        (transcript, shown)
    }

    const ONE_BINARY: &str = "     Running unittests src/lib.rs (target/debug/deps/netduel_sys-0a1b)

running 4 tests
test udp::loses ... FAILED
test udp::needs_root ... ok
test udp::prints ... ok
test udp::slow ... ignored, takes an hour

successes:

---- udp::needs_root stdout ----
skipped: no permission to make a network namespace

---- udp::prints stdout ----
running away from skipped tests


successes:
    udp::needs_root
    udp::prints

failures:

---- udp::loses stdout ----
skipped: this is not a skip, the test failed

failures:
    udp::loses

test result: FAILED. 2 passed; 1 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s
";

    #[test]
    fn a_skipped_test_is_not_a_passed_one() {
        let (transcript, _) = read(ONE_BINARY);
        assert_eq!((transcript.passed(), transcript.failed()), (1, 1));
        let skips: Vec<(&str, &str)> =
            transcript.skips.iter().map(|skip| (skip.test.as_str(), skip.reason.as_str())).collect();
        assert_eq!(
            skips,
            [
                ("netduel_sys udp::slow", "ignored, takes an hour"),
                ("netduel_sys udp::needs_root", "no permission to make a network namespace"),
            ]
        );
    }

    #[test]
    fn comparison_that_was_disturbed_is_listed_and_its_test_passed() {
        let (transcript, _) = read(
            "     Running tests/it/main.rs (target/debug/deps/it-1f)\n\nrunning 1 test\ntest cap ... ok\n\nsuccesses:\n\n\
             ---- cap stdout ----\nnot compared: 1gbit: the machine stalled\n\n\nsuccesses:\n    cap\n\n\
             test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1.00s\n",
        );
        assert_eq!((transcript.passed(), transcript.failed(), transcript.skips.len()), (1, 0, 0));
        let [(test, reason)] = transcript.not_compared.as_slice() else {
            panic!("{:?}", transcript.not_compared)
        };
        assert!(test.ends_with(" cap"), "{test}");
        assert_eq!(reason, "1gbit: the machine stalled");
    }

    #[test]
    fn output_of_passed_tests_is_hidden_and_that_of_failed_ones_shown() {
        let (transcript, shown) = read(ONE_BINARY);
        assert!(!shown.contains("running away"), "{shown}");
        assert!(shown.contains("this is not a skip"), "{shown}");
        assert!(!shown.contains("test result"), "kept for the end: {shown}");
        assert_eq!(transcript.results.len(), 1);
        assert_eq!(transcript.failures, ["netduel_sys udp::loses"]);
        let text = &transcript.failure_texts["netduel_sys udp::loses"];
        assert_eq!(text.trim(), "skipped: this is not a skip, the test failed");
    }

    /// A child process wrote into the line of the test, which printed nothing; another one printed.
    #[test]
    fn failed_test_whose_line_was_broken_is_named_once() {
        let (transcript, _) = read(
            "     Running tests/it/main.rs (target/debug/deps/it-1f)

running 3 tests
test silent ... a child's line
FAILED
test loud ... another line
FAILED
test plain ... FAILED

failures:

---- loud stdout ----
    four spaces before a panic's text

failures:
    loud
    plain
    silent

test result: FAILED. 0 passed; 3 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s
",
        );
        assert_eq!(transcript.failures, ["it plain", "it loud", "it silent"]);
        let text = &transcript.failure_texts["it loud"];
        assert_eq!(text.trim(), "four spaces before a panic's text");
    }

    #[test]
    fn binary_without_a_result_counts_as_crashed() {
        let text = "     Running tests/it/main.rs (target/debug/deps/it-77)\nrunning 2 tests\ntest a ... ok\n   \
                    Doc-tests netduel_model\n\nrunning 0 tests\n\ntest result: ok. 0 passed; 0 failed; 0 ignored\n";
        let (transcript, _) = read(text);
        assert_eq!(transcript.died, ["it"]);
        assert_eq!((transcript.passed(), transcript.failed()), (0, 1));
    }

    #[test]
    fn integration_tests_carry_the_name_of_their_crate() {
        let result =
            "test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1.50s";
        let text = format!(
            "     Running unittests src/lib.rs (target/debug/deps/netduel_lab-1)\nrunning 1 test\n{result}\n     \
             Running tests/it/main.rs (target/debug/deps/it-2)\nrunning 1 test\n{result}\n   Doc-tests netduel_lab\n\n\
             running 1 test\n{result}\n"
        );
        let (transcript, _) = read(&text);
        let seconds: Vec<(&str, f64)> =
            transcript.seconds.iter().map(|(binary, seconds)| (binary.as_str(), *seconds)).collect();
        assert_eq!(
            seconds,
            [("netduel_lab", 1.5), ("netduel_lab (documentation)", 1.5), ("netduel_lab/it", 1.5)]
        );
    }

    #[test]
    fn the_totals_are_sums_over_all_binaries() {
        let line =
            "test result: ok. 5 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.01s";
        let (transcript, _) = read(&format!("running 5 tests\n{line}\nrunning 5 tests\n{line}\n"));
        assert_eq!((transcript.passed(), transcript.results.len()), (10, 2));
    }
}
