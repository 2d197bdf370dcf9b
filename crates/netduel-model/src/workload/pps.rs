//! `pps`: packets of one size, from sockets, by kernel bypass or from the kernel itself: how many a second.
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

mod dpdk;
mod search;

use super::by_hand::{self, ByHand, QuickTest};
use super::facts::{End, Facts};
use super::given::{Given, Places};
use super::particular::Particular;
use super::setting::{self, OutOfRange, Range, Setting};
use super::terms::{Direction, Family, UdpOffload, Wait};
use super::timing::Timing;
use super::udp_stream::{self, FlowTuning, UdpStream};
use super::work_unit::WorkUnit;
use crate::packet_path::{
    FRAME_LEAST, FRAME_MOST, KERNEL_FLOWS_MOST, PacketEngine, PacketPath, PacketReceiver,
};
use crate::plan::problem::Problems;
use crate::search::{Search, SearchGoal, SearchPreset};
use crate::units::{BitRate, Bytes, human_si, plural};

pub(crate) use search::duration as search_duration;

/// The settings of `pps`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Pps {
    /// The flows of its datagrams, each of which is a packet.
    pub udp: UdpStream,
    /// How packets are made and received.
    pub packets: PacketPath,
}

impl Pps {
    /// Flows where the plan sets none: enough for the hashes of a NIC to reach all of some queues, and few enough for the flow tables of
    /// a cloud.
    pub const FLOWS: u32 = 16;
    /// Buffer of each socket while a search runs, when the plan does not say: some 700 packets. A large buffer takes for seconds what the
    /// program does not, and a step of 2 s would lose nothing at a rate that cannot last.
    pub const SEARCH_WINDOW: Bytes = Bytes(256 << 10);
}

impl Particular for Pps {
    fn narrowed(&self, key: &str, range: Range, family: Family) -> Option<(Range, String)> {
        match key {
            "frame" if family == Family::Ipv6 => {
                let least = range.least.max(PacketPath::frame_least(family).into());
                Some((Range { least, ..range }, " over IPv6".to_owned()))
            }
            // Each has a thread that never leaves its core.
            "flows" if self.packets.engine == PacketEngine::Kernel => {
                let most = range.most.min(KERNEL_FLOWS_MOST);
                Some((Range { most, ..range }, " with the generator `kernel`".to_owned()))
            }
            _ => None,
        }
    }

    /// The datagrams fill the frames. A plan sets the size of the frames only.
    fn misfit(&self, family: Family) -> Option<OutOfRange> {
        let Self { udp, packets } = self;
        let payload = PacketPath::payload(packets.frame, family).unwrap_or_default();
        (udp.size != payload).then(|| OutOfRange {
            key: "size",
            value: udp.size.0,
            range: Range::byte_count(payload.0, payload.0),
            beside: format!(" with frames of {} bytes", packets.frame),
        })
    }

    fn set_step(&mut self, packets_per_s: Option<u64>) {
        self.packets.search = None;
        let bits = |rate: u64| BitRate(rate.saturating_mul(self.udp.size.0).saturating_mul(8));
        self.udp.rate = packets_per_s.map(bits);
    }

    fn set_interfaces(&mut self, client: Option<&String>, server: Option<&String>) {
        self.packets.client_interface = client.cloned();
        self.packets.server_interface = server.cloned();
    }
}

/// DPDK itself has room for 1024 (`RTE_MAX_QUEUES_PER_PORT`).
const DPDK_QUEUES: Range = Range::count(1, 128);

/// Its settings in a plan.
pub(super) const SETTINGS: &[Setting] = &[
    setting::FAMILY,
    setting::PIN_CLIENT,
    setting::PIN_SERVER,
    udp_stream::FLOWS.described_by(|| {
        format!(
            "default {}. Generator `kernel`: default 1, at most {KERNEL_FLOWS_MOST}, and each flow has a thread that keeps a core busy. \
             `dpdk`: default 1 with a receiver of one queue; with more than 1 testpmd chooses the number",
            Pps::FLOWS
        )
    }),
    Setting::free("direction").described(
        "default `up`; with `both`, rates are the sum of the two directions and loss is that of all datagrams; only sockets have another \
         direction than `up`",
    ),
    setting::WINDOW.described_by(|| {
        format!(
            "default: {}; {} with `search`, because large buffers hide a loss",
            UdpStream::receive_buffers_words(),
            Pps::SEARCH_WINDOW
        )
    }),
    Setting::free("wait").described("the receiver `xdp`, `spin` (default) or `busy-poll`"),
    Setting::free("generator"),
    Setting::free("receiver"),
    Setting::free("frames").of_workload(),
    Setting::free("search").of_workload(),
    Setting::within("frame", Range::byte_count(FRAME_LEAST as u64, FRAME_MOST as u64)).advise(
        "a frame contains its check sequence of 4 bytes, and a datagram with the identity of its trial and its number",
    ),
    // More than any interface carries; keeps the payload rate within its type.
    Setting::within("packet_rate", Range::per_second(1, 1_000_000_000))
        .advise("leave `packet_rate` out to send as fast as it can"),
    Setting::within("queues", Range::count(1, setting::THREADS_MOST))
        .advise("leave `queues` out for all of the interface"),
    Setting::free("dpdk"),
    Setting::within("dpdk.queues", DPDK_QUEUES).advise("no more than the port has"),
    Setting::within("dpdk.receive_queues", DPDK_QUEUES).advise("no more than the port has"),
    // What drivers have.
    Setting::within("dpdk.descriptors", Range::count(32, 32_768)),
];

/// A quantity of the settings, in the unit of its range.
pub(super) fn number(settings: &Pps, key: &str, _timing: &Timing) -> Option<u64> {
    match key {
        "flows" => Some(settings.udp.flows.into()),
        "window" => settings.udp.tuning.window.map(|window| window.0),
        "frame" => Some(settings.packets.frame.into()),
        "packet_rate" => {
            let bits = settings.udp.size.0.saturating_mul(8).max(1);
            settings.udp.rate.map(|rate| rate.0 / bits)
        }
        "queues" => settings.packets.queues.map(u64::from),
        "dpdk.queues" => settings.packets.dpdk.as_ref().map(|dpdk| dpdk.queues.into()),
        "dpdk.receive_queues" => settings.packets.dpdk.as_ref().map(|dpdk| dpdk.receive_queues.into()),
        "dpdk.descriptors" => settings.packets.dpdk.as_ref()?.descriptors.map(u64::from),
        _ => None,
    }
}

pub(super) fn facts(settings: &Pps) -> Facts<'_> {
    let flows = udp_stream::facts(&settings.udp);
    let search = settings.packets.search.as_ref();
    Facts {
        unit: WorkUnit::Packet,
        end: search.map_or(flows.end, End::Search),
        packets: Some(&settings.packets),
        default_metrics: search.map_or_else(|| flows.default_metrics.clone(), Search::metrics),
        possible_metrics: search.map_or(flows.possible_metrics, Search::possible_metrics),
        ..flows
    }
}

/// The settings with every default.
pub(super) fn resolve(given: &Given<'_>) -> Pps {
    let settings = given.settings;
    let family = settings.family.unwrap_or_default();
    let engine = settings.generator.unwrap_or_default();
    let receiver = settings.receiver.unwrap_or(engine.receiver());
    let frame = settings.frame.unwrap_or(PacketPath::frame_least(family));
    // A frame without room for a payload is refused by its range.
    let size = PacketPath::payload(frame, family).unwrap_or(Bytes(1));
    let dpdk = dpdk::resolve(settings, engine, receiver);
    let receive_queues = dpdk.as_ref().map_or(1, |dpdk| dpdk.receive_queues);
    let flows = match engine {
        PacketEngine::Kernel => 1,
        // What it makes of more, depends on its version: see `DpdkFlows`.
        PacketEngine::Dpdk if receive_queues == 1 => 1,
        _ => Pps::FLOWS,
    };
    let udp = UdpStream {
        flows: settings.flows.unwrap_or(flows),
        direction: settings.direction.unwrap_or_default(),
        size,
        rate: settings.packet_rate.map(|rate| BitRate(rate.0.saturating_mul(size.0).saturating_mul(8))),
        // A sender joins datagrams only where its interface is seen to cut them.
        offload: if engine == PacketEngine::Socket || receiver == PacketReceiver::Socket {
            UdpOffload::GsoGro
        } else {
            UdpOffload::None
        },
        tuning: FlowTuning {
            volume: None,
            window: settings.window.or(given.search.is_some().then_some(Pps::SEARCH_WINDOW)),
        },
    };
    let packets = PacketPath {
        engine,
        receiver,
        frame,
        queues: settings.queues,
        busy_poll: settings.wait == Some(Wait::BusyPoll),
        search: given.search.map(search::resolve),
        client_interface: None,
        server_interface: None,
        dpdk,
    };
    Pps { udp, packets }
}

/// Notes what does not go together.
pub(super) fn check(settings: &Pps, given: &Given<'_>, places: &Places<'_>, problems: &mut Problems<'_>) {
    let Pps { udp: UdpStream { direction, rate, flows, .. }, packets } = settings;
    let family = given.settings.family.unwrap_or_default();
    let at = |key: &str| places.at(key);
    if let Some(search) = given.search {
        search::check_goals(search, &at("search"), problems);
        search::check_time(search, given.duration, &at("duration"), problems);
    }
    if *direction != Direction::Up && packets.is_any_raw() {
        let wrong = format!("is \"{}\", but without sockets only the client sends", direction.word());
        let allowed = "set it to `up`, and exchange `client` and `server` of the arm for the other direction";
        problems.add(&at("direction"), wrong, allowed);
    }
    if rate.is_some() && !packets.engine.keeps_a_rate() {
        let wrong = format!("needs a generator that keeps a rate; `{}` does not", packets.engine.word());
        let allowed = "use the generator `xdp` or `socket`; without `packet_rate`, this generator sends as fast as it can";
        problems.add(&at("packet_rate"), wrong, allowed);
    }
    if packets.queues.is_some()
        && packets.engine != PacketEngine::Xdp
        && packets.receiver != PacketReceiver::Xdp
    {
        let wrong = "is given where neither end opens queues itself";
        let allowed = "the treatment `queues` changes how many an interface has; this setting is for `xdp`";
        problems.add(&at("queues"), wrong, allowed);
    }
    if let Some(queues) =
        packets.queues.filter(|queues| packets.engine == PacketEngine::Xdp && queues > flows)
    {
        let wrong = format!("is {queues}, more than the {flows} flows that are to fill them");
        problems.add(&at("queues"), wrong, "give it more `flows`, a multiple of the queues");
    }
    if let Some(wait) =
        given.settings.wait.filter(|wait| *wait == Wait::Block || packets.receiver != PacketReceiver::Xdp)
    {
        let word = if wait == Wait::Block { "block" } else { "set" };
        let wrong = format!("is {word} for the receiver `{}`", packets.receiver.word());
        let allowed = "only the receiver `xdp` has it: `spin` (its default) or `busy-poll`";
        problems.add(&at("wait"), wrong, allowed);
    }
    if family == Family::Ipv6 && packets.engine == PacketEngine::Kernel {
        let wrong = "is IPv6, and the generator `kernel` writes no UDP checksum, which IPv6 requires";
        problems.add(&at("family"), wrong, "use IPv4, or the generator `xdp` or `socket`");
    }
    search::check(packets, (*direction, rate.is_some()), &at, problems);
    dpdk::check(packets, family, &at, problems);
}

/// What repeats it by hand.
pub(super) fn by_hand(settings: &Pps, timing: &Timing) -> ByHand {
    let Pps { udp, packets } = settings;
    if packets.engine == PacketEngine::Dpdk || packets.receiver == PacketReceiver::Dpdk {
        return ByHand::Nothing(
            "quick tests do not start testpmd, whose command lines are in the section about packets",
        );
    }
    let mut options = vec![format!("--frame {}", packets.frame), format!("-P {}", udp.flows)];
    options.extend(by_hand::way(udp.direction));
    if let Some(search) = &packets.search {
        let Some(goals) = presets(search) else {
            return ByHand::Nothing("quick tests do not have the goals of its search");
        };
        let limit = by_hand::seconds(timing.duration);
        options.push(format!("--search {} --search-time {limit}", goals.join(",")));
    } else if let Some(rate) = udp.rate {
        options.push(format!("--rate {}", rate.0 / 8 / udp.size.0.max(1)));
    }
    options.push(format!("--generator {} --receiver {}", packets.engine.word(), packets.receiver.word()));
    options.extend(packets.queues.map(|queues| format!("--queues {queues}")));
    options.extend(udp.tuning.window.map(|window| format!("-w {}", window.0)));
    // A search ends by its goals.
    ByHand::Test(match packets.search {
        Some(_) => QuickTest { name: "pps", options },
        None => QuickTest::timed("pps", timing.duration, options),
    })
}

/// The names of the goals of a search; absent when one has none.
fn presets(search: &Search) -> Option<Vec<&'static str>> {
    let all = [SearchPreset::NoDrop, SearchPreset::PartialDrop, SearchPreset::Rfc2544, SearchPreset::Tst009];
    let name =
        |goal: &SearchGoal| all.into_iter().find(|preset| preset.goal() == *goal).map(SearchPreset::word);
    search.goals.iter().map(name).collect()
}

/// The settings for people.
pub(super) fn words(settings: &Pps) -> Vec<String> {
    let Pps { udp: UdpStream { flows, direction, size, rate, tuning, offload: _ }, packets } = settings;
    // `lo` counts IP packets, other interfaces count frames without check sequence.
    let ip = PacketPath::ip_packet(packets.frame);
    let mut words = vec![format!("{} B frames ({ip} B of IP)", packets.frame)];
    words.push(format!("from {} to {}", packets.engine.word(), packets.receiver.word()));
    words.push(plural(*flows, "flow"));
    words.push(direction.words().to_owned());
    let paced = |rate: BitRate| human_si(rate.0 as f64 / 8.0 / size.0.max(1) as f64, "pps");
    let unpaced = || packets.search.as_ref().map_or("unpaced".to_owned(), Search::words);
    words.push(rate.map_or_else(unpaced, |rate| format!("at {}", paced(rate))));
    words.extend(packets.queues.map(|queues| plural(queues, "queue")));
    words.extend(tuning.volume.map(|volume| format!("{volume} total")));
    words.extend(tuning.window.map(|window| format!("{window} buffers")));
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::parse;
    use crate::workload::{Traffic, Workload};

    /// A workload of a plan of the project.
    fn workload(change: impl Fn(&mut Pps)) -> Workload {
        let plan = include_str!("../../../../plans/pps.toml");
        let mut workload = parse(plan, "pps.toml").expect("a valid plan").arms[0].workloads[0].clone();
        if let Traffic::Pps(settings) = &mut workload.traffic {
            settings.packets.frame = 128;
            settings.udp.size = Bytes(82);
            change(settings);
        }
        workload
    }

    /// A message or a run file has the size of the datagrams beside the size of the frames.
    #[test]
    fn datagram_that_does_not_fill_its_frame_is_out_of_range() {
        assert_eq!(workload(|_| {}).out_of_range(), None);
        for size in [0, 1, 15, 81, 83, 65_536, u64::MAX] {
            let out = workload(|settings| settings.udp.size = Bytes(size)).out_of_range();
            let out = out.unwrap_or_else(|| panic!("{size} bytes are taken"));
            assert_eq!((out.key, out.value), ("size", size));
            assert!(out.to_string().ends_with("82 to 82 bytes with frames of 128 bytes is allowed"), "{out}");
        }
    }
}
