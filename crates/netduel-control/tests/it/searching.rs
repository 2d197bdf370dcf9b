//! A trial that is a search: its steps over real child processes that follow a script. The script's path carries 1000 packets a second.
use netduel_model::event::Event;
use netduel_model::run::RunEnd;
use netduel_model::search::SearchEnd;
use netduel_model::trial::{Trial, Validity};

use crate::surroundings::{Script, run, searching};

const ONE_BLOCK: &str = "blocks_min = 2\nblocks_max = 2";

#[test]
fn steps_of_a_search_share_one_application_of_the_treatments() {
    let mut script = Script::default();
    let log = tempfile::NamedTempFile::new().unwrap();
    script.environment.push(("SCRIPT_LOG".to_owned(), log.path().display().to_string()));
    assert_eq!(run(&searching(ONE_BLOCK), &mut script).unwrap(), RunEnd::BlockLimitReached);
    assert_eq!(script.stored.len(), 4);
    assert!(!script.stored.is_empty());
    for trial in &script.stored {
        assert_eq!(trial.validity, Validity::Valid);
        let search = trial.search.as_ref().unwrap();
        let counts: Vec<_> = search
            .steps
            .iter()
            .map(|step| (step.input.load, step.output.sent, step.output.received, step.high_loss))
            .collect();
        // 200 ms each, the unpaced one at the script's 3000 a second.
        let expected = [
            (None, 600, 200, true),
            (Some(995), 199, 199, false),
            (Some(1004), 200, 200, false),
            (Some(1014), 202, 200, true),
        ];
        assert_eq!(counts, expected);
        assert_eq!((search.end, search.stored_step), (SearchEnd::Complete, Some(2)));
        // The ends are those of the step at the lower bound, and its path is proven.
        assert_eq!(sent(trial), Some(200));
        assert_eq!(trial.proofs.len(), 2);
    }
    let log = std::fs::read_to_string(log.path()).unwrap();
    let count = |word: &str| log.lines().filter(|line| *line == word).count();
    // Two hosts, four trials of four steps. Each agent undoes once more at its end.
    assert_eq!((count("apply"), count("undo"), count("start")), (8, 10, 32));
    assert_eq!(script.tokens.len(), 17, "the probe and each step have a secret of their own");
    let with_rate: Vec<bool> = script
        .events
        .iter()
        .filter_map(|event| match event {
            Event::SearchTries { .. } => Some(false),
            Event::SearchTried { .. } => Some(true),
            _ => None,
        })
        .collect();
    assert_eq!(with_rate, [false, true].repeat(16));
}

fn sent(trial: &Trial) -> Option<u64> {
    Some(trial.client.as_ref()?.report.sent.as_ref()?.messages)
}

#[test]
fn generator_that_sends_after_the_end_has_offered_a_lower_rate() {
    let mut script = Script::default().host("a", &["behind"]);
    assert_eq!(run(&searching(ONE_BLOCK), &mut script).unwrap(), RunEnd::BlockLimitReached);
    assert!(!script.stored.is_empty());
    for trial in &script.stored {
        for step in &trial.search.as_ref().unwrap().steps {
            assert_eq!(step.output.elapsed_ns, 250_000_000, "200 ms and a quarter: {step:?}");
        }
    }
}

#[test]
fn failed_step_fails_the_trial_and_keeps_earlier_results() {
    let mut script = Script::default().host("a", &["refuse-a-rate"]);
    let end = run(&searching(ONE_BLOCK), &mut script);
    assert!(end.is_ok(), "a trial that fails is a result: {end:?}");
    assert!(!script.stored.is_empty());
    for trial in &script.stored {
        let Validity::Failed { reason } = &trial.validity else { panic!("{:?}", trial.validity) };
        assert!(reason.contains("refuses to keep a rate"), "{reason}");
        let search = trial.search.as_ref().unwrap();
        assert_eq!((search.steps.len(), search.end), (1, SearchEnd::Failed));
        assert!(trial.client.is_none());
    }
}

#[test]
fn step_on_the_wrong_path_ends_the_search_and_invalidates_the_trial() {
    let mut script = Script::default().host("b", &["wrong-path"]);
    run(&searching(ONE_BLOCK), &mut script).unwrap();
    assert!(!script.stored.is_empty());
    for trial in &script.stored {
        assert!(matches!(trial.validity, Validity::WrongPath { .. }), "{:?}", trial.validity);
        let search = trial.search.as_ref().unwrap();
        assert_eq!((search.steps.len(), search.end, search.stored_step), (1, SearchEnd::Failed, Some(0)));
        assert_eq!(sent(trial), Some(600));
    }
}

#[test]
fn interrupted_search_stops_between_steps_and_stores_nothing() {
    let mut script = Script { interrupt_after_steps: Some(2), ..Script::default() };
    let log = tempfile::NamedTempFile::new().unwrap();
    script.environment.push(("SCRIPT_LOG".to_owned(), log.path().display().to_string()));
    assert_eq!(run(&searching(ONE_BLOCK), &mut script).unwrap(), RunEnd::Interrupted);
    assert!(script.stored.is_empty());
    let log = std::fs::read_to_string(log.path()).unwrap();
    assert_eq!(log.lines().filter(|line| *line == "start").count(), 4, "two steps at two hosts");
    assert!(log.lines().filter(|line| *line == "undo").count() >= 2, "{log}");
}
