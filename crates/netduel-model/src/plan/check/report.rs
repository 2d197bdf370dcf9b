//! The table `[report]`: lengths of its texts and its colour. The file of the logo is read by the caller.
use crate::plan::problem::{Problems, key_path};
use crate::plan::spec::ReportSpec;
use crate::publication::{COMMENTARY_LEN_MAX, Publication, TEXT_LEN_MAX, colour};

/// Checks the table and resolves it.
pub(super) fn resolve(spec: Option<&ReportSpec>, problems: &mut Problems<'_>) -> Publication {
    let Some(spec) = spec else { return Publication::default() };
    for (key, text) in [
        ("title", &spec.title),
        ("author", &spec.author),
        ("organization", &spec.organization),
        ("purpose", &spec.purpose),
        ("audience", &spec.audience),
        ("logo", &spec.logo),
    ] {
        let Some(text) = text else { continue };
        let length = text.chars().count();
        if text.trim().is_empty() {
            problems.add(&key_path("report", key), "is empty", "write a text, or leave the key out");
        } else if length > TEXT_LEN_MAX {
            let wrong = format!("has {length} characters");
            problems.add(&key_path("report", key), wrong, format!("at most {TEXT_LEN_MAX} are allowed"));
        }
    }
    if let Some(text) = spec.commentary.as_ref().filter(|text| text.len() > COMMENTARY_LEN_MAX) {
        let wrong = format!("has {} bytes", text.len());
        let allowed = format!("at most {} KiB are allowed", COMMENTARY_LEN_MAX >> 10);
        problems.add("report.commentary", wrong, allowed);
    }
    if let Some(accent) = spec.accent.as_ref().filter(|accent| colour(accent).is_none()) {
        let allowed = "write # and six hexadecimal digits, for example \"#0b5fa5\"";
        problems.add("report.accent", format!("{accent:?} is not a colour"), allowed);
    }
    Publication {
        title: spec.title.clone(),
        author: spec.author.clone(),
        organization: spec.organization.clone(),
        purpose: spec.purpose.clone(),
        audience: spec.audience.clone(),
        commentary: spec.commentary.clone(),
        logo: spec.logo.clone(),
        image: None,
        accent: spec.accent.clone(),
    }
}
