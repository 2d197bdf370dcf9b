//! Doubts as sentences. Outlier blocks of one workload share a sentence: a noisy machine has many, and they say one thing.
use netduel_model::ids::WorkloadName;
use netduel_model::warning::Warning;

use super::times;
use crate::analysis::Analysis;

/// Every doubt of a run, one sentence each, in the order in which they are stored and derived.
pub fn warnings(analysis: &Analysis) -> Vec<String> {
    let mut sentences = Vec::new();
    let mut told: Vec<&WorkloadName> = Vec::new();
    for warning in &analysis.warnings {
        match warning {
            Warning::OutlierBlock { workload, .. } if told.contains(&workload) => {}
            Warning::OutlierBlock { workload, .. } => {
                told.push(workload);
                sentences.push(outliers(workload, &analysis.warnings));
            }
            other => sentences.push(other.to_string()),
        }
    }
    sentences
}

/// All outlier blocks of a workload.
fn outliers(workload: &WorkloadName, warnings: &[Warning]) -> String {
    let own: Vec<(&Warning, String)> = warnings
        .iter()
        .filter_map(|warning| match warning {
            Warning::OutlierBlock { arm, workload: of, metric, block, times_median } if of == workload => {
                let seen =
                    format!("{} of {arm} in block {} ({})", metric.title(), block + 1, times(*times_median));
                Some((warning, seen))
            }
            _ => None,
        })
        .collect();
    match own.as_slice() {
        [(one, _)] => one.to_string(),
        many => format!(
            "outlier blocks: in {workload} these lie far from the median of the others: {}; they stay in the result, look at what \
             else ran then",
            many.iter().map(|(_, seen)| seen.as_str()).collect::<Vec<_>>().join(", ")
        ),
    }
}
