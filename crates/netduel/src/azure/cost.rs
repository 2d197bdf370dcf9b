//! What the VMs of a bed cost during a run, by the time that its plan may take. An estimate: nothing is refused for it, and nothing is looked up.
use netduel_model::bed::{Bed, Layout};
use netduel_model::plan::ResolvedPlan;
use netduel_report::json::bed::{BedCost, Price};

use super::prices::{self, CheckPrice};
use super::shown::day;
use crate::expected_time;

/// The cost of a run of a plan on a bed, for the shortest and the longest time of the run. All VMs of the bed run during it.
pub fn of_run(bed: &Bed, plan: &ResolvedPlan) -> BedCost {
    let price = prices::without_network(bed);
    let of_vm = price.as_ref().map(CheckPrice::of_vm);
    BedCost::of(Layout::of(bed).vms.len(), expected_time::range_s(plan), of_vm.as_ref())
}

/// The line of a checked plan on the cost of a run on a bed, with a line end.
pub fn line(cost: &BedCost) -> String {
    format!("  cost       {}\n", words(cost))
}

fn words(cost: &BedCost) -> String {
    let (Some(least), Some(most), Some(read_unix_ms)) =
        (&cost.cost_min, &cost.cost_max, cost.price_read_unix_ms)
    else {
        return "price unknown; `netduel azure check BED.toml --price` looks it up".to_owned();
    };
    let range = range(least, most);
    let (list, day) = (if cost.price_is_estimate { "list " } else { "" }, day(read_unix_ms / 1000));
    format!(
        "about {range} for the VMs of the bed during the run, by the {list}price of {day}; without their creation and start, the time until they are \
         stopped or deleted, disks, addresses and traffic"
    )
}

/// Both amounts as they are shown, with the currency behind them; one where they are the same.
fn range(least: &Price, most: &Price) -> String {
    let currency = format!(" {}", most.currency);
    let [least, most] = [least, most].map(|price| price.money().to_string());
    let least = least.trim_end_matches(currency.as_str());
    if most.trim_end_matches(currency.as_str()) == least { most } else { format!("{least} to {most}") }
}

#[cfg(test)]
mod tests {
    use netduel_azure::deployment::DatedPrice;

    use super::*;

    #[test]
    fn cost_of_a_run_is_a_range_with_the_source_of_the_price() {
        let price = |is_estimate: bool| {
            let of_vm = "0.24 USD".parse().expect("a price");
            // 2026-06-18T03:43:41Z.
            CheckPrice { dated: DatedPrice { of_vm, read_unix_s: 1_781_754_221 }, is_estimate }
        };
        let of = |price: Option<&CheckPrice>, minutes: [f64; 2]| {
            let of_vm = price.map(CheckPrice::of_vm);
            words(&BedCost::of(2, minutes.map(|minutes| minutes * 60.0), of_vm.as_ref()))
        };
        let estimate = of(Some(&price(true)), [30.0, 90.0]);
        let start = "about 0.24 to 0.72 USD for the VMs of the bed during the run, by the list price of 2026-06-18; without their creation";
        assert!(estimate.starts_with(start), "{estimate}");
        let looked_up = of(Some(&price(false)), [60.0, 60.0]);
        let start = "about 0.48 USD for the VMs of the bed during the run, by the price of 2026-06-18; ";
        assert!(looked_up.starts_with(start), "{looked_up}");
        let unknown = of(None, [30.0, 90.0]);
        assert!(unknown.starts_with("price unknown; "), "{unknown}");
    }
}
