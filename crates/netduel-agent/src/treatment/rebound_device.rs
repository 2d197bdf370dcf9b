//! A device that gets another driver and then its own again, with the interface that comes and goes with that: the NICs of Hyper-V
//! (docs.kernel.org: `driver_override` of a bus).
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use netduel_host::LinkState;
use netduel_sys::{clock, link};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::device::RETURN_DEADLINE;
use super::device_settings::DeviceSettings;
use super::error::TreatmentError;
use super::interface_name::name_again;
use super::steering::all;

/// The file of a device with the name of the driver that it is to get.
const OVERRIDE: &str = "driver_override";
/// An empty line takes the wish for a driver away.
const NO_WISH: &str = "\n";
/// How often a device is checked: files of `/sys` do not report changes.
const LOOK_NS: u64 = 5_000_000;

/// A device as it was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(super) struct ReboundDevice {
    /// Its folder.
    device: PathBuf,
    /// The folder of its bus.
    bus: PathBuf,
    /// The driver that it had.
    driver: String,
    /// The driver that it was to get by the user's wish.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    driver_override: Option<String>,
    /// Its interface then.
    interface: String,
    /// By this the interface is known again.
    mac: String,
    up: bool,
    /// With the lengths of their prefixes, those that the kernel makes by itself left out.
    addresses: Vec<String>,
    mtu: u32,
    /// Routes through it that a user or a program added, each with the family's word and as `ip` takes it, of every table.
    routes: Vec<(String, String)>,
    /// Its driver starts it anew with its defaults.
    #[serde(default)]
    settings: DeviceSettings,
}

impl ReboundDevice {
    /// Reads a device and its interface.
    pub(super) fn read(device: &Path, bus: &Path, interface: &str) -> Result<Self, TreatmentError> {
        let doing = || format!("hand {interface} over to another program");
        let driver = driver_of(device).ok_or_else(|| {
            TreatmentError::unsupported(interface, doing(), format!("{} has no driver", device.display()))
        })?;
        let links = netduel_host::link_states()?;
        let found = links.iter().find(|link| link.name == interface);
        let found = found.ok_or_else(|| TreatmentError::no_interface(interface))?;
        let refused = |cause| TreatmentError::Refused { doing: doing(), cause };
        let addresses = addresses_of(interface).map_err(refused)?;
        let mtu = link::mtu(interface).map_err(refused)?;
        let routes = routes_of(interface).map_err(refused)?;
        Ok(Self {
            device: device.to_owned(),
            bus: bus.to_owned(),
            driver,
            driver_override: override_of(device),
            interface: interface.to_owned(),
            mac: found.mac.clone().unwrap_or_default(),
            up: found.up,
            addresses,
            mtu,
            routes,
            settings: DeviceSettings::read(interface)?,
        })
    }

    /// Gives it another driver, and waits until it has that.
    pub(super) fn give(&self, driver: &str) -> Result<(), TreatmentError> {
        let doing = || format!("give {} ({}) the driver {driver}", self.interface, self.device.display());
        let refused = |cause| TreatmentError::Refused { doing: doing(), cause };
        if link::is_up(&self.interface).unwrap_or(false) {
            link::set_up(&self.interface, false).map_err(refused)?;
        }
        self.change_driver(driver, driver).map_err(refused)?;
        if has_driver_in_time(&self.device, driver) {
            return Ok(());
        }
        let answered =
            driver_of(&self.device).map_or_else(|| "no driver".to_owned(), |now| format!("the driver {now}"));
        Err(TreatmentError::NotTaken { doing: doing(), answered })
    }

    /// Gives it its driver again, and waits until its interface is there as it was.
    pub(super) fn take_back(&self) -> Result<(), TreatmentError> {
        let doing = || format!("give {} its driver {} again", self.device.display(), self.driver);
        let refused = |cause| TreatmentError::Refused { doing: doing(), cause };
        if driver_of(&self.device).as_deref() != Some(self.driver.as_str()) {
            self.change_driver(NO_WISH, &self.driver).map_err(refused)?;
            if !has_driver_in_time(&self.device, &self.driver) {
                let answered = "another driver, or none".to_owned();
                return Err(TreatmentError::NotTaken { doing: doing(), answered });
            }
        }
        // A process that was killed before it took the device from its driver has left its wish for another one.
        if override_of(&self.device) != self.driver_override {
            let wish = self.driver_override.as_deref().unwrap_or(NO_WISH);
            write(&self.device.join(OVERRIDE), wish).map_err(refused)?;
        }
        let mut own = None;
        let back = |links: &[LinkState]| {
            // A virtual function has the same address, and this one above it. So has a VLAN, with another name.
            let is_same = |link: &&LinkState| link.mac.as_ref() == Some(&self.mac) && link.master.is_none();
            let named = links.iter().filter(is_same).find(|link| link.name == self.interface);
            let found = named.or_else(|| links.iter().find(is_same));
            own = found.map(|link| (link.index, link.name.clone()));
            own.is_some()
        };
        netduel_host::wait_for_links(RETURN_DEADLINE, back)?;
        let Some((index, now)) = own else {
            let answered = format!("no interface with the address {}", self.mac);
            return Err(TreatmentError::NotTaken { doing: doing(), answered });
        };
        let (named, name) = match name_again(index, &self.interface) {
            Ok(name) => (Ok(()), name),
            Err(failed) => (Err(failed), now),
        };
        all([named].into_iter().chain(self.restored(&name)))
    }

    /// Gives its interface what it had. Each step is made, whatever became of the others.
    fn restored(&self, name: &str) -> Vec<Result<(), TreatmentError>> {
        let refused = |cause| TreatmentError::Refused { doing: format!("restore {name} as it was"), cause };
        let mtu = || -> io::Result<()> {
            if link::mtu(name)? == self.mtu { Ok(()) } else { link::set_mtu(name, self.mtu) }
        };
        let up = || if self.up { link::set_up(name, true) } else { Ok(()) };
        // Before the addresses, because drivers restart a device for some of them.
        let mut steps = vec![mtu().map_err(refused), up().map_err(refused), self.settings.restore(name)];
        for address in &self.addresses {
            let added = ip(&["address", "replace", address, "dev", name]);
            steps.push(added.map(drop).map_err(refused));
        }
        for (family, route) in &self.routes {
            let words = [family.as_str(), "route", "replace"].into_iter().chain(route.split(' '));
            let added = ip(&words.chain(["dev", name]).collect::<Vec<_>>());
            steps.push(added.map(drop).map_err(refused));
        }
        steps
    }

    fn change_driver(&self, wish: &str, driver: &str) -> io::Result<()> {
        let instance =
            self.device.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        write(&self.device.join(OVERRIDE), wish)?;
        if let Some(now) = driver_of(&self.device) {
            write(&self.bus.join("drivers").join(now).join("unbind"), &instance)?;
        }
        write(&self.bus.join("drivers").join(driver).join("bind"), &instance)
    }

    /// What it is, for messages.
    pub(super) fn what(&self) -> String {
        format!("the driver of {} ({})", self.interface, self.device.display())
    }

    /// How to do it without this program.
    pub(super) fn by_hand(&self) -> String {
        let Self { device, bus, driver, driver_override, interface, addresses, mtu, routes, .. } = self;
        let instance = device.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let mut steps = vec![
            format!("`echo > {}/driver_override`", device.display()),
            format!("`echo {instance} > {}/driver/unbind`", device.display()),
            format!("`echo {instance} > {}/drivers/{driver}/bind`", bus.display()),
            format!("`ip link set dev {interface} mtu {mtu} up`"),
        ];
        let wish = |wish: &String| format!("`echo {wish} > {}/{OVERRIDE}`", device.display());
        steps.extend(driver_override.iter().map(wish));
        steps.extend(
            addresses.iter().map(|address| format!("`ip address replace {address} dev {interface}`")),
        );
        steps.extend(
            routes
                .iter()
                .map(|(family, route)| format!("`ip {family} route replace {route} dev {interface}`")),
        );
        // A reason that is about one of them names it with its value.
        steps.push("then the setting that the reason names".to_owned());
        steps.join(", ")
    }
}

/// Writes a file of the kernel's, which has to be there.
fn write(file: &Path, text: &str) -> io::Result<()> {
    use std::io::Write as _;
    let opened = fs::OpenOptions::new().write(true).truncate(true).open(file);
    opened
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", file.display())))
}

/// The driver that a device is to get by a wish of the user; absent without one.
fn override_of(device: &Path) -> Option<String> {
    let text = fs::read_to_string(device.join(OVERRIDE)).ok()?;
    let wish = text.trim();
    // The kernel prints a missing text so.
    (!wish.is_empty() && wish != "(null)").then(|| wish.to_owned())
}

/// The driver that a device has.
fn driver_of(device: &Path) -> Option<String> {
    let driver = fs::read_link(device.join("driver")).ok()?;
    Some(driver.file_name()?.to_string_lossy().into_owned())
}

fn has_driver_in_time(device: &Path, driver: &str) -> bool {
    let deadline_ns = clock::monotonic_ns() + RETURN_DEADLINE.as_nanos() as u64;
    loop {
        if driver_of(device).as_deref() == Some(driver) {
            return true;
        }
        let now_ns = clock::monotonic_ns();
        if now_ns >= deadline_ns {
            return false;
        }
        clock::sleep_until(now_ns + LOOK_NS);
    }
}

/// The addresses that were given to an interface, as `ip` takes them.
fn addresses_of(interface: &str) -> io::Result<Vec<String>> {
    let text = ip(&["-o", "address", "show", "dev", interface, "scope", "global"])?;
    Ok(text.lines().filter_map(address).collect())
}

/// `2: eth1    inet 10.0.1.5/24 metric 100 brd 10.0.1.255 scope global eth1`.
fn address(line: &str) -> Option<String> {
    let mut words = line.split_whitespace().skip_while(|word| *word != "inet" && *word != "inet6");
    words.nth(1).map(str::to_owned)
}

/// The routes through an interface that a user or a program added. Routes that the kernel makes with addresses or learns from routers
/// are left out.
fn routes_of(interface: &str) -> io::Result<Vec<(String, String)>> {
    let mut found = Vec::new();
    for family in ["-4", "-6"] {
        let text = ip(&[family, "-o", "route", "show", "table", "all", "dev", interface])?;
        found.extend(text.lines().filter_map(route).map(|route| (family.to_owned(), route)));
    }
    // Gateways are reached by routes to subnets, which have none.
    found.sort_by_key(|(_, route)| route.contains(" via "));
    Ok(found)
}

/// `10.5.0.0/16 via 10.0.1.1 proto static metric 100 linkdown`.
fn route(line: &str) -> Option<String> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let is_kernels = words.windows(2).any(|pair| pair[0] == "proto" && ["kernel", "ra"].contains(&pair[1]));
    // The program that renews a route with a lifetime restores it.
    if is_kernels || words.contains(&"expires") || words.is_empty() {
        return None;
    }
    let is_state = |word: &str| ["linkdown", "dead", "\\"].contains(&word);
    Some(words.into_iter().filter(|word| !is_state(word)).collect::<Vec<_>>().join(" "))
}

fn ip(words: &[&str]) -> io::Result<String> {
    let output = Command::new("ip").args(words).output()?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let message = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(io::Error::other(format!("`ip {}`: {message}", words.join(" "))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_with_the_lengths_of_their_prefixes() {
        let line = "3: eth1    inet 10.0.1.5/24 metric 100 brd 10.0.1.255 scope global eth1\\       valid_lft forever";
        assert_eq!(address(line).as_deref(), Some("10.0.1.5/24"));
        assert_eq!(address("3: eth1 inet6 fd77::1/64 scope global").as_deref(), Some("fd77::1/64"));
        assert_eq!(address("3: eth1"), None);
    }

    #[test]
    fn added_routes_are_recorded_in_the_syntax_of_ip() {
        let added = "10.5.0.0/16 via 10.0.1.1 table 100 proto static metric 100 linkdown ";
        let kept = "10.5.0.0/16 via 10.0.1.1 table 100 proto static metric 100";
        assert_eq!(route(added).as_deref(), Some(kept));
        for made in [
            "10.0.1.0/24 proto kernel scope link src 10.0.1.5",
            "broadcast 10.0.1.255 table local proto kernel scope link src 10.0.1.5",
            "default via fe80::1 proto ra metric 100 expires 1790sec pref medium",
            "",
        ] {
            assert_eq!(route(made), None, "{made}");
        }
    }
}
