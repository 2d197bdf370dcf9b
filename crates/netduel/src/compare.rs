//! `netduel compare`: stored runs set against each other and against published figures. Nothing is measured here.
use std::io::{ErrorKind, IsTerminal as _};
use std::path::Path;

use netduel_model::plan::ResolvedPlan;
use netduel_model::published;
use netduel_model::redact::is_host_pseudonym;
use netduel_model::run::{Run, RunHeader};
use netduel_report::analysis::Analysis;
use netduel_report::analysis::compare::{RunComparison, Side, compare};
use netduel_report::baseline::Baseline;
use netduel_report::checks::Checks;
use netduel_report::document::block::Document;
use netduel_report::document::verdicts::Sides;
use netduel_report::html::Paper;
use netduel_report::json::compare::CompareDocument;
use netduel_report::{analyse_run, document, github, junit};
use netduel_store::Store;
use netduel_store::format::{FORMAT, upgrade};

use crate::cli::shared::GateArgs;
use crate::cli::stored::{CompareArgs, Format};
use crate::console::{json, print_json, tell};
use crate::exit::{Failure, Kind, unread};
use crate::gate;
use crate::input_file;
use crate::pipeline;
use crate::program;
use crate::publication;
use crate::redaction;
use crate::report_file::{
    check_printing, conclude, destinations, formats, lines, page, print_text, refuse_page_on_a_terminal,
    write_and_print,
};
use crate::run_store::{command_of, note_run, open_store, store_failure};
use crate::shown_runs::numbered_baseline;

/// `netduel compare`.
pub fn command(args: &CompareArgs) -> Result<(), Failure> {
    redaction::begin(args.redact.redact);
    let format = args.output.format(args.format);
    let destinations = destinations(args.output.places(), format, Format::is_of_comparisons, &args.printing)?;
    check_printing(!destinations.is_empty(), &args.printing, "report.pdf")?;
    let shown = formats(&destinations, format);
    if let Some(format) = shown.iter().find(|format| !format.is_of_comparisons()) {
        return Err(no_such_format(*format));
    }
    let store = open_store(&args.store)?;
    let words = || std::iter::once(&args.first).chain(&args.others);
    let command = command_of(&["compare"].into_iter().chain(words().map(String::as_str)).collect::<Vec<_>>());
    if destinations.is_empty() {
        refuse_page_on_a_terminal(format, std::io::stdout().is_terminal(), &command)?;
    }
    let publications: Vec<&'static published::Publication> =
        words().filter_map(|word| word.strip_prefix(PUBLISHED)).map(figures_of).collect::<Result<_, _>>()?;
    let author = publication::of_options(&args.publication, args.title.as_ref())?;
    publication::tell_adjustments(&author);
    let names: Vec<&String> = words().filter(|word| !word.starts_with(PUBLISHED)).collect();
    refuse_without_two_sides(&names, &args.gate)?;
    for name in &names {
        note_run(&store, name);
    }
    let sources = read_all(&store, &names)?;
    let redacted = if redaction::is_on() {
        // Before an error has a name of them: two arms may differ in the upper and lower case of a host only.
        learn(&names, &sources)?;
        redacted(&sources)?
    } else {
        Vec::new()
    };
    refuse_one_run_twice(&names, &sources)?;
    if let Some(first) = sources.first() {
        gate::check(&args.gate, &first.header().plan, Sides::Runs)?;
    }
    // Conditions name arms and workloads as the user does.
    let judged = compare(&sources.iter().map(Source::side).collect::<Vec<_>>(), &publications);
    let decided = gate::of_runs(&args.gate, &judged);
    let seen = redaction::is_on()
        .then(|| compare(&redacted.iter().map(Source::side).collect::<Vec<_>>(), &publications));
    let comparison = seen.as_ref().unwrap_or(&judged);
    let checks = checks_of([&judged, comparison], &args.gate, &command);
    // What this command line says of the author is meant to be shown.
    let page = document::of_runs(comparison, &author);
    let announced = if shown.contains(&Format::Github) { pipeline::summarize } else { pipeline::announce };
    announced(&checks, &page, decided.as_ref());
    if shown.iter().any(|format| !format.is_document()) {
        tell_left_out(comparison);
    }
    let written = if destinations.is_empty() {
        print_as(comparison, &page, &checks, format.unwrap_or(Format::Text))
    } else {
        write_and_print(&destinations, |destination| {
            let text = render(comparison, &page, &checks, (destination.format, destination.paper()))?;
            destination.write(&text).map(|()| vec![destination.path.clone()])
        })
    };
    conclude(decided.map(|line| line.iter().for_each(|line| tell(line))), written)
}

/// The verdicts as they are shown: of the second comparison, which is the first one with pseudonyms. `command`: the one that prints them.
fn checks_of([own, shown]: [&RunComparison<'_>; 2], gate: &GateArgs, command: &str) -> Checks {
    let gate = match [own, shown].map(|one| one.runs.first().map(|run| &run.header.plan)) {
        [Some(own), Some(shown)] => gate::shown(gate, [own, shown]),
        _ => gate.clone(),
    };
    // The names are known by now.
    Checks { command: redaction::text(command), ..Checks::of_runs(shown, gate.rules()) }
}

/// What begins the name of a publication among the runs.
pub const PUBLISHED: &str = "published:";

/// The publication of a name, with its figures.
fn figures_of(id: &str) -> Result<&'static published::Publication, Failure> {
    published::publication_named(id).ok_or_else(|| {
        let ids: Vec<&str> = published::publications().iter().map(|one| one.id.as_str()).collect();
        let text = format!("failed to find the publication {id:?}: netduel has no figures of it");
        Failure::message(Kind::Usage, text).remedy(format!("publications with figures: {}", ids.join(", ")))
    })
}

/// Figures of publications need a run beside them, and a gate needs two: a condition compares runs.
fn refuse_without_two_sides(names: &[&String], gate: &GateArgs) -> Result<(), Failure> {
    match names {
        [] => {
            let text = "failed to compare publications: no run is named";
            Err(Failure::message(Kind::Usage, text).remedy("name a run; `netduel runs` lists all"))
        }
        [_] if !gate.fail_if.is_empty() => {
            let text = "failed to apply --fail-if: it compares runs, and one run is named";
            Err(Failure::message(Kind::Usage, text)
                .remedy("name a second run, or leave --fail-if out; published figures fail no gate"))
        }
        _ => Ok(()),
    }
}

/// The remedy where a baseline file is missing or cannot be used.
const MAKE_BASELINE: &str = "make one with `netduel runs baseline RUN --out FILE.json`";

/// A run of a comparison.
enum Source {
    /// A run file.
    Run(Box<(Run, Analysis)>),
    /// A baseline file.
    Baseline(Box<Baseline>),
}

impl Source {
    /// Reads a run of the store, a run file, or a baseline file: that is a path with the extension of JSON.
    fn read(store: &Store, name: &str) -> Result<Self, Failure> {
        let path = Path::new(name);
        if path.extension().is_none_or(|extension| extension != "json") {
            let run = store.read(name).map_err(store_failure)?;
            let analysis = analyse_run(&run);
            return Ok(Self::Run(Box::new((run, analysis))));
        }
        let text = input_file::read_text(path, BASELINE_BYTES_MAX).map_err(|error| {
            // A name without a file is repeated, as that of a run which does not exist.
            let is_missing = matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory);
            let shown = if is_missing { path.to_owned() } else { numbered_baseline(path) };
            let kind = if is_missing { Kind::NoSuchRun } else { Kind::Store };
            unread(kind, format!("read the baseline {}", shown.display()), error, MAKE_BASELINE)
        })?;
        let baseline = Baseline::parse(&text, FORMAT, upgrade).map_err(|error| {
            let shown = numbered_baseline(path);
            let text = format!("failed to read the baseline {}: {error}", shown.display());
            Failure::message(Kind::Store, text).remedy(MAKE_BASELINE)
        })?;
        Ok(Self::Baseline(Box::new(baseline)))
    }

    fn header(&self) -> &RunHeader {
        match self {
            Self::Run(run) => &run.0.header,
            Self::Baseline(baseline) => baseline.header(),
        }
    }

    /// The run, when it is no baseline file.
    fn run(&self) -> Option<&Run> {
        match self {
            Self::Run(run) => Some(&run.0),
            Self::Baseline(_) => None,
        }
    }

    fn side(&self) -> Side<'_> {
        match self {
            Self::Run(run) => Side::of(&run.0, &run.1),
            Self::Baseline(baseline) => baseline.side(),
        }
    }
}

/// Reads what is compared. A redacted baseline has the names of hosts of the first run that is not redacted, else the pseudonyms of the first run.
fn read_all(store: &Store, names: &[&String]) -> Result<Vec<Source>, Failure> {
    let read = || names.iter().map(move |name| Source::read(store, name));
    let read_whole: Result<Vec<Source>, Failure> = read().collect();
    if read_whole.is_err() && redaction::is_on() {
        // The error may have a name of what can be read.
        learn_names(&read().flatten().collect::<Vec<Source>>())?;
    }
    let mut sources = read_whole?;
    let has_names = |plan: &&ResolvedPlan| !has_pseudonyms(plan);
    let plans = || sources.iter().map(|source| &source.header().plan);
    let of_run = || sources.iter().find_map(Source::run).map(|run| &run.header.plan);
    let Some(plan) = plans().find(has_names).or_else(of_run).or_else(|| plans().next()).cloned() else {
        return Ok(sources);
    };
    let unnamed = names.iter().zip(&mut sources).find_map(|(name, source)| {
        let Source::Baseline(baseline) = source else { return None };
        baseline.name_hosts_as(&plan).err().map(|error| (name, error))
    });
    if let Some((name, error)) = unnamed {
        learn_names(&sources)?;
        let text = format!("failed to read the baseline {name}: {error}");
        return Err(Failure::caused(Kind::Store, text, error));
    }
    Ok(sources)
}

/// Whether a host of a plan has a name like a pseudonym.
fn has_pseudonyms(plan: &ResolvedPlan) -> bool {
    plan.hosts.keys().any(|host| is_host_pseudonym(host.as_str()))
}

/// Largest baseline file, bytes: a run of a hundred workloads and blocks has less.
const BASELINE_BYTES_MAX: usize = 64 << 20;

/// Learns the names in what is compared. A baseline holds facts in forms in which names are not known as such, so that it has to be redacted already.
fn learn(names: &[&String], sources: &[Source]) -> Result<(), Failure> {
    learn_names(sources)?;
    let mut named = names.iter().zip(sources);
    match named.find(|(_, source)| matches!(source, Source::Baseline(file) if !file.is_redacted())) {
        Some((name, _)) => Err(keeps_its_names(name)),
        None => Ok(()),
    }
}

/// Learns the names that runs and baseline files show as such.
fn learn_names(sources: &[Source]) -> Result<(), Failure> {
    for source in sources {
        // Before the runs: no name of theirs gets a pseudonym that a redacted file has.
        if let Source::Baseline(baseline) = source {
            redaction::learn_baseline(baseline)?;
        }
    }
    // For the same reason runs that are redacted already come before others.
    let (hidden, plain): (Vec<&Source>, Vec<&Source>) =
        sources.iter().partition(|source| has_pseudonyms(&source.header().plan));
    hidden.into_iter().chain(plain).filter_map(Source::run).try_for_each(redaction::learn_run)
}

/// What is compared with pseudonyms, whose names are learned.
fn redacted(sources: &[Source]) -> Result<Vec<Source>, Failure> {
    let redacted = |source: &Source| -> Result<Source, Failure> {
        Ok(match source {
            Source::Run(run) => {
                let run = redaction::run(run.0.clone())?;
                let analysis = analyse_run(&run);
                Source::Run(Box::new((run, analysis)))
            }
            Source::Baseline(baseline) => Source::Baseline(Box::new(redaction::baseline(baseline)?)),
        })
    };
    sources.iter().map(redacted).collect()
}

fn keeps_its_names(name: &str) -> Failure {
    let text = format!("failed to redact {name}: a baseline keeps its names unless --redact wrote it");
    Failure::message(Kind::Usage, text).remedy(
        "compare the run itself, or write the file with `netduel runs baseline RUN --redact --out FILE.json`",
    )
}

fn no_such_format(format: Format) -> Failure {
    let names = Format::names(Format::is_of_comparisons);
    let text = format!("failed to write a comparison as .{}: it has no such format", format.extension());
    Failure::message(Kind::Usage, text)
        .remedy(format!("use {names}; `netduel report RUN` has the values of one run in every format"))
}

/// A run against itself is not two independent samples, and would look like evidence of no difference.
fn refuse_one_run_twice(names: &[&String], runs: &[Source]) -> Result<(), Failure> {
    let named: Vec<(&&String, &RunHeader)> = names.iter().zip(runs.iter().map(Source::header)).collect();
    for (place, (name, run)) in named.iter().enumerate() {
        let same = named.iter().skip(place + 1).find(|(_, other)| other.is_of_same_run(run));
        if let Some((other, header)) = same {
            let reason = if header.id == run.id {
                format!("both are the run {}", run.id)
            } else {
                "both are copies of one run, with the same start and seed".to_owned()
            };
            let text = format!("failed to compare {name} with {other}: {reason}");
            return Err(
                Failure::message(Kind::Usage, text).remedy("name different runs; `netduel runs` lists all")
            );
        }
    }
    Ok(())
}

/// States why values of the runs lack trials: verdicts alone have no place for it.
fn tell_left_out(comparison: &RunComparison<'_>) {
    for run in &comparison.runs {
        for warning in run.analysis.warnings.iter().filter(|warning| warning.leaves_trials_out()) {
            tell(&format!("warning: run {}: {warning}", run.label));
        }
    }
}

/// Prints a comparison on standard output.
fn print_as(
    comparison: &RunComparison<'_>,
    page: &Document,
    checks: &Checks,
    format: Format,
) -> Result<(), Failure> {
    if format == Format::Json {
        return print_json(&CompareDocument::of(comparison, &program::origin()));
    }
    print_text(&render(comparison, page, checks, (format, Paper::default()))?, format)
}

/// A comparison in a format. `paper` is that of a PDF.
fn render(
    comparison: &RunComparison<'_>,
    document: &Document,
    checks: &Checks,
    (format, paper): (Format, Paper),
) -> Result<String, Failure> {
    Ok(match format {
        Format::Json => json(&CompareDocument::of(comparison, &program::origin()))?,
        Format::Junit => junit::page(checks),
        Format::Github => lines(&github::annotations(checks)),
        _ => page(document, format, paper).ok_or_else(|| no_such_format(format))?,
    })
}
