//! What a standing server allows, and the words in which it refuses the rest. A test is looked at before a socket of it exists.
use netduel_model::units::{BitRate, Bytes, Nanos, PerSecond};
use netduel_model::workload::{Traffic, Workload};

/// No network between two machines has a shorter round trip. By it the rate of a closed loop, which has none of its own, is
/// bounded.
const ROUND_TRIP_LEAST: Nanos = Nanos(10_000);

/// What a server allows.
#[derive(Debug, Clone, Copy)]
pub struct Rules {
    /// Longest test.
    pub longest: Nanos,
    /// Highest payload rate of a test, in each direction.
    pub fastest: Option<BitRate>,
    /// Connections, flows or requests under way of a test.
    pub streams: u32,
}

/// The payload that a test may move in each direction.
enum Demand {
    /// As much as goes.
    Unlimited,
    /// What was asked for.
    Rate(BitRate),
    /// What follows from the requests under way and the shortest round trip.
    ClosedLoop { outstanding: u32, size: Bytes, most: BitRate },
}

impl Rules {
    /// Why a workload is not allowed; absent when it is.
    pub fn refusal(&self, workload: &Workload) -> Option<String> {
        let asked = workload.timing.duration;
        if asked > self.longest {
            let most = self.longest;
            return Some(format!(
                "a test of {asked} was asked for, and this server allows {most} (--max-duration)"
            ));
        }
        let asked = streams(&workload.traffic);
        if asked > self.streams {
            let most = self.streams;
            return Some(format!(
                "{asked} connections were asked for, and this server allows {most} (--max-streams)"
            ));
        }
        self.fastest.and_then(|most| refusal_of_rate(&workload.traffic, most))
    }
}

fn streams(traffic: &Traffic) -> u32 {
    match traffic {
        Traffic::TcpStream { streams, .. } => *streams,
        Traffic::UdpStream { flows, .. } => *flows,
        Traffic::LoadedLatency(settings) => settings.streams,
        Traffic::Failover(settings) => settings.streams,
        Traffic::TcpRr(settings) | Traffic::UdpRr(settings) => settings.outstanding,
        Traffic::TcpCrr(settings) => settings.outstanding,
    }
}

fn refusal_of_rate(traffic: &Traffic, allowed: BitRate) -> Option<String> {
    match demand(traffic) {
        Demand::Unlimited => Some(format!(
            "a test without a rate was asked for, and this server allows {allowed} (--max-rate): ask for a rate with -b"
        )),
        Demand::Rate(asked) if asked > allowed => {
            Some(format!("{asked} was asked for, and this server allows {allowed} (--max-rate)"))
        }
        Demand::ClosedLoop { outstanding, size, most } if most > allowed => Some(format!(
            "a closed loop with {outstanding} of {size} under way was asked for, which reaches {most} where a round trip takes \
             {ROUND_TRIP_LEAST}, and this server allows {allowed} (--max-rate): ask for a schedule with --rate"
        )),
        _ => None,
    }
}

fn demand(traffic: &Traffic) -> Demand {
    match traffic {
        Traffic::TcpStream { rate, .. } | Traffic::UdpStream { rate, .. } => {
            rate.map_or(Demand::Unlimited, Demand::Rate)
        }
        Traffic::LoadedLatency(_) => Demand::Unlimited,
        Traffic::Failover(settings) if settings.streams > 0 => Demand::Unlimited,
        Traffic::Failover(settings) => {
            Demand::Rate(BitRate(settings.rate.0.saturating_mul(settings.size.0).saturating_mul(8)))
        }
        Traffic::TcpRr(settings) | Traffic::UdpRr(settings) => {
            of_requests(settings.outstanding, settings.size, settings.rate)
        }
        Traffic::TcpCrr(settings) => {
            of_requests(settings.outstanding, settings.request.max(settings.response), settings.rate)
        }
    }
}

fn of_requests(outstanding: u32, size: Bytes, rate: Option<PerSecond>) -> Demand {
    let bits = |messages: u64| BitRate(messages.saturating_mul(size.0).saturating_mul(8));
    if let Some(rate) = rate {
        return Demand::Rate(bits(rate.0));
    }
    let turns = 1_000_000_000 / ROUND_TRIP_LEAST.0;
    Demand::ClosedLoop { outstanding, size, most: bits(u64::from(outstanding).saturating_mul(turns)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As it comes from a client, but that a client's own quantities are bounded by the parser.
    fn requests(outstanding: u32, size: u64, rate: Option<u64>) -> Traffic {
        let settings = serde_json::json!({
            "type": "udp-rr", "size": "1 B", "outstanding": outstanding, "wait": "block", "rate": null,
        });
        let mut traffic = serde_json::from_value(settings).expect("settings of requests");
        if let Traffic::UdpRr(settings) = &mut traffic {
            (settings.size, settings.rate) = (Bytes(size), rate.map(PerSecond));
        }
        traffic
    }

    #[test]
    fn large_or_many_requests_are_a_stream_too_and_obey_the_highest_rate() {
        let allowed = BitRate(100_000_000);
        for (traffic, refused) in [
            (requests(1, 64, None), None),
            (requests(2, 64, None), Some("--rate")),
            (requests(1, 65_000, None), Some("52 Gbit/s")),
            (requests(1, 64, Some(100_000)), None),
            (requests(1, 1250, Some(10_000)), None),
            (requests(1, 1250, Some(10_001)), Some("--max-rate")),
            (requests(u32::MAX, u64::MAX, None), Some("--max-rate")),
            (requests(1, u64::MAX, Some(u64::MAX)), Some("--max-rate")),
        ] {
            let why = refusal_of_rate(&traffic, allowed);
            assert_eq!(why.is_some(), refused.is_some(), "{traffic:?}: {why:?}");
            assert!(why.unwrap_or_default().contains(refused.unwrap_or_default()), "{traffic:?}");
        }
    }
}
