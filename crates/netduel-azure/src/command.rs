//! The commands that messages propose, in the subscription that the user has named, and texts without subscriptions. Pure.
use netduel_model::shell;

/// How the commands that find something in Azure begin.
const ASKS_AZURE: [&str; 2] = ["az ", "netduel azure "];
/// What stands in place of a subscription in what a run keeps: the subscription is the user's.
pub const SUBSCRIPTION: &str = "SUBSCRIPTION";
/// What a subscription stands behind: the option of commands, and the start of ids.
const BEFORE: [&str; 3] = ["--subscription ", "--subscription=", "/subscriptions/"];
/// What it stands behind in quotation marks, in sentences of Azure.
const BEFORE_QUOTED: &str = "subscription ";
/// An apostrophe within a word in single quotes (`netduel_model::shell`), behind the quote that ends its first part.
const APOSTROPHE: &str = r"\''";

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

/// A text with [`SUBSCRIPTION`] in place of each subscription: in options of commands, in ids of resources, in quotation marks behind its word, and
/// wherever the one with this id is a word.
pub fn without_subscriptions(text: &str, id: Option<&str>) -> String {
    let id = id.filter(|id| !id.is_empty());
    let mut result = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(next) = rest.chars().next() {
        let is_start = !result.ends_with(is_of_id);
        let known = id.filter(|_| is_start).and_then(|id| Some(("", behind_word(rest, id)?)));
        if let Some((before, behind)) = known.or_else(|| around_subscription(rest)) {
            result.push_str(before);
            result.push_str(SUBSCRIPTION);
            rest = behind;
        } else {
            result.push(next);
            rest = rest.strip_prefix(next).unwrap_or_default();
        }
    }
    result
}

/// What is before and behind the subscription that a text names at its start.
fn around_subscription(text: &str) -> Option<(&str, &str)> {
    let parts = |start: &str| {
        text.split_at_checked(start.len()).filter(|(found, _)| found.eq_ignore_ascii_case(start))
    };
    if let Some((before, value)) = parts(BEFORE_QUOTED)
        && let Some(behind) = behind_quoted(value)
    {
        return Some((before, behind));
    }
    let (before, value) = BEFORE.into_iter().find_map(parts)?;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let behind = behind_quoted(value).unwrap_or_else(|| value.trim_start_matches(is_plain));
    (behind.len() < value.len()).then_some((before, behind))
}

/// What is behind the word in single quotes with which a text begins. In a command an apostrophe in it is [`APOSTROPHE`].
fn behind_quoted(text: &str) -> Option<&str> {
    let (_, mut behind) = text.strip_prefix('\'')?.split_once('\'')?;
    while let Some((_, rest)) = behind.strip_prefix(APOSTROPHE).and_then(|rest| rest.split_once('\'')) {
        behind = rest;
    }
    Some(behind)
}

/// What is behind a word, in any case of letters, with which a text begins.
fn behind_word<'t>(text: &'t str, word: &str) -> Option<&'t str> {
    let (found, behind) = text.split_at_checked(word.len())?;
    (found.eq_ignore_ascii_case(word) && !behind.starts_with(is_of_id)).then_some(behind)
}

fn is_of_id(c: char) -> bool {
    c.is_ascii_alphanumeric()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_names_no_subscription_wherever_one_may_stand() {
        const ID: &str = "22222222-2222-2222-2222-22222222abcd";
        for (text, shown) in [
            (
                in_subscription("az vm list", Some("pay (as) you go")),
                "az vm list --subscription SUBSCRIPTION",
            ),
            (
                in_subscription("az vm list && az vm show", Some("Ann's and Bob's")),
                "az vm list --subscription SUBSCRIPTION && az vm show --subscription SUBSCRIPTION",
            ),
            (format!("undo --subscription {ID} n`; é"), "undo --subscription SUBSCRIPTION n`; é"),
            (format!("--subscription={ID}: no"), "--subscription=SUBSCRIPTION: no"),
            (
                format!("over scope '/subscriptions/{ID}/resourceGroups/g'"),
                "over scope '/subscriptions/SUBSCRIPTION/resourceGroups/g'",
            ),
            (format!("The subscription '{ID}' is disabled"), "The subscription SUBSCRIPTION is disabled"),
            (
                "(/SUBSCRIPTIONS/s-1, /subscriptions/s.2)".to_owned(),
                "(/SUBSCRIPTIONS/SUBSCRIPTION, /subscriptions/SUBSCRIPTION)",
            ),
        ] {
            assert_eq!(without_subscriptions(&text, None), shown);
            assert_eq!(without_subscriptions(shown, Some(ID)), shown, "the second time changes it");
        }
        let (upper, longer) = (ID.to_uppercase(), format!("{ID}0 0{ID}"));
        assert_eq!(without_subscriptions(&format!("of {upper}."), Some(ID)), "of SUBSCRIPTION.");
        for text in [longer.as_str(), "add --subscription; the subscription is full", "/subscriptions/", ""] {
            assert_eq!(without_subscriptions(text, Some(ID)), text);
            assert_eq!(without_subscriptions(text, Some("")), text);
        }
    }

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
