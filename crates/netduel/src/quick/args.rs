//! The options of quick tests, named as in iperf3. A letter has the same meaning in every test; a test without that setting
//! rejects the letter and names its own option.
use std::path::PathBuf;

use clap::Args;
use clap::builder::TypedValueParser;
use netduel_model::packet_path::{KERNEL_FLOWS_MOST, PacketEngine, PacketPath, PacketReceiver};
use netduel_model::plan::CoresSpec;
use netduel_model::search::SearchPreset;
use netduel_model::units::{BitRate, Bytes, Nanos, PerSecond};
use netduel_model::workload::{
    BANDWIDTH_LIMIT, DURATION_DEFAULT, Family, Pps, RoundTrip, THREADS_MOST, TcpEngine, Transaction,
    UdpOffload, UdpStream, Wait, WorkloadType,
};
use netduel_sys::local_bind::LocalBind;

use super::values::{bytes, cores, per_second, rate, test_time, time};
use crate::cli::keyword::{keywords, word};
use crate::cli::range::{count, count_of, help, whole};
use crate::cli::shared::{JsonArgs, LiveArgs, QuietArgs, RedactArgs, StoreArgs, TagArgs};

/// Help of the live view: a quick test prints its lines after it.
const LIVE_HELP: &str = "Show the test on the whole terminal while it runs; its lines and its result are printed \
                         at the end [default: on a terminal of at least 100 columns and 30 lines]";

/// Help of the duration of a packet test: a search has another option.
const PACKETS_TIME_HELP: &str = "Duration of the test: seconds, or with a unit as in \"500 ms\"; with --search use \
                                 --search-time in its place";

/// Options of every quick test.
#[derive(Debug, Clone, Args)]
#[command(mut_arg("live", |option| option.help(LIVE_HELP)))]
#[command(mut_arg("live", |option| option.conflicts_with_all(["json", "json_stream"])))]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the command line")]
pub struct CommonArgs {
    /// The other host: the pairing string that `netduel serve` printed there, or, once paired, HOST or HOST:PORT; `-` reads the string
    /// from NETDUEL_PAIRING, or from standard input, where a terminal does not show it.
    #[arg(value_name = "HOST")]
    pub host: String,
    /// Port of `netduel serve` [default: the pairing's, else 5210]
    #[arg(short = 'p', long, value_name = "PORT", value_parser = whole(1, u16::MAX))]
    pub port: Option<u16>,
    /// Read the pairing string from this file, `-` from standard input; HOST is then a name or an address [default: NETDUEL_PAIRING]
    #[arg(long, value_name = "FILE")]
    pub pairing_file: Option<PathBuf>,
    /// Duration of the test: seconds, or with a unit as in "500 ms".
    #[arg(short = 't', long, value_name = "TIME", default_value_t = DURATION_DEFAULT, value_parser = test_time)]
    pub time: Nanos,
    /// Warm-up before --time: rates and latency exclude it; transfer, loss, CPU time and packets cover the whole test [default: none;
    /// rates and latency exclude the first tenth and the last twentieth of --time]
    #[arg(short = 'O', long, value_name = "TIME", value_parser = time)]
    pub omit: Option<Nanos>,
    /// Print a line at this interval: seconds, or with a unit, at least 10 ms; 0 prints none.
    #[arg(short = 'i', long, value_name = "TIME", default_value = "1", value_parser = time)]
    pub interval: Nanos,
    /// Source of all connections, as in iperf3: an address of this host, an interface, or ADDRESS%INTERFACE [default: the route's]
    #[arg(short = 'B', long, value_name = "ADDRESS|INTERFACE")]
    pub bind: Option<LocalBind>,
    /// IPv4 only.
    #[arg(short = '4', long = "ipv4", conflicts_with = "ipv6")]
    pub ipv4: bool,
    /// IPv6 only.
    #[arg(short = '6', long = "ipv6")]
    pub ipv6: bool,
    /// Cores for the client's threads, for example 0,2 or 0-3, or "auto": cores near the interface [default: the kernel chooses]
    #[arg(long, value_name = "CORES", value_parser = cores)]
    pub pin_client: Option<CoresSpec>,
    /// Cores for the server's threads, or "auto".
    #[arg(long, value_name = "CORES", value_parser = cores)]
    pub pin_server: Option<CoresSpec>,
    #[arg(long, value_name = "N", value_parser = count(WorkloadType::TcpStream, "dscp"), help = help("DSCP of the data packets of both ends", (WorkloadType::TcpStream.settings(), "dscp"), ", for example 46 [default: the kernel's, 0]"))]
    pub dscp: Option<u32>,
    /// Bandwidth limit of the sender, Mbit/s: the result shows the share of it [default: the cloud's limit for its size]
    #[arg(long, value_name = "MBPS", value_parser = count_of(BANDWIDTH_LIMIT, "expect_mbps"))]
    pub expect_mbps: Option<u32>,
    #[command(flatten)]
    pub json: JsonArgs,
    /// Print a line of JSON for the start, each interval and the end.
    #[arg(long, conflicts_with_all = ["json", "quiet"])]
    pub json_stream: bool,
    #[command(flatten)]
    pub quiet: QuietArgs,
    #[command(flatten)]
    pub live: LiveArgs,
    #[command(flatten)]
    pub redact: RedactArgs,
    /// Store the test as a run, for `netduel report`.
    #[arg(long)]
    pub save: bool,
    #[command(flatten)]
    pub tags: TagArgs,
    #[command(flatten)]
    pub store: StoreArgs,
}

/// Direction of the data.
#[derive(Debug, Clone, Copy, Args)]
pub struct WayArgs {
    /// The server sends, the client receives.
    #[arg(short = 'R', long)]
    pub reverse: bool,
    /// Both send at the same time.
    #[arg(long, conflicts_with = "reverse")]
    pub bidir: bool,
}

/// Bulk data: TCP and UDP streams.
#[derive(Debug, Clone, Args)]
pub struct BulkArgs {
    #[command(flatten)]
    pub way: WayArgs,
    /// Payload rate of each stream, as in iperf3, for example 100M or "2.5 Gbit/s" [default: unlimited, also with UDP]
    #[arg(short = 'b', long, value_name = "RATE", value_parser = rate)]
    pub bitrate: Option<BitRate>,
    /// End after this much payload of all streams together, at the latest after --time; without --omit no warm-up is excluded then.
    #[arg(short = 'n', long, value_name = "BYTES", value_parser = bytes)]
    pub bytes: Option<Bytes>,
}

/// Congestion control of TCP.
#[derive(Debug, Clone, Args)]
pub struct CongestionArgs {
    /// TCP congestion control, for example cubic or bbr [default: net.ipv4.tcp_congestion_control of each host that sends]
    #[arg(short = 'C', long, value_name = "NAME")]
    pub congestion: Option<String>,
}

/// Buffers of UDP sockets.
#[derive(Debug, Clone, Copy, Args)]
pub struct WindowArgs {
    #[arg(short = 'w', long, value_name = "BYTES", value_parser = bytes, help = window_help(""))]
    pub window: Option<Bytes>,
}

/// `netduel tcp`.
#[derive(Debug, Clone, Args)]
pub struct TcpArgs {
    #[command(flatten)]
    pub common: CommonArgs,
    #[arg(short = 'P', long, value_name = "N", default_value_t = 1, value_parser = count(WorkloadType::TcpStream, "streams"), help = help("Parallel connections", (WorkloadType::TcpStream.settings(), "streams"), &format!("; at most {THREADS_MOST} with zerocopy and io-uring")))]
    pub parallel: u32,
    #[command(flatten)]
    pub bulk: BulkArgs,
    /// UDP in place of TCP: the same as `netduel udp`.
    #[arg(short = 'u', long, conflicts_with_all = ["set_mss", "congestion", "engine"])]
    pub udp: bool,
    /// Bytes per write, for example 128K (1024, as in iperf3) or "128 KiB" [default: the engine's]
    #[arg(short = 'l', long, value_name = "BYTES", value_parser = bytes)]
    pub length: Option<Bytes>,
    /// Send and receive buffer of each socket [default: the kernel's, which grows]
    #[arg(short = 'w', long, value_name = "BYTES", value_parser = bytes)]
    pub window: Option<Bytes>,
    /// Maximum segment size, bytes, with TCP options: time stamps take 12 of them [default: from the path's MTU]
    #[arg(short = 'M', long, value_name = "BYTES", value_parser = count(WorkloadType::TcpStream, "mss"))]
    pub set_mss: Option<u32>,
    #[command(flatten)]
    pub congestion: CongestionArgs,
    /// How data moves between program and kernel: lean (neither end copies or reads it), copy (write and read, as most programs
    /// do), zerocopy or io-uring [default: lean]
    #[arg(long, value_name = "ENGINE", value_parser = word::<TcpEngine>)]
    pub engine: Option<TcpEngine>,
}

/// `netduel udp`.
#[derive(Debug, Clone, Args)]
pub struct UdpArgs {
    #[command(flatten)]
    pub common: CommonArgs,
    #[arg(short = 'P', long, value_name = "N", default_value_t = 1, value_parser = count(WorkloadType::UdpStream, "flows"), help = help("Parallel flows, each with its own port", (WorkloadType::UdpStream.settings(), "flows"), ""))]
    pub parallel: u32,
    #[command(flatten)]
    pub bulk: BulkArgs,
    #[arg(short = 'l', long, value_name = "BYTES", value_parser = bytes, help = help("UDP payload of each datagram", (WorkloadType::UdpStream.settings(), "size"), &by_family(UdpStream::default_size)))]
    pub length: Option<Bytes>,
    #[command(flatten)]
    pub window: WindowArgs,
    /// Segmentation by the kernel or the NIC: none, gso, or gso-gro [default: gso without -b and with at most the default --length, else none]
    #[arg(long, value_name = "OFFLOAD", value_parser = word::<UdpOffload>)]
    pub offload: Option<UdpOffload>,
}

/// `netduel pps`, which has no setting `dscp`: the option is parsed for its error only.
#[derive(Debug, Clone, Args)]
#[command(mut_arg("dscp", |option| option.hide(true)))]
#[command(mut_arg("time", |option| option.help(PACKETS_TIME_HELP)))]
#[command(mut_arg("window", |option| option.help(search_window_help())))]
pub struct PpsArgs {
    #[command(flatten)]
    pub common: CommonArgs,
    #[arg(long, value_name = "BYTES", value_delimiter = ',', value_parser = count(WorkloadType::Pps, "frame"), help = format!("Frame size with its check sequence, bytes, as RFC 2544 counts it; several make a sweep: 64,128,256,512,1024,1280,1518{}", by_family(PacketPath::frame_least)))]
    pub frame: Vec<u32>,
    /// Packets per second of all flows together, for example 200k [default: unlimited]
    #[arg(long, value_name = "RATE", value_parser = per_second(WorkloadType::Pps, "packet_rate"))]
    pub rate: Option<PerSecond>,
    /// Search for the highest rate without loss, or with little loss, in short steps (RFC 9971): no-drop, partial-drop (0.5 %),
    /// rfc2544 (steps of one minute) or tst009; several with commas. --search-time limits its time, not -t
    #[arg(long, value_name = "GOAL", value_delimiter = ',', value_parser = word::<SearchPreset>, conflicts_with_all = ["rate", "time", "omit"])]
    pub search: Vec<SearchPreset>,
    /// Time limit of the search, in place of -t: seconds or with a unit [default: ten times what its goals need for one rate, plus one minute]
    #[arg(long, value_name = "TIME", value_parser = test_time, requires = "search")]
    pub search_time: Option<Nanos>,
    #[arg(short = 'P', long, value_name = "N", value_parser = count(WorkloadType::Pps, "flows"), help = help("Parallel flows, each with its own port", (WorkloadType::Pps.settings(), "flows"), &format!("; at most {KERNEL_FLOWS_MOST} with the generator kernel [default: {}, or 1 with that generator]", Pps::FLOWS)))]
    pub parallel: Option<u32>,
    /// Packet generator: socket (UDP), xdp (AF_XDP, kernel bypass), kernel (upper bound of the path); xdp and kernel need root; dpdk
    /// works in plans only [default: socket]
    #[arg(long, value_name = "ENGINE", value_parser = generator)]
    pub generator: Option<PacketEngine>,
    /// Packet receiver: socket, xdp, or count (an XDP program that counts and drops) [default: like the generator]
    #[arg(long, value_name = "ENGINE", value_parser = receiver)]
    pub receiver: Option<PacketReceiver>,
    /// Queues that xdp uses at both ends; several make a sweep: 1,2,4,8 [default: all of the interface]
    #[arg(long, value_name = "N", value_delimiter = ',')]
    pub queues: Vec<u32>,
    #[command(flatten)]
    pub way: WayArgs,
    #[command(flatten)]
    pub window: WindowArgs,
    #[command(flatten)]
    pub no_bitrate: NoBitrateArgs,
    /// Refused: -l is payload, and this test counts frames.
    #[arg(short = 'l', long = "length", hide = true, value_name = "BYTES", value_parser = no_length)]
    pub no_length: Option<String>,
}

/// The option -b where a test counts events, not bits.
#[derive(Debug, Clone, Args)]
pub struct NoBitrateArgs {
    /// Refused: -b is a bit rate.
    #[arg(short = 'b', long = "bitrate", hide = true, value_name = "RATE", value_parser = no_bitrate)]
    pub no_bitrate: Option<String>,
    /// Refused: a volume ends tests of bulk data only.
    #[arg(short = 'n', long = "bytes", hide = true, value_name = "BYTES", value_parser = no_bytes)]
    pub no_bytes: Option<String>,
}

/// A parser of these ways to wait for a message. Help has what each is.
fn waits<const N: usize>(waits: [Wait; N]) -> impl TypedValueParser<Value = Wait> {
    let meaning = |wait: Wait| match wait {
        Wait::Block => "Sleeps in the kernel",
        Wait::Spin => "Polls the socket in user space without a pause",
        Wait::BusyPoll => "Sleeps in the kernel, which polls the NIC (SO_BUSY_POLL)",
    };
    keywords(waits.map(|wait| (wait, meaning(wait))), Wait::word)
}

/// Requests and responses, over one connection or one each.
#[derive(Debug, Clone, Args)]
pub struct RequestArgs {
    /// Bytes of a request and of its response.
    #[arg(short = 'l', long, value_name = "BYTES", default_value_t = RoundTrip::SIZE, value_parser = bytes)]
    pub length: Bytes,
    #[arg(short = 'P', long, value_name = "N", default_value_t = 1, value_parser = count(WorkloadType::TcpRr, "outstanding"), help = help("Requests in flight at a time", (WorkloadType::TcpRr.settings(), "outstanding"), ""))]
    pub parallel: u32,
    /// Open loop: this many requests per second on schedule, latency measured from the scheduled time [default: closed loop]
    #[arg(long, value_name = "RATE", value_parser = per_second(WorkloadType::TcpRr, "request_rate"), conflicts_with = "parallel")]
    pub rate: Option<PerSecond>,
    /// How both ends wait for a message.
    #[arg(long, default_value = Wait::default().word(), value_parser = waits(Wait::ALL))]
    pub wait: Wait,
    #[command(flatten)]
    pub congestion: CongestionArgs,
    #[command(flatten)]
    pub no_bitrate: NoBitrateArgs,
}

/// `netduel rr`.
#[derive(Debug, Clone, Args)]
pub struct RrArgs {
    #[command(flatten)]
    pub common: CommonArgs,
    /// UDP in place of TCP.
    #[arg(short = 'u', long, conflicts_with = "congestion")]
    pub udp: bool,
    #[command(flatten)]
    pub requests: RequestArgs,
    /// Kernel time stamps: split the round trip into network, kernel and program time.
    #[arg(long)]
    pub timestamps: bool,
}

/// `netduel crr`.
#[derive(Debug, Clone, Args)]
#[command(mut_arg("length", |option| option.help(request_length_help())))]
#[command(mut_arg("wait", |option| option.value_parser(waits(Transaction::WAITS))))]
pub struct CrrArgs {
    #[command(flatten)]
    pub common: CommonArgs,
    #[command(flatten)]
    pub requests: RequestArgs,
    /// Bytes of a response [default: those of a request]
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    pub response_length: Option<Bytes>,
}

/// Help of the buffers of UDP sockets. `more`: the end of their default.
fn window_help(more: &str) -> String {
    format!("Send and receive buffer of each socket [default: {}{more}]", UdpStream::receive_buffers_words())
}

/// The same of packets, whose searches have a default of their own.
fn search_window_help() -> String {
    window_help(&format!("; {} with --search", Pps::SEARCH_WINDOW))
}

/// Help of the length of a request that has a connection of its own.
fn request_length_help() -> String {
    let size = (WorkloadType::TcpCrr.settings(), "size");
    help("Bytes of a request", size, ", and of its response without --response-length")
}

fn no_bitrate(_: &str) -> Result<String, String> {
    Err("this test counts events, not bits; use --rate, in events per second, for example --rate 200k"
        .to_owned())
}

fn no_bytes(_: &str) -> Result<String, String> {
    Err("this test counts events, not bytes; use -t, its duration, for example -t 10".to_owned())
}

fn no_length(_: &str) -> Result<String, String> {
    Err("this test counts frames, not payload; use --frame, the frame size with its check sequence, for example --frame 64"
        .to_owned())
}

/// The default of an option by IP version, for its help.
fn by_family<T: std::fmt::Display>(default: fn(Family) -> T) -> String {
    format!(" [default: {}, or {} over IPv6]", default(Family::Ipv4), default(Family::Ipv6))
}

/// Why a quick test does not start testpmd.
const DPDK_IN_PLANS: &str = "dpdk works in plans only: `netduel serve` starts no testpmd for its clients";

fn generator(text: &str) -> Result<PacketEngine, String> {
    match word(text)? {
        PacketEngine::Dpdk => Err(DPDK_IN_PLANS.to_owned()),
        engine => Ok(engine),
    }
}

fn receiver(text: &str) -> Result<PacketReceiver, String> {
    match word(text)? {
        PacketReceiver::Dpdk => Err(DPDK_IN_PLANS.to_owned()),
        receiver => Ok(receiver),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(clap::Parser)]
    struct Pps {
        #[command(flatten)]
        args: PpsArgs,
    }

    #[derive(clap::Parser)]
    struct Rr {
        #[command(flatten)]
        args: RrArgs,
    }

    #[derive(clap::Parser)]
    struct Crr {
        #[command(flatten)]
        args: CrrArgs,
    }

    fn refusal<T: clap::Parser>(words: &str) -> String {
        match T::try_parse_from(words.split(' ')) {
            Ok(_) => String::new(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn unsupported_letters_name_the_option_of_the_test() {
        assert!(refusal::<Pps>("pps far -b 200k").contains("--rate"));
        assert!(refusal::<Pps>("pps far -l 64").contains("--frame"));
        assert!(refusal::<Rr>("rr far -b 1M").contains("--rate"));
        assert!(refusal::<Rr>("rr far -n 1M").contains("use -t"));
        assert_eq!(refusal::<Pps>("pps far --rate 200k --frame 64,128"), "");
        assert_eq!(refusal::<Rr>("rr far -u -l 100 --rate 1k"), "");
    }

    #[test]
    fn mutually_exclusive_options_are_rejected() {
        for words in [
            "rr far -u -C bbr",
            "rr far -P 2 --rate 1k",
            "rr far -4 -6",
            "rr far --json --json-stream",
            "rr far -q --json-stream",
            "rr far --live --json",
            "rr far --live --json-stream",
            "rr far --live -q",
            "rr far --live --no-live",
        ] {
            assert!(refusal::<Rr>(words).contains("cannot be used with"), "{words}");
        }
        assert!(refusal::<Pps>("pps far -R --bidir").contains("cannot be used with"));
        assert!(refusal::<Pps>("pps far --search no-drop --rate 1k").contains("cannot be used with"));
        assert!(refusal::<Pps>("pps far --generator pktgen").contains("one of `socket`"));
    }

    #[test]
    fn wait_is_a_keyword_of_plans_and_help_lists_them() {
        use clap::{CommandFactory as _, Parser as _};
        let parsed = |word| Rr::try_parse_from(["rr", "far", "--wait", word]).map(|rr| rr.args.requests.wait);
        for wait in Wait::ALL {
            assert_eq!(parsed(wait.word()).unwrap(), wait);
        }
        assert_eq!(Rr::try_parse_from(["rr", "far"]).unwrap().args.requests.wait, Wait::default());
        let help = Rr::command().render_long_help().to_string();
        assert!(help.contains("- busy-poll: Sleeps in the kernel, which polls the NIC"), "{help}");
        let refused = refusal::<Rr>("rr far --wait polling");
        assert!(refused.contains("[possible values: block, spin, busy-poll]"), "{refused}");
    }

    #[test]
    fn transactions_have_the_waits_and_the_range_of_plans() {
        use clap::{CommandFactory as _, Parser as _};
        for wait in Transaction::WAITS {
            let parsed = Crr::try_parse_from(["crr", "far", "--wait", wait.word()]).unwrap();
            assert_eq!(parsed.args.requests.wait, wait);
        }
        let refused = refusal::<Crr>("crr far --wait busy-poll");
        assert!(refused.contains("[possible values: block, spin]"), "{refused}");
        let help = Crr::command().render_long_help().to_string();
        let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
        let length = "Bytes of a request, 48 B to 16 MiB, and of its response without --response-length";
        assert!(help.contains(length) && !help.contains("busy-poll"), "{help}");
    }

    #[test]
    fn rates_are_those_that_a_plan_allows() {
        assert!(refusal::<Rr>("rr far --rate 50M").contains("10 M/s"));
        assert_eq!(refusal::<Pps>("pps far --rate 200M"), "");
    }
}
