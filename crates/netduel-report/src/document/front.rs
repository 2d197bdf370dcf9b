//! Builds the cover of a run, and of a comparison of runs.
use std::collections::BTreeSet;

use netduel_model::publication::{Publication, colour};
use netduel_model::run::Run;

use super::accent::Accent;
use super::cover::{Cover, is_image};
use crate::analysis::compare::{ComparedRun, RunComparison};
use crate::analysis::{Analysis, sizes};
use crate::words;

/// The cover of a run.
pub(super) fn cover(run: &Run, analysis: &Analysis, author: &Publication) -> Cover {
    let header = &run.header;
    // A title of the run is more particular than one of its plan.
    let title = [&header.annotations.publication.title, &header.annotations.title, &author.title];
    let mut facts = vec![
        ("Run".to_owned(), header.id.to_string()),
        ("Date".to_owned(), words::date(header.started_unix_ms)),
    ];
    let hosts: Vec<&str> = header.plan.hosts.keys().map(netduel_model::ids::HostName::as_str).collect();
    facts.push(("Hosts".to_owned(), words::listed(&hosts)));
    facts.extend(joined("Size", &sizes(analysis)));
    facts.extend(joined("NIC", &words::nic_products(analysis)));
    facts.extend(joined("Region", &regions(analysis)));
    facts.push(("Program".to_owned(), header.program.clone()));
    of_author(author, title.into_iter().flatten().next(), facts)
}

/// The cover of a comparison: the runs, and each fact of their hosts once.
pub(super) fn of_comparison(comparison: &RunComparison<'_>, author: &Publication) -> Cover {
    let labelled = |of: &dyn Fn(&ComparedRun<'_>) -> String| -> Vec<String> {
        comparison.runs.iter().map(|run| format!("{} {}", run.label, of(run))).collect()
    };
    let each = |of: &dyn Fn(&ComparedRun<'_>) -> Vec<String>| -> Vec<String> {
        let mut seen = BTreeSet::new();
        let all = comparison.runs.iter().flat_map(of);
        all.filter(|fact| seen.insert(fact.clone())).collect()
    };
    let facts = [
        ("Runs", labelled(&|run| run.header.id.to_string())),
        ("Dates", labelled(&|run| words::date(run.header.started_unix_ms))),
        ("Hosts", each(&|run| run.header.plan.hosts.keys().map(ToString::to_string).collect())),
        ("Size", each(&|run| sizes(run.analysis))),
        ("NIC", each(&|run| words::nic_products(run.analysis))),
        ("Region", each(&|run| regions(run.analysis))),
        ("Program", each(&|run| vec![run.header.program.clone()])),
    ];
    let facts = facts.iter().filter_map(|(title, values)| joined(title, values));
    of_author(author, author.title.as_ref(), facts.collect())
}

/// A cover with the names and the looks of the author.
fn of_author(author: &Publication, title: Option<&String>, facts: Vec<(String, String)>) -> Cover {
    let by = [&author.author, &author.organization].into_iter().flatten().cloned();
    Cover {
        title: title.cloned(),
        by: by.collect(),
        facts,
        logo: author.image.clone().filter(|image| is_image(image)),
        accent: author.accent.as_deref().and_then(colour).map(Accent::of),
    }
}

fn joined(title: &str, values: &[String]) -> Option<(String, String)> {
    (!values.is_empty()).then(|| (title.to_owned(), values.join("; ")))
}

/// Provider, region and zone of the hosts, each once.
fn regions(analysis: &Analysis) -> Vec<String> {
    let clouds = analysis.inspection.hosts.iter().filter_map(|host| host.snapshot.cloud.as_ref());
    let places = clouds.filter_map(|cloud| Some(format!("{}, {}", cloud.provider, words::place(cloud)?)));
    places.collect::<BTreeSet<String>>().into_iter().collect()
}
