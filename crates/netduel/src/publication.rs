//! The author's files: commentary and logo, read, checked and made a part of a run or of one report. No report is made here.
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use netduel_model::plan::ResolvedPlan;
use netduel_model::publication::{COMMENTARY_LEN_MAX, Publication, colour};
use netduel_report::document::accent::Accent;

use crate::cli::publication::PublicationArgs;
use crate::console::tell;
use crate::exit::{Failure, Kind};
use crate::png;

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
        image: args.logo.as_deref().map(|path| logo(path, "--logo")).transpose()?,
        accent: args.accent.clone(),
    })
}

/// What a new run stores beside its plan: the options, and the logo that the plan names, relative to the plan's folder.
pub fn of_run(args: &PublicationArgs, plan: &ResolvedPlan, plan_path: &Path) -> Result<Publication, Failure> {
    let mut own = of_options(args, None)?;
    if let (None, Some(name)) = (&own.image, &plan.report.logo) {
        let path = plan_path.parent().unwrap_or_else(|| Path::new("")).join(name);
        own.image = Some(logo(&path, "report.logo")?);
    }
    tell_adjustments(&own.over(&plan.report));
    Ok(own)
}

/// Says where the accent colour is not used as it was chosen.
pub fn tell_adjustments(publication: &Publication) {
    let accent = publication.accent.as_deref().and_then(colour).map(Accent::of);
    for sentence in accent.iter().flat_map(Accent::adjustments) {
        tell(&format!("note: {sentence}"));
    }
}

fn commentary(path: &Path) -> Result<String, Failure> {
    let bytes = read(path, "--commentary", COMMENTARY_LEN_MAX)?;
    let text = String::from_utf8(bytes).map_err(|_| {
        Failure::message(Kind::Usage, format!("--commentary {}: it is not UTF-8 text", path.display()))
    })?;
    if netduel_model::pairing::without_strings(&text) != text {
        let text =
            format!("--commentary {}: it contains a pairing string, which is a secret", path.display());
        return Err(Failure::message(Kind::Usage, text));
    }
    Ok(text)
}

/// A logo as the report holds it.
fn logo(path: &Path, option: &str) -> Result<String, Failure> {
    let bytes = read(path, option, png::LEN_MAX)?;
    png::data_uri(&bytes).map_err(|reason| {
        Failure::message(Kind::Usage, format!("{option} {}: {reason}", path.display()))
            .remedy("write a PNG file of at most 128 KiB and 2000 by 2000 pixels")
    })
}

fn read(path: &Path, option: &str, most: usize) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(most as u64 + 1).read_to_end(&mut bytes));
    read.map_err(|error| {
        Failure::caused(Kind::Usage, format!("{option} {}: {error}", path.display()), error)
    })?;
    if bytes.len() > most {
        let text = format!("{option} {}: it is longer than {} KiB", path.display(), most >> 10);
        return Err(Failure::message(Kind::Usage, text));
    }
    Ok(bytes)
}
