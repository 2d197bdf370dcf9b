//! Prices that were looked up, with their dates, in the user's folder for data: `check` shows them without a network, or else list prices, and
//! looks one up with `--price`; `up` uses those that were looked up when the service cannot be reached.
use std::collections::BTreeMap;
use std::path::PathBuf;

use netduel_azure::deployment::price::{self, Answer};
use netduel_azure::deployment::{DatedPrice, currency, list_price};
use netduel_model::bed::Bed;
use netduel_model::bed::money::Money;
use netduel_report::json::bed::VmPrice;
use serde::{Deserialize, Serialize};

use super::session::{az, failed, now_unix_s};
use crate::console::tell;
use crate::exit::Failure;
use crate::input_file;
use crate::output_file::{self, Readers};
use crate::program;

/// Longest file, bytes: a price has a hundred.
const LEN_MAX: usize = 1 << 20;

/// A price in the file.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Entry {
    amount: f64,
    currency: String,
    read_unix_s: u64,
}

fn file() -> Result<PathBuf, Failure> {
    Ok(program::beds_folder()?.join("prices.json"))
}

/// The name of a price in the file.
fn key(bed: &Bed) -> String {
    let kind = if bed.is_spot { "spot" } else { "regular" };
    format!("{} {} {kind} {}", bed.region, bed.size.name, currency(bed))
}

/// All prices; none when there is no file. A file that cannot be read is as good as none: a price is looked up again.
fn read() -> BTreeMap<String, Entry> {
    let text = file().ok().and_then(|path| input_file::read_text(&path, LEN_MAX).ok());
    text.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default()
}

/// The price of a VM of a bed, as it was looked up last.
pub fn known(bed: &Bed) -> Option<DatedPrice> {
    let entry = read().remove(&key(bed)).filter(|entry| entry.amount > 0.0)?;
    let of_vm = Money { amount: entry.amount, currency: entry.currency };
    Some(DatedPrice { of_vm, read_unix_s: entry.read_unix_s })
}

/// The price of a VM that a check shows.
#[derive(Debug, Clone, PartialEq)]
pub struct CheckPrice {
    /// The price with its date.
    pub dated: DatedPrice,
    /// Whether it is a list price of netduel's own table, and was not looked up.
    pub is_estimate: bool,
}

impl CheckPrice {
    /// The same for a document.
    pub fn of_vm(&self) -> VmPrice<'_> {
        let DatedPrice { of_vm, read_unix_s } = &self.dated;
        VmPrice { of_vm, read_unix_s: *read_unix_s, is_estimate: self.is_estimate }
    }
}

/// The price of a VM of a bed as far as it is known without a network: as it was looked up last, or else the list price.
pub fn without_network(bed: &Bed) -> Option<CheckPrice> {
    let last = known(bed).map(|dated| CheckPrice { dated, is_estimate: false });
    last.or_else(|| list_price::of_vm(bed).map(|dated| CheckPrice { dated, is_estimate: true }))
}

/// Looks up the price of a VM of a bed and keeps it; that [without a network](without_network) when the service cannot be reached.
pub fn look_up(bed: &Bed) -> Result<Option<CheckPrice>, Failure> {
    let doing = format!("look up the price of the bed {}", bed.name);
    let answer = price::of_vm(&mut az()?, bed).map_err(|error| failed(&doing, error.into()))?;
    match answer {
        Answer::Price(of_vm) => {
            let dated = DatedPrice { of_vm, read_unix_s: now_unix_s() };
            keep(bed, &dated);
            Ok(Some(CheckPrice { dated, is_estimate: false }))
        }
        Answer::NoPrice => {
            tell(&format!("warning: Azure has no price of {} in {}", bed.size.name, bed.region));
            Ok(None)
        }
        Answer::Unreachable(reason) => {
            let (size, region) = (&bed.size.name, &bed.region);
            tell(&format!("warning: the price of {size} in {region} cannot be looked up now: {reason}"));
            Ok(without_network(bed))
        }
    }
}

/// Keeps the price of a VM of a bed. Without a place for it nothing is kept: the next command looks it up.
pub fn keep(bed: &Bed, price: &DatedPrice) {
    let mut all = read();
    let DatedPrice { of_vm: Money { amount, currency }, read_unix_s } = price.clone();
    all.insert(key(bed), Entry { amount, currency, read_unix_s });
    let (Ok(path), Ok(text)) = (file(), serde_json::to_string_pretty(&all)) else { return };
    let folder = path.parent().map(output_file::create_folder);
    if folder.is_some_and(|made| made.is_ok()) {
        // See above.
        drop(output_file::replace(&path, text.as_bytes(), Readers::Owner));
    }
}
