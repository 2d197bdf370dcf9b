//! Driver binding of Hyper-V's NICs: the VMBus device of an interface, the PCI function below it, and the files that change their
//! driver (Documentation/ABI/stable/sysfs-bus-vmbus, driver-api/driver-model).
use std::fs;
use std::path::{Path, PathBuf};

/// The driver that gives user-space programs access to a VMBus device.
const UIO: &str = "uio_hv_generic";
/// The kernel's driver of Hyper-V's synthetic NIC.
const NETVSC: &str = "hv_netvsc";

/// Reasons why DPDK cannot use a NIC. Each message completes "failed to ...".
#[derive(Debug, thiserror::Error)]
pub enum BindingError {
    /// Not a Hyper-V NIC.
    #[error(
        "find the VMBus device of {interface}: {why}; `netvsc` and `mana` are for the synthetic NICs of Hyper-V and Azure"
    )]
    NotOnTheBus {
        /// The interface.
        interface: String,
        /// What the device is.
        why: String,
    },
    /// A kernel module is not loaded.
    #[error(
        "hand {interface} to DPDK: the kernel's module {module} is not loaded; run `modprobe {module}` first"
    )]
    NoModule {
        /// The interface.
        interface: String,
        /// The module.
        module: &'static str,
    },
    /// A MANA NIC without its PCI function.
    #[error(
        "hand {interface} to DPDK: it has no PCI function, which DPDK's MANA driver needs; accelerated networking is off, or the \
         function is down"
    )]
    NoFunction {
        /// The interface.
        interface: String,
    },
}

/// A device and its driver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Binding {
    /// Its folder: `/sys/bus/vmbus/devices/...`.
    pub device: PathBuf,
    /// Its name on the bus.
    pub instance: String,
    /// Its current driver.
    pub driver: String,
}

/// A synthetic NIC and the function below it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hyperv {
    /// The synthetic device.
    pub binding: Binding,
    /// PCI address of the virtual function.
    pub function: Option<String>,
}

impl Hyperv {
    /// Reads the devices of an interface. `lower`: the interface below it, if there is one.
    ///
    /// # Errors
    /// When it is not a VMBus device, or does not use the kernel's driver.
    pub fn of(sys: &Path, interface: &str, lower: Option<&str>) -> Result<Self, BindingError> {
        let not = |why: String| BindingError::NotOnTheBus { interface: interface.to_owned(), why };
        let (instance, bus) = device_of(sys, interface).ok_or_else(|| not("it has no device".to_owned()))?;
        if bus != "vmbus" {
            return Err(not(format!("its device {instance} is on the bus {bus}")));
        }
        let device = sys.join("bus/vmbus/devices").join(&instance);
        let driver = link_name(&device.join("driver")).unwrap_or_default();
        if driver != NETVSC {
            return Err(not(format!("its driver is `{driver}`, not {NETVSC}")));
        }
        let function = lower
            .and_then(|lower| device_of(sys, lower))
            .filter(|(_, bus)| bus == "pci")
            .map(|(slot, _)| slot);
        Ok(Self { binding: Binding { device, instance, driver }, function })
    }

    /// The PCI function that MANA's driver needs.
    ///
    /// # Errors
    /// When there is no PCI function.
    pub fn function(interface: &str, function: Option<String>) -> Result<String, BindingError> {
        function.ok_or_else(|| BindingError::NoFunction { interface: interface.to_owned() })
    }

    /// Checks that a kernel module is loaded.
    ///
    /// # Errors
    /// When it is not loaded.
    pub fn check_module(sys: &Path, interface: &str, module: &'static str) -> Result<(), BindingError> {
        if sys.join("module").join(module).exists() {
            return Ok(());
        }
        Err(BindingError::NoModule { interface: interface.to_owned(), module })
    }
}

impl Binding {
    /// The driver that gives user-space programs access to a PCI device.
    pub const TO_PROGRAMS: &'static str = UIO;
}

/// Name and bus of an interface's device.
fn device_of(sys: &Path, interface: &str) -> Option<(String, String)> {
    let device = sys.join("class/net").join(interface).join("device");
    Some((link_name(&device)?, link_name(&device.join("subsystem"))?))
}

/// The last component of a link's target.
fn link_name(link: &Path) -> Option<String> {
    let target = fs::canonicalize(link).ok()?;
    Some(target.file_name()?.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    const INSTANCE: &str = "6045bdc0-eba3-6045-bdc0-eba36045bdc0";

    /// `/sys` of an Azure machine: eth1 on the VMBus with a function below it, ens5 on the PCI bus only.
    fn azure(driver: &str) -> tempfile::TempDir {
        let sys = tempfile::tempdir().unwrap();
        let at = |path: &str| sys.path().join(path);
        for folder in [
            "bus/vmbus/devices",
            "bus/pci",
            "class/net/eth1",
            "class/net/enP1s1",
            "class/net/ens5",
            "module/mana_ib",
        ] {
            fs::create_dir_all(at(folder)).unwrap();
        }
        fs::create_dir_all(at(&format!("bus/vmbus/drivers/{driver}"))).unwrap();
        let vmbus = at(&format!("devices/VMBUS:00/{INSTANCE}"));
        let pci = at("devices/pci7870:00/7870:00:00.0");
        for (device, bus) in [(&vmbus, "bus/vmbus"), (&pci, "bus/pci")] {
            fs::create_dir_all(device).unwrap();
            symlink(at(bus), device.join("subsystem")).unwrap();
        }
        symlink(at(&format!("bus/vmbus/drivers/{driver}")), vmbus.join("driver")).unwrap();
        symlink(&vmbus, at(&format!("bus/vmbus/devices/{INSTANCE}"))).unwrap();
        symlink(&vmbus, at("class/net/eth1/device")).unwrap();
        symlink(&pci, at("class/net/enP1s1/device")).unwrap();
        symlink(&pci, at("class/net/ens5/device")).unwrap();
        sys
    }

    #[test]
    fn synthetic_nic_is_found_with_its_virtual_function() {
        let sys = azure("hv_netvsc");
        let found = Hyperv::of(sys.path(), "eth1", Some("enP1s1")).unwrap();
        assert_eq!((found.binding.instance.as_str(), found.binding.driver.as_str()), (INSTANCE, "hv_netvsc"));
        assert_eq!(found.function.as_deref(), Some("7870:00:00.0"));
        assert_eq!(Hyperv::of(sys.path(), "eth1", None).unwrap().function, None);
    }

    #[test]
    fn other_devices_are_rejected_with_their_kind() {
        let sys = azure("hv_netvsc");
        let refused = |interface| Hyperv::of(sys.path(), interface, None).unwrap_err().to_string();
        assert!(refused("ens5").contains("on the bus pci"), "{}", refused("ens5"));
        assert!(refused("lo").contains("it has no device"), "{}", refused("lo"));
        let taken = azure("uio_hv_generic");
        let error = Hyperv::of(taken.path(), "eth1", None).unwrap_err().to_string();
        assert!(error.contains("`uio_hv_generic`, not hv_netvsc"), "{error}");
    }

    #[test]
    fn missing_module_is_reported() {
        let sys = azure("hv_netvsc");
        Hyperv::check_module(sys.path(), "eth1", "mana_ib").unwrap();
        let error = Hyperv::check_module(sys.path(), "eth1", "uio_hv_generic").unwrap_err().to_string();
        assert!(error.contains("modprobe uio_hv_generic"), "{error}");
    }
}
