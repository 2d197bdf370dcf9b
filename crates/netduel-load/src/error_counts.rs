//! Errors of socket calls, counted by call and kind. They are data of the trial, not failures of the program.
use std::io;

use netduel_model::sample::ErrorCount;
use netduel_sys::error_name;

/// Capacity for kinds of errors: more than any trial had, so counting does not allocate.
const KINDS: usize = 32;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Number(i32),
    Text(&'static str),
}

/// Counts of one thread.
#[derive(Debug)]
pub(crate) struct ErrorCounts {
    entries: Vec<(&'static str, Kind, u64)>,
    /// Remarks about the setup, with figures.
    remarks: Vec<ErrorCount>,
}

impl ErrorCounts {
    pub(crate) fn new() -> Self {
        Self { entries: Vec::with_capacity(KINDS), remarks: Vec::new() }
    }

    /// Counts an error that `call` returned.
    #[cold]
    pub(crate) fn count(&mut self, call: &'static str, error: &io::Error) {
        let kind = error.raw_os_error().map_or(Kind::Text("error without a number"), Kind::Number);
        self.add(call, kind);
    }

    /// Counts an event without an error number.
    #[cold]
    pub(crate) fn count_event(&mut self, call: &'static str, event: &'static str) {
        self.add(call, Kind::Text(event));
    }

    /// Counts an event that happened `times` times.
    pub(crate) fn count_times(&mut self, call: &'static str, event: &'static str, times: u64) {
        if times > 0 {
            self.add_many(call, Kind::Text(event), times);
        }
    }

    /// Counts the error of a call whose failure does not end the trial.
    pub(crate) fn count_failure<T>(&mut self, call: &'static str, result: io::Result<T>) {
        if let Err(error) = result {
            self.count(call, &error);
        }
    }

    /// Adds the counts of another.
    pub(crate) fn merge_from(&mut self, other: Self) {
        for (call, kind, count) in other.entries {
            self.add_many(call, kind, count);
        }
        self.remarks.extend(other.remarks);
    }

    /// Records a remark. Not for loops: it allocates.
    pub(crate) fn remark(&mut self, call: &str, text: String) {
        self.remarks.push(ErrorCount { call: call.to_owned(), error: text, count: 1 });
    }

    fn add(&mut self, call: &'static str, kind: Kind) {
        self.add_many(call, kind, 1);
    }

    fn add_many(&mut self, call: &'static str, kind: Kind, count: u64) {
        match self.entries.iter_mut().find(|entry| entry.0 == call && entry.1 == kind) {
            Some(entry) => entry.2 += count,
            None => self.entries.push((call, kind, count)),
        }
    }

    /// The sum over threads, sorted by call and kind.
    pub(crate) fn report(all_threads: impl IntoIterator<Item = Self>) -> Vec<ErrorCount> {
        let mut all: Vec<ErrorCount> = Vec::new();
        for counts in all_threads {
            let named = counts.entries.into_iter().map(|(call, kind, count)| ErrorCount {
                call: call.to_owned(),
                error: describe(kind),
                count,
            });
            for entry in counts.remarks.into_iter().chain(named) {
                match all.iter_mut().find(|known| known.call == entry.call && known.error == entry.error) {
                    Some(known) => known.count += entry.count,
                    None => all.push(entry),
                }
            }
        }
        all.sort_by(|left, right| (&left.call, &left.error).cmp(&(&right.call, &right.error)));
        all
    }
}

fn describe(kind: Kind) -> String {
    match kind {
        Kind::Text(text) => text.to_owned(),
        Kind::Number(number) => {
            // The standard library appends "(os error N)", which the name replaces.
            let text = io::Error::from_raw_os_error(number).to_string().to_lowercase();
            let text = text.split(" (os error").next().unwrap_or_default();
            match error_name::of(number) {
                Some(name) => format!("{name}: {text}"),
                None => format!("error {number}: {text}"),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_all_threads_add_up_by_call_and_kind() {
        let no_buffer = io::Error::from_raw_os_error(105);
        let mut one = ErrorCounts::new();
        one.count("sendmmsg", &no_buffer);
        one.count("sendmmsg", &no_buffer);
        one.count("recvmmsg", &no_buffer);
        let mut two = ErrorCounts::new();
        two.count("sendmmsg", &no_buffer);
        two.count_event("recv", "response after its timeout");
        two.remark("setsockopt", "got 1 of 2".to_owned());
        let all: Vec<_> = ErrorCounts::report([one, two])
            .into_iter()
            .map(|entry| (entry.call, entry.error, entry.count))
            .collect();
        let text = "ENOBUFS: no buffer space available".to_owned();
        assert_eq!(
            all,
            [
                ("recv".to_owned(), "response after its timeout".to_owned(), 1),
                ("recvmmsg".to_owned(), text.clone(), 1),
                ("sendmmsg".to_owned(), text, 3),
                ("setsockopt".to_owned(), "got 1 of 2".to_owned(), 1),
            ]
        );
    }
}
