//! What is left in the queues of a sender: packets that a slow path takes later, buffers that a qdisc drops, and data that a peer never
//! acknowledges.
use std::fs;
use std::process::Stdio;

use netduel_guests::Bed;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::coordinator::{Coordinator, Printed, plan};
use super::{load, processes, reach, run};

/// More packets than [`slow_down`] lets pass, each in a buffer of its own: what is left in the queue at the end takes five seconds. A receiver waits
/// two seconds for late packets, so that less would leave within its own trial.
pub const MORE_THAN_THE_PATH: &str = "[[workloads]]\nname = \"packets\"\ntype = \"pps\"\nduration = \"1 s\"\nflows = 1\n\
     packet_rate = \"10000 /s\"\nwindow = \"4 MiB\"\n";

/// Lets 600 of these packets a second pass, fewer on a busy machine, which needs longer from one trial to the next: at most 19 s for all, of the 20
/// that an agent waits. Other flows do not wait for them, so that the next trial would begin beside what is left.
pub fn slow_down(coordinator: &Coordinator, interface: &str) -> String {
    format!(
        "set -e; {}; tc qdisc replace dev {interface} root fq flow_limit 2800 maxrate {}bit",
        load("sch_fq"),
        coordinator.rate(300_000)
    )
}

/// Packets of a client in a trial of round trips beside two for each request, at most: those that look up addresses, and that open and end
/// connections. What is left of a trial of [`MORE_THAN_THE_PATH`] when the next one begins is several times as much.
const OTHER_PACKETS_MAX: u64 = 100;

/// In the trials of these workloads of round trips no packet leaves that an earlier trial left in the queue of the interface.
#[track_caller]
pub fn assert_own_packets(trials: &[Value], interface: &str, workloads: &[&str]) {
    for workload in workloads {
        let of_workload: Vec<&Value> =
            trials.iter().filter(|trial| trial["slot"]["workload"] == *workload).collect();
        assert!(!of_workload.is_empty(), "no trial of {workload}");
        for trial in of_workload {
            let client = &trial["client"];
            let requests = client["report"]["round_trips"]["requests"].as_u64().unwrap();
            let interfaces = client["observation"]["interfaces"].as_array().unwrap();
            let own = interfaces.iter().find(|one| one["name"] == interface).unwrap();
            let sent = own["tx_packets"].as_u64().unwrap();
            assert!(
                sent <= 2 * requests + OTHER_PACKETS_MAX,
                "{sent} packets left in a trial of {requests} requests: {}",
                trial["slot"]
            );
        }
    }
}

/// Runs until one in which netduel sent segmented buffers. It looks for a moment whether the NIC counts their packets, which the emulator of a
/// busy machine may do later: such a run has none, and is not judged.
const RUNS_MAX: u32 = 20;

const PACKETS: &str = "[[workloads]]\nname = \"packets\"\ntype = \"pps\"\nduration = \"300 ms\"\n";

/// A queue of fewer buffers than the sockets of a sender hold.
const SHORT_QUEUE: &str = "treatments = [{ command = \
     [\"sh\", \"-c\", \"tc qdisc replace dev virt0 root fq_codel limit 100\"], \
     undo = [\"sh\", \"-c\", \"tc qdisc del dev virt0 root\"], on = \"client\" }]";

/// After the queue the kernel makes packets of buffers, and not the device.
const SEGMENT_AFTER_THE_QUEUE: &str = "ethtool -K virt0 tx-udp-segmentation off || true";

/// The sender's qdisc drops segmented buffers and counts each as one: the report names that, and no capacity
/// of the path.
pub fn dropped_buffers_are_reported_as_buffers(bed: &mut Bed, coordinator: &Coordinator) {
    run(&bed.guests()[0], SEGMENT_AFTER_THE_QUEUE);
    let plan = coordinator.plan(&plan("10.1.0.2", &[("one", SHORT_QUEUE), ("two", SHORT_QUEUE)], PACKETS, 2));
    let page = coordinator.folder().join("packets.md");
    let out = page.display().to_string();
    let words = ["run", &plan, "--json", "--out", &out];
    let has_buffers = |trial: &Value| trial["client"]["report"]["packets"]["segmentation"] == true;
    for _ in 0..RUNS_MAX {
        let report = coordinator.run(bed, &words).expect_code(0).document();
        if coordinator.trials(&report).iter().any(has_buffers) {
            let page = fs::read_to_string(&page).unwrap();
            for part in ["counts each as one packet", "never left the sender"] {
                assert!(page.contains(part), "{part:?} is not in\n{page}");
            }
            return;
        }
    }
    panic!("no run of {RUNS_MAX} has sent segmented buffers");
}

/// A plan is interrupted long before the end of its traffic.
const STREAM: &str = "[[workloads]]\nname = \"stream\"\ntype = \"tcp-stream\"\nduration = \"60 s\"\n";

/// Prints the connections to the server's address with at least so much unacknowledged data: eight
/// hexadecimal digits, as in the file.
fn queued(at_least: &str) -> String {
    let is_queued = format!("$3 ~ /^0200010A:/ && substr($5, 1, 8) >= \"{at_least}\"");
    format!("awk '{is_queued} {{ print $2, $3, $4, $5 }}' /proc/net/tcp")
}

/// Loses the packets of a stream, because they go to an address that no NIC has, and shows what is queued
/// when the trial is over.
fn lost_stream() -> String {
    let away = format!(
        "(until [ -n \"$({})\" ]; do usleep 20000; done; \
         ip neighbour replace 10.1.0.2 lladdr 02:00:00:00:00:99 dev virt0 nud permanent; touch /tmp/lost) \
         > /dev/null 2>&1 < /dev/null & echo $! > /tmp/loser",
        queued("00004000")
    );
    let back = format!(
        "kill $(cat /tmp/loser); {} > /tmp/queued; ip neighbour del 10.1.0.2 dev virt0; rm /tmp/loser; true",
        queued("00000001")
    );
    let (away, back) = (format!("[\"sh\", \"-c\", {away:?}]"), format!("[\"sh\", \"-c\", {back:?}]"));
    format!("treatments = [{{ command = {away}, undo = {back}, on = \"client\" }}]")
}

/// An interrupt aborts a stream whose data nothing acknowledges. Its connection ends with the trial: the
/// kernel would go on sending the data for minutes.
pub fn aborted_stream_sends_nothing_afterwards(bed: &mut Bed, coordinator: &Coordinator) {
    let keys = lost_stream();
    let arms = [("one", keys.as_str()), ("two", keys.as_str())];
    let plan = coordinator.plan(&plan("10.1.0.2", &arms, STREAM, 2));
    let mut command = coordinator.command(bed, &["run", &plan]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    reach(&bed.guests()[0], "rm /tmp/lost 2> /dev/null");
    kill_process(coordinator_of(bed, &plan), Signal::INT).unwrap();
    Printed::from(child.wait_with_output().unwrap()).expect_code(130);
    // The stream had data in its queue; its connection is gone with it.
    assert_eq!(run(&bed.guests()[0], "cat /tmp/queued; rm /tmp/queued"), "");
}

/// The process that runs a plan. Its wrapper, which is the child here, passes no signal on.
#[track_caller]
pub fn coordinator_of(bed: &Bed, plan: &str) -> Pid {
    let is_coordinator = |id: &String| {
        let read = |file: &str| fs::read_to_string(format!("/proc/{id}/{file}")).unwrap_or_default();
        read("comm").trim() == "netduel" && read("cmdline").split('\0').any(|word| word == plan)
    };
    let found: Vec<String> = processes(bed.folder()).into_iter().filter(is_coordinator).collect();
    let [id] = &found[..] else { panic!("one process that runs {plan}: {found:?}") };
    Pid::from_raw(id.parse().unwrap()).unwrap()
}
