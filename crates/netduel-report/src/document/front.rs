//! Builds the cover of a run.
use std::collections::BTreeSet;

use netduel_model::publication::{Publication, colour};
use netduel_model::run::Run;

use super::accent::Accent;
use super::cover::{Cover, is_image};
use crate::analysis::Analysis;
use crate::words;

/// The cover of a run.
pub(super) fn cover(run: &Run, analysis: &Analysis, author: &Publication) -> Cover {
    let header = &run.header;
    // A title of the run is more particular than one of its plan.
    let title = [&header.annotations.publication.title, &header.annotations.title, &author.title];
    let by = [&author.author, &author.organization].into_iter().flatten().cloned();
    let mut facts = vec![
        ("Run".to_owned(), header.id.to_string()),
        ("Date".to_owned(), words::date(header.started_unix_ms)),
    ];
    let hosts: Vec<&str> = header.plan.hosts.keys().map(netduel_model::ids::HostName::as_str).collect();
    facts.push(("Hosts".to_owned(), words::listed(&hosts)));
    facts.extend(joined("Size", &words::sizes(analysis)));
    facts.extend(joined("NIC", &words::nic_products(analysis)));
    facts.extend(joined("Region", &regions(analysis)));
    facts.push(("Program".to_owned(), header.program.clone()));
    Cover {
        title: title.into_iter().flatten().next().cloned(),
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
