//! The author's files: commentary and logo, read, checked and made a part of a run or of one report. No report is made here.
use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use netduel_model::plan::{self, PlanErrors, Problem, ResolvedPlan};
use netduel_model::publication::{COMMENTARY_LEN_MAX, Publication, colour};
use netduel_report::document::accent::Accent;
use netduel_report::png;

use crate::cli::publication::PublicationArgs;
use crate::console::tell;
use crate::exit::{Failure, Kind, unread};
use crate::input_file::{read, read_text};

/// The key of a plan that names a logo.
const LOGO_KEY: &str = "report.logo";

/// What the options say. `title` is that of the report.
pub fn of_options(args: &PublicationArgs, title: Option<&String>) -> Result<Publication, Failure> {
    Ok(Publication {
        title: title.cloned(),
        author: args.author.clone(),
        organization: args.organization.clone(),
        purpose: args.purpose.clone(),
        audience: args.audience.clone(),
        commentary: args.commentary.as_deref().map(commentary).transpose()?,
        logo: None,
        image: args.logo.as_deref().map(logo_of_option).transpose()?,
        accent: args.accent.clone(),
    })
}

/// What a new run stores beside its plan: what the options say, and the logo that the plan names. `text` is that of the plan's file.
pub fn of_run(
    options: &Publication,
    plan: &ResolvedPlan,
    (text, path): (&str, &Path),
) -> Result<Publication, Failure> {
    let mut own = options.clone();
    if own.image.is_none() {
        own.image = logo_of_plan(plan, (text, path))?;
    }
    tell_adjustments(&own.over(&plan.report));
    Ok(own)
}

/// The logo that a plan names, relative to the plan's folder; absent when it names none. `text` is that of the plan's file.
pub fn logo_of_plan(plan: &ResolvedPlan, (text, path): (&str, &Path)) -> Result<Option<String>, Failure> {
    let Some(name) = &plan.report.logo else { return Ok(None) };
    let file = path.parent().unwrap_or_else(|| Path::new("")).join(name);
    let invalid = |error: io::Error| {
        let problem = Problem {
            // An option that sets the key has no line.
            line: plan::line_of(text, LOGO_KEY).unwrap_or_default(),
            key: LOGO_KEY.to_owned(),
            wrong: format!("{}: {error}", file.display()),
            allowed: png::remedy(),
        };
        let (file, problems) = (path.display().to_string(), vec![problem]);
        Failure::new(Kind::Usage, PlanErrors { file, problems, has_more: false, names: BTreeMap::new() })
    };
    logo(&file).map(Some).map_err(invalid)
}

/// Says where the accent colour is not used as it was chosen.
pub fn tell_adjustments(publication: &Publication) {
    let accent = publication.accent.as_deref().and_then(colour).map(Accent::of);
    for sentence in accent.iter().flat_map(Accent::adjustments) {
        tell(&format!("note: {sentence}"));
    }
}

fn commentary(path: &Path) -> Result<String, Failure> {
    let text = read_text(path, COMMENTARY_LEN_MAX).map_err(|error| {
        let limit = COMMENTARY_LEN_MAX >> 10;
        let otherwise = format!("name a Markdown file of at most {limit} KiB in UTF-8");
        unusable("--commentary", path, error, &otherwise)
    })?;
    if netduel_model::pairing::without_strings(&text) != text {
        let file = path.display();
        let text =
            format!("failed to use --commentary {file}: it contains a pairing string, which is a secret");
        return Err(Failure::message(Kind::Usage, text).remedy("remove the string from the file"));
    }
    Ok(text)
}

fn logo_of_option(path: &Path) -> Result<String, Failure> {
    logo(path).map_err(|error| unusable("--logo", path, error, &png::remedy()))
}

/// The file of an option cannot be read, or is not what the option takes.
fn unusable(option: &str, path: &Path, error: io::Error, otherwise: &str) -> Failure {
    unread(Kind::Usage, format!("read {option} {}", path.display()), error, otherwise)
}

/// A logo as the report holds it.
fn logo(path: &Path) -> io::Result<String> {
    png::data_uri(&read(path, png::LEN_MAX)?).map_err(io::Error::other)
}
