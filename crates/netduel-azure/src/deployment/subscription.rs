//! The subscription of a bed, and the `az` that knows it.
use serde::Deserialize;

use super::error::BedError;
use crate::az::{Az, ask};

/// The oldest `az` that suffices: netduel was tried with 2.91, and releases before 2.50 (2023) are no longer maintained.
const OLDEST: (u32, u32) = (2, 50);

/// A subscription.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Subscription {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
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
        let subscription: Self = ask(az, &words)?;
        Ok(subscription)
    }

    /// Words of a command in this subscription.
    pub(super) fn within<'w>(&'w self, words: &[&'w str]) -> Vec<&'w str> {
        words.iter().copied().chain(["--subscription", self.id.as_str()]).collect()
    }
}
