//! Treatments that another program sets back while they are in force.
use netduel_agent::treatment::Treatments;
use netduel_sys::ethtool::Ethtool;

use super::{all, arm, guard, in_namespace, must, plan_of_two_arms, plan_on_loopback};
use crate::path_proof::{LONG, has_sent_a_megabyte};
use crate::support::{Bench, UnderWay, until};

#[test]
fn each_setting_that_is_set_back_is_named_with_its_value() {
    in_namespace("keeping::each_setting_that_is_set_back_is_named_with_its_value", || {
        let mut treatments = Treatments::new(guard());
        treatments.apply(&all()).unwrap();
        treatments.read_back(true).unwrap();
        must("ip", &["link", "set", "va", "mtu", "1300"]);
        std::fs::write("/proc/sys/net/ipv4/tcp_slow_start_after_idle", "1").unwrap();
        let mut drivers = Ethtool::open().unwrap();
        drivers.request_features("va", &[("rx-gro".to_owned(), false)]).unwrap();
        let lost = treatments.read_back(true).unwrap_err();
        let texts: Vec<String> = lost.iter().map(ToString::to_string).collect();
        let expected = [
            ("turn on gro of va", "rx-gro off"),
            ("set the MTU of va to 1400 bytes", "1300 bytes"),
            ("set sysctl `net.ipv4.tcp_slow_start_after_idle` to `0`", "`1`"),
        ];
        assert_eq!(texts.len(), expected.len(), "{texts:?}");
        for (text, (wanted, found)) in texts.iter().zip(expected) {
            let words = format!("{wanted} for a whole trial: after the traffic the host has {found};");
            assert!(text.starts_with(&words), "{text}");
        }
        // As after events on the path: they change interfaces, and nothing else.
        let lost = treatments.read_back(false).unwrap_err();
        assert!(lost.len() == 1 && lost[0].to_string().contains("tcp_slow_start_after_idle"), "{lost:?}");
        treatments.undo_all().unwrap();
        treatments.read_back(true).unwrap();
    });
}

#[test]
fn trial_whose_treatment_is_set_back_does_not_count() {
    in_namespace("keeping::trial_whose_treatment_is_set_back_does_not_count", || {
        must("ip", &["link", "set", "lo", "up"]);
        let bench = Bench::new();
        // The command is the other program.
        let plan = plan_of_two_arms(
            &bench,
            r#"{ mtu = 1400, interface = "va", on = "client" },
               { command = ["ip", "link", "set", "va", "mtu", "1500"], undo = ["true"], on = "client" }"#,
        );
        let run = bench.run(["run", plan.to_str().unwrap()]).expect_code(6);
        let reason =
            "set the MTU of va to 1400 bytes for a whole trial: after the traffic the host has 1500 bytes";
        assert!(run.stderr.contains(reason), "{}", run.stderr);
        let report = bench.run(["report", "last"]).expect_code(0).stdout;
        let words = report.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains(reason), "the report has no reason: {report}");
    });
}

#[test]
fn offload_that_is_toggled_during_a_trial_makes_it_invalid() {
    in_namespace("keeping::offload_that_is_toggled_during_a_trial_makes_it_invalid", || {
        must("ip", &["link", "set", "lo", "up"]);
        let bench = Bench::new();
        let design = "[design]\naa = true\nblocks_min = 2\nblocks_max = 2\n";
        let plan = plan_on_loopback(&bench, &format!("{}{LONG}{design}", arm("plain", "")));
        let under_way = UnderWay::start(bench.netduel(["run", plan.to_str().unwrap()]));
        let carries = || has_sent_a_megabyte(&std::fs::read_to_string("/proc/net/dev").unwrap(), "lo");
        assert!(until(carries), "no traffic was seen on the loopback interface");
        // Readings before and after the trial find the old value.
        let mut drivers = Ethtool::open().unwrap();
        for enabled in [false, true] {
            drivers.request_features("lo", &[("tx-tcp-segmentation".to_owned(), enabled)]).unwrap();
        }
        let run = under_way.finish();
        for words in [
            "at the client the path changed during the trial",
            "tx-tcp-segmentation",
            " of lo went off",
            " of lo went on",
        ] {
            assert!(run.stderr.contains(words), "{words}: {}", run.stderr);
        }
        let document = bench.run(["report", "last", "--json"]).json();
        assert_eq!((&document["trials_excluded"], &document["trials_valid"]), (&1.into(), &3.into()));
    });
}

#[test]
fn run_is_not_resumed_after_another_program_changed_a_host() {
    in_namespace("keeping::run_is_not_resumed_after_another_program_changed_a_host", || {
        must("ip", &["link", "set", "lo", "up"]);
        let bench = Bench::new();
        let plan = plan_of_two_arms(&bench, r#"{ mtu = 1400, interface = "va", on = "client" }"#);
        bench.run(["run", plan.to_str().unwrap()]).expect_code(0);
        // The address of the plan is that of `lo`, and the plan does not use `vb`.
        must("ip", &["link", "set", "vb", "mtu", "1300"]);
        bench.run(["run", "--resume", "last"]).expect_code(0);
        let listed = bench.run(["runs", "--json"]).expect_code(0).json();
        let file = listed["runs"][0]["path"].as_str().unwrap();
        let stored = std::fs::read(file).unwrap();
        must("ip", &["link", "set", "lo", "mtu", "60000"]);
        let resumed = bench.run(["run", "--resume", "last"]).expect_code(4);
        assert!(resumed.stderr.contains("MTU of lo is 60000 instead of 65536"), "{}", resumed.stderr);
        // The run is complete as before, and needs no other resume.
        assert!(resumed.stderr.contains(", which is unchanged: host "), "{}", resumed.stderr);
        assert_eq!(std::fs::read(file).unwrap(), stored, "a refused resume changed the run");
        let listed = bench.run(["runs", "--json"]).expect_code(0).json();
        assert_eq!(listed["runs"][0]["state"], "done", "{listed}");
        bench.run(["report", "last", "--fail-if", "latency-p50 > 90 %"]).expect_code(0);
        must("ip", &["link", "set", "lo", "mtu", "65536"]);
        bench.run(["run", "--resume", "last"]).expect_code(0);
    });
}
