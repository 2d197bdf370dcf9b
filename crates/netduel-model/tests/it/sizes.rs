//! Plans of any size are judged: what is too large is refused, and no problem hides the first ones.
use netduel_model::plan::{ARMS_MAX, HOSTS_MAX, WORKLOADS_MAX, parse};

const START: &str = "name = \"x\"\nquestion = \"?\"\n[hosts.a]\nlaunch = \"local\"\n[hosts.b]\nlaunch = \"local\"\naddresses = [\"192.0.2.1\"]\n";

fn arms(count: usize) -> String {
    let arm = |index: usize| {
        format!(
            "[[arms]]\nname = \"a{index}\"\nclient = \"a\"\nserver = \"b\"\nset = {{ streams = {} }}\n",
            index + 1
        )
    };
    repeated(count, arm)
}

/// The texts of the indices below `count`, one after the other.
fn repeated(count: usize, text: impl Fn(usize) -> String) -> String {
    (0..count).map(text).collect::<Vec<_>>().concat()
}

fn workloads(count: usize) -> String {
    repeated(count, |index| format!("[[workloads]]\nname = \"w{index}\"\ntype = \"tcp-stream\"\n"))
}

fn errors(text: &str) -> String {
    parse(text, "p").expect_err("it is too large").to_string()
}

#[test]
fn first_hundred_problems_are_reported_with_a_hint_at_the_rest() {
    let start = format!("{START}{}{}", arms(2), workloads(1));
    let first = start.lines().count() + 1;
    let text = start + &repeated(300, |index| format!("key{index} = 1\n"));
    let errors = parse(&text, "p").expect_err("300 unknown keys");
    let lines: Vec<usize> = errors.problems.iter().map(|problem| problem.line).collect();
    assert_eq!(lines, (first..first + 100).collect::<Vec<_>>());
    assert!(errors.to_string().ends_with("p: has more problems on later lines; correct these first"));
}

#[test]
fn hundred_problems_have_no_hint_at_more() {
    let keys = repeated(100, |index| format!("key{index} = 1\n"));
    let errors = parse(&format!("{START}{}{}{keys}", arms(2), workloads(1)), "p").expect_err("100 keys");
    assert_eq!((errors.problems.len(), errors.has_more), (100, false));
}

#[test]
fn number_of_hosts_arms_and_workloads_is_limited() {
    let hosts = |count: usize| -> String {
        repeated(count, |index| format!("[hosts.h{index}]\nlaunch = \"local\"\n"))
    };
    assert!(
        parse(&format!("{START}{}{}{}", hosts(HOSTS_MAX - 2), arms(ARMS_MAX), workloads(4)), "p").is_ok()
    );
    assert!(parse(&format!("{START}{}{}", arms(4), workloads(WORKLOADS_MAX)), "p").is_ok());
    for (text, wrong) in [
        (
            format!("{START}{}{}{}", hosts(HOSTS_MAX - 1), arms(2), workloads(1)),
            "p:3: hosts: has 257 entries; at most 256",
        ),
        (format!("{START}{}{}", arms(ARMS_MAX + 1), workloads(1)), "p:8: arms: has 257 entries; at most 256"),
        (
            format!("{START}{}{}", arms(2), workloads(WORKLOADS_MAX + 1)),
            "workloads: has 257 entries; at most 256",
        ),
        (
            format!("{START}{}{}", arms(256), workloads(5)),
            "256 arms and 5 workloads, 1280 trials in a block; at most 1024",
        ),
    ] {
        let errors = errors(&text);
        assert!(errors.contains(wrong) && errors.lines().count() == 1, "{wrong:?} is not all of\n{errors}");
    }
}

#[test]
fn sizes_of_frames_count_as_workloads() {
    let sizes: Vec<String> = (100..360).map(|size: u32| size.to_string()).collect();
    let pps = format!("[[workloads]]\nname = \"p\"\ntype = \"pps\"\nframes = [{}]\n", sizes.join(", "));
    let text = format!("{START}{}{pps}", arms(2))
        .replace("set = { streams = 1 }", "")
        .replace("set = { streams = 2 }", "");
    assert!(errors(&text).contains("workloads: has 260 entries; at most 256"), "{}", errors(&text));
}

#[test]
fn long_lists_are_refused_unread() {
    let text = |list: &str| format!("{START}{}{}{list}\n", arms(2), workloads(1));
    for (key, element) in
        [("metrics", "\"throughput\""), ("pin_client", "0"), ("events", "{}"), ("search", "{}")]
    {
        let list = |count: usize| text(&format!("{key} = [{}]", vec![element; count].join(",")));
        let long = errors(&list(1025));
        assert!(
            long.contains(&format!("workload \"w0\", {key}: has 1025 elements; at most 1024 are allowed")),
            "{long}"
        );
        assert_eq!(long.lines().count(), 1, "{long}");
        let shorter = parse(&list(1024), "p").map_or_else(|errors| errors.to_string(), |_| String::new());
        assert!(!shorter.contains("elements"), "{shorter}");
    }
}

#[test]
fn text_of_testpmd_is_limited() {
    let pps = |length: usize| {
        let dpdk = format!("dpdk = {{ args = [\"{}\"] }}", "x".repeat(length));
        let arms = arms(2).replace("set = { streams = 1 }", "").replace("set = { streams = 2 }", "");
        format!("{START}{arms}[[workloads]]\nname = \"p\"\ntype = \"pps\"\ngenerator = \"dpdk\"\n{dpdk}\n")
    };
    assert!(parse(&pps(4096), "p").is_ok());
    assert!(
        errors(&pps(4097))
            .contains("workload \"p\", dpdk: has a program and arguments of 4097 bytes; at most 4096")
    );
}
