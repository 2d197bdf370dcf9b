//! The shell commands that set up a scene's interfaces in a guest, with the functions of `scene.sh`. It runs nothing.
use std::fmt::Write as _;

use crate::scene::{Device, Role, STANDBY, Scene};

/// The commands for a guest (1 or 2).
pub fn script(scene: &Scene, guest: u8) -> String {
    let mut script = "set -eu\n. /scene.sh\n".to_owned();
    for nic in scene.nics {
        let (name, mac) = (nic.interface, scene.mac(guest, nic));
        let mut rename =
            |driver: &str, name: &str| line(&mut script, format_args!("rename {mac} {driver} {name}"));
        match nic.device {
            Device::Virtio { .. } => rename("virtio_net", name),
            Device::Standby => {
                rename("failover_master", name);
                rename("failover_standby", &format!("{name}{STANDBY}"));
            }
            Device::Igb { .. } => rename("igb", name),
            Device::E1000e { .. } => rename("e1000e", name),
            Device::Vmxnet3 => rename("vmxnet3", name),
            Device::FreePort => continue,
        }
        if let Some(subnet) = nic.subnet {
            address(&mut script, guest, name, subnet);
        }
    }
    functions(&mut script, scene, guest);
    for nic in scene.nics {
        match nic.device {
            Device::FreePort => continue,
            Device::Standby => line(&mut script, format_args!("up {}{STANDBY}", nic.interface)),
            _ => {}
        }
        line(&mut script, format_args!("up {}", nic.interface));
    }
    for nic in scene.nics.iter().filter(|nic| nic.device == Device::Standby) {
        if let Some(subnet) = nic.subnet {
            line(&mut script, format_args!("announce {} 10.{subnet}.0.{guest}", nic.interface));
        }
    }
    script
}

fn functions(script: &mut String, scene: &Scene, guest: u8) {
    for nic in scene.nics {
        let Device::Igb { functions } = nic.device else { continue };
        if functions.is_empty() {
            continue;
        }
        let numbered = || functions.iter().enumerate();
        let macs: Vec<String> =
            numbered().map(|(index, function)| scene.function_mac(guest, nic, index, function)).collect();
        line(script, format_args!("virtual_functions {} {}", nic.interface, macs.join(" ")));
        for (function, mac) in functions.iter().zip(&macs) {
            line(script, format_args!("rename {mac} igbvf {}", function.interface));
            if let Role::Alone { subnet } = function.role {
                address(script, guest, function.interface, subnet);
            }
            line(script, format_args!("up {}", function.interface));
        }
    }
}

fn address(script: &mut String, guest: u8, interface: &str, subnet: u8) {
    line(script, format_args!("ip address add 10.{subnet}.0.{guest}/24 dev {interface}"));
}

fn line(script: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing to a text cannot fail.
    let _ = writeln!(script, "{text}");
}
