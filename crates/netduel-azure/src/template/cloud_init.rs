//! What cloud-init does in a VM at its first boot: packages, limits that netduel would meet otherwise, modules and routes for DPDK, and routes
//! between the subnets of a test network. It tunes nothing but the sysctls of the bed file. Pure.
use netduel_model::bed::layout::Vm;
use netduel_model::bed::{Bed, BedType, Image, Layout, Sysctls};
use serde_json::{Value, json};

use super::guest_dpdk::{
    MODULES_FILE, MODULES_TEXT, MODULES_UNIT, NO_ROUTES_TEXT, network_file, test_interface,
};
use super::guest_routes::{NETWORKD_FILE, NETWORKD_TEXT, SCRIPT_FILE, UNIT, UNIT_FILE, UNIT_TEXT, script};

/// The file with the limits. The system reads it at each boot.
const LIMITS_FILE: &str = "/etc/sysctl.d/90-netduel.conf";
/// Limits of what a program may request. They change nothing for a program that requests nothing.
const LIMITS: [(&str, u32); 3] = [
    // The largest buffer that netduel requests for a socket without `window` in the plan.
    ("net.core.rmem_max", 32 << 20),
    ("net.core.wmem_max", 32 << 20),
    // Notifications of sends without a copy.
    ("net.core.optmem_max", 1 << 20),
];

/// The file with the sysctls of the bed. The system reads it after that of the limits, so that a sysctl of the bed replaces a limit.
const SYSCTLS_FILE: &str = "/etc/sysctl.d/91-netduel-bed.conf";

/// Packages: the daemon that reads the name of the physical host, and DPDK where the bed is for it.
fn packages(bed: &Bed) -> Vec<&'static str> {
    let (daemon, dpdk): (&str, &[&str]) = match bed.image {
        // The package of all drivers may leave out that of MANA.
        Image::Ubuntu2404 => {
            ("linux-cloud-tools-azure", &["dpdk-dev", "librte-meta-net", "librte-net-mana24"])
        }
        Image::Debian12 => ("hyperv-daemons", &["dpdk-dev", "librte-meta-net"]),
        // No package with testpmd is known.
        Image::AzureLinux3 => ("hyperv-daemons", &[]),
        // Refused when the bed is read.
        Image::WindowsServer2022 => return Vec::new(),
    };
    let dpdk = if bed.kind == BedType::Dpdk { dpdk } else { &[] };
    std::iter::once(daemon).chain(dpdk.iter().copied()).collect()
}

/// Files that cloud-init writes, and commands that it runs after them.
#[derive(Default)]
struct Steps {
    files: Vec<Value>,
    commands: Vec<Value>,
}

impl Steps {
    fn write(&mut self, path: &str, content: &str) {
        self.files.push(json!({ "path": path, "content": content }));
    }

    fn run(&mut self, words: &[&str]) {
        self.commands.push(json!(words));
    }
}

fn set_limits(steps: &mut Steps) {
    let limits = LIMITS.map(|(name, value)| format!("{name} = {value}\n")).concat();
    steps.write(LIMITS_FILE, &limits);
    steps.run(&["sysctl", "--load", LIMITS_FILE]);
}

/// Names and values have no characters with a meaning in the file: they were checked with the bed.
fn set_sysctls(sysctls: &Sysctls, steps: &mut Steps) {
    let lines: Vec<String> = sysctls.0.iter().map(|(name, value)| format!("{name} = {value}\n")).collect();
    steps.write(SYSCTLS_FILE, &lines.concat());
    steps.run(&["sysctl", "--load", SYSCTLS_FILE]);
}

fn prepare_for_dpdk(bed: &Bed, vm: &Vm, steps: &mut Steps) {
    steps.write(MODULES_FILE, MODULES_TEXT);
    steps.run(&["systemctl", "restart", MODULES_UNIT]);
    let Some(interface) = test_interface(vm) else { return };
    if let Some(file) = network_file(bed.image, &interface) {
        steps.write(&file, NO_ROUTES_TEXT);
        steps.run(&["networkctl", "reload"]);
        steps.run(&["networkctl", "reconfigure", &interface]);
    }
}

fn add_routes(script: &str, steps: &mut Steps) {
    steps.files.push(json!({ "path": SCRIPT_FILE, "content": script, "permissions": "0755" }));
    steps.write(UNIT_FILE, UNIT_TEXT);
    steps.write(NETWORKD_FILE, NETWORKD_TEXT);
    steps.run(&["systemctl", "daemon-reload"]);
    steps.run(&["systemctl", "enable", "--now", UNIT]);
}

/// The configuration of cloud-init for a VM. Its language is YAML, of which JSON is a part.
fn configuration(bed: &Bed, layout: &Layout, vm: &Vm) -> String {
    let mut steps = Steps::default();
    set_limits(&mut steps);
    if !bed.sysctls.0.is_empty() {
        set_sysctls(&bed.sysctls, &mut steps);
    }
    if bed.kind == BedType::Dpdk {
        prepare_for_dpdk(bed, vm, &mut steps);
    }
    // Last: a network that is configured anew can lose routes.
    if let Some(script) = script(layout, vm) {
        add_routes(&script, &mut steps);
    }
    let configuration = json!({
        "package_update": true,
        "packages": packages(bed),
        "write_files": steps.files,
        "runcmd": steps.commands,
    });
    format!("#cloud-config\n{configuration}\n")
}

/// The configuration as an expression of a template. Azure gives it to the VM.
pub(super) fn expression(bed: &Bed, layout: &Layout, vm: &Vm) -> String {
    format!("[base64('{}')]", configuration(bed, layout, vm).replace('\'', "''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bed(keys: &str) -> Bed {
        let text = format!("name = \"x\"\nregion = \"westeurope\"\nsize = \"Standard_D4s_v3\"\n{keys}\n");
        netduel_model::bed::parse(&text, "x.toml").unwrap_or_else(|errors| panic!("{errors}"))
    }

    /// The configuration of the first VM.
    fn text(keys: &str) -> String {
        let bed = bed(keys);
        let layout = Layout::of(&bed);
        configuration(&bed, &layout, &layout.vms[0])
    }

    fn read(keys: &str) -> Value {
        let text = text(keys);
        let json = text.strip_prefix("#cloud-config\n").expect("the first line names the language");
        serde_json::from_str(json).expect("JSON")
    }

    #[test]
    fn packages_are_those_of_the_image_and_of_the_type() {
        assert_eq!(read("")["packages"], json!(["linux-cloud-tools-azure"]));
        assert_eq!(
            read("type = \"dpdk\"")["packages"],
            json!(["linux-cloud-tools-azure", "dpdk-dev", "librte-meta-net", "librte-net-mana24"])
        );
        let debian = read("type = \"dpdk\"\nimage = \"debian-12\"");
        assert_eq!(debian["packages"], json!(["hyperv-daemons", "dpdk-dev", "librte-meta-net"]));
        assert_eq!(read("image = \"azure-linux-3\"")["packages"], json!(["hyperv-daemons"]));
    }

    #[test]
    fn only_limits_are_set_and_loaded_from_their_file() {
        let read = read("");
        let file = &read["write_files"][0];
        let content = file["content"].as_str().expect("a text");
        assert!(
            content.lines().all(|line| line.split(" = ").next().is_some_and(|name| name.ends_with("_max")))
        );
        assert!(content.contains("net.core.rmem_max = 33554432\n"), "{content}");
        assert_eq!(read["runcmd"], json!([["sysctl", "--load", file["path"]]]));
        assert_eq!(read.as_object().map(serde_json::Map::len), Some(4), "{read}");
    }

    #[test]
    fn guide_has_the_limits_and_their_file() {
        let guide = include_str!("../../../../docs/beds.md");
        let [receive, send, options] = LIMITS.map(|(_, bytes)| bytes >> 20);
        assert_eq!(receive, send);
        let text = format!(
            "`net.core.rmem_max` and `wmem_max` {receive} MiB, `net.core.optmem_max` {options} MiB, in `{LIMITS_FILE}`"
        );
        assert!(guide.contains(&text), "docs/beds.md lacks this text: {text}");
    }

    #[test]
    fn sysctls_of_the_bed_are_set_from_a_file_of_their_own_after_the_limits() {
        let read = read("sysctls = { \"net.ipv4.tcp_rmem\" = \"1 2 3\", \"net.core.rmem_max\" = \"4\" }");
        let files = read["write_files"].as_array().expect("a list");
        let paths: Vec<&str> = files.iter().filter_map(|file| file["path"].as_str()).collect();
        assert_eq!(paths, [LIMITS_FILE, SYSCTLS_FILE]);
        assert!(paths.is_sorted(), "the system reads the files in the order of their names");
        assert_eq!(files[1]["content"], "net.core.rmem_max = 4\nnet.ipv4.tcp_rmem = 1 2 3\n");
        let loaded = |file: &str| json!(["sysctl", "--load", file]);
        assert_eq!(read["runcmd"], json!([loaded(LIMITS_FILE), loaded(SYSCTLS_FILE)]));
        assert!(!text("").contains(SYSCTLS_FILE));
    }

    #[test]
    fn subnets_of_the_ends_have_routes_at_each_boot() {
        let read = read("type = \"toggle\"\nsubnets = 2");
        let files = read["write_files"].as_array().expect("a list");
        let paths: Vec<&str> = files.iter().filter_map(|file| file["path"].as_str()).collect();
        assert_eq!(paths, [LIMITS_FILE, SCRIPT_FILE, UNIT_FILE, NETWORKD_FILE]);
        assert_eq!(files[1]["permissions"], "0755");
        let script = files[1]["content"].as_str().expect("a text");
        assert!(script.contains("\nroute -4 10.77.1.0/24 10.77.2.0/24 10.77.1.1\n"), "{script}");
        let commands = read["runcmd"].as_array().expect("a list");
        assert_eq!(commands.last(), Some(&json!(["systemctl", "enable", "--now", UNIT])));
    }

    #[test]
    fn bed_for_dpdk_has_its_modules_and_no_default_route_by_the_test_nic() {
        for (image, tool) in [("ubuntu-24.04", "netplan"), ("azure-linux-3", "cloud-init")] {
            let read = read(&format!("type = \"dpdk\"\nimage = \"{image}\""));
            let modules = &read["write_files"][1];
            assert_eq!(modules["path"], "/etc/modules-load.d/netduel.conf");
            assert_eq!(modules["content"], "mana_ib\nuio_hv_generic\n");
            let network = &read["write_files"][2];
            let file = format!("/etc/systemd/network/10-{tool}-eth1.network.d/90-netduel.conf");
            assert_eq!(network["path"], json!(file));
            let content = network["content"].as_str().expect("a text");
            assert!(content.contains("[DHCPv4]\nUseRoutes=no\n"), "{content}");
            let commands = read["runcmd"].as_array().expect("a list");
            assert!(commands.contains(&json!(["systemctl", "restart", "systemd-modules-load.service"])));
            assert_eq!(commands.last(), Some(&json!(["networkctl", "reconfigure", "eth1"])));
        }
    }

    #[test]
    fn expression_is_one_text_in_single_quotes() {
        for keys in ["", "type = \"toggle\"\nsubnets = 2\nfamilies = \"dual-stack\""] {
            let (bed, expected) = (bed(keys), text(keys));
            let layout = Layout::of(&bed);
            let expression = expression(&bed, &layout, &layout.vms[0]);
            let inside = expression.strip_prefix("[base64('").and_then(|rest| rest.strip_suffix("')]"));
            assert_eq!(inside.map(|text| text.replace("''", "'")), Some(expected));
            assert!(inside.is_some_and(|text| !text.replace("''", "").contains('\'')), "{expression}");
        }
    }
}
