//! The result on a terminal: question, verdicts, where they come from, path, warnings, end. Plain text of a given width.
//!
//! Colour is only ever a second sign: every verdict has a mark and words.
use netduel_model::metric::Metric;

use crate::analysis::{Analysis, ArmValues, Comparison, MetricAnalysis, WorkloadAnalysis};
use crate::findings::Severity;
use crate::words::{self, PacketTable, StampTable, Tone, plain};

/// Narrower than this nothing is laid out; lines just run over.
const WIDTH_MIN: usize = 40;

/// The report as text. `width` in columns; `colour` adds ANSI colours.
pub fn table(analysis: &Analysis, width: usize, colour: bool) -> String {
    let mut page = Page::new(width, colour);
    page.paragraph("", &page.bold(&plain(&analysis.plan.question)));
    page.paragraph("", &words::trials(analysis));
    page.paragraph(
        "",
        "Values are means of the trials ± standard error; verdicts compare the arms within blocks.",
    );
    for workload in &analysis.workloads {
        page.workload(workload);
    }
    let changes = words::changes(&analysis.plan);
    if !changes.is_empty() {
        page.heading("What each arm changes, and undoes after each trial");
        for change in changes {
            page.paragraph("  ", &plain(&change));
        }
    }
    let proofs = words::proofs(analysis);
    if !proofs.is_empty() {
        page.heading("Path");
        for proof in proofs {
            page.paragraph("  ", &proof);
        }
    }
    if !analysis.warnings.is_empty() {
        page.heading("Warnings");
        for warning in words::warnings(analysis) {
            page.item("! ", &plain(&warning));
        }
    }
    let found = analysis.inspection.lines(Severity::Warning);
    if !found.is_empty() {
        page.heading("Hosts");
        for line in found {
            page.item("! ", &plain(&line));
        }
    }
    page.text.push('\n');
    page.paragraph("", &plain(&words::end(analysis.end.as_ref())));
    page.text
}

/// Text of a given width that is written from top to bottom.
pub(crate) struct Page {
    text: String,
    width: usize,
    colour: bool,
}

impl Page {
    /// An empty page.
    pub(crate) fn new(width: usize, colour: bool) -> Self {
        Self { text: String::new(), width: width.max(WIDTH_MIN), colour }
    }

    /// What was written.
    pub(crate) fn into_text(self) -> String {
        self.text
    }

    /// An empty line.
    pub(crate) fn blank(&mut self) {
        self.text.push('\n');
    }

    /// A bold line.
    pub(crate) fn title(&mut self, text: &str) {
        let bold = self.bold(text);
        self.line(&bold);
    }

    /// Text after `head`, its further lines beneath its beginning, `indent` columns in.
    pub(crate) fn hanging(&mut self, head: &str, indent: usize, text: &str) {
        self.wrapped(head, &" ".repeat(indent), text);
    }

    /// A line that is not wrapped.
    pub(crate) fn whole(&mut self, line: &str) {
        self.line(line);
    }

    fn bold(&self, text: &str) -> String {
        if self.colour { format!("\u{1b}[1m{text}\u{1b}[0m") } else { text.to_owned() }
    }

    /// A text in the colour of a tone.
    pub(crate) fn toned(&self, tone: Tone, text: &str) -> String {
        let code = match tone {
            Tone::Better => "32",
            Tone::Worse => "31",
            Tone::Same => "36",
            Tone::Open => "33",
        };
        if self.colour { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    }

    fn heading(&mut self, text: &str) {
        self.text.push('\n');
        let bold = self.bold(text);
        self.paragraph("", &bold);
    }

    /// Text wrapped at words, every line after `indent`.
    fn paragraph(&mut self, indent: &str, text: &str) {
        self.wrapped(indent, indent, text);
    }

    /// A list item: its mark on the first line, the rest beneath its text.
    fn item(&mut self, mark: &str, text: &str) {
        let rest = " ".repeat(2 + columns(mark));
        self.wrapped(&format!("  {mark}"), &rest, text);
    }

    fn wrapped(&mut self, first: &str, rest: &str, text: &str) {
        let mut line = first.to_owned();
        let mut empty = true;
        for word in text.split(' ').filter(|word| !word.is_empty()) {
            if !empty && columns(&line) + 1 + columns(word) > self.width {
                self.line(&line);
                rest.clone_into(&mut line);
                empty = true;
            }
            if !empty {
                line.push(' ');
            }
            line.push_str(word);
            empty = false;
        }
        self.line(&line);
    }

    fn line(&mut self, line: &str) {
        self.text.push_str(line.trim_end());
        self.text.push('\n');
    }

    fn workload(&mut self, workload: &WorkloadAnalysis) {
        self.text.push('\n');
        let settings = words::workload_of_arms(workload);
        let title = format!("{}: {}", self.bold(workload.name.as_str()), plain(&settings));
        self.paragraph("", &title);
        let widths = Widths::of(workload);
        for metric in &workload.judged {
            self.metric(metric, &widths);
        }
        if let Some(table) = words::packets(workload) {
            self.packets(&table);
        }
        let datagrams = format!("{} (all valid trials)", words::datagrams_title(workload));
        self.list(&datagrams, &words::datagrams(workload));
        let parts = format!("{} (all valid trials)", words::parts_title(workload));
        self.list(&parts, &words::parts(workload));
        if let Some(table) = words::stamps(workload) {
            self.stamps(&table);
        }
        self.list(words::LIMITS_TITLE, &words::limits(workload));
        self.list(words::search::TITLE, &words::search::sentences(workload));
        if workload.arms.iter().any(|arm| !arm.packets.is_empty()) {
            self.list(words::QUEUES_TITLE, &words::queues(workload));
        }
        let events = words::failover::sentences(workload);
        if !events.is_empty() {
            self.paragraph("  ", words::failover::TITLE);
            for (title, sentences) in events {
                self.list(&title, &sentences);
            }
        }
        self.list(words::PLACEMENTS_TITLE, &words::placements(workload));
        self.list("What the counters say (medians of the trials)", &workload.explanation);
    }

    /// Sentences under a title, which may be empty; nothing without sentences.
    fn list<S: AsRef<str>>(&mut self, title: &str, sentences: &[S]) {
        if sentences.is_empty() {
            return;
        }
        if !title.is_empty() {
            self.paragraph("  ", &plain(title));
        }
        for sentence in sentences {
            self.item("- ", &plain(sentence.as_ref()));
        }
    }

    fn metric(&mut self, metric: &MetricAnalysis, widths: &Widths) {
        for (index, arm) in metric.arms.iter().enumerate() {
            let title = if index == 0 { metric.title() } else { "" };
            let value = words::value(metric, arm);
            let comparison = metric.comparisons.iter().find(|comparison| comparison.arm == arm.arm);
            let line = format!(
                "  {}  {}  {}",
                padded(title, widths.title),
                padded(arm.arm.as_str(), widths.arm),
                padded(&value, widths.value)
            );
            match comparison {
                Some(comparison) => self.with_verdict(&line, metric.metric, comparison),
                None => self.line(&format!("{line}  baseline")),
            }
        }
    }

    /// The parts of round trips, a column for each arm, or a paragraph for each row where the columns do not fit.
    fn stamps(&mut self, table: &StampTable) {
        self.paragraph("  ", words::STAMPS_TITLE);
        let first = table.rows.iter().map(|(title, _)| columns(title)).max().unwrap_or(0);
        let widths: Vec<usize> = (0..table.arms.len())
            .map(|arm| {
                let cells = table.rows.iter().filter_map(|(_, cells)| cells.get(arm));
                cells.map(|cell| columns(cell)).chain([columns(&table.arms[arm])]).max().unwrap_or(0)
            })
            .collect();
        let fits = 4 + first + widths.iter().map(|width| width + 2).sum::<usize>() <= self.width;
        let laid_out = |title: &str, cells: &[String]| {
            let cells: Vec<String> =
                cells.iter().zip(&widths).map(|(cell, width)| padded(cell, *width)).collect();
            format!("    {}  {}", padded(title, first), cells.join("  ")).trim_end().to_owned()
        };
        if fits {
            self.line(&laid_out("", &table.arms));
        }
        for (title, cells) in &table.rows {
            if fits {
                self.line(&laid_out(title, cells));
            } else {
                let cells: Vec<String> =
                    table.arms.iter().zip(cells).map(|(arm, cell)| format!("{arm} {cell}")).collect();
                self.item("- ", &format!("{title}: {}", cells.join("; ")));
            }
        }
        for note in &table.notes {
            self.item("- ", &plain(note));
        }
    }

    /// Both ends of each arm: a table, or a paragraph for each row where it does not fit.
    fn packets(&mut self, table: &PacketTable) {
        self.paragraph("  ", words::PACKETS_TITLE);
        let widths: Vec<usize> = (0..table.header.len())
            .map(|column| {
                let cells = table.rows.iter().map(|row| columns(&row[column]));
                cells.chain([columns(table.header[column])]).max().unwrap_or(0)
            })
            .collect();
        let fits = 2 + widths.iter().map(|width| width + 2).sum::<usize>() <= self.width;
        let header: Vec<String> = table.header.iter().map(|title| (*title).to_owned()).collect();
        for row in std::iter::once(&header).filter(|_| fits).chain(&table.rows) {
            if fits {
                let cells: Vec<String> = row
                    .iter()
                    .zip(&widths)
                    .enumerate()
                    .map(|(column, (cell, width))| match column {
                        0 | 1 | 6 => padded(cell, *width),
                        _ => format!("{}{cell}", " ".repeat(width.saturating_sub(columns(cell)))),
                    })
                    .collect();
                self.line(&format!("    {}", cells.join("  ")));
            } else {
                let told = table.header.iter().zip(row).skip(2);
                let told: Vec<String> = told.map(|(title, cell)| format!("{title} {cell}")).collect();
                self.item("- ", &format!("{}, {}: {}", row[0], row[1], told.join(", ")));
            }
        }
        for note in &table.notes {
            self.item("- ", &plain(note));
        }
    }

    /// A verdict at the end of its line, or beneath it when the line is too narrow.
    fn with_verdict(&mut self, line: &str, metric: Metric, comparison: &Comparison) {
        let judged = comparison.judged.as_ref();
        let tone = words::tone(metric, judged);
        let verdict = format!("{} {}", tone.mark(), words::verdict(metric, judged));
        if columns(line) + 2 + columns(&verdict) <= self.width {
            let verdict = self.toned(tone, &verdict);
            self.line(&format!("{line}  {verdict}"));
        } else {
            self.line(line);
            let verdict = self.toned(tone, &verdict);
            self.wrapped("      ", "        ", &verdict);
        }
    }
}

/// Widths of the columns of one workload's table.
struct Widths {
    title: usize,
    arm: usize,
    value: usize,
}

impl Widths {
    fn of(workload: &WorkloadAnalysis) -> Self {
        let arms =
            || workload.judged.iter().flat_map(|metric| metric.arms.iter().map(move |arm| (metric, arm)));
        let widest = |text: &dyn Fn(&MetricAnalysis, &ArmValues) -> String| {
            arms().map(|(metric, arm)| columns(&text(metric, arm))).max().unwrap_or(0)
        };
        Self {
            title: widest(&|metric, _| metric.title().to_owned()),
            arm: widest(&|_, arm| arm.arm.to_string()),
            value: widest(&words::value),
        }
    }
}

fn padded(text: &str, width: usize) -> String {
    format!("{text}{}", " ".repeat(width.saturating_sub(columns(text))))
}

/// Columns that a text takes: its characters, without the escape sequences that this module writes. Our own words are one
/// column a character; a wide character in a question may make its line run over, no more.
fn columns(text: &str) -> usize {
    let mut count = 0;
    let mut in_escape = false;
    for c in text.chars() {
        match (in_escape, c) {
            (false, '\u{1b}') => in_escape = true,
            (true, 'm') => in_escape = false,
            (true, _) => {}
            (false, _) => count += 1,
        }
    }
    count
}
