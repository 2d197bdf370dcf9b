//! The limits of a server, and its refusals. A test is checked before any of its sockets exists.
use netduel_model::units::{BitRate, Bytes, Nanos};
use netduel_model::workload::{Demand, Traffic, Workload};

use crate::quick::options::option;

/// Lower bound of the round trip between two machines. It bounds the rate of a closed loop, which has no configured rate.
const ROUND_TRIP_LEAST: Nanos = Nanos(10_000);

/// The limits of a server.
#[derive(Debug, Clone, Copy)]
pub struct Rules {
    /// Maximum duration of a test.
    pub longest: Nanos,
    /// Maximum payload rate of a test, in each direction.
    pub fastest: Option<BitRate>,
    /// Maximum number of connections, flows or outstanding requests of a test.
    pub streams: u32,
}

impl Rules {
    /// The reason for refusing a workload; absent when it is allowed.
    pub fn refusal(&self, workload: &Workload) -> Option<String> {
        if let Some(out) = workload.out_of_range() {
            return Some(out.to_string());
        }
        let duration = workload.timing.duration;
        if duration > self.longest {
            let most = self.longest;
            return Some(format!("the test takes {duration}; this server allows {most} (--max-duration)"));
        }
        let concurrency = workload.traffic.facts().concurrency;
        if concurrency > self.streams {
            let most = self.streams;
            return Some(format!(
                "the test has {concurrency} connections, flows or outstanding requests; this server allows {most} (--max-streams)"
            ));
        }
        self.fastest.and_then(|most| refusal_of_rate(&workload.traffic, most))
    }
}

fn refusal_of_rate(traffic: &Traffic, allowed: BitRate) -> Option<String> {
    let turns = 1_000_000_000 / ROUND_TRIP_LEAST.0;
    let reached = |outstanding: u32, size: Bytes| {
        BitRate(u64::from(outstanding).saturating_mul(turns).saturating_mul(size.0).saturating_mul(8))
    };
    match traffic.facts().demand {
        Demand::Unlimited => {
            let settings = traffic.kind().settings();
            let limits = ["rate", "packet_rate", "request_rate"];
            let limit = limits.into_iter().find(|key| settings.iter().any(|setting| setting.key == *key));
            let remedy = limit
                .and_then(option)
                .map_or_else(String::new, |option| format!("; set a rate with {option}"));
            Some(format!("the test has no rate limit; this server allows {allowed} (--max-rate){remedy}"))
        }
        Demand::Rate(rate) if rate > allowed => {
            Some(format!("the test has a rate of {rate}; this server allows {allowed} (--max-rate)"))
        }
        Demand::ClosedLoop { outstanding, size } if reached(outstanding, size) > allowed => Some(format!(
            "a closed loop with {outstanding} outstanding requests of {size} reaches {} at a round trip of {ROUND_TRIP_LEAST}; \
             this server allows {allowed} (--max-rate); set an open loop with --rate",
            reached(outstanding, size)
        )),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use netduel_model::plan::{self, spec::SettingsSpec};
    use netduel_model::units::PerSecond;
    use netduel_model::workload::WorkloadType;

    use super::*;

    /// As received from a client, except that the parser already limits the client's own quantities.
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
    fn refusal_of_an_unlimited_test_names_the_option_of_its_rate() {
        for (kind, option) in [
            (WorkloadType::TcpStream, "-b (--bitrate)"),
            (WorkloadType::UdpStream, "-b (--bitrate)"),
            (WorkloadType::Pps, "--rate"),
        ] {
            let traffic = plan::traffic(&SettingsSpec::default(), kind, Nanos(1_000_000_000));
            let refusal = refusal_of_rate(&traffic, BitRate(1_000_000)).expect("it has no rate");
            assert!(refusal.ends_with(&format!("; set a rate with {option}")), "{refusal}");
        }
    }

    #[test]
    fn closed_loops_obey_the_maximum_rate() {
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
