//! Prices of hosts of one's own, which a plan states: what a run cost, and what its differences save or cost.
use netduel_model::ids::HostName;
use netduel_model::redact::Redactor;
use netduel_model::run::Run;
use netduel_report::html::Paper;
use netduel_report::{document, html, markdown, terminal};

use crate::builder::{Recipe, build};
use crate::{bed, crossover, json};

/// A run of half an hour on hosts that cost 0.40 and 0.60 EUR an hour by its plan, and not on a bed.
fn priced() -> Run {
    let mut run = bed::run();
    run.header.bed = None;
    for (host, price) in run.header.plan.hosts.values_mut().zip(["0.40 EUR", "0.60 EUR"]) {
        host.price_per_hour = Some(price.parse().unwrap());
    }
    run
}

/// The same with the second arm on hosts of its own, which cost 3 EUR an hour together.
fn on_two_pairs() -> Run {
    let mut run = priced();
    let plan = &mut run.header.plan;
    let own = plan.hosts.values().next().unwrap().clone();
    let [client, server]: [HostName; 2] = ["c", "d"].map(|name| name.parse().unwrap());
    for (name, price) in [(&client, "1 EUR"), (&server, "2 EUR")] {
        let mut host = own.clone();
        host.price_per_hour = Some(price.parse().unwrap());
        plan.hosts.insert(name.clone(), host);
    }
    let pair = &mut plan.arms[1].pair;
    (pair.client, pair.server) = (client, server);
    run
}

fn text(run: &Run) -> String {
    terminal::report(&document(run), 200, false)
}

#[test]
fn price_of_own_hosts_is_in_every_format_that_shows_prices() {
    let run = priced();
    let page = document(&run);
    for (format, shown) in [
        ("text", text(&run)),
        ("markdown", markdown::page(&page)),
        ("html", html::page(&page).replace('\u{a0}', " ")),
        ("paper", html::printed(&page, Paper::A4).replace('\u{a0}', " ")),
    ] {
        for part in [
            "a 0.40 EUR, b 0.60 EUR; 1.00 EUR for 2 hosts (stated in the plan)",
            "0.50 EUR for 30",
            "Gbit/s per EUR and hour",
            "saves 0.50 EUR an hour (50 %)",
        ] {
            assert!(shown.contains(part), "{format} lacks {part:?}:\n{shown}");
        }
    }
    let price = &json::report(&run)["plan"]["hosts"][1]["price_per_hour"];
    assert_eq!(*price, serde_json::json!({ "amount": 0.6, "currency": "EUR" }));
}

#[test]
fn redacted_run_has_the_same_prices() {
    let run = priced();
    let mut redactor = Redactor::default();
    redactor.learn_run(&run).unwrap();
    let redacted = redactor.redact_run(&run).unwrap();
    let prices = |run: &Run| -> Vec<_> {
        run.header.plan.hosts.values().map(|host| host.price_per_hour.clone()).collect()
    };
    assert_eq!(prices(&redacted), prices(&run));
    assert!(text(&redacted).contains("saves 0.50 EUR an hour (50 %)"));
}

#[test]
fn faster_arm_on_more_expensive_hosts_can_cost_more() {
    let run = on_two_pairs();
    // Twice the rate for three times the price.
    let shown = text(&run);
    assert!(shown.contains("costs 0.50 EUR more an hour (50 %)"), "{shown}");
    assert!(shown.contains("2.00 EUR for 30"), "half an hour of four hosts:\n{shown}");
    // The same rate for three times the price.
    let mut equal = run.clone();
    let recipe = Recipe { workloads: vec!["bulk", "rr"], effect: 1.0, noise: 0.0, ..Recipe::default() };
    equal.trials = build(&recipe).trials;
    let shown = text(&equal);
    assert!(shown.contains("costs 2.00 EUR more an hour (200 %)"), "{shown}");
}

#[test]
fn arm_of_a_crossover_has_the_mean_price_of_the_hosts_of_both_halves() {
    let mut run = crossover::run(2.0, crossover::BLOCKS, true);
    for (name, price) in [("a", "0.40 EUR"), ("b", "0.60 EUR"), ("c", "1 EUR"), ("d", "2 EUR")] {
        let name: HostName = name.parse().unwrap();
        run.header.plan.hosts.get_mut(&name).unwrap().price_per_hour = Some(price.parse().unwrap());
    }
    let shown = text(&run);
    // Twice the rate for the same price. By the hosts of the first half alone it would cost three times as much.
    assert!(shown.contains(" EUR an hour (") && !shown.contains("more an hour"), "{shown}");
}

#[test]
fn price_of_one_host_of_an_arm_is_no_price_of_the_arm() {
    let mut run = priced();
    run.header.plan.hosts.values_mut().next().unwrap().price_per_hour = None;
    let shown = text(&run);
    assert!(shown.matches("price unknown").count() >= 3, "{shown}");
    assert!(!shown.contains("Cost of the run"), "{shown}");
}

#[test]
fn run_without_prices_has_no_section_about_them() {
    let mut run = priced();
    for host in run.header.plan.hosts.values_mut() {
        host.price_per_hour = None;
    }
    let page = document(&run);
    assert!(page.sections.iter().all(|section| section.title != "Price"));
}
