//! The size of a plan: what is checked and run grows with the product of arms and workloads, and each trial has a copy of its settings.
use crate::plan::limits::{ARMS_MAX, HOSTS_MAX, TRIALS_PER_BLOCK_MAX, WORKLOADS_MAX};
use crate::plan::problem::{Problems, element_path, key_path};
use crate::plan::settings::DpdkSpec;
use crate::plan::spec::{PlanSpec, WorkloadSpec};

/// Text of testpmd's program and arguments at most, bytes.
const TESTPMD_TEXT_MAX: usize = 4096;

/// Notes what is too large; false when the plan is too large to be checked any further.
pub(super) fn check(spec: &PlanSpec, problems: &mut Problems<'_>) -> bool {
    let before = problems.len();
    let hosts = spec.hosts.as_ref().map_or(0, std::collections::BTreeMap::len);
    let arms = spec.arms.as_ref().map_or(0, Vec::len);
    let each = |workload: &WorkloadSpec| workload.frames.as_ref().map_or(1, Vec::len);
    let workloads: usize = spec.workloads.iter().flatten().map(each).sum();
    for (key, count, most) in
        [("hosts", hosts, HOSTS_MAX), ("arms", arms, ARMS_MAX), ("workloads", workloads, WORKLOADS_MAX)]
    {
        if count > most {
            problems.add(key, format!("has {count} entries"), format!("at most {most} are allowed"));
        }
    }
    if arms * workloads > TRIALS_PER_BLOCK_MAX {
        let wrong =
            format!("has {arms} arms and {workloads} workloads, {} trials in a block", arms * workloads);
        let allowed =
            format!("at most {TRIALS_PER_BLOCK_MAX} trials in a block are allowed; write several plans");
        problems.add("workloads", wrong, allowed);
    }
    for (index, workload) in spec.workloads.iter().flatten().enumerate() {
        check_testpmd(workload.settings.dpdk.as_ref(), &element_path("workloads", index), problems);
    }
    for (index, arm) in spec.arms.iter().flatten().enumerate() {
        let dpdk = arm.set.as_ref().and_then(|set| set.dpdk.as_ref());
        check_testpmd(dpdk, &key_path(&element_path("arms", index), "set"), problems);
    }
    problems.len() == before
}

fn check_testpmd(dpdk: Option<&DpdkSpec>, path: &str, problems: &mut Problems<'_>) {
    let words = dpdk.into_iter().flat_map(|dpdk| dpdk.program.iter().chain(dpdk.args.iter().flatten()));
    let length: usize = words.map(String::len).sum();
    if length > TESTPMD_TEXT_MAX {
        let wrong = format!("has a program and arguments of {length} bytes");
        problems.add(&key_path(path, "dpdk"), wrong, format!("at most {TESTPMD_TEXT_MAX} bytes are allowed"));
    }
}
