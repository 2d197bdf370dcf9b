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
