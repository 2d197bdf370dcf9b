//! `--redact` in the commands: what they print and write has no name of this machine. The formats are covered in `netduel-report`.
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::path::PathBuf;

use netduel_test_support::skip;

use crate::quick::Served;
use crate::support::{Bench, Finished, STREAM, TWO_PATHS, short_plan};

/// A user in the plan and the options.
const USER: &str = "mallory7";

#[track_caller]
fn assert_hidden(what: &str, text: &str) {
    assert!(!text.contains(USER), "{what} shows {USER}:\n{text}");
}

/// Addresses of interfaces in a document, but for those that every machine has, and for those that look like pseudonyms: they stay.
fn addresses(document: &str) -> Vec<String> {
    let words = document.split(|c: char| !c.is_ascii_hexdigit() && c != ':' && c != '.');
    let is_mac = |word: &str| word.len() == 17 && word.split(':').filter(|part| part.len() == 2).count() == 6;
    let is_pseudonym = |ip: IpAddr| match ip {
        IpAddr::V4(ip) => ip.is_documentation(),
        IpAddr::V6(ip) => matches!(ip.segments(), [0x2001, 0xdb8, ..] | [0xfe80, 0, 0, 0, 0, 0, 0, _]),
    };
    let is_ip = |word: &str| {
        let ip = word.parse::<IpAddr>();
        ip.is_ok_and(|ip| !ip.is_loopback() && !ip.is_unspecified() && !is_pseudonym(ip))
    };
    let stays = |mac: &str| mac == "00:00:00:00:00:00" || mac.starts_with("02:00:00:00:");
    words.filter(|word| (is_mac(word) && !stays(word)) || is_ip(word)).map(str::to_owned).collect()
}

#[test]
fn author_and_organization_are_hidden_unless_this_command_names_them() {
    let bench = Bench::new();
    let report = "[report]\nauthor = \"Ann Author\"\norganization = \"Example Networks\"\npurpose = \"Ann Author asks.\"\n";
    let plan = short_plan(TWO_PATHS, STREAM, "blocks_min = 2\nblocks_max = 2") + report;
    // Its command line, which a report repeats, has another author than the plan.
    let plan = bench.plan(&plan);
    let words = ["run", plan.to_str().unwrap(), "--author", "Olga Former", "--redact", "--out", "own.md"];
    let run = bench.run(words);
    assert!(matches!(run.code, Some(0 | 6)), "{}", run.stderr);
    let own = std::fs::read_to_string(bench.path().join("own.md")).unwrap();
    assert!(own.contains("Olga Former") && own.contains("organization-1"), "{own}");
    assert!(!own.contains("Ann Author") && !own.contains("Example Networks"), "{own}");
    let named = |text: &str| {
        assert!(!text.contains("Olga Former"), "{text}");
        ["Ann Author", "Example Networks"].map(|name| text.contains(name))
    };
    for format in ["html", "md", "json"] {
        let plain = bench.run(["report", "last", "--format", format]).expect_code(0).stdout;
        let names = ["Olga Former", "Ann Author", "Example Networks"];
        assert!(format == "json" || names.iter().all(|name| plain.contains(name)), "{format}: {plain}");
        let shown = bench.run(["report", "last", "--redact", "--format", format]).expect_code(0).stdout;
        assert_eq!(named(&shown), [false, false], "{format}: {shown}");
    }
    let words = ["report", "last", "--redact", "--format", "md", "--author", "Ann Author"];
    let shown = bench.run(words).expect_code(0).stdout;
    assert!(shown.contains("organization-1"), "{shown}");
    assert_eq!(named(&shown), [true, false], "{shown}");
    let history = bench.run(["history", "--redact", "--format", "md"]).expect_code(0).stdout;
    assert_eq!(named(&history), [false, false], "{history}");
    bench.run(["runs", "export", "last", "--redact", "--out", "for-you.netduel"]).expect_code(0);
    let exported = std::fs::read_to_string(bench.path().join("for-you.netduel")).unwrap();
    assert_eq!(named(&exported), [false, false]);
    bench.run(["runs", "rename", "last", "ours"]).expect_code(0);
    crate::compare::stored_run(&bench, "before", "6.18.44");
    let words = ["compare", "ours", "before", "--redact", "--format", "md", "--author", "Ann Author"];
    assert_eq!(named(&bench.run(&words[..6]).stdout), [false, false]);
    let shown = bench.run(words).stdout;
    assert_eq!(named(&shown), [true, false], "{shown}");
}

#[test]
fn run_report_compare_export_and_inspect_hide_names() {
    let bench = Bench::new();
    let plan = short_plan(TWO_PATHS, STREAM, "blocks_min = 2\nblocks_max = 2")
        .replace("Which path is faster?", "Is the home of mallory7, /Users/mallory7, faster?");
    let plan = bench.plan(&plan);
    let words = [
        "run",
        plan.to_str().unwrap(),
        "--redact",
        "--out",
        "redacted.html",
        "--title",
        "on behalf of mallory7",
    ];
    let run = bench.run(words);
    assert!(matches!(run.code, Some(0 | 6)), "{}", run.stderr);
    assert_hidden("standard output of run", &run.stdout);
    assert_hidden("standard error of run", &run.stderr);
    assert_hidden("the page", &std::fs::read_to_string(bench.path().join("redacted.html")).unwrap());
    // The store has the run as it was.
    let plain = bench.run(["report", "last", "--json"]).expect_code(0).stdout;
    assert!(plain.contains(USER), "{plain}");
    for format in ["text", "html", "md", "json", "csv", "junit", "github", "prometheus", "influx"] {
        let shown = bench.run(["report", "last", "--redact", "--format", format]).expect_code(0);
        assert_hidden(format, &shown.stdout);
    }
    for format in ["text", "html", "md", "json"] {
        let shown = bench.run(["history", "--redact", "--format", format]).expect_code(0);
        assert_hidden(&format!("the history as {format}"), &(shown.stdout + &shown.stderr));
    }
    bench.run(["runs", "rename", "last", "ours"]).expect_code(0);
    bench.run(["runs", "export", "ours", "--redact", "--out", "for-you.netduel"]).expect_code(0);
    assert_hidden("the export", &std::fs::read_to_string(bench.path().join("for-you.netduel")).unwrap());
    bench.run(["runs", "verify", "./for-you.netduel"]).expect_code(0);
    bench.run(["runs", "import", "for-you.netduel", "--name", "theirs"]).expect_code(0);
    crate::compare::stored_run(&bench, "before", "6.18.44");
    for run in ["ours", "theirs"] {
        let compared = bench.run(["compare", run, "before", "--redact"]);
        assert!(compared.stdout.contains("Differences between the runs"), "{}", compared.stderr);
        assert_hidden("compare", &(compared.stdout + &compared.stderr));
    }
    // A baseline has no forms in which names are known as such; one of a redacted run has none.
    bench.run(["runs", "baseline", "ours", "--out", "own.json"]).expect_code(0);
    bench.run(["runs", "baseline", "./for-you.netduel", "--out", "theirs.json"]).expect_code(0);
    assert_hidden("the baseline", &std::fs::read_to_string(bench.path().join("theirs.json")).unwrap());
    let refused = bench.run(["compare", "own.json", "before", "--redact"]).expect_code(2);
    assert!(refused.stderr.contains("a baseline keeps its names"), "{}", refused.stderr);
}

#[test]
fn quick_tests_hide_addresses_and_names() {
    let served = Served::start("hidden", &[]);
    let string = served.string(false).to_owned();
    let address = served.address().to_owned();
    let plain = served.client(&["tcp", &string, "-t", "0.2", "-J"]).expect_code(0).stdout;
    assert!(plain.contains(&address), "{plain}");
    let here = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    for words in [
        &["tcp", &address, "-t", "0.2", "-i", "0.1"][..],
        &["udp", &address, "-t", "0.2", "-b", "1M", "-J"],
        &["rr", &address, "-t", "0.2", "--json-stream"],
        &["pps", &address, "-t", "0.2", "--frame", "64,128"],
        // A wrong port: the failure names the server.
        &["rr", &address, "-t", "0.2", "-p", "1", "-J"],
    ] {
        let shown = served.client(&[words, &["--redact"]].concat());
        let text = shown.stdout + &shown.stderr;
        assert!(text.contains("192.0.2."), "{words:?}: {text}");
        assert!(
            !text.contains(&address) && !text.contains(here.trim()),
            "{words:?} shows {address}:\n{text}"
        );
    }
    served.end();
}

/// Puts the user into the question of a stored run.
pub fn name_the_user(bench: &Bench, run: &str) {
    let path = bench.store().join(format!("{run}.netduel"));
    let text = std::fs::read_to_string(&path).unwrap();
    let header: serde_json::Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    let question = header["header"]["plan"]["question"].to_string();
    assert!(text.contains(&question), "{question}");
    std::fs::write(path, text.replace(&question, "\"Is /Users/mallory7 faster?\"")).unwrap();
}

/// The formats of a command, as the program lists them.
fn formats(bench: &Bench, command: &[&str]) -> Vec<String> {
    let refused = bench.run([command, &["--format", "none"]].concat()).expect_code(2).stderr;
    let (_, list) = refused.split_once("[possible values: ").unwrap_or_else(|| panic!("{refused}"));
    list.split(']').next().unwrap().split(", ").map(str::to_owned).collect()
}

#[test]
fn every_format_that_a_command_lists_hides_names() {
    let bench = Bench::new();
    crate::compare::stored_run(&bench, "by-mallory7", "6.18.44");
    crate::compare::stored_slower_run(&bench, "slower");
    name_the_user(&bench, "by-mallory7");
    let compare = ["compare", "by-mallory7", "slower", "--fail-if", "latency-p50 > 10 %"];
    for (command, code) in
        [(&["report", "by-mallory7"][..], 0), (&compare[..], 11), (&["history", "by-mallory7"], 0)]
    {
        let formats = formats(&bench, command);
        assert!(formats.iter().any(|format| format == "text"), "{formats:?}");
        // The page of a PDF is tried in `netduel-report`, the columns of Parquet with pandas.
        for format in formats.iter().filter(|format| !["pdf", "parquet"].contains(&format.as_str())) {
            let shown = |redact: &[&str]| {
                let words = [command, &["--format", format.as_str()], redact].concat();
                let finished = bench.run(words).expect_code(code);
                finished.stdout + &finished.stderr
            };
            // A report without a loss has no annotation.
            let has_text = !(command[0] == "report" && format == "github");
            let plain = shown(&[]);
            assert_eq!(plain.contains(USER), has_text, "{command:?} as {format}: {plain}");
            let hidden = shown(&["--redact"]);
            assert_eq!(hidden.is_empty(), !has_text, "{command:?} as {format}: {hidden}");
            assert_hidden(&format!("{command:?} as {format}"), &hidden);
        }
    }
}

#[test]
fn listing_of_runs_hides_names() {
    let bench = Bench::new();
    // The name stands before what shows that it is a user's.
    crate::compare::stored_run(&bench, "by-mallory7", "6.18.44");
    crate::compare::stored_run(&bench, "plain", "6.18.44");
    name_the_user(&bench, "plain");
    bench.run(["runs", "tag", "plain", "--title", "for mallory7", "--note", "by=mallory7"]).expect_code(0);
    for words in [&["runs"][..], &["runs", "--json"]] {
        let plain = bench.run(words).expect_code(0).stdout;
        assert!(plain.contains("by-mallory7") && plain.contains("for mallory7"), "{plain}");
        let shown = bench.run([words, &["--redact"]].concat()).expect_code(0);
        assert!(
            shown.stdout.contains("by-user-1") && shown.stdout.contains("for user-1"),
            "{}",
            shown.stdout
        );
        assert_hidden("the listing", &(shown.stdout + &shown.stderr));
    }
}

#[test]
fn redacted_baseline_has_no_name_and_is_compared() {
    let bench = Bench::new();
    crate::compare::stored_run(&bench, "by-mallory7", "6.18.44");
    crate::compare::stored_run(&bench, "after", "6.18.44");
    name_the_user(&bench, "by-mallory7");
    let words = ["runs", "baseline", "by-mallory7"];
    let plain = bench.run(words).expect_code(0).stdout;
    assert!(plain.contains(USER), "{plain}");
    let shown = bench.run([&words[..], &["--redact"]].concat()).expect_code(0);
    assert_hidden("the baseline", &(shown.stdout + &shown.stderr));
    bench.run([&words[..], &["--redact", "--out", "hidden.json"]].concat()).expect_code(0);
    assert_hidden("the file", &std::fs::read_to_string(bench.path().join("hidden.json")).unwrap());
    let words = ["compare", "hidden.json", "after", "--redact"];
    for words in [&words[..3], &words] {
        let compared = bench.run(words).expect_code(0).stdout;
        assert!(compared.contains("no difference beyond 5 %"), "{compared}");
    }
}

/// Stores a run whose hosts have these names.
pub fn stored_run_of_hosts(bench: &Bench, run: &str, [client, server]: [&str; 2]) -> PathBuf {
    let path = crate::compare::stored_run(bench, run, "6.18.44");
    let mut text = std::fs::read_to_string(&path).unwrap();
    for (host, role, name) in [("a", "client", client), ("b", "server", server)] {
        for (key, named) in [
            (format!("\"{host}\":{{"), format!("\"{name}\":{{")),
            (format!("\"{role}\":\"{host}\""), format!("\"{role}\":\"{name}\"")),
        ] {
            assert!(text.contains(&key), "{key}: {text}");
            text = text.replace(&key, &named);
        }
    }
    std::fs::write(&path, text).unwrap();
    path
}

#[test]
fn redacted_baseline_is_compared_with_redacted_runs() {
    let bench = Bench::new();
    stored_run_of_hosts(&bench, "before", ["sendhost7", "recvhost7"]);
    // In the order of their names the hosts of this run have the other numbers.
    stored_run_of_hosts(&bench, "elsewhere", ["anthost7", "zebrahost7"]);
    bench.run(["runs", "tag", "before", "--title", "sendhost7 sends"]).expect_code(0);
    bench.run(["runs", "baseline", "before", "--redact", "--out", "hidden.json"]).expect_code(0);
    let file = std::fs::read_to_string(bench.path().join("hidden.json")).unwrap();
    assert!(file.contains("\"host-2 sends\""), "{file}");
    bench.run(["runs", "export", "elsewhere", "--redact", "--out", "for-you.netduel"]).expect_code(0);
    let gate = ["--fail-if", "latency-p50 > 5 %", "--strict"];
    for words in [
        &["compare", "hidden.json", "elsewhere", "--redact"][..],
        &["compare", "elsewhere", "hidden.json", "--redact"],
        &["compare", "hidden.json", "./for-you.netduel"],
        &["compare", "hidden.json", "./for-you.netduel", "--redact"],
    ] {
        for format in ["text", "json", "md", "html"] {
            let words = [words, &gate, &["--format", format]].concat();
            let compared = bench.run(&words).expect_code(0);
            let text = compared.stdout + &compared.stderr;
            for name in ["sendhost7", "recvhost7", "anthost7", "zebrahost7"] {
                assert!(!text.contains(name), "{words:?} shows {name}: {text}");
            }
            // The client has the number that it has in the output.
            if ["md", "html"].contains(&format) {
                assert!(text.contains("host-1 sends"), "{words:?}: {text}");
            }
        }
    }
    // A file of this program without the option.
    bench.run(["runs", "baseline", "before", "--out", "own.json"]).expect_code(0);
    let refused = bench.run(["compare", "own.json", "elsewhere", "--redact"]).expect_code(2);
    assert!(refused.stderr.contains("runs baseline RUN --redact"), "{}", refused.stderr);
}

#[test]
fn redacted_baseline_is_compared_with_runs_whose_hosts_have_their_names() {
    let bench = Bench::new();
    for run in ["before", "after", "exchanged"] {
        let path = stored_run_of_hosts(&bench, run, ["sender", "receiver"]);
        if run == "exchanged" {
            // The hosts of one arm only: no name is that of a pseudonym in both arms.
            let mut text = std::fs::read_to_string(&path).unwrap();
            let pair = "{\"client\":\"sender\",\"server\":\"receiver\"}";
            let place = text.rfind(pair).unwrap();
            text.replace_range(place..place + pair.len(), "{\"client\":\"receiver\",\"server\":\"sender\"}");
            std::fs::write(&path, text).unwrap();
        }
    }
    bench.run(["runs", "baseline", "before", "--redact", "--out", "hidden.json"]).expect_code(0);
    let file = std::fs::read_to_string(bench.path().join("hidden.json")).unwrap();
    assert!(file.contains("\"host-1\"") && file.contains("\"host-2\""), "{file}");
    assert!(!file.contains("\"sender\"") && !file.contains("\"receiver\""), "{file}");
    let gate = ["--fail-if", "latency-p50 > 5 %", "--strict"];
    let compared = bench.run([&["compare", "hidden.json", "after"], &gate[..]].concat()).expect_code(0);
    assert!(compared.stdout.contains("no difference beyond 5 %"), "{}", compared.stdout);
    // The run may come first.
    bench.run(["compare", "after", "hidden.json"]).expect_code(0);
    bench.run(["compare", "hidden.json", "exchanged"]).expect_code(6);
}

#[test]
fn hosts_of_a_redacted_run_are_not_those_of_another_run() {
    let bench = Bench::new();
    stored_run_of_hosts(&bench, "before", ["sendhost7", "recvhost7"]);
    // Alone, its hosts would have the same numbers.
    stored_run_of_hosts(&bench, "elsewhere", ["zebrahost7", "anthost7"]);
    bench.run(["runs", "export", "before", "--redact", "--out", "for-you.netduel"]).expect_code(0);
    for words in [["elsewhere", "./for-you.netduel"], ["./for-you.netduel", "elsewhere"]] {
        let words = [&["compare", "--redact", "--format", "md"][..], &words].concat();
        let shown = bench.run(words).expect_code(6).stdout;
        let words = shown.split(|c: char| !c.is_ascii_alphanumeric() && c != '-');
        let hosts: BTreeSet<&str> = words.filter(|word| word.starts_with("host-")).collect();
        assert_eq!(hosts.len(), 4, "{hosts:?} in {shown}");
    }
}

/// The runs `before` and `after`, whose arms differ by the case of a host.
pub fn store_runs_of_arms_in_two_cases(bench: &Bench) {
    for run in ["before", "after"] {
        let path = stored_run_of_hosts(bench, run, ["sendhost7", "recvhost7"]);
        let mut text = std::fs::read_to_string(&path).unwrap();
        for (arm, own) in [("synthetic", "via-SendHost7"), ("accelerated", "via-sendhost7")] {
            for key in ["name", "arm"] {
                text = text.replace(&format!("\"{key}\":\"{arm}\""), &format!("\"{key}\":\"{own}\""));
            }
        }
        std::fs::write(&path, text).unwrap();
    }
}

#[test]
fn arms_that_differ_by_the_case_of_a_host_have_class_names_of_their_own_in_junit() {
    let bench = Bench::new();
    store_runs_of_arms_in_two_cases(&bench);
    let classes = |command: &[&str]| {
        let shown = bench.run([command, &["--redact", "--format", "junit"]].concat()).expect_code(0).stdout;
        assert!(!shown.to_lowercase().contains("sendhost7"), "{shown}");
        let classes = shown.split("classname=\"").skip(1).filter_map(|rest| rest.split('"').next());
        classes.map(str::to_owned).collect::<BTreeSet<String>>().into_iter().collect::<Vec<String>>()
    };
    let of_runs = classes(&["compare", "before", "after"]);
    let arms: Vec<&str> = of_runs.iter().filter_map(|class| class.strip_suffix(", B against A")).collect();
    let [baseline, other] = arms.as_slice() else { panic!("{of_runs:?}") };
    assert_eq!(*other, format!("{baseline}-2"));
    assert_eq!(classes(&["report", "before"]), [format!("{other} against {baseline}")]);
    // The report calls them so, too.
    let report = bench.run(["report", "before", "--redact", "--format", "md"]).expect_code(0).stdout;
    assert!(report.contains(&format!("| metric | {baseline} | {other} | verdict |")), "{report}");
}

/// `host-1` is a natural name for a host, and is no pseudonym in a file that was written without the option.
#[test]
fn hosts_whose_names_look_like_pseudonyms_are_not_renamed_in_a_comparison() {
    let bench = Bench::new();
    stored_run_of_hosts(&bench, "before", ["host-1", "host-2"]);
    stored_run_of_hosts(&bench, "exchanged", ["host-2", "host-1"]);
    bench.run(["runs", "baseline", "before", "--out", "own.json"]).expect_code(0);
    for first in ["before", "own.json"] {
        bench.run(["compare", first, "exchanged"]).expect_code(6);
    }
}

#[test]
fn checked_plan_hides_names() {
    let bench = Bench::new();
    let report = "[report]\nauthor = \"Ann Author\"\n";
    let question = "Is /Users/mallory7 faster, as Ann Author says?";
    let text = short_plan(TWO_PATHS, STREAM, "blocks_min = 2\nblocks_max = 2") + report;
    let plan = bench.plan(&text.replace("Which path is faster?", question));
    for words in [&["plan", "check"][..], &["plan", "check", "--json"]] {
        let words = [words, &[plan.to_str().unwrap()]].concat();
        let plain = bench.run(&words).expect_code(0).stdout;
        assert!(plain.contains(question), "{plain}");
        let shown = bench.run([&words[..], &["--redact"]].concat()).expect_code(0);
        assert!(shown.stdout.contains("Is /Users/user-1 faster, as author-1 says?"), "{}", shown.stdout);
        assert_hidden("the plan", &(shown.stdout + &shown.stderr));
    }
}

#[test]
fn errors_of_an_invalid_plan_hide_names() {
    let bench = Bench::new();
    let plan = bench.plan(
        "name = \"x\"\nquestion = \"?\"\n[hosts.db-prod7]\nlaunch = \"ssh\"\nhost = \"mallory7.example.org\"\nspeed = 3\n\
         [hosts.b]\nlaunch = \"local\"\n[[arms]]\nname = \"one\"\nclient = \"db-prod7\"\nserver = \"b\"\n\
         [[workloads]]\nname = \"rr\"\ntype = \"tcp-rr\"\n",
    );
    for words in [&["plan", "check"][..], &["plan", "check", "--json"], &["run"]] {
        let words = [words, &[plan.to_str().unwrap()]].concat();
        let plain = bench.run(&words).expect_code(2);
        assert!((plain.stdout + &plain.stderr).contains("hosts.db-prod7.speed"), "{words:?}");
        let shown = bench.run([&words[..], &["--redact"]].concat()).expect_code(2);
        let text = shown.stdout + &shown.stderr;
        assert!(text.contains("hosts.host-1.speed") && !text.contains("db-prod7"), "{words:?}: {text}");
        assert_hidden("the errors", &text);
    }
}

#[test]
fn errors_of_names_in_place_of_addresses_hide_them() {
    let bench = Bench::new();
    let plan = bench.plan(
        "name = \"x\"\nquestion = \"?\"\n[hosts.a]\nlaunch = \"local\"\naddresses = [\"mallory7.example.org/24\", \"mallory7\"]\n\
         [hosts.b]\nlaunch = \"local\"\naddresses = \"mallory7-b\"\n[[arms]]\nname = \"one\"\nclient = \"a\"\nserver = \"b\"\n\
         server_addresses = [\"mallory7-c\"]\n[[workloads]]\nname = \"rr\"\ntype = \"tcp-rr\"\n",
    );
    for words in [&["plan", "check"][..], &["plan", "check", "--json"], &["run"]] {
        let words = [words, &[plan.to_str().unwrap()]].concat();
        let plain = bench.run(&words).expect_code(2);
        let text = plain.stdout + &plain.stderr;
        let names = ["7.example.org/24", "7-b", "7-c"];
        assert!(names.iter().all(|name| text.contains(name)), "{words:?}: {text}");
        let shown = bench.run([&words[..], &["--redact"]].concat()).expect_code(2);
        let text = shown.stdout + &shown.stderr;
        assert!(text.contains("addresses") && text.contains("host-1"), "{words:?}: {text}");
        assert_hidden("the errors", &text);
    }
}

#[test]
fn gates_judge_the_runs_as_they_are_and_show_no_name() {
    let bench = Bench::new();
    crate::compare::stored_run(&bench, "before", "6.18.44");
    crate::compare::stored_slower_run(&bench, "slower");
    for name in ["before", "slower"] {
        name_the_user(&bench, name);
    }
    let summary = bench.path().join("summary.md");
    for (command, code) in [(&["compare", "before", "slower"][..], 11), (&["report", "slower"], 0)] {
        for format in ["junit", "github"] {
            let gate = ["--fail-if", "latency-p50 on accelerated > 10 %", "--redact", "--format", format];
            let mut command = bench.netduel([command, &gate[..]].concat());
            command.env("GITHUB_STEP_SUMMARY", &summary);
            let shown = Finished::from(command.output().unwrap()).expect_code(code);
            let is_failed = shown.stdout.contains("<failure ") || shown.stdout.contains("::error ");
            assert_eq!(is_failed, code == 11, "{}", shown.stdout);
            assert_hidden(format, &(shown.stdout + &shown.stderr));
        }
    }
    let summary = std::fs::read_to_string(summary).unwrap();
    assert!(summary.contains("latency-p50 on accelerated"), "{summary}");
    assert_hidden("the summary", &summary);
}

#[test]
fn inspect_hides_addresses() {
    let bench = Bench::new();
    let words = ["inspect", "--no-metadata", "--fail-on", "never", "--json"];
    let plain = bench.run(words).expect_code(0);
    let own = addresses(&plain.stdout);
    if own.is_empty() {
        return skip("no interface with an address that is no pseudonym");
    }
    for format in [&["--redact", "--json"][..], &["--redact"]] {
        let shown = bench.run(words[..4].iter().chain(format)).expect_code(0);
        for address in &own {
            assert!(!shown.stdout.contains(address.as_str()), "{address} is shown:\n{}", shown.stdout);
        }
    }
}
