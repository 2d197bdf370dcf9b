//! Round trips per minute under load, after draft-ietf-ippm-responsiveness-06, section "Aggregating the Measurements", for the
//! case without TLS. `docs/methodology.md` lists the differences.
use netduel_model::trial::Trial;

use super::figures;

/// The fraction of the samples that enter the mean: the draft's trimmed mean (TMP), single-sided.
const TRIMMED_SHARE: f64 = 0.95;
const MINUTE_NS: f64 = 60e9;

/// Round trips per minute of a trial; absent when one of the three kinds of round trips has too few samples.
pub(super) fn of_trial(trial: &Trial) -> Option<f64> {
    let under_load = trial.client.as_ref()?.report.under_load.as_ref()?;
    let mean = |record| figures::of_record(record)?.trimmed_mean(TRIMMED_SHARE);
    let (connect, exchange) = (mean(&under_load.foreign.connect)?, mean(&under_load.foreign.exchange)?);
    Some(per_minute(connect, exchange, mean(&under_load.in_band)?))
}

/// Whether requests were sent under load: a trial that has these and no value has too few responses of a kind.
pub(super) fn has_requests(trial: &Trial) -> bool {
    let under_load = trial.client.as_ref().and_then(|end| end.report.under_load.as_ref());
    under_load.is_some_and(|load| load.foreign.attempted.max(load.in_band_requests) > 1)
}

/// Round trips per minute from the trimmed means of the three kinds, nanoseconds.
fn per_minute(connect_ns: f64, exchange_ns: f64, in_band_ns: f64) -> f64 {
    let foreign = MINUTE_NS / f64::midpoint(connect_ns, exchange_ns);
    let loaded = MINUTE_NS / in_band_ns;
    f64::midpoint(foreign, loaded)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trips_of_ten_milliseconds_are_six_thousand_a_minute() {
        assert!((per_minute(10e6, 10e6, 10e6) - 6000.0).abs() < 1e-9);
        // Foreign 60000 / ((20 + 40) / 2) = 2000, loaded 60000 / 120 = 500, their mean 1250.
        assert!((per_minute(20e6, 40e6, 120e6) - 1250.0).abs() < 1e-9);
    }
}
