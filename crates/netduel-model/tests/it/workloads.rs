//! Defaults and refusals of the workloads that need more than one kind of socket.
use netduel_model::metric::Metric;
use netduel_model::plan::spec::SettingsSpec;
use netduel_model::plan::{ResolvedPlan, parse, traffic};
use netduel_model::search::{SearchGoal, SearchPreset};
use netduel_model::units::{Bytes, Nanos, PerSecond};
use netduel_model::workload::{
    Direction, LoadedLatency, ProbeProtocol, TcpEngine, Traffic, Transaction, Wait, Workload, WorkloadType,
};

/// A plan whose one workload is of this type, with these settings.
fn plan(kind: &str, settings: &str) -> String {
    format!(
        r#"
name = "one"
question = "Which?"
[hosts]
c = {{ launch = "local" }}
s = {{ launch = "local", addresses = ["127.0.0.1"] }}
[[arms]]
name = "one"
client = "c"
server = "s"
[[arms]]
name = "two"
client = "c"
server = "s"
[[workloads]]
name = "w"
type = "{kind}"
{settings}"#
    )
}

fn resolved(kind: &str, settings: &str) -> ResolvedPlan {
    parse(&plan(kind, settings), "plan.toml").unwrap_or_else(|errors| panic!("{errors}"))
}

/// The one problem of a plan, after its place.
fn refused(kind: &str, settings: &str) -> String {
    let errors = parse(&plan(kind, settings), "p").expect_err("it is wrong").to_string();
    assert_eq!(errors.lines().count(), 1, "{errors}");
    errors.split_once("workload \"w\", ").expect("it is about the workload").1.to_owned()
}

/// The plan of a run file that was changed may have any number, and no command may end by it.
#[test]
fn facts_and_words_of_settings_may_have_the_largest_numbers() {
    for kind in WorkloadType::ALL {
        let settings = traffic(&SettingsSpec::default(), *kind, Nanos(1_000_000_000));
        let settings = serde_json::to_value(settings).expect("settings are JSON");
        let fields = settings.as_object().expect("an object").iter();
        for (key, _) in fields.filter(|(_, value)| value.is_number()) {
            let of = |largest: u64| {
                let mut changed = settings.clone();
                changed[key] = largest.into();
                serde_json::from_value::<Traffic>(changed).ok()
            };
            let types = [u64::MAX, u32::MAX.into(), u16::MAX.into(), u8::MAX.into()];
            let largest =
                types.into_iter().find_map(of).unwrap_or_else(|| panic!("{kind:?}: {key} takes no number"));
            let facts = largest.facts();
            assert!(facts.sockets.count() > 0 && facts.descriptors.count(64) < u64::MAX, "{kind:?}: {key}");
            assert!(!largest.words().is_empty(), "{kind:?}: {key}");
        }
    }
}

#[test]
fn transactions_have_the_documented_defaults() {
    let transaction = |settings: &str| match &resolved("tcp-crr", settings).arms[0].workloads[0].traffic {
        Traffic::TcpCrr(transaction) => transaction.clone(),
        other => panic!("{other:?}"),
    };
    let expected = Transaction {
        request: Bytes(64),
        response: Bytes(64),
        outstanding: 1,
        wait: Wait::Block,
        rate: None,
        congestion: None,
    };
    assert_eq!(transaction(""), expected);
    let sized = transaction("size = \"1 KiB\"");
    assert_eq!((sized.request, sized.response), (Bytes(1024), Bytes(1024)));
    let unlike = transaction("response_size = \"16 B\"");
    assert_eq!((unlike.request, unlike.response), (Bytes(64), Bytes(16)));
    let open = transaction("request_rate = \"100 /s\"");
    assert_eq!((open.outstanding, open.rate), (64, Some(PerSecond(100))));
    let few = transaction("request_rate = \"100 /s\"\noutstanding = 3");
    assert_eq!((few.outstanding, few.rate), (3, Some(PerSecond(100))));
    let metrics = &resolved("tcp-crr", "").arms[0].workloads[0].metrics;
    assert_eq!(*metrics, [Metric::LatencyP50, Metric::LatencyP99]);
}

#[test]
fn a_loaded_path_has_the_documented_defaults() {
    let workload = |settings: &str| resolved("loaded-latency", settings).arms[0].workloads[0].clone();
    let plain = workload("");
    let expected = LoadedLatency {
        streams: 16,
        direction: Direction::Both,
        block: Bytes(1 << 20),
        engine: TcpEngine::Lean,
        congestion: None,
        probe: ProbeProtocol::Udp,
        size: Bytes(64),
        rate: PerSecond(200),
        idle: Nanos::from_millis(2500),
    };
    assert_eq!(plain.traffic, Traffic::LoadedLatency(expected));
    // A third and a tenth of the shorter part, which is the idle one, at most.
    assert_eq!((plain.timing.warmup, plain.timing.cooldown), (Nanos(833_333_333), Nanos::from_millis(250)));
    assert_eq!(plain.steady_window(), 3_333_333_333..9_750_000_000);
    assert_eq!(plain.metrics, [Metric::LatencyLoadedP50, Metric::LatencyLoadedP99, Metric::Responsiveness]);
    let other = workload("idle_share = \"80 %\"\nduration = \"5 s\"\nprobe = \"tcp\"\nengine = \"copy\"");
    let Traffic::LoadedLatency(load) = &other.traffic else { panic!("{other:?}") };
    assert_eq!(
        (load.idle, load.probe, load.block),
        (Nanos(4_000_000_000), ProbeProtocol::Tcp, Bytes(256 << 10))
    );
    assert_eq!(other.timing.warmup, Nanos(333_333_333));
    assert_eq!(load.idle_window(&other.timing), 333_333_333..3_900_000_000);
}

#[test]
fn a_loaded_path_that_cannot_be_run_is_refused() {
    for (settings, problem) in [
        ("streams = 0", "streams: is 0; 1 to 1024 is allowed for loaded-latency"),
        ("size = \"1473 B\"", "size: is \"1473 B\"; \"16 B\" to \"1472 B\" is allowed for loaded-latency"),
        (
            "request_rate = \"0 /s\"",
            "request_rate: is \"0 /s\"; \"1 /s\" to \"10 k/s\" is allowed for loaded-latency",
        ),
        (
            "idle_share = \"95 %\"",
            "idle_share: is \"95 %\"; \"5 %\" to \"90 %\" is allowed for loaded-latency",
        ),
        (
            "congestion = \"\"",
            "congestion: \"\" is not a congestion control; name it as \
          /proc/sys/net/ipv4/tcp_available_congestion_control does, for example \"cubic\"",
        ),
        ("probe = \"icmp\"", "probe: is the text \"icmp\"; did you mean \"tcp\"? allowed: `udp` or `tcp`"),
        (
            "duration = \"2 s\"\nwarmup = \"600 ms\"",
            "warmup: leaves nothing to measure: warmup \"600 ms\" and cooldown \"50 ms\" of an idle part of \"500 ms\" and a loaded part \
             of \"1500 ms\"; together warmup and cooldown must be shorter than each of the parts",
        ),
    ] {
        assert_eq!(refused("loaded-latency", settings), problem, "{settings}");
    }
}

#[test]
fn open_loop_without_a_request_that_counts_is_refused() {
    let times = "duration = \"800 ms\"\nwarmup = \"100 ms\"\ncooldown = \"0 ms\"\n";
    let remedy = "raise `request_rate` or `duration`, or shorten `warmup` and `cooldown`";
    for kind in ["tcp-rr", "udp-rr", "icmp-rr", "tcp-crr"] {
        assert_eq!(
            refused(kind, &format!("{times}request_rate = \"1 /s\"")),
            format!(
                "request_rate: is \"1 /s\", so that no request is due between 100 ms and 800 ms after the start, where round trips are \
                 counted; {remedy}"
            )
        );
        // The request that is due after half a second counts.
        resolved(kind, &format!("{times}request_rate = \"2 /s\""));
        resolved(kind, &format!("{}request_rate = \"1 /s\"", times.replace("100 ms", "0 ms")));
    }
    // Of a loaded path both parts count.
    assert_eq!(
        refused(
            "loaded-latency",
            "duration = \"10 s\"\nwarmup = \"200 ms\"\nrequest_rate = \"1 /s\"\nidle_share = \"10 %\""
        ),
        format!(
            "request_rate: is \"1 /s\", so that no request is due between 200 ms and 900 ms after the start, where round trips are \
             counted; {remedy}"
        )
    );
}

#[test]
fn transactions_that_cannot_be_run_are_refused() {
    for (settings, problem) in [
        ("size = \"47 B\"", "size: is \"47 B\"; \"48 B\" to \"16 MiB\" is allowed for tcp-crr"),
        (
            "response_size = \"15 B\"",
            "response_size: is \"15 B\"; \"16 B\" to \"16 MiB\" is allowed for tcp-crr",
        ),
        ("outstanding = 0", "outstanding: is 0; 1 to 1024 is allowed for tcp-crr"),
        (
            "request_rate = \"0 /s\"",
            "request_rate: is \"0 /s\"; \"1 /s\" to \"10 M/s\" is allowed for tcp-crr; leave `request_rate` out for a closed loop",
        ),
        (
            "streams = 2",
            "streams: is not a setting of tcp-crr; it has family, pin_client, pin_server, dscp, size, response_size, outstanding, wait, \
             request_rate, congestion",
        ),
        (
            "metrics = [\"throughput\"]",
            "metrics, element 1: \"throughput\" is not a metric of tcp-crr; allowed: `latency-p50`, `latency-p99`, `latency-p999`, \
             `round-trip-rate` or `cpu-per-round-trip`",
        ),
    ] {
        assert_eq!(refused("tcp-crr", settings), problem, "{settings}");
    }
    for kind in ["tcp-rr", "tcp-crr"] {
        let problem = refused(kind, "congestion = \"no such\"");
        assert!(
            problem.starts_with("congestion: \"no such\" is not a congestion control"),
            "{kind}: {problem}"
        );
    }
    let problem = refused("udp-rr", "congestion = \"cubic\"");
    assert!(problem.starts_with("congestion: is not a setting of udp-rr"), "{problem}");
    assert!(
        refused("tcp-rr", "response_size = \"64 B\"")
            .starts_with("response_size: is not a setting of tcp-rr")
    );
}

#[test]
fn a_search_has_the_documented_defaults() {
    let workload = |settings: &str| resolved("pps", settings).arms[0].workloads[0].clone();
    let goals = |workload: &Workload| {
        workload
            .traffic
            .facts()
            .packets
            .and_then(|packets| packets.search.clone())
            .expect("it searches")
            .goals
    };
    let plain = workload("search = \"no-drop\"");
    assert_eq!(goals(&plain), [SearchPreset::NoDrop.goal()]);
    assert_eq!(plain.metrics, [Metric::NoDropRate]);
    // Ten duration sums and a minute at most, of which nothing is cut.
    assert_eq!(plain.timing.duration, Nanos(120_000_000_000));
    assert_eq!(plain.steady_window(), 0..120_000_000_000);
    let udp = plain.traffic.facts().flows.expect("it has flows");
    assert_eq!(udp.tuning.window, Some(Bytes(256 << 10)));
    let both = workload("search = [\"partial-drop\", \"rfc2544\"]\nwindow = \"1 MiB\"\nduration = \"5 s\"");
    assert_eq!(goals(&both), [SearchPreset::PartialDrop.goal(), SearchPreset::Rfc2544.goal()]);
    assert_eq!(both.metrics, [Metric::NoDropRate, Metric::PartialDropRate]);
    assert_eq!(both.timing.duration, Nanos(5_000_000_000));
    let own =
        workload("search = [{ final_trial = \"200 ms\", loss_ratio = \"2 %\" }, { like = \"tst009\" }]");
    let [first, second] = goals(&own).try_into().expect("two goals");
    assert_eq!((first.final_trial, first.initial_trial), (Nanos(200_000_000), Nanos(200_000_000)));
    assert_eq!((first.duration_sum, first.width), (Nanos(600_000_000), 0.02));
    assert_eq!(second, SearchGoal { name: "goal-2".to_owned(), ..SearchPreset::Tst009.goal() });
    let none = workload("");
    assert!(none.traffic.facts().packets.is_some_and(|packets| packets.search.is_none()));
}

#[test]
fn loss_is_a_metric_of_round_trips_in_datagrams() {
    for kind in ["udp-rr", "icmp-rr"] {
        let plan = resolved(kind, "metrics = [\"latency-p50\", \"loss\"]");
        let workload = &plan.arms[0].workloads[0];
        assert_eq!(workload.metrics, [Metric::LatencyP50, Metric::Loss], "{kind}");
        // A verdict more needs more blocks: only a plan that asks for it has one.
        let defaults = resolved(kind, "").arms[0].workloads[0].metrics.clone();
        assert_eq!(defaults, [Metric::LatencyP50, Metric::LatencyP99], "{kind}");
    }
    let problem = refused("tcp-rr", "metrics = [\"loss\"]");
    assert!(problem.starts_with("metrics, element 1: \"loss\" is not a metric of tcp-rr"), "{problem}");
}
