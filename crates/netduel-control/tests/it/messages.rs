//! One message of each kind, and their parts.
use netduel_control::protocol::{FailureKind, FromAgent, Limits, PROTOCOL, Recovery, ToAgent};
use netduel_model::data_ports::{DataPorts, PortAnswer, PortNeeds, PortProtocol, ProbeSource, ProbedPort};
use netduel_model::ids::{RunId, Token};
use netduel_model::observation::Observation;
use netduel_model::plan::{TreatmentAction, parse};
use netduel_model::sample::{EndReport, LiveFigures};
use netduel_model::snapshot::HostSnapshot;
use netduel_model::trial::TrialEnd;
use netduel_model::units::Nanos;
use netduel_model::workload::{Role, Workload};

/// The workloads of the demo's plan.
pub fn workload() -> Workload {
    let plan = parse(include_str!("../../../../plans/demo.toml"), "plans/demo.toml").unwrap();
    plan.arms[0].workloads[0].clone()
}

/// A trial's end without figures.
pub fn trial_end(role: Role) -> TrialEnd {
    let report = EndReport { process_cpu_ns: (1, 2), ..EndReport::new(role) };
    TrialEnd { report, observation: Observation::default() }
}

/// Limits that no test reaches.
pub fn limits() -> Limits {
    Limits { total: Nanos(3_600_000_000_000), idle: Nanos(600_000_000_000), progress: Limits::PROGRESS }
}

/// One request of each kind.
pub fn requests() -> Vec<ToAgent> {
    let token = Token([0x5a; 16]);
    vec![
        ToAgent::Hello { protocol: PROTOCOL, program: "netduel 0.1.0".into(), limits: limits() },
        ToAgent::Describe { without_metadata: false },
        ToAgent::LockHost { run: RunId::new("demo-1").unwrap() },
        ToAgent::Apply { treatments: vec![TreatmentAction::Mtu { interface: "eth0".into(), mtu: 9000 }] },
        ToAgent::Undo,
        ToAgent::OpenPorts {
            bind: "10.77.0.2".parse().unwrap(),
            ports: DataPorts::new(5210, 5219),
            needs: PortNeeds { tcp: true, udp: 4 },
            token,
        },
        ToAgent::ProbePorts {
            peer: "10.77.0.2".parse().unwrap(),
            tcp: vec![5210],
            udp: vec![5210, 5211],
            token,
            timeout: Nanos(5_000_000_000),
        },
        ToAgent::ClosePorts,
        ToAgent::PrepareServer {
            trial: 1,
            workload: workload(),
            bind: "10.77.0.2".parse().unwrap(),
            ports: DataPorts::new(5210, 5219),
            token,
        },
        ToAgent::PrepareClient {
            trial: 1,
            workload: workload(),
            peer: "fd77::2".parse().unwrap(),
            ports: vec![40_000, 40_001],
            token,
            deadline: Nanos(10_000_000_000),
        },
        ToAgent::Start,
        ToAgent::Finish,
        ToAgent::Abort,
        ToAgent::Bye,
    ]
}

/// A port with each answer.
fn probed() -> Vec<ProbedPort> {
    let answers = [
        PortAnswer::Open { local: "10.77.0.1".parse().unwrap() },
        PortAnswer::Refused { error: "Connection refused (os error 111)".into() },
        PortAnswer::Dropped { seconds: 5 },
        PortAnswer::Failed { reason: "authenticate".into() },
    ];
    let protocols = [PortProtocol::Tcp, PortProtocol::Udp].into_iter().cycle();
    let port = |(protocol, answer)| ProbedPort { protocol, port: 5210, answer };
    protocols.zip(answers).map(port).collect()
}

/// One answer of each kind.
pub fn answers() -> Vec<FromAgent> {
    vec![
        FromAgent::Hello { protocol: PROTOCOL, program: "netduel 0.1.0".into() },
        FromAgent::Described {
            snapshot: Box::new(HostSnapshot { cores: 2, ..HostSnapshot::default() }),
            recovery: Recovery::default(),
        },
        FromAgent::Locked,
        FromAgent::HostBusy { by: "run demo-2".into() },
        FromAgent::Applied,
        FromAgent::Undone { problems: vec!["failed to set eth0".into()] },
        FromAgent::PortsOpen { tcp: vec![5210], udp: vec![5210, 5211] },
        FromAgent::Probed { ports: probed() },
        FromAgent::PortsClosed {
            sources: vec![ProbeSource {
                protocol: PortProtocol::Udp,
                port: 5210,
                address: "10.77.0.1".parse().unwrap(),
            }],
        },
        FromAgent::Prepared { ports: vec![40_000] },
        FromAgent::Started,
        FromAgent::Progress { trial: 1, figures: LiveFigures { elapsed_ns: 1, ..LiveFigures::default() } },
        FromAgent::Done { trial: 1, end: Box::new(trial_end(Role::Server)) },
        FromAgent::Aborted,
        FromAgent::Failed { kind: FailureKind::Traffic, message: "failed to connect".into() },
        FromAgent::Bye { problems: vec!["failed to set eth0".into()] },
    ]
}
