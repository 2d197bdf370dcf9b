//! What the size of a machine lets through, as far as its provider states it.
use netduel_model::size::{self, Size};
use netduel_model::snapshot::{HostSnapshot, Provider};
use netduel_model::units::human_bit_rate;

use super::finding::{Finding, Severity};

/// The size of a host, when the table has it.
pub(super) fn known(host: &HostSnapshot) -> Option<&'static Size> {
    size::named(host.cloud.as_ref()?.size.as_deref()?)
}

/// The limit of a host's size as a note, or that it is not known on the cloud whose sizes the table has.
pub(super) fn find(host: &HostSnapshot) -> Option<Finding> {
    let cloud = host.cloud.as_ref()?;
    let name = cloud.size.as_deref()?;
    if let Some(size) = known(host) {
        let rate = human_bit_rate(size.rate().0 as f64);
        let finding = Finding::new(
            "size-limit",
            Severity::Note,
            format!("{} sends at most {rate}, all interfaces together", size.name),
        )
        .seen(size.source())
        .seen(format!("accelerated networking is {} on this size", size.accelerated));
        let finding =
            if size.doubt.is_empty() { finding } else { finding.seen(format!("that figure {}", size.doubt)) };
        return Some(
            finding
                .why("no path shows more than that: two paths that both reach it look alike, and CPU cost and latency tell them apart")
                .remedy("nothing; if you know another limit, write expect_mbps in the plan"),
        );
    }
    (cloud.provider == Provider::Azure).then(|| {
        Finding::new("size-unknown", Severity::Note, format!("the limit of {name} is not known"))
            .seen(format!("the table of sizes has no {name}"))
            .why("a plateau at the size's limit cannot be told from one of the path")
            .remedy("look the size's network bandwidth up and write it as expect_mbps in the plan")
            .command(format!("az vm list-skus --size {name} --query '[].capabilities'"))
    })
}
