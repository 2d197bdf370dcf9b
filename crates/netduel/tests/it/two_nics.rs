//! Arms that use different addresses of one server: two NICs of the same two hosts.
use std::path::Path;

use crate::support::Bench;
use crate::truth::bed::{Namespace, skipped_without_root, stored, wire};

#[test]
fn each_arm_uses_its_own_address_of_the_server() {
    if skipped_without_root() {
        return;
    }
    let bench = Bench::new();
    let (client, server) = (Namespace::new(), Namespace::new());
    for (network, left, right) in [("10.77.0", "va", "vb"), ("10.78.0", "wa", "wb")] {
        wire(&client, left, &server, right);
        client.must(&format!("ip addr add {network}.1/24 dev {left}"));
        server.must(&format!("ip addr add {network}.2/24 dev {right}"));
    }
    let folder = Path::new(env!("CARGO_BIN_EXE_netduel")).parent().unwrap().display();
    let host = |name: &str, side: &Namespace| {
        format!(
            "[hosts.{name}]\nlaunch = \"command\"\n\
             command = [\"nsenter\", \"--net={}\", \"--\", \"env\", \"PATH={folder}:/usr/sbin:/usr/bin:/sbin:/bin\"]\n",
            side.path()
        )
    };
    let arm = |name: &str, address: &str, ends: [&str; 2]| {
        format!(
            "[[arms]]\nname = \"{name}\"\nclient = \"a\"\nserver = \"b\"\nserver_addresses = [\"{address}\"]\n\
             expect_interface = {{ client = \"{}\", server = \"{}\" }}\n",
            ends[0], ends[1]
        )
    };
    let plan = bench.plan(&format!(
        "name = \"two-nics\"\nquestion = \"Which NIC?\"\n{}{}{}{}\
         [[workloads]]\nname = \"bulk\"\ntype = \"udp-stream\"\nrate = \"10 Mbit/s\"\nduration = \"2 s\"\n\
         [design]\nblocks_min = 2\nblocks_max = 2\n",
        host("a", &client),
        host("b", &server),
        arm("one", "10.77.0.2", ["va", "vb"]),
        arm("two", "10.78.0.2", ["wa", "wb"]),
    ));
    let path = plan.to_str().unwrap();
    let check = bench.run(["plan", "check", path]).expect_code(0).stdout;
    for address in ["10.77.0.2", "10.78.0.2"] {
        assert!(check.contains(address), "{address} is not in {check}");
    }

    let run = bench.run(["run", path, "--json"]);
    // Valid trials, all of them: one whose bytes took the other NIC would not be.
    let trials = stored(&bench, &run).trials;
    assert_eq!(trials.len(), 4, "{}", run.stderr);
    for trial in &trials {
        let client = trial.client.as_ref().unwrap();
        let local = client.report.streams[0].local.unwrap().ip().to_string();
        let expected = if trial.slot.arm.as_str() == "one" { "10.77.0.1" } else { "10.78.0.1" };
        assert_eq!(local, expected, "{:?}", trial.slot);
    }
    bench.assert_nothing_left();
}
