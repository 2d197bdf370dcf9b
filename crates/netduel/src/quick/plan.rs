//! Converts the options of a quick test to a plan of one trial. It uses the plan's own types and validation, so that a quick test
//! and a plan have the same rules.
use std::collections::BTreeMap;
use std::net::IpAddr;

use netduel_model::ids::{ArmName, HostName, WorkloadName};
use netduel_model::packet_path::PacketPath;
use netduel_model::plan::spec::{
    ArmSpec, DesignSpec, HostSpec, LaunchKind, PlanSpec, SearchSpec, SettingsSpec, WorkloadSpec, WorkloadType,
};
use netduel_model::plan::{self, ResolvedPlan};
use netduel_model::run::QUICK_TEST;
use netduel_model::shell;
use netduel_model::units::{BitRate, Nanos};
use netduel_model::workload::{Direction, Family};
use netduel_report::words;

use super::args::{
    BulkArgs, CommonArgs, CrrArgs, PpsArgs, RequestArgs, RrArgs, TcpArgs, UdpArgs, WayArgs, WindowArgs,
};
use super::options;
use crate::exit::{Failure, Kind, OrFail as _};

/// Stands in errors for the file name of a plan.
const SOURCE: &str = "the command line";

/// A quick test from the command line: a type of workload and its settings.
#[derive(Debug)]
pub struct Test {
    kind: WorkloadType,
    settings: SettingsSpec,
    search: Option<SearchSpec>,
    /// The time limit of a search, if set.
    search_time: Option<Nanos>,
    /// The rate of each stream, if there are several.
    pub rate_per_stream: Option<BitRate>,
}

fn direction(way: WayArgs) -> Option<Direction> {
    match way {
        WayArgs { bidir: true, .. } => Some(Direction::Both),
        WayArgs { reverse: true, .. } => Some(Direction::Down),
        WayArgs { .. } => None,
    }
}

/// As in iperf3, the rate of the command line is per stream; a plan's rate is the total of all streams.
fn total(bulk: &BulkArgs, streams: u32) -> Option<BitRate> {
    bulk.bitrate.map(|each| BitRate(each.0.saturating_mul(u64::from(streams))))
}

impl Test {
    fn new(kind: WorkloadType, settings: SettingsSpec) -> Self {
        Self { kind, settings, search: None, search_time: None, rate_per_stream: None }
    }

    fn bulk(mut self, bulk: &BulkArgs, streams: u32) -> Self {
        self.settings.direction = direction(bulk.way);
        self.settings.rate = total(bulk, streams);
        self.settings.volume = bulk.bytes;
        self.rate_per_stream = bulk.bitrate.filter(|_| streams > 1);
        self
    }

    /// `netduel tcp`, or with `-u` the same as `netduel udp`.
    pub fn tcp(args: &TcpArgs) -> Self {
        if args.udp {
            return Self::udp(&UdpArgs {
                common: args.common.clone(),
                parallel: args.parallel,
                bulk: args.bulk.clone(),
                length: args.length,
                window: WindowArgs { window: args.window },
                offload: None,
            });
        }
        let settings = SettingsSpec {
            streams: Some(args.parallel),
            block: args.length,
            window: args.window,
            congestion: args.congestion.congestion.clone(),
            engine: args.engine,
            mss: args.set_mss,
            ..SettingsSpec::default()
        };
        Self::new(WorkloadType::TcpStream, settings).bulk(&args.bulk, args.parallel)
    }

    /// `netduel udp`.
    pub fn udp(args: &UdpArgs) -> Self {
        let settings = SettingsSpec {
            flows: Some(args.parallel),
            size: args.length,
            window: args.window.window,
            offload: args.offload,
            ..SettingsSpec::default()
        };
        Self::new(WorkloadType::UdpStream, settings).bulk(&args.bulk, args.parallel)
    }

    /// `netduel pps`: a test for each frame size and number of queues, sizes first.
    pub fn packets(args: &PpsArgs) -> Vec<Self> {
        let or_default = |list: &[u32]| -> Vec<Option<u32>> {
            if list.is_empty() { vec![None] } else { list.iter().copied().map(Some).collect() }
        };
        let of = |frame: Option<u32>, queues: Option<u32>| {
            let settings = SettingsSpec {
                direction: direction(args.way),
                generator: args.generator,
                receiver: args.receiver,
                packet_rate: args.rate,
                window: args.window.window,
                flows: args.parallel,
                frame,
                queues,
                ..SettingsSpec::default()
            };
            let search = (!args.search.is_empty()).then(|| SearchSpec::Presets(args.search.clone()));
            let search_time = args.search_time;
            Self { search, search_time, ..Self::new(WorkloadType::Pps, settings) }
        };
        let queues = or_default(&args.queues);
        let frames = or_default(&args.frame);
        frames.iter().flat_map(|frame| queues.iter().map(|queues| of(*frame, *queues))).collect()
    }

    /// `netduel rr`.
    pub fn round_trip(args: &RrArgs) -> Self {
        let mut settings = requests(&args.requests);
        settings.timestamps = args.timestamps.then_some(true);
        if args.udp {
            Self::new(WorkloadType::UdpRr, settings)
        } else {
            Self::new(WorkloadType::TcpRr, settings)
        }
    }

    /// `netduel crr`.
    pub fn connections(args: &CrrArgs) -> Self {
        let settings = SettingsSpec { response_size: args.response_length, ..requests(&args.requests) };
        Self::new(WorkloadType::TcpCrr, settings)
    }

    /// The plan: this test, once, with the server paired as `at` at the data address `address`.
    pub fn plan(&self, common: &CommonArgs, at: &str, address: IpAddr) -> Result<ResolvedPlan, Failure> {
        self.check_frame(address)?;
        let spec = self.spec(common, at, address)?;
        let mut plan = plan::check(&spec, SOURCE)
            .map_err(|errors| Failure::message(Kind::Usage, options::message(&errors)))?;
        // An A/A comparison has a copy of the arm; a quick test has the arm only.
        plan.arms.truncate(1);
        plan.design.aa = false;
        plan.design.blocks_min = 1;
        plan.design.blocks_max = 1;
        Ok(plan)
    }

    /// Refuses a frame that is too small for IPv6. The pairing can decide the IP version, so the error names both ways out.
    fn check_frame(&self, address: IpAddr) -> Result<(), Failure> {
        let least = PacketPath::frame_least(Family::Ipv6);
        let Some(frame) = self.settings.frame.filter(|frame| address.is_ipv6() && *frame < least) else {
            return Ok(());
        };
        Err(Failure::message(
            Kind::Usage,
            format!(
                "--frame {frame} is too small for a test over IPv6, whose frames have at least {least} bytes; use --frame \
                 {least} or more, or a pairing with an IPv4 address"
            ),
        ))
    }

    /// The text that is stored as the plan of this test: the command that repeats it, and the test as a plan file.
    pub fn plan_text(
        &self,
        common: &CommonArgs,
        at: &str,
        address: IpAddr,
        command: &[String],
    ) -> Result<String, Failure> {
        let file = plan::text_of(&self.spec(common, at, address)?).unwrap_or_default();
        Ok(format!("{QUICK_TEST}\n# {}\n\n{file}", words::plain(&shell::line(command))))
    }

    fn spec(&self, common: &CommonArgs, at: &str, address: IpAddr) -> Result<PlanSpec, Failure> {
        let host = |launch| HostSpec { launch: Some(launch), ..HostSpec::default() };
        let server = HostSpec {
            serve: Some(at.to_owned()),
            addresses: Some(vec![address]),
            ..host(LaunchKind::Paired)
        };
        let arm = ArmSpec {
            name: Some(ArmName::new("path").kind(Kind::Internal)?),
            client: Some(HostName::new("client").kind(Kind::Internal)?),
            server: Some(HostName::new("server").kind(Kind::Internal)?),
            expect_mbps: common.expect_mbps,
            ..ArmSpec::default()
        };
        Ok(PlanSpec {
            name: Some(format!("quick-{}", self.kind.word())),
            question: Some(format!("What is the result of {} on this path?", self.kind.word())),
            hosts: Some(BTreeMap::from([
                ("client".to_owned(), host(LaunchKind::Local)),
                ("server".to_owned(), server),
            ])),
            arms: Some(vec![arm]),
            workloads: Some(vec![self.workload(common, address)?]),
            design: Some(DesignSpec { aa: Some(true), ..DesignSpec::default() }),
            ..PlanSpec::default()
        })
    }

    fn workload(&self, common: &CommonArgs, address: IpAddr) -> Result<WorkloadSpec, Failure> {
        let usual = Nanos(common.time.0.saturating_add(common.omit.map_or(0, |omit| omit.0)));
        // With a volume every byte counts: a tenth of the duration may be longer than the whole transfer.
        let warmup = common.omit.or(self.settings.volume.map(|_| Nanos(0)));
        Ok(WorkloadSpec {
            name: Some(WorkloadName::new(self.kind.word()).kind(Kind::Internal)?),
            kind: Some(self.kind),
            duration: if self.search.is_some() { self.search_time } else { Some(usual) },
            warmup,
            // As in iperf3, what is left after the omitted time is the result.
            cooldown: warmup.map(|_| Nanos(0)),
            search: self.search.clone(),
            settings: SettingsSpec {
                family: Some(if address.is_ipv4() { Family::Ipv4 } else { Family::Ipv6 }),
                pin_client: common.pin_client.clone(),
                pin_server: common.pin_server.clone(),
                dscp: common.dscp,
                ..self.settings.clone()
            },
            ..WorkloadSpec::default()
        })
    }
}

fn requests(args: &RequestArgs) -> SettingsSpec {
    SettingsSpec {
        size: Some(args.length),
        outstanding: args.rate.is_none().then_some(args.parallel),
        request_rate: args.rate,
        wait: Some(args.wait),
        congestion: args.congestion.congestion.clone(),
        ..SettingsSpec::default()
    }
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser};
    use netduel_model::workload::Traffic;

    use super::super::reach::{ANY_IPV4, ANY_IPV6};
    use super::*;

    #[derive(Parser)]
    struct Tcp {
        #[command(flatten)]
        args: TcpArgs,
    }

    #[derive(Parser)]
    struct Pps {
        #[command(flatten)]
        args: PpsArgs,
    }

    fn tcp(words: &str) -> (Test, CommonArgs) {
        let args = Tcp::try_parse_from(words.split(' ')).unwrap_or_else(|error| panic!("{error}")).args;
        (Test::tcp(&args), args.common)
    }

    fn json(words: &str) -> serde_json::Value {
        let (test, common) = tcp(words);
        let plan = test.plan(&common, "server", ANY_IPV4).unwrap_or_else(|error| panic!("{error}"));
        serde_json::to_value(&plan.arms[0].workloads[0]).expect("json")
    }

    #[test]
    fn bit_rate_is_that_of_each_stream_as_in_iperf3() {
        let rate = |words: &str| json(words)["traffic"]["rate"].clone();
        assert_eq!(rate("tcp far -b 100M"), "100 Mbit/s");
        assert_eq!(rate("tcp far -b 100M -P 8"), "800 Mbit/s");
        assert_eq!(rate("tcp far -u -b 10M -P 3"), "30 Mbit/s");
        assert_eq!(tcp("tcp far -b 100M -P 8").0.rate_per_stream, Some(BitRate(100_000_000)));
        assert_eq!(tcp("tcp far -b 100M").0.rate_per_stream, None);
    }

    #[test]
    fn omitted_time_precedes_the_duration_and_a_volume_has_no_warm_up() {
        let timing = |words: &str| {
            let timing = &json(words)["timing"];
            [&timing["duration"], &timing["warmup"], &timing["cooldown"]]
                .map(|time| time.as_str().unwrap_or("").to_owned())
        };
        assert_eq!(timing("tcp far -t 10"), ["10 s", "1 s", "500 ms"]);
        assert_eq!(timing("tcp far -t 10 -O 2"), ["12 s", "2 s", "0 ns"]);
        assert_eq!(timing("tcp far -n 1M"), ["10 s", "0 ns", "0 ns"]);
        assert_eq!(timing("tcp far -n 1M -O 1"), ["11 s", "1 s", "0 ns"], "as the help of --bytes has it");
        let help = Tcp::command().render_long_help().to_string();
        let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(help.contains("without --omit no warm-up is excluded then"), "{help}");
    }

    #[test]
    fn stored_text_is_a_plan_file_of_the_same_workload() {
        for words in [
            "tcp far",
            "tcp far -u -b 10M -P 3 -R",
            "tcp far -P 8 -n 1G --engine copy --pin-client 0,2 -C cubic",
        ] {
            let (test, common) = tcp(words);
            let command: Vec<String> = words.split(' ').map(str::to_owned).collect();
            let text = test.plan_text(&common, "far:5210", ANY_IPV4, &command).expect("it is a plan");
            assert!(text.starts_with(&format!("{QUICK_TEST}\n# {words}\n")), "{text}");
            let read = plan::parse(&text, "quick.toml").unwrap_or_else(|error| panic!("{error}\n{text}"));
            let own = test.plan(&common, "far:5210", ANY_IPV4).expect("it is a plan");
            assert_eq!(read.arms[0].workloads, own.arms[0].workloads, "{text}");
            assert_eq!(read.hosts, own.hosts, "{text}");
            assert!(read.design.aa, "{text}");
        }
    }

    #[test]
    fn stored_command_keeps_its_words_apart() {
        let (test, common) = tcp("tcp far");
        let command = ["netduel", "tcp", "far", "--note", "rack=a b"].map(str::to_owned);
        let text = test.plan_text(&common, "far:5210", ANY_IPV4, &command).expect("it is a plan");
        assert!(text.starts_with(&format!("{QUICK_TEST}\n# netduel tcp far --note 'rack=a b'\n")), "{text}");
    }

    #[test]
    fn errors_name_the_option_in_place_of_the_key() {
        for (words, wrong) in [
            ("tcp far -P 2000 --engine zerocopy", "-P (--parallel): "),
            ("tcp far -l 1T", "-l (--length): "),
            ("tcp far -t 1 -O 9 -C far-too-long-a-name", "-C (--congestion): "),
        ] {
            let (test, common) = tcp(words);
            let error = test.plan(&common, "server", ANY_IPV4).expect_err(words);
            assert!(error.to_string().contains(wrong) && error.kind == Kind::Usage, "{words}: {error}");
        }
        // The parser has the range of numbers, and names the option itself.
        let refused = Pps::try_parse_from(["pps", "far", "--frame", "64,63"]);
        let error = refused.err().map(|error| error.to_string()).unwrap_or_default();
        assert!(
            error.contains("'63' for '--frame") && error.contains("64 to 1518 bytes is allowed"),
            "{error}"
        );
        let args = Pps::try_parse_from(["pps", "far", "--frame", "64,1518"])
            .unwrap_or_else(|error| panic!("{error}"))
            .args;
        for test in Test::packets(&args) {
            let plan = test.plan(&args.common, "server", ANY_IPV4).expect("both are allowed");
            assert!(matches!(plan.arms[0].workloads[0].traffic, Traffic::Pps(_)));
        }
    }

    #[test]
    fn frame_too_small_for_ipv6_names_the_value_and_both_remedies() {
        let args = Pps::try_parse_from(["pps", "far", "--frame", "64,82,1518"])
            .unwrap_or_else(|error| panic!("{error}"))
            .args;
        let errors = Test::packets(&args).into_iter().map(|test| {
            let failure = test.plan(&args.common, "server", ANY_IPV6).err()?;
            assert_eq!(failure.kind, Kind::Usage);
            Some(failure.to_string())
        });
        let expected = "--frame 64 is too small for a test over IPv6, whose frames have at least 82 bytes; use --frame 82 \
                        or more, or a pairing with an IPv4 address";
        assert_eq!(errors.collect::<Vec<_>>(), [Some(expected.to_owned()), None, None]);
    }
}
