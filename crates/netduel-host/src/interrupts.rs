//! Interrupts from `/proc/interrupts` (kernel/irq/proc.c). Pure: text in, differences out.
use std::collections::{BTreeMap, HashMap};

/// A larger apparent increase between two readings is a reset: the device released its interrupt and requested it again. The counters
/// have 32 bits.
const PLAUSIBLE_MAX: u32 = 1 << 31;

/// Lines that count errors of the host, not interrupts of a core.
const NOT_BY_CORE: [&str; 2] = ["ERR", "MIS"];

struct Row<'a> {
    label: &'a str,
    name: String,
    /// One for each core of the header, or a single one for the whole host.
    counts: Vec<u32>,
}

/// Core numbers of the header: offline cores have no column.
fn header(text: &str) -> Vec<usize> {
    let names = text.lines().next().unwrap_or_default().split_ascii_whitespace();
    // They become indices of a table, so that they must be small.
    names.filter_map(|name| Some(name.strip_prefix("CPU")?.parse::<u16>().ok()?.into())).collect()
}

fn rows(text: &str, columns: usize) -> impl Iterator<Item = Row<'_>> {
    text.lines().skip(1).filter_map(move |line| {
        let (label, rest) = line.split_once(':')?;
        let label = label.trim();
        let mut counts = Vec::with_capacity(columns);
        let mut tail = rest;
        while counts.len() < columns {
            let trimmed = tail.trim_start();
            let end = trimmed.find(char::is_whitespace).unwrap_or(trimmed.len());
            let Ok(count) = trimmed[..end].parse::<u64>() else { break };
            // The sums of `ERR` are wider on some machines; only their low half is compared.
            counts.push(count as u32);
            tail = &trimmed[end..];
        }
        (!counts.is_empty()).then(|| Row { label, name: name(label, tail), counts })
    })
}

/// The name of a line: that of the device behind a numbered interrupt, the description behind a lettered one.
fn name(label: &str, tail: &str) -> String {
    let tail = tail.trim();
    if !label.starts_with(|first: char| first.is_ascii_digit()) {
        return if tail.is_empty() { label.to_owned() } else { tail.to_owned() };
    }
    // `PCI-MSIX-0000:00:04.0   1-edge      virtio3-rx`: two spaces stand before the names of the devices, and a chip's
    // name may hold single ones (`Hyper-V PCIe MSI`).
    let device = tail.rsplit_once("  ").map(|(_, device)| device.trim());
    match device {
        Some(device) if !device.is_empty() && !is_trigger(device) => device.to_owned(),
        _ => format!("irq {label}"),
    }
}

/// Whether this is the column before the name: the line of a removed device ends with it.
fn is_trigger(text: &str) -> bool {
    let ends = ["-edge", "-level", "-fasteoi", "-Edge", "-Level"];
    ends.iter().any(|end| text.ends_with(end)) || matches!(text, "Edge" | "Level")
}

/// A numbered interrupt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Interrupt {
    pub name: String,
    /// Its counts since boot, on the online cores.
    pub total: u64,
}

/// The numbered interrupts.
pub(crate) type Table = BTreeMap<u32, Interrupt>;

/// The numbered interrupts of a text.
pub(crate) fn table(text: &str) -> Table {
    let row = |row: Row<'_>| {
        let total = row.counts.iter().map(|count| u64::from(*count)).sum();
        Some((row.label.parse().ok()?, Interrupt { name: row.name, total }))
    };
    rows(text, header(text).len()).filter_map(row).collect()
}

fn grown(first: u32, last: u32) -> u64 {
    let difference = last.wrapping_sub(first);
    u64::from(if difference > PLAUSIBLE_MAX { last } else { difference })
}

/// Interrupts by name, unchanged ones left out, and by core.
pub(crate) fn differences(before: &str, after: &str) -> (BTreeMap<String, u64>, Vec<u64>) {
    let (cores_before, cores) = (header(before), header(after));
    let mut by_name = BTreeMap::new();
    let mut by_core = vec![0; cores.iter().max().map_or(0, |core| core + 1)];
    if cores_before.is_empty() {
        return (by_name, Vec::new());
    }
    let first: HashMap<&str, Row<'_>> =
        rows(before, cores_before.len()).map(|row| (row.label, row)).collect();
    // Column of a core of the second reading in the first one.
    let places: Vec<Option<usize>> =
        cores.iter().map(|core| cores_before.iter().position(|other| other == core)).collect();
    for row in rows(after, cores.len()) {
        // The same number under another name is another device's, and counts from 0.
        let old = first.get(row.label).filter(|old| old.name == row.name);
        let host_wide = row.counts.len() < cores.len() || NOT_BY_CORE.contains(&row.label);
        let mut total = 0;
        for (column, last) in row.counts.iter().enumerate() {
            // A core that came online in between shows its counts from before it went offline.
            let Some(place) = (if host_wide { Some(column) } else { places[column] }) else { continue };
            let started = old.and_then(|old| old.counts.get(place)).copied().unwrap_or(0);
            let change = grown(started, *last);
            total += change;
            if !host_wide {
                by_core[cores[column]] += change;
            }
        }
        if total > 0 {
            *by_name.entry(row.name).or_insert(0) += total;
        }
    }
    (by_name, by_core)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEFORE: &str = "           CPU0       CPU2       
 24:          5          0  IO-APIC   5-edge      ACPI:Ged
 28:  4294967290          0  PCI-MSIX-0000:00:01.0   0-edge      virtio0-input.0
 31:       1000          0  Hyper-V PCIe MSI 4194304-edge      mlx5_comp0@pci:abcd:00:02.0
 33:       5000          0  Hyper-V PCIe MSI 4194306-edge      mlx5_comp2@pci:abcd:00:02.0
HYP:         79         39   Hypervisor callback interrupts
ERR:          0
MIS:          0
";
    const AFTER: &str = "           CPU0       CPU2       
 24:          5          0  IO-APIC   5-edge      ACPI:Ged
 28:          4          1  PCI-MSIX-0000:00:01.0   0-edge      virtio0-input.0
 31:       1005          7  Hyper-V PCIe MSI 4194304-edge      mlx5_comp0@pci:abcd:00:02.0
 32:          3          0  Hyper-V PCIe MSI 4194305-edge      mlx5_comp1@pci:abcd:00:02.0
 33:         20          0  Hyper-V PCIe MSI 4194306-edge      mlx5_comp2@pci:abcd:00:02.0
HYP:         80         39   Hypervisor callback interrupts
ERR:          2
MIS:          0
";

    #[test]
    fn interrupts_are_counted_by_device_and_by_core_number() {
        let (by_name, by_core) = differences(BEFORE, AFTER);
        let seen: Vec<(&str, u64)> = by_name.iter().map(|(name, count)| (name.as_str(), *count)).collect();
        assert_eq!(
            seen,
            [
                ("ERR", 2),
                ("Hypervisor callback interrupts", 1),
                // A new line counts from 0.
                ("mlx5_comp1@pci:abcd:00:02.0", 3),
                // Reset.
                ("mlx5_comp2@pci:abcd:00:02.0", 20),
                ("mlx5_comp0@pci:abcd:00:02.0", 12),
                // Wrapped at 32 bits.
                ("virtio0-input.0", 11),
            ]
            .into_iter()
            .collect::<BTreeMap<_, _>>()
            .into_iter()
            .collect::<Vec<_>>()
        );
        assert_eq!(by_core, [1 + 10 + 5 + 3 + 20, 0, 8]);
    }

    /// An index of a table must not come from a text unchecked: the program would end, or take all memory.
    #[test]
    fn core_number_that_no_machine_has_is_no_core() {
        for core in ["18446744073709551615", "18446744073709551614", "99999999999999"] {
            let of = |count| format!("  CPU0 CPU{core}\n 24: {count} {count} IO-APIC 5-edge  eth0\n");
            let (by_name, by_core) = differences(&of(1), &of(3));
            assert_eq!((by_name["eth0"], by_core), (2, vec![2]), "{core}");
        }
    }

    #[test]
    fn interrupt_line_of_a_removed_device_is_named_by_its_number() {
        let text =
            "     CPU0\n 24:   1  IO-APIC   5-edge      \n 27:   1     GICv3  30 Level     arch_timer\n";
        let grown =
            "     CPU0\n 24:   2  IO-APIC   5-edge      \n 27:   3     GICv3  30 Level     arch_timer\n";
        let (by_name, _) = differences(text, grown);
        assert_eq!(by_name, BTreeMap::from([("irq 24".to_owned(), 1), ("arch_timer".to_owned(), 2)]));
    }

    #[test]
    fn interrupts_of_one_name_are_summed() {
        let text = "     CPU0\n 1:  1  GIC  1-edge      nic\n 2:  1  GIC  2-edge      nic\n";
        let grown = "     CPU0\n 1:  2  GIC  1-edge      nic\n 2:  4  GIC  2-edge      nic\n";
        assert_eq!(differences(text, grown).0, BTreeMap::from([("nic".to_owned(), 4)]));
    }

    #[test]
    fn missing_file_has_no_values() {
        assert_eq!(differences("", AFTER), (BTreeMap::new(), Vec::new()));
        assert_eq!(differences(BEFORE, ""), (BTreeMap::new(), Vec::new()));
    }
}
