//! The protocol as two state machines without IO: inputs are bytes and the time, outputs are lines, messages and the next deadline.
mod agent;
mod coordinator;
mod error;
mod name;

pub use agent::{AgentPeer, RUNNING_MARGIN_NS};
pub use coordinator::{AgentEvent, CoordinatorPeer};
pub use error::{BANNER_LINES_MAX, PeerError};

#[cfg(test)]
mod tests {
    use netduel_model::plan::TreatmentAction;
    use netduel_model::sample::LiveFigures;
    use netduel_model::units::Nanos;

    use super::*;
    use crate::protocol::{Bounds, FailureKind, FromAgent, Limits, PROTOCOL, ToAgent, encode};

    const SECOND: u64 = 1_000_000_000;
    const LIMITS: Limits =
        Limits { total: Nanos(1000 * SECOND), idle: Nanos(100 * SECOND), progress: Limits::PROGRESS };

    fn greeted() -> CoordinatorPeer {
        let (mut peer, _) = CoordinatorPeer::open("test", LIMITS, 0, SECOND);
        let hello = encode(&FromAgent::Hello { protocol: PROTOCOL, program: "test".into() });
        assert!(matches!(
            peer.input(hello.as_bytes(), 0).unwrap()[..],
            [AgentEvent::Answer(FromAgent::Hello { .. })]
        ));
        peer
    }

    #[test]
    fn another_version_is_named_with_what_to_do() {
        let (mut peer, _) = CoordinatorPeer::open("test", LIMITS, 0, SECOND);
        let hello = encode(&FromAgent::Hello { protocol: PROTOCOL + 1, program: "netduel 9.9".into() });
        let error = peer.input(hello.as_bytes(), 0).unwrap_err().to_string();
        assert!(error.contains("netduel 9.9") && error.contains("install the same version"), "{error}");
        let mut agent = AgentPeer::new("test", 0);
        agent.push(
            encode(&ToAgent::Hello { protocol: PROTOCOL + 1, program: "netduel 9.9".into(), limits: LIMITS })
                .as_bytes(),
            0,
        );
        assert!(matches!(agent.next_request(), Err(PeerError::Version { .. })));
    }

    #[test]
    fn login_banner_is_ignored_and_endless_text_is_an_error() {
        let (mut peer, _) = CoordinatorPeer::open("test", LIMITS, 0, SECOND);
        assert_eq!(peer.input(b"Welcome!\nLast login: yesterday\n", 0), Ok(vec![]));
        let hello = encode(&FromAgent::Hello { protocol: PROTOCOL, program: "test".into() });
        assert_eq!(peer.input(hello.as_bytes(), 0).map(|events| events.len()), Ok(1));
        assert!(matches!(peer.input(b"Mail for you\n", 0), Err(PeerError::Garbage(_))));

        let (mut peer, _) = CoordinatorPeer::open("test", LIMITS, 0, SECOND);
        let endless = "y\n".repeat(BANNER_LINES_MAX + 1);
        assert!(matches!(peer.input(endless.as_bytes(), 0), Err(PeerError::Banner { last }) if last == "y"));
    }

    #[test]
    fn silence_is_an_error_that_names_the_awaited_message() {
        let mut peer = greeted();
        peer.request(&ToAgent::Describe { without_metadata: false }, 5 * SECOND, 2 * SECOND);
        assert_eq!(peer.deadline_ns(), Some(7 * SECOND));
        assert_eq!(peer.tick(7 * SECOND - 1), Ok(()));
        let error = peer.tick(7 * SECOND).unwrap_err().to_string();
        assert!(error.contains("the description of the host") && error.contains("2000 ms"), "{error}");
    }

    #[test]
    fn answer_without_a_request_is_an_error() {
        let mut peer = greeted();
        let started = encode(&FromAgent::Started);
        let error = peer.input(started.as_bytes(), 0).unwrap_err();
        assert_eq!(error, PeerError::Unexpected { got: "started".into(), awaited: "nothing" });
    }

    #[test]
    fn early_result_is_accepted_and_clears_the_deadline() {
        let mut peer = greeted();
        peer.request(&ToAgent::Start, 0, SECOND);
        assert_eq!(peer.input(encode(&FromAgent::Started).as_bytes(), 0).map(|events| events.len()), Ok(1));
        let failed = FromAgent::Failed { kind: FailureKind::Traffic, message: "no".into() };
        assert_eq!(peer.input(encode(&failed).as_bytes(), 0).map(|events| events.len()), Ok(1));
        peer.request(&ToAgent::Finish, 0, SECOND);
        assert_eq!(peer.deadline_ns(), None);
    }

    #[test]
    fn stale_answers_after_an_abort_are_ignored() {
        let mut peer = greeted();
        peer.request(&ToAgent::Start, 0, SECOND);
        peer.request(&ToAgent::Abort, 0, SECOND);
        let late = encode(&FromAgent::Started)
            + &encode(&FromAgent::Progress { trial: 1, figures: LiveFigures::default() });
        assert_eq!(peer.input(late.as_bytes(), 0), Ok(vec![]));
        let aborted = encode(&FromAgent::Aborted);
        assert_eq!(peer.input(aborted.as_bytes(), 0), Ok(vec![AgentEvent::Answer(FromAgent::Aborted)]));
        assert_eq!(peer.deadline_ns(), None);
    }

    #[test]
    fn request_out_of_order_is_an_error() {
        let mut agent = AgentPeer::new("test", 0);
        agent.push(encode(&ToAgent::Describe { without_metadata: false }).as_bytes(), 0);
        let unexpected = PeerError::Unexpected { got: "describe".into(), awaited: "the first message" };
        assert_eq!(agent.next_request(), Err(unexpected));

        let mut agent = AgentPeer::new("test", 0);
        agent.push(
            encode(&ToAgent::Hello { protocol: PROTOCOL, program: String::new(), limits: LIMITS }).as_bytes(),
            0,
        );
        agent.push(encode(&ToAgent::Start).as_bytes(), 0);
        assert!(matches!(agent.next_request(), Ok(Some(ToAgent::Hello { .. }))));
        agent.answer(&agent.greeting(), 0);
        let unexpected = PeerError::Unexpected { got: "start".into(), awaited: "the next trial" };
        assert_eq!(agent.next_request(), Err(unexpected));
    }
    #[test]
    fn from_started_on_the_result_is_awaited_without_a_gap() {
        let mut peer = greeted();
        peer.start(5 * SECOND, SECOND, 7 * SECOND);
        assert_eq!(peer.deadline_ns(), Some(6 * SECOND));
        peer.input(encode(&FromAgent::Started).as_bytes(), 5 * SECOND + 1).unwrap();
        assert_eq!(peer.deadline_ns(), Some(12 * SECOND + 1));
        let error = peer.tick(12 * SECOND + 1).unwrap_err().to_string();
        assert!(error.contains("waited 7000 ms for the result of the trial"), "{error}");
    }

    #[test]
    fn error_names_what_was_awaited_whether_it_is_one_thing_or_several() {
        let mut peer = greeted();
        peer.request(&ToAgent::Apply { treatments: Vec::new() }, 0, SECOND);
        let error = peer.input(encode(&FromAgent::Started).as_bytes(), 1).unwrap_err();
        assert_eq!(error.to_string(), "it sent `started`; expected: the treatments");
        let silent = PeerError::Silent { awaited: "the open ports", waited_ms: 5 };
        assert_eq!(silent.to_string(), "it did not answer in time: waited 5 ms for the open ports");
    }

    #[test]
    fn treatment_that_hangs_is_named_when_it_is_applied_and_undone() {
        let words = |text: &[&str]| text.iter().map(|word| (*word).to_owned()).collect();
        let command = TreatmentAction::Command { command: words(&["sleep", "1000"]), undo: words(&["true"]) };
        let mtu = TreatmentAction::Mtu { interface: "va".to_owned(), mtu: 1400 };
        let mut peer = greeted();
        peer.request(&ToAgent::Apply { treatments: vec![command, mtu] }, 0, 90 * SECOND);
        let error = peer.tick(90 * SECOND).unwrap_err().to_string();
        assert!(error.contains("applying `sleep 1000`, MTU 1400 B on va took longer than 90 s"), "{error}");
        assert!(error.contains("look for what hangs on that host"), "{error}");
        peer.input(encode(&FromAgent::Applied).as_bytes(), 90 * SECOND).unwrap();
        peer.request(&ToAgent::Undo, 100 * SECOND, 90 * SECOND);
        let error = peer.tick(190 * SECOND).unwrap_err().to_string();
        assert!(error.contains("undoing `sleep 1000`, MTU 1400 B on va took longer than 90 s"), "{error}");
    }

    #[test]
    fn abort_is_answered_after_the_abandoned_request() {
        let mut peer = greeted();
        peer.request(&ToAgent::Undo, 0, 5 * SECOND);
        peer.request(&ToAgent::Abort, SECOND, 2 * SECOND);
        assert_eq!(peer.deadline_ns(), Some(7 * SECOND));
        let mut peer = greeted();
        peer.start(0, SECOND, 1000 * SECOND);
        peer.input(encode(&FromAgent::Started).as_bytes(), 0).unwrap();
        peer.request(&ToAgent::Abort, SECOND, 2 * SECOND);
        assert_eq!(peer.deadline_ns(), Some(3 * SECOND), "traffic is stopped at once");
    }

    #[test]
    fn time_in_which_the_coordinator_did_not_listen_does_not_count_as_silence() {
        let mut peer = greeted();
        peer.start(5 * SECOND, SECOND, 7 * SECOND);
        // Only the end of this absence was after the request.
        peer.postpone(2 * SECOND, 25 * SECOND);
        assert_eq!((peer.deadline_ns(), peer.tick(25 * SECOND)), (Some(26 * SECOND), Ok(())));
        peer.input(encode(&FromAgent::Started).as_bytes(), 25 * SECOND).unwrap();
        peer.postpone(26 * SECOND, 86 * SECOND);
        assert_eq!((peer.deadline_ns(), peer.tick(86 * SECOND)), (Some(92 * SECOND), Ok(())));
        // A coordinator that never listens again still abandons the agent.
        peer.postpone(86 * SECOND, 1000 * SECOND);
        assert_eq!(peer.deadline_ns(), Some((92 + 60) * SECOND));
    }

    #[test]
    fn figures_of_another_trial_are_an_error() {
        let mut peer = greeted();
        peer.start(0, SECOND, SECOND);
        let late = FromAgent::Progress { trial: 9, figures: LiveFigures::default() };
        let bytes = encode(&FromAgent::Started) + &encode(&late);
        let unexpected = PeerError::Unexpected { got: "progress".into(), awaited: "the result of the trial" };
        assert_eq!(peer.input(bytes.as_bytes(), 0), Err(unexpected));
    }

    #[test]
    fn message_before_hello_and_second_hello_are_errors() {
        for early in
            [FromAgent::Locked, FromAgent::Failed { kind: FailureKind::Usage, message: String::new() }]
        {
            let (mut peer, _) = CoordinatorPeer::open("test", LIMITS, 0, SECOND);
            let events = peer.input(encode(&early).as_bytes(), 0);
            assert!(
                matches!(events, Err(PeerError::Unexpected { awaited: "the first message", .. })),
                "{events:?}"
            );
        }
        let hello = encode(&FromAgent::Hello { protocol: PROTOCOL, program: "test".into() });
        let again = greeted().input(hello.as_bytes(), 0);
        assert_eq!(again, Err(PeerError::Unexpected { got: "hello".into(), awaited: "nothing" }));
    }

    #[test]
    fn silent_agent_is_abandoned_while_traffic_runs() {
        let mut peer = greeted();
        peer.start(0, SECOND, 1000 * SECOND);
        peer.input(encode(&FromAgent::Started).as_bytes(), 0).unwrap();
        assert_eq!(peer.deadline_ns(), Some(10 * SECOND));
        let progress = FromAgent::Progress { trial: 0, figures: LiveFigures::default() };
        peer.input(encode(&progress).as_bytes(), 9 * SECOND).unwrap();
        assert_eq!((peer.deadline_ns(), peer.tick(19 * SECOND - 1)), (Some(19 * SECOND), Ok(())));
        assert_eq!(peer.tick(19 * SECOND), Err(PeerError::Quiet { seconds: 10 }));
    }

    #[test]
    fn output_before_the_first_message_is_kept_for_the_error() {
        let (mut peer, _) = CoordinatorPeer::open("test", LIMITS, 0, SECOND);
        peer.input(b"This account is not available\n", 0).unwrap();
        assert_eq!(peer.unanswered_banner(), ["This account is not available"]);
        let hello = encode(&FromAgent::Hello { protocol: PROTOCOL, program: "test".into() });
        peer.input(hello.as_bytes(), 0).unwrap();
        assert!(peer.unanswered_banner().is_empty());
    }

    fn greeted_agent() -> AgentPeer {
        let mut agent = AgentPeer::new("test", 0);
        let hello = ToAgent::Hello { protocol: PROTOCOL, program: String::new(), limits: LIMITS };
        agent.push(encode(&hello).as_bytes(), SECOND);
        agent.next_request().unwrap();
        agent.answer(&agent.greeting(), SECOND);
        agent
    }

    #[test]
    fn agent_abandons_a_silent_coordinator_and_one_beyond_the_time_limit() {
        let mut agent = greeted_agent();
        assert_eq!(agent.deadline_ns(), 101 * SECOND);
        assert_eq!(agent.tick(101 * SECOND - 1), Ok(false));
        assert_eq!(
            agent.tick(101 * SECOND),
            Err(PeerError::Silent { awaited: "the next request", waited_ms: 100_000 })
        );
        agent.push(encode(&ToAgent::Describe { without_metadata: false }).as_bytes(), 950 * SECOND);
        assert_eq!(agent.deadline_ns(), 1000 * SECOND);
        let error = agent.tick(1000 * SECOND).unwrap_err();
        assert_eq!(error, PeerError::Silent { awaited: "the end of the run", waited_ms: 1_000_000 });
    }

    #[test]
    fn shared_agent_limits_each_coordinator_to_its_share() {
        let bounds = Bounds { idle: Nanos(3 * SECOND), line_len: 200, ..Bounds::default() };
        let mut agent = AgentPeer::bounded("test", bounds, 0);
        assert_eq!(agent.deadline_ns(), 3 * SECOND);
        let hello = ToAgent::Hello { protocol: PROTOCOL, program: String::new(), limits: LIMITS };
        agent.push(encode(&hello).as_bytes(), SECOND);
        agent.next_request().unwrap();
        agent.answer(&agent.greeting(), SECOND);
        assert_eq!(agent.deadline_ns(), 4 * SECOND);
        let silent = PeerError::Silent { awaited: "the next request", waited_ms: 3000 };
        assert_eq!(agent.tick(4 * SECOND), Err(silent));
        agent.push(&[b'x'; 201], SECOND);
        let error = agent.next_request().unwrap_err().to_string();
        assert!(error.contains("longer than 200 bytes"), "{error}");
    }

    #[test]
    fn silence_of_the_coordinator_is_permitted_while_traffic_runs_until_its_end() {
        let mut agent = greeted_agent();
        agent.answer(&FromAgent::Prepared { ports: Vec::new() }, SECOND);
        agent.answer(&FromAgent::Started, SECOND);
        assert_eq!(agent.deadline_ns(), SECOND + SECOND / 2);
        assert_eq!(agent.tick(SECOND + SECOND / 2), Ok(true));
        agent.progress(LiveFigures::default(), SECOND + SECOND / 2);
        assert_eq!(agent.deadline_ns(), 2 * SECOND);
        // This trial has no duration, so only the margin remains.
        assert_eq!(agent.tick(SECOND + RUNNING_MARGIN_NS - 1), Ok(true));
        let error = agent.tick(SECOND + RUNNING_MARGIN_NS).unwrap_err();
        assert_eq!(error, PeerError::Silent { awaited: "the end of traffic", waited_ms: 60_000 });
    }

    #[test]
    fn finish_that_crossed_the_result_is_ignored() {
        let mut agent = greeted_agent();
        agent.push((encode(&ToAgent::Finish) + &encode(&ToAgent::Undo)).as_bytes(), SECOND);
        assert_eq!(agent.next_request(), Ok(Some(ToAgent::Undo)));
    }
}
