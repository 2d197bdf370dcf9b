//! Errors of a plan that was made of options, told in the words of the command line.
use netduel_model::plan::PlanErrors;

/// The option that sets a key of the workload.
fn option(key: &str) -> Option<&'static str> {
    Some(match key {
        "block" | "size" => "-l (--length)",
        "congestion" => "-C (--congestion)",
        "duration" => "-t (--time)",
        "engine" => "--engine",
        "flows" | "outstanding" | "streams" => "-P (--parallel)",
        "frame" | "frames" => "-l (--frame)",
        "generator" => "--generator",
        "receiver" => "--receiver",
        "packet_rate" => "-b (--rate)",
        "queues" => "--queues",
        "direction" => "-R (--reverse) or --bidir",
        "family" => "-4 (--ipv4) or -6 (--ipv6)",
        "mss" => "-M (--set-mss)",
        "offload" => "--offload",
        "pin_client" => "--pin-client",
        "pin_server" => "--pin-server",
        "rate" => "-b (--bitrate)",
        "request_rate" => "--rate",
        "search" => "--search",
        "timestamps" => "--timestamps",
        "volume" => "-n (--bytes)",
        "wait" => "--wait",
        "warmup" | "cooldown" => "-O (--omit)",
        "window" => "-w (--window)",
        _ => return None,
    })
}

/// What is wrong with the options. Keys that no option sets keep their names.
pub fn told(errors: &PlanErrors) -> String {
    let told = errors.problems.iter().map(|problem| {
        let key = problem.key.strip_prefix("workloads[0].").unwrap_or(&problem.key);
        // An option that takes several has them in a list.
        let alone = key.split('[').next().unwrap_or(key);
        format!("{}: {}; {}", option(alone).unwrap_or(key), problem.wrong, problem.allowed)
    });
    told.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use netduel_model::plan::Problem;

    use super::*;

    #[test]
    fn a_key_that_an_option_sets_is_told_as_the_option() {
        let problem = |key: &str| Problem {
            line: 7,
            key: key.to_owned(),
            wrong: "is wrong".to_owned(),
            allowed: "right is allowed".to_owned(),
        };
        let problems = vec![problem("workloads[0].engine"), problem("hosts.server.serve")];
        assert_eq!(
            told(&PlanErrors { file: "options".to_owned(), problems }),
            "--engine: is wrong; right is allowed\nhosts.server.serve: is wrong; right is allowed"
        );
    }
}
