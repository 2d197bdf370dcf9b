//! The option -B of quick tests: the source address seen by the server, and the interface that carries the data.
use std::io::{BufRead as _, BufReader};
use std::net::{IpAddr, Ipv4Addr};
use std::process::{Command, Stdio};

use netduel_test_support::skip;
use serde_json::Value;

use crate::serve::Server;
use crate::support::{Bench, Finished, until};

const BOUND: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2));

/// Peers of the server's port in a table of `/proc/net`, without listening sockets (proc_pid_net(5)).
fn peers(table: &str, port: u16) -> Vec<IpAddr> {
    let socket = |text: &str| {
        let (address, port) = text.split_once(':').unwrap();
        let address = Ipv4Addr::from(u32::from_str_radix(address, 16).unwrap().to_be());
        (IpAddr::from(address), u16::from_str_radix(port, 16).unwrap())
    };
    let table = std::fs::read_to_string(table).unwrap();
    let rows = table.lines().skip(1).map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        [socket(fields[1]), socket(fields[2])]
    });
    let ends = rows.filter(|ends| ends[1].1 != 0).filter_map(|[local, remote]| match (local.1, remote.1) {
        (own, _) if own == port => Some(remote.0),
        (_, peer) if peer == port => Some(local.0),
        _ => None,
    });
    ends.collect()
}

#[test]
fn server_sees_the_bound_address_on_every_socket_of_each_quick_test() {
    let server = Server::start(&[]);
    for (words, udp_flows) in [
        (&["tcp", "STRING", "-P", "3", "-b", "1M"][..], 0),
        (&["tcp", "STRING", "-R", "-b", "1M"], 0),
        (&["udp", "STRING", "-P", "2", "-b", "1M"], 2),
        (&["rr", "STRING", "--rate", "100"], 0),
        (&["rr", "STRING", "-u", "--rate", "100"], 1),
        (&["crr", "STRING", "--rate", "100"], 0),
        (&["pps", "STRING", "--rate", "100", "-P", "2"], 2),
    ] {
        let options = ["-t", "60", "-i", "0.1", "--json-stream", "-B", "127.0.0.2"];
        let mut client = server.spawn(&[words, &options].concat());
        let lines = BufReader::new(client.stdout.take().unwrap()).lines();
        let runs = lines.map_while(Result::ok).any(|line| line.contains("\"interval\""));
        let stderr = if runs {
            String::new()
        } else {
            std::io::read_to_string(client.stderr.take().unwrap()).unwrap()
        };
        assert!(runs, "{words:?}: {stderr}");
        let (tcp, udp) =
            (peers("/proc/net/tcp", server.address.port()), peers("/proc/net/udp", server.address.port()));
        client.kill().unwrap();
        client.wait().unwrap();
        assert!(
            tcp.len() >= 2 && tcp.iter().chain(&udp).all(|peer| *peer == BOUND),
            "{words:?}: {tcp:?} {udp:?}"
        );
        assert_eq!(udp.len(), 2 * udp_flows, "{words:?}: both ends of each flow");
        // The next test counts flows, too. Those of this one end after its client.
        let port = server.address.port();
        assert!(until(|| peers("/proc/net/udp", port).is_empty()), "{words:?}: a flow is left");
    }
    server.end();
}

#[test]
fn invalid_binds_are_rejected_before_connecting() {
    let bench = Bench::new();
    for (bind, cause) in [
        ("192.0.2.1", "no interface of this host has that address; they have 127.0.0.1"),
        ("absent9", "no interface of that name; it has"),
        ("10.0.0.1:80", "neither an IP address, nor the name of an interface"),
    ] {
        // No pairing exists, which would be the next error.
        let run = bench.run(["rr", "localhost", "-B", bind]).expect_code(2);
        assert!(run.stderr.contains(cause), "{bind}: {}", run.stderr);
    }
    let server = Server::start(&[]);
    let run = server.client(&["tcp", "STRING", "-B", "::1"]).expect_code(2);
    assert!(run.stderr.contains("127.0.0.1 is an IPv4 address; -B ::1 is IPv6"), "{}", run.stderr);
    let run = server.client(&["tcp", "STRING", "-6"]).expect_code(2);
    assert!(run.stderr.contains("127.0.0.1 is an IPv4 address; leave out -6"), "{}", run.stderr);
    server.end();
}

#[test]
fn bound_interface_carries_the_data() {
    let bench = Bench::new();
    let script = r#"
        set -e
        ip link set lo up
        unshare --net sleep 1000 &
        far=$! server=
        trap 'kill $far $server' EXIT
        while [ "$(readlink /proc/$far/ns/net)" = "$(readlink /proc/self/ns/net)" ]; do :; done
        at_far() { nsenter --target $far --net "$@"; }
        at_far ip link set lo up
        for n in 1 2; do
            ip link add a$n type veth peer name b$n netns $far
            ip addr add 10.9.$n.1/24 dev a$n
            ip -6 addr add fd09:$n::1/64 dev a$n nodad
            ip link set a$n up
            at_far ip addr add 10.9.$n.2/24 dev b$n
            at_far ip -6 addr add fd09:$n::2/64 dev b$n nodad
            at_far ip link set b$n up
            # Answers to an address of the other link leave by that link.
            echo 0 > /proc/sys/net/ipv4/conf/a$n/rp_filter
            at_far bash -c "echo 0 > /proc/sys/net/ipv4/conf/b$n/rp_filter"
        done
        # The second route to the same network, which only sockets of that interface take.
        ip -6 route add fd09:1::/64 via fd09:2::2 dev a2 metric 9000
        for name in all default; do
            echo 0 > /proc/sys/net/ipv4/conf/$name/rp_filter
            at_far bash -c "echo 0 > /proc/sys/net/ipv4/conf/$name/rp_filter"
        done
        for host in 10.9.1.2 fd09:1::2; do
            if [ $host = 10.9.1.2 ]; then own=10.9.2.1; else own=fd09:2::1; fi
            for bind in $own $own%a2 a2; do
                exec {out}< <(exec nsenter --target $far --net "$0" serve --ephemeral --one-off --port 0 --json --advertise $host)
                server=$!
                read -r ready <&$out
                string=${ready##*'"string":"'}
                string=${string%%'"'*}
                before=$(awk '/a2:/ {print $10}' /proc/net/dev)
                "$0" udp "$string" -t 60 -n 300K -i 0 -b 8M -B $bind -q > /dev/null
                after=$(awk '/a2:/ {print $10}' /proc/net/dev)
                read -r tested <&$out
                echo "{\"bind\":\"$bind\",\"own\":\"$own\",\"a2\":$((after - before)),\"log\":$tested}"
                wait $server 2> /dev/null || true
            done
        done
    "#;
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--net", "bash", "-c", script]);
    command.arg(env!("CARGO_BIN_EXE_netduel")).stdin(Stdio::null());
    bench.mark(&mut command);
    let Ok(output) = command.output() else { return skip("unshare is not installed") };
    let run = Finished::from(output);
    if ["unshare failed", "command not found", "Operation not permitted"]
        .iter()
        .any(|why| run.stderr.contains(why))
    {
        return skip("no namespaces for this user, or no `ip`, `nsenter` or `awk`");
    }
    let run = run.expect_code(0);
    let tests: Vec<Value> = run.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(tests.len(), 6, "{}", run.stdout);
    for test in tests {
        let client: std::net::SocketAddr = test["log"]["client"].as_str().unwrap().parse().unwrap();
        assert_eq!(client.ip().to_canonical().to_string(), test["own"].as_str().unwrap(), "{test}");
        // 300 kB; by the route of the address alone the other link would carry it.
        let names_link = test["bind"].as_str().unwrap().contains("a2");
        assert_eq!(test["a2"].as_u64().unwrap() > 100_000, names_link, "{test}");
    }
    bench.assert_nothing_left();
}
