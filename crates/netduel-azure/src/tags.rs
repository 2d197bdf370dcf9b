//! The tags of a bed's resource group: the only record of a bed. Pure.
use std::collections::BTreeMap;

use netduel_model::bed::BedType;
use netduel_model::bed::money::Money;
use netduel_model::word::word;

/// The name of the bed. A group without it is not a bed.
pub const BED: &str = "netduel";
/// When the bed was created first, seconds since 1970-01-01T00:00:00Z.
const CREATED: &str = "netduel-created";
/// The price of all VMs for an hour, for example `1.20 USD`.
const PRICE: &str = "netduel-price";
/// The type of the bed.
const KIND: &str = "netduel-type";
/// When the price was looked up, seconds since 1970-01-01T00:00:00Z.
const PRICE_READ: &str = "netduel-price-read";
/// The time of the daily shutdown, UTC, or `off`.
const SHUTDOWN: &str = "netduel-shutdown";

/// What the tags of a group say.
#[derive(Debug, Clone, PartialEq)]
pub struct Tags {
    /// Name of the bed.
    pub bed: String,
    /// When the bed was created, seconds since 1970-01-01T00:00:00Z.
    pub created_unix_s: Option<u64>,
    /// The price of all VMs for an hour; `None` when it is unknown.
    pub price: Option<Money>,
    /// When the price was looked up, seconds since 1970-01-01T00:00:00Z.
    pub price_read_unix_s: Option<u64>,
    /// The time of the daily shutdown as the bed has it; `off` for none.
    pub shutdown: Option<String>,
    /// The type of the bed; `None` when an earlier version created it.
    pub kind: Option<BedType>,
}

impl Tags {
    /// Reads the tags of a group; `None` when it is not a bed. Other tags are not looked at.
    pub fn read(tags: &BTreeMap<String, String>) -> Option<Self> {
        Some(Self {
            bed: tags.get(BED)?.clone(),
            created_unix_s: tags.get(CREATED).and_then(|text| text.parse().ok()),
            price: tags.get(PRICE).and_then(|text| text.parse().ok()),
            price_read_unix_s: tags.get(PRICE_READ).and_then(|text| text.parse().ok()),
            shutdown: tags.get(SHUTDOWN).cloned(),
            kind: tags.get(KIND).and_then(|text| BedType::ALL.into_iter().find(|kind| word(kind) == text)),
        })
    }

    /// Names and values.
    pub fn pairs(&self) -> BTreeMap<&'static str, String> {
        let mut pairs = BTreeMap::from([(BED, self.bed.clone())]);
        pairs.extend(self.created_unix_s.map(|seconds| (CREATED, seconds.to_string())));
        pairs.extend(self.price.as_ref().map(|price| (PRICE, price.to_string())));
        pairs.extend(self.price_read_unix_s.map(|seconds| (PRICE_READ, seconds.to_string())));
        pairs.extend(self.shutdown.clone().map(|time| (SHUTDOWN, time)));
        pairs.extend(self.kind.map(|kind| (KIND, word(&kind).to_owned())));
        pairs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_read_as_they_were_written() {
        let tags = Tags {
            bed: "x".to_owned(),
            created_unix_s: Some(1_795_343_407),
            price: Some("1.25 EUR".parse().unwrap()),
            price_read_unix_s: Some(1_795_343_400),
            shutdown: Some("19:00".to_owned()),
            kind: Some(BedType::HotAdd),
        };
        let owned = |tags: &Tags| -> BTreeMap<String, String> {
            tags.pairs().into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
        };
        assert_eq!(Tags::read(&owned(&tags)), Some(tags));
        let bare = Tags {
            bed: "x".to_owned(),
            created_unix_s: None,
            price: None,
            price_read_unix_s: None,
            shutdown: None,
            kind: None,
        };
        assert_eq!(Tags::read(&owned(&bare)), Some(bare));
    }

    #[test]
    fn group_without_the_tag_is_no_bed() {
        let tags = BTreeMap::from([("owner".to_owned(), "x".to_owned())]);
        assert_eq!(Tags::read(&tags), None);
    }
}
