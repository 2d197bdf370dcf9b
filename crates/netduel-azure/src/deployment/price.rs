//! The price of a size, from the Retail Prices API, which needs no authorization. It is asked through `az`, so that netduel has no HTTP client.
use netduel_model::bed::Bed;
use netduel_model::bed::money::Money;
use serde::Deserialize;

use crate::az::{Az, CallError, ask, or_default};

const API: &str = "https://prices.azure.com/api/retail/prices?api-version=2023-01-01-preview";
/// The currency of a bed without a budget.
const CURRENCY: &str = "USD";

/// A price and its date.
#[derive(Debug, Clone, PartialEq)]
pub struct DatedPrice {
    /// One VM for an hour.
    pub of_vm: Money,
    /// When it was looked up, seconds since 1970-01-01T00:00:00Z.
    pub read_unix_s: u64,
}

/// Answer of the price service.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// One VM for an hour.
    Price(Money),
    /// It has no such price.
    NoPrice,
    /// It cannot be reached, or not understood, with the error of the call.
    Unreachable(String),
}

/// The currency in which the prices of a bed are shown.
pub fn currency(bed: &Bed) -> &str {
    bed.budget.as_ref().map_or(CURRENCY, |budget| budget.currency.as_str())
}

#[derive(Debug, Deserialize)]
struct Prices {
    #[serde(rename = "Items", default, deserialize_with = "or_default")]
    items: Vec<Price>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Price {
    #[serde(rename = "retailPrice")]
    amount: f64,
    unit_of_measure: String,
    #[serde(rename = "type")]
    kind: String,
    product_name: String,
    sku_name: String,
    arm_sku_name: String,
    currency_code: String,
    #[serde(default)]
    is_primary_meter_region: bool,
}

/// Looks up the price of one VM of a bed for an hour.
///
/// # Errors
/// When the user interrupts, or `az` cannot be started.
pub fn of_vm(az: &mut dyn Az, bed: &Bed) -> Result<Answer, CallError> {
    let currency = currency(bed);
    // Region, size and currency were checked: they have plain letters and digits only.
    let url = format!(
        "{API}&currencyCode='{currency}'&$filter=serviceName eq 'Virtual Machines' and armRegionName eq '{}' and armSkuName eq '{}'",
        bed.region, bed.size.name
    );
    let answer =
        ask::<Prices>(az, &["rest", "--method", "get", "--skip-authorization-header", "--url", &url]);
    match answer {
        Ok(prices) => Ok(chosen(&prices.items, bed, currency).map_or(Answer::NoPrice, Answer::Price)),
        Err(error @ (CallError::Interrupted { .. } | CallError::Start { .. })) => Err(error),
        Err(error) => Ok(Answer::Unreachable(error.to_string())),
    }
}

/// The price of the operating system without a licence, by the hour.
fn chosen(prices: &[Price], bed: &Bed, currency: &str) -> Option<Money> {
    let fits = |price: &&Price| {
        price.kind == "Consumption"
            && price.unit_of_measure == "1 Hour"
            && price.arm_sku_name == bed.size.name
            && price.currency_code == currency
            && price.amount > 0.0
            && !price.product_name.contains("Windows")
            && !price.sku_name.contains("Low Priority")
            && price.sku_name.contains("Spot") == bed.is_spot
    };
    let fitting: Vec<&Price> = prices.iter().filter(fits).collect();
    let primary = fitting.iter().find(|price| price.is_primary_meter_region);
    let price = primary.or(fitting.first())?;
    Some(Money { amount: price.amount, currency: currency.to_owned() })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn bed(keys: &str) -> Bed {
        let text = format!("name = \"x\"\nregion = \"westeurope\"\nsize = \"Standard_D4s_v3\"\n{keys}\n");
        netduel_model::bed::parse(&text, "x.toml").unwrap_or_else(|errors| panic!("{errors}"))
    }

    fn prices() -> Vec<Price> {
        let price = |amount: f64, kind: &str, product: &str, sku: &str| {
            json!({
                "retailPrice": amount, "unitOfMeasure": "1 Hour", "type": kind, "productName": product, "skuName": sku,
                "armSkuName": "Standard_D4s_v3", "currencyCode": "USD", "isPrimaryMeterRegion": true,
            })
        };
        let product = "Virtual Machines DSv3 Series";
        let items = json!({ "Items": [
            price(1.0, "Reservation", product, "D4s v3"),
            price(0.4, "Consumption", "Virtual Machines DSv3 Series Windows", "D4s v3"),
            price(0.05, "Consumption", product, "D4s v3 Spot"),
            price(0.06, "Consumption", product, "D4s v3 Low Priority"),
            price(0.24, "Consumption", product, "D4s v3"),
        ], "NextPageLink": null });
        serde_json::from_value::<Prices>(items).unwrap().items
    }

    #[test]
    fn price_is_that_of_linux_by_the_hour() {
        let price = |keys: &str| chosen(&prices(), &bed(keys), "USD").map(|price| price.to_string());
        assert_eq!(price("").as_deref(), Some("0.24 USD"));
        assert_eq!(price("spot = true").as_deref(), Some("0.050 USD"));
    }

    #[test]
    fn other_currency_and_other_size_have_no_price() {
        assert_eq!(chosen(&prices(), &bed(""), "EUR"), None);
        let mut other = bed("");
        other.size = netduel_model::size::named("Standard_D2s_v3").unwrap();
        assert_eq!(chosen(&prices(), &other, "USD"), None);
    }
}
