//! What DPDK needs of a host, read from its files: huge pages, drivers of its own, and which driver has a NIC. Changes nothing; the
//! root of the files is handed in, so that a written tree can play a host that is not here.
mod binding;
mod drivers;
mod huge_pages;

pub use binding::{Binding, BindingError, Hyperv};
pub use drivers::{Drivers, package};
pub use huge_pages::{HugePages, PAGE_KIB};
