//! Writes or prints a report in one of its formats; one rule for every `--out`. Nothing is analysed here.
mod page;
mod several;

use std::io;
use std::path::{Path, PathBuf};

use netduel_model::run::Run;
use netduel_report::analysis::Analysis;
use netduel_report::checks::Checks;
use netduel_report::html::Paper;
use netduel_report::json::report::ReportDocument;
use netduel_report::{document, github, junit, terminal};

use crate::cli::publication::PrintingArgs;
use crate::cli::shared::is_standard_output;
use crate::cli::stored::Format;
use crate::console::{as_printed, json, json_without_commands, page_layout, plain_lines, print_exact};
use crate::exit::{Failure, Kind, unwritten};
use crate::output_file::{self, Readers};
use crate::pdf::{self, Browser};
use crate::program;

pub use page::page;
pub use several::{conclude, destinations, formats, write_and_print, write_each};

/// What helps where a file of `--out` cannot be written.
pub const ANOTHER_PLACE: &str = "choose another place with --out";

/// Destination and format of a report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Destination {
    /// The file.
    pub path: PathBuf,
    /// The format.
    pub format: Format,
    /// Paper and browser of a PDF.
    pub printing: PrintingArgs,
}

impl Destination {
    /// The meaning of `--out`: a name with an extension is a file, and its extension selects the format unless `format` does. Any
    /// other name is a folder for report.html, or for another format with `format`. What exists and is no folder, as /dev/stdout, is
    /// a file. `-` is refused: commands that print their document take it as no `--out`, and standard output of the others, runs, has their
    /// result.
    ///
    /// `is_of_command`: the formats of the command, whose extensions an error names. The command refuses the others itself.
    fn among(out: &Path, format: Option<Format>, is_of_command: fn(Format) -> bool) -> Result<Self, Failure> {
        if is_standard_output(out) {
            let text =
                "failed to write the report to standard output (`--out -`): the result is printed there";
            return Err(Failure::message(Kind::Usage, text)
                .remedy("write a file or a folder; `netduel report last` prints the report"));
        }
        let is_like_a_folder =
            out.extension().is_none() || out.as_os_str().as_encoded_bytes().ends_with(b"/");
        let is_folder = out.is_dir() || (is_like_a_folder && !out.exists());
        if is_folder {
            let format = format.unwrap_or(Format::Html);
            let path = out.join("report").with_extension(format.extension());
            return Ok(Self { path, format, printing: PrintingArgs::default() });
        }
        let of_extension = || out.extension()?.to_str().and_then(Format::of_extension);
        match format.or_else(of_extension) {
            Some(format) => Ok(Self { path: out.to_owned(), format, printing: PrintingArgs::default() }),
            None if is_like_a_folder => Err(Failure::message(
                Kind::Usage,
                format!("--out {}: it is not a folder, and its name has no extension", out.display()),
            )
            .remedy(format!(
                "write a folder, a file with the extension {}, or a format",
                Format::extensions(is_of_command)
            ))),
            None => Err(Failure::message(
                Kind::Usage,
                format!("--out {}: no report has this extension", out.display()),
            )
            .remedy(format!("write {}, or a folder", Format::extensions(is_of_command)))),
        }
    }

    /// The same with paper and browser of a PDF; refused for other formats.
    fn printed(self, printing: &PrintingArgs) -> Result<Self, Failure> {
        if self.format != Format::Pdf && *printing != PrintingArgs::default() {
            let text = "--paper and --browser are options of a PDF";
            return Err(Failure::message(Kind::Usage, text).remedy("write --format pdf, or leave them out"));
        }
        Ok(Self { printing: printing.clone(), ..self })
    }

    /// The paper of a PDF.
    pub fn paper(&self) -> Paper {
        self.printing.paper.map(Paper::from).unwrap_or_default()
    }

    /// The files that are written: with Parquet that of the series as well.
    fn files(&self) -> Vec<PathBuf> {
        let series = (self.format == Format::Parquet).then(|| series_file(&self.path));
        std::iter::once(self.path.clone()).chain(series).collect()
    }

    /// The absolute path of the file, for a run that another process may resume.
    pub fn absolute(&self) -> PathBuf {
        std::path::absolute(&self.path).unwrap_or_else(|_| self.path.clone())
    }

    /// Replaces the report atomically; missing folders are created. A browser prints the page of a PDF first.
    pub fn write(&self, text: &str) -> Result<(), Failure> {
        match self.format {
            Format::Pdf => self.write_bytes(&pdf::print(text, &self.browser()?)?),
            _ if output_file::is_stream(&self.path) => self.write_bytes(shown(text, self.format).as_bytes()),
            _ => self.write_bytes(text.as_bytes()),
        }
    }

    fn write_bytes(&self, content: &[u8]) -> Result<(), Failure> {
        self.create_folder()?;
        output_file::write(&self.path, content, Readers::Umask)
            .map_err(|error| cannot_write(&self.path, error))
    }

    fn browser(&self) -> Result<Browser, Failure> {
        Browser::find(self.printing.browser.as_deref())
    }

    /// Checks before a run that its report can be written. Whatever it creates, it removes.
    pub fn check(&self) -> Result<(), Failure> {
        if self.format == Format::Parquet {
            parquet::check()?;
        }
        if self.format == Format::Pdf {
            self.browser()?;
        }
        let folders: Vec<&Path> = self.path.ancestors().skip(1).collect();
        let missing: Vec<&Path> = folders.into_iter().take_while(|folder| is_missing(folder)).collect();
        let check = |file: &PathBuf| output_file::check(file).map_err(|error| cannot_write(file, error));
        let result = self.create_folder().and_then(|()| self.files().iter().try_for_each(check));
        for folder in missing {
            // A folder that was not created, or that another program uses by now.
            drop(std::fs::remove_dir(folder));
        }
        result
    }

    /// The failure where a file of the report is an input of the command, or a run of its store.
    fn refusal(&self) -> Option<Failure> {
        let refused = |file: &PathBuf| output_file::refusal(file).map(|error| cannot_write(file, error));
        self.files().iter().find_map(refused)
    }

    fn create_folder(&self) -> Result<(), Failure> {
        let Some(folder) = self.path.parent().filter(|folder| !folder.as_os_str().is_empty()) else {
            return Ok(());
        };
        output_file::create_folder(folder).map_err(|error| {
            unwritten(Kind::Store, format!("create the folder {}", folder.display()), error, ANOTHER_PLACE)
        })
    }
}

/// Writes the report of a run, and returns its files. `checks` are those of the run.
pub fn write(
    run: &Run,
    analysis: &Analysis,
    checks: &Checks,
    destination: &Destination,
) -> Result<Vec<PathBuf>, Failure> {
    if destination.format == Format::Parquet {
        return parquet::write(run, destination);
    }
    destination.write(&render(run, analysis, checks, (destination.format, destination.paper()))?)?;
    Ok(vec![destination.path.clone()])
}

/// The report of a run as text. `paper` is that of a PDF.
pub fn render(
    run: &Run,
    analysis: &Analysis,
    checks: &Checks,
    (format, paper): (Format, Paper),
) -> Result<String, Failure> {
    Ok(match format {
        Format::Csv => netduel_report::csv::trials(run),
        Format::Prometheus => netduel_report::prometheus::page(run, analysis),
        Format::Influx => netduel_report::influx::lines(run),
        Format::Junit => junit::page(checks),
        Format::Github => lines(&github::annotations(checks)),
        Format::Json => {
            let document = ReportDocument::of(run, analysis, &program::origin());
            json(&document)?
        }
        _ => page(&document::of_run(run, analysis), format, paper)
            .ok_or_else(|| no_text("netduel report RUN"))?,
    })
}

/// Refuses paper and browser of a PDF where no report is written: they would have no effect. `example` is the name of such a file.
pub fn check_printing(is_written: bool, printing: &PrintingArgs, example: &str) -> Result<(), Failure> {
    if is_written || *printing == PrintingArgs::default() {
        return Ok(());
    }
    let text = "--paper and --browser are options of a PDF, and no file is written";
    Err(Failure::message(Kind::Usage, text).remedy(format!("name it: --out {example}")))
}

/// Lines with their ends.
pub fn lines(lines: &[String]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect::<Vec<_>>().concat()
}

/// The whole report for this terminal.
pub fn text(run: &Run, analysis: &Analysis) -> String {
    page::on_terminal(&document::of_run(run, analysis))
}

/// The closing lines of a run for this terminal: the verdicts.
pub fn summary(run: &Run, analysis: &Analysis) -> String {
    let (width, colour) = page_layout();
    terminal::summary(&document::of_run(run, analysis), width, colour)
}

/// Prints a report on standard output.
pub fn print_text(text: &str, format: Format) -> Result<(), Failure> {
    if format == Format::Pdf {
        return Err(no_pdf_on_standard_output());
    }
    print_exact(&shown(text, format))
}

/// A report as it may be read by a terminal or a workflow. A page has scripts of its own, and is refused on a terminal; annotations are
/// commands to a workflow.
fn shown(text: &str, format: Format) -> String {
    match format {
        Format::Html => text.to_owned(),
        Format::Github => plain_lines(text),
        Format::Json => as_printed(&json_without_commands(text.to_owned())),
        _ => as_printed(text),
    }
}

/// A PDF is no text.
fn no_pdf_on_standard_output() -> Failure {
    Failure::message(Kind::Usage, "a PDF is written to a file").remedy("name it: --out report.pdf")
}

/// A page of half a megabyte is unreadable on a terminal, and a PDF is no text. `command` is the one that would print it.
pub fn refuse_page_on_a_terminal(
    format: Option<Format>,
    is_terminal: bool,
    command: &str,
) -> Result<(), Failure> {
    if format == Some(Format::Pdf) {
        return Err(no_pdf_on_standard_output());
    }
    if format == Some(Format::Html) && is_terminal {
        return Err(Failure::message(Kind::Usage, "an HTML page is not printed to a terminal")
            .remedy(format!("write it to a file: {command} --out report.html")));
    }
    Ok(())
}

/// A format of files has no text to print. `command` is the one that would print it.
pub fn refuse_files_as_text(format: Option<Format>, command: &str) -> Result<(), Failure> {
    if format.is_some_and(Format::is_several_files) { Err(no_text(command)) } else { Ok(()) }
}

fn no_text(command: &str) -> Failure {
    Failure::message(Kind::Usage, "failed to print Parquet: it is two files")
        .remedy(format!("name the first: {command} --out trials.parquet"))
}

/// The file of the series beside that of the trials: `x-series.parquet` for `x.parquet`.
fn series_file(path: &Path) -> PathBuf {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!("{stem}-series.parquet"))
}

/// The files of the format Parquet.
#[cfg(feature = "parquet")]
mod parquet {
    use super::{Destination, Failure, Kind, PathBuf, Run, series_file};

    /// This program can write them.
    #[expect(clippy::unnecessary_wraps, reason = "a build without the feature cannot")]
    pub(super) fn check() -> Result<(), Failure> {
        Ok(())
    }

    /// The trials, and beside them the series: `x.parquet` and `x-series.parquet`.
    pub(super) fn write(run: &Run, destination: &Destination) -> Result<Vec<PathBuf>, Failure> {
        let failed = |error| Failure::new(Kind::Internal, error);
        let trials = netduel_report::parquet::trials(run).map_err(failed)?;
        let series = netduel_report::parquet::series(run).map_err(failed)?;
        let beside = Destination { path: series_file(&destination.path), ..destination.clone() };
        destination.write_bytes(&trials)?;
        beside.write_bytes(&series)?;
        Ok(vec![destination.path.clone(), beside.path])
    }
}

/// A program without the format Parquet.
#[cfg(not(feature = "parquet"))]
mod parquet {
    use super::{Destination, Failure, Kind, PathBuf, Run};

    pub(super) fn check() -> Result<(), Failure> {
        Err(Failure::message(
            Kind::Usage,
            "failed to write Parquet: this netduel was built without the feature `parquet`",
        )
        .remedy("build it with `cargo build --release --features parquet`, or use the format csv"))
    }

    pub(super) fn write(_: &Run, _: &Destination) -> Result<Vec<PathBuf>, Failure> {
        check().map(|()| Vec::new())
    }
}

fn is_missing(folder: &Path) -> bool {
    !folder.as_os_str().is_empty() && !folder.exists()
}

fn cannot_write(path: &Path, error: io::Error) -> Failure {
    unwritten(Kind::Store, format!("write {}", path.display()), error, ANOTHER_PLACE)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn destination(path: &Path, format: Format) -> Destination {
        Destination { path: path.to_owned(), format, printing: PrintingArgs::default() }
    }

    fn of(out: &Path, format: Option<Format>) -> Result<Destination, Failure> {
        Destination::among(out, format, |_| true)
    }

    #[test]
    fn check_leaves_no_file_and_no_folder() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| destination(&folder.path().join(name), Format::Html);
        at("a/b/report.html").check().expect("it can be written");
        at("report.html").check().expect("it can be written");
        assert_eq!(std::fs::read_dir(folder.path()).expect("a listing").count(), 0);
        std::fs::write(folder.path().join("file"), "x").expect("written");
        for (name, reason) in [("file/report.html", "create the folder"), ("file/a/report.html", "create")] {
            let error = at(name).check().expect_err("a file is no folder");
            assert!(error.to_string().contains(reason) && error.kind == Kind::Store, "{error}");
        }
        assert_eq!(std::fs::read_dir(folder.path()).expect("a listing").count(), 1);
    }

    #[test]
    fn html_is_rejected_on_a_terminal_only() {
        for (format, is_terminal, refused) in [
            (Some(Format::Html), true, true),
            (Some(Format::Html), false, false),
            (Some(Format::Md), true, false),
            (None, true, false),
            (Some(Format::Pdf), false, true),
        ] {
            let result = refuse_page_on_a_terminal(format, is_terminal, "netduel report last");
            assert_eq!(result.is_err(), refused, "{format:?}");
        }
    }

    #[test]
    fn name_with_an_extension_is_a_file_and_any_other_a_folder() {
        let folder = tempfile::tempdir().expect("a folder");
        let existing = folder.path().join("results.v2");
        std::fs::create_dir(&existing).expect("made");
        let page = existing.join("report.html");
        for (out, format, path, written) in [
            ("netduel-report", None, "netduel-report/report.html", Format::Html),
            ("netduel-report", Some(Format::Md), "netduel-report/report.md", Format::Md),
            ("x.d/", None, "x.d/report.html", Format::Html),
            ("./-", None, "./-/report.html", Format::Html),
            ("a/page.md", None, "a/page.md", Format::Md),
            ("page.html", Some(Format::Json), "page.html", Format::Json),
            ("page.any", Some(Format::Csv), "page.any", Format::Csv),
            ("page.pdf", None, "page.pdf", Format::Pdf),
            (existing.to_str().expect("text"), None, page.to_str().expect("text"), Format::Html),
        ] {
            let destination = of(Path::new(out), format).expect("a destination");
            assert_eq!(destination, self::destination(Path::new(path), written), "{out}");
        }
        let device = of(Path::new("/dev/null"), Some(Format::Md)).expect("a device");
        assert_eq!(device.path, Path::new("/dev/null"));
        device.check().and_then(|()| device.write("text")).expect("it takes any text");
        assert!(!Path::new("/dev/null").is_file());
        let file = folder.path().join("notes");
        std::fs::write(&file, "x").expect("written");
        let error = of(&file, None).expect_err("no format");
        assert!(error.to_string().contains("it is not a folder") && error.kind == Kind::Usage, "{error}");
        let error = of(Path::new("-"), None).expect_err("standard output");
        assert!(error.to_string().contains("`--out -`") && error.kind == Kind::Usage, "{error}");
        let error = of(Path::new("report.docx"), None).expect_err("no such format");
        assert!(error.to_string().contains(".html") && error.kind == Kind::Usage, "{error}");
        let error = Destination::among(Path::new("two.docx"), None, Format::is_of_comparisons);
        let words = error.expect_err("no such format").to_string();
        assert!(words.contains(".md") && !words.contains(".csv") && !words.contains(".lp"), "{words}");
    }
}
