//! Names of beds and of Azure's resources that can be words of a command.

/// Longest name: names of resources begin with it, and a host name has 63 characters at most.
pub(crate) const NAME_LEN_MAX: usize = 24;
/// Longest name of a NIC; those of VMs and groups are not shorter where netduel uses them.
const RESOURCE_LEN_MAX: usize = 80;
/// Longest id or name of a subscription.
pub const SUBSCRIPTION_LEN_MAX: usize = 64;

/// Whether a text is the name of a bed.
pub fn is_name(text: &str) -> bool {
    (1..=NAME_LEN_MAX).contains(&text.len())
        && text.starts_with(|c: char| c.is_ascii_lowercase())
        && !text.ends_with('-')
        && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
}

/// Whether a text is the name of a NIC, VM or group of Azure, and no option of a program.
pub fn is_resource(text: &str) -> bool {
    (1..=RESOURCE_LEN_MAX).contains(&text.len())
        && text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
}

/// Whether a text is the id of a subscription, or a name that can be an argument.
pub fn is_subscription(text: &str) -> bool {
    (1..=SUBSCRIPTION_LEN_MAX).contains(&text.len())
        && text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b" ._-()".contains(&byte))
}
