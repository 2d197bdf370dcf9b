//! What cloud-init does in a VM at its first boot: packages, and limits that netduel would meet otherwise. It tunes nothing. Pure.
use netduel_model::bed::{Bed, BedType, Image};
use serde_json::json;

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

/// Packages: the daemon that reads the name of the physical host, and DPDK where the bed is for it.
fn packages(bed: &Bed) -> Vec<&'static str> {
    let (daemon, dpdk): (&str, &[&str]) = match bed.image {
        Image::Ubuntu2404 => ("linux-cloud-tools-azure", &["dpdk-dev"]),
        Image::Debian12 => ("hyperv-daemons", &["dpdk-dev", "librte-meta-net"]),
        // No package with testpmd is known.
        Image::AzureLinux3 => ("hyperv-daemons", &[]),
        // Refused when the bed is read.
        Image::WindowsServer2022 => return Vec::new(),
    };
    let dpdk = if bed.kind == BedType::Dpdk { dpdk } else { &[] };
    std::iter::once(daemon).chain(dpdk.iter().copied()).collect()
}

/// The configuration of cloud-init. Its language is YAML, of which JSON is a part.
fn configuration(bed: &Bed) -> String {
    let limits = LIMITS.map(|(name, value)| format!("{name} = {value}\n")).concat();
    let configuration = json!({
        "package_update": true,
        "packages": packages(bed),
        "write_files": [{ "path": LIMITS_FILE, "content": limits }],
        "runcmd": [["sysctl", "--load", LIMITS_FILE]],
    });
    format!("#cloud-config\n{configuration}\n")
}

/// The configuration as an expression of a template. Azure gives it to the VM.
pub(super) fn expression(bed: &Bed) -> String {
    format!("[base64('{}')]", configuration(bed).replace('\'', "''"))
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn bed(keys: &str) -> Bed {
        let text = format!("name = \"x\"\nregion = \"westeurope\"\nsize = \"Standard_D4s_v3\"\n{keys}\n");
        netduel_model::bed::parse(&text, "x.toml").unwrap_or_else(|errors| panic!("{errors}"))
    }

    fn read(keys: &str) -> Value {
        let text = configuration(&bed(keys));
        let json = text.strip_prefix("#cloud-config\n").expect("the first line names the language");
        serde_json::from_str(json).expect("JSON")
    }

    #[test]
    fn packages_are_those_of_the_image_and_of_the_type() {
        assert_eq!(read("")["packages"], json!(["linux-cloud-tools-azure"]));
        assert_eq!(read("type = \"dpdk\"")["packages"], json!(["linux-cloud-tools-azure", "dpdk-dev"]));
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
    fn expression_is_one_text_in_single_quotes() {
        let expression = expression(&bed(""));
        let text = expression.strip_prefix("[base64('").and_then(|rest| rest.strip_suffix("')]"));
        assert_eq!(text.map(|text| text.replace("''", "'")), Some(configuration(&bed(""))));
        assert!(text.is_some_and(|text| !text.replace("''", "").contains('\'')), "{expression}");
    }
}
