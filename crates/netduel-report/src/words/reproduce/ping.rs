//! ping(8) of iputils, with what every workload has of its options. It runs nothing.
use netduel_model::plan::tuning::core_list;
use netduel_model::workload::{Family, Ping, Workload};

/// The command.
pub(super) fn command(ping: &Ping, workload: &Workload, address: &str) -> String {
    let mut words = Vec::new();
    if !workload.pin_client.is_empty() {
        words.push(format!("taskset -c {}", core_list(&workload.pin_client)));
    }
    words.push("ping".to_owned());
    words.push(match workload.family {
        Family::Ipv4 => "-4".to_owned(),
        Family::Ipv6 => "-6".to_owned(),
    });
    words.extend(ping.options.iter().cloned());
    words.extend(workload.dscp.map(|dscp| format!("-Q {}", u32::from(dscp) << 2)));
    words.push(address.to_owned());
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use netduel_model::plan::parse;

    use super::super::{ArmCommands, commands_of_tests};

    const HOSTS: &str = "[hosts.a]\nlaunch = \"local\"\n[hosts.b]\nlaunch = \"ssh\"\nhost = \"b\"\naddresses = [\"192.0.2.2\"]\n";
    const GUESTS: &str = "[lab]\n[hosts.a]\nlaunch = \"lab\"\n[hosts.b]\nlaunch = \"lab\"\n";

    /// The commands of a workload of one arm.
    fn commands(hosts: &str, settings: &str) -> ArmCommands {
        let treatments = if hosts == GUESTS { "treatments = [{ path = \"accelerated\" }]\n" } else { "" };
        let text = format!(
            "name = \"p\"\nquestion = \"?\"\n{hosts}[[arms]]\nname = \"one\"\nclient = \"a\"\nserver = \"b\"\n{treatments}\
             [design]\naa = true\n[[workloads]]\nname = \"w\"\ntype = \"icmp-rr\"\nduration = \"4 s\"\n{settings}\n"
        );
        let plan = parse(&text, "p").unwrap_or_else(|error| panic!("{text}\n{error}"));
        commands_of_tests(&plan)[0].arms[0].clone()
    }

    #[test]
    fn several_requests_in_flight_have_the_reason_in_place_of_a_command() {
        let found = commands(HOSTS, "outstanding = 4");
        assert_eq!((found.lines.len(), found.reason), (0, Some("ping keeps one request in flight")));
    }

    #[test]
    fn pace_that_only_root_gets_has_a_comment() {
        const ROOT: &str = "# as root: ping allows other users no interval below 2 ms";
        for (settings, words) in [("", " -A "), ("request_rate = \"1 k/s\"", " -i 0.001 ")] {
            let found = commands(HOSTS, settings).lines;
            let [note, command] = found.as_slice() else { panic!("{found:?}") };
            assert_eq!(note, ROOT);
            assert!(command.starts_with("ping -4 ") && command.contains(words), "{command}");
            let found = commands(GUESTS, settings).lines;
            assert!(found.len() == 1 && found[0].contains(words), "{found:?}");
        }
        let found = commands(HOSTS, "request_rate = \"500 /s\"").lines;
        assert!(found.len() == 1 && found[0].contains(" -i 0.002 "), "{found:?}");
    }
}
