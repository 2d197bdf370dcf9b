//! Sentences of warnings about a damaged run file.

/// Maximum number of lines that a sentence names.
const LINES_MAX: usize = 8;

/// Of records that are not as they were written or do not belong to the run. Without lines: of records that are missing.
pub(super) fn words(lines: &[u64], detail: &str) -> String {
    if lines.is_empty() {
        return format!(
            "incomplete run file: {detail}; records were removed: restore the file from a copy, or repeat the run"
        );
    }
    let named: Vec<String> = lines.iter().take(LINES_MAX).map(u64::to_string).collect();
    let more = match lines.len().saturating_sub(LINES_MAX) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let (records, were) = match lines.len() {
        1 => ("1 record", "line"),
        _ => (&*format!("{} records", lines.len()), "lines"),
    };
    format!(
        "damaged run file: {records} ({were} {}{more}) cannot be trusted and no figure contains them: {detail}; restore the file from a copy, \
         or repeat the run",
        named.join(", ")
    )
}

/// Of a last record without its end.
pub(super) fn of_incomplete(bytes: u64) -> String {
    format!(
        "incomplete run file: the last record ({bytes} bytes) has no end and no figure contains it: its writer was stopped in the middle of \
         it, or is writing it now"
    )
}
