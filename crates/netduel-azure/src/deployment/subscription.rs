//! The subscription of a bed, and the `az` that knows it.
use serde::Deserialize;
use sha2::{Digest as _, Sha256};

use super::error::BedError;
use crate::az::{Az, ask};
use crate::command;

/// The oldest `az` that suffices: releases before 2.50 (2023) are no longer maintained.
const OLDEST: (u32, u32) = (2, 50);

/// A subscription.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subscription {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Its id or name as the bed file or the command line names it; `None` for the current subscription of `az`.
    pub named: Option<String>,
    /// The user who is logged in: the SHA-256 of the name in lower case, without a salt, in hexadecimal digits. It becomes a tag that others see,
    /// and a name is often an address for mail; a reader who knows the name can confirm it. `None` when `az` names no user.
    pub user: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Account {
    id: String,
    name: String,
    #[serde(default)]
    user: Option<User>,
}

#[derive(Debug, Deserialize)]
struct User {
    #[serde(default)]
    name: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Version {
    #[serde(rename = "azure-cli")]
    cli: String,
}

impl Subscription {
    /// Checks that `az` is there and new enough, and that the user is logged in. Without a wish it is the current subscription of `az`.
    ///
    /// # Errors
    /// [`BedError::Version`], and errors of `az`.
    pub fn find(az: &mut dyn Az, wanted: Option<&str>) -> Result<Self, BedError> {
        let Version { cli } = ask(az, &["version"])?;
        let mut parts = cli.split('.').map(|part| part.parse::<u32>().unwrap_or(0));
        let found = (parts.next().unwrap_or(0), parts.next().unwrap_or(0));
        if found < OLDEST {
            return Err(BedError::Version { found: cli, needed: format!("{}.{}", OLDEST.0, OLDEST.1) });
        }
        let mut words = vec!["account", "show"];
        words.extend(wanted.into_iter().flat_map(|wanted| ["--subscription", wanted]));
        let Account { id, name, user } = ask(az, &words)?;
        let user = user.and_then(|user| user.name).filter(|name| !name.is_empty());
        let user = user.map(|name| format!("{:x}", Sha256::digest(name.to_lowercase())));
        Ok(Self { id, name, named: wanted.map(str::to_owned), user })
    }

    /// A line of commands that a message proposes, with the option of this subscription where the bed file or the command line names it.
    pub fn command(&self, line: &str) -> String {
        command::in_subscription(line, self.named.as_deref())
    }

    /// The command that shows all beds, for a message.
    pub fn list(&self) -> String {
        self.command("netduel azure list")
    }

    /// The command that deletes a bed, for a message.
    pub fn down(&self, bed: &str) -> String {
        command::down(bed, self.named.as_deref())
    }

    /// Words of a command in this subscription.
    pub(super) fn within<'w>(&'w self, words: &[&'w str]) -> Vec<&'w str> {
        words.iter().copied().chain(["--subscription", self.id.as_str()]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::OLDEST;
    use crate::az::TRIED;

    #[test]
    fn guide_has_the_versions_of_az() {
        let guide = include_str!("../../../../docs/beds.md");
        let (major, minor) = OLDEST;
        let text = format!("`az` must be {major}.{minor} or newer; netduel was tried with {TRIED}.");
        assert!(guide.contains(&text), "docs/beds.md lacks this text: {text}");
        let installed = include_str!("../../../xtask/src/azure.rs");
        assert!(
            installed.contains(&format!("VERSION: &str = \"{TRIED}.")),
            "the tests install another version"
        );
    }
}
