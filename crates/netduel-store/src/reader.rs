//! Reads a run file line by line. An incomplete last line, damaged records and trials that do not belong to the run are left out and
//! reported; a damaged header is an error.
use std::borrow::Cow;
use std::fmt;
use std::fs::File;
use std::io::{BufRead, BufReader, Read as _};
use std::path::Path;

use netduel_model::json_text::{STORED_LEN_MAX, longer_than, quoted};
use netduel_model::run::{Run, RunEnd, RunHeader};
use netduel_model::trial::{Slot, Trial, Validity};
use netduel_model::warning::Warning;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::belonging::Belonging;
use crate::checksum::{self, Checksum};
use crate::error::StoreError;
use crate::format::{
    CHECKSUMS_FROM, FORMAT, FirstLine, KIND, Preamble, RESUMED_PREFIX, Record, TRIAL_PREFIX,
};
use crate::missing;
use crate::upgrade;

/// Bytes of a line at most: a trial has the results of two ends, each of which is a line of the protocol of at most 64 MiB.
const LINE_LEN_MAX: u64 = 256 << 20;
/// The member that is longer than [`STORED_LEN_MAX`], with its length at most: the text of the plan.
const LONG_TEXT: (&str, usize) = ("plan_text", 6 * netduel_model::plan::TEXT_LEN_MAX.0 as usize);

/// The first member of a trial that a listing does not read.
const AFTER_BEGINNING: &[u8] = b",\"client\":";

/// The damage that a checksum shows.
const WRONG: &str = "its checksum does not fit";
/// The damage of a line that ends as in a file of Windows: what comes after its checksum was not written by netduel.
const CRLF: &str = "it ends with CR LF, as another program wrote it, and not with LF";
/// The beginning of every run file: as a run writes it, and with sorted keys after a change of its header.
const STARTS: [&[u8]; 2] = [br#"{"netduel":"run","#, br#"{"format":"#];
/// What some editors put before a text in UTF-8.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
/// What the first line of another file lacks.
const NO_HEADER: &str =
    "its first line is no header of a run, as `netduel run` and `netduel runs export` write it";
/// A first line without its end.
const CUT: &str = "its first line is incomplete, because the file was cut; restore it from a copy";
/// A text in front of the first line.
const MARKED: &str = "it begins with a byte order mark, which another program added; remove these 3 bytes, or restore the file from a copy";

/// An incomplete last record: its writer was killed, the power failed, or it is being written now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TornTail {
    /// Its offset, bytes from the start of the file: the length of all complete records.
    pub offset: u64,
    /// Its length, bytes.
    pub bytes: u64,
}

impl fmt::Display for TornTail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the last record is incomplete ({} bytes) and was passed over: its writer was stopped in the middle of it, or is \
             writing it now",
            self.bytes
        )
    }
}

/// A record that is not as it was written, or a trial that does not belong to the run. Readers leave it out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DamagedRecord {
    /// Its line, from 1.
    pub line: u64,
    /// How that is known.
    pub reason: String,
}

impl fmt::Display for DamagedRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.reason)
    }
}

/// The complete records of a file.
pub(crate) struct Whole {
    /// The run, with warnings about records that were left out and trials that are missing.
    pub run: Run,
    /// Records that were left out because they are not as they were written.
    pub damaged: Vec<DamagedRecord>,
    /// Trials that were left out because they do not belong to the run.
    pub foreign: Vec<DamagedRecord>,
    /// What the run stored and the file lacks, in words.
    pub missing: Option<String>,
    /// Length of the complete records, bytes.
    pub length: u64,
    /// The incomplete record after them.
    pub torn: Option<TornTail>,
    /// The format of its header.
    pub format_first: u32,
    /// The format of its last record.
    pub format: u32,
}

/// The facts of a run in a listing.
pub(crate) struct Outline {
    /// The facts known before the first trial.
    pub header: RunHeader,
    /// Trials that belong to the run, all attempts.
    pub trials: u64,
    /// How it ended.
    pub end: Option<RunEnd>,
    /// An incomplete last record.
    pub torn: Option<TornTail>,
    /// Number of records that are left out: damaged ones, and trials that do not belong to the run.
    pub damaged: u64,
}

/// Reads all records.
pub(crate) fn read_whole(file: &File, path: &Path) -> Result<Whole, StoreError> {
    let mut lines = Lines::new(file, path);
    let header = lines.header()?;
    let format_first = lines.format;
    let mut run = Run { header, trials: Vec::new(), warnings: Vec::new(), end: None };
    let (mut damaged, mut foreign) = (Vec::new(), Vec::new());
    let mut belonging = Belonging::default();
    while let Some(line) = lines.next_line()? {
        let record = match lines.record(&line)? {
            Ok(record) => record,
            Err(reason) => {
                damaged.push(DamagedRecord { line: lines.line, reason });
                // It may have been the record that the run goes on.
                run.end = None;
                belonging.resumed();
                continue;
            }
        };
        match record {
            Record::Trial(trial) => {
                // Records of older formats are read as before.
                let is_checked = lines.format >= CHECKSUMS_FROM;
                let fault = if is_checked { belonging.fault(&run.header.plan, &trial) } else { None };
                if let Some(reason) = fault {
                    foreign.push(DamagedRecord { line: lines.line, reason });
                } else {
                    belonging.add(&trial);
                    run.trials.push(trial.into_owned());
                }
            }
            Record::Warning(warning) => run.warnings.push(warning.into_owned()),
            Record::End(end) => run.end = Some(end.into_owned()),
            Record::Resumed { .. } => {
                run.end = None;
                belonging.resumed();
            }
        }
    }
    // A damaged record may have been the missing trial.
    let missing = missing::words(&run, format_first >= CHECKSUMS_FROM).filter(|_| damaged.is_empty());
    run.warnings.extend([&damaged, &foreign].into_iter().filter_map(|records| left_out(records)));
    run.warnings.extend(
        missing.iter().map(|detail| Warning::RecordsDamaged { lines: Vec::new(), detail: detail.clone() }),
    );
    let Lines { offset: length, torn, format, .. } = lines;
    Ok(Whole { run, damaged, foreign, missing, length, torn, format_first, format })
}

/// The warning about records that were left out; absent without any.
fn left_out(records: &[DamagedRecord]) -> Option<Warning> {
    let lines = records.iter().map(|record| record.line).collect();
    let detail = records.first()?.reason.clone();
    Some(Warning::RecordsDamaged { lines, detail })
}

/// Reads the facts known before the first trial, and nothing else.
pub(crate) fn read_header(file: &File, path: &Path) -> Result<RunHeader, StoreError> {
    Lines::new(file, path).header()
}

/// Reads the facts for a listing. Of a trial the checksum is compared, and only the beginning is parsed.
pub(crate) fn read_outline(file: &File, path: &Path) -> Result<Outline, StoreError> {
    let mut lines = Lines::new(file, path);
    let mut outline = Outline { header: lines.header()?, trials: 0, end: None, torn: None, damaged: 0 };
    let mut belonging = Belonging::default();
    while let Some(line) = lines.next_line()? {
        // Only records with a checksum are judged, as in `read_whole`.
        let is_checked = line.checksum == Checksum::Right;
        let trial = if lines.damage(&line).is_none() { beginning(&line.bytes) } else { None };
        let record = match trial {
            Some(trial) => Ok(Record::Trial(Cow::Owned(trial))),
            None => lines.record(&line)?,
        };
        match record {
            Ok(Record::Trial(trial)) => {
                if !is_checked || belonging.fault(&outline.header.plan, &trial).is_none() {
                    belonging.add(&trial);
                    outline.trials += 1;
                } else {
                    outline.damaged += 1;
                }
            }
            Ok(Record::Warning(_)) => {}
            Ok(Record::End(end)) => outline.end = Some(end.into_owned()),
            Ok(Record::Resumed { .. }) => {
                outline.end = None;
                belonging.resumed();
            }
            Err(_) => {
                outline.damaged += 1;
                outline.end = None;
                belonging.resumed();
            }
        }
    }
    outline.torn = lines.torn;
    Ok(outline)
}

/// What tells whether a trial belongs to the run. Its names are the same in every format.
#[derive(Deserialize)]
struct Beginning {
    slot: Slot,
    attempt: u32,
    validity: Validity,
}

/// A trial with its slot, attempt and validity only; absent for another line, and for one that does not begin with them.
fn beginning(line: &[u8]) -> Option<Trial> {
    let trial = line.strip_prefix(TRIAL_PREFIX)?;
    // Within a text its quotes would have backslashes.
    let length = trial.windows(AFTER_BEGINNING.len()).position(|part| part == AFTER_BEGINNING)?;
    let text = [&trial[..length], b"}"].concat();
    let Beginning { slot, attempt, validity } = serde_json::from_slice(&text).ok()?;
    Some(Trial { validity, ..Trial::new(slot, attempt, 0) })
}

/// The format of a record `resumed`. It is read first, because it decides how the rest is read.
#[derive(Deserialize)]
struct Resumed {
    resumed: Format,
}

#[derive(Deserialize)]
struct Format {
    format: Option<u32>,
    program: Option<String>,
}

/// A line without its line end and its checksum.
struct Line {
    bytes: Vec<u8>,
    checksum: Checksum,
}

/// The complete lines of a file.
struct Lines<'p> {
    reader: BufReader<&'p File>,
    path: &'p Path,
    /// Lines so far.
    line: u64,
    /// Bytes of them.
    offset: u64,
    torn: Option<TornTail>,
    /// The format of the line.
    format: u32,
    /// Length of a line at most, with its end.
    len_max: u64,
}

impl<'p> Lines<'p> {
    fn new(file: &'p File, path: &'p Path) -> Self {
        Self {
            reader: BufReader::with_capacity(1 << 16, file),
            path,
            line: 0,
            offset: 0,
            torn: None,
            format: FORMAT,
            len_max: LINE_LEN_MAX,
        }
    }

    /// The next line without its line end; `None` at the end of the file or at an incomplete line.
    fn next_line(&mut self) -> Result<Option<Line>, StoreError> {
        let mut line = Vec::new();
        let failed = |source| StoreError::of("read", self.path, source);
        self.reader.by_ref().take(self.len_max).read_until(b'\n', &mut line).map_err(failed)?;
        if line.is_empty() {
            return Ok(None);
        }
        if line.len() as u64 == self.len_max && line.last() != Some(&b'\n') {
            let reason = format!("its line {} is longer than {} bytes", self.line + 1, self.len_max);
            return Err(StoreError::NotARun { path: self.path.to_owned(), reason });
        }
        // A power cut may leave the length of a write without its data, which then reads as zeros: JSON has none.
        let is_last = self.reader.fill_buf().map_err(failed)?.is_empty();
        let is_whole = line.last() == Some(&b'\n') && !(is_last && line.contains(&0));
        if !is_whole {
            self.torn = Some(TornTail { offset: self.offset, bytes: line.len() as u64 });
            return Ok(None);
        }
        self.line += 1;
        self.offset += line.len() as u64;
        line.pop();
        let checksum = checksum::take(&mut line);
        Ok(Some(Line { bytes: line, checksum }))
    }

    /// The first line.
    fn header(&mut self) -> Result<RunHeader, StoreError> {
        let path = self.path.to_owned();
        let not_a_run = |reason: String| StoreError::NotARun { path: path.clone(), reason };
        let start = self.reader.fill_buf().map_err(|source| StoreError::of("read", self.path, source))?;
        if start.starts_with(BYTE_ORDER_MARK) {
            return Err(not_a_run(MARKED.to_owned()));
        }
        // After a power cut the rest may read as zeros.
        let start = start.split(|byte| *byte == 0).next().unwrap_or_default();
        let may_be_cut = STARTS.iter().any(|whole| start.starts_with(whole) || whole.starts_with(start));
        let Some(line) = self.next_line()? else {
            let reason = match self.torn {
                None => "it is empty",
                Some(_) if may_be_cut => CUT,
                Some(_) => NO_HEADER,
            };
            return Err(not_a_run(reason.to_owned()));
        };
        if line.checksum == Checksum::Wrong {
            return Err(self.damaged(WRONG));
        }
        let preamble: Preamble =
            serde_json::from_slice(&line.bytes).map_err(|_| not_a_run(NO_HEADER.to_owned()))?;
        let stated = quoted(&preamble.format.to_string());
        if preamble.netduel != KIND {
            let kind = quoted(&preamble.netduel);
            return Err(not_a_run(format!("its first line says `{kind}`, format {stated}")));
        }
        let Some(format) = preamble.version() else {
            let reason =
                format!("its first line says format {stated}, and a format is a whole number from 1");
            return Err(not_a_run(reason));
        };
        if format > FORMAT {
            return Err(StoreError::Newer { path, format, program: preamble.program() });
        }
        self.format = format;
        if let Some(reason) = self.damage(&line) {
            return Err(self.damaged(reason));
        }
        let first: FirstLine<'_> = self.read(&line).map_err(|error| self.damaged(&error))?;
        match first.header.plan.excess() {
            Some(reason) => Err(self.damaged(&reason)),
            None => Ok(first.header.into_owned()),
        }
    }

    /// The error of a damaged header.
    fn damaged(&self, reason: &str) -> StoreError {
        StoreError::Damaged { path: self.path.to_owned(), line: self.line, reason: reason.to_owned() }
    }

    /// How the checksum of a line shows damage.
    fn damage(&self, line: &Line) -> Option<&'static str> {
        match line.checksum {
            Checksum::Wrong => Some(WRONG),
            Checksum::Absent if self.format >= CHECKSUMS_FROM => match line.bytes.last() {
                Some(b'\r') => Some(CRLF),
                _ => Some("its checksum is missing"),
            },
            Checksum::Right | Checksum::Absent => None,
        }
    }

    /// The record of a line, or how it is damaged.
    fn record(&mut self, line: &Line) -> Result<Result<Record<'static>, String>, StoreError> {
        // A run that a newer version resumed has two formats: each line is read in the format that holds for it. The record that says so
        // may be damaged itself.
        if line.checksum == Checksum::Right {
            self.format = self.format.max(CHECKSUMS_FROM);
        }
        if line.bytes.starts_with(RESUMED_PREFIX)
            && line.checksum != Checksum::Wrong
            && let Ok(Resumed { resumed: Format { format: Some(format), program } }) =
                serde_json::from_slice(&line.bytes)
        {
            if format > FORMAT {
                let program = program.as_deref().map(quoted);
                return Err(StoreError::Newer { path: self.path.to_owned(), format, program });
            }
            self.format = format;
        }
        if let Some(reason) = self.damage(line) {
            return Ok(Err(reason.to_owned()));
        }
        Ok(self.read(line))
    }

    /// Reads a line. A line of an older format is first upgraded to the newest.
    fn read<T: DeserializeOwned>(&self, line: &Line) -> Result<T, String> {
        if let Some(length) = longer_than(&line.bytes, STORED_LEN_MAX, Some(LONG_TEXT)) {
            return Err(format!("it has a text of {length} bytes, and {STORED_LEN_MAX} are allowed"));
        }
        let value = if self.format == FORMAT {
            serde_json::from_slice(&line.bytes)
        } else {
            serde_json::from_slice(&line.bytes).and_then(|mut value| {
                upgrade::to_newest(&mut value, self.format);
                serde_json::from_value(value)
            })
        };
        value.map_err(|error: serde_json::Error| {
            if error.is_data() {
                // Its place is that in the line, which the parser calls line 1.
                let text = error.to_string();
                let place = format!(" at line {} column {}", error.line(), error.column());
                let wrong = text.strip_suffix(&place).unwrap_or(&text);
                format!("its content is not that of format {}: {}", self.format, quoted(wrong))
            } else {
                format!("it is no JSON from column {} on", error.column())
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn beginning_of_a_trial_ends_before_its_first_end() {
        let slot = "{\"block\":1,\"position\":2,\"arm\":\"a\",\"workload\":\"w\"}";
        let line = |validity: &str, rest: &str| {
            format!(
                "{{\"trial\":{{\"slot\":{slot},\"attempt\":3,\"started_unix_ms\":4,\"validity\":{validity}{rest}"
            )
        };
        let reason = "{\"state\":\"failed\",\"reason\":\"\\\"x\\\",\\\"client\\\":\"}";
        let failed = beginning(line(reason, ",\"client\":null}}").as_bytes()).expect("a trial");
        assert_eq!((failed.slot.block, failed.slot.position, failed.attempt), (1, 2, 3));
        assert_eq!(failed.validity, Validity::Failed { reason: "\"x\",\"client\":".to_owned() });
        let valid = "{\"state\":\"valid\"}";
        // The rest is not parsed.
        assert!(beginning(line(valid, ",\"client\":[[").as_bytes()).is_some_and(|trial| trial.is_valid()));
        assert_eq!(beginning(line(valid, "}}").as_bytes()), None);
        assert_eq!(beginning(b"{\"trial\":{\"attempt\":3,\"client\":null}}"), None);
    }

    #[test]
    fn line_without_an_end_is_read_up_to_its_limit() {
        let mut file = tempfile::tempfile().expect("a file");
        file.write_all(b"1234567\n12345678\n").expect("written");
        std::io::Seek::rewind(&mut file).expect("rewound");
        let mut lines = Lines { len_max: 8, ..Lines::new(&file, Path::new("x.netduel")) };
        assert_eq!(lines.next_line().expect("a line").map(|line| line.bytes), Some(b"1234567".to_vec()));
        let error = lines.next_line().map(|_| ()).expect_err("it is longer").to_string();
        assert!(error.contains("its line 2 is longer than 8 bytes"), "{error}");
    }
}
