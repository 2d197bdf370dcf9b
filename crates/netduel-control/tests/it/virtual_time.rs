//! Both sides of the protocol in virtual time: delays, split bytes, silence and garbage from a seed.
use netduel_control::peer::{AgentEvent, AgentPeer, CoordinatorPeer, PeerError};
use netduel_control::protocol::{FromAgent, PROTOCOL, Recovery, ToAgent};
use netduel_model::snapshot::HostSnapshot;
use netduel_model::workload::Role;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng as _, SeedableRng as _};

use crate::messages::{limits, requests, trial_end};

const SECOND: u64 = 1_000_000_000;
/// Timeout of every answer.
const TIMEOUT: u64 = 10 * SECOND;

/// A fault of the connection from the agent.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Fault {
    None,
    Silence,
    Garbage,
    Duplicate,
}

/// One conversation: requests in order, each answered by the agent, over a connection with faults.
struct Conversation {
    generator: ChaCha8Rng,
    now_ns: u64,
    coordinator: CoordinatorPeer,
    agent: AgentPeer,
    fault: Fault,
    /// Index of the answer that the fault affects, from 0.
    hit: u32,
    answered: u32,
}

impl Conversation {
    fn below(&mut self, bound: u64) -> u64 {
        self.generator.next_u64() % bound
    }

    /// Delivers bytes in pieces of random length, each after a random delay.
    fn carry(
        &mut self,
        bytes: &[u8],
        mut hand_on: impl FnMut(&mut Self, &[u8]) -> Result<(), PeerError>,
    ) -> Result<(), PeerError> {
        let mut rest = bytes;
        while !rest.is_empty() {
            let length = 1 + self.below(rest.len() as u64) as usize;
            self.now_ns += self.below(SECOND / 100);
            self.coordinator.tick(self.now_ns)?;
            hand_on(self, &rest[..length])?;
            rest = &rest[length..];
        }
        Ok(())
    }

    /// Sends a request's line and returns the events at the coordinator.
    fn exchange(&mut self, line: &str) -> Result<Vec<AgentEvent>, PeerError> {
        let mut requests = Vec::new();
        self.carry(line.as_bytes(), |conversation, piece| {
            conversation.agent.push(piece, conversation.now_ns);
            while let Some(message) = conversation.agent.next_request()? {
                requests.push(message);
            }
            Ok(())
        })?;
        let mut events = Vec::new();
        for message in requests {
            for answer in answers_to(&message) {
                let mut bytes = self.agent.answer(&answer, self.now_ns).into_bytes();
                if self.answered == self.hit {
                    match self.fault {
                        Fault::None => {}
                        Fault::Silence => bytes.clear(),
                        Fault::Garbage => bytes = b"Segmentation fault\n".repeat(60),
                        Fault::Duplicate => bytes = bytes.repeat(2),
                    }
                }
                self.answered += 1;
                self.carry(&bytes, |conversation, piece| {
                    events.extend(conversation.coordinator.input(piece, conversation.now_ns)?);
                    Ok(())
                })?;
            }
        }
        Ok(events)
    }

    fn run(&mut self, hello: &str) -> Result<(), PeerError> {
        let mut events = self.exchange(hello)?;
        for request in requests().iter().skip(1).filter(|request| in_a_trial(request)) {
            self.expect_answer(&events)?;
            let line = self.coordinator.request(request, self.now_ns, TIMEOUT);
            events = self.exchange(&line)?;
        }
        self.expect_answer(&events)
    }

    /// Without an answer, time advances until the coordinator abandons the agent.
    fn expect_answer(&mut self, events: &[AgentEvent]) -> Result<(), PeerError> {
        if events.iter().any(|event| matches!(event, AgentEvent::Answer(_) | AgentEvent::Done(_))) {
            return Ok(());
        }
        self.now_ns = self.coordinator.deadline_ns().expect("an answer is awaited, so there is a deadline");
        self.coordinator.tick(self.now_ns)
    }
}

/// The requests of a server's trial, in their order.
fn in_a_trial(request: &ToAgent) -> bool {
    !matches!(request, ToAgent::PrepareClient { .. } | ToAgent::Abort)
}

fn answers_to(message: &ToAgent) -> Vec<FromAgent> {
    match message {
        ToAgent::Hello { .. } => vec![FromAgent::Hello { protocol: PROTOCOL, program: "agent".into() }],
        ToAgent::Describe { .. } => {
            vec![FromAgent::Described {
                snapshot: Box::new(HostSnapshot::default()),
                recovery: Recovery::default(),
            }]
        }
        ToAgent::LockHost { .. } => vec![FromAgent::Locked],
        ToAgent::Apply { .. } => vec![FromAgent::Applied],
        ToAgent::Undo => vec![FromAgent::Undone { problems: Vec::new() }],
        ToAgent::OpenPorts { .. } => vec![FromAgent::PortsOpen { tcp: vec![1], udp: Vec::new() }],
        ToAgent::ProbePorts { .. } => vec![FromAgent::Probed { ports: Vec::new() }],
        ToAgent::ClosePorts => vec![FromAgent::PortsClosed { sources: Vec::new() }],
        ToAgent::PrepareServer { .. } | ToAgent::PrepareClient { .. } => {
            vec![FromAgent::Prepared { ports: vec![1] }]
        }
        ToAgent::Start => vec![FromAgent::Started],
        ToAgent::Finish => vec![FromAgent::Done { trial: 1, end: Box::new(trial_end(Role::Server)) }],
        ToAgent::Abort => vec![FromAgent::Aborted],
        ToAgent::Bye => vec![FromAgent::Bye { problems: Vec::new() }],
    }
}

/// Answers in a conversation without faults.
const ANSWERS: u32 = 12;

fn converse(seed: u64, fault: Fault) -> (Conversation, Result<(), PeerError>) {
    let mut generator = ChaCha8Rng::seed_from_u64(seed);
    let hit = generator.next_u32() % ANSWERS;
    let (coordinator, hello) = CoordinatorPeer::open("coordinator", limits(), 0, TIMEOUT);
    let mut conversation = Conversation {
        generator,
        now_ns: 0,
        coordinator,
        agent: AgentPeer::new("agent", 0),
        fault,
        hit,
        answered: 0,
    };
    let result = conversation.run(&hello);
    (conversation, result)
}

#[test]
fn conversation_completes_with_any_split_and_delay_of_bytes() {
    for seed in 0..300 {
        let (conversation, result) = converse(seed, Fault::None);
        assert_eq!(result, Ok(()), "seed {seed}");
        assert_eq!(conversation.answered, ANSWERS, "seed {seed}");
    }
}

#[test]
fn silence_ends_a_conversation_at_its_deadline() {
    for seed in 0..300 {
        let (conversation, result) = converse(seed, Fault::Silence);
        match result {
            Err(PeerError::Silent { waited_ms, .. }) => {
                assert_eq!(waited_ms, TIMEOUT / 1_000_000, "seed {seed}");
            }
            // Silence while treatments are made or undone names them.
            Err(PeerError::Treating { seconds, .. }) => {
                assert_eq!(seconds, TIMEOUT / 1_000_000_000, "seed {seed}");
            }
            other => panic!("seed {seed}: {other:?}"),
        }
        assert_eq!(
            conversation.answered,
            conversation.hit + 1,
            "seed {seed}: a request was sent after the silence"
        );
    }
}

#[test]
fn garbage_ends_a_conversation_and_is_quoted() {
    for seed in 0..300 {
        let (_, result) = converse(seed, Fault::Garbage);
        let text = result.expect_err("garbage was taken for a message").to_string();
        assert!(text.contains("Segmentation fault"), "seed {seed}: {text}");
    }
}

#[test]
fn repeated_answer_is_an_error() {
    for seed in 0..300 {
        let (_, result) = converse(seed, Fault::Duplicate);
        assert!(matches!(result, Err(PeerError::Unexpected { .. })), "seed {seed}: {result:?}");
    }
}
