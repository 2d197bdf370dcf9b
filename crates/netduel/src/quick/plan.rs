//! From the options of a quick test to a plan of one trial. The plan's own rules check the values, so that a quick test and a
//! plan never disagree about what is allowed.
use std::fmt::Write as _;
use std::net::IpAddr;

use netduel_model::plan::{self, CoresSpec, ResolvedPlan};
use netduel_model::units::Nanos;

use super::args::{CommonArgs, CrrArgs, PpsArgs, RrArgs, TcpArgs, UdpArgs, WaitArg, WayArgs};
use super::options;
use crate::exit::{Failure, Kind};

/// What errors name in place of a plan's file.
const SOURCE: &str = "the command line";

/// A quick test as the command line gives it: what type of workload, and its settings as they stand in a plan.
#[derive(Debug)]
pub struct Test {
    /// `tcp-stream`, `udp-stream`, `tcp-rr`, `udp-rr`, `tcp-crr` or `pps`.
    kind: &'static str,
    /// Key and value as TOML.
    settings: Vec<(&'static str, String)>,
    /// Whether it is a search, which has a time of its own.
    is_search: bool,
    /// That time, when it is given.
    search_time: Option<Nanos>,
}

/// A text as TOML: JSON's strings are TOML's basic strings.
fn quoted(text: &str) -> String {
    serde_json::Value::String(text.to_owned()).to_string()
}

impl Test {
    fn new(kind: &'static str) -> Self {
        Self { kind, settings: Vec::new(), is_search: false, search_time: None }
    }

    fn set(&mut self, key: &'static str, value: &dyn ToString) {
        self.settings.push((key, value.to_string()));
    }

    fn set_text(&mut self, key: &'static str, value: &str) {
        self.settings.push((key, quoted(value)));
    }

    /// A quantity with its unit, which is text in a plan.
    fn set_quantity(&mut self, key: &'static str, value: Option<impl ToString>) {
        if let Some(value) = value {
            self.set_text(key, &value.to_string());
        }
    }

    fn set_way(&mut self, way: WayArgs) {
        match way {
            WayArgs { bidir: true, .. } => self.set_text("direction", "both"),
            WayArgs { reverse: true, .. } => self.set_text("direction", "down"),
            WayArgs { .. } => {}
        }
    }

    /// `netduel tcp`, or with `-u` what `netduel udp` is.
    pub fn tcp(args: &TcpArgs) -> Result<Self, Failure> {
        if args.udp {
            return Self::udp_of_tcp(args);
        }
        let mut test = Self::new("tcp-stream");
        test.set("streams", &args.parallel);
        test.set_way(args.way);
        test.set_quantity("rate", args.bitrate);
        test.set_quantity("block", args.length);
        test.set_quantity("volume", args.bytes);
        test.set_quantity("window", args.window);
        test.set_quantity("congestion", args.congestion.as_deref());
        test.set_quantity("engine", args.engine.as_deref());
        if let Some(mss) = args.set_mss {
            test.set("mss", &mss);
        }
        Ok(test)
    }

    fn udp_of_tcp(args: &TcpArgs) -> Result<Self, Failure> {
        let foreign = [
            ("-M", args.set_mss.is_some()),
            ("-C", args.congestion.is_some()),
            ("--engine", args.engine.is_some()),
        ];
        if let Some((option, _)) = foreign.into_iter().find(|(_, given)| *given) {
            return Err(Failure::message(
                Kind::Usage,
                format!("{option} is for TCP, and -u asks for UDP: leave one out"),
            ));
        }
        Ok(Self::udp(&UdpArgs {
            common: args.common.clone(),
            parallel: args.parallel,
            way: args.way,
            bitrate: args.bitrate,
            length: args.length,
            bytes: args.bytes,
            window: args.window,
            offload: None,
        }))
    }

    /// `netduel udp`.
    pub fn udp(args: &UdpArgs) -> Self {
        let mut test = Self::new("udp-stream");
        test.set("flows", &args.parallel);
        test.set_way(args.way);
        test.set_quantity("rate", args.bitrate);
        test.set_quantity("size", args.length);
        test.set_quantity("volume", args.bytes);
        test.set_quantity("window", args.window);
        test.set_quantity("offload", args.offload.as_deref());
        test
    }

    /// `netduel pps`: a test for each size of frames and number of queues, sizes first.
    pub fn packets(args: &PpsArgs) -> Vec<Self> {
        let or_default = |list: &[u32]| -> Vec<Option<u32>> {
            if list.is_empty() { vec![None] } else { list.iter().copied().map(Some).collect() }
        };
        let of = |frame: Option<u32>, queues: Option<u32>| {
            let mut test = Self::new("pps");
            test.set_way(args.way);
            test.set_quantity("generator", args.generator.as_deref());
            test.set_quantity("receiver", args.receiver.as_deref());
            test.set_quantity("packet_rate", args.rate);
            test.set_quantity("window", args.window);
            if !args.search.is_empty() {
                let goals: Vec<String> = args.search.iter().map(|goal| quoted(goal)).collect();
                test.set("search", &format!("[{}]", goals.join(", ")));
                (test.is_search, test.search_time) = (true, args.search_time);
            }
            for (key, value) in [("frame", frame), ("queues", queues), ("flows", args.parallel)] {
                if let Some(value) = value {
                    test.set(key, &value);
                }
            }
            test
        };
        let queues = or_default(&args.queues);
        let frames = or_default(&args.frame);
        frames.iter().flat_map(|frame| queues.iter().map(|queues| of(*frame, *queues))).collect()
    }

    /// `netduel rr`.
    pub fn round_trip(args: &RrArgs) -> Self {
        let mut test = Self::new(if args.udp { "udp-rr" } else { "tcp-rr" });
        test.set_quantity("size", Some(args.length));
        test.set_loop(args.parallel, args.rate.map(|rate| rate.to_string()), args.wait);
        test.set_quantity("congestion", args.congestion.as_deref());
        if args.timestamps {
            test.set("timestamps", &true);
        }
        test
    }

    /// `netduel crr`.
    pub fn connections(args: &CrrArgs) -> Self {
        let mut test = Self::new("tcp-crr");
        test.set_quantity("size", Some(args.length));
        test.set_loop(args.parallel, args.rate.map(|rate| rate.to_string()), args.wait);
        test.set_quantity("congestion", args.congestion.as_deref());
        test
    }

    fn set_loop(&mut self, outstanding: u32, rate: Option<String>, wait: WaitArg) {
        match rate {
            Some(rate) => self.set_text("request_rate", &rate),
            None => self.set("outstanding", &outstanding),
        }
        self.set_text(
            "wait",
            match wait {
                WaitArg::Block => "block",
                WaitArg::Spin => "spin",
                WaitArg::BusyPoll => "busy-poll",
            },
        );
    }

    /// The plan: this test, once, over the server at `at`, whose data address is `address`. Also its text.
    pub fn plan(
        &self,
        common: &CommonArgs,
        at: &str,
        address: IpAddr,
    ) -> Result<(String, ResolvedPlan), Failure> {
        let text = self.text(common, at, address);
        let mut plan = plan::parse(&text, SOURCE)
            .map_err(|errors| Failure::message(Kind::Usage, options::told(&errors)))?;
        // A comparison of an arm with itself has a copy of the arm; a test is the arm alone, once.
        plan.arms.truncate(1);
        plan.design.aa = false;
        plan.design.blocks_min = 1;
        plan.design.blocks_max = 1;
        Ok((text, plan))
    }

    fn text(&self, common: &CommonArgs, at: &str, address: IpAddr) -> String {
        let mut text = format!(
            "name = \"quick-{kind}\"\nquestion = \"What does {kind} give on this path?\"\n\
             [hosts.client]\nlaunch = \"local\"\n\
             [hosts.server]\nlaunch = \"paired\"\nserve = {at}\naddresses = [\"{address}\"]\n\
             [[arms]]\nname = \"path\"\nclient = \"client\"\nserver = \"server\"\n{expect}\
             [design]\naa = true\n\
             [[workloads]]\nname = \"{kind}\"\ntype = \"{kind}\"\nfamily = \"{family}\"\n",
            kind = self.kind,
            at = quoted(at),
            expect = common.expect_mbps.map(|mbps| format!("expect_mbps = {mbps}\n")).unwrap_or_default(),
            family = if address.is_ipv4() { "ipv4" } else { "ipv6" },
        );
        let usual = Nanos(common.time.0.saturating_add(common.omit.map_or(0, |omit| omit.0)));
        let time = if self.is_search { self.search_time } else { Some(usual) };
        if let Some(time) = time {
            let _ = writeln!(text, "duration = \"{time}\"");
        }
        // Of so many bytes, all count: a tenth of the time may be more than they take.
        let has_volume = self.settings.iter().any(|(key, _)| *key == "volume");
        if let Some(omit) = common.omit.or(has_volume.then_some(Nanos(0))) {
            let _ = writeln!(text, "warmup = \"{omit}\"");
            if omit == Nanos(0) {
                text.push_str("cooldown = \"0 s\"\n");
            }
        }
        for (key, cores) in [("pin_client", &common.pin_client), ("pin_server", &common.pin_server)] {
            let value = match cores {
                Some(CoresSpec::Auto) => quoted("auto"),
                Some(CoresSpec::List(cores)) => format!("{cores:?}"),
                None => continue,
            };
            let _ = writeln!(text, "{key} = {value}");
        }
        for (key, value) in &self.settings {
            let _ = writeln!(text, "{key} = {value}");
        }
        text
    }
}
