//! Checks of the results of both ends that fail a trial: packets that never left the host although their generator
//! counts them as sent, round trips of which none was completed, and streams whose data was not acknowledged.
use netduel_model::packet_path::FRAMES_REJECTED;
use netduel_model::sample::{ErrorCount, UNACKNOWLEDGED};
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

/// Fails a trial of streams whose data was not acknowledged when its end gave up: they had not ended. A workload
/// that interrupts its own path may end so.
pub(super) fn judge_streams(workload: &Workload, trial: &mut Trial, ends: [&TrialEnd; 2]) {
    if !workload.traffic.facts().is_stream() {
        return;
    }
    let discarded = |error: &&ErrorCount| (&*error.call, &*error.error) == UNACKNOWLEDGED;
    for report in ends.map(|end| &end.report) {
        if let Some(ErrorCount { count, .. }) = report.errors.iter().find(discarded) {
            let (role, peer) = (report.role, report.role.opposite());
            let reason = format!(
                "the {peer} had not acknowledged all data of the {role} when the time for it was over \
                 (connections: {count}), and the rest was discarded; look for a receiver that stopped reading or \
                 a path that was lost"
            );
            trial.validity = Validity::Failed { reason };
        }
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
    use netduel_model::plan::parse;

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

    /// The end of a client, which failed in one call or in none.
    fn client(failed: Option<(&str, &str)>, round_trips: &serde_json::Value) -> TrialEnd {
        let errors =
            failed.map(|(call, error)| serde_json::json!({ "call": call, "error": error, "count": 1 }));
        let report = serde_json::json!({
            "role": "client", "sent": null, "received": null, "streams": [], "datagrams": null,
            "errors": errors.into_iter().collect::<Vec<_>>(), "process_cpu_ns": [1, 2],
            "round_trips": round_trips,
        });
        TrialEnd { report: serde_json::from_value(report).unwrap(), observation: Observation::default() }
    }

    fn valid_trial() -> Trial {
        let slot = serde_json::json!({ "block": 0, "position": 0, "arm": "a", "workload": "w" });
        Trial::new(serde_json::from_value(slot).unwrap(), 0, 0)
    }

    #[test]
    fn trial_of_streams_with_unacknowledged_data_is_invalid_and_that_of_a_failover_is_not() {
        let ended = client(None, &serde_json::Value::Null);
        let cut = client(Some(UNACKNOWLEDGED), &serde_json::Value::Null);
        let of = |text: &str, ends: [&TrialEnd; 2]| {
            let plan = parse(text, "plan.toml").unwrap();
            let mut trial = valid_trial();
            judge_streams(&plan.arms[0].workloads[0], &mut trial, ends);
            trial.validity
        };
        let streams = include_str!("../../../../plans/streams.toml");
        let failover = include_str!("../../../../plans/failover.toml");
        assert_eq!(of(streams, [&ended, &ended]), Validity::Valid);
        for ends in [[&cut, &ended], [&ended, &cut]] {
            let Validity::Failed { reason } = of(streams, ends) else { panic!("it is valid") };
            assert!(reason.contains("the server had not acknowledged all data of the client"), "{reason}");
            assert_eq!(of(failover, ends), Validity::Valid);
        }
    }

    #[test]
    fn trial_without_a_round_trip_is_invalid() {
        let of = |requests: u64, responses: u64, call: Option<&str>| {
            let round_trips = serde_json::json!({
                "requests": requests, "responses": responses, "timeouts": requests - responses,
                "histogram": { "count": responses, "min": 0, "max": 0, "pairs": [] },
                "pacing_error": null, "series": [],
            });
            let mut trial = valid_trial();
            judge_round_trips(&mut trial, &client(call.map(|call| (call, "EPERM: denied")), &round_trips));
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
