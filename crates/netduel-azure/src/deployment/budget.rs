//! Whether a bed keeps its budget: what its VMs cost from their creation or start until their shutdown. Pure.
use super::error::BedError;
use crate::tags::Tags;

/// Hours for which the budget of a bed without a shutdown is checked.
const DAY_H: f64 = 24.0;

/// Checks the budget of a bed whose VMs run from `unix_s` on, seconds since 1970-01-01T00:00:00Z: all of them until their shutdown, and for a day
/// without one. A shutdown in less than `lead_min` minutes does not count. `size` and `region` are those of the bed, for the message.
///
/// # Errors
/// [`BedError::Budget`], and [`BedError::PriceUnknown`] for a bed with a budget that has no price in its currency.
pub fn check(tags: &Tags, size: &str, region: &str, unix_s: u64, lead_min: u64) -> Result<(), BedError> {
    let Some(budget) = tags.budget() else { return Ok(()) };
    let Some(price) = tags.price.as_ref().filter(|price| price.currency == budget.currency) else {
        return Err(BedError::PriceUnknown { size: size.to_owned(), region: region.to_owned() });
    };
    let hours = tags.shutdown_time().map(|time| f64::from(time.minutes_left(unix_s, lead_min)) / 60.0);
    let cost = price.times(hours.unwrap_or(DAY_H));
    if cost.amount > budget.amount {
        return Err(BedError::Budget { cost, hours, price: price.clone(), budget });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use netduel_model::bed::shutdown::ShutdownTime;

    use super::*;
    use crate::deployment::inventory;

    #[test]
    fn shutdown_in_half_an_hour_ends_vms_that_are_started_and_may_miss_new_ones() {
        let pairs = [
            ("netduel", "x"),
            ("netduel-price", "2 EUR"),
            ("netduel-budget", "2 EUR"),
            ("netduel-shutdown", "11:00"),
        ];
        let pairs: BTreeMap<String, String> =
            pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let tags = Tags::read(&pairs).expect("a bed");
        // 2026-11-22T10:30:07Z.
        let keeps = |lead_min: u64| check(&tags, "size", "region", 1_795_343_407, lead_min).is_ok();
        assert_eq!([inventory::LIMIT_MIN, ShutdownTime::CREATION_MIN].map(keeps), [true, false]);
    }
}
