//! The tags of a bed's resource group: the only record of a bed. Pure.
use std::collections::BTreeMap;

use netduel_model::bed::money::Money;
use netduel_model::bed::shutdown::ShutdownTime;
use netduel_model::bed::{self, Bed, BedSpec, BedType, Sysctls};
use netduel_model::resource_name::is_name;
use netduel_model::word::word;
use serde::de::DeserializeOwned;

/// The name of the bed. A group without it is not a bed.
pub const BED: &str = "netduel";
/// When the bed was created first, seconds since 1970-01-01T00:00:00Z.
const CREATED: &str = "netduel-created";
/// Who created the bed: the SHA-256 of the name of the user.
const OWNER: &str = "netduel-owner";
/// The price of all VMs for an hour with all of its digits, for example `0.1104 USD`.
const PRICE: &str = "netduel-price";
/// The type of the bed.
const KIND: &str = "netduel-type";
/// When the price was looked up, seconds since 1970-01-01T00:00:00Z.
const PRICE_READ: &str = "netduel-price-read";
/// The SHA-256 of the template of the last `up`.
const TEMPLATE: &str = "netduel-template";
/// The time of the daily shutdown, UTC, or `off`.
const SHUTDOWN: &str = "netduel-shutdown";
/// The other keys of the bed's file, each as its file has it.
const SIZE: &str = "netduel-size";
const ZONE: &str = "netduel-zone";
const IMAGE: &str = "netduel-image";
const PLACEMENT: &str = "netduel-placement";
const FAMILIES: &str = "netduel-families";
const SUBNETS: &str = "netduel-subnets";
const SPOT: &str = "netduel-spot";
const BUDGET: &str = "netduel-budget";
const SYSCTLS: &str = "netduel-sysctls";
/// All names.
const NAMES: [&str; 17] = [
    BED, CREATED, OWNER, PRICE, KIND, PRICE_READ, TEMPLATE, SHUTDOWN, SIZE, ZONE, IMAGE, PLACEMENT, FAMILIES,
    SUBNETS, SPOT, BUDGET, SYSCTLS,
];

/// What the tags of a group say.
#[derive(Debug, Clone, PartialEq)]
pub struct Tags {
    /// Name of the bed.
    pub bed: String,
    /// When the bed was created, seconds since 1970-01-01T00:00:00Z.
    pub created_unix_s: Option<u64>,
    /// Who created the bed, as [`Subscription::user`](crate::deployment::Subscription::user); `None` when it is unknown, as for a bed of an
    /// earlier version or one that was deployed by other means.
    pub owner: Option<String>,
    /// The price of all VMs for an hour; `None` when it is unknown.
    pub price: Option<Money>,
    /// When the price was looked up, seconds since 1970-01-01T00:00:00Z.
    pub price_read_unix_s: Option<u64>,
    /// The SHA-256 of the template with which the bed was deployed last; `None` when an earlier version created it.
    pub template_sha256: Option<String>,
    /// The time of the daily shutdown as the bed has it, [`ShutdownTime::OFF`] for none; `None` when it is unknown.
    pub shutdown: Option<String>,
    /// The type of the bed; `None` when an earlier version created it.
    pub kind: Option<BedType>,
    /// The other keys of the bed's file. Those that have a field here, and all keys of a bed that an earlier version created, are `None`.
    pub keys: BedSpec,
}

impl Tags {
    /// Reads the tags of a group; `None` when it is not a bed. Other tags are not looked at. An empty value is none. Others with access to the
    /// subscription wrote them: a name is a word of the commands that messages propose, and of paths.
    pub fn read(tags: &BTreeMap<String, String>) -> Option<Self> {
        Some(Self {
            bed: tags.get(BED).filter(|name| is_name(name))?.clone(),
            created_unix_s: tags.get(CREATED).and_then(|text| text.parse().ok()),
            owner: tags.get(OWNER).filter(|text| is_sha256(text)).cloned(),
            price: tags.get(PRICE).and_then(|text| text.parse().ok()),
            price_read_unix_s: tags.get(PRICE_READ).and_then(|text| text.parse().ok()),
            template_sha256: tags.get(TEMPLATE).filter(|text| is_sha256(text)).cloned(),
            shutdown: tags.get(SHUTDOWN).filter(|text| is_shutdown(text)).cloned(),
            kind: tags.get(KIND).and_then(|text| of_word(text)),
            keys: BedSpec {
                size: tags.get(SIZE).cloned(),
                zone: tags.get(ZONE).and_then(|text| text.parse().ok()),
                image: tags.get(IMAGE).and_then(|text| of_word(text)),
                placement: tags.get(PLACEMENT).and_then(|text| of_word(text)),
                families: tags.get(FAMILIES).and_then(|text| of_word(text)),
                subnets: tags.get(SUBNETS).and_then(|text| text.parse().ok()),
                spot: tags.get(SPOT).and_then(|text| text.parse().ok()),
                budget: tags.get(BUDGET).filter(|text| !text.is_empty()).cloned(),
                sysctls: tags.get(SYSCTLS).filter(|line| !line.is_empty()).map(|line| Sysctls::of_line(line)),
                ..BedSpec::default()
            },
        })
    }

    /// Those of a bed that was created at this time; its owner, its price and the hash of its template are unknown.
    pub fn of(bed: &Bed, created_unix_s: u64) -> Self {
        let spec = bed.spec();
        Self {
            bed: bed.name.clone(),
            created_unix_s: Some(created_unix_s),
            owner: None,
            price: None,
            price_read_unix_s: None,
            template_sha256: None,
            shutdown: spec.shutdown,
            kind: spec.kind,
            keys: BedSpec { name: None, region: None, kind: None, shutdown: None, ..spec },
        }
    }

    /// The bed as its file had it, without the keys of its user; the region is that of the group. `None` when a key is missing, as in a bed of
    /// an earlier version, or a tag was changed to something that no bed has.
    pub fn file(&self, region: &str) -> Option<Bed> {
        let spec = BedSpec {
            name: Some(self.bed.clone()),
            region: Some(region.to_owned()),
            kind: self.kind,
            shutdown: self.shutdown.clone(),
            ..self.keys.clone()
        };
        // A missing key would become a default, which may differ from the value of the bed.
        bed::check(&spec, "the tags").ok().filter(|bed| bed.spec() == spec)
    }

    /// Whether another user created the bed than this one, [`Subscription::user`](crate::deployment::Subscription::user). Not where one of
    /// the two is unknown.
    pub fn is_of_other(&self, user: Option<&str>) -> bool {
        self.owner.as_deref().zip(user).is_some_and(|(owner, user)| owner != user)
    }

    /// The time of the daily shutdown; `None` without one.
    pub fn shutdown_time(&self) -> Option<ShutdownTime> {
        self.shutdown.as_deref()?.parse().ok()
    }

    /// The most that the VMs may cost until their shutdown; `None` for no limit.
    pub fn budget(&self) -> Option<Money> {
        self.keys.budget.as_deref()?.parse().ok()
    }

    /// Names and values.
    pub fn pairs(&self) -> BTreeMap<&'static str, String> {
        let mut pairs = BTreeMap::from([(BED, self.bed.clone())]);
        pairs.extend(self.created_unix_s.map(|seconds| (CREATED, seconds.to_string())));
        pairs.extend(self.owner.clone().map(|owner| (OWNER, owner)));
        pairs.extend(self.price.as_ref().map(|price| (PRICE, price.exact())));
        pairs.extend(self.price_read_unix_s.map(|seconds| (PRICE_READ, seconds.to_string())));
        pairs.extend(self.template_sha256.clone().map(|hash| (TEMPLATE, hash)));
        pairs.extend(self.shutdown.clone().map(|time| (SHUTDOWN, time)));
        pairs.extend(self.kind.map(|kind| (KIND, word(&kind).to_owned())));
        let BedSpec { size, zone, image, placement, families, subnets, spot, budget, sysctls, .. } =
            &self.keys;
        pairs.extend(size.clone().map(|size| (SIZE, size)));
        pairs.extend(zone.map(|zone| (ZONE, zone.to_string())));
        pairs.extend(image.map(|image| (IMAGE, word(&image).to_owned())));
        pairs.extend(placement.map(|placement| (PLACEMENT, word(&placement).to_owned())));
        pairs.extend(families.map(|families| (FAMILIES, word(&families).to_owned())));
        pairs.extend(subnets.map(|subnets| (SUBNETS, subnets.to_string())));
        pairs.extend(spot.map(|spot| (SPOT, spot.to_string())));
        pairs.extend(budget.clone().map(|budget| (BUDGET, budget)));
        pairs.extend(sysctls.as_ref().map(|sysctls| (SYSCTLS, sysctls.line())));
        pairs
    }

    /// The names of tags of netduel that a group has with a value and these have not: those of keys that the file of the bed has no more, and of
    /// a price that is not known any more.
    pub fn dropped_from(&self, group: &BTreeMap<String, String>) -> Vec<&'static str> {
        let own = self.pairs();
        let has_value = |name: &&str| group.get(*name).is_some_and(|value| !value.is_empty());
        NAMES.into_iter().filter(|name| has_value(name) && !own.contains_key(name)).collect()
    }
}

fn is_shutdown(text: &str) -> bool {
    text == ShutdownTime::OFF || text.parse::<ShutdownTime>().is_ok()
}

fn is_sha256(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// The value that a bed file writes as this word.
fn of_word<T: DeserializeOwned>(text: &str) -> Option<T> {
    serde_json::from_value(text.into()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owned(tags: &Tags) -> BTreeMap<String, String> {
        tags.pairs().into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }

    #[test]
    fn tags_are_read_as_they_were_written() {
        let tags = Tags {
            bed: "x".to_owned(),
            created_unix_s: Some(1_795_343_407),
            owner: Some("0b".repeat(32)),
            price: Some("1.25 EUR".parse().unwrap()),
            price_read_unix_s: Some(1_795_343_400),
            template_sha256: Some("0a".repeat(32)),
            shutdown: Some("19:00".to_owned()),
            kind: Some(BedType::HotAdd),
            keys: BedSpec { zone: Some(2), spot: Some(true), ..BedSpec::default() },
        };
        assert_eq!(Tags::read(&owned(&tags)), Some(tags));
        let bare = Tags {
            bed: "x".to_owned(),
            created_unix_s: None,
            owner: None,
            price: None,
            price_read_unix_s: None,
            template_sha256: None,
            shutdown: None,
            kind: None,
            keys: BedSpec::default(),
        };
        assert_eq!(bare.file("westeurope"), None);
        assert_eq!(Tags::read(&owned(&bare)), Some(bare.clone()));
        // What a user wrote into the tag is no hash.
        let changed = Tags { template_sha256: Some("\u{1b}[2J".to_owned()), ..bare.clone() };
        assert_eq!(Tags::read(&owned(&changed)), Some(bare));
    }

    #[test]
    fn tags_give_back_the_file_of_the_bed_unless_one_is_missing_or_changed() {
        let keys = "zone = 1\nimage = \"debian-12\"\nplacement = \"proximity-group\"\nfamilies = \"dual-stack\"\nsubnets = 2\nspot = true\n\
                    shutdown = \"off\"\nbudget = \"0.0276 EUR\"\n\
                    sysctls = { \"net.core.somaxconn\" = \"4096\", \"net.ipv4.tcp_rmem\" = \"4096 131072 6291456\" }";
        for (kind, keys) in BedType::ALL.into_iter().flat_map(|kind| [(kind, ""), (kind, keys)]) {
            let text = format!(
                "name = \"x\"\nregion = \"westeurope\"\nsize = \"Standard_DS4_v2\"\ntype = \"{}\"\n{keys}\n",
                word(&kind)
            );
            let bed = bed::parse(&text, "x.toml").unwrap_or_else(|errors| panic!("{errors}"));
            let pairs = owned(&Tags::of(&bed, 7));
            assert_eq!(Tags::read(&pairs).and_then(|tags| tags.file("westeurope")), Some(bed), "{pairs:?}");
            assert!(pairs.values().all(|value| value.len() <= 256), "Azure has no longer values: {pairs:?}");
            // The bed without these is one, too.
            let others = [CREATED, BED, ZONE, BUDGET, SYSCTLS];
            for missing in pairs.keys().filter(|name| !others.contains(&name.as_str())) {
                for changed in [None, Some("x y")] {
                    let mut tags = pairs.clone();
                    tags.remove(missing);
                    tags.extend(changed.map(|value| (missing.clone(), value.to_owned())));
                    let file = Tags::read(&tags).and_then(|tags| tags.file("westeurope"));
                    assert_eq!(file, None, "{missing}: {changed:?}");
                }
            }
        }
    }

    #[test]
    fn tags_that_a_bed_has_no_more_are_named_and_have_no_value_when_they_are_empty() {
        let bed = |keys: &str| {
            let text = format!("name = \"x\"\nregion = \"westeurope\"\nsize = \"Standard_DS4_v2\"\n{keys}");
            bed::parse(&text, "x.toml").unwrap_or_else(|errors| panic!("{errors}"))
        };
        let keys = "zone = 1\nbudget = \"20 EUR\"\nsysctls = { \"net.core.somaxconn\" = \"1\" }\n";
        let rich = Tags {
            price: Some("1.25 EUR".parse().unwrap()),
            price_read_unix_s: Some(7),
            template_sha256: Some("0a".repeat(32)),
            ..Tags::of(&bed(keys), 7)
        };
        let mut group = owned(&rich);
        assert!(group.keys().all(|name| NAMES.contains(&name.as_str())), "{group:?}");
        group.insert("owner".to_owned(), "me".to_owned());
        assert_eq!(rich.dropped_from(&group), [""; 0]);
        let plain = Tags::of(&bed(""), 7);
        let dropped = plain.dropped_from(&group);
        assert_eq!(dropped, [PRICE, PRICE_READ, TEMPLATE, ZONE, BUDGET, SYSCTLS]);
        for name in dropped {
            group.insert(name.to_owned(), String::new());
        }
        assert_eq!(Tags::read(&group), Some(plain.clone()));
        assert_eq!(plain.dropped_from(&group), [""; 0]);
    }

    #[test]
    fn shutdown_is_unknown_where_the_tag_is_no_time_of_day() {
        for (text, is_known) in [("19:00", true), ("off", true), ("", false), ("7 pm", false)] {
            let pairs =
                [(BED, "x"), (SHUTDOWN, text)].map(|(name, value)| (name.to_owned(), value.to_owned()));
            let tags = Tags::read(&BTreeMap::from(pairs)).expect("a bed");
            assert_eq!(tags.shutdown.as_deref(), Some(text).filter(|_| is_known), "{text:?}");
        }
    }

    #[test]
    fn price_keeps_its_decimals() {
        for text in ["0.0552 USD", "0.0041 USD"] {
            let tags = Tags {
                bed: "x".to_owned(),
                created_unix_s: None,
                owner: None,
                price: Some(text.parse().unwrap()),
                price_read_unix_s: None,
                template_sha256: None,
                shutdown: None,
                kind: None,
                keys: BedSpec::default(),
            };
            assert_eq!(tags.pairs().get(PRICE).map(String::as_str), Some(text));
        }
    }

    #[test]
    fn bed_is_of_another_user_only_where_both_are_known() {
        let of = |owner: &str| {
            let pairs = [(BED, "x"), (OWNER, owner)].map(|(name, value)| (name.to_owned(), value.to_owned()));
            Tags::read(&BTreeMap::from(pairs)).expect("a bed")
        };
        let [mine, other] = ["0a", "0b"].map(|digits| digits.repeat(32));
        assert!(of(&other).is_of_other(Some(&mine)) && !of(&mine).is_of_other(Some(&mine)));
        assert!(!of(&other).is_of_other(None) && !of("").is_of_other(Some(&mine)));
        assert!(!of("a name").is_of_other(Some(&mine)));
    }

    #[test]
    fn group_without_the_tag_is_no_bed() {
        let tags = BTreeMap::from([("owner".to_owned(), "x".to_owned())]);
        assert_eq!(Tags::read(&tags), None);
        for name in ["", "x;reboot", "$(reboot)", "../x", "--yes", "X"] {
            let tags = BTreeMap::from([(BED.to_owned(), name.to_owned())]);
            assert_eq!(Tags::read(&tags), None, "{name}");
        }
    }
}
