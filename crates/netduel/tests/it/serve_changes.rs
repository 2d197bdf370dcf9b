//! What a paired client, which may be another program, may change on the host of a server: neither an interface of its choice, nor
//! the modules of the kernel.
use netduel_test_support::NewNamespace;
use serde_json::{Value, json};

use crate::serve::{Server, conversation, requests};

/// The answers to a client that prepares a trial and leaves.
fn answers(server: &Server, traffic: &Value) -> String {
    let [hello, prepare] = requests(traffic);
    conversation(server, &[hello, prepare, json!({ "type": "bye" })]).stdout
}

#[test]
fn client_chooses_no_interface_of_a_server_for_xdp() {
    let prepare =
        "ip link set lo up\nip link add va type veth peer name vb\nip link set va up\nip link set vb up";
    let test = "serve_changes::client_chooses_no_interface_of_a_server_for_xdp";
    NewNamespace { prepare, ..NewNamespace::default() }.run(test, || {
        let server = Server::start(&["--ephemeral"]);
        let udp = json!({ "flows": 1, "direction": "up", "size": "18 B", "rate": "1 Mbit/s" });
        for receiver in ["count", "xdp"] {
            for (interface, is_refused) in [("vb", true), ("nonesuch0", true), ("lo", false)] {
                let packets = json!({
                    "engine": "socket", "receiver": receiver, "frame": 64, "server_interface": interface,
                });
                let answer = answers(&server, &json!({ "type": "pps", "udp": udp, "packets": packets }));
                // The interface of its packets is not refused, but may need more rights than this user has.
                let words = format!(
                    "attaches no XDP program to {interface} for this client, whose packets arrive at lo"
                );
                assert_eq!(answer.contains(&words), is_refused, "{receiver} {interface}: {answer}");
            }
        }
        server.end();
    });
}

/// The socket option loads the module of a root server, also where the kernel then refuses the name.
#[test]
fn congestion_control_of_a_server_is_one_that_its_kernel_has() {
    let server = Server::start(&["--ephemeral"]);
    let traffic = |congestion: &str| {
        json!({
            "type": "tcp-stream", "streams": 1, "direction": "up", "block": "64 KiB", "engine": "lean",
            "congestion": congestion,
        })
    };
    let refused = answers(&server, &traffic("nonesuch"));
    // Another program may load a module meanwhile, so the list is not compared.
    let words =
        "loads no kernel module for its clients, and its host offers no congestion control `nonesuch`, only ";
    assert!(refused.contains(words), "{refused}");
    let served = answers(&server, &traffic("reno"));
    assert!(served.contains("\"prepared\""), "{served}");
    server.end();
}
