//! Treatments of an interface's queues, rings, interrupts and cores.
use std::str::FromStr;

use crate::nearest::nearest;
use crate::plan::problem::{Problems, key_path, one_of};
use crate::plan::resolved::TreatmentAction;
use crate::plan::spec::TreatmentSpec;
use crate::plan::tuning::{COALESCE_PARAMETERS, CoreChoice, RssSpread};
use crate::workload::{DESCRIPTORS, TREATMENT};

use super::values::check_table;

/// The action of a treatment of this kind; `None` when it is another kind, or a part of it is missing or unreadable.
pub(super) fn resolve(
    spec: &TreatmentSpec,
    path: &str,
    problems: &mut Problems<'_>,
) -> Option<TreatmentAction> {
    let interface = spec.interface.clone()?;
    if spec.vf.is_some() {
        return Some(TreatmentAction::Vf { interface });
    }
    if spec.pci.is_some() {
        return Some(TreatmentAction::Pci { interface });
    }
    if let Some(queues) = spec.queues {
        check_table(problems, path, TREATMENT, |key| (key == "queues").then_some(queues.into()));
        return Some(TreatmentAction::Queues { interface, queues });
    }
    if let Some(ring) = spec.ring {
        let allowed = "write the number of descriptors as text, for example value = \"1024\"";
        let descriptors = number(spec.value.as_deref()?, path, allowed, problems)?;
        check_table(problems, path, &[DESCRIPTORS], |_| Some(descriptors.into()));
        return Some(TreatmentAction::Ring { interface, ring, descriptors });
    }
    if let Some(parameter) = &spec.coalesce {
        let value = coalesce(parameter, spec.value.as_deref(), path, problems)?;
        return Some(TreatmentAction::Coalesce { interface, parameter: parameter.clone(), value });
    }
    if let Some(text) = &spec.rss {
        let allowed = "allowed: \"default\", \"equal N\", or \"weights A B ...\" that are not all 0, for at most 1024 queues";
        let table = parsed::<RssSpread>(text, &key_path(path, "rss"), allowed, problems)?;
        return Some(TreatmentAction::Rss { interface, table });
    }
    if let Some(text) = &spec.rps {
        let cores = cores(text, &key_path(path, "rps"), &["off"], problems)?;
        return Some(TreatmentAction::Rps { interface, cores });
    }
    if let Some(text) = &spec.xps {
        let cores = cores(text, &key_path(path, "xps"), &["off", "spread"], problems)?;
        return Some(TreatmentAction::Xps { interface, cores });
    }
    let cores = cores(spec.irq_affinity.as_deref()?, &key_path(path, "irq_affinity"), &["spread"], problems)?;
    Some(TreatmentAction::IrqAffinity { interface, cores })
}

fn parsed<T: FromStr<Err = String>>(
    text: &str,
    key: &str,
    allowed: &str,
    problems: &mut Problems<'_>,
) -> Option<T> {
    text.parse().map_err(|wrong| problems.add(key, wrong, allowed)).ok()
}

/// Cores, where some of the words that stand for a choice have no meaning.
fn cores(text: &str, key: &str, words: &[&str], problems: &mut Problems<'_>) -> Option<CoreChoice> {
    let quoted: Vec<String> = words.iter().map(|word| format!("\"{word}\"")).collect();
    let allowed = format!("allowed: a list of cores such as \"0-3,6\", or {}", quoted.join(", or "));
    let choice: CoreChoice = parsed(text, key, &allowed, problems)?;
    let is_word = !matches!(choice, CoreChoice::Cores { .. });
    if is_word && !words.contains(&text) {
        problems.add(key, format!("{text:?} has no meaning here"), allowed);
        return None;
    }
    Some(choice)
}

fn number(text: &str, path: &str, allowed: &str, problems: &mut Problems<'_>) -> Option<u32> {
    let wrong = format!("is {text:?}, which is no whole number");
    text.parse().map_err(|_| problems.add(&key_path(path, "value"), wrong, allowed)).ok()
}

fn coalesce(parameter: &str, value: Option<&str>, path: &str, problems: &mut Problems<'_>) -> Option<u32> {
    if !COALESCE_PARAMETERS.contains(&parameter) {
        let meant = nearest(parameter, COALESCE_PARAMETERS);
        let meant = meant.map(|name| format!("did you mean \"{name}\"? ")).unwrap_or_default();
        let allowed = format!("{meant}allowed: {}", one_of(COALESCE_PARAMETERS));
        let wrong = format!("{parameter:?} is not a parameter of coalescing");
        problems.add(&key_path(path, "coalesce"), wrong, allowed);
        return None;
    }
    match (parameter.starts_with("adaptive-"), value?) {
        (true, "on") => Some(1),
        (true, "off") => Some(0),
        (true, other) => {
            let wrong = format!("is {other:?}, but {parameter} is switched");
            problems.add(&key_path(path, "value"), wrong, "allowed: `on` or `off`");
            None
        }
        (false, text) => number(text, path, "write the number as text, for example value = \"50\"", problems),
    }
}
