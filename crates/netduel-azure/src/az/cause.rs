//! Why a call of `az` or a deployment failed: the codes of Azure that users meet, in words with a remedy. Anything else is shown as `az`
//! printed it. Pure.
//!
//! Long because: the codes, their words and the outputs of `az` that have them are read together.
use std::fmt;

use netduel_model::bed::{Bed, Placement};
use netduel_model::size::{self, Size};
use serde_json::Value;

use crate::command::{down, in_subscription};

/// Longest message of Azure that is shown, characters.
const MESSAGE_MAX: usize = 600;
/// Sizes that are proposed at most: Azure may list hundreds.
const SIZES_MAX: usize = 8;

/// A quota that is too small.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quota {
    /// The quota, for example `standardDSv3Family Cores`.
    pub name: String,
    /// The region.
    pub region: String,
    /// What is allowed.
    pub limit: u64,
    /// What is in use.
    pub usage: u64,
    /// What the deployment needs in addition.
    pub required: u64,
}

impl fmt::Display for Quota {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the quota {} in {} is {}, {} are in use, and the bed needs {} more; request a quota of {} (Azure portal, Quotas), or choose a \
             smaller size",
            self.name,
            self.region,
            self.limit,
            self.usage,
            self.required,
            self.usage.saturating_add(self.required)
        )
    }
}

/// Why something failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cause {
    /// A quota is too small.
    Quota(Quota),
    /// Azure has no host left for the size at this place.
    Allocation {
        /// Message of Azure.
        message: String,
        /// How close the VMs of the bed are to each other; `None` when no bed is known, as for a VM that a treatment starts.
        placement: Option<Placement>,
    },
    /// The size is not offered there, or not to this subscription.
    SizeNotOffered {
        /// Message of Azure.
        message: String,
        /// The command that lists the sizes of the region; `None` when no bed is known.
        list: Option<String>,
    },
    /// The size has no accelerated networking.
    NotAccelerated {
        /// Sizes that have it by the message of Azure and are in the table of sizes, those with as many vCPUs first.
        sizes: Vec<String>,
    },
    /// Azure cannot change this of a VM that exists.
    Unchangeable {
        /// Message of Azure.
        message: String,
        /// The command that deletes the bed; `None` when no bed is known, as for a VM that a treatment changes.
        down: Option<String>,
    },
    /// The login is missing or has expired.
    Login {
        /// Message of Azure.
        message: String,
    },
    /// `az` hides the answer: a conflict, whose cause is in the operations of the deployment.
    Hidden,
    /// Azure limits the rate of requests.
    Throttled {
        /// Message of Azure.
        message: String,
    },
    /// No connection.
    Connection {
        /// Message of `az`.
        message: String,
    },
    /// This `az` does not know an argument.
    Version {
        /// Message of `az`.
        message: String,
    },
    /// Anything else.
    Other {
        /// Code of Azure.
        code: Option<String>,
        /// Message of Azure or of `az`.
        message: String,
    },
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Quota(quota) => quota.fmt(f),
            Self::Allocation { message, placement } => {
                let together =
                    matches!(placement, Some(Placement::AvailabilitySet | Placement::ProximityGroup));
                let advice = if together { ", or placement = \"none\"" } else { "" };
                write!(
                    f,
                    "Azure has no capacity for this size there now ({message}); try again later, or choose another zone, region or \
                     size{advice}"
                )
            }
            Self::SizeNotOffered { message, list } => {
                write!(f, "Azure does not offer this size there to this subscription ({message}); ")?;
                if let Some(list) = list {
                    write!(f, "`{list}` lists sizes and their restrictions; ")?;
                }
                f.write_str("choose another size, zone or region")
            }
            Self::NotAccelerated { sizes } if sizes.is_empty() => f.write_str(
                "Azure does not permit accelerated networking on this size; choose another size",
            ),
            Self::NotAccelerated { sizes } => write!(
                f,
                "Azure does not permit accelerated networking on this size; choose one of {}",
                sizes.join(", ")
            ),
            Self::Unchangeable { message, down } => {
                write!(f, "Azure cannot change this of a VM that exists ({message})")?;
                match down {
                    Some(down) => write!(f, "; delete the bed with `{down}`, and create it again"),
                    None => Ok(()),
                }
            }
            Self::Login { message } => {
                write!(f, "the login of `az` is missing or has expired ({message}); run `az login`")
            }
            Self::Hidden => f.write_str(
                "Azure answered with a conflict, and `az` does not show its cause; a deployment of this bed may be active: wait, and repeat the \
                 command",
            ),
            Self::Throttled { message } => {
                write!(f, "Azure limits the rate of requests ({message}); wait some minutes, and repeat the command")
            }
            Self::Connection { message } => {
                write!(f, "there is no connection to Azure ({message}); check it, and repeat the command")
            }
            Self::Version { message } => {
                write!(f, "this `az` does not know an argument ({message}); update it with `az upgrade`")
            }
            Self::Other { code: Some(code), message } if !message.contains(code.as_str()) => {
                write!(f, "{message} ({code})")
            }
            Self::Other { message, .. } => f.write_str(message),
        }
    }
}

impl Cause {
    /// The same with what the remedy says of a bed.
    #[must_use]
    pub fn of_bed(self, bed: &Bed) -> Self {
        let named = bed.subscription.as_deref();
        match self {
            Self::Allocation { message, .. } => Self::Allocation { message, placement: Some(bed.placement) },
            Self::SizeNotOffered { message, .. } => {
                let list = format!("az vm list-skus --location {} --all", bed.region);
                Self::SizeNotOffered { message, list: Some(in_subscription(&list, named)) }
            }
            Self::Unchangeable { message, .. } => {
                Self::Unchangeable { message, down: Some(down(&bed.name, named)) }
            }
            other => other,
        }
    }

    /// From the standard error of `az` and its exit code.
    pub fn of_output(stderr: &str, exit: Option<i32>) -> Self {
        let mut reported = reported(stderr);
        if let Some(cause) = reported.iter().rev().find_map(|(code, message)| known(code, message)) {
            return cause;
        }
        if stderr.contains("content for this response was already consumed") {
            return Self::Hidden;
        }
        let line = last_line(stderr);
        let has = |parts: &[&str]| parts.iter().any(|part| stderr.contains(part));
        // An answer without a body, as to a HEAD, has no code.
        if has(&["az login", "AADSTS", "invalid status 'Unauthorized'"]) {
            return Self::Login { message: line };
        }
        if has(&[
            "Max retries exceeded",
            "Connection aborted",
            "Connection broken",
            "Connection reset",
            "Failed to establish a new connection",
            "Name or service not known",
            "Temporary failure in name resolution",
        ]) {
            return Self::Connection { message: line };
        }
        // Exit code 2: the command line was not understood, and `az` names the argument.
        if exit == Some(2) && !line.is_empty() {
            return Self::Version { message: line };
        }
        match reported.pop() {
            Some((code, message)) => Self::other(&code, &message),
            None if line.is_empty() => {
                let exit = exit.map_or_else(|| "a signal".to_owned(), |code| format!("exit code {code}"));
                Self::Other { code: None, message: format!("it ended with {exit} and without a message") }
            }
            None => Self::Other { code: None, message: line },
        }
    }

    /// A code that is none of those above.
    fn other(code: &str, message: &str) -> Self {
        let code = Some(shortened(code)).filter(|code| !code.is_empty());
        let message = Some(shortened(message)).filter(|message| !message.is_empty());
        Self::Other { code, message: message.unwrap_or_else(|| "Azure names no cause".to_owned()) }
    }

    /// From an error object of Azure, as the operations of a deployment have it: the innermost known code.
    pub fn of_error(error: &Value) -> Self {
        let mut reported = Vec::new();
        collect(error, &mut reported);
        if let Some(cause) = reported.iter().rev().find_map(|(code, message)| known(code, message)) {
            return cause;
        }
        match reported.pop() {
            Some((code, message)) => Self::other(&code, &message),
            None => Self::Other { code: None, message: shortened(&error.to_string()) },
        }
    }
}

/// Codes with their messages in the output of `az`, the outer ones first.
fn reported(stderr: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for line in stderr.lines() {
        let line = line.trim();
        let line = line.strip_prefix("ERROR: ").unwrap_or(line);
        if line.starts_with('{') {
            if let Ok(value) = serde_json::from_str::<Value>(line) {
                collect(&value, &mut found);
            }
        } else if let Some((code, message)) = line.strip_prefix('(').and_then(|rest| rest.split_once(") ")) {
            let is_code = !code.is_empty() && code.bytes().all(|byte| byte.is_ascii_alphanumeric());
            if is_code {
                found.push((code.to_owned(), message.to_owned()));
            }
        }
    }
    found
}

/// Codes with their messages in an error object and the errors within it.
fn collect(value: &Value, found: &mut Vec<(String, String)>) {
    if let (Some(code), Some(message)) = (value["code"].as_str(), value["message"].as_str()) {
        found.push((code.to_owned(), message.to_owned()));
        // Some services put the JSON of another error into a message.
        if let Some(inner) = message.find('{').and_then(|at| message.get(at..))
            && let Ok(inner) = serde_json::from_str::<Value>(inner)
        {
            collect(&inner, found);
        }
    }
    for key in ["error", "innererror"] {
        if let Some(inner) = value.get(key) {
            collect(inner, found);
        }
    }
    for detail in value["details"].as_array().into_iter().flatten() {
        collect(detail, found);
    }
}

/// The cause of a known code.
fn known(code: &str, message: &str) -> Option<Cause> {
    let short = || shortened(message);
    Some(match code {
        "QuotaExceeded" | "OperationNotAllowed" => Cause::Quota(quota(message)?),
        "AllocationFailed"
        | "ZonalAllocationFailed"
        | "OverconstrainedAllocationRequest"
        | "OverconstrainedZonalAllocationRequest" => Cause::Allocation { message: short(), placement: None },
        "SkuNotAvailable" => Cause::SizeNotOffered { message: short(), list: None },
        "VMSizeIsNotPermittedToEnableAcceleratedNetworking" => {
            Cause::NotAccelerated { sizes: sizes(message) }
        }
        "PropertyChangeNotAllowed" => Cause::Unchangeable { message: short(), down: None },
        "ExpiredAuthenticationToken" | "InvalidAuthenticationToken" | "AuthenticationFailed" => {
            Cause::Login { message: short() }
        }
        "TooManyRequests" | "SubscriptionRequestsThrottled" | "OperationThrottled" => {
            Cause::Throttled { message: short() }
        }
        _ => return None,
    })
}

/// The figures in a message about a quota; `None` for a message of another form.
fn quota(message: &str) -> Option<Quota> {
    let (_, after) = message.split_once("exceeding approved ")?;
    let (name, _) = after.split_once(" quota")?;
    let value = |label: &str| -> Option<&str> {
        let (_, after) = message.split_once(label)?;
        after.split([',', '.', ' ']).next()
    };
    Some(Quota {
        name: shortened(name),
        region: shortened(value("Location: ")?),
        limit: value("Current Limit: ")?.parse().ok()?,
        usage: value("Current Usage: ")?.parse().ok()?,
        required: value("Additional Required: ")?.parse().ok()?,
    })
}

/// The sizes that a refusal of accelerated networking lists after the refused one, which comes first: those of the table, because a bed can have
/// no other, each once, and those with as many vCPUs as the refused one first.
fn sizes(message: &str) -> Vec<String> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut words = message.split(|c: char| !is_part(c)).filter(|word| word.starts_with("Standard_"));
    let refused = words.next().and_then(size::named);
    let mut sizes: Vec<&Size> = Vec::new();
    for size in words.filter_map(size::named) {
        if !sizes.contains(&size) && Some(size) != refused {
            sizes.push(size);
        }
    }
    if let Some(refused) = refused {
        sizes.sort_by_key(|size| size.vcpus.abs_diff(refused.vcpus));
    }
    sizes.iter().take(SIZES_MAX).map(|size| size.name.clone()).collect()
}

fn last_line(text: &str) -> String {
    let line = text.lines().map(str::trim).rfind(|line| !line.is_empty() && !is_advice(line));
    let line = line.unwrap_or_default();
    shortened(line.strip_prefix("ERROR: ").unwrap_or(line))
}

/// Lines that `az` adds to every error.
fn is_advice(line: &str) -> bool {
    line.starts_with("https://aka.ms/")
        || line.starts_with("Read more about the command")
        || line.starts_with("To check existing issues")
}

/// A message on one line, not longer than is readable, without the full stop: the sentence of netduel goes on.
fn shortened(message: &str) -> String {
    let mut line = message.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.ends_with('.') && !line.ends_with("..") {
        line.pop();
    }
    if line.chars().count() <= MESSAGE_MAX {
        return line;
    }
    line.chars().take(MESSAGE_MAX).collect::<String>() + "..."
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Printed by az 2.91.0.
    const QUOTA: &str = "ERROR: {\"code\": \"InvalidTemplateDeployment\", \"message\": \"The template deployment 'x' is not valid according to \
        the validation procedure. See inner errors for details.\"}\n\nInner Errors: \n{\"code\": \"QuotaExceeded\", \"message\": \"Operation \
        could not be completed as it results in exceeding approved standardDSv3Family Cores quota. Additional details - Deployment Model: \
        Resource Manager, Location: westeurope, Current Limit: 10, Current Usage: 4, Additional Required: 8\"}\n";
    const HIDDEN: &str = "    if not self.content:\n           ^^^^^^^^^^^^\n  File \"<site-packages>/requests/models.py\", line 1037, in content\n    \
        raise RuntimeError(\"The content for this response was already consumed\")\nRuntimeError: The content for this response was already \
        consumed\nTo check existing issues, please visit: https://github.com/Azure/azure-cli/issues\n";
    const NOT_FOUND: &str = "ERROR: (ResourceNotFound) The Resource 'nope' was not found.\nCode: ResourceNotFound\nMessage: The Resource 'nope' \
        was not found.\n";
    const EXPIRED: &str = "ERROR: (ExpiredAuthenticationToken) The access token expiry UTC time is earlier than current UTC time\nCode: \
        ExpiredAuthenticationToken\n";
    const UNKNOWN_ARGUMENT: &str = "ERROR: unrecognized arguments: --nosuch\n\nhttps://aka.ms/cli_ref\nRead more about the command in reference \
        docs\n";

    #[test]
    fn quota_says_which_number_to_request() {
        let Cause::Quota(quota) = Cause::of_output(QUOTA, Some(1)) else { panic!("no quota") };
        assert_eq!((quota.limit, quota.usage, quota.required), (10, 4, 8));
        let text = quota.to_string();
        assert!(text.contains("standardDSv3Family Cores in westeurope is 10"), "{text}");
        assert!(text.contains("request a quota of 12 "), "{text}");
    }

    #[test]
    fn each_known_output_has_a_cause_with_a_remedy() {
        for (stderr, exit, part) in [
            (HIDDEN, 1, "wait, and repeat"),
            (EXPIRED, 1, "run `az login`"),
            (NOT_FOUND, 3, "The Resource 'nope' was not found (ResourceNotFound)"),
            (UNKNOWN_ARGUMENT, 2, "(unrecognized arguments: --nosuch); update it"),
            ("ERROR: Please run 'az login' to setup account.\n", 1, "run `az login`"),
            ("ERROR: Operation returned an invalid status 'Unauthorized'\n", 1, "run `az login`"),
            (
                "ERROR: (SkuNotAvailable) The requested size is currently not available\n",
                1,
                "another size, zone or region",
            ),
            ("ERROR: (AllocationFailed) Allocation failed.\n", 1, "no capacity"),
            ("ERROR: (TooManyRequests) slow\n", 1, "wait some minutes"),
            (
                "ERROR: (PropertyChangeNotAllowed) Changing property 'customData' is not allowed.\n",
                1,
                "of a VM that exists (Changing property 'customData' is not allowed)",
            ),
            (
                "ERROR: HTTPSConnectionPool(host='x', port=443): Max retries exceeded with url: /\n",
                1,
                "no connection",
            ),
            ("", 1, "exit code 1 and without a message"),
            ("", 2, "exit code 2 and without a message"),
            (
                "ERROR: (OperationNotAllowed) Something else is not allowed\n",
                1,
                "Something else is not allowed (OperationNotAllowed)",
            ),
        ] {
            let text = Cause::of_output(stderr, Some(exit)).to_string();
            assert!(text.contains(part), "{stderr}: {text}");
        }
    }

    #[test]
    fn refusal_of_accelerated_networking_names_the_sizes_of_the_message() {
        let stderr = "ERROR: (VMSizeIsNotPermittedToEnableAcceleratedNetworking) The virtual machine size Standard_B2s is not permitted. \
            Permitted: Standard_D2_v2, Standard_DS4_v2,Standard_DS2_v2, Standard_DS4_v2.\n";
        let cause = Cause::of_output(stderr, Some(1));
        // A size that is not in the table of sizes would be refused by netduel.
        assert_eq!(
            cause,
            Cause::NotAccelerated { sizes: vec!["Standard_DS4_v2".to_owned(), "Standard_DS2_v2".to_owned()] }
        );
        let bare = "ERROR: (VMSizeIsNotPermittedToEnableAcceleratedNetworking) VM size x is not permitted\n";
        assert_eq!(Cause::of_output(bare, Some(1)), Cause::NotAccelerated { sizes: Vec::new() });
    }

    #[test]
    fn permitted_sizes_are_the_nearest_of_a_long_list() {
        let all: Vec<&str> = size::table().iter().map(|size| size.name.as_str()).collect();
        let stderr = format!(
            "ERROR: (VMSizeIsNotPermittedToEnableAcceleratedNetworking) VM size Standard_D4s_v3 is not permitted. Permitted: {}\n",
            all.join(", ")
        );
        let Cause::NotAccelerated { sizes } = Cause::of_output(&stderr, Some(1)) else { panic!("{stderr}") };
        assert_eq!(sizes.len(), SIZES_MAX);
        let guide = include_str!("../../../../docs/beds.md");
        let text = format!("up to {SIZES_MAX} sizes of the table");
        assert!(guide.contains(&text), "docs/beds.md lacks this text: {text}");
        assert!(!sizes.contains(&"Standard_D4s_v3".to_owned()), "{sizes:?}");
        assert!(sizes.iter().all(|name| size::named(name).is_some_and(|size| size.vcpus == 4)), "{sizes:?}");
    }

    #[test]
    fn remedy_is_that_of_the_bed() {
        let bed = |keys: &str| {
            let text = format!("name = \"x\"\nregion = \"westeurope\"\nsize = \"Standard_D4s_v3\"\n{keys}\n");
            netduel_model::bed::parse(&text, "x.toml").unwrap_or_else(|errors| panic!("{errors}"))
        };
        let full = || Cause::of_output("ERROR: (AllocationFailed) Allocation failed.\n", Some(1));
        let advice = "or placement = \"none\"";
        for cause in [full(), full().of_bed(&bed(""))] {
            assert!(!cause.to_string().contains(advice), "{cause}");
        }
        // That no bed is known is not a bed without a placement.
        let placement = |cause| match cause {
            Cause::Allocation { placement, .. } => placement,
            other => panic!("{other:?}"),
        };
        assert_eq!([full(), full().of_bed(&bed(""))].map(placement), [None, Some(Placement::None)]);
        let near = full().of_bed(&bed("placement = \"proximity-group\"")).to_string();
        assert!(near.ends_with(advice), "{near}");
        let missing = || Cause::of_output("ERROR: (SkuNotAvailable) not available\n", Some(1));
        assert!(!missing().to_string().contains("list-skus"), "{}", missing());
        let missing = missing().of_bed(&bed("")).to_string();
        assert!(missing.contains("`az vm list-skus --location westeurope --all`"), "{missing}");
        let kept = || Cause::of_output("ERROR: (PropertyChangeNotAllowed) no\n", Some(1));
        assert!(!kept().to_string().contains("netduel azure down"), "{}", kept());
        let paid = bed("subscription = \"paid\"");
        for (cause, command) in [
            (kept().of_bed(&bed("")), "`netduel azure down x`"),
            (kept().of_bed(&paid), "`netduel azure down x --subscription paid`"),
            (
                Cause::of_output("ERROR: (SkuNotAvailable) no\n", Some(1)).of_bed(&paid),
                "`az vm list-skus --location westeurope --all --subscription paid`",
            ),
        ] {
            assert!(cause.to_string().contains(command), "{command}: {cause}");
        }
    }

    #[test]
    fn innermost_known_error_of_an_operation_is_the_cause() {
        let error = json!({ "status": "Failed", "error": {
            "code": "ResourceDeploymentFailure", "message": "outer",
            "details": [{ "code": "Conflict", "message": "{\"error\":{\"code\":\"AllocationFailed\",\"message\":\"no room\"}}" }],
        } });
        let expected = Cause::Allocation { message: "no room".to_owned(), placement: None };
        assert_eq!(Cause::of_error(&error), expected);
        let other = json!({ "error": { "code": "Strange", "message": "what\n happened" } });
        assert_eq!(
            Cause::of_error(&other),
            Cause::Other { code: Some("Strange".to_owned()), message: "what happened".to_owned() }
        );
        assert_eq!(Cause::of_error(&json!("text")).to_string(), "\"text\"");
        let empty = Cause::of_error(&json!({ "code": "Strange", "message": "." })).to_string();
        assert_eq!(empty, "Azure names no cause (Strange)");
    }

    #[test]
    fn long_message_is_shortened() {
        let text = Cause::of_output(&format!("ERROR: {}\n", "ä".repeat(5000)), Some(1)).to_string();
        assert_eq!(text.chars().count(), MESSAGE_MAX + 3);
        let long = "x".repeat(5000);
        let quota = QUOTA.replace("standardDSv3Family", &long).replace("westeurope", &long);
        for stderr in [quota, format!("ERROR: {{\"code\": \"{long}\", \"message\": \"m\"}}\n")] {
            let text = Cause::of_output(&stderr, Some(1)).to_string();
            assert!(text.chars().count() < 3 * MESSAGE_MAX, "{text}");
        }
    }
}
