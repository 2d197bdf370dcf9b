//! The words of verdicts, effects and intervals.
use super::*;

fn estimate(centre: f64, low: f64, high: f64) -> Estimate {
    Estimate { n: 8, centre, low, high, confidence: 0.95, p_value: 0.01 }
}

fn judged(verdict: Verdict) -> Judged {
    Judged { verdict, estimate: verdict.estimate(), adjusted_p: None }
}

fn comparison(verdict: Verdict, [pairs, blocks]: [usize; 2]) -> Comparison {
    Comparison {
        arm: "a".parse().unwrap(),
        pairs: vec![(0, 1.0, 1.0); pairs],
        is_crossover: false,
        at_least: [false; 2],
        without: [0; 2],
        margin: 0.05,
        blocks,
        contention: None,
        judged: Some(judged(verdict)),
        withheld: None,
    }
}

fn inconclusive(more: Option<Forecast>) -> Verdict {
    Verdict::Inconclusive { estimate: Some(estimate(1.0, 0.0, f64::INFINITY)), more }
}

#[test]
fn inconclusive_verdicts_state_the_missing_blocks() {
    for (more, pairs, words) in [
        (Some(Forecast::About(12)), 8, "inconclusive: about 12 more blocks"),
        (
            Some(Forecast::About(9819)),
            8,
            "inconclusive: the spread is too large; use longer trials or quieter hosts",
        ),
        (Some(Forecast::About(1)), 8, "inconclusive: about 1 more block"),
        (Some(Forecast::About(100)), 8, "inconclusive: about 100 more blocks"),
        (Some(Forecast::About(101)), 8, "inconclusive: more than 100 more blocks"),
        (Some(Forecast::AtLeast(7)), 8, "inconclusive: at least 7 more blocks"),
        (Some(Forecast::AtLeast(2)), 6, "inconclusive: 6 of 8 blocks have a pair, at least 8 needed"),
        (Some(Forecast::About(12)), 6, "inconclusive: about 12 more blocks (6 of 8 pairs)"),
        (None, 8, "inconclusive"),
    ] {
        assert_eq!(verdict(Metric::LatencyP50, &comparison(inconclusive(more), [pairs, 8])), words);
    }
    let none = comparison(Verdict::Inconclusive { estimate: None, more: None }, [0, 8]);
    assert_eq!(verdict(Metric::Loss, &none), "inconclusive: no block with both arms");
    let zero = comparison(Verdict::Inconclusive { estimate: None, more: None }, [8, 8]);
    let words = "inconclusive: no pair has a ratio, because values are 0";
    assert_eq!(verdict(Metric::Jitter, &zero), words);
}

#[test]
fn pairs_that_have_no_ratio_are_not_counted() {
    let lower = comparison(Verdict::Lower { estimate: estimate(0.31, 0.29, 0.34) }, [10, 10]);
    assert_eq!(verdict(Metric::Jitter, &lower), "69 % lower [66, 71] (8 of 10 pairs)");
}

#[test]
fn pair_of_a_crossover_has_two_blocks() {
    let words = |more, pairs| {
        let one = Comparison { is_crossover: true, ..comparison(inconclusive(more), pairs) };
        verdict(Metric::Throughput, &one)
    };
    for (more, pairs, expected) in [
        (
            Some(Forecast::AtLeast(8)),
            [3, 5],
            "inconclusive: 3 of 5 pairs of blocks have values, at least 7 needed",
        ),
        (Some(Forecast::AtLeast(8)), [3, 3], "inconclusive: at least 8 more blocks"),
        (Some(Forecast::About(12)), [7, 8], "inconclusive: about 12 more blocks (7 of 8 pairs)"),
    ] {
        assert_eq!(words(more, pairs), expected);
    }
    let none = comparison(Verdict::Inconclusive { estimate: None, more: None }, [0, 0]);
    let none = Comparison { is_crossover: true, ..none };
    let expected = "inconclusive: no two blocks, one of each half, with both arms";
    assert_eq!(verdict(Metric::Throughput, &none), expected);
}

#[test]
fn effect_of_values_that_are_bounds_is_at_least_so_large() {
    let of = |verdict: Verdict| Comparison { at_least: [true, false], ..comparison(verdict, [8, 8]) };
    let lower = of(Verdict::Lower { estimate: estimate(0.31, 0.29, 0.34) });
    assert_eq!(verdict(Metric::LatencyP50, &lower), "at least 69 % lower [66, 71]");
    assert_eq!(lower.estimated(), lower.judged.as_ref());
    assert_eq!(verdict(Metric::Throughput, &lower), "at most 0.31x (-69 %) [0.29x, 0.34x]");
    let higher = of(Verdict::Higher { estimate: estimate(3.2, 2.9, 3.5) });
    assert_eq!(verdict(Metric::Throughput, &higher), "at least 3.2x (+220 %) [2.9x, 3.5x]");
    assert_eq!(verdict(Metric::LatencyP50, &higher), "at least 3.2x as high [2.9x, 3.5x]");
    let shown = |one: &Comparison| {
        let effect = shown_effect(Metric::LatencyP50, one.estimated(), one.has_bounds(), Sides::Arms);
        effect.words().to_owned()
    };
    assert_eq!(shown(&lower), "<= 0.310x [0.290x, 0.340x]");
    assert_eq!(shown(&Comparison { at_least: [false; 2], ..lower }), "0.310x [0.290x, 0.340x]");
    let open = of(inconclusive(Some(Forecast::About(3))));
    assert_eq!(open.estimated(), None, "its estimate may be too high or too low");
}

#[test]
fn withheld_verdicts_state_the_reason() {
    for (metric, withheld, words) in [
        (Metric::CpuPerGigabyte, Withheld::Bounds, "inconclusive: some values are only lower bounds"),
        (Metric::Throughput, Withheld::Bounds, "inconclusive: some values are only upper bounds"),
        (
            Metric::NoDropRate,
            Withheld::NoValue { trials: [0, 6] },
            "inconclusive: no value in 6 valid trials of a",
        ),
        (
            Metric::NoDropRate,
            Withheld::NoValue { trials: [1, 2] },
            "inconclusive: no value in 1 valid trial of the baseline and 2 valid trials of a",
        ),
        (
            Metric::CpuPerGigabyte,
            Withheld::CpuContention { share_max: 0.741 },
            "not comparable: other processes used up to 74 % of the CPU time of a host",
        ),
    ] {
        let withheld = Comparison { withheld: Some(withheld), ..comparison(inconclusive(None), [8, 8]) };
        assert_eq!(verdict(metric, &withheld), words);
    }
}

#[test]
fn every_kind_of_verdict_has_its_wording() {
    let higher = |[centre, low, high]: [f64; 3]| Verdict::Higher { estimate: estimate(centre, low, high) };
    let lower = |[centre, low, high]: [f64; 3]| Verdict::Lower { estimate: estimate(centre, low, high) };
    let same = |[centre, low, high]: [f64; 3], larger_than| Verdict::NoDifference {
        estimate: estimate(centre, low, high),
        larger_than,
    };
    for (metric, given, words) in [
        (Metric::Throughput, higher([3.2, 2.9, 3.5]), "3.2x (+220 %) [2.9x, 3.5x]"),
        (Metric::Throughput, lower([0.9, 0.88, 0.95]), "0.90x (-10 %) [0.88x, 0.95x]"),
        (Metric::LatencyP99, lower([0.31, 0.29, 0.34]), "69 % lower [66, 71]"),
        (Metric::LatencyP50, higher([12.0, 11.0, 13.0]), "12x as high [11x, 13x]"),
        (Metric::CpuPerGigabyte, lower([0.5, 0.4, 0.6]), "50 % less per GB [40, 60]"),
        (Metric::Jitter, higher([1.02, 1.01, 1.03]), "2.0 % higher [1.0, 3.0]"),
        (Metric::LatencyP99, lower([0.004, 0.003, 0.0051]), "99.6 % lower [99, 99.7]"),
        (Metric::LatencyP99, lower([1e-8, 1e-9, 1e-7]), ">99.9999 % lower [>99.9999, >99.9999]"),
        (Metric::Throughput, lower([0.004, 0.003, 0.0051]), "0.0040x (-99.6 %) [0.0030x, 0.0051x]"),
        (Metric::Throughput, lower([2e-8, 1e-8, 3e-8]), "0.0000000200x [0.0000000100x, 0.0000000300x]"),
        (Metric::CpuPerGigabyte, lower([0.0035, 0.003, 0.004]), "99.65 % less per GB [99.60, 99.70]"),
        (Metric::Loss, lower([-2e-6, -3e-6, -1e-6]), "0.00020 percentage points lower [0.00010, 0.00030]"),
        (Metric::Loss, lower([-0.012, -0.014, -0.01]), "1.2 percentage points lower [1.0, 1.4]"),
        (Metric::LostInOutage, lower([-2.0, -12.0, -1.5]), "2 probes lower [1.50, 12]"),
        (Metric::RetransmitsPerGigabyte, higher([40.0, 30.0, 50.0]), "40 segments/GB higher [30, 50]"),
        (Metric::Throughput, same([1.0, 0.99, 1.01], 0.05), "no difference beyond 5 %"),
        (Metric::Loss, same([0.0, 0.0, 0.0], 0.001), "no difference beyond 0.10 percentage points"),
    ] {
        assert_eq!(verdict(metric, &comparison(given, [8, 8])), words);
    }
}

#[test]
fn end_of_an_interval_does_not_read_like_the_estimate() {
    let words = |metric: Metric, [centre, low, high]: [f64; 3]| effect(metric, &estimate(centre, low, high));
    assert_eq!(words(Metric::Throughput, [4.73, 4.68, 4.92]), "4.73x (+373 %) [4.68x, 4.92x]");
    assert_eq!(words(Metric::Throughput, [12.02, 11.98, 14.0]), "12.02x [11.98x, 14.00x]");
    assert_eq!(words(Metric::LatencyP50, [0.362, 0.25, 0.364]), "63.8 % lower [63.6, 75.0]");
    assert_eq!(words(Metric::CpuPerGigabyte, [2.33, 2.31, 2.5]), "2.33x as much per GB [2.31x, 2.50x]");
    assert_eq!(
        interval(Metric::Throughput, &estimate(4.7312, 4.7298, 4.92), Sides::Arms),
        "4.731x [4.730x, 4.920x]"
    );
    // An end that is the estimate reads like it, and one that is as good as the estimate, too.
    assert_eq!(words(Metric::LatencyP50, [0.5, 0.5, 0.6]), "50 % lower [40, 50]");
    assert_eq!(words(Metric::LatencyP50, [0.5, 0.499_999_9, 0.6]), "50 % lower [40, 50]");
}

#[test]
fn unbounded_interval_is_not_printed() {
    let endless = estimate(2.0, 0.0, f64::INFINITY);
    assert_eq!(interval(Metric::Throughput, &endless, Sides::Arms), "2.00x, too few blocks for an interval");
    assert_eq!(interval(Metric::Throughput, &endless, Sides::Runs), "2.00x", "the verdict states it");
    assert_eq!(effect(Metric::Throughput, &endless), "2.0x (+100 %)");
}
