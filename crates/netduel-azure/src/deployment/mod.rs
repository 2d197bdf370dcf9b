//! What is done with a bed: checked and created (`up`), compared with its budget (`budget`), watched (`progress`), found and deleted (`groups`),
//! looked at and started (`inventory`). Nothing is printed, and no clock is read: the caller hands in the time.
pub mod budget;
mod error;
pub mod groups;
pub mod inventory;
pub mod list_price;
pub mod price;
pub mod progress;
mod resources;
mod sku;
mod subscription;
pub mod up;

pub use error::{BedError, Failure};
pub use inventory::Inventory;
pub use price::{DatedPrice, currency};
pub use progress::{Host, HostNic, State, Step};
pub use resources::Foreign;
pub use sku::quotas;
pub use subscription::Subscription;

#[cfg(test)]
mod tests {
    use super::{groups, inventory, progress, up};
    use crate::az::{CALL_LIMIT, PAUSE_S};
    use crate::resource::CHANGE_LIMIT;

    #[test]
    fn design_note_has_the_time_limits() {
        let note = include_str!("../../../../docs/design/0036-azure.md");
        let note = note.split_whitespace().collect::<Vec<_>>().join(" ");
        let limits = [CALL_LIMIT, up::REQUEST_LIMIT, groups::DELETION_LIMIT, CHANGE_LIMIT];
        let [call, request, deletion, change] = limits.map(|limit| limit.as_secs() / 60);
        let (deployment, start) = (progress::LIMIT_MIN, inventory::LIMIT_MIN);
        for part in [
            format!("Limits: {call} min for a call, {request} min for the request of a deployment, "),
            format!("{deployment} min for the deployment and {start} min for a start of VMs, "),
            format!("{deletion} min for a deletion that is awaited, {change} min for a change, "),
            format!("A look at the deployment is two calls, every {PAUSE_S} s."),
        ] {
            assert!(note.contains(&part), "docs/design/0036-azure.md lacks this text: {part}");
        }
    }
}
