//! List prices of VMs from a table with its date: an estimate for the checks of a bed and of a plan on one, which use no network. It decides
//! nothing: a check warns of a bed that exceeds its budget by it, and only a price that was looked up lets `up` refuse or create one.
use netduel_model::bed::Bed;
use netduel_model::bed::money::Money;

use super::price::DatedPrice;

/// The table with its source: a row for each size, a column for each region.
const TABLE: &str = include_str!("list_price.csv");
/// The currency of the table.
const CURRENCY: &str = "USD";
/// When Azure gave these prices: 2026-06-18T03:43:41Z, in seconds since 1970-01-01T00:00:00Z.
const READ_UNIX_S: u64 = 1_781_754_221;

/// The list price of a VM of a bed, in US dollars whatever the currency of the budget is. `None` for a size or region that the table does not
/// have, and for Spot VMs, whose price changes from day to day.
pub fn of_vm(bed: &Bed) -> Option<DatedPrice> {
    if bed.is_spot {
        return None;
    }
    let mut rows = rows();
    let column = rows.next()?.split(',').position(|region| region == bed.region)?;
    let row = rows.find(|row| row.split(',').next() == Some(bed.size.name.as_str()))?;
    let amount: f64 = row.split(',').nth(column)?.parse().ok()?;
    let of_vm = Money { amount, currency: CURRENCY.to_owned() };
    Some(DatedPrice { of_vm, read_unix_s: READ_UNIX_S })
}

/// The names of the columns, and then the sizes.
fn rows() -> impl Iterator<Item = &'static str> {
    TABLE.lines().filter(|line| !line.starts_with('#'))
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use netduel_model::size;

    use super::*;

    fn price(region: &str, size: &str, keys: &str) -> Option<String> {
        let text =
            format!("name = \"x\"\nregion = \"{region}\"\nsize = \"{size}\"\ntype = \"hot-add\"\n{keys}\n");
        let bed = netduel_model::bed::parse(&text, "x.toml").unwrap_or_else(|errors| panic!("{errors}"));
        of_vm(&bed).map(|price| price.of_vm.exact())
    }

    #[test]
    fn price_is_that_of_size_and_region_or_unknown() {
        assert_eq!(price("westeurope", "Standard_DS4_v2", "").as_deref(), Some("0.544 USD"));
        assert_eq!(price("northeurope", "Standard_DS4_v2", "").as_deref(), Some("0.527 USD"));
        assert_eq!(price("westeurope", "Standard_D8s_v4", "budget = \"9 EUR\"").as_deref(), Some("0.46 USD"));
        assert_eq!(price("westeurope", "Standard_DS4_v2", "spot = true"), None);
        // The region does not have the size, the table does not have the series, and no region has the name.
        assert_eq!(price("austriaeast", "Standard_DS4_v2", ""), None);
        assert_eq!(price("westeurope", "Standard_D96as_v5", ""), None);
        for region in ["nowhere", "size"] {
            assert_eq!(price(region, "Standard_DS4_v2", ""), None);
        }
    }

    /// Within a series the price follows the processors. A price with a licence of Windows is more than half as high again.
    #[test]
    fn every_price_is_that_of_a_known_size_and_fits_its_series() {
        let mut rows = rows();
        let regions: Vec<&str> = rows.next().expect("names of columns").split(',').collect();
        assert_eq!(regions.iter().collect::<BTreeSet<_>>().len(), regions.len());
        let mut names = BTreeSet::new();
        let mut of_series: BTreeMap<(&str, &str), Vec<f64>> = BTreeMap::new();
        for row in rows {
            let cells: Vec<&str> = row.split(',').collect();
            assert_eq!(cells.len(), regions.len(), "{row}");
            let size = size::named(cells[0]).unwrap_or_else(|| panic!("{} is no known size", cells[0]));
            assert!(size.name == cells[0] && names.insert(cells[0]), "{row}");
            for (region, cell) in regions.iter().zip(&cells).skip(1).filter(|(_, cell)| !cell.is_empty()) {
                let price: f64 = cell.parse().unwrap_or_else(|_| panic!("{cell} in {region}: {row}"));
                let of_vcpu = price / f64::from(size.vcpus);
                of_series.entry((*region, size.page.as_str())).or_default().push(of_vcpu);
            }
        }
        for ((region, page), prices) in of_series {
            let least = prices.iter().copied().fold(f64::INFINITY, f64::min);
            let most = prices.iter().copied().fold(0.0, f64::max);
            let is_plausible = least > 0.01 && most < 0.5 && most < least * 1.15;
            assert!(is_plausible, "{region} {page}: {least} to {most}");
        }
    }
}
