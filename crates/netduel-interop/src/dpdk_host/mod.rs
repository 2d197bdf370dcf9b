//! DPDK's requirements of a host, read from files: huge pages, DPDK drivers, and driver bindings of NICs. Changes nothing; the
//! root of the files is a parameter, so that tests can use synthetic hosts.
mod binding;
mod drivers;
mod huge_pages;

pub use binding::{Binding, BindingError, Hyperv};
pub use drivers::{Drivers, package};
pub use huge_pages::{HugePages, PAGE_KIB};
