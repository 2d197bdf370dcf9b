//! Errors of a plan generated from options, in terms of the command line.
use netduel_model::plan::PlanErrors;

/// The option that sets a key of the workload.
pub fn option(key: &str) -> Option<&'static str> {
    Some(match key {
        "block" | "size" => "-l (--length)",
        "congestion" => "-C (--congestion)",
        "dscp" => "--dscp",
        "duration" => "-t (--time)",
        "engine" => "--engine",
        "flows" | "outstanding" | "streams" => "-P (--parallel)",
        "frame" | "frames" => "--frame",
        "generator" => "--generator",
        "receiver" => "--receiver",
        "packet_rate" | "request_rate" => "--rate",
        "queues" => "--queues",
        "direction" => "-R (--reverse) or --bidir",
        "family" => "HOST, -4 (--ipv4) or -6 (--ipv6)",
        "mss" => "-M (--set-mss)",
        "offload" => "--offload",
        "pin_client" => "--pin-client",
        "pin_server" => "--pin-server",
        "rate" => "-b (--bitrate)",
        "response_size" => "--response-length",
        "search" => "--search",
        "timestamps" => "--timestamps",
        "volume" => "-n (--bytes)",
        "wait" => "--wait",
        "warmup" | "cooldown" => "-O (--omit)",
        "window" => "-w (--window)",
        _ => return None,
    })
}

/// The problems in terms of the command line. Keys without an option keep their names.
pub fn message(errors: &PlanErrors) -> String {
    let lines = errors.problems.iter().map(|problem| {
        let key = problem.key.strip_prefix("workloads[0].").unwrap_or(&problem.key);
        // An option with several values has them in a list.
        let alone = key.split('[').next().unwrap_or(key);
        // The list of allowed settings has keys of plans.
        let allowed = match alone {
            _ if problem.wrong.starts_with("is not a setting of ") => "leave it out",
            // A quick test has no arm whose ends could be exchanged.
            "direction" => "leave it out, and start the test at the other end for the other direction",
            _ => problem.allowed.as_str(),
        };
        let (wrong, allowed) = (with_options(&problem.wrong), with_options(allowed));
        format!("{}: {wrong}; {allowed}", option(alone).unwrap_or(key))
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// The text with the option in place of each key of a workload in backticks.
fn with_options(text: &str) -> String {
    // One option sets both.
    let text = text.replace("`warmup` and `cooldown`", "`warmup`");
    let shown = text.split('`').enumerate().map(|(index, part)| match option(part) {
        _ if index.is_multiple_of(2) => part.to_owned(),
        Some(option) => option.to_owned(),
        None => format!("`{part}`"),
    });
    shown.collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use netduel_model::plan::Problem;

    use super::*;

    fn errors(problems: Vec<Problem>) -> PlanErrors {
        PlanErrors { file: "options".to_owned(), problems, has_more: false, names: BTreeMap::new() }
    }

    #[test]
    fn errors_name_the_option_that_sets_a_key() {
        let problem = |key: &str| Problem {
            line: 7,
            key: key.to_owned(),
            wrong: "is wrong".to_owned(),
            allowed: "right is allowed".to_owned(),
        };
        let foreign = Problem {
            wrong: "is not a setting of pps".to_owned(),
            allowed: "it has packet_rate".to_owned(),
            ..problem("workloads[0].dscp")
        };
        assert_eq!(message(&errors(vec![foreign])), "--dscp: is not a setting of pps; leave it out");
        let loop_without_requests = Problem {
            wrong: "is \"1 /s\", so that no request is due".to_owned(),
            allowed: "raise `request_rate` or `duration`, or shorten `warmup` and `cooldown`; see `x y`"
                .to_owned(),
            ..problem("workloads[0].request_rate")
        };
        assert_eq!(
            message(&errors(vec![loop_without_requests])),
            "--rate: is \"1 /s\", so that no request is due; raise --rate or -t (--time), or shorten -O (--omit); see `x y`"
        );
        let problems = vec![problem("workloads[0].engine"), problem("hosts.server.serve")];
        assert_eq!(
            message(&errors(problems)),
            "--engine: is wrong; right is allowed\nhosts.server.serve: is wrong; right is allowed"
        );
    }
}
