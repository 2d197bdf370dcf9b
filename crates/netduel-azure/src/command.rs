//! The commands that messages propose, in the subscription that the user has named. Pure.
use netduel_model::shell;

/// How the commands that find something in Azure begin.
const ASKS_AZURE: [&str; 2] = ["az ", "netduel azure "];

/// A line of commands, joined by ` && `, each with the option of the subscription that a bed file or the command line names, by id or name. Without
/// a name it is unchanged: the current subscription of `az` is meant. Commands that do not ask Azure have no such option.
pub fn in_subscription(line: &str, named: Option<&str>) -> String {
    let Some(named) = named else { return line.to_owned() };
    let with_option = |command: &str| {
        if ASKS_AZURE.iter().any(|start| command.starts_with(start)) {
            format!("{command} --subscription {}", shell::word(named))
        } else {
            command.to_owned()
        }
    };
    line.split(" && ").map(with_option).collect::<Vec<_>>().join(" && ")
}

/// The command that deletes a bed.
pub fn down(bed: &str, named: Option<&str>) -> String {
    in_subscription(&format!("netduel azure down {bed}"), named)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_command_that_asks_azure_names_the_subscription_that_the_user_named() {
        let both = "az vm deallocate --name vm1 && az vm start --name vm1";
        assert_eq!(in_subscription(both, None), both);
        assert_eq!(
            in_subscription(both, Some("pay as you go")),
            "az vm deallocate --name vm1 --subscription 'pay as you go' && az vm start --name vm1 --subscription 'pay as you go'"
        );
        assert_eq!(in_subscription("netduel azure list", Some("s")), "netduel azure list --subscription s");
        let of_the_guest = "ip route add 10.77.1.0/24 via 10.77.0.1 && azcopy list";
        assert_eq!(in_subscription(of_the_guest, Some("s")), of_the_guest);
    }
}
