//! The drawing of client, path and server in the report of a run, for each launcher.
use netduel_model::plan;
use netduel_model::run::Run;
use netduel_report::{document, html};

use crate::bed;
use crate::bed_drawings::{assert_within_frame, drawing_of};
use crate::builder::{Recipe, build};

const LABEL: &str = "Client, path and server of each arm: ";

const OVER_SSH: &str = r#"name = "ssh"
question = "Which address is better?"
[hosts.near]
launch = "ssh"
host = "near.example.org"
sudo = true
addresses = ["192.0.2.1"]
[hosts.far]
launch = "ssh"
host = "far.example.org"
addresses = ["192.0.2.2"]
size = "Standard_DS4_v2"
[[arms]]
name = "plain"
client = "near"
server = "far"
[[arms]]
name = "other-nic"
client = "near"
server = "far"
server_addresses = ["198.51.100.2"]
treatments = [{ offload = "tso", value = "off", interface = "eth0", on = "client" }]
expect_interface = { client = "eth0" }
[[workloads]]
name = "bulk"
type = "tcp-stream"
"#;

/// A run of this plan without trials.
fn run_of(text: &str) -> Run {
    let mut run = build(&Recipe::default());
    run.header.plan = plan::parse(text, "p").unwrap();
    run.trials.clear();
    run
}

fn assert_texts(drawing: &str, texts: &[&str]) {
    for text in texts {
        assert!(drawing.contains(&format!(">{text}</text>")), "{text} is not drawn:\n{drawing}");
    }
    assert_within_frame(drawing);
}

#[test]
fn run_in_the_lab_has_its_guests_and_the_path_of_each_arm() {
    let drawing = drawing_of(&build(&Recipe::default()), LABEL);
    assert_texts(
        &drawing,
        &[
            "client a",
            "server b",
            "guest of the lab",
            "synthetic: through the software switches",
            "syn0",
            "accelerated: bypassing the software switches",
            "vf0",
        ],
    );
    let boxes = |class: &str| drawing.matches(&format!("<rect class=\"{class}\"")).count();
    assert_eq!((boxes("cell"), boxes("cell serves"), boxes("band"), boxes("nic")), (2, 2, 2, 2), "{drawing}");
    let words = "accelerated: client a (vf0), bypassing the software switches, server b (vf0)";
    assert!(drawing.contains(words), "{drawing}");
    assert!(drawing.contains("; client a: guest of the lab"), "{drawing}");
}

#[test]
fn run_over_ssh_has_its_hosts_and_the_addresses_and_changes_of_each_arm() {
    let drawing = drawing_of(&run_of(OVER_SSH), LABEL);
    assert_texts(
        &drawing,
        &[
            "client near",
            "ssh near.example.org",
            "192.0.2.1",
            "server far",
            "ssh far.example.org",
            "Standard_DS4_v2",
            "plain: no changes",
            "other-nic: tso of eth0 off (client)",
            "eth0",
            "any interface",
            "198.51.100.2",
            "hosts that netduel reaches by ssh",
        ],
    );
    // The label has the texts in whole, also where the drawing cuts them.
    for words in [
        "other-nic: client near (eth0), tso of eth0 off (client), server far (any interface, 198.51.100.2)",
        "; client near: ssh near.example.org, 192.0.2.1; ",
        "server far: ssh far.example.org, Standard_DS4_v2, 192.0.2.2, 198.51.100.2\"",
    ] {
        assert!(drawing.contains(words), "{words}: {drawing}");
    }
}

/// The plan over ssh with another launcher for its client and one for its server.
fn launched(client: &str, server: &str) -> String {
    OVER_SSH
        .replace("launch = \"ssh\"\nhost = \"near.example.org\"\nsudo = true", client)
        .replace("launch = \"ssh\"\nhost = \"far.example.org\"", server)
}

#[test]
fn every_launcher_is_drawn() {
    let (local, netns) = ("launch = \"local\"", "launch = \"netns\"\nnetns = \"left\"");
    let command = "launch = \"command\"\ncommand = [\"kubectl\", \"exec\", \"pod-1\", \"--\"]";
    let paired = "launch = \"paired\"\nserve = \"192.0.2.2:5210\"";
    let mixed = "hosts with the launchers of the plan";
    let cases = [
        ((local, netns), ["this machine", "namespace left", "processes on one machine"]),
        ((netns, command), ["namespace left", "by kubectl exec pod-1 --", mixed]),
        ((local, paired), ["this machine", "paired 192.0.2.2:5210", mixed]),
    ];
    for ((client, server), texts) in cases {
        let drawing = drawing_of(&run_of(&launched(client, server)), LABEL);
        assert_texts(&drawing, &texts);
        assert_texts(&drawing, &["client near", "192.0.2.1", "server far", "192.0.2.2", "plain: no changes"]);
        assert!(drawing.contains(&format!("; client near: {}, 192.0.2.1; ", texts[0])), "{drawing}");
        assert!(drawing.contains(&format!("server far: {}, Standard_DS4_v2, ", texts[1])), "{drawing}");
    }
}

#[test]
fn run_on_a_bed_has_the_drawing_of_its_bed_only() {
    assert!(!html::page(&document(&bed::run())).contains(LABEL));
}
