//! The probe of data ports, with agents that follow a script.
use netduel_control::coordinator::RunErrorKind;
use netduel_model::event::Event;
use netduel_model::warning::Warning;

use crate::coordinator::{FOUR_TRIALS, lines, logged};
use crate::surroundings::{Script, plan, run};

/// How often a NAT was a warning.
fn warnings_of_nat(script: &Script) -> usize {
    let is_of_nat =
        |event: &&Event| matches!(event, Event::Warned { warning: Warning::AddressTranslated { .. } });
    script.events.iter().filter(is_of_nat).count()
}

#[test]
fn blocked_port_ends_the_run_before_its_first_trial_with_its_direction() {
    let (there, back): (&[&str], &[&str]) = (&[], &["arrived"]);
    for (words, direction) in [
        (there, "dropped, no answer within 5 s; b did not receive the SYN segments of a"),
        (back, "the answer is dropped: b received packets of a from 192.0.2.1"),
    ] {
        let mut script = Script::default().host("a", &["dropped"]).host("b", words);
        let log = logged(&mut script);
        let error = run(&plan(FOUR_TRIALS), &mut script).unwrap_err();
        assert_eq!(error.kind(), RunErrorKind::Host);
        let text = error.to_string();
        assert!(text.contains("host a does not reach host b at 10.0.0.2, TCP port 1: "), "{text}");
        assert!(text.contains(direction) && text.contains("set `data_ports = \"5210\"` for b"), "{text}");
        assert!(script.stored.is_empty(), "{} trials", script.stored.len());
        assert_eq!(lines(&log).iter().filter(|line| *line == "close").count(), 1, "the ports are closed");
    }
}

#[test]
fn nat_is_one_warning_and_the_run_goes_on() {
    let mut script = Script::default().host("b", &["arrived"]);
    run(&plan(FOUR_TRIALS), &mut script).unwrap();
    assert_eq!((script.stored.len(), warnings_of_nat(&script)), (4, 1));
}

#[test]
fn agent_lost_in_the_probe_is_restarted_and_the_probe_is_repeated() {
    let marker = tempfile::NamedTempFile::new().unwrap();
    let once = format!("once={}", marker.path().display());
    let mut script = Script::default().host("a", &["die-probe", &once]).host("b", &["arrived"]);
    let log = logged(&mut script);
    run(&plan(FOUR_TRIALS), &mut script).unwrap();
    assert_eq!((script.stored.len(), warnings_of_nat(&script)), (4, 1));
    let log = lines(&log);
    let count = |word: &str| log.iter().filter(|line| *line == word).count();
    assert_eq!((count("open"), count("probe"), count("close")), (2, 2, 2));
}

#[test]
fn server_without_the_address_of_the_plan_ends_the_run_with_its_addresses() {
    let mut script = Script::default().host("b", &["not-bound"]);
    let error = run(&plan(FOUR_TRIALS), &mut script).unwrap_err();
    assert_eq!(error.kind(), RunErrorKind::Host);
    let text = error.to_string();
    assert!(text.contains("host b does not have the address 10.0.0.2 of the plan"), "{text}");
    assert!(text.contains("the host has 172.16.0.7") && text.contains("the script does not bind"), "{text}");
    assert!(script.stored.is_empty());
}
