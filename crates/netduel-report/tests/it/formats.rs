//! Snapshots of all formats, over runs of several shapes.
use netduel_model::metric::Metric;
use netduel_model::plan::Lab;
use netduel_model::run::{Run, RunEnd};
use netduel_model::workload::{TcpEngine, TcpStream, Traffic};
use netduel_report::document::block::{Block, Document, Section};
use netduel_report::findings::{Finding, Severity};
use netduel_report::html::Paper;
use netduel_report::{analyse_run, csv, document, html, markdown, terminal};

use crate::builder::{Recipe, build};
use crate::json;

fn table(run: &Run, width: usize) -> String {
    terminal::report(&document(run), width, false)
}

fn small() -> Recipe {
    Recipe { workloads: vec!["bulk"], blocks: 2, ..Recipe::default() }
}

#[test]
fn clear_difference_is_reported_with_its_interval() {
    let run = build(&Recipe::default());
    insta::assert_snapshot!("clear_terminal", table(&run, 120));
    insta::assert_snapshot!("clear_markdown", markdown::page(&document(&run)));
    insta::assert_snapshot!("clear_summary", terminal::summary(&document(&run), 80, false));
}

/// The page without what is the same in every report: scripts, their hashes and styles.
fn redacted(page: &str) -> String {
    let mut text = page.to_owned();
    for (start, end) in [("<script>", "</script>"), ("<style>", "</style>"), ("script-src ", "; style-src")] {
        let mut from = 0;
        while let Some(begin) = text[from..].find(start).map(|at| from + at + start.len()) {
            let length = text[begin..].find(end).unwrap();
            text.replace_range(begin..begin + length, "...");
            from = begin + 3;
        }
    }
    text.replace("><", ">\n<")
}

#[test]
fn html_page_contains_every_section_in_order() {
    let run = build(&Recipe { workloads: vec!["rr"], blocks: 2, ..Recipe::default() });
    insta::assert_snapshot!("page_html", redacted(&html::page(&document(&run))));
}

#[test]
fn percent_signs_of_the_comparisons_stay_with_their_numbers() {
    let page = html::page(&document(&build(&Recipe::default())));
    for words in [
        "Of many repetitions of this run, at most 5\u{a0}% state any false difference",
        "Margin of no difference: 5\u{a0}%.",
        "<span class=\"median\">0.445\u{a0}%</span>",
    ] {
        assert!(page.contains(words), "no {words:?}");
    }
}

#[test]
fn markdown_has_each_estimate_once_and_the_direction_of_each_difference() {
    let rows = |blocks: u32| -> Vec<String> {
        let run = build(&Recipe { workloads: vec!["bulk"], blocks, ..Recipe::default() });
        let page = markdown::page(&document(&run)).replace('\\', "");
        let (_, table) = page.split_once("| metric | synthetic | accelerated | verdict |\n").unwrap();
        table.lines().skip(1).take(2).map(str::to_owned).collect()
    };
    let decided = rows(8);
    assert!(decided[0].contains(" | better: 3.2x (+") && decided[0].ends_with("x] |"), "{decided:?}");
    assert!(decided[1].contains(" | better: 6") && decided[1].matches('[').count() == 3, "{decided:?}");
    let open = rows(3);
    assert!(open[0].contains(" | inconclusive: ") && open[0].contains("; estimate 3."), "{open:?}");
}

#[test]
fn markdown_names_run_date_and_program_once() {
    let mut run = build(&small());
    let head = |run: &Run| markdown::page(&document(run)).split("\n## ").next().unwrap().to_owned();
    for name in [run.header.id.to_string(), run.header.program.clone()] {
        assert_eq!(head(&run).matches(&name).count(), 1, "{name} in {}", head(&run));
    }
    // A title of the run stays where the cover has another one.
    run.header.annotations.title = Some("before the upgrade".to_owned());
    run.header.annotations.publication.title = Some("Two paths".to_owned());
    assert!(head(&run).contains("before the upgrade. "), "{}", head(&run));
}

#[test]
fn cover_and_environment_agree_on_virtual_interfaces() {
    let page = markdown::page(&document(&build(&small())));
    for words in ["- NIC: veth (virtual)\n", "| NICs | none but virtual (veth) | none but virtual (veth) |"] {
        assert!(page.contains(words), "no {words:?} in {page}");
    }
}

#[test]
fn unused_path_of_a_lab_is_explained_before_the_hosts_that_have_its_interface() {
    let mut run = build(&small());
    run.header.plan.lab = Some(Lab { rules: 600, cap: None, mtu: Lab::MTU, queues: Lab::QUEUES });
    let page = markdown::page(&document(&run));
    let [unused, hosts] =
        ["is the lab's third path", "### Machine of a"].map(|words| page.find(words).unwrap());
    assert!(unused < hosts, "{page}");
}

#[test]
fn percentiles_of_a_workload_are_in_a_page_once() {
    let document = document(&build(&Recipe { workloads: vec!["rr"], blocks: 2, ..Recipe::default() }));
    for page in [html::page(&document), html::printed(&document, Paper::A4)] {
        assert!(page.contains("<b>Latency percentiles</b>") && page.contains("<b>Latency distribution</b>"));
        assert_eq!(page.matches(">p99.99, us</th>").count(), 1);
    }
}

/// A new format is one function over the parts of a document.
fn outline(document: &Document) -> Vec<String> {
    let block = |block: &Block| match block {
        Block::Heading(title) => vec![format!("  {title}")],
        Block::Table(table) => vec![format!("  table {}x{}", table.rows.len(), table.columns.len())],
        Block::Verdicts(verdicts) => {
            let rows = verdicts.groups.iter().flat_map(|group| &group.rows);
            rows.map(|row| {
                let [metric, .., verdict] = row.cells.as_slice() else { panic!("{row:?}") };
                format!("  {}: {}", metric.text, verdict.text)
            })
            .collect()
        }
        Block::Figure(figure) => vec![format!("  figure {}", figure.title)],
        _ => Vec::new(),
    };
    let section = |section: &Section| {
        let head = [section.title.clone()].into_iter();
        head.chain(section.blocks.iter().flat_map(block)).collect::<Vec<_>>()
    };
    document.sections.iter().flat_map(section).collect()
}

#[test]
fn new_format_needs_no_knowledge_of_workloads() {
    let run = build(&Recipe { workloads: vec!["bulk"], ..Recipe::default() });
    insta::assert_snapshot!("outline", outline(&document(&run)).join("\n"));
}

#[test]
fn title_notes_and_overrides_of_the_command_line_are_in_every_report() {
    let mut run = build(&small());
    run.header.annotations.title = Some("before the upgrade".to_owned());
    run.header.annotations.notes.insert("ticket".to_owned(), "NET-7".to_owned());
    run.header.annotations.overrides.push("blocks_max=2".to_owned());
    let json = json::report(&run).to_string();
    for text in [html::page(&document(&run)), markdown::page(&document(&run)).replace('\\', ""), json] {
        for part in ["before the upgrade", "NET-7", "blocks_max=2"] {
            assert!(text.contains(part), "no {part} in {}", &text[..text.len().min(2000)]);
        }
    }
}

#[test]
fn settings_of_the_command_line_are_stated_before_the_first_result_in_every_format() {
    let mut run = build(&Recipe { workloads: vec!["bulk", "rr"], ..Recipe::default() });
    let settings = "Settings in place of those of the plan: blocks_max=2; bulk.duration=4s.";
    assert!(!document(&run).basis.contains("Settings"), "the plan has all of them");
    run.header.annotations.overrides = ["blocks_max=2", "bulk.duration=4s"].map(str::to_owned).to_vec();
    let document = document(&run);
    for (page, result) in [
        (html::page(&document), "<section id=\"summary\">"),
        (html::printed(&document, Paper::A4), "<section id=\"summary\">"),
        (markdown::page(&document).replace('\\', ""), "\n## Summary\n"),
        (terminal::report(&document, 400, false), "\nVerdicts\n"),
        (terminal::summary(&document, 400, false), "\nbulk\n"),
    ] {
        let (first, _) = page.split_once(result).unwrap_or_else(|| panic!("no {result:?} in {page}"));
        assert!(first.contains(settings), "{first}");
    }
}

#[test]
fn closing_lines_fit_a_terminal_of_80_by_24() {
    for (workloads, effect) in [(vec!["bulk", "rr"], 0.31), (vec!["bulk", "rr", "udp"], 1.3)] {
        let run = build(&Recipe { effect, workloads, ..Recipe::default() });
        let text = terminal::summary(&document(&run), 80, false);
        assert!(text.lines().count() <= 22, "two more lines name the report: {text}");
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        assert!(text.contains("valid trials") && text.contains("warning"), "{text}");
        let has_bottlenecks = run.header.plan.workloads.len() == 2;
        assert_eq!(text.matches("\n  bottleneck: ").count(), if has_bottlenecks { 2 } else { 0 }, "{text}");
    }
}

#[test]
fn transactions_are_split_into_parts() {
    let run = build(&Recipe { workloads: vec!["crr"], ..Recipe::default() });
    insta::assert_snapshot!("transactions_terminal", table(&run, 120));
    let json = json::report(&run);
    let parts = &json["workloads"][0]["arms"][1]["parts"];
    let keys = [0, 1, 2].map(|part| parts[part]["part"].as_str().unwrap());
    assert_eq!(keys, ["whole", "connect", "exchange"]);
    // Eight trials of 4,000 each, merged.
    assert_eq!(parts[2]["latency"]["count"], 32_000);
    let page = markdown::page(&document(&run));
    assert!(page.contains("| request to response | synthetic |"), "{page}");
}

#[test]
fn loaded_latency_is_shown_beside_idle_latency() {
    let run = build(&Recipe { workloads: vec!["load"], ..Recipe::default() });
    insta::assert_snapshot!("loaded_terminal", table(&run, 120));
    let arm = &json::report(&run)["workloads"][0]["arms"][0];
    let parts: Vec<&str> =
        arm["parts"].as_array().unwrap().iter().filter_map(|part| part["part"].as_str()).collect();
    assert_eq!(parts, ["idle", "loaded", "connect", "exchange", "in-band"]);
    let percentile = |part: usize| {
        let all = arm["parts"][part]["latency"]["percentiles"].as_array().unwrap();
        all.iter().find(|one| one["percentile"] == 50.0).unwrap()["value_ns"].as_f64().unwrap()
    };
    assert_eq!(arm["added_by_load"]["p50_ns"], percentile(1) - percentile(0));
    assert_eq!(arm["requests"], serde_json::json!({ "sent": 8000, "without_response": 16 }));
    assert_eq!(arm["rate_series_bps"].as_array().map(Vec::len), Some(50));
    assert_eq!(arm["latency_series_ns"].as_array().map(Vec::len), Some(50));
}

#[test]
fn equal_arms_have_no_difference_beyond_the_margin() {
    let run = build(&Recipe {
        effect: 1.0,
        noise: 0.004,
        loss: [0.0, 0.0],
        workloads: vec!["bulk", "udp"],
        ..Recipe::default()
    });
    insta::assert_snapshot!("same_terminal", table(&run, 120));
}

#[test]
fn few_blocks_state_the_number_of_missing_blocks() {
    let run = build(&Recipe {
        blocks: 3,
        end: Some(RunEnd::Interrupted),
        workloads: vec!["bulk", "rr"],
        ..Recipe::default()
    });
    insta::assert_snapshot!("few_terminal", table(&run, 120));
}

#[test]
fn failed_and_wrong_path_trials_are_excluded_and_reported() {
    let run = build(&Recipe {
        blocks: 9,
        workloads: vec!["bulk"],
        failed: vec![(1, 1)],
        wrong_path: vec![(4, 0)],
        end: Some(RunEnd::Failed { detail: "agent of host b: broken pipe".to_owned() }),
        ..Recipe::default()
    });
    insta::assert_snapshot!("left_out_terminal", table(&run, 100));
    let analysis = analyse_run(&run);
    assert_eq!((analysis.blocks, analysis.trials_valid, analysis.trials_excluded), (9, 16, 2));
    // A block with a failed arm is no pair.
    assert_eq!(analysis.workloads[0].judged[0].comparisons[0].pairs.len(), 7);
}

#[test]
fn loss_is_reported_in_percentage_points() {
    let run =
        build(&Recipe { loss: [0.02, 0.005], workloads: vec!["udp"], effect: 1.0, ..Recipe::default() });
    insta::assert_snapshot!("loss_terminal", table(&run, 120));
}

#[test]
fn narrow_terminal_wraps_without_losing_text() {
    let run = build(&small());
    let narrow = table(&run, 60);
    insta::assert_snapshot!("narrow_terminal", narrow);
    let words = |text: &str| -> std::collections::BTreeSet<String> {
        text.split_whitespace().map(|word| word.trim_end_matches([',', ':', ';']).to_owned()).collect()
    };
    // A table without room becomes a list with the same cells; only the dashes of unknown cells are omitted.
    let missing: Vec<String> = words(&table(&run, 200)).difference(&words(&narrow)).cloned().collect();
    let headings = ["(n)", "arm", "counter", "metric", "unit"];
    assert_eq!(missing, headings, "a key column is not named before its cell");
    assert!(narrow.lines().all(|line| line.chars().count() <= 60), "{narrow}");
}

#[test]
fn comparisons_of_several_arms_name_the_arm_and_repeat_no_baseline() {
    let mut run = build(&small());
    let mut third = run.header.plan.arms[1].clone();
    let arm = third.name.clone();
    third.name = "third".parse().unwrap();
    let mut trials: Vec<_> = run.trials.iter().filter(|trial| trial.slot.arm == arm).cloned().collect();
    for trial in &mut trials {
        trial.slot.arm = third.name.clone();
    }
    run.trials.append(&mut trials);
    run.header.plan.arms.push(third);
    let document = document(&run);
    let rows = |text: &str, of: &str| text.lines().filter(|line| line.contains(of)).count();
    let brief = terminal::summary(&document, 80, false);
    assert_eq!((rows(&brief, "baseline synthetic  arm "), rows(&brief, "  throughput")), (1, 1), "{brief}");
    assert_eq!(rows(&brief, "               third "), 2, "a line for each metric: {brief}");
    let markdown = markdown::page(&document);
    assert_eq!(rows(&markdown, "| metric | baseline synthetic | arm | value of the arm | verdict |"), 1);
    assert_eq!(rows(&markdown, "(n 2) | third | "), 2, "{markdown}");
    let page = html::page(&document);
    assert_eq!(page.matches("<td class=\"name\">third</td><td class=\"number\"").count(), 2);
    assert!(page.contains(">arm</th>"), "the column of names has a title");
}

#[test]
fn colour_changes_no_character_of_the_text() {
    let run = build(&Recipe::default());
    let coloured = terminal::report(&document(&run), 120, true);
    assert!(coloured.contains("\u{1b}[32m"));
    let mut plain = String::new();
    for (index, part) in coloured.split('\u{1b}').enumerate() {
        plain.push_str(if index == 0 { part } else { part.split_once('m').unwrap().1 });
    }
    assert_eq!(plain, terminal::report(&document(&run), 120, false));
}

#[test]
fn csv_has_one_row_per_trial_and_metric() {
    let run = build(&Recipe { failed: vec![(0, 1)], ..small() });
    let text = csv::trials(&run);
    insta::assert_snapshot!("trials_csv", text);
    let columns = text.lines().next().unwrap().split(',').count();
    // Three metrics of three valid trials, and a row for the failed one.
    assert_eq!(text.lines().count(), 1 + 3 * 3 + 1);
    assert!(text.lines().all(|line| line.split(',').count() == columns), "{text}");
}

#[test]
fn all_formats_use_the_same_words() {
    let run = build(&Recipe::default());
    let analysis = analyse_run(&run);
    let page = html::page(&document(&run))
        .replace('\u{a0}', " ")
        .replace("<span class=\"interval\">", "")
        .replace("</span>", "");
    let markdown = markdown::page(&document(&run)).replace('\\', "");
    let (table, json) = (terminal::report(&document(&run), 400, false), json::report(&run).to_string());
    let mut seen = 0;
    for workload in &analysis.workloads {
        for metric in &workload.judged {
            let verdict = netduel_report::words::verdict(metric.metric, &metric.comparisons[0]);
            for (format, text) in
                [("html", &page), ("markdown", &markdown), ("terminal", &table), ("json", &json)]
            {
                assert!(text.contains(&verdict), "{format} does not say `{verdict}`");
            }
            seen += 1;
        }
    }
    assert_eq!(seen, 6);
    let throughput = &analysis.workloads[0].judged[0];
    assert_eq!(throughput.metric, Metric::Throughput);
}

#[test]
fn metrics_with_the_same_verdict_share_a_clause() {
    let answer = |recipe: &Recipe| {
        let analysis = analyse_run(&build(recipe));
        let answer = netduel_report::words::answer(&analysis.workloads[0], &"accelerated".parse().unwrap());
        answer.unwrap().characters()
    };
    let same = Recipe { effect: 1.0, noise: 0.008, workloads: vec!["rr"], ..Recipe::default() };
    assert_eq!(
        answer(&same),
        "accelerated against synthetic: round trip p50 and round trip p99: no difference beyond 5 %."
    );
    // The number of missing blocks is stated per metric.
    let open = answer(&Recipe { noise: 0.2, effect: 1.0, workloads: vec!["bulk"], ..Recipe::default() });
    assert!(
        open.contains(
            ": inconclusive: throughput (the spread is too large; use longer trials or quieter hosts), CPU per GB (more than 100 more blocks"
        ),
        "{open}"
    );
    // Two verdicts need seven blocks; before that the spread is no basis for a number.
    let few =
        answer(&Recipe { blocks: 6, noise: 0.2, effect: 0.97, workloads: vec!["bulk"], ..Recipe::default() });
    assert!(few.contains(": inconclusive: throughput and CPU per GB (at least 1 more block)"), "{few}");
    let both = answer(&Recipe { workloads: vec!["bulk"], ..Recipe::default() });
    assert!(both.starts_with("accelerated against synthetic: throughput 3.2x (+"), "{both}");
    assert!(both.contains("; CPU 61 % less per GB ["), "{both}");
}

#[test]
fn workloads_without_a_result_share_one_headline() {
    let page = |workloads: Vec<&'static str>| {
        let run = build(&Recipe { blocks: 4, noise: 0.2, effect: 1.0, workloads, ..Recipe::default() });
        markdown::page(&document(&run))
    };
    let three = page(vec!["bulk", "rr", "udp"]);
    let lines: Vec<&str> = three.lines().filter(|line| line.starts_with("- **")).take(1).collect();
    let expected = "- **bulk, rr, udp**: accelerated against synthetic: inconclusive for all metrics (throughput, CPU per GB, \
                    round trip p50, round trip p99, datagrams delivered and loss).";
    assert_eq!(lines, [expected], "{three}");
    assert!(page(vec!["bulk", "rr"]).contains("- **rr**: accelerated against synthetic: inconclusive: "));
}

#[test]
fn differing_settings_are_listed_per_arm() {
    let mut run = build(&small());
    if let Traffic::TcpStream(TcpStream { engine, .. }) = &mut run.header.plan.arms[1].workloads[0].traffic {
        *engine = TcpEngine::Copy;
    }
    let [first, second] = [0, 1].map(|arm| run.header.plan.arms[arm].name.clone());
    let own = format!("; {first}: lean engine; {second}: copy engine");
    let page = html::page(&document(&run));
    for text in [table(&run, 200), markdown::page(&document(&run)), page] {
        assert!(text.contains(&own), "{own}\n{}", &text[..text.len().min(3000)]);
    }
}

#[test]
fn findings_have_the_same_fields_in_every_format() {
    let run = build(&small());
    let mut document = document(&run);
    let finding = Finding {
        id: "one-queue",
        severity: Severity::Warning,
        interface: None,
        what: "eth0 has one queue".to_owned(),
        evidence: vec!["queues: 1".to_owned(), "cores: 4".to_owned()],
        why: "one core processes all packets".to_owned(),
        remedy: "add queues".to_owned(),
        command: Some("ethtool -L eth0 combined 4".to_owned()),
    };
    document.sections.retain(|section| section.anchor == "verdicts");
    document.sections[0].blocks = vec![Block::Findings(vec![finding.clone()])];
    for (format, page) in [
        ("markdown", markdown::page(&document).replace('\\', "")),
        ("html", html::page(&document)),
        ("terminal", terminal::report(&document, 120, false)),
    ] {
        let page = page.to_lowercase();
        let Finding { id, what, why, remedy, command, .. } = &finding;
        let fields = [id, finding.severity.word(), what, "queues: 1; cores: 4", why, remedy];
        for field in fields.into_iter().chain(command.as_deref()) {
            assert!(page.contains(&field.to_lowercase()), "{format} has no {field:?}: {page}");
        }
    }
}
