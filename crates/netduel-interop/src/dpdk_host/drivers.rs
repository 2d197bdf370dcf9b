//! Drivers of an installed DPDK: the libraries that it loads at its start.
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Folders of packages and of `ninja install`, below the root.
const LIBRARIES: [&str; 4] = ["usr/lib", "usr/lib64", "usr/local/lib", "usr/local/lib64"];
/// Prefix of the folder with a version's drivers, below `dpdk`.
const FOLDER: &str = "pmds-";
const PREFIX: &str = "librte_net_";

/// The loadable network drivers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Drivers(BTreeSet<String>);

impl Drivers {
    /// Searches for them; `None` when there are none, as with a statically linked testpmd.
    pub fn find(root: &Path) -> Option<Self> {
        let folders = LIBRARIES.iter().flat_map(|library| {
            let library = root.join(library);
            // Debian has a folder per architecture in between.
            let between = entries(&library).into_iter().map(|name| library.join(name).join("dpdk"));
            std::iter::once(library.join("dpdk")).chain(between).collect::<Vec<_>>()
        });
        let mut found = BTreeSet::new();
        for folder in folders {
            for pmds in entries(&folder).into_iter().filter(|name| name.starts_with(FOLDER)) {
                let names = entries(&folder.join(pmds));
                found.extend(
                    names
                        .iter()
                        .filter_map(|name| Some(name.strip_prefix(PREFIX)?.split(".so").next()?.to_owned())),
                );
            }
        }
        (!found.is_empty()).then_some(Self(found))
    }

    /// Whether a driver exists, by its name without `net_`: `mana`, `af_xdp`.
    pub fn has(&self, name: &str) -> bool {
        self.0.contains(name)
    }

    /// All names, for messages.
    pub fn list(&self) -> String {
        self.0.iter().cloned().collect::<Vec<_>>().join(", ")
    }
}

fn entries(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

/// The package to install for a driver.
pub fn package(driver: &str) -> String {
    match driver {
        // Debian 12 and Ubuntu 22.04 build DPDK without it, because their rdma-core is too old.
        "mana" => "on Ubuntu 24.04 it is in `librte-net-mana24`; where the packages of DPDK have no MANA driver, build DPDK 23.11 or newer \
                   beside rdma-core 44 or newer, and name its testpmd by `program`"
            .to_owned(),
        _ => format!("on Debian 12 it is in `librte-net-{}23`", driver.replace('_', "-")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn package_of_the_mana_driver_is_named() {
        assert!(package("mana").contains("librte-net-mana24") && package("mana").contains("`program`"));
        assert_eq!(package("af_xdp"), "on Debian 12 it is in `librte-net-af-xdp23`");
    }

    #[test]
    fn drivers_of_packages_and_builds_are_found() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(Drivers::find(root.path()), None);
        for file in [
            "usr/lib/x86_64-linux-gnu/dpdk/pmds-23.0/librte_net_af_xdp.so.23",
            "usr/lib/x86_64-linux-gnu/dpdk/pmds-23.0/librte_net_af_xdp.so.23.0",
            "usr/lib/x86_64-linux-gnu/dpdk/pmds-23.0/librte_bus_vmbus.so.23",
            "usr/local/lib64/dpdk/pmds-25.0/librte_net_mana.so",
        ] {
            let file = root.path().join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, "").unwrap();
        }
        let drivers = Drivers::find(root.path()).unwrap();
        assert!(drivers.has("af_xdp") && drivers.has("mana") && !drivers.has("memif"));
        assert_eq!(drivers.list(), "af_xdp, mana");
    }
}
