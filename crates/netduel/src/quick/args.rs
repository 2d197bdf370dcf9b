//! The options of quick tests, named as iperf3 names them.
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use netduel_model::plan::CoresSpec;
use netduel_model::size::MBPS_MOST;
use netduel_model::units::{BitRate, Bytes, Nanos, PerSecond};

use crate::cli::shared::StoreArgs;

/// What every quick test takes.
#[derive(Debug, Clone, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the command line")]
pub struct CommonArgs {
    /// The other host: the pairing string that `netduel serve` printed there, or, once paired, HOST or HOST:PORT.
    #[arg(value_name = "HOST")]
    pub host: String,
    /// Port of `netduel serve` [default: the pairing's, else 5210]
    #[arg(short = 'p', long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    pub port: Option<u16>,
    /// A file that holds the pairing string, in place of the pairings kept for you.
    #[arg(long, value_name = "FILE")]
    pub pairing_file: Option<PathBuf>,
    /// How long to test: seconds, or with a unit as in "500 ms".
    #[arg(short = 't', long, value_name = "TIME", default_value = "10", value_parser = test_time)]
    pub time: Nanos,
    /// Begin with this much that does not count, before --time [default: a tenth of the time is left out, nothing with --bytes]
    #[arg(short = 'O', long, value_name = "TIME", value_parser = time)]
    pub omit: Option<Nanos>,
    /// Print a line this often; 0 prints none.
    #[arg(short = 'i', long, value_name = "TIME", default_value = "1", value_parser = time)]
    pub interval: Nanos,
    /// IPv4 only.
    #[arg(short = '4', long = "ipv4", conflicts_with = "ipv6")]
    pub ipv4: bool,
    /// IPv6 only.
    #[arg(short = '6', long = "ipv6")]
    pub ipv6: bool,
    /// Cores for the client's threads, for example 0,2, or "auto": those near the interface [default: the kernel chooses]
    #[arg(long, value_name = "CORES", value_parser = cores)]
    pub pin_client: Option<CoresSpec>,
    /// Cores for the server's threads, or "auto".
    #[arg(long, value_name = "CORES", value_parser = cores)]
    pub pin_server: Option<CoresSpec>,
    /// What the sender can give at most, Mbit/s: the result shows the share of it [default: the cloud's limit for its size]
    #[arg(long, value_name = "MBPS", value_parser = clap::value_parser!(u32).range(1..=i64::from(MBPS_MOST)))]
    pub expect_mbps: Option<u32>,
    /// Print the result as one JSON document.
    #[arg(short = 'J', long)]
    pub json: bool,
    /// Print a line of JSON for the start, each interval and the end.
    #[arg(long, conflicts_with = "json")]
    pub json_stream: bool,
    /// Keep the test in the store as a run, for `netduel report`.
    #[arg(long)]
    pub save: bool,
    #[command(flatten)]
    pub store: StoreArgs,
}

/// Which way bulk data goes.
#[derive(Debug, Clone, Copy, Args)]
pub struct WayArgs {
    /// The server sends, the client receives.
    #[arg(short = 'R', long)]
    pub reverse: bool,
    /// Both send at once.
    #[arg(long, conflicts_with = "reverse")]
    pub bidir: bool,
}

/// `netduel tcp`.
#[derive(Debug, Clone, Args)]
pub struct TcpArgs {
    #[command(flatten)]
    pub common: CommonArgs,
    /// Connections at a time, 1 to 20000.
    #[arg(short = 'P', long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=20_000))]
    pub parallel: u32,
    #[command(flatten)]
    pub way: WayArgs,
    /// UDP in place of TCP: the same as `netduel udp`.
    #[arg(short = 'u', long)]
    pub udp: bool,
    /// Payload rate of all connections together, for example 100M or "2.5 Gbit/s" [default: as fast as it can]
    #[arg(short = 'b', long, value_name = "RATE", value_parser = rate)]
    pub bitrate: Option<BitRate>,
    /// Bytes handed to the kernel in one call, for example 128K (1024, as in iperf3) or "128 KiB" [default: the engine's]
    #[arg(short = 'l', long, value_name = "BYTES", value_parser = bytes)]
    pub length: Option<Bytes>,
    /// End after this much payload, --time at the latest.
    #[arg(short = 'n', long, value_name = "BYTES", value_parser = bytes)]
    pub bytes: Option<Bytes>,
    /// Send and receive buffer of each socket [default: the kernel's, which grows]
    #[arg(short = 'w', long, value_name = "BYTES", value_parser = bytes)]
    pub window: Option<Bytes>,
    /// Maximum segment size, bytes [default: of the path's MTU]
    #[arg(short = 'M', long, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(88..=32_767))]
    pub set_mss: Option<u32>,
    /// Congestion control, for example cubic or bbr [default: the sender's]
    #[arg(short = 'C', long, value_name = "NAME")]
    pub congestion: Option<String>,
    /// How bytes are moved in and out of the kernel: lean, copy, zerocopy or io-uring [default: lean]
    #[arg(long, value_name = "ENGINE")]
    pub engine: Option<String>,
}

/// `netduel udp`.
#[derive(Debug, Clone, Args)]
pub struct UdpArgs {
    #[command(flatten)]
    pub common: CommonArgs,
    /// Flows at a time, each from a port of its own.
    #[arg(short = 'P', long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub parallel: u32,
    #[command(flatten)]
    pub way: WayArgs,
    /// Payload rate of all flows together, for example 100M or "2.5 Gbit/s" [default: as fast as it can]
    #[arg(short = 'b', long, value_name = "RATE", value_parser = rate)]
    pub bitrate: Option<BitRate>,
    /// UDP payload of each datagram, bytes, 32 at least [default: 1448, or 1428 over IPv6]
    #[arg(short = 'l', long, value_name = "BYTES", value_parser = bytes)]
    pub length: Option<Bytes>,
    /// End after this much payload, in whole datagrams, --time at the latest.
    #[arg(short = 'n', long, value_name = "BYTES", value_parser = bytes)]
    pub bytes: Option<Bytes>,
    /// Send and receive buffer of each socket [default: a share of 64 MiB for receiving, the kernel's for sending]
    #[arg(short = 'w', long, value_name = "BYTES", value_parser = bytes)]
    pub window: Option<Bytes>,
    /// Segmentation by the kernel or the NIC: none, gso, or gso-gro [default: gso without -b, else none]
    #[arg(long, value_name = "OFFLOAD")]
    pub offload: Option<String>,
}

/// `netduel pps`.
#[derive(Debug, Clone, Args)]
pub struct PpsArgs {
    #[command(flatten)]
    pub common: CommonArgs,
    /// Size of a frame with its check sequence, bytes, as RFC 2544 counts it; several make a sweep: 64,128,256,512,1024,1280,1518
    /// [default: 64, or 82 over IPv6]
    #[arg(short = 'l', long, value_name = "BYTES", value_delimiter = ',')]
    pub frame: Vec<u32>,
    /// Packets a second of all flows together, for example 200k [default: as fast as it can]
    #[arg(short = 'b', long, value_name = "RATE", value_parser = per_second)]
    pub rate: Option<PerSecond>,
    /// Search for the highest rate without loss, or with little, by short trials (RFC 9971): no-drop, partial-drop (0.5 %), rfc2544
    /// (trials of a minute) or tst009; several at once with commas
    #[arg(long, value_name = "GOAL", value_delimiter = ',', conflicts_with_all = ["rate", "time", "omit"])]
    pub search: Vec<String>,
    /// How long a search may take, seconds or with a unit [default: ten times what its goals ask of one rate, and a minute]
    #[arg(long, value_name = "TIME", value_parser = test_time, requires = "search")]
    pub search_time: Option<Nanos>,
    /// Flows at a time, each from a port of its own [default: 16, or 1 from the kernel]
    #[arg(short = 'P', long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub parallel: Option<u32>,
    /// Who makes the packets: socket (UDP), xdp (AF_XDP, past the network stack), kernel (the ceiling of the path); the last two
    /// need root [default: socket]
    #[arg(long, value_name = "ENGINE")]
    pub generator: Option<String>,
    /// Who takes them: socket, xdp, or count (an XDP program that counts and drops) [default: as the generator]
    #[arg(long, value_name = "ENGINE")]
    pub receiver: Option<String>,
    /// Queues that xdp uses at either end; several make a sweep: 1,2,4,8 [default: all of the interface]
    #[arg(long, value_name = "N", value_delimiter = ',')]
    pub queues: Vec<u32>,
    #[command(flatten)]
    pub way: WayArgs,
    /// Send and receive buffer of each socket [default: a share of 64 MiB for receiving, the kernel's for sending]
    #[arg(short = 'w', long, value_name = "BYTES", value_parser = bytes)]
    pub window: Option<Bytes>,
}

/// What waits for a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum WaitArg {
    /// Sleeps in the kernel.
    Block,
    /// Asks again and again.
    Spin,
    /// Sleeps in the kernel, which asks the NIC again and again.
    BusyPoll,
}

/// `netduel rr`.
#[derive(Debug, Clone, Args)]
pub struct RrArgs {
    #[command(flatten)]
    pub common: CommonArgs,
    /// UDP in place of TCP.
    #[arg(short = 'u', long)]
    pub udp: bool,
    /// Bytes of a request and of its response.
    #[arg(short = 'l', long, value_name = "BYTES", default_value = "64", value_parser = bytes)]
    pub length: Bytes,
    /// Requests under way at a time.
    #[arg(short = 'P', long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub parallel: u32,
    /// An open loop: so many requests a second on schedule, measured from the scheduled time.
    #[arg(long, value_name = "RATE", value_parser = per_second, conflicts_with = "parallel")]
    pub rate: Option<PerSecond>,
    /// How both ends wait for a message.
    #[arg(long, value_enum, default_value_t = WaitArg::Block)]
    pub wait: WaitArg,
    /// Kernel time stamps: split the round trip into wire, kernel and program.
    #[arg(long)]
    pub timestamps: bool,
    /// Congestion control of TCP, for example cubic or bbr [default: each host's]
    #[arg(short = 'C', long, value_name = "NAME", conflicts_with = "udp")]
    pub congestion: Option<String>,
}

/// `netduel crr`.
#[derive(Debug, Clone, Args)]
pub struct CrrArgs {
    #[command(flatten)]
    pub common: CommonArgs,
    /// Bytes of a request and of its response.
    #[arg(short = 'l', long, value_name = "BYTES", default_value = "64", value_parser = bytes)]
    pub length: Bytes,
    /// Transactions under way at a time.
    #[arg(short = 'P', long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub parallel: u32,
    /// An open loop: so many transactions a second on schedule, measured from the scheduled time.
    #[arg(long, value_name = "RATE", value_parser = per_second, conflicts_with = "parallel")]
    pub rate: Option<PerSecond>,
    /// How both ends wait.
    #[arg(long, value_enum, default_value_t = WaitArg::Block)]
    pub wait: WaitArg,
    /// Congestion control, for example cubic or bbr [default: each host's]
    #[arg(short = 'C', long, value_name = "NAME")]
    pub congestion: Option<String>,
}

/// More a second than any host sends one by one; what the load refuses too.
const PER_SECOND_MOST: u64 = 100_000_000;

/// How long a test may be: shorter ones have nothing left without their beginning.
pub fn test_time(text: &str) -> Result<Nanos, String> {
    match time(text) {
        Ok(length) if (Nanos::from_millis(100)..=Nanos(86_400_000_000_000)).contains(&length) => Ok(length),
        Ok(_) => Err("a test takes 0.1 to 86400 seconds".to_owned()),
        Err(error) => Err(error),
    }
}

/// A length of time: bare numbers are seconds.
pub fn time(text: &str) -> Result<Nanos, String> {
    match text.trim().parse::<f64>() {
        Ok(seconds) if seconds.is_finite() && (0.0..=86_400.0).contains(&seconds) => {
            Ok(Nanos((seconds * 1e9).round() as u64))
        }
        Ok(_) => Err("it must be 0 to 86400 seconds".to_owned()),
        Err(_) => text.parse::<Nanos>().map_err(|error| error.to_string()),
    }
}

/// A number with one of iperf3's suffixes: K, M, G, T, here as powers of `base`.
fn with_suffix(text: &str, base: u64) -> Option<Result<u64, String>> {
    let text = text.trim();
    let (number, suffix) = match text.char_indices().last()? {
        (at, letter) if letter.is_ascii_alphabetic() => (&text[..at], Some(letter.to_ascii_uppercase())),
        _ => (text, None),
    };
    let power = match suffix {
        None => 0,
        Some('K') => 1,
        Some('M') => 2,
        Some('G') => 3,
        Some('T') => 4,
        Some(_) => return None,
    };
    let number: f64 = number.parse().ok()?;
    let value = number * (base as f64).powi(power);
    // 2^63 and more would not survive the way through a signed number somewhere; nobody means it.
    Some(if value.is_finite() && (0.0..9.2e18).contains(&value) {
        Ok(value.round() as u64)
    } else {
        Err(format!("{text} is out of range: 0 to 9.2e18"))
    })
}

/// A volume: `128K` is 128 x 1024 as in iperf3, "128 kB" is 128,000, "128 KiB" is 131,072.
fn bytes(text: &str) -> Result<Bytes, String> {
    match with_suffix(text, 1024) {
        Some(value) => value.map(Bytes),
        None => text.parse::<Bytes>().map_err(|error| error.to_string()),
    }
}

/// A bit rate: `100M` is 100,000,000 bit/s as in iperf3.
pub fn rate(text: &str) -> Result<BitRate, String> {
    match with_suffix(text, 1000) {
        Some(Ok(0)) => Err("0 is no rate; leave it out to send as fast as it can".to_owned()),
        Some(value) => value.map(BitRate),
        None => text.parse::<BitRate>().map_err(|error| error.to_string()),
    }
}

/// Messages a second: `20k` or "20 k/s".
/// Cores parted by commas, or the word `auto`.
fn cores(text: &str) -> Result<CoresSpec, String> {
    if text == "auto" {
        return Ok(CoresSpec::Auto);
    }
    let list: Result<Vec<u16>, _> = text.split(',').map(|core| core.trim().parse()).collect();
    list.map(CoresSpec::List)
        .map_err(|error| format!("{error}: write the numbers of cores as in 0,2, or auto"))
}

fn per_second(text: &str) -> Result<PerSecond, String> {
    let value = match with_suffix(text, 1000) {
        Some(value) => PerSecond(value?),
        None => text.parse::<PerSecond>().map_err(|error| error.to_string())?,
    };
    if (1..=PER_SECOND_MOST).contains(&value.0) {
        Ok(value)
    } else {
        Err(format!("1 to {PER_SECOND_MOST} a second is allowed"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_iperf3_user_types_means_the_same_here() {
        assert_eq!(bytes("128K"), Ok(Bytes(131_072)));
        assert_eq!(bytes("1g"), Ok(Bytes(1 << 30)));
        assert_eq!(bytes("1448"), Ok(Bytes(1448)));
        assert_eq!(rate("100M"), Ok(BitRate(100_000_000)));
        assert_eq!(rate("2.5g"), Ok(BitRate(2_500_000_000)));
        assert_eq!(time("10"), Ok(Nanos(10_000_000_000)));
        assert_eq!(time("0.5"), Ok(Nanos(500_000_000)));
        assert_eq!(per_second("20k"), Ok(PerSecond(20_000)));
    }

    #[test]
    fn units_that_are_spelled_out_are_taken_at_their_word() {
        assert_eq!(bytes("128 kB"), Ok(Bytes(128_000)));
        assert_eq!(bytes("128 KiB"), Ok(Bytes(131_072)));
        assert_eq!(rate("1 Gbit/s"), Ok(BitRate(1_000_000_000)));
        assert_eq!(time("200 ms"), Ok(Nanos(200_000_000)));
    }

    #[test]
    fn cores_are_a_list_or_left_to_the_end() {
        assert_eq!(cores("auto"), Ok(CoresSpec::Auto));
        assert_eq!(cores("0,2"), Ok(CoresSpec::List(vec![0, 2])));
        for text in ["", "automatic", "0,", "65536", "-1"] {
            assert!(cores(text).unwrap_err().ends_with("or auto"), "{text}");
        }
    }

    #[test]
    fn what_is_out_of_range_is_refused_and_never_wraps() {
        for text in ["9223372036854775808", "1e30", "99999999999G", "-1", "nan", "inf", ""] {
            assert!(bytes(text).is_err(), "{text}");
            assert!(rate(text).is_err(), "{text}");
            assert!(per_second(text).is_err() || text.is_empty(), "{text}");
        }
        for text in ["-1", "nan", "1e9", "x", ""] {
            assert!(time(text).is_err(), "{text}");
        }
        assert!(rate("0").is_err());
        assert!(rate("1 GB/s").is_err());
    }
}
