//! The comparisons, one line each. A new engine setting is a word in the text of a workload. A TCP stream without a block has the default
//! of its engine.
use anyhow::{Result, bail};

use crate::metric::{Kind, Metric};
use crate::record::{Bound, Target};
use crate::tool::{Ours, Tool};

use Kind::{Datagrams, OpenLoop, RoundTrips, Stall, Stream, Transactions};
use Metric::{
    CpuPerGigabyte, Delivered, P50, PacketsOut, PacketsPerSent, ScheduleKept, Sent, StallLongest, StallShown,
    Throughput, TransactionRate,
};
use Tool::{Iperf3, Neper, Nuttcp, Qperf, Sockperf, Testpmd};

/// One comparison.
#[derive(Debug, Clone, Copy)]
pub struct Case {
    /// Stable name; several comparisons may share one.
    pub name: &'static str,
    /// The compared metrics.
    pub kind: Kind,
    /// netduel's workload.
    pub ours: Ours,
    /// The other tool; `None` compares netduel with its plan.
    pub against: Option<Tool>,
    /// The targets.
    pub targets: &'static [Target],
    /// Whether `tx-udp-segmentation` of the sender's interface is off, so that every datagram is a packet there.
    pub segmented: bool,
}

const fn case(name: &'static str, kind: Kind, ours: Ours, against: Tool, targets: &'static [Target]) -> Case {
    Case { name, kind, ours, against: Some(against), targets, segmented: false }
}

/// With segmentation offload disabled: every datagram is a packet on the interface.
const fn packets(name: &'static str, ours: Ours, against: Tool, targets: &'static [Target]) -> Case {
    Case { name, kind: Datagrams, ours, against: Some(against), targets, segmented: true }
}

const fn alone(name: &'static str, kind: Kind, ours: Ours, targets: &'static [Target]) -> Case {
    Case { name, kind, ours, against: None, targets, segmented: false }
}

const fn ours(name: &'static str, traffic: &'static str) -> Ours {
    Ours { name, traffic, stall_ms: 0 }
}

const fn at_least(metric: Metric, value: f64) -> Target {
    Target { metric, bound: Bound::AtLeast, value }
}

const fn at_most(metric: Metric, value: f64) -> Target {
    Target { metric, bound: Bound::AtMost, value }
}

const LEAN: Ours = ours("lean", r#"{"type":"tcp-stream","streams":1,"direction":"up","engine":"lean"}"#);
const COPY: Ours = ours("copy", r#"{"type":"tcp-stream","streams":1,"direction":"up","engine":"copy"}"#);
const ZEROCOPY: Ours =
    ours("zerocopy", r#"{"type":"tcp-stream","streams":1,"direction":"up","engine":"zerocopy"}"#);
const IO_URING: Ours =
    ours("io-uring", r#"{"type":"tcp-stream","streams":1,"direction":"up","engine":"io-uring"}"#);
const LEAN_8: Ours =
    ours("lean, 8 streams", r#"{"type":"tcp-stream","streams":8,"direction":"up","engine":"lean"}"#);
const LEAN_1000: Ours =
    ours("lean, 1000 streams", r#"{"type":"tcp-stream","streams":1000,"direction":"up","engine":"lean"}"#);
const LEAN_10000: Ours =
    ours("lean, 10,000 streams", r#"{"type":"tcp-stream","streams":10000,"direction":"up","engine":"lean"}"#);
const BLOCK: Ours =
    ours("blocking, 14 B", r#"{"type":"tcp-rr","size":"14 B","outstanding":1,"wait":"block"}"#);
const SPIN: Ours = ours("spinning, 14 B", r#"{"type":"tcp-rr","size":"14 B","outstanding":1,"wait":"spin"}"#);
const CRR: Ours = ours(
    "transactions, 64 B",
    r#"{"type":"tcp-crr","request":"64 B","response":"64 B","outstanding":1,"wait":"block"}"#,
);
const UDP_BLOCK: Ours =
    ours("UDP blocking, 64 B", r#"{"type":"udp-rr","size":"64 B","outstanding":1,"wait":"block"}"#);
const UDP_SPIN: Ours =
    ours("UDP spinning, 64 B", r#"{"type":"udp-rr","size":"64 B","outstanding":1,"wait":"spin"}"#);
const UDP_64: Ours = ours(
    "UDP 64 B, GSO",
    r#"{"type":"udp-stream","flows":1,"direction":"up","size":"64 B","offload":"gso"}"#,
);
const UDP_64_APART: Ours =
    ours("UDP 64 B", r#"{"type":"udp-stream","flows":1,"direction":"up","size":"64 B"}"#);
const UDP_64_MERGED: Ours = ours(
    "UDP 64 B, GSO and GRO",
    r#"{"type":"udp-stream","flows":1,"direction":"up","size":"64 B","offload":"gso-gro"}"#,
);
const UDP_1400: Ours = ours(
    "UDP 1400 B, GSO",
    r#"{"type":"udp-stream","flows":1,"direction":"up","size":"1400 B","offload":"gso"}"#,
);
const UDP_1400_MERGED: Ours = ours(
    "UDP 1400 B, GSO and GRO",
    r#"{"type":"udp-stream","flows":1,"direction":"up","size":"1400 B","offload":"gso-gro"}"#,
);
const PPS_SOCKET: Ours = ours(
    "64 B frames, sockets",
    r#"{"type":"pps","udp":{"flows":1,"direction":"up","size":"18 B","offload":"gso-gro"},"packets":{"engine":"socket","receiver":"socket","frame":64}}"#,
);
const PPS_XDP: Ours = ours(
    "64 B frames, AF_XDP at both ends",
    r#"{"type":"pps","udp":{"flows":1,"direction":"up","size":"18 B"},"packets":{"engine":"xdp","receiver":"xdp","frame":64}}"#,
);
const PPS_XDP_COUNT: Ours = ours(
    "64 B frames, AF_XDP into a counting drop",
    r#"{"type":"pps","udp":{"flows":1,"direction":"up","size":"18 B"},"packets":{"engine":"xdp","receiver":"count","frame":64}}"#,
);
const PPS_KERNEL: Ours = ours(
    "64 B frames, from the kernel into a counting drop",
    r#"{"type":"pps","udp":{"flows":1,"direction":"up","size":"18 B"},"packets":{"engine":"kernel","receiver":"count","frame":64}}"#,
);
const PPS_KERNEL_XDP: Ours = ours(
    "64 B frames, from the kernel to AF_XDP",
    r#"{"type":"pps","udp":{"flows":1,"direction":"up","size":"18 B"},"packets":{"engine":"kernel","receiver":"xdp","frame":64}}"#,
);
/// Payload of a 64-byte frame.
const IPERF3_64: Tool = Iperf3(&["-u", "-l", "18", "-b", "0"]);
const OPEN: Ours = ours(
    "open loop, 20,000/s",
    r#"{"type":"tcp-rr","size":"14 B","outstanding":1,"wait":"spin","rate":"20000 /s"}"#,
);
const OPEN_BLOCK: Ours = ours(
    "open loop, blocking, 20,000/s",
    r#"{"type":"tcp-rr","size":"14 B","outstanding":1,"wait":"block","rate":"20000 /s"}"#,
);
const STALLED: Ours = Ours { name: "open loop, 20,000/s, server stopped 50 ms", stall_ms: 50, ..OPEN };
const STALLED_CLOSED: Ours = Ours { name: "closed loop, server stopped 50 ms", stall_ms: 50, ..BLOCK };

const KEPT: &[Target] = &[at_least(ScheduleKept, 0.99), at_most(ScheduleKept, 1.01)];

/// All comparisons.
pub const CASES: [Case; 38] = [
    case("tcp-1", Stream, LEAN, Iperf3(&[]), &[at_least(Throughput, 2.1), at_most(CpuPerGigabyte, 0.35)]),
    case("tcp-1", Stream, LEAN, Iperf3(&["-Z"]), &[at_least(Throughput, 1.1), at_most(CpuPerGigabyte, 0.6)]),
    case("tcp-1", Stream, COPY, Iperf3(&[]), &[at_least(Throughput, 1.1), at_most(CpuPerGigabyte, 0.8)]),
    case("tcp-1", Stream, ZEROCOPY, Iperf3(&[]), &[]),
    case("tcp-1", Stream, IO_URING, Iperf3(&[]), &[]),
    case("tcp-1", Stream, LEAN, Nuttcp(&[]), &[]),
    case("tcp-1", Stream, LEAN, Qperf("tcp_bw", None), &[]),
    case("tcp-engines", Stream, ZEROCOPY, Tool::Ours(COPY), &[]),
    case("tcp-engines", Stream, IO_URING, Tool::Ours(LEAN), &[]),
    case("tcp-engines", Stream, IO_URING, Tool::Ours(COPY), &[]),
    case(
        "tcp-8",
        Stream,
        LEAN_8,
        Iperf3(&["-P", "8"]),
        &[at_least(Throughput, 4.0), at_most(CpuPerGigabyte, 0.25)],
    ),
    case("tcp-1000", Stream, LEAN_1000, Tool::Ours(LEAN_8), &[at_least(Throughput, 0.95)]),
    case("tcp-10000", Stream, LEAN_10000, Tool::Ours(LEAN_8), &[at_least(Throughput, 0.8)]),
    case("rr-block", RoundTrips, BLOCK, Sockperf(&["--tcp", "-m", "14"]), &[at_most(P50, 0.95)]),
    case("rr-block", RoundTrips, BLOCK, Qperf("tcp_lat", Some(14)), &[]),
    case("rr-spin", RoundTrips, SPIN, Sockperf(&["--tcp", "-m", "14", "--nonblocked"]), &[at_most(P50, 0.8)]),
    case("tcp-crr", Transactions, CRR, Neper(&["-Q", "64", "-R", "64"]), &[at_least(TransactionRate, 1.3)]),
    case("udp-rr", RoundTrips, UDP_BLOCK, Sockperf(&["-m", "64"]), &[]),
    case("udp-rr", RoundTrips, UDP_SPIN, Sockperf(&["-m", "64", "--nonblocked"]), &[]),
    case("udp-rr", RoundTrips, UDP_BLOCK, Qperf("udp_lat", Some(64)), &[]),
    packets(
        "udp-64",
        UDP_64,
        Iperf3(&["-u", "-l", "64", "-b", "0"]),
        // netduel counts each packet, which a test checks; iperf3 misses at most one in a hundred.
        &[at_least(PacketsOut, 4.0), at_least(Delivered, 4.0), at_least(PacketsPerSent, 0.99)],
    ),
    packets("udp-64", UDP_64, Iperf3(&["-u", "-l", "64", "-b", "0", "-w", "4M"]), &[]),
    packets("udp-64", UDP_64_APART, Iperf3(&["-u", "-l", "64", "-b", "0"]), &[]),
    packets("udp-64", UDP_64, Nuttcp(&["-u", "-l64", "-R0"]), &[]),
    case("udp-64-offload", Datagrams, UDP_64_MERGED, Iperf3(&["-u", "-l", "64", "-b", "0"]), &[]),
    packets("udp-mtu", UDP_1400, Iperf3(&["-u", "-l", "1400", "-b", "0"]), &[]),
    packets("udp-mtu", UDP_1400, Nuttcp(&["-u", "-l1400", "-R0"]), &[]),
    case("udp-mtu-offload", Datagrams, UDP_1400_MERGED, Iperf3(&["-u", "-l", "1400", "-b", "0"]), &[]),
    packets("pps-socket", PPS_SOCKET, IPERF3_64, &[at_least(PacketsOut, 4.0), at_least(Delivered, 4.0)]),
    packets("pps-xdp", PPS_XDP, IPERF3_64, &[]),
    packets("pps-xdp", PPS_XDP, Testpmd(64), &[at_least(Sent, 1.3), at_least(Delivered, 1.5)]),
    packets("pps-xdp", PPS_XDP_COUNT, IPERF3_64, &[]),
    packets("pps-kernel", PPS_KERNEL, IPERF3_64, &[at_least(Delivered, 20.0)]),
    packets("pps-kernel", PPS_KERNEL_XDP, IPERF3_64, &[]),
    alone("open-loop", OpenLoop, OPEN, KEPT),
    alone("open-loop", OpenLoop, OPEN_BLOCK, KEPT),
    alone("open-loop-stall", Stall, STALLED, &[at_least(StallLongest, 0.99), at_least(StallShown, 0.95)]),
    alone("open-loop-stall", Stall, STALLED_CLOSED, &[]),
];

/// The comparisons of the named cases, or all without names. A name selects every case with this prefix.
pub fn chosen(names: &[String]) -> Result<Vec<Case>> {
    for name in names {
        if !CASES.iter().any(|case| case.name.starts_with(name.as_str())) {
            let mut known: Vec<&str> = CASES.iter().map(|case| case.name).collect();
            known.dedup();
            bail!("there is no case `{name}`; there are: {}", known.join(", "));
        }
    }
    let is_chosen = |case: &&Case| {
        let exact = names.iter().any(|name| name == case.name);
        let begins = |name: &String| {
            case.name.starts_with(name.as_str()) && !CASES.iter().any(|other| other.name == name)
        };
        names.is_empty() || exact || names.iter().any(begins)
    };
    Ok(CASES.iter().filter(is_chosen).copied().collect())
}

#[cfg(test)]
mod tests {
    use netduel_model::workload::{Traffic, Workload};
    use serde_json::Value;

    use super::*;
    use crate::tool;

    fn names(words: &[&str]) -> Vec<&'static str> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let mut names: Vec<&str> = chosen(&words).unwrap().iter().map(|case| case.name).collect();
        names.dedup();
        names
    }

    #[test]
    fn every_workload_is_one_of_the_model() {
        for case in CASES {
            let workload = tool::workload(case.ours.traffic, 1).unwrap();
            let read: Workload = serde_json::from_value(workload.clone()).unwrap();
            assert_eq!(read.timing.duration.0, 1_000_000_000, "{}", case.name);
            assert_eq!(read.out_of_range(), None, "{}", case.name);
            assert_holds(&serde_json::to_value(&read).unwrap(), &workload, case.name);
        }
    }

    /// A key that the model does not know is passed over when a workload is read.
    fn assert_holds(read: &Value, given: &Value, case: &str) {
        match given.as_object() {
            Some(given) => given.iter().for_each(|(key, value)| assert_holds(&read[key], value, case)),
            None => assert_eq!(read, given, "{case}"),
        }
    }

    /// The ratios of the documentation are those of an engine as a user gets it.
    #[test]
    fn every_tcp_stream_has_the_default_block_of_its_engine() {
        let mut streams = 0;
        for case in CASES {
            let read: Workload =
                serde_json::from_value(tool::workload(case.ours.traffic, 1).unwrap()).unwrap();
            if let Traffic::TcpStream(stream) = read.traffic {
                assert_eq!(stream.block, stream.engine.default_block(), "{}: {}", case.name, case.ours.name);
                streams += 1;
            }
        }
        assert!(streams >= 6, "{streams}");
    }

    #[test]
    fn every_target_is_for_a_metric_of_its_case() {
        for case in CASES {
            for target in case.targets {
                assert!(case.kind.metrics().contains(&target.metric), "{}: {:?}", case.name, target.metric);
            }
        }
    }

    #[test]
    fn name_selects_a_case_or_all_with_its_prefix() {
        assert_eq!(names(&["tcp-1"]), ["tcp-1"]);
        assert_eq!(names(&["rr"]), ["rr-block", "rr-spin"]);
        assert_eq!(names(&["udp-64", "open-loop"]), ["udp-64", "open-loop"]);
        assert_eq!(names(&[]).len(), 18);
        let error = chosen(&["tpc-1".to_owned()]).unwrap_err().to_string();
        assert!(error.contains("`tpc-1`") && error.contains("tcp-1000"), "{error}");
    }
}
