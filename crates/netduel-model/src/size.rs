//! What machines of a cloud can send at most by their size, from a table that names the page of each figure and its date.
//!
//! A figure is a limit that the provider states, and neither guaranteed nor measured; who knows better says so in a plan.
use std::sync::LazyLock;

use crate::units::BitRate;

/// The table of Azure.
const AZURE: &str = include_str!("size/azure.csv");
/// The columns of a table, in order.
const COLUMNS: &str = "name,vcpus,nics,mbps,accelerated,isolated,page,dated,read,doubt";

/// The table of quotas of Azure, and its columns.
const AZURE_QUOTA: &str = include_str!("size/azure_quota.csv");
const QUOTA_COLUMNS: &str = "series,family,read";

/// A size of machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Size {
    /// As the provider names it.
    pub name: String,
    /// Processors that a guest of this size sees.
    pub vcpus: u32,
    /// Network cards at most.
    pub nics: u32,
    /// What all its network cards send together at most, Mbit/s.
    pub mbps: u32,
    /// Whether accelerated networking is `supported` or `required`.
    pub accelerated: String,
    /// Whether a machine of this size has its host to itself.
    pub is_isolated: bool,
    /// The page that says so.
    pub page: String,
    /// The page's own date, year-month-day; empty where it was not noted.
    pub dated: String,
    /// When the row was taken over, year-month-day.
    pub read: String,
    /// Why the figure may be wrong or for whom it holds; empty where nothing is known against it.
    pub doubt: String,
}

impl Size {
    /// What it sends at most.
    pub fn rate(&self) -> BitRate {
        BitRate(u64::from(self.mbps) * 1_000_000)
    }

    /// Whether accelerated networking can be off: only then there is an arm without it.
    pub fn can_be_synthetic(&self) -> bool {
        self.accelerated != "required"
    }

    /// NICs of a machine with accelerated networking at most: Azure allows it on one where a size has two vCPUs or fewer.
    pub fn accelerated_nics_max(&self) -> u32 {
        if self.vcpus > 2 { self.nics } else { self.nics.min(1) }
    }

    /// The name of its series, for example `dsv3-series`.
    pub fn series(&self) -> &str {
        self.page.rsplit('/').next().unwrap_or_default()
    }

    /// The name of the quota that counts its vCPUs; `None` where it is not known.
    pub fn quota_family(&self) -> Option<&'static str> {
        let rows = rows(AZURE_QUOTA, QUOTA_COLUMNS).filter_map(|line| line.split_once(','));
        let mut own = rows.filter(|(series, _)| !self.is_isolated && *series == self.series());
        own.next()?.1.split(',').next()
    }

    /// The page and its date, for example `dsv2-series of 2024-07-29`.
    pub fn source(&self) -> String {
        let page = self.series();
        match self.dated.as_str() {
            "" => format!("{page}, read {}", self.read),
            dated => format!("{page} of {dated}"),
        }
    }

    fn from_line(line: &str) -> Option<Self> {
        let fields: Vec<&str> = line.split(',').collect();
        let [name, vcpus, nics, mbps, accelerated, isolated, page, dated, read, doubt] = fields.as_slice()
        else {
            return None;
        };
        Some(Self {
            name: (*name).to_owned(),
            vcpus: vcpus.parse().ok()?,
            nics: nics.parse().ok()?,
            mbps: mbps.parse().ok()?,
            accelerated: (*accelerated).to_owned(),
            is_isolated: match *isolated {
                "isolated" => true,
                "" => false,
                _ => return None,
            },
            page: (*page).to_owned(),
            dated: (*dated).to_owned(),
            read: (*read).to_owned(),
            doubt: (*doubt).to_owned(),
        })
    }
}

/// Every size that is known, in the order of the table.
pub fn table() -> &'static [Size] {
    static TABLE: LazyLock<Vec<Size>> =
        LazyLock::new(|| rows(AZURE, COLUMNS).filter_map(Size::from_line).collect());
    &TABLE
}

/// The lines of a table below its columns.
fn rows<'t>(text: &'t str, columns: &'static str) -> impl Iterator<Item = &'t str> {
    text.lines().filter(move |line| !line.starts_with('#') && *line != columns)
}

/// The size of a name, whose letters may be of either case: metadata services and command lines spell them differently.
pub fn named(name: &str) -> Option<&'static Size> {
    table().iter().find(|size| size.name.eq_ignore_ascii_case(name))
}

/// How many sizes a message proposes.
const PROPOSED_MAX: usize = 4;

/// Sizes that fit, those nearest to a number of processors first; without sizes whose figure is in doubt.
pub fn proposed(vcpus: u32, fits: impl Fn(&Size) -> bool) -> Vec<&'static Size> {
    let mut fitting: Vec<&Size> = table().iter().filter(|size| size.doubt.is_empty() && fits(size)).collect();
    fitting.sort_by_key(|size| size.vcpus.abs_diff(vcpus));
    fitting.truncate(PROPOSED_MAX);
    fitting
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_row_of_the_table_is_read_and_makes_sense() {
        assert_eq!(rows(AZURE, COLUMNS).count(), table().len());
        assert!(AZURE.lines().any(|line| line == COLUMNS));
        let names: BTreeSet<&str> = table().iter().map(|size| size.name.as_str()).collect();
        assert_eq!(names.len(), table().len(), "a size stands there twice");
        let is_date = |text: &str| {
            let parts: Vec<Option<u32>> = text.split('-').map(|part| part.parse().ok()).collect();
            matches!(parts.as_slice(), [Some(2020..=2099), Some(1..=12), Some(1..=31)])
        };
        for size in table() {
            assert!(size.name.starts_with("Standard_") && (1..=512).contains(&size.vcpus), "{size:?}");
            assert!((1..=16).contains(&size.nics) && (100..=400_000).contains(&size.mbps), "{size:?}");
            assert!(matches!(size.accelerated.as_str(), "supported" | "required"), "{size:?}");
            assert!(is_date(&size.read) && (size.dated.is_empty() || is_date(&size.dated)), "{size:?}");
            assert!(size.page.split_once('/').is_some_and(|(_, page)| !page.is_empty()), "{size:?}");
        }
    }

    /// Within a series a larger machine never sends less, and one that sends no more than a machine of a quarter of its
    /// processors or of half of them below 16 is suspicious, unless the whole series stands at one floor.
    #[test]
    fn what_looks_wrong_is_marked() {
        for size in table() {
            let of_series = || table().iter().filter(|other| other.page == size.page);
            assert!(
                of_series().all(|other| other.vcpus > size.vcpus
                    || other.mbps <= size.mbps
                    || !size.doubt.is_empty())
            );
            let smaller_sends_as_much =
                of_series().any(|other| other.vcpus * 2 <= size.vcpus && other.mbps >= size.mbps);
            let is_slow = size.mbps < 12_500;
            assert!(!(smaller_sends_as_much && is_slow && size.doubt.is_empty()), "{size:?}");
        }
        assert!(!named("Standard_D8s_v3").unwrap().doubt.is_empty());
        assert!(named("Standard_DS4_v2").unwrap().doubt.is_empty());
    }

    #[test]
    fn size_is_found_in_any_case_with_its_source() {
        let size = named("standard_ds4_V2").unwrap();
        assert_eq!(
            (size.rate(), size.source()),
            (BitRate(6_000_000_000), "dsv2-series of 2024-07-29".to_owned())
        );
        assert_eq!(named("Standard_D4as_v5").unwrap().source(), "dasv5-series, read 2026-11-21");
        assert_eq!(named("Standard_B2s"), None);
    }

    #[test]
    fn proposed_sizes_fit_nearest_first() {
        assert!(!named("Standard_D8s_v5").unwrap().can_be_synthetic());
        for (vcpus, nics) in [(2, 2), (8, 3), (96, 4)] {
            let fits = |size: &Size| size.can_be_synthetic() && size.nics >= nics;
            let proposed = proposed(vcpus, fits);
            assert_eq!(proposed.len(), PROPOSED_MAX);
            assert!(proposed.iter().all(|size| fits(size)), "{proposed:?}");
            assert!(proposed.is_sorted_by_key(|size| size.vcpus.abs_diff(vcpus)), "{proposed:?}");
        }
        assert!(proposed(8, |size| size.nics >= 3).iter().all(|size| size.vcpus == 8));
        assert_eq!(proposed(8, |size| size.nics >= 99), Vec::<&Size>::new());
    }

    #[test]
    fn small_sizes_have_accelerated_networking_on_one_nic() {
        for (name, most) in [("Standard_DS1_v2", 1), ("Standard_D2s_v5", 1), ("Standard_D4s_v5", 2)] {
            assert_eq!(named(name).map(Size::accelerated_nics_max), Some(most), "{name}");
        }
    }

    #[test]
    fn quota_of_a_size_is_that_of_its_series_or_unknown() {
        for (name, family) in [
            ("Standard_DS4_v2", Some("standardDSv2Family")),
            ("Standard_D2s_v6", Some("StandardDsv6Family")),
            ("Standard_DS15_v2", None),
            ("Standard_D4ns_v6", None),
        ] {
            assert_eq!(named(name).unwrap().quota_family(), family, "{name}");
        }
        assert!(AZURE_QUOTA.lines().any(|line| line == QUOTA_COLUMNS));
        for row in rows(AZURE_QUOTA, QUOTA_COLUMNS) {
            assert_eq!(row.split(',').count(), QUOTA_COLUMNS.split(',').count(), "{row}");
            let family = row.split(',').nth(1);
            assert!(family.is_some_and(|family| family.ends_with("Family")), "{row}");
            assert!(table().iter().any(|size| size.quota_family() == family), "no size has {row}");
        }
    }

    #[test]
    fn isolated_sizes_are_marked() {
        let isolated: Vec<&str> =
            table().iter().filter(|size| size.is_isolated).map(|size| size.name.as_str()).collect();
        assert_eq!(isolated, ["Standard_DS15_v2", "Standard_E192ids_v6"]);
    }
}
