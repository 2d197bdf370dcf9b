//! `netduel azure sizes`: the table of sizes by which beds are checked. Asks Azure nothing.
use netduel_model::bed::BedType;
use netduel_model::bed::layout::suits;
use netduel_model::size::{self, Size};
use netduel_model::units::human_bit_rate;
use netduel_model::word::word;
use netduel_report::json::bed::BedSizes;

use crate::console::{print, print_json};
use crate::exit::Failure;
use crate::program;

/// Below the table, where it has figures in doubt.
const DOUBT: &str = "?: the limit may be wrong, or holds for some VMs only; --json has the reason\n";

/// Runs the command. `kind`: only sizes that a bed of this type can have.
pub fn command(kind: Option<BedType>, json: bool) -> Result<(), Failure> {
    let fits = |size: &&Size| kind.is_none_or(|kind| suits(kind, size));
    let sizes: Vec<&Size> = size::table().iter().filter(fits).collect();
    if json {
        return print_json(&BedSizes::of(sizes, &program::origin()));
    }
    print(&table(&sizes))
}

fn table(sizes: &[&Size]) -> String {
    let row = |cells: [&str; 6]| {
        let [name, vcpus, nics, accelerated, limit, beds] = cells;
        format!("{name:<19}  {vcpus:>5}  {nics:>4}  {accelerated:<16}  {limit:>13}  {beds}\n")
    };
    let mut text = row(["size", "vCPUs", "NICs", "accelerated NICs", "limit", "types of beds"]);
    for size in sizes {
        let how = if size.can_be_synthetic() { "optional" } else { "required" };
        let rate = human_bit_rate(size.rate().0 as f64);
        let mark = if size.doubt.is_empty() { "" } else { " ?" };
        text += &row([
            &size.name,
            &size.vcpus.to_string(),
            &size.nics.to_string(),
            &format!("{}, {how}", size.accelerated_nics_max()),
            &format!("{rate}{mark}"),
            &beds(size),
        ]);
    }
    if sizes.iter().any(|size| !size.doubt.is_empty()) {
        text += DOUBT;
    }
    text
}

/// The types of beds that can have VMs of a size.
fn beds(size: &Size) -> String {
    let kinds: Vec<&str> = BedType::ALL.iter().filter(|kind| suits(**kind, size)).map(word).collect();
    match kinds.len() {
        0 => "none".to_owned(),
        count if count == BedType::ALL.len() => "all".to_owned(),
        _ => kinds.join(", "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_shows_nics_accelerated_networking_and_types_of_beds() {
        let named = ["Standard_DS4_v2", "Standard_D8s_v5", "Standard_D2s_v5", "Standard_D8s_v3"];
        let sizes: Vec<&Size> = named.into_iter().filter_map(size::named).collect();
        let text = table(&sizes);
        let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(lines[0].join(" "), "size vCPUs NICs accelerated NICs limit types of beds");
        assert_eq!(lines[1], ["Standard_DS4_v2", "8", "8", "8,", "optional", "6.00", "Gbit/s", "all"]);
        assert_eq!(lines[2][4..], ["required", "12.5", "Gbit/s", "dpdk,", "hot-add"]);
        assert_eq!(lines[3], ["Standard_D2s_v5", "2", "2", "1,", "required", "12.5", "Gbit/s", "none"]);
        assert_eq!(lines[4][5..], ["2.00", "Gbit/s", "?", "all"]);
        assert!(text.ends_with(DOUBT), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 110), "{text}");
        assert!(!table(&sizes[..3]).contains('?'));
    }
}
