//! The setting of a seed: the plan, how its hosts are reached, and when its run is precise enough.
use std::sync::LazyLock;

use netduel_model::plan::{ResolvedPlan, parse};
use netduel_model::units::Nanos;

use crate::random::{Random, Stream};

/// How a host is reached. It decides whether killing the launcher kills the agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// A process on the coordinator's machine: killing it ends it.
    Near,
    /// Behind a remote shell: killing the shell closes the connection only.
    Far,
}

/// The setting of a seed.
#[derive(Debug, Clone)]
pub struct Setting {
    /// The plan.
    pub plan: ResolvedPlan,
    /// How the hosts are reached.
    pub reach: Reach,
    /// Whether all hosts share one network stack and one lock.
    pub shares_network: bool,
    /// The seed of the schedule.
    pub schedule_seed: u64,
    /// Number of trials after which the run is precise enough; `None`: never.
    pub enough_trials: Option<usize>,
    /// Maximum latency of a link, nanoseconds.
    pub latency_ns_max: u64,
    /// Time in which a guard restores its host, nanoseconds.
    pub guard_ns: u64,
    /// Whether the server's traffic fails when its client is lost.
    pub resets: bool,
    /// Whether lost agents are restarted and hosts are locked; false for a quick test.
    pub is_quick: bool,
}

const HEAD: &str = "name = \"simulated\"\nquestion = \"Does the coordinator keep its promises?\"\n";
const COMMAND: &str = "launch = \"command\"\ncommand = [\"agent\"]\n";
const SACK: &str = "treatments = [{ sysctl = \"net.ipv4.tcp_sack\", value = \"0\" }]\n";
const ON_CLIENT: &str = "treatments = [{ interface = \"eth0\", mtu = 9000, on = \"client\" }]\n";
const VF: &str = "treatments = [{ interface = \"eth0\", vf = \"down\" }]\n";
const ROUND_TRIPS: &str = "[[workloads]]\nname = \"rr\"\ntype = \"tcp-rr\"\nduration = \"2 s\"\n";
const DOWN: &str =
    "[[workloads]]\nname = \"down\"\ntype = \"tcp-stream\"\nduration = \"1 s\"\ndirection = \"down\"\n";
const BOTH: &str =
    "[[workloads]]\nname = \"both\"\ntype = \"tcp-stream\"\nduration = \"1 s\"\ndirection = \"both\"\n";
const SEARCH: &str = "[[workloads]]\nname = \"search\"\ntype = \"pps\"\n\
    search = [{ final_trial = \"200 ms\", duration_sum = \"200 ms\", initial_trial = \"200 ms\" }]\n";
const EVENTS: &str = "[[workloads]]\nname = \"events\"\ntype = \"failover\"\nduration = \"3 s\"\nstreams = 0\nrequest_rate = \"1 k/s\"\n";

/// Hosts of the plan, each with its own address.
fn hosts(names: &[&str]) -> String {
    let host = |(index, name): (usize, &&str)| {
        format!("[hosts.{name}]\n{COMMAND}addresses = [\"10.0.0.{}\"]\n", index + 1)
    };
    names.iter().enumerate().map(host).collect()
}

fn arm(name: &str, [client, server]: [&str; 2], more: &str) -> String {
    let expected = "expect_interface = { client = \"eth0\", server = \"eth0\" }\n";
    format!("[[arms]]\nname = \"{name}\"\nclient = \"{client}\"\nserver = \"{server}\"\n{expected}{more}")
}

fn texts() -> Vec<String> {
    let ab = ["a", "b"];
    let two = hosts(&ab);
    let three = hosts(&["a", "b", "c"]);
    let lab_hosts = "[lab]\nrules = 1\n[hosts.a]\nlaunch = \"lab\"\n[hosts.b]\nlaunch = \"lab\"\n";
    let path = |name: &str| format!("treatments = [{{ path = \"{name}\" }}]\n");
    let lab_arm = |name: &str, more: &str| {
        format!("[[arms]]\nname = \"{name}\"\nclient = \"a\"\nserver = \"b\"\n{more}")
    };
    let with_events = format!(
        "{}set = {{ events = [{{ at = \"1 s\", do = \"carrier\" }}, {{ at = \"2 s\", do = \"return\" }}] }}\n",
        path("accelerated")
    );
    vec![
        format!("{HEAD}{two}{}{}{ROUND_TRIPS}", arm("off", ab, SACK), arm("plain", ab, "")),
        format!("{HEAD}{two}{}{}{ROUND_TRIPS}{DOWN}", arm("off", ab, SACK), arm("mtu", ab, ON_CLIENT)),
        format!("{HEAD}{three}{}{}{BOTH}", arm("one", ab, SACK), arm("other", ["c", "b"], SACK)),
        format!("{HEAD}{three}{}{}{DOWN}", arm("one", ab, ON_CLIENT), arm("other", ["b", "c"], SACK)),
        format!("{HEAD}{two}{}{}{SEARCH}", arm("off", ab, SACK), arm("plain", ab, "")),
        format!("{HEAD}{two}{}{}{BOTH}", arm("vf", ab, VF), arm("plain", ab, "")),
        format!(
            "{HEAD}{lab_hosts}{}{}{ROUND_TRIPS}",
            lab_arm("fast", &path("accelerated")),
            lab_arm("slow", &path("synthetic"))
        ),
        format!(
            "{HEAD}{lab_hosts}{}{}{EVENTS}",
            lab_arm("fast", &with_events),
            lab_arm("again", &with_events)
        ),
    ]
}

/// The plans, parsed once: parsing one takes longer than a simulated run.
static PLANS: LazyLock<Vec<ResolvedPlan>> = LazyLock::new(|| {
    let design = "[design]\nblocks_min = 2\nblocks_max = 4\n";
    let read = |text: String| match parse(&(text + design), "simulated.toml") {
        Ok(mut plan) => {
            for arm in plan.arms.iter_mut().filter(|_| plan.lab.is_some()) {
                // The simulated lab counts no bytes.
                (arm.expect_client, arm.expect_server) = (None, None);
            }
            plan
        }
        Err(errors) => panic!("{errors}"),
    };
    texts().into_iter().map(read).collect()
});

impl Setting {
    /// The setting of a seed.
    pub fn of(seed: u64) -> Self {
        let mut random = Random::new(seed, Stream::Setting);
        let mut plan = PLANS[random.below(PLANS.len() as u64) as usize].clone();
        plan.design.blocks_min = random.between(1, 2) as u32;
        plan.design.blocks_max = random.between(2, 4) as u32;
        plan.design.budget = random.once_in(5).then(|| Nanos::from_millis(random.between(1, 30) * 1000));
        let is_local = plan.lab.is_some() || random.once_in(3);
        let latency_ns_max = random.pick(&[50_000, 1_000_000, 40_000_000, 250_000_000]);
        Self {
            reach: if is_local { Reach::Near } else { Reach::Far },
            shares_network: is_local && random.once_in(2),
            schedule_seed: random.below(1 << 32),
            enough_trials: random.once_in(3).then(|| random.between(2, 12) as usize),
            latency_ns_max,
            // The coordinator cannot detect a guard that runs longer behind a remote shell.
            guard_ns: match random.below(6) {
                0 if is_local => 90_000_000_000,
                0 | 1 => 5_000_000_000,
                2 | 3 => 100_000_000,
                _ => 1_000_000,
            },
            resets: random.once_in(2),
            is_quick: random.once_in(8),
            plan,
        }
    }
}
