//! One invalid plan for every rule: the line, the key and the remedy of what is reported are asserted.
use netduel_model::bed::BedType;
use netduel_model::plan::parse;

/// A valid plan with one of everything that the rules are about. Each line of a table below changes it in one place.
const VALID: &str = r#"name = "good"
question = "Which?"
[lab]
rules = 600
mtu = 1500
[hosts.a]
launch = "lab"
[hosts.b]
launch = "lab"
[hosts.near]
launch = "netns"
netns = "near"
addresses = ["192.0.2.1"]
[hosts.far]
launch = "command"
command = ["ssh", "far"]
addresses = ["192.0.2.2"]
[[arms]]
name = "synthetic"
client = "a"
server = "b"
baseline = true
treatments = [{ path = "synthetic" }]
[[arms]]
name = "plain"
client = "near"
server = "far"
treatments = [
  { mtu = 1400, interface = "eth0" },
  { offload = "tx-tcp-segmentation", interface = "eth0", value = "off" },
  { sysctl = "net.ipv4.tcp_sack", value = "0" },
  { command = ["/opt/change"], undo = ["/opt/undo"] },
]
set = { streams = 8 }
[[workloads]]
name = "bulk"
type = "tcp-stream"
duration = "1 s"
warmup = "200 ms"
streams = 1
block = "1 MiB"
congestion = "cubic"
metrics = ["throughput"]
[[workloads]]
name = "datagrams"
type = "udp-stream"
size = "1 kB"
flows = 1
rate = "1 Gbit/s"
[[workloads]]
name = "latency"
type = "tcp-rr"
size = "64 B"
outstanding = 1
[design]
blocks_min = 8
blocks_max = 10
budget = "1 min"
precision = "5 %"
equivalence = "5 %"
confidence = "95 %"
"#;

/// The cases, and how they are written down.
const CASES: &str = include_str!("invalid.txt");

#[test]
fn every_rule_is_reported_at_its_line_and_key_with_the_remedy() {
    let (mut valid, mut invalid, mut cases) = (String::new(), String::new(), 0);
    for line in CASES.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let (mark, text) = line.split_at(2.min(line.len()));
        match mark.trim() {
            "-" => valid = text.replace("\\n", "\n"),
            "+" => invalid = text.replace("\\n", "\n"),
            "=" => {
                assert_reported(&valid, &invalid, text);
                cases += 1;
            }
            _ => panic!("{line:?} is not a line of a case"),
        }
    }
    assert!(cases >= 100, "{cases} cases");
}

fn assert_reported(valid: &str, invalid: &str, expected: &str) {
    assert!(VALID.matches(valid).count() == 1, "{valid:?} is not there once");
    let errors = parse(&VALID.replace(valid, invalid), "p").expect_err(invalid);
    let reported = errors.to_string();
    assert_eq!(errors.problems.len(), 1, "for {invalid:?}:\n{reported}");
    let mut rest = reported.as_str();
    for (index, part) in expected.split(" ... ").enumerate() {
        let place = rest.find(part).filter(|place| index > 0 || *place == 0);
        assert!(place.is_some(), "for {invalid:?}: {part:?} is not in\n{reported}");
        rest = &rest[place.unwrap_or_default() + part.len()..];
    }
}

#[test]
fn range_of_a_price_is_the_same_in_the_schema_and_in_errors() {
    let schema = netduel_model::plan::schema();
    let described = &schema["$defs"]["HostSpec"]["properties"]["price_per_hour"]["description"];
    let described = described.as_str().expect("it is described");
    assert!(described.ends_with("Range: above 0, at most 1000000."), "{described}");
    let text = VALID.replace("netns = \"near\"", "netns = \"near\"\nprice_per_hour = \"1000000 USD\"");
    let plan = parse(&text, "p").expect("it is the largest");
    let prices: Vec<f64> =
        plan.hosts.values().filter_map(|host| Some(host.price_per_hour.as_ref()?.amount)).collect();
    assert_eq!(prices, [1e6]);
}

#[test]
fn valid_plan_is_accepted() {
    if let Err(errors) = parse(VALID, "p") {
        panic!("{errors}");
    }
}

#[test]
fn too_few_arms_are_refused_unless_it_is_an_aa_run() {
    let start = VALID.find("[[arms]]\nname = \"plain\"").expect("it is there");
    let end = VALID.find("[[workloads]]").expect("it is there");
    let mut one = VALID.to_owned();
    one.replace_range(start..end, "");
    let errors = parse(&one, "p").expect_err("one arm").to_string();
    assert_eq!(
        errors,
        "p:18: arms: has one arm, and nothing to compare it with; write at least two tables [[arms]], or set aa = true in \
         [design] to run one against itself"
    );
    assert!(parse(&one.replace("[design]", "[design]\naa = true"), "p").is_ok());

    let long = format!("name = \"{}\"", "x".repeat(38));
    let aa = one.replace("[design]", "[design]\naa = true").replace("name = \"synthetic\"", &long);
    let errors = parse(&aa, "p").expect_err("too long").to_string();
    let start = format!("p:19: arm \"{}\", name: is too long", "x".repeat(38));
    assert!(errors.starts_with(&start) && errors.ends_with("34 letters at most"), "{errors}");
}

#[test]
fn every_problem_is_reported_at_once_in_the_order_of_the_lines() {
    let text = VALID
        .replace("question = \"Which?\"", "question = \"\"")
        .replace("mtu = 1500", "mtu = 100\nmut = 1")
        .replace("server = \"far\"", "server = \"fra\"")
        .replace("{ streams = 8 }", "{ streams = 0, wait = 5 }")
        .replace("duration = \"1 s\"", "duration = 1")
        .replace("blocks_min = 8", "blocks_min = 11");
    let errors = parse(&text, "p").expect_err("six problems");
    let places: Vec<(usize, &str)> =
        errors.problems.iter().map(|problem| (problem.line, problem.key.as_str())).collect();
    assert_eq!(
        places,
        [
            (2, "question"),
            (5, "lab.mtu"),
            (6, "lab.mut"),
            (28, "arms[1].server"),
            (35, "arms[1].set.wait"),
            (35, "arms[1].set.streams"),
            (39, "workloads[0].duration"),
            (57, "design.blocks_min"),
        ]
    );
    assert_eq!(errors.to_string().lines().count(), places.len());
}

#[test]
fn missing_tables_are_named_with_what_belongs_in_them() {
    let errors = parse("", "empty.toml").expect_err("nothing").to_string();
    for key in ["name", "question", "hosts", "arms", "workloads"] {
        assert!(errors.contains(&format!("empty.toml:1: {key}: is missing; ")), "{errors}");
    }
    assert_eq!(errors.lines().count(), 5, "{errors}");
}

#[test]
fn first_error_of_a_text_that_is_not_toml_is_reported_alone() {
    let no_comma = VALID.replace("{ mtu = 1400, interface", "{ mtu = 1400 interface");
    for (text, line) in [
        ("name = \"x\"\nquestion = \nhosts == 1\nname = \"y\"\n", 2),
        (no_comma.as_str(), 29),
        ("name = \"x\"\n# a comment\nname = \"y\"\n", 3),
    ] {
        let errors = parse(text, "p").expect_err("not TOML");
        let lines: Vec<usize> = errors.problems.iter().map(|problem| problem.line).collect();
        assert_eq!(lines, [line], "{errors}");
        let printed = errors.to_string();
        assert!(printed.starts_with(&format!("p:{line}: this is not TOML: ")), "{printed}");
        assert!(printed.ends_with("; nothing else was checked"), "{printed}");
    }
}

#[test]
fn number_of_errors_is_in_words() {
    let count = |text: &str| parse(text, "p").expect_err("it has errors").count();
    assert_eq!(count(&VALID.replace("\"Which?\"", "\"\"")), "1 error");
    assert_eq!(count(""), "5 errors");
    let unknown: Vec<String> = (0..101).map(|index| format!("key{index} = 1\n")).collect();
    assert_eq!(count(&format!("{VALID}{}", unknown.concat())), "more than 100 errors");
}

#[test]
fn an_override_that_no_workload_has_is_refused() {
    let text =
        VALID.replace("{ streams = 8 }", "{ wait = \"spin\" }").replace("\"tcp-rr\"", "\"udp-stream\"");
    let errors =
        parse(&text.replace("outstanding = 1", "flows = 2"), "p").expect_err("no such workload").to_string();
    assert_eq!(
        errors,
        "p:34: arm \"plain\", set.wait: overrides a setting that no workload of this plan has; its workloads have block, \
         congestion, direction, dscp, engine, family, flows, mss, offload, pin_client, pin_server, rate, size, streams, volume, window"
    );
}

#[test]
fn override_with_the_key_of_a_treatment_names_the_treatment() {
    let datagrams = "type = \"udp-stream\"\nsize = \"1 kB\"\nflows = 1\nrate = \"1 Gbit/s\"";
    let text =
        VALID.replace("{ streams = 8 }", "{ offload = \"gso\" }").replace(datagrams, "type = \"udp-rr\"");
    let errors = parse(&text, "p").expect_err("no datagrams").to_string();
    assert!(errors.starts_with("p:34: arm \"plain\", set.offload: overrides a setting that no"), "{errors}");
    assert!(errors.ends_with("is a treatment of an arm: treatments = [{ offload = ..., interface = ... }]"));
    assert_eq!(errors.lines().count(), 1, "{errors}");
}

#[test]
fn a_host_in_a_lab_that_the_plan_does_not_have_is_refused() {
    let text = VALID.replace("[lab]\nrules = 600\nmtu = 1500\n", "");
    let errors = parse(&text, "p").expect_err("no lab").to_string();
    assert_eq!(
        errors,
        "p:4: hosts.a.launch: is \"lab\", but the plan has no lab; add a table [lab]; it may be empty\n\
         p:6: hosts.b.launch: is \"lab\", but the plan has no lab; add a table [lab]; it may be empty"
    );
}

#[test]
fn two_hosts_that_are_one_place_are_refused_as_a_pair() {
    let same_guest =
        VALID.replace("[hosts.b]\nlaunch = \"lab\"", "[hosts.b]\nlaunch = \"lab\"\nguest = \"a\"");
    let errors = parse(&same_guest, "p").expect_err("one guest").to_string();
    assert_eq!(
        errors,
        "p:22: arm \"synthetic\", server: is \"b\", which like client \"a\" is guest a of the lab; traffic between a host and itself \
         never leaves it: name two hosts"
    );
    let same_namespace = VALID.replace(
        "launch = \"command\"\ncommand = [\"ssh\", \"far\"]",
        "launch = \"netns\"\nnetns = \"near\"",
    );
    let errors = parse(&same_namespace, "p").expect_err("one namespace").to_string();
    assert!(errors.starts_with(
        "p:27: arm \"plain\", server: is \"far\", which like client \"near\" is network namespace near; "
    ));
    assert_eq!(errors.lines().count(), 1, "{errors}");
}

#[test]
fn a_standing_server_is_not_changed() {
    let plan = VALID
        .replace("launch = \"command\"\ncommand = [\"ssh\", \"far\"]", "launch = \"paired\"\nserve = \"far\"")
        .replace("{ mtu = 1400,", "{ on = \"client\", mtu = 1400,");
    let error = parse(&plan, "p").unwrap_err().to_string();
    let is_refused = |number: u32| {
        error.contains(&format!(
            "arm \"plain\", treatment {number}: changes the server, the `netduel serve` at far:5210, which makes no changes"
        ))
    };
    assert!(!is_refused(1) && is_refused(2) && is_refused(3) && is_refused(4), "{error}");
}

/// The problems of a host that is reached by ssh with these keys.
fn ssh_problems(keys: &str) -> String {
    let text = VALID
        .replace("launch = \"command\"\ncommand = [\"ssh\", \"far\"]", &format!("launch = \"ssh\"\n{keys}"));
    parse(&text, "p").err().map(|errors| errors.to_string()).unwrap_or_default()
}

#[test]
fn ssh_host_that_would_be_an_option_or_a_command_is_refused() {
    for host in ["far", "user@far", "far.example", "ssh://u@far:22", "user@fe80::1%eth0"] {
        assert_eq!(ssh_problems(&format!("host = \"{host}\"")), "", "{host}");
    }
    for host in
        ["-oProxyCommand=x", "u@-oProxyCommand=x", "", "a b", "$(x)", "a;b", "a|b", "u@", "`x`", "a\\nb"]
    {
        let problems = ssh_problems(&format!("host = \"{host}\""));
        assert!(
            problems.contains("hosts.far.host") && problems.contains("as `ssh` takes it"),
            "{host}: {problems}"
        );
    }
    let problems = ssh_problems("host = \"far\"\nuser = \"-x\"\nport = 0\nfolder = \"here\"");
    for key in ["hosts.far.user", "hosts.far.port", "hosts.far.folder"] {
        assert!(problems.contains(key), "{key}: {problems}");
    }
    assert!(problems.contains("hosts.far.port: is 0; 1 to 65535 is allowed"), "{problems}");
    assert_eq!(netduel_model::plan::schema()["$defs"]["HostSpec"]["properties"]["port"]["minimum"], 1);
    assert!(ssh_problems("").contains("hosts.far.host: is missing"), "{}", ssh_problems(""));
    assert_eq!(ssh_problems("host = \"far\"\nuser = \"u\"\nport = 22\nsudo = true\nfolder = \"~/x\""), "");
}

#[test]
fn key_of_ssh_belongs_to_no_other_launcher() {
    for key in ["host = \"x\"", "user = \"x\"", "port = 1", "sudo = true", "folder = \"/x\""] {
        let text = VALID.replace("netns = \"near\"", &format!("netns = \"near\"\n{key}"));
        let problems = parse(&text, "p").expect_err(key).to_string();
        assert!(problems.contains("is for `launch = \"ssh\"`, but this host has \"netns\""), "{problems}");
    }
}

/// A plan on a bed with these keys of its server and of its arm.
fn bed_text(server: &str, arm: &str) -> String {
    format!(
        "name = \"bed\"\nquestion = \"Which?\"\n[hosts.a]\nbed = \"vm1\"\n[hosts.b]\n{server}\n\
         [[arms]]\nname = \"one\"\nclient = \"a\"\nserver = \"b\"\n{arm}\n\
         [[workloads]]\nname = \"load\"\ntype = \"tcp-stream\"\n[design]\naa = true\n"
    )
}

/// The problems of such a plan.
fn bed_problems(server: &str, arm: &str) -> String {
    parse(&bed_text(server, arm), "p").err().map(|error| error.to_string()).unwrap_or_default()
}

#[test]
fn vm_of_a_bed_has_only_keys_that_the_bed_does_not_answer() {
    let vm = "bed = \"vm2\"";
    for keys in ["", "sudo = false\nfolder = \"~/x\"\ndata_ports = \"5210\"\nexpect_mbps = 900"] {
        assert_eq!(bed_problems(&format!("{vm}\n{keys}"), "network = \"accelerated\""), "");
    }
    for key in [
        "launch = \"ssh\"",
        "host = \"x\"",
        "user = \"x\"",
        "addresses = [\"10.0.0.1\"]",
        "size = \"Standard_DS4_v2\"",
        "price_per_hour = \"0.40 USD\"",
    ] {
        let problems = bed_problems(&format!("{vm}\n{key}"), "");
        assert!(problems.contains("is written for a VM of a bed, and the bed knows it"), "{key}: {problems}");
    }
    for name in ["", "VM2", "-x", "a b", "vm2;x"] {
        let problems = bed_problems(&format!("bed = {name:?}"), "");
        assert!(
            problems.contains("hosts.b.bed: ") && problems.contains("is not the name of a VM"),
            "{name}: {problems}"
        );
    }
    let none = bed_problems("", "");
    assert!(
        none.contains("hosts.b.launch: is missing, and so is `bed`") && none.contains("bed = \"vm1\""),
        "{none}"
    );
}

#[test]
fn both_ends_of_an_arm_are_in_one_bed_and_are_two_vms() {
    let local = "launch = \"local\"\naddresses = [\"10.0.0.1\"]";
    let problems = bed_problems(local, "");
    assert!(
        problems.contains("arm \"one\", client: is a VM of a bed, and the other host is not"),
        "{problems}"
    );
    let problems = bed_problems(local, "network = \"test\"");
    assert!(
        problems.contains("arm \"one\", network: is \"test\", a network of a bed, but a host"),
        "{problems}"
    );
    let problems = bed_problems("bed = \"vm1\"", "");
    assert!(problems.contains("is \"b\", which like client \"a\" is vm1 of the bed"), "{problems}");
    let problems = bed_problems("bed = \"vm2\"", "network = \"fast\"");
    assert!(
        problems.contains("arm \"one\", network: is the text \"fast\"") && problems.contains("`accelerated`"),
        "{problems}"
    );
}

#[test]
fn type_of_a_bed_is_one_of_a_plan_whose_hosts_are_vms() {
    let of = |text: &str, kind: &str| {
        let question = "question = \"Which?\"\n";
        let text = text.replace(question, &format!("{question}bed_type = {kind}\n"));
        parse(&text, "p").map(|plan| plan.bed_type).map_err(|error| error.to_string())
    };
    let on_bed = bed_text("bed = \"vm2\"", "");
    for kind in BedType::ALL {
        assert_eq!(of(&on_bed, &format!("\"{kind}\"")), Ok(Some(kind)));
    }
    assert_eq!(parse(&on_bed, "p").map(|plan| plan.bed_type), Ok(None));
    let error = of(&on_bed, "\"toggel\"").expect_err("there is no such type");
    assert!(error.starts_with("p:3: bed_type: ") && error.contains("`toggle`"), "{error}");
    let error = of(VALID, "\"toggle\"").expect_err("no host is a VM");
    assert!(error.starts_with("p:3: bed_type: is \"toggle\", and no host is a VM of a bed; "), "{error}");
}

/// The problems of a plan whose server has these keys in addition, and this workload alone.
fn data_port_problems(keys: &str, workload: &str) -> String {
    let text = format!(
        "name = \"ports\"\nquestion = \"Which?\"\n[hosts.a]\nlaunch = \"local\"\n\
         [hosts.b]\naddresses = [\"192.0.2.7\"]\n{keys}\n\
         [[arms]]\nname = \"one\"\nclient = \"a\"\nserver = \"b\"\n\
         [[workloads]]\nname = \"load\"\n{workload}\n[design]\naa = true\n"
    );
    parse(&text, "plan.toml").err().map(|error| error.to_string()).unwrap_or_default()
}

#[test]
fn range_of_data_ports_holds_the_ports_of_each_workload() {
    let netns = |ports: &str| format!("launch = \"netns\"\nnetns = \"b\"\ndata_ports = \"{ports}\"");
    let flows = "type = \"udp-stream\"\nrate = \"1 Mbit/s\"\nflows = 4";
    for (ports, workload) in
        [("5210", "type = \"tcp-stream\"\nstreams = 64"), ("5210", "type = \"udp-rr\""), ("5210-5213", flows)]
    {
        assert_eq!(data_port_problems(&netns(ports), workload), "", "{ports}: {workload}");
    }
    let problems = data_port_problems(&netns("5210-5212"), flows);
    assert!(
        problems.contains("hosts.b.data_ports: is \"5210-5212\", but the workload \"load\" needs 4 ports"),
        "{problems}"
    );
}

#[test]
fn data_ports_are_a_port_or_a_range_of_a_host_that_is_not_paired() {
    let rr = "type = \"udp-rr\"";
    for wrong in ["70000", "9-8", "ssh"] {
        let keys = format!("launch = \"netns\"\nnetns = \"b\"\ndata_ports = \"{wrong}\"");
        let problems = data_port_problems(&keys, rr);
        assert!(
            problems.contains(&format!("hosts.b.data_ports: is the text \"{wrong}\"; a port or a range")),
            "{problems}"
        );
    }
    let problems = data_port_problems("launch = \"netns\"\nnetns = \"b\"\ndata_ports = \"0-5\"", rr);
    assert!(problems.contains("hosts.b.data_ports: is \"0\"; \"1\" to \"65535\" is allowed"), "{problems}");
    let paired = "launch = \"paired\"\nserve = \"192.0.2.7\"\ndata_ports = \"5210\"";
    let problems = data_port_problems(paired, rr);
    assert!(problems.contains("hosts.b.data_ports: is written for a paired server"), "{problems}");
}
