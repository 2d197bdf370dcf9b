//! What the VMs of a bed cost during a run, by the time that its plan may take. An estimate: nothing is refused for it, and nothing is looked up.
use netduel_azure::deployment::DatedPrice;
use netduel_model::bed::{Bed, Layout};
use netduel_model::plan::ResolvedPlan;

use super::prices::{self, CheckPrice};
use super::shown::{HOUR_S, day};
use crate::expected_time;

/// The line of a checked plan on the cost of a run on a bed, with a line end.
pub fn line(bed: &Bed, plan: &ResolvedPlan) -> String {
    let price = prices::without_network(bed);
    let vms = Layout::of(bed).vms.len();
    format!("  cost       {}\n", words(price.as_ref(), vms, expected_time::range_s(plan)))
}

/// The cost of so many VMs with the price of one, for the shortest and the longest time of a run in seconds. All VMs of a bed run during it.
fn words(price: Option<&CheckPrice>, vms: usize, times_s: [f64; 2]) -> String {
    let Some(CheckPrice { dated: DatedPrice { of_vm, read_unix_s }, is_estimate }) = price else {
        return "price unknown; `netduel azure check BED.toml --price` looks it up".to_owned();
    };
    let of_all = of_vm.times(vms as f64);
    let [least, most] = times_s.map(|time_s| of_all.times(time_s / HOUR_S).to_string());
    let currency = format!(" {}", of_vm.currency);
    let least = least.trim_end_matches(currency.as_str());
    let range =
        if most.trim_end_matches(currency.as_str()) == least { most } else { format!("{least} to {most}") };
    let (list, day) = (if *is_estimate { "list " } else { "" }, day(*read_unix_s));
    format!(
        "about {range} for the VMs of the bed during the run, by the {list}price of {day}; without their creation and start, the time until they are \
         stopped or deleted, disks, addresses and traffic"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cost_of_a_run_is_a_range_with_the_source_of_the_price() {
        let price = |is_estimate: bool| {
            let of_vm = "0.24 USD".parse().expect("a price");
            // 2026-06-18T03:43:41Z.
            CheckPrice { dated: DatedPrice { of_vm, read_unix_s: 1_781_754_221 }, is_estimate }
        };
        let of = |price: Option<&CheckPrice>, minutes: [f64; 2]| {
            words(price, 2, minutes.map(|minutes| minutes * 60.0))
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
