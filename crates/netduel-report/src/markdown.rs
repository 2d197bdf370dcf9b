//! The result as Markdown, for an issue, a pull request or a wiki.
use netduel_model::run::Run;
use netduel_model::snapshot::{HostSnapshot, Interface};

use crate::analysis::{Analysis, MetricAnalysis, WorkloadAnalysis};
use crate::topology;
use crate::words::{self, PacketTable, StampTable};

/// The page. GitHub's dialect: tables, no HTML.
pub fn page(run: &Run, analysis: &Analysis) -> String {
    let mut lines = vec![format!("# {}", text(&analysis.plan.question)), String::new()];
    for workload in &analysis.workloads {
        for arm in workload.arms.iter().skip(1) {
            if let Some(answer) = words::answer(workload, &arm.arm) {
                lines.push(format!("- **{}**: {}", text(workload.name.as_str()), text(&answer)));
            }
        }
    }
    lines.push(String::new());
    lines.push(format!(
        "Run `{}`: {}. {}",
        run.header.id,
        words::trials(analysis),
        text(&words::end(analysis.end.as_ref()))
    ));
    for workload in &analysis.workloads {
        section(workload, &mut lines);
    }
    list("What each arm changes, and undoes after each trial", &words::changes(&analysis.plan), &mut lines);
    list("Proof of path", &words::proofs(analysis), &mut lines);
    list("Warnings", &words::warnings(analysis), &mut lines);
    hosts(analysis, &mut lines);
    lines.extend([String::new(), "## Reproduce".to_owned(), String::new()]);
    lines.extend(words::commands(run).iter().map(|line| format!("    {line}")));
    lines.extend([String::new(), "The plan as it was given:".to_owned(), String::new()]);
    lines.extend(run.header.plan_text.lines().map(|line| format!("    {}", words::plain(line))));
    let rules: Vec<String> =
        words::rules(&analysis.plan).into_iter().map(|(name, rule)| format!("{name}: {rule}")).collect();
    list("How it was counted", &rules, &mut lines);
    lines.push(String::new());
    lines.join("\n")
}

fn list(title: &str, items: &[String], lines: &mut Vec<String>) {
    if !items.is_empty() {
        lines.extend([String::new(), format!("## {title}"), String::new()]);
        lines.extend(items.iter().map(|item| format!("- {}", text(item))));
    }
}

/// The facts of each host, and what was found on it and between them.
fn hosts(analysis: &Analysis, lines: &mut Vec<String>) {
    for host in &analysis.inspection.hosts {
        lines.extend([String::new(), format!("## Host {}", text(&host.name)), String::new()]);
        let facts = host.facts();
        lines.extend(facts.iter().map(|(title, fact)| format!("- {title}: {}", text(fact))));
        for group in topology::groups(&host.snapshot) {
            lines.push(interface(&host.snapshot, group.top, ""));
            lines.extend(group.ports.iter().map(|port| interface(&host.snapshot, port, "  ")));
        }
    }
    let found: Vec<String> = analysis
        .inspection
        .findings()
        .map(|(place, finding)| {
            let evidence = finding.evidence.join("; ");
            format!(
                "{} at {place}: {} ({evidence}); {}",
                finding.severity.word(),
                finding.what,
                finding.remedy
            )
        })
        .collect();
    list("Findings on the hosts", &found, lines);
}

fn interface(host: &HostSnapshot, interface: &Interface, indent: &str) -> String {
    let facts: Vec<String> = words::interface_facts(host, interface)
        .iter()
        .map(|(title, fact)| format!("; {title}: {fact}"))
        .collect();
    let line = format!("{}: {}{}", interface.name, words::interface(interface), facts.concat());
    format!("{indent}- {}", text(&line))
}

fn section(workload: &WorkloadAnalysis, lines: &mut Vec<String>) {
    lines.extend([String::new(), format!("## {}", text(workload.name.as_str())), String::new()]);
    lines.extend([text(&words::workload_of_arms(workload)), String::new()]);
    lines.push("| metric | arm | mean ± standard error | against the baseline | interval |".to_owned());
    lines.push("|---|---|---:|---|---|".to_owned());
    for metric in &workload.judged {
        rows(metric, lines);
    }
    if let Some(table) = words::packets(workload) {
        packets(&table, lines);
    }
    let datagrams = words::datagrams(workload);
    if !datagrams.is_empty() {
        let title = format!("{}, all valid trials:", words::datagrams_title(workload));
        lines.extend([String::new(), title, String::new()]);
        lines.extend(datagrams.iter().map(|sentence| format!("- {}", text(sentence))));
    }
    let parts = words::parts(workload);
    if !parts.is_empty() {
        lines.extend([
            String::new(),
            format!("{}, all valid trials:", words::parts_title(workload)),
            String::new(),
        ]);
        lines.extend(parts.iter().map(|part| format!("- {}", text(part))));
    }
    if let Some(table) = words::stamps(workload) {
        stamps(&table, lines);
    }
    let limits = words::limits(workload);
    if !limits.is_empty() {
        lines.extend([String::new(), format!("{}:", words::LIMITS_TITLE), String::new()]);
        lines.extend(limits.iter().map(|limit| format!("- {}", text(limit))));
    }
    let queues = words::queues(workload);
    if !queues.is_empty() {
        lines.extend([String::new(), format!("{}:", words::QUEUES_TITLE), String::new()]);
        lines.extend(queues.iter().map(|queue| format!("- {}", text(queue))));
    }
    searches(workload, lines);
    if let Some(table) = words::failover::events(workload) {
        let cells = |cells: &[String]| cells.iter().map(|cell| text(cell)).collect::<Vec<_>>().join(" | ");
        lines.extend([String::new(), format!("{}:", words::failover::TITLE), String::new()]);
        lines.push(format!("| {} |", cells(&table.header)));
        lines.push(format!("|{}", "---|".repeat(table.header.len())));
        lines.extend(table.rows.iter().map(|row| format!("| {} |", cells(row))));
        lines.push(String::new());
        lines.extend(table.notes.iter().map(|note| format!("- {}", text(note))));
    }
    let placements = words::placements(workload);
    if !placements.is_empty() {
        lines.extend([String::new(), format!("{}:", words::PLACEMENTS_TITLE), String::new()]);
        lines.extend(placements.iter().map(|placement| format!("- {}", text(placement))));
    }
    if !workload.explanation.is_empty() {
        lines.extend([
            String::new(),
            "What the counters say, medians of the trials:".to_owned(),
            String::new(),
        ]);
        lines.extend(workload.explanation.iter().map(|sentence| format!("- {}", text(sentence))));
    }
}

fn searches(workload: &WorkloadAnalysis, lines: &mut Vec<String>) {
    let sentences = words::search::sentences(workload);
    if sentences.is_empty() {
        return;
    }
    lines.extend([String::new(), format!("{}:", words::search::TITLE), String::new()]);
    lines.extend(sentences.iter().map(|sentence| format!("- {}", text(sentence))));
    let cells = |cells: &[String]| cells.iter().map(|cell| text(cell)).collect::<Vec<_>>().join(" | ");
    for table in words::search::steps(workload) {
        lines.extend([String::new(), text(&table.title), String::new()]);
        lines.push(format!("| {} |", cells(&table.header)));
        lines.push(format!("|{}", "---|".repeat(table.header.len())));
        lines.extend(table.rows.iter().map(|row| format!("| {} |", cells(row))));
    }
}

fn packets(table: &PacketTable, lines: &mut Vec<String>) {
    lines.extend([String::new(), format!("{}:", words::PACKETS_TITLE), String::new()]);
    lines.push(format!("| {} |", table.header.join(" | ")));
    lines.push("|---|---|---:|---:|---:|---:|---|".to_owned());
    for row in &table.rows {
        let cells: Vec<String> = row.iter().map(|cell| text(cell)).collect();
        lines.push(format!("| {} |", cells.join(" | ")));
    }
    lines.push(String::new());
    lines.extend(table.notes.iter().map(|note| format!("- {}", text(note))));
}

fn stamps(table: &StampTable, lines: &mut Vec<String>) {
    let cells = |cells: &[String]| cells.iter().map(|cell| text(cell)).collect::<Vec<_>>().join(" | ");
    lines.extend([String::new(), format!("{}:", words::STAMPS_TITLE), String::new()]);
    lines.push(format!("| | {} |", cells(&table.arms)));
    lines.push(format!("|---|{}", "---:|".repeat(table.arms.len())));
    lines.extend(table.rows.iter().map(|(title, row)| format!("| {} | {} |", text(title), cells(row))));
    lines.push(String::new());
    lines.extend(table.notes.iter().map(|note| format!("- {}", text(note))));
}

fn rows(metric: &MetricAnalysis, lines: &mut Vec<String>) {
    for (index, arm) in metric.arms.iter().enumerate() {
        let title = if index == 0 { metric.title() } else { "" };
        let comparison = metric.comparisons.iter().find(|comparison| comparison.arm == arm.arm);
        let judged = comparison.and_then(|comparison| comparison.judged.as_ref());
        let verdict = match comparison {
            Some(_) => words::verdict(metric.metric, judged),
            None => "baseline".to_owned(),
        };
        let interval = judged
            .and_then(|judged| judged.estimate.as_ref())
            .map(|estimate| words::interval(metric.metric, estimate))
            .unwrap_or_default();
        lines.push(format!(
            "| {title} | {} | {} | {} | {} |",
            text(arm.arm.as_str()),
            text(&words::value(metric, arm)),
            text(&verdict),
            text(&interval)
        ));
    }
}

/// Any text as one line of Markdown: what would be markup or HTML is escaped. An interval in brackets cannot be a link, since
/// a backslash stands before every bracket.
fn text(raw: &str) -> String {
    let mut escaped = String::with_capacity(raw.len());
    for c in words::plain(raw).chars() {
        match c {
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            '|' | '*' | '`' | '[' | ']' | '\\' | '#' | '!' | '~' | '_' => {
                escaped.push('\\');
                escaped.push(c);
            }
            c => escaped.push(c),
        }
    }
    escaped
}
