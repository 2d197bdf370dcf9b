//! Published figures of others for the same machine size, each with its source and date.
use std::sync::LazyLock;

/// The table of packets per second.
const PACKETS: &str = include_str!("published/packets.csv");
/// Its columns, in order.
const COLUMNS: &str = "size,frame,sender_pps,receiver_pps,conditions,source,dated,read";

/// Published packets per second of a machine size.
#[derive(Debug, Clone, PartialEq)]
pub struct PublishedPackets {
    /// The size, as its provider names it.
    pub size: String,
    /// Frame size with check sequence, bytes.
    pub frame: u32,
    /// Sent rate, packets per second.
    pub sender_pps: f64,
    /// Received rate, packets per second.
    pub receiver_pps: f64,
    /// The measuring tool.
    pub conditions: String,
    /// Source and date, for example `Azure DPDK Performance Report of 2025-04`.
    pub source: String,
}

impl PublishedPackets {
    fn from_line(line: &str) -> Option<Self> {
        let fields: Vec<&str> = line.split(',').collect();
        let [size, frame, sender, receiver, conditions, source, dated, _read] = fields.as_slice() else {
            return None;
        };
        Some(Self {
            size: (*size).to_owned(),
            frame: frame.parse().ok()?,
            sender_pps: sender.parse().ok()?,
            receiver_pps: receiver.parse().ok()?,
            conditions: conditions.replace("; ", ", "),
            source: format!("{source} of {dated}"),
        })
    }
}

fn rows(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter(|line| !line.starts_with('#') && *line != COLUMNS)
}

/// The published rows of a machine size; upper and lower case are equal.
pub fn of_size(size: &str) -> Vec<&'static PublishedPackets> {
    static TABLE: LazyLock<Vec<PublishedPackets>> =
        LazyLock::new(|| rows(PACKETS).filter_map(PublishedPackets::from_line).collect());
    TABLE.iter().filter(|figure| figure.size.eq_ignore_ascii_case(size)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_read_and_found_by_its_size_in_any_case() {
        assert!(PACKETS.lines().any(|line| line == COLUMNS));
        let read: Vec<PublishedPackets> = rows(PACKETS).filter_map(PublishedPackets::from_line).collect();
        assert_eq!(rows(PACKETS).count(), read.len());
        let found = of_size("standard_e192IDS_v6");
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].frame, found[0].receiver_pps), (64, 44_208_919.0));
        assert_eq!(found[0].source, "Azure DPDK Performance Report of 2025-04");
        assert!(of_size("Standard_D2s_v5").is_empty());
    }
}
