//! The network limit of a machine's size, as its provider publishes it.
use netduel_model::shell;
use netduel_model::size::{self, Size};
use netduel_model::snapshot::{HostSnapshot, Provider};
use netduel_model::units::human_bit_rate;

use super::finding::{Finding, Severity};

/// The size of a host, if the table contains it.
pub(super) fn known(host: &HostSnapshot) -> Option<&'static Size> {
    size::named(host.cloud.as_ref()?.size.as_deref()?)
}

/// The limit of a host's size, or a note that it is unknown on the cloud whose sizes the table contains.
pub(super) fn find(host: &HostSnapshot) -> Option<Finding> {
    let cloud = host.cloud.as_ref()?;
    let name = cloud.size.as_deref()?;
    if let Some(size) = known(host) {
        let rate = human_bit_rate(size.rate().0 as f64);
        let finding = Finding::new(
            "size-limit",
            Severity::Note,
            format!("{} sends at most {rate} over all interfaces", size.name),
        )
        .seen(size.source())
        .seen(format!("accelerated networking is {} on this size", size.accelerated));
        let finding =
            if size.doubt.is_empty() { finding } else { finding.seen(format!("this limit {}", size.doubt)) };
        return Some(
            finding
                .why("two paths that both reach the limit have the same throughput; CPU cost and latency then show the difference")
                .remedy("none needed; set expect_mbps in the plan if you know another limit"),
        );
    }
    (cloud.provider == Provider::Azure).then(|| {
        Finding::new("size-unknown", Severity::Note, format!("the network limit of {name} is unknown"))
            .seen(format!("netduel's table of sizes does not contain {name}"))
            .why("a plateau at the limit of the size cannot be distinguished from a limit of the path")
            .remedy("look up the network bandwidth of the size and set it as expect_mbps in the plan")
            .command(format!(
                "az vm list-skus --size {name} --query '[].capabilities'",
                name = shell::word(name)
            ))
    })
}
