//! Amounts of money: a budget as it is written, and prices. Pure.
use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The amounts that can be written are above 0 and at most this large, so that an amount has no rounding.
const AMOUNT_MAX: f64 = 1_000_000.0;
/// Decimals of a shown amount, and the most for a small one: no price is below a millionth.
const DECIMALS: f64 = 2.0;
const DECIMALS_MAX: f64 = 8.0;

/// An amount in a currency.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Money {
    /// The amount, in whole units of the currency.
    pub amount: f64,
    /// The currency by its three letters (ISO 4217), for example `EUR`.
    pub currency: String,
}

/// A text is no amount of money.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is no amount of money: {allowed}", allowed = Money::allowed())]
pub struct MoneyError {
    /// The text.
    pub text: String,
}

impl Money {
    /// The amounts that can be written, for people.
    pub(crate) fn range() -> String {
        format!("above 0, at most {AMOUNT_MAX}")
    }

    /// What can be written.
    pub(crate) fn allowed() -> String {
        let range = Self::range();
        format!("write a number {range}, and a currency of three letters, for example \"20 EUR\"")
    }

    /// Whether a text is a currency.
    pub fn is_currency(text: &str) -> bool {
        text.len() == 3 && text.bytes().all(|byte| byte.is_ascii_uppercase())
    }

    /// The same price for several, or for several hours.
    #[must_use]
    pub fn times(&self, count: f64) -> Self {
        Self { amount: self.amount * count, currency: self.currency.clone() }
    }

    /// The sum; `None` for two currencies.
    pub fn plus(&self, other: &Self) -> Option<Self> {
        let sum = || Self { amount: self.amount + other.amount, currency: self.currency.clone() };
        (self.currency == other.currency).then(sum)
    }

    /// The amount with all of its digits, for a text that is read again; `Display` rounds.
    pub fn exact(&self) -> String {
        format!("{} {}", self.amount, self.currency)
    }
}

impl FromStr for Money {
    type Err = MoneyError;

    fn from_str(text: &str) -> Result<Self, MoneyError> {
        let error = || MoneyError { text: text.to_owned() };
        let (amount, currency) = text.trim().split_once(' ').ok_or_else(error)?;
        let is_plain = amount.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
        let amount: f64 = amount.parse().map_err(|_| error())?;
        let currency = currency.trim_start();
        if is_plain && amount > 0.0 && amount <= AMOUNT_MAX && Self::is_currency(currency) {
            Ok(Self { amount, currency: currency.to_owned() })
        } else {
            Err(error())
        }
    }
}

/// Two decimals, and below 1 two significant digits: prices of small VMs are some hundredths an hour.
impl fmt::Display for Money {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let size = self.amount.abs();
        let decimals = if size > 0.0 && size < 1.0 {
            (1.0 - size.log10().floor()).clamp(DECIMALS, DECIMALS_MAX)
        } else {
            DECIMALS
        };
        write!(f, "{:.*} {}", decimals as usize, self.amount, self.currency)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amount_has_a_number_and_a_currency() {
        for (text, shown) in [("20 EUR", "20.00 EUR"), ("0.5 USD", "0.50 USD"), ("7.25  GBP", "7.25 GBP")] {
            assert_eq!(text.parse::<Money>().map(|money| money.to_string()), Ok(shown.to_owned()));
        }
        for text in [
            "20",
            "EUR",
            "20EUR",
            "-1 EUR",
            "0 EUR",
            "1e9 EUR",
            "nan EUR",
            "inf EUR",
            "20 eur",
            "20 EURO",
            "20 €",
            "1000001 EUR",
        ] {
            let error = text.parse::<Money>().expect_err(text).to_string();
            assert!(error.contains("above 0, at most 1000000, and a currency"), "{error}");
        }
        assert_eq!("0.25 EUR".parse::<Money>().unwrap().times(8.0).to_string(), "2.00 EUR");
    }

    #[test]
    fn amount_below_one_has_two_significant_digits() {
        for (text, shown) in [
            ("0.0552 USD", "0.055 USD"),
            ("0.0041 USD", "0.0041 USD"),
            ("0.25 USD", "0.25 USD"),
            ("0.999 USD", "1.00 USD"),
        ] {
            assert_eq!(text.parse::<Money>().unwrap().to_string(), shown);
        }
        assert_eq!("5 USD".parse::<Money>().unwrap().times(0.0).to_string(), "0.00 USD");
        assert_eq!("0.0552 USD".parse::<Money>().unwrap().times(-1.0).to_string(), "-0.055 USD");
    }

    #[test]
    fn amounts_of_two_currencies_have_no_sum() {
        let money = |text: &str| text.parse::<Money>().unwrap();
        assert_eq!(money("1.5 USD").plus(&money("0.25 USD")), Some(money("1.75 USD")));
        assert_eq!(money("1.5 USD").plus(&money("0.25 EUR")), None);
    }

    #[test]
    fn exact_amount_is_read_as_it_was() {
        for amount in [0.0552, 0.002, 1e-9, 0.1 * 3.0, 20.0, 999_999.99] {
            let money = Money { amount, currency: "USD".to_owned() };
            assert_eq!(money.exact().parse::<Money>(), Ok(money));
        }
    }
}
