//! A run as a baseline file and back: what a comparison needs of it. Files are neither read nor written here.
mod checksum;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::fmt;

use netduel_model::ids::HostName;
use netduel_model::json_text::{STORED_LEN_MAX, longer_than, quoted};
use netduel_model::metric::Metric;
use netduel_model::plan::ResolvedPlan;
use netduel_model::redact::{
    Meaning, RedactError, Redactor, is_host_pseudonym, meaning, walk, with_host_pseudonyms_replaced,
};
use netduel_model::run::{Annotations, Run, RunEnd, RunHeader};
use netduel_model::warning::Warning;
use netduel_model::workload::Role;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::analysis::compare::{Aspect, Fact, Owner, RunFacts, Side};
use crate::analysis::{Analysis, ArmAnalysis, ArmValues, MetricAnalysis, WorkloadAnalysis, analyse};
use crate::json::baseline::{
    Aspects, BaselineContent, BaselineDocument, BaselineFacts, BaselineMetric, BaselineRun, BaselineValues,
    WorkloadFacts,
};
use crate::json::envelope::{Document as _, Origin, iso_8601};
use checksum::{checksum, take_checksum};

/// A run as a baseline file has it: no trials, but the values of each.
#[derive(Debug, Clone)]
pub struct Baseline {
    header: RunHeader,
    analysis: Analysis,
    facts: RunFacts,
    /// What the others are made of.
    parts: Parts,
    /// The names of hosts whose pseudonyms stand in the texts of the file.
    in_texts: HostNames,
}

/// Other names of hosts.
type HostNames = BTreeMap<HostName, HostName>;

/// What a baseline file holds, in the types of this program.
#[derive(Debug, Clone)]
struct Parts {
    content: BaselineContent,
    plan: ResolvedPlan,
    warnings: Vec<Warning>,
    end: Option<RunEnd>,
}

/// Why a text is no baseline that can be compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BaselineError(String);

impl fmt::Display for BaselineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for BaselineError {}

/// The baseline file of a run. `run_format` is the format of run files that this program writes; `is_redacted` when the run has pseudonyms.
pub fn document(
    run: &Run,
    analysis: &Analysis,
    run_format: u32,
    origin: &Origin,
    is_redacted: bool,
) -> BaselineDocument {
    let header = &run.header;
    let annotations = header.annotations.clone();
    let mut document = BaselineDocument {
        envelope: BaselineDocument::envelope(origin),
        content: BaselineContent {
            run: BaselineRun {
                id: header.id.clone(),
                program: header.program.clone(),
                command: header.command.clone(),
                started: iso_8601(header.started_unix_ms),
                started_unix_ms: header.started_unix_ms,
                seed: header.seed.to_string(),
                title: annotations.title,
                notes: annotations.notes,
                overrides: annotations.overrides,
                end: analysis.end.as_ref().map(stored),
            },
            run_format,
            // The bed is not in the file, and a run on another bed has other names.
            plan: stored(&header.plan_without_bed()),
            blocks: analysis.blocks,
            trials_valid: analysis.trials_valid,
            trials_excluded: analysis.trials_excluded,
            measured: analysis.workloads.iter().flat_map(measured).collect(),
            facts: grouped(&RunFacts::of(run)),
            warnings: analysis.warnings.iter().map(stored).collect(),
            is_redacted,
            checksum: String::new(),
        },
    };
    let mut whole = stored(&document);
    take_checksum(&mut whole);
    document.content.checksum = checksum(&whole);
    document
}

/// A stored type as JSON. Run files contain all of them, so each has a JSON form.
fn stored(value: &impl Serialize) -> Value {
    serde_json::to_value(value).unwrap_or_default()
}

/// Each arm of a workload with its values in all metrics.
fn measured(workload: &WorkloadAnalysis) -> Vec<BaselineValues> {
    let metrics = |arm: &ArmValues, metric: Metric| BaselineMetric {
        metric,
        unit: metric.unit().to_owned(),
        values: arm.values.iter().map(|(block, value)| (block.saturating_add(1), *value)).collect(),
        bounds: arm.at_least.union(&arm.without).map(|block| block.saturating_add(1)).collect(),
    };
    let of_arm = |arm: &ArmAnalysis| {
        let all = workload.judged.iter().chain(&workload.unjudged);
        let own = all.filter_map(|metric| {
            let values = metric.arms.iter().find(|values| values.arm == arm.arm)?;
            (!values.result_blocks().is_empty()).then(|| metrics(values, metric.metric))
        });
        BaselineValues {
            arm: arm.arm.clone(),
            workload: workload.name.clone(),
            trials: arm.trials,
            contended: arm.contended.iter().map(|(block, share)| (block.saturating_add(1), *share)).collect(),
            metrics: own.collect(),
        }
    };
    workload.arms.iter().map(of_arm).collect()
}

fn grouped(facts: &RunFacts) -> BaselineFacts {
    let mut grouped = BaselineFacts::default();
    for fact in &facts.0 {
        let aspects: &mut Aspects = match (&fact.owner, &fact.interface) {
            (Owner::Run, _) => &mut grouped.run,
            (Owner::Host(host), None) => &mut grouped.hosts.entry(host.clone()).or_default().host,
            (Owner::Host(host), Some(interface)) => {
                let host = grouped.hosts.entry(host.clone()).or_default();
                host.interfaces.entry(interface.clone()).or_default()
            }
            (Owner::Arm(arm), _) => grouped.arms.entry(arm.clone()).or_default(),
            (Owner::Workload(arm, workload), _) => {
                let own = |one: &WorkloadFacts| one.arm == *arm && one.workload == *workload;
                let place = grouped.workloads.iter().position(own).unwrap_or(grouped.workloads.len());
                if place == grouped.workloads.len() {
                    grouped.workloads.push(WorkloadFacts {
                        arm: arm.clone(),
                        workload: workload.clone(),
                        facts: Aspects::new(),
                    });
                }
                &mut grouped.workloads[place].facts
            }
        };
        aspects.entry(fact.aspect).or_default().insert(fact.name.clone(), fact.value.clone());
    }
    grouped
}

fn listed(grouped: BaselineFacts) -> RunFacts {
    let mut facts = Vec::new();
    let mut add = |owner: &Owner, interface: Option<&String>, aspects: Aspects| {
        for (aspect, own) in aspects {
            facts.extend(own.into_iter().map(|(name, value)| Fact {
                aspect,
                owner: owner.clone(),
                interface: interface.cloned(),
                name,
                value,
            }));
        }
    };
    add(&Owner::Run, None, grouped.run);
    for (arm, aspects) in grouped.arms {
        add(&Owner::Arm(arm), None, aspects);
    }
    for one in grouped.workloads {
        add(&Owner::Workload(one.arm, one.workload), None, one.facts);
    }
    for (name, host) in grouped.hosts {
        let owner = Owner::Host(name);
        add(&owner, None, host.host);
        for (interface, aspects) in host.interfaces {
            add(&owner, Some(&interface), aspects);
        }
    }
    RunFacts(facts)
}

/// Adds the sizes of the hosts that the cloud named to those of the plan: a baseline file has no snapshots.
fn add_sizes(plan: &mut ResolvedPlan, facts: &RunFacts) {
    for fact in facts.0.iter().filter(|fact| fact.aspect == Aspect::Size && fact.name == "size") {
        let Owner::Host(host) = &fact.owner else { continue };
        if let Some(host) = plan.hosts.get_mut(host) {
            host.size.get_or_insert_with(|| fact.value.clone());
        }
    }
}

impl Baseline {
    /// Reads a baseline file. `run_format` is the newest format of run files that this program reads; `upgrade` brings a line of an older one to it.
    ///
    /// # Errors
    /// [`BaselineError`]; its text is short, whatever the file contains.
    pub fn parse(
        text: &str,
        run_format: u32,
        upgrade: impl Fn(&mut Value, u32),
    ) -> Result<Self, BaselineError> {
        if let Some(length) = longer_than(text.as_bytes(), STORED_LEN_MAX, None) {
            let reason = format!("it has a text of {length} bytes, and {STORED_LEN_MAX} are allowed");
            return Err(BaselineError(reason));
        }
        let mut file: Value =
            serde_json::from_str(text).map_err(|error| BaselineError(format!("it is no JSON: {error}")))?;
        let (name, version) = (&file["document"], file["version"].as_u64());
        if *name != BaselineDocument::NAME {
            return Err(BaselineError(format!("it is no {}", BaselineDocument::NAME)));
        }
        if version != Some(u64::from(BaselineDocument::VERSION)) {
            let own = version.map_or_else(|| "no number".to_owned(), |version| version.to_string());
            let newest = BaselineDocument::VERSION;
            return Err(BaselineError(format!("its version is {own}; this netduel reads version {newest}")));
        }
        if take_checksum(&mut file).is_some_and(|stated| stated != checksum(&file)) {
            return Err(BaselineError("it is damaged: its checksum does not fit".to_owned()));
        }
        let content: BaselineContent = typed(file)?;
        // What a later format adds would be ignored, so that other settings would count as the same.
        if content.run_format > run_format {
            let (own, newest) = (content.run_format, run_format);
            return Err(BaselineError(format!(
                "its plan has format {own} of run files; this netduel reads formats up to {newest}"
            )));
        }
        // The places of an upgrade are those of lines of a run file.
        let upgraded = |key: &str, value: Value| {
            let mut line = json!({ key: value });
            upgrade(&mut line, content.run_format);
            line[key].take()
        };
        let plan: ResolvedPlan = typed(upgraded("header", json!({ "plan": content.plan }))["plan"].take())?;
        if let Some(reason) = plan.excess() {
            return Err(BaselineError(reason));
        }
        let warnings = content.warnings.iter().map(|one| typed(upgraded("warning", one.clone())));
        let warnings: Vec<Warning> = warnings.collect::<Result<_, _>>()?;
        let end = content.run.end.clone().map(|end| typed(upgraded("end", end))).transpose()?;
        Self::of(Parts { content, plan, warnings, end })
    }

    fn of(parts: Parts) -> Result<Self, BaselineError> {
        let Parts { content, mut plan, warnings, end } = parts.clone();
        let run = content.run;
        let seed = run.seed.parse().map_err(|_| BaselineError("its seed is no number".to_owned()))?;
        let facts = listed(content.facts);
        add_sizes(&mut plan, &facts);
        let mut analysis = analyse(&plan, None, &[], &warnings, end.as_ref());
        analysis.warnings = warnings;
        analysis.blocks = content.blocks;
        analysis.trials_valid = content.trials_valid;
        analysis.trials_excluded = content.trials_excluded;
        for own in content.measured {
            let Some(workload) = analysis.workloads.iter_mut().find(|one| one.name == own.workload) else {
                continue;
            };
            fill(workload, own)?;
        }
        let header = RunHeader {
            id: run.id,
            started_unix_ms: run.started_unix_ms,
            program: run.program,
            command: run.command,
            plan,
            plan_text: String::new(),
            seed,
            hosts: BTreeMap::new(),
            annotations: Annotations {
                title: run.title,
                notes: run.notes,
                overrides: run.overrides,
                ..Annotations::default()
            },
            report: None,
            further_reports: Vec::new(),
            bed: None,
        };
        Ok(Self { header, analysis, facts, parts, in_texts: HostNames::new() })
    }

    /// The baseline as a side of a comparison.
    pub fn side(&self) -> Side<'_> {
        Side { header: &self.header, analysis: &self.analysis, facts: Cow::Borrowed(&self.facts) }
    }

    /// Whether the file was written with `--redact`.
    pub fn is_redacted(&self) -> bool {
        self.parts.content.is_redacted
    }

    /// Gives hosts with pseudonyms the names that another plan has in the same role of the same arm, so that a redacted file
    /// is compared with runs that are not, or that have other pseudonyms. In a file that does not state that it is redacted, hosts may have
    /// such names themselves: they get no other pseudonyms. Texts get other pseudonyms and no names.
    ///
    /// # Errors
    /// [`BaselineError`] when a name does not fit in place of a pseudonym.
    pub fn name_hosts_as(&mut self, plan: &ResolvedPlan) -> Result<(), BaselineError> {
        let names = host_names(&self.header.plan, plan, self.is_redacted());
        if names.iter().all(|(pseudonym, name)| pseudonym == name) {
            return Ok(());
        }
        let has_pseudonyms = names.values().all(|name| is_host_pseudonym(name.as_str()));
        let parts = if has_pseudonyms { self.parts.with_texts(&names)? } else { self.parts.clone() };
        let content = BaselineContent { facts: renamed(&parts.content.facts, &names)?, ..parts.content };
        let parts = Parts {
            content,
            plan: renamed(&parts.plan, &names)?,
            warnings: renamed(&parts.warnings, &names)?,
            end: parts.end,
        };
        let in_texts = if has_pseudonyms { HostNames::new() } else { names };
        *self = Self { in_texts, ..Self::of(parts)? };
        Ok(())
    }

    /// Learns the names that a file shows as such. Other names must not get the pseudonyms of a redacted one.
    ///
    /// # Errors
    /// [`RedactError`] when JSON cannot represent a part.
    pub fn learn(&self, redactor: &mut Redactor) -> Result<(), RedactError> {
        redactor.learn(&self.parts.plan)?;
        redactor.learn(&self.parts.content)?;
        redactor.learn(&self.parts.warnings)?;
        redactor.learn(&self.parts.end)
    }

    /// A redacted file with the pseudonyms of another output: a host that it shares with a run has one in both. Learn it first. Facts keep what
    /// is no pseudonym of a host: no field shows which of them are versions, and which are names. So names stay in a file that is not redacted.
    ///
    /// # Errors
    /// [`BaselineError`] when a type refuses a pseudonym.
    pub fn redacted(&self, redactor: &mut Redactor) -> Result<Self, BaselineError> {
        let refused = |error: RedactError| BaselineError(error.to_string());
        redactor.show_names(&self.parts.plan);
        let mut in_texts = HostNames::new();
        for (pseudonym, name) in &self.in_texts {
            in_texts.insert(pseudonym.clone(), redactor.redact(name).map_err(refused)?);
        }
        let parts = self.parts.with_texts(&in_texts)?;
        let mut names = HostNames::new();
        for host in parts.plan.hosts.keys() {
            names.insert(host.clone(), redactor.redact(host).map_err(refused)?);
        }
        let facts = renamed(&parts.content.facts, &names)?;
        let content = BaselineContent { facts: BaselineFacts::default(), ..parts.content };
        Self::of(Parts {
            content: BaselineContent { facts, ..redactor.redact(&content).map_err(refused)? },
            plan: redactor.redact(&parts.plan).map_err(refused)?,
            warnings: redactor.redact(&parts.warnings).map_err(refused)?,
            end: redactor.redact(&parts.end).map_err(refused)?,
        })
    }

    /// What is known of the run besides its values.
    pub fn header(&self) -> &RunHeader {
        &self.header
    }
}

impl Parts {
    /// These with other names in place of pseudonyms of hosts within texts.
    fn with_texts(&self, names: &HostNames) -> Result<Self, BaselineError> {
        if names.is_empty() {
            return Ok(self.clone());
        }
        Ok(Self {
            content: with_texts(&self.content, names)?,
            plan: with_texts(&self.plan, names)?,
            warnings: with_texts(&self.warnings, names)?,
            end: with_texts(&self.end, names)?,
        })
    }
}

/// The names of hosts by their pseudonyms. Empty when a pseudonym has the places of different hosts, or a name those of two.
/// Only a redacted plan gets names that are pseudonyms themselves.
fn host_names(own: &ResolvedPlan, other: &ResolvedPlan, is_redacted: bool) -> HostNames {
    let mut names = HostNames::new();
    for arm in &own.arms {
        let Some(same) = other.arm(&arm.name) else { continue };
        for role in [Role::Client, Role::Server] {
            let (pseudonym, name) = (arm.pair.host(role), same.pair.host(role));
            let is_named = is_redacted || !is_host_pseudonym(name.as_str());
            if is_host_pseudonym(pseudonym.as_str())
                && is_named
                && names.insert(pseudonym.clone(), name.clone()).is_some_and(|known| known != *name)
            {
                return HostNames::new();
            }
        }
    }
    let are_distinct = names.values().collect::<BTreeSet<_>>().len() == names.len();
    // Two pseudonyms may be exchanged.
    let is_taken = names.values().any(|name| own.hosts.contains_key(name) && !names.contains_key(name));
    if are_distinct && !is_taken { names } else { HostNames::new() }
}

/// A value with other names of hosts.
fn renamed<T: Serialize + DeserializeOwned>(value: &T, names: &HostNames) -> Result<T, BaselineError> {
    let value = walk(value, &mut |place, text| {
        let renamed = if place.holder == "HostName" { name_of(text, names) } else { None };
        renamed.unwrap_or_else(|| text.to_owned())
    });
    typed(value.map_err(|error| damaged(&error))?)
}

/// A value with other names in place of pseudonyms of hosts within its texts. Names of arms stay: they are keys.
fn with_texts<T: Serialize + DeserializeOwned>(value: &T, names: &HostNames) -> Result<T, BaselineError> {
    let value = walk(value, &mut |place, text| match meaning(place) {
        Meaning::Text | Meaning::Host | Meaning::Argument => {
            with_host_pseudonyms_replaced(text, |pseudonym| name_of(pseudonym, names))
        }
        _ => text.to_owned(),
    });
    typed(value.map_err(|error| damaged(&error))?)
}

fn name_of(host: &str, names: &HostNames) -> Option<String> {
    Some(names.get(&HostName::new(host).ok()?)?.to_string())
}

fn typed<T: DeserializeOwned>(value: Value) -> Result<T, BaselineError> {
    serde_json::from_value(value).map_err(|error| damaged(&error))
}

/// An error about a part of a file, which may quote a text of the file.
fn damaged(error: &serde_json::Error) -> BaselineError {
    BaselineError(format!("it is damaged: {}", quoted(&error.to_string())))
}

/// The place of a block by its number in a file, which counts from 1.
fn place_of_block(number: u32) -> Result<u32, BaselineError> {
    let damaged = || BaselineError("it is damaged: it has a block 0, and blocks count from 1".to_owned());
    number.checked_sub(1).ok_or_else(damaged)
}

/// Adds the values of an arm to a workload without any.
fn fill(workload: &mut WorkloadAnalysis, own: BaselineValues) -> Result<(), BaselineError> {
    let Some(place) = workload.arms.iter().position(|arm| arm.arm == own.arm) else { return Ok(()) };
    let unit = workload.arms[place].workload.traffic.facts().unit;
    workload.arms[place].trials = own.trials;
    let by_place = |(number, value): (u32, f64)| place_of_block(number).map(|block| (block, value));
    workload.arms[place].contended = own.contended.into_iter().map(by_place).collect::<Result<_, _>>()?;
    let names: Vec<_> = workload.arms.iter().map(|arm| arm.arm.clone()).collect();
    for metric in own.metrics {
        let mut all = workload.judged.iter_mut().chain(&mut workload.unjudged);
        if !all.any(|one| one.metric == metric.metric) {
            workload.unjudged.push(MetricAnalysis {
                metric: metric.metric,
                unit,
                arms: names.iter().cloned().map(ArmValues::new).collect(),
                comparisons: Vec::new(),
            });
        }
        let mut all = workload.judged.iter_mut().chain(&mut workload.unjudged);
        let Some(known) = all.find(|one| one.metric == metric.metric) else { continue };
        let Some(arm) = known.arms.iter_mut().find(|arm| arm.arm == own.arm) else { continue };
        arm.values = metric.values.into_iter().map(by_place).collect::<Result<_, _>>()?;
        let bounds: BTreeSet<u32> =
            metric.bounds.into_iter().map(place_of_block).collect::<Result<_, _>>()?;
        (arm.at_least, arm.without) = bounds.into_iter().partition(|block| arm.has_value_in(*block));
    }
    Ok(())
}
