//! What a VM for DPDK needs beside packages: kernel modules, and no default route by the NIC that testpmd gets, because netduel gives no interface
//! with a default route to a program. Pure.
use netduel_model::bed::Image;
use netduel_model::bed::layout::{NicUse, Vm};

/// The file with the modules that systemd loads at each boot.
pub(super) const MODULES_FILE: &str = "/etc/modules-load.d/netduel.conf";
/// The modules: the kernel's side of DPDK's MANA driver, and the driver that hands a NIC of Hyper-V to a program.
pub(super) const MODULES_TEXT: &str = "mana_ib\nuio_hv_generic\n";
/// The unit that loads them.
pub(super) const MODULES_UNIT: &str = "systemd-modules-load.service";

/// Settings of systemd-networkd for an interface: neither routes of DHCP nor a router of IPv6. The network of its own addresses stays.
pub(super) const NO_ROUTES_TEXT: &str = "[DHCPv4]\nUseRoutes=no\n\n[IPv6AcceptRA]\nUseGateway=no\n";

/// The interface of the NIC for tests: cloud-init numbers the interfaces of a VM on Azure in the order of its NICs.
pub(super) fn test_interface(vm: &Vm) -> Option<String> {
    let mut attached = vm.nics.iter().filter(|nic| nic.is_attached());
    attached.position(|nic| nic.used_for == NicUse::Test).map(|index| format!("eth{index}"))
}

/// The file that adds settings to those of an interface, which the tool of the image has written; `None` for an image without systemd.
pub(super) fn network_file(image: Image, interface: &str) -> Option<String> {
    let tool = match image {
        Image::Ubuntu2404 | Image::Debian12 => "netplan",
        Image::AzureLinux3 => "cloud-init",
        Image::WindowsServer2022 => return None,
    };
    Some(format!("/etc/systemd/network/10-{tool}-{interface}.network.d/90-netduel.conf"))
}
