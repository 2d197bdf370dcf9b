//! Stable pseudonyms in place of what identifies hosts, people and networks: names of hosts and users, addresses, identifiers.
//! Works on the recorded types, before anything is derived from them, so that every format is made from redacted data.
//! `docs/design/0047-redaction.md` has the reasons.
mod kinds;
mod phrase;
mod pseudonyms;
mod text;
mod walk;

use std::collections::BTreeMap;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::bed::layout::is_given_name;
use crate::ids::{NAME_LEN_MAX, start_of_run_name};
use crate::plan::ResolvedPlan;
use crate::publication::TEXT_LEN_MAX;
use crate::run::Run;
pub use kinds::{Meaning, meaning};
use phrase::{Caseless, with_phrase_replaced};
use pseudonyms::{Kind, NAME_LEN_MIN, Pseudonyms};
pub use pseudonyms::{is_host_pseudonym, with_host_pseudonyms_replaced};
pub use walk::{Place, walk};

/// The pseudonyms of one output. Everything that the output is made of is learned first: a name may stand in a text before the field that
/// shows what it is.
#[derive(Debug, Default)]
pub struct Redactor {
    pseudonyms: Pseudonyms,
    /// Names of several words without case, each with its pseudonym: authors and organizations.
    phrases: Vec<(String, String)>,
    /// Names of plans, each with the start of the names of its runs: it may end within a name that is replaced.
    plans: BTreeMap<String, String>,
    /// Names of arms, workloads, labs and runs as they are shown, each with the name that it stands for.
    shown_names: BTreeMap<String, String>,
    /// Those of these names that are shown otherwise than as words of a text, because another name is shown so or they are cut, each as it is
    /// shown.
    own_names: BTreeMap<String, String>,
}

/// A value that could not be rebuilt from its redacted form.
#[derive(Debug, thiserror::Error)]
#[error("failed to redact: {0}")]
pub struct RedactError(#[from] serde_json::Error);

impl Redactor {
    /// Learns the names in a value.
    ///
    /// # Errors
    /// [`RedactError`] when JSON cannot represent the value.
    pub fn learn(&mut self, value: &impl Serialize) -> Result<(), RedactError> {
        let mut texts = Vec::new();
        walk(value, &mut |place, text| {
            match meaning(place) {
                Meaning::Word => self.pseudonyms.note_word(text),
                Meaning::Text | Meaning::Argument | Meaning::Name | Meaning::Version => {
                    texts.push(text.to_owned());
                }
                Meaning::Author | Meaning::Organization => {
                    let kind = if meaning(place) == Meaning::Author { "author" } else { "organization" };
                    self.learn_phrase(kind, text);
                    texts.push(text.to_owned());
                }
                Meaning::PlanName => {
                    self.plans.insert(text.to_owned(), start_of_run_name(text));
                    texts.push(text.to_owned());
                }
                meaning => {
                    self.named(meaning, text);
                }
            }
            text.to_owned()
        })?;
        for text in texts {
            text::learn(&text, &mut self.pseudonyms);
        }
        Ok(())
    }

    /// Learns the names of a run.
    ///
    /// # Errors
    /// As [`Self::learn`].
    pub fn learn_run(&mut self, run: &Run) -> Result<(), RedactError> {
        self.learn(&run.header)?;
        self.learn(&run.trials)?;
        self.learn(&run.warnings)?;
        self.learn(&run.end)
    }

    /// Learns the name of a resource of a cloud, or of a subscription, that only messages have.
    pub fn learn_resource(&mut self, name: &str) {
        self.named(Meaning::Resource, name);
    }

    /// Learns the names in the text of a plan with errors: of hosts, also in place of their addresses, users, VMs, author and organization. Text
    /// that is no TOML has none that are known.
    pub fn learn_plan_text(&mut self, text: &str) {
        let Ok(plan) = toml::from_str::<toml::Table>(text) else { return };
        if let Some(report) = plan.get("report") {
            for kind in ["author", "organization"] {
                if let Some(name) = report.get(kind).and_then(toml::Value::as_str) {
                    self.learn_phrase(kind, name);
                }
            }
        }
        for (name, host) in plan.get("hosts").and_then(toml::Value::as_table).into_iter().flatten() {
            self.named(Meaning::PlanHost, name);
            for key in ["host", "serve", "addresses"] {
                self.learn_key(host, key, Meaning::Host);
            }
            self.learn_key(host, "user", Meaning::User);
            self.learn_key(host, "bed", Meaning::Resource);
        }
        for arm in plan.get("arms").and_then(toml::Value::as_array).into_iter().flatten() {
            for role in ["client", "server"] {
                self.learn_key(arm, role, Meaning::PlanHost);
            }
            self.learn_key(arm, "server_addresses", Meaning::Host);
            let treatments = arm.get("treatments").and_then(toml::Value::as_array);
            for treatment in treatments.into_iter().flatten() {
                for key in ["azure-nic", "azure-placement", "vm", "resource-group"] {
                    self.learn_key(treatment, key, Meaning::Resource);
                }
            }
        }
        text::learn(text, &mut self.pseudonyms);
    }

    /// Learns the values of a key, one or a list. What is no valid one may have a name before a prefix or behind a scheme: `db-prod7/24`.
    fn learn_key(&mut self, table: &toml::Value, key: &str, meaning: Meaning) {
        let values = match table.get(key) {
            Some(toml::Value::Array(values)) => values.as_slice(),
            Some(value) => std::slice::from_ref(value),
            None => &[],
        };
        let parts = values.iter().filter_map(toml::Value::as_str).flat_map(|text| text.split('/'));
        for part in parts.filter(|part| !part.bytes().all(|byte| byte.is_ascii_digit())) {
            self.named(meaning, part);
        }
    }

    fn learn_phrase(&mut self, kind: &str, name: &str) {
        if name.is_empty() || is_too_long(name) || self.phrase(name).is_some() {
            return;
        }
        let pseudonym = if is_numbered(kind, name) { name.to_owned() } else { self.next_phrase(kind) };
        self.phrases.push((Caseless::of(name).as_str().to_owned(), pseudonym));
        // A name may be a part of another one.
        self.phrases.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
    }

    /// A pseudonym that no author or organization has.
    fn next_phrase(&self, kind: &str) -> String {
        let taken = self.phrases.iter().map(|(_, pseudonym)| pseudonym.as_str());
        let taken: Vec<&str> = taken.filter(|pseudonym| pseudonym.starts_with(kind)).collect();
        let mut number = taken.len();
        loop {
            number += 1;
            let next = format!("{kind}-{number}");
            if !taken.contains(&next.as_str()) {
                return next;
            }
        }
    }

    /// Decides how the arms and workloads of a plan are shown, before texts in which they are named. Learn the plan first.
    pub fn show_names(&mut self, plan: &ResolvedPlan) {
        for arm in &plan.arms {
            self.short_name(arm.name.as_str());
        }
        for workload in &plan.workloads {
            self.short_name(workload.as_str());
        }
    }

    /// The value with pseudonyms. Learn it first.
    ///
    /// # Errors
    /// [`RedactError`] when the type refuses a pseudonym.
    pub fn redact<T: Serialize + DeserializeOwned>(&mut self, value: &T) -> Result<T, RedactError> {
        Ok(serde_json::from_value(self.redacted(value)?)?)
    }

    fn redacted(&mut self, value: &impl Serialize) -> Result<Value, RedactError> {
        Ok(walk(value, &mut |place, text| self.string(meaning(place), text))?)
    }

    /// The run with pseudonyms, without the author's logo and the hash of its bed's template. Learn it first, with every other run of the same output.
    ///
    /// # Errors
    /// As [`Self::redact`].
    pub fn redact_run(&mut self, run: &Run) -> Result<Run, RedactError> {
        self.show_names(&run.header.plan);
        let mut header = self.redact(&run.header)?;
        for author in [&mut header.plan.report, &mut header.annotations.publication] {
            (author.logo, author.image) = (None, None);
            for name in [&mut author.author, &mut author.organization] {
                if name.as_deref().is_some_and(is_too_long) {
                    *name = None;
                }
            }
        }
        if let Some(bed) = &mut header.bed {
            // It is the same in all runs on a bed, and confirms a guess of its file.
            bed.template_sha256 = None;
        }
        Ok(Run {
            header,
            trials: run.trials.iter().map(|trial| self.redact(trial)).collect::<Result<_, _>>()?,
            warnings: self.redact(&run.warnings)?,
            end: self.redact(&run.end)?,
        })
    }

    /// The text with pseudonyms. The arms, workloads and runs in it have the names that they are shown by.
    pub fn text(&mut self, text: &str) -> String {
        let text = self.with_own_names_replaced(text);
        self.words_and_runs(&text)
    }

    /// The text with names of arms, workloads and runs that are not shown as its other words, where they are whole words.
    fn with_own_names_replaced(&self, text: &str) -> String {
        if self.own_names.is_empty() {
            return text.to_owned();
        }
        let is_of_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        let mut result = String::with_capacity(text.len());
        for part in text.split_inclusive(|c| !is_of_name(c)) {
            let word = part.trim_end_matches(|c| !is_of_name(c));
            // A sentence may end behind it.
            let candidates = [word, word.trim_end_matches('.')];
            let found = candidates.into_iter().find_map(|name| Some((name, self.own_name(name)?)));
            match found.and_then(|(name, shown)| Some((shown, part.strip_prefix(name)?))) {
                Some((shown, behind)) => {
                    result.push_str(shown);
                    result.push_str(behind);
                }
                None => result.push_str(part),
            }
        }
        result
    }

    /// How a name is shown that is not shown as a word of a text. One that is also shown in place of another may be redacted already.
    fn own_name(&self, name: &str) -> Option<&str> {
        let is_of_another = self.shown_names.get(name).is_some_and(|other| other != name);
        self.own_names.get(name).map(String::as_str).filter(|_| !is_of_another)
    }

    /// The text with pseudonyms and names of runs.
    fn words_and_runs(&mut self, text: &str) -> String {
        let text = self.with_run_names_replaced(text);
        self.words(&text)
    }

    /// The text with names of runs that begin with the pseudonym of their plan's name.
    fn with_run_names_replaced(&mut self, text: &str) -> String {
        let mut text = text.to_owned();
        let plans = std::mem::take(&mut self.plans);
        for (plan, start) in &plans {
            if !text.contains(start.as_str()) {
                continue;
            }
            let shown = start_of_run_name(&self.words(plan));
            if shown != *start {
                text = text::with_run_names_replaced(&text, start, &shown);
            }
        }
        self.plans = plans;
        text
    }

    /// The text with pseudonyms but for starts of names.
    fn words(&mut self, text: &str) -> String {
        let mut text = text::with_values_replaced(text, |value| self.short(value));
        for (name, pseudonym) in self.phrases.iter().filter(|(name, _)| name.len() >= NAME_LEN_MIN) {
            text = with_phrase_replaced(&text, name, pseudonym);
        }
        text::replaced(&text, &mut self.pseudonyms, false)
    }

    /// The pseudonym of what a command line calls a host.
    pub fn host(&mut self, text: &str) -> String {
        text::host_name(text, &mut self.pseudonyms)
    }

    /// The pseudonym of an author or organization.
    fn phrase(&self, name: &str) -> Option<String> {
        let name = Caseless::of(name);
        self.phrases.iter().find(|(known, _)| known == name.as_str()).map(|(_, pseudonym)| pseudonym.clone())
    }

    /// The pseudonym of a name that is too short to be sought in texts, with or without a port behind it.
    fn short(&self, value: &str) -> Option<String> {
        let name = value.split_once(':').map_or(value, |(name, _)| name);
        if name.len() >= NAME_LEN_MIN || name.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let pseudonym = self.phrase(name).or_else(|| self.pseudonyms.known(name).map(str::to_owned))?;
        Some(format!("{pseudonym}{}", value.strip_prefix(name)?))
    }

    /// A word of a command line with pseudonyms: it may be a short name, or end with one.
    fn argument(&mut self, text: &str) -> String {
        let value = text.rsplit_once('=').map_or(text, |(_, value)| value);
        let value = value.strip_prefix("ssh:").unwrap_or(value);
        match (self.short(value), text.strip_suffix(value)) {
            (Some(pseudonym), Some(start)) => format!("{}{pseudonym}", self.text(start)),
            _ => self.text(text),
        }
    }

    fn string(&mut self, meaning: Meaning, text: &str) -> String {
        match meaning {
            Meaning::Word => text.to_owned(),
            Meaning::Text => self.text(text),
            // The names of its runs begin with it, whatever arms and workloads are called.
            Meaning::PlanName => self.words_and_runs(text),
            Meaning::Argument => self.argument(text),
            // It has no pseudonym, and is left out.
            Meaning::Author | Meaning::Organization if is_too_long(text) => text.to_owned(),
            Meaning::Author | Meaning::Organization => self.phrase(text).unwrap_or_else(|| self.text(text)),
            Meaning::Version => text::replaced(text, &mut self.pseudonyms, true),
            Meaning::Name => self.short_name(text),
            // It stays, but for the names within it: a host of the plan may have the name of its VM.
            Meaning::Resource if is_given_name(text) => self.text(text),
            meaning => self.named(meaning, text),
        }
    }

    /// The name of an arm, a workload, a lab or a run with pseudonyms. Two names stay two, also where they differ only in the upper and lower case
    /// of a host, or in what is cut off: trials belong to arms and workloads by their names.
    fn short_name(&mut self, text: &str) -> String {
        // A pseudonym may be longer than the name; both are of the same alphabet.
        let whole = self.words_and_runs(text);
        let start = |len_max: usize| whole.chars().take(len_max).collect::<String>();
        let mut name = start(NAME_LEN_MAX);
        let mut number = 1_u32;
        while self.shown_names.get(&name).is_some_and(|other| other != text) {
            number = number.saturating_add(1);
            let end = format!("-{number}");
            name = start(NAME_LEN_MAX.saturating_sub(end.len())) + &end;
        }
        self.shown_names.insert(name.clone(), text.to_owned());
        if name == whole {
            self.own_names.remove(text);
        } else {
            self.own_names.insert(text.to_owned(), name.clone());
        }
        name
    }

    fn named(&mut self, meaning: Meaning, text: &str) -> String {
        match meaning {
            Meaning::User => self.pseudonyms.name(Kind::User, text),
            Meaning::Id => self.pseudonyms.id(text),
            Meaning::Resource if is_given_name(text) => text.to_owned(),
            Meaning::Resource => self.pseudonyms.name(Kind::Resource, text),
            Meaning::PlanHost if text.len() < NAME_LEN_MIN => text.to_owned(),
            Meaning::PlanHost => {
                self.pseudonyms.plan_host(text, |pseudonyms| text::host_name(text, pseudonyms))
            }
            _ => text::host_name(text, &mut self.pseudonyms),
        }
    }
}

/// Whether a name is a pseudonym already, of an output that is redacted again.
fn is_numbered(kind: &str, name: &str) -> bool {
    let number = name.strip_prefix(kind).and_then(|name| name.strip_prefix('-'));
    number.is_some_and(|text| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Whether a name of an author or organization is longer than any of a plan: to look for it in long texts takes hours.
fn is_too_long(name: &str) -> bool {
    name.chars().count() > TEXT_LEN_MAX
}

#[cfg(test)]
mod tests;
