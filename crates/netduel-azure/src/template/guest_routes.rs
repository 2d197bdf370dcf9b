//! Routes in a VM whose test networks have a subnet for each end: to the other subnet over the NIC in the same network. Without them the guest's
//! default route decides, which is that of the primary NIC. Pure.
use netduel_model::bed::layout::{IPV6_GATEWAY, Layout, Vm};

/// The script that adds the routes.
pub(super) const SCRIPT_FILE: &str = "/usr/local/sbin/netduel-routes";
/// The unit that runs it at each boot: routes of a running system do not survive one.
pub(super) const UNIT: &str = "netduel-routes.service";
/// The file of the unit.
pub(super) const UNIT_FILE: &str = "/etc/systemd/system/netduel-routes.service";
/// The text of the unit.
pub(super) const UNIT_TEXT: &str = "[Unit]
Description=Routes between the subnets of the test networks of netduel
Wants=network-online.target
After=network-online.target

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/usr/local/sbin/netduel-routes

[Install]
WantedBy=multi-user.target
";
/// A setting of systemd-networkd. By default it removes routes of others when it starts again, for example after an update.
pub(super) const NETWORKD_FILE: &str = "/etc/systemd/networkd.conf.d/90-netduel.conf";
/// The setting.
pub(super) const NETWORKD_TEXT: &str = "[Network]\nManageForeignRoutes=no\n";

/// The beginning of the script. DHCPv6 may add an address after the network is online, so each route is tried for a minute.
const SCRIPT_START: &str = r#"#!/bin/sh
# Written by netduel: traffic to the other subnet of a test network leaves by the NIC in that network.
failed=0

# route FAMILY OWN_SUBNET OTHER_SUBNET GATEWAY
route() {
    left=60
    while [ "$left" -gt 0 ]; do
        interface=$(ip -o "$1" address show to "$2" | { read -r index name rest; echo "$name"; })
        if [ -n "$interface" ] && ip "$1" route replace "$3" via "$4" dev "$interface"; then
            return
        fi
        left=$((left - 1))
        sleep 1
    done
    echo "no route to $3: no NIC has an address in $2, or its gateway $4 is out of reach" >&2
    failed=1
}

"#;

/// The script for a VM; `None` where every network of its NICs has one subnet. A NIC that is not attached has no address to wait for.
pub(super) fn script(layout: &Layout, vm: &Vm) -> Option<String> {
    let mut lines: Vec<String> = Vec::new();
    for nic in vm.nics.iter().filter(|nic| nic.is_attached()) {
        let Some(own) = layout.subnet(nic) else { continue };
        for other in layout.subnets_beyond(nic) {
            lines.push(format!("route -4 {} {} {}\n", own.ipv4, other.ipv4, own.ipv4_gateway));
            if let (Some(own), Some(other)) = (&own.ipv6, &other.ipv6) {
                lines.push(format!("route -6 {own} {other} {IPV6_GATEWAY}\n"));
            }
        }
    }
    (!lines.is_empty()).then(|| format!("{SCRIPT_START}{}\nexit \"$failed\"\n", lines.concat()))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use netduel_model::bed::parse;

    use super::*;

    fn layout(keys: &str) -> Layout {
        let text = format!("name = \"x\"\nregion = \"westeurope\"\nsize = \"Standard_DS4_v2\"\n{keys}\n");
        Layout::of(&parse(&text, "x.toml").unwrap_or_else(|errors| panic!("{errors}")))
    }

    /// The calls `route` of a script.
    fn calls(script: &str) -> Vec<&str> {
        script.lines().filter_map(|line| line.strip_prefix("route -")).collect()
    }

    #[test]
    fn each_end_has_a_route_to_the_other_subnet_of_each_of_its_networks() {
        let pairs = layout("type = \"two-pairs\"\nfamilies = \"dual-stack\"\nsubnets = 2");
        let of = |vm: usize| script(&pairs, &pairs.vms[vm]).unwrap();
        let client = [
            "4 10.77.1.0/24 10.77.2.0/24 10.77.1.1",
            "6 fd77:6e64:0:1::/64 fd77:6e64:0:2::/64 fe80::1234:5678:9abc",
        ];
        assert_eq!(calls(&of(0)), client);
        assert_eq!(calls(&of(2)), client);
        assert_eq!(
            calls(&of(1)),
            [
                "4 10.77.2.0/24 10.77.1.0/24 10.77.2.1",
                "6 fd77:6e64:0:2::/64 fd77:6e64:0:1::/64 fe80::1234:5678:9abc",
            ]
        );
        let nics = layout("subnets = 2");
        assert_eq!(
            calls(&script(&nics, &nics.vms[0]).unwrap()),
            ["4 10.77.1.0/24 10.77.3.0/24 10.77.1.1", "4 10.77.2.0/24 10.77.4.0/24 10.77.2.1"]
        );
        let one = layout("families = \"dual-stack\"");
        assert_eq!(script(&one, &one.vms[0]), None);
    }

    #[test]
    fn script_adds_the_routes_over_the_nic_with_the_address() {
        let pairs = layout("type = \"two-pairs\"\nfamilies = \"dual-stack\"\nsubnets = 2");
        let script = script(&pairs, &pairs.vms[0]).unwrap();
        let run = |ip: &str| {
            let text = format!("ip() {{\n{ip}\n}}\nsleep() {{ :; }}\n{script}");
            let output = Command::new("/bin/sh").arg("-c").arg(text).output().unwrap();
            let texts = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
            (output.status.code(), texts)
        };
        let with_addresses = r#"case "$*" in
            "-o -4 address show to 10.77.1.0/24") echo "3: eth1    inet 10.77.1.4/24 scope global eth1" ;;
            "-o -6 address show to fd77:6e64:0:1::/64") echo "3: eth1    inet6 fd77:6e64:0:1::4/128" ;;
            *route*) echo "$*" ;;
            esac"#;
        let added = "-4 route replace 10.77.2.0/24 via 10.77.1.1 dev eth1\n\
                     -6 route replace fd77:6e64:0:2::/64 via fe80::1234:5678:9abc dev eth1\n";
        assert_eq!(run(with_addresses), (Some(0), [added.to_owned(), String::new()]));
        let (code, [added, errors]) = run(":");
        assert_eq!((code, added.as_str()), (Some(1), ""));
        assert!(errors.contains("no NIC has an address in 10.77.1.0/24"), "{errors}");
    }

    #[test]
    fn unit_runs_the_script_at_each_boot() {
        assert!(UNIT_FILE.ends_with(&format!("/{UNIT}")));
        assert!(UNIT_TEXT.contains(&format!("\nExecStart={SCRIPT_FILE}\n")));
        assert!(UNIT_TEXT.ends_with("\n[Install]\nWantedBy=multi-user.target\n"));
    }
}
