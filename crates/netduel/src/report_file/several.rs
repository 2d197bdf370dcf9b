//! The files of a command whose `--out` may be repeated: which they are, and one result for all. What is written is not made here.
use std::path::{Component, Path, PathBuf};

use super::Destination;
use crate::cli::publication::PrintingArgs;
use crate::cli::shared::is_standard_output;
use crate::cli::stored::Format;
use crate::console::{print, tell};
use crate::exit::{Failure, Kind};
use crate::redaction;

/// The meaning of each `--out`, as that of one, with paper and browser for those that are a PDF. With several of them each has the
/// format of its extension, so that none may be selected for all, and no two are one file.
pub fn destinations<'a>(
    outs: impl IntoIterator<Item = &'a Path>,
    format: Option<Format>,
    is_of_command: fn(Format) -> bool,
    printing: &PrintingArgs,
) -> Result<Vec<Destination>, Failure> {
    let outs: Vec<&Path> = outs.into_iter().collect();
    if format.is_some() && outs.len() > 1 {
        let text = "--format and --json select the format of one file, and --out names several";
        let remedy = "leave them out: the extension of each file selects its format";
        return Err(Failure::message(Kind::Usage, text).remedy(remedy));
    }
    if outs.len() > 1 && outs.iter().any(|out| is_standard_output(out)) {
        let text = "failed to write one of several reports to standard output (`--out -`)";
        return Err(Failure::message(Kind::Usage, text).remedy("name files and folders only"));
    }
    let all = outs.iter().map(|out| Destination::among(out, format, is_of_command));
    let all: Vec<Destination> = all.collect::<Result<_, Failure>>()?;
    refuse_one_file_twice(&all)?;
    let has_pdf = all.iter().any(|one| one.format == Format::Pdf);
    let printed = |one: Destination| {
        // The options are those of the PDF among them.
        if has_pdf && one.format != Format::Pdf { Ok(one) } else { one.printed(printing) }
    };
    all.into_iter().map(printed).collect()
}

/// The formats of a command's output: those of its files, or what standard output gets.
pub fn formats(destinations: &[Destination], printed: Option<Format>) -> Vec<Format> {
    if destinations.is_empty() {
        return printed.into_iter().collect();
    }
    destinations.iter().map(|one| one.format).collect()
}

/// Two reports would be one file, of which the last one remains.
fn refuse_one_file_twice(all: &[Destination]) -> Result<(), Failure> {
    let mut known: Vec<PathBuf> = Vec::new();
    for file in all.iter().flat_map(Destination::files) {
        let resolved = resolved(&file);
        if known.contains(&resolved) {
            let text = format!("failed to write two reports to {}: two --out name it", file.display());
            return Err(Failure::message(Kind::Usage, text).remedy("give each report a file of its own"));
        }
        known.push(resolved);
    }
    Ok(())
}

/// The absolute path of a file, without links and `..`.
fn resolved(path: &Path) -> PathBuf {
    let whole = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    // The `..` behind a missing folder may lead to a link.
    existing_resolved(&existing_resolved(&whole))
}

/// An absolute path without links and `..` in that part of it which exists, and without `..` in the rest: missing folders are made, and are no
/// links.
fn existing_resolved(path: &Path) -> PathBuf {
    let resolved = path.ancestors().find_map(|folder| {
        let rest = path.strip_prefix(folder).ok()?;
        Some(below(folder.canonicalize().ok()?, rest))
    });
    resolved.unwrap_or_else(|| path.to_owned())
}

/// A path below a folder, where each `..` takes back the name before it.
fn below(folder: PathBuf, rest: &Path) -> PathBuf {
    rest.components().fold(folder, |mut path, part| {
        if part == Component::ParentDir {
            path.pop();
        } else {
            path.push(part);
        }
        path
    })
}

/// Writes each file, also when another one cannot be written, but none where one is an input of the command or a run of its store. Returns the
/// files, and the first failure; the others are printed.
pub fn write_each(
    destinations: &[Destination],
    write: impl Fn(&Destination) -> Result<Vec<PathBuf>, Failure>,
) -> (Vec<PathBuf>, Result<(), Failure>) {
    if let Some(refusal) = destinations.iter().find_map(Destination::refusal) {
        return (Vec::new(), Err(refusal));
    }
    let (mut files, mut result) = (Vec::new(), Ok(()));
    for destination in destinations {
        let failure = match write(destination) {
            Ok(written) => {
                files.extend(written);
                continue;
            }
            Err(failure) if destinations.len() > 1 => named(failure, &destination.path),
            Err(failure) => failure,
        };
        if result.is_ok() {
            result = Err(failure);
        } else {
            tell(&format!("netduel: {failure}"));
        }
    }
    (files, result)
}

/// As [`write_each`], and prints the names of the files.
pub fn write_and_print(
    destinations: &[Destination],
    write: impl Fn(&Destination) -> Result<Vec<PathBuf>, Failure>,
) -> Result<(), Failure> {
    let (files, result) = write_each(destinations, write);
    let shown = |file: &PathBuf| print(&redaction::text(&format!("{}\n", file.display())));
    let printed = files.iter().try_for_each(shown);
    result.and(printed)
}

/// The end of a command: what its result says, and where writing it has failed. The result matters more than a missing file.
pub fn conclude(ended: Result<(), Failure>, written: Result<(), Failure>) -> Result<(), Failure> {
    match (ended, written) {
        (Err(failure), Err(other)) => {
            tell(&format!("netduel: {other}"));
            Err(failure)
        }
        (ended, written) => ended.and(written),
    }
}

/// A failure that names its file: that of a browser does not.
fn named(failure: Failure, path: &Path) -> Failure {
    let path = path.display().to_string();
    if failure.to_string().contains(&path) {
        return failure;
    }
    Failure { error: failure.error.context(format!("failed to write {path}")), ..failure }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::publication::Paper;

    fn of(outs: &[&str], printing: &PrintingArgs) -> Result<Vec<Destination>, Failure> {
        destinations(outs.iter().map(Path::new), None, |_| true, printing)
    }

    #[test]
    fn each_of_several_files_has_the_format_of_its_extension() {
        let none = PrintingArgs::default();
        let all = of(&["report.html", "results.json", "made"], &none).expect("three files");
        let seen: Vec<(&Path, Format)> = all.iter().map(|one| (one.path.as_path(), one.format)).collect();
        let expected = [
            (Path::new("report.html"), Format::Html),
            (Path::new("results.json"), Format::Json),
            (Path::new("made/report.html"), Format::Html),
        ];
        assert_eq!(seen, expected);
        assert_eq!(formats(&all, None), [Format::Html, Format::Json, Format::Html]);
        assert_eq!(formats(&[], Some(Format::Md)), [Format::Md]);
        let two = ["a.md", "b.md"].map(Path::new);
        let error = destinations(two, Some(Format::Md), |_| true, &none).expect_err("one format");
        assert!(error.kind == Kind::Usage && error.to_string().contains("--out names several"), "{error}");
        let one = destinations([Path::new("a.md")], Some(Format::Csv), |_| true, &none).expect("one file");
        assert_eq!(formats(&one, None), [Format::Csv]);
        for outs in [["report.html", "-"], ["-", "-"]] {
            let error = of(&outs, &none).expect_err("standard output").to_string();
            assert!(error.contains("one of several reports to standard output (`--out -`)"), "{error}");
        }
    }

    #[test]
    fn two_names_of_one_file_are_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(folder.path().join("made")).expect("made");
        std::os::unix::fs::symlink("made", folder.path().join("link")).expect("a link");
        let at = |name: &str| folder.path().join(name).display().to_string();
        for (first, second) in [
            ("a.html", "a.html"),
            ("a.html", "./a.html"),
            ("made/a.html", "link/a.html"),
            ("a.html", "made/../a.html"),
            ("a.html", "missing/../a.html"),
            ("made/a.html", "missing/../link/a.html"),
            ("new/a.html", "missing/deep/../../new/a.html"),
            ("new", "new/report.html"),
            ("x.parquet", "x-series.parquet"),
        ] {
            let outs = [at(first), at(second)];
            let error = of(&outs.each_ref().map(String::as_str), &PrintingArgs::default());
            let error = error.expect_err(second).to_string();
            assert!(error.contains("two --out name it"), "{error}");
        }
        let outs = [at("made/a.html"), at("a.html"), at("a.json")];
        of(&outs.each_ref().map(String::as_str), &PrintingArgs::default()).expect("three files");
    }

    #[test]
    fn options_of_a_pdf_are_for_the_pdf_of_several_files() {
        let letter = PrintingArgs { paper: Some(Paper::Letter), ..PrintingArgs::default() };
        let all = of(&["a.html", "a.pdf"], &letter).expect("one is a PDF");
        let papers = [None, Some(Paper::Letter)];
        assert!(all.iter().map(|one| one.printing.paper).eq(papers), "{all:?}");
        assert!(of(&["a.html", "a.md"], &letter).is_err());
    }

    #[test]
    fn failure_names_its_file_and_the_others_are_written() {
        let all = of(&["a.html", "b.html", "c.html"], &PrintingArgs::default()).expect("three files");
        let (files, result) = write_each(&all, |one| match one.path.to_str() {
            Some("b.html") => Err(Failure::message(Kind::Environment, "no browser").remedy("install one")),
            _ => Ok(vec![one.path.clone()]),
        });
        assert_eq!(files, ["a.html", "c.html"].map(PathBuf::from));
        let failure = result.expect_err("one of them");
        assert_eq!(failure.to_string(), "failed to write b.html: no browser; install one");
        assert_eq!(failure.kind, Kind::Environment);
    }
}
