//! Whether a bed keeps its budget: what its VMs cost from their creation or start until their shutdown. Pure.
use super::error::BedError;
use crate::tags::Tags;

/// Hours for which the budget of a bed without a shutdown is checked.
const DAY_H: f64 = 24.0;

/// Checks the budget of a bed whose VMs run from `unix_s` on, seconds since 1970-01-01T00:00:00Z: all of them until their shutdown, and for a day
/// without one. `size` and `region` are those of the bed, for the message.
///
/// # Errors
/// [`BedError::Budget`], and [`BedError::PriceUnknown`] for a bed with a budget that has no price in its currency.
pub fn check(tags: &Tags, size: &str, region: &str, unix_s: u64) -> Result<(), BedError> {
    let Some(budget) = tags.budget() else { return Ok(()) };
    let Some(price) = tags.price.as_ref().filter(|price| price.currency == budget.currency) else {
        return Err(BedError::PriceUnknown { size: size.to_owned(), region: region.to_owned() });
    };
    let hours = tags.shutdown_time().map(|time| f64::from(time.minutes_left(unix_s)) / 60.0);
    let cost = price.times(hours.unwrap_or(DAY_H));
    if cost.amount > budget.amount {
        return Err(BedError::Budget { cost, hours, price: price.clone(), budget });
    }
    Ok(())
}
