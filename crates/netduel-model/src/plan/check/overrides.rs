//! Settings that take the place of those in a plan's text: `netduel run --set KEY=VALUE`. They are read by the same readers as the
//! keys of a plan, so that both mean the same; what they lead to is checked with the rest of the plan.
use toml::Spanned;
use toml::de::DeValue;

use super::settings;
use crate::nearest::nearest;
use crate::plain_text::{check_shown, plain};
use crate::plan::problem::{Problems, element_path, key_path};
use crate::plan::shape::Shape;
use crate::plan::spec::{DesignSpec, PlanSpec, WorkloadSpec};
use crate::plan::value::Raw;

/// The word for the table of the design.
const DESIGN: &str = "design";
/// What an override may look like.
const ALLOWED: &str =
    "write KEY=VALUE for the design or every workload that has the key, WORKLOAD.KEY=VALUE for one workload";
/// What to write in place of an override with a hidden character, which may be a line break.
const ONE_SETTING: &str = "write one setting in one line without it, and repeat --set for each further one";
/// Keys of a workload that say which workload it is.
const FIXED: [&str; 2] = ["name", "type"];

/// Lays overrides over a plan, in their order.
pub(crate) fn apply(spec: &mut PlanSpec, overrides: &[String], problems: &mut Problems<'_>) {
    for given in overrides {
        // It is stored with the run, and outputs would show another one.
        if let Err(hidden) = check_shown(given) {
            refuse(&plain(given), &hidden.to_string(), ONE_SETTING, problems);
            continue;
        }
        let Some((key, value)) = given.split_once('=') else {
            refuse(given, "has no value", ALLOWED, problems);
            continue;
        };
        let (key, value) = (key.trim(), value.trim());
        // What is not exactly one value of TOML is a text: `duration=5 s` needs no quotes. As a line of a document it could have further
        // keys after it.
        let text = || Spanned::new(0..value.len(), DeValue::String(value.into()));
        let raw = DeValue::parse(value).unwrap_or_else(|_| text());
        set(spec, given, key, &raw, problems);
    }
}

fn set(spec: &mut PlanSpec, given: &str, key: &str, raw: &Raw<'_>, problems: &mut Problems<'_>) {
    let (table, key) = key.rsplit_once('.').map_or((None, key), |(table, key)| (Some(table), key));
    let is_of_design = DesignSpec::keys().iter().any(|known| known.name == key);
    let is_of_workload = WorkloadSpec::keys().iter().any(|known| known.name == key) && !FIXED.contains(&key);
    match table {
        Some(DESIGN) | None if is_of_design => {
            let path = key_path(DESIGN, key);
            problems.override_key(&path, given);
            spec.design.get_or_insert_default().fill(key, raw, &path, problems);
        }
        Some(DESIGN) => {
            let keys = keys_of_design();
            let allowed = did_you_mean(key, &keys) + &listed("keys of the design", &keys);
            refuse(given, "is not a key of the design", &allowed, problems);
        }
        _ if !is_of_workload => {
            let allowed = possible_keys(spec, table, key);
            refuse(given, "is neither a key of the design nor a setting of workloads", &allowed, problems);
        }
        name => set_of_workloads(spec, given, (name, key), raw, problems),
    }
}

/// Sets a key of one workload by its name, or of every workload that has it. A key that none of them has is left to the rules, which
/// say so.
fn set_of_workloads(
    spec: &mut PlanSpec,
    given: &str,
    (name, key): (Option<&str>, &str),
    raw: &Raw<'_>,
    problems: &mut Problems<'_>,
) {
    let Some(workloads) = &mut spec.workloads else { return };
    let is_meant = |workload: &WorkloadSpec| match name {
        Some(_) => is_named(workload, name),
        None => has_key(workload, key, raw),
    };
    let mut meant: Vec<usize> = (0..workloads.len()).filter(|index| is_meant(&workloads[*index])).collect();
    if meant.is_empty() {
        if let Some(name) = name {
            let names: Vec<&str> =
                workloads.iter().filter_map(|workload| Some(workload.name.as_ref()?.as_str())).collect();
            let allowed = did_you_mean(name, &names) + &listed("workloads of the plan", &names);
            return refuse(given, "names no workload of the plan", &allowed, problems);
        }
        meant = (0..workloads.len()).collect();
    }
    for index in meant {
        let path = key_path(&element_path("workloads", index), key);
        problems.override_key(&path, given);
        workloads[index].fill(key, raw, &path, problems);
    }
}

/// Whether a workload's type has a setting.
fn has_key(workload: &WorkloadSpec, key: &str, raw: &Raw<'_>) -> bool {
    let (Some(kind), mut tried, mut noted) = (workload.kind, WorkloadSpec::default(), Problems::new(""))
    else {
        return false;
    };
    tried.fill(key, raw, key, &mut noted);
    let unreadable = noted.len();
    settings::check_belong(&tried, kind, "", &mut noted);
    noted.len() == unreadable
}

/// Whether a workload has this name; every workload is meant without one.
fn is_named(workload: &WorkloadSpec, name: Option<&str>) -> bool {
    name.is_none_or(|name| workload.name.as_ref().is_some_and(|own| own.as_str() == name))
}

fn keys_of_design() -> Vec<&'static str> {
    DesignSpec::keys().iter().map(|key| key.name).collect()
}

/// The keys that an override can have in place of one that is unknown: those of a workload by its name, or of the design and all workloads.
fn possible_keys(spec: &PlanSpec, name: Option<&str>, key: &str) -> String {
    let workloads: Vec<&WorkloadSpec> =
        spec.workloads.iter().flatten().filter(|workload| is_named(workload, name)).collect();
    let is_possible =
        |key: &&str| !FIXED.contains(key) && workloads.iter().any(|workload| workload.is_possible(key));
    let of_workloads: Vec<&str> =
        WorkloadSpec::keys().iter().map(|key| key.name).filter(is_possible).collect();
    let of_design = if name.is_some() { Vec::new() } else { keys_of_design() };
    let all = [of_design.as_slice(), of_workloads.as_slice()].concat();
    if all.is_empty() {
        return ALLOWED.to_owned();
    }
    let lists = [("keys of the design", &of_design), ("keys of the workloads", &of_workloads)];
    let lists = lists.into_iter().filter(|(_, keys)| !keys.is_empty());
    let lists: Vec<String> = lists.map(|(title, keys)| listed(title, keys)).collect();
    did_you_mean(key, &all) + &lists.join("; ")
}

/// A question with the word that is near; empty without one.
fn did_you_mean(word: &str, words: &[&str]) -> String {
    nearest(word, words.iter().copied()).map(|meant| format!("did you mean `{meant}`? ")).unwrap_or_default()
}

fn listed(title: &str, words: &[&str]) -> String {
    format!("{title}: {}", words.join(", "))
}

fn refuse(given: &str, wrong: &str, allowed: &str, problems: &mut Problems<'_>) {
    problems.override_key(given, given);
    problems.add(given, wrong, allowed);
}

#[cfg(test)]
mod tests {
    use crate::plan::{Permissions, parse_with};
    use crate::units::Nanos;

    const PLAN: &str = r#"
name = "x"
question = "Is it faster?"
[hosts.a]
launch = "local"
[hosts.b]
launch = "command"
command = ["ssh", "b"]
addresses = ["192.0.2.1"]
[[arms]]
name = "one"
client = "a"
server = "b"
[[arms]]
name = "two"
client = "a"
server = "b"
set = { streams = 8 }
[[workloads]]
name = "bulk"
type = "tcp-stream"
[[workloads]]
name = "latency"
type = "tcp-rr"
duration = "2 s"
"#;

    fn with(overrides: &[&str]) -> Result<crate::plan::ResolvedPlan, String> {
        let overrides: Vec<String> = overrides.iter().map(|text| (*text).to_owned()).collect();
        parse_with(PLAN, "x.toml", &overrides, Permissions::default()).map_err(|errors| errors.to_string())
    }

    fn durations(overrides: &[&str]) -> Vec<Nanos> {
        let plan = with(overrides).expect("a plan");
        plan.arms[0].workloads.iter().map(|workload| workload.timing.duration).collect()
    }

    #[test]
    fn override_sets_one_workload_or_every_workload_that_has_the_key() {
        let s = |seconds: u64| Nanos(seconds * 1_000_000_000);
        assert_eq!(durations(&[]), [s(10), s(2)]);
        assert_eq!(durations(&["duration=3 s"]), [s(3), s(3)]);
        assert_eq!(durations(&["bulk.duration=\"4 s\"", "latency.duration = 5 s"]), [s(4), s(5)]);
        // The last one holds.
        assert_eq!(durations(&["duration=3 s", "bulk.duration=6 s"]), [s(6), s(3)]);
        // Streams are no setting of round trips, and an arm's own setting stays.
        let plan = with(&["streams=4", "blocks_min=3", "design.blocks_max=5"]).expect("a plan");
        let json = serde_json::to_value(&plan).expect("json");
        let streams = |arm: usize| &json["arms"][arm]["workloads"][0]["traffic"]["streams"];
        assert_eq!((streams(0), streams(1)), (&4.into(), &8.into()));
        assert_eq!((plan.design.blocks_min, plan.design.blocks_max), (3, 5));
    }

    #[test]
    fn contradiction_with_a_key_of_the_plan_names_the_override_and_what_to_set() {
        let text = format!("{PLAN}warmup = \"1 s\"\n[design]\nblocks_min = 8\nblocks_max = 20\n");
        let error = |overrides: &[&str]| {
            let overrides: Vec<String> = overrides.iter().map(|text| (*text).to_owned()).collect();
            parse_with(&text, "x.toml", &overrides, Permissions::default())
                .expect_err("contradicting keys")
                .to_string()
        };
        assert_eq!(
            error(&["blocks_max=3"]),
            "--set blocks_max=3: is less than blocks_min of the plan, which is 8; set 8 or more, or add --set blocks_min=3"
        );
        assert_eq!(
            error(&["blocks_min=30"]),
            "--set blocks_min=30: is 30, more than blocks_max, which is 20; blocks_min may be as large as blocks_max"
        );
        assert_eq!(error(&["blocks_max=0"]), "--set blocks_max=0: is 0; 2 to 10000 is allowed");
        let error = error(&["latency.duration=900 ms"]);
        assert!(error.starts_with("--set latency.duration=900 ms: leaves nothing to measure"), "{error}");
    }

    #[test]
    fn override_is_checked_as_the_plan_is_and_named_in_the_error() {
        for (given, wrong) in [
            ("duration=5 parsecs", "--set duration=5 parsecs: is the text"),
            ("bulk.streams=0", "--set bulk.streams=0: "),
            ("streams=ten", "--set streams=ten: is the text \"ten\""),
            ("blocks_max=1", "--set blocks_max=1: "),
            ("bulk.warmup=20 s", "--set bulk.warmup=20 s: leaves nothing to measure"),
            ("nobody.streams=2", "--set nobody.streams=2: names no workload"),
            ("latency.streams=2", "--set latency.streams=2: "),
            ("strems=2", "--set strems=2: is neither a key of the design nor"),
            ("blok_max=3", "did you mean `blocks_max`? keys of the design: blocks_min, blocks_max, "),
            ("foo=5", "; keys of the workloads: duration, warmup, cooldown, metrics, family, "),
            ("bulk.strems=2", "did you mean `streams`? keys of the workloads: duration, "),
            ("latncy.duration=2 s", "did you mean `latency`? workloads of the plan: bulk, latency"),
            ("design.streams=2", "--set design.streams=2: is not a key of the design; keys of the design: "),
            ("bulk.name=other", "--set bulk.name=other: is neither"),
            ("streams", "--set streams: has no value"),
            ("blocks_max=4 # \u{202e}", ": contains the character U+202E, which controls"),
            ("window=1 MiB", ""),
            (
                "blocks_max=2\nblocks_min=9999",
                "--set blocks_max=2 blocks_min=9999: contains the character U+000A, ",
            ),
            ("streams=2\r\nunknown=3", "; write one setting in one line without it, and repeat --set"),
            (
                "blocks_min=2\u{1b}[2J",
                "--set blocks_min=2\u{fffd}[2J: contains the character U+001B, which controls",
            ),
            ("blocks_max=3 # three", "--set blocks_max=3 # three: is the text \"3 # three\""),
            ("blocks_max=3, blocks_min=2", "is the text \"3, blocks_min=2\""),
            ("blocks_max={}", "--set blocks_max={}: is a table"),
            ("blocks_max=", "--set blocks_max=: is the text \"\""),
        ] {
            let result = with(&[given]);
            if wrong.is_empty() {
                assert!(result.is_ok(), "{given}: {result:?}");
            } else {
                let error = result.expect_err(given);
                assert!(error.contains(wrong) && !error.contains("x.toml:"), "{given}: {error}");
            }
        }
    }
}
