//! Checks of the results of both ends that fail a trial: packets that never left the host although their generator counts them as sent, and
//! round trips of which none was completed.
use netduel_model::packet_path::FRAMES_REJECTED;
use netduel_model::sample::ErrorCount;
use netduel_model::trial::{Trial, TrialEnd, Validity};
use netduel_model::workload::Workload;

/// Minimum number of packets for a judgment.
const PROOF_MIN: u64 = 1_000;

/// Fails a trial whose packets neither the sender's interface nor the receiver counted: they were not lost on the path.
pub(super) fn judge_packets(workload: &Workload, trial: &mut Trial, [client, server]: [&TrialEnd; 2]) {
    let Some(packets) =
        workload.traffic.facts().packets.filter(|packets| packets.engine.is_dropped_silently())
    else {
        return;
    };
    let messages = |flow: Option<&netduel_model::sample::Flow>| flow.map_or(0, |flow| flow.messages);
    let sent = messages(client.report.sent.as_ref());
    let taken = messages(server.report.received.as_ref());
    let used = client.report.packets.as_ref().map(|report| report.interface.as_str());
    let used = used.or(packets.client_interface.as_deref());
    let counted = client
        .observation
        .interfaces
        .iter()
        .filter(|interface| used.is_none_or(|name| name == interface.name))
        .map(|interface| interface.tx_packets)
        .max();
    if let Some(reason) = unseen(used.unwrap_or("its interface"), sent, counted, taken) {
        trial.validity = Validity::Failed { reason };
    }
}

/// Fails a trial of round trips without a completed round trip: it has no percentiles.
pub(super) fn judge_round_trips(trial: &mut Trial, client: &TrialEnd) {
    if let Some(trips) = &client.report.round_trips
        && trips.responses == 0
    {
        let failed = client.report.errors.iter().find(|error| !error.call.starts_with("setsockopt"));
        let reason = match (trips.requests, failed) {
            (0, Some(ErrorCount { call, error, .. })) => {
                format!("no round trip was completed: the client sent no request: {call}: {error}")
            }
            // A client that runs sends its first request at once: a path that is closed leaves requests without a response.
            (0, None) => "no round trip was completed: the client sent no request, because its thread did not run within the \
                          duration; free a core of its host from other processes, or raise the duration"
                .to_owned(),
            (requests, _) => format!(
                "no round trip was completed: the client sent {requests} requests and received no response; look for a firewall or for \
                 loss on the path"
            ),
        };
        trial.validity = Validity::Failed { reason };
    }
}

/// Why packets were never sent, as opposed to lost: the kernel generated `sent`, the sender's interface counted `counted`, the receiver `taken`.
fn unseen(interface: &str, sent: u64, counted: Option<u64>, taken: u64) -> Option<String> {
    // The handshake and the end markers are a few packets.
    let counted = counted.filter(|counted| counted.saturating_mul(100) < sent)?;
    (sent >= PROOF_MIN && taken == 0).then(|| {
        format!(
            "the kernel generated {sent} packets for {interface}, which counted {counted} as sent, and none arrived: {FRAMES_REJECTED}; \
             enable GRO at the peer of a veth (`ethtool -K PEER gro on`), or use the generator `xdp` or `socket`"
        )
    })
}

#[cfg(test)]
mod tests {
    use netduel_model::observation::Observation;

    use super::*;

    #[test]
    fn packets_without_a_receiving_counter_are_no_loss_of_the_path() {
        let reason = unseen("va", 1_000_000, Some(3), 0).unwrap();
        assert!(reason.contains("generated 1000000 packets for va, which counted 3"), "{reason}");
        assert_eq!(unseen("va", 1_000_000, Some(1_000_000), 0), None, "a path that loses all");
        assert_eq!(unseen("va", 1_000_000, Some(3), 1), None, "a receiver that saw some");
        assert_eq!(unseen("va", 1_000_000, None, 0), None, "no counter");
        assert_eq!(unseen("va", 10, Some(0), 0), None, "too few to tell");
    }

    #[test]
    fn trial_without_a_round_trip_is_invalid() {
        let of = |requests: u64, responses: u64, call: Option<&str>| {
            let histogram = serde_json::json!({ "count": responses, "min": 0, "max": 0, "pairs": [] });
            let errors =
                call.map(|call| serde_json::json!({ "call": call, "error": "EPERM: denied", "count": 1 }));
            let report = serde_json::json!({
                "role": "client", "sent": null, "received": null, "streams": [], "datagrams": null,
                "errors": errors.into_iter().collect::<Vec<_>>(), "process_cpu_ns": [1, 2],
                "round_trips": {
                    "requests": requests, "responses": responses, "timeouts": requests - responses,
                    "histogram": histogram, "pacing_error": null, "series": [],
                },
            });
            let report = serde_json::from_value(report).unwrap();
            let slot = serde_json::json!({ "block": 0, "position": 0, "arm": "a", "workload": "w" });
            let mut trial = Trial::new(serde_json::from_value(slot).unwrap(), 0, 0);
            judge_round_trips(&mut trial, &TrialEnd { report, observation: Observation::default() });
            trial.validity
        };
        assert_eq!(of(5, 1, None), Validity::Valid);
        for (requests, call, part) in [
            (5, None, "sent 5 requests and received no response"),
            (0, None, "did not run within the duration"),
            (0, Some("setsockopt SO_RCVBUF"), "did not run within the duration"),
            (0, Some("send"), "sent no request: send: EPERM: denied"),
        ] {
            let Validity::Failed { reason } = of(requests, 0, call) else { panic!("it is valid") };
            assert!(reason.contains(part), "{reason}");
        }
    }
}
