//! Changes of the provider's resources: verified in the guest, made again with the machine stopped, and always restored.
use netduel_control::coordinator::{GuestCheck, RunErrorKind};
use netduel_model::event::Event;
use netduel_model::ids::HostName;
use netduel_model::plan::{ResolvedPlan, parse};
use netduel_model::run::RunEnd;
use netduel_model::trial::Validity;

use crate::surroundings::{Script, run};

/// What the errors of Azure are.
const PAGE: &str = include_str!("../../../../docs/azure-errors.md");

/// The page has the end of an error, from these words on.
#[track_caller]
fn assert_on_page(error: &str, start: &str) {
    let end = error.find(start).and_then(|at| error.get(at..)).unwrap_or(error);
    assert!(PAGE.contains(end), "docs/azure-errors.md lacks this text: {end}");
}

/// Two arms with and without accelerated networking at the client, each with two workloads.
fn plan() -> ResolvedPlan {
    let host = |name: &str, last: u8| {
        format!(
            "[hosts.{name}]\nlaunch = \"command\"\ncommand = [\"script\"]\naddresses = [\"10.0.0.{last}\"]\n"
        )
    };
    let arm = |name: &str, on: bool| {
        format!(
            "[[arms]]\nname = \"{name}\"\nclient = \"a\"\nserver = \"b\"\n\
             treatments = [{{ azure-nic = \"n\", resource-group = \"g\", accelerated = {on}, on = \"client\" }}]\n"
        )
    };
    let workload =
        |name: &str| format!("[[workloads]]\nname = \"{name}\"\ntype = \"tcp-rr\"\nduration = \"200 ms\"\n");
    let text = format!(
        "name = \"p\"\nquestion = \"?\"\n{}{}{}{}{}{}[design]\nseed = 5\nblocks_min = 2\nblocks_max = 2\n",
        host("a", 1),
        host("b", 2),
        arm("off", false),
        arm("on", true),
        workload("one"),
        workload("two"),
    );
    parse(&text, "p").unwrap()
}

/// A NIC of the scripted agent, by the last digit of its MAC address: that with 2 has a virtual function.
fn check(last: u8, has_vf: bool) -> GuestCheck {
    GuestCheck { nic: "n".to_owned(), mac: format!("00:0d:3a:00:00:0{last}"), has_vf }
}

fn script() -> Script {
    // A guest that never shows a change is given up.
    Script { waits: true, ..Script::default() }
}

#[test]
fn resource_is_switched_once_for_the_trials_of_an_arm_and_restored_at_the_end() {
    let mut script = script();
    script.required[0] = vec![check(2, true)];
    assert_eq!(run(&plan(), &mut script).unwrap(), RunEnd::BlockLimitReached);
    // Two blocks with the trials of each arm together: at most a switch for each arm and block.
    let switches = script.provided.iter().filter(|one| one.starts_with("live: ")).count();
    assert!((2..=4).contains(&switches), "{:?}", script.provided);
    assert_eq!(script.provided.iter().filter(|one| *one == "restore").count(), 1);
    assert_eq!(script.provided.last().map(String::as_str), Some("restore"));
    assert_eq!(script.stored.len(), 8);
    for block in script.stored.chunks(4) {
        assert_eq!(block[0].slot.arm, block[1].slot.arm);
        assert_eq!(block[2].slot.arm, block[3].slot.arm);
    }
    assert!(script.events.iter().any(|event| matches!(event, Event::ResourcesChanging { .. })));
}

#[test]
fn change_that_the_guest_does_not_show_is_made_with_the_machine_stopped_when_permitted() {
    let mut script = script();
    script.required = [vec![check(1, true)], vec![check(2, true)]];
    script.may_stop = true;
    assert_eq!(run(&plan(), &mut script).unwrap(), RunEnd::BlockLimitReached);
    let calls: Vec<&str> = script.provided.iter().map(String::as_str).collect();
    // The first change is tried while the machine runs; after that the host is known to need the stop.
    assert!(calls[0].starts_with("live: ") && calls[1].starts_with("stopped: "), "{calls:?}");
    assert_eq!(calls.iter().filter(|one| one.starts_with("live: ")).count(), 1, "{calls:?}");
    // The agent is started again after each stop.
    let stops = calls.iter().filter(|one| one.starts_with("stopped: ")).count();
    let ready = |event: &&Event| matches!(event, Event::HostReady { host } if host.as_str() == "a");
    assert_eq!(script.events.iter().filter(ready).count(), 1 + stops);
}

#[test]
fn machine_is_not_stopped_without_permission() {
    for refuses_live in [false, true] {
        let mut script = script();
        script.required[0] = vec![check(1, true)];
        script.refuses[0] = refuses_live;
        let error = run(&plan(), &mut script).unwrap_err();
        assert_eq!(error.kind(), RunErrorKind::Provider);
        let text = error.to_string();
        assert!(text.contains("--allow-deallocate"), "{text}");
        let why = if refuses_live { "not while it runs" } else { "the guest shows no virtual function" };
        assert!(text.contains(why), "{text}");
        if !refuses_live {
            assert_on_page(&text, "accelerated networking of n is on");
        }
        assert!(script.provided.iter().all(|one| !one.starts_with("stopped: ")), "{:?}", script.provided);
        assert_eq!(script.provided.last().map(String::as_str), Some("restore"));
    }
}

#[test]
fn change_that_is_refused_with_the_machine_stopped_names_the_stop() {
    let mut script = script();
    script.refuses = [true, true];
    script.may_stop = true;
    let error = run(&plan(), &mut script).unwrap_err();
    assert_eq!(error.kind(), RunErrorKind::Provider);
    let text = error.to_string();
    assert!(
        text.ends_with("although its machine was stopped for the change: not when it is stopped"),
        "{text}"
    );
    assert_eq!(script.provided.last().map(String::as_str), Some("restore"));
}

#[test]
fn guest_without_the_nic_is_named() {
    let mut script = script();
    script.required = [vec![check(7, false)], vec![check(7, false)]];
    script.may_stop = true;
    let text = run(&plan(), &mut script).unwrap_err().to_string();
    assert!(text.contains("no interface with the MAC address 00:0d:3a:00:00:07 of n"), "{text}");
    assert!(text.contains("although its machine was stopped"), "{text}");
    assert_on_page(&text, "although its machine was stopped");
}

#[test]
fn trial_whose_guest_shows_another_state_afterwards_does_not_count() {
    let (a, elsewhere) = (HostName::new("a").unwrap(), HostName::new("c").unwrap());
    for (last, is_kept) in [(2, true), (1, false)] {
        let mut script = script();
        script.required[0] = vec![check(2, true)];
        // A host that is not one of the arm is not asked.
        script.present = vec![(a.clone(), check(last, true)), (elsewhere.clone(), check(1, true))];
        // Without a valid trial the run may end before its last block.
        drop(run(&plan(), &mut script));
        assert!(script.stored.len() >= 4, "{:?}", script.stored);
        let lost = "host a: the treatment was not in force until the end of the trial: accelerated networking of n is on, \
                    and the guest shows no virtual function of it";
        for trial in &script.stored {
            let expected =
                if is_kept { Validity::Valid } else { Validity::Failed { reason: lost.to_owned() } };
            assert_eq!(trial.validity, expected);
        }
    }
}

#[test]
fn resource_that_could_not_be_restored_ends_the_run_with_an_error() {
    let mut script = script();
    script.required[0] = vec![check(2, true)];
    script.unrestored = vec![(HostName::new("a").unwrap(), "failed to undo it".to_owned())];
    let error = run(&plan(), &mut script).unwrap_err().to_string();
    assert!(error.contains("failed to undo it"), "{error}");
}
