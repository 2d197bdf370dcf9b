//! What others published about paths like those under test, from tables that name each source: publications, figures by machine size and
//! path, and packet rates. Pure data; nothing is compared here.
use std::sync::LazyLock;

use crate::metric::Metric;
use crate::plan::spec::PathKind;
use crate::workload::{Family, Workload, WorkloadType};

/// The sources.
const PUBLICATIONS: &str = include_str!("published/publications.csv");
/// Their columns, in order.
const PUBLICATION_COLUMNS: &str = "id,title,dated,read";
/// The figures.
const FIGURES: &str = include_str!("published/figures.csv");
/// Their columns, in order.
const FIGURE_COLUMNS: &str =
    "publication,size,path,workload,streams,family,measure,low,high,unit,comparable,conditions";
/// The packet rates.
const PACKETS: &str = include_str!("published/packets.csv");
/// Their columns, in order.
const PACKET_COLUMNS: &str = "publication,size,frame,sender_pps,receiver_pps,conditions";

/// A source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Publication {
    /// As a plan names it.
    pub id: String,
    /// Its title.
    pub title: String,
    /// Its own date: year, year-month or year-month-day; empty where it has none.
    pub dated: String,
    /// When its figures were taken over, year-month-day.
    pub read: String,
}

/// What a figure is of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Measure {
    /// A metric of netduel, in its unit.
    Metric(Metric),
    /// Something else.
    Other {
        /// In words.
        title: String,
        /// Its unit.
        unit: String,
    },
}

/// A published figure.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    /// The source.
    pub publication: &'static Publication,
    /// The machine size, as its provider names it.
    pub size: String,
    /// The path that was measured.
    pub path: PathKind,
    /// The kind of traffic.
    pub workload: WorkloadType,
    /// TCP connections, where the source states them.
    pub streams: Option<u32>,
    /// IP version, where the source states it.
    pub family: Option<Family>,
    /// What was measured.
    pub measure: Measure,
    /// The lowest value.
    pub low: f64,
    /// The highest value.
    pub high: f64,
    /// Whether the source defines it as the metric is defined.
    pub is_comparable: bool,
    /// Tool and conditions.
    pub conditions: String,
}

/// Published packets per second of a machine size.
#[derive(Debug, Clone, PartialEq)]
pub struct Packets {
    /// The source.
    pub publication: &'static Publication,
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
}

impl Publication {
    /// Title and date, for example `Azure DPDK Performance Report of 2025-04`.
    pub fn source(&self) -> String {
        match self.dated.as_str() {
            "" => format!("{}, read {}", self.title, self.read),
            dated => format!("{} of {dated}", self.title),
        }
    }

    fn from_line(line: &str) -> Option<Self> {
        let fields: Vec<String> = line.split(',').map(str::to_owned).collect();
        let [id, title, dated, read] = <[String; 4]>::try_from(fields).ok()?;
        Some(Self { id, title, dated, read })
    }
}

impl Figure {
    fn from_line(line: &str) -> Option<Self> {
        let fields: Vec<&str> = line.split(',').collect();
        let &[
            publication,
            size,
            path,
            workload,
            streams,
            family,
            measure,
            low,
            high,
            unit,
            comparable,
            conditions,
        ] = fields.as_slice()
        else {
            return None;
        };
        let streams = if streams.is_empty() { None } else { Some(streams.parse().ok()?) };
        let family = if family.is_empty() { None } else { Some(word(family)?) };
        let measure = match word::<Metric>(measure) {
            Some(metric) if unit.is_empty() => Measure::Metric(metric),
            None if !unit.is_empty() => Measure::Other { title: measure.to_owned(), unit: unit.to_owned() },
            _ => return None,
        };
        let path = match path {
            "accelerated" => PathKind::Vf,
            "synthetic" => PathKind::Synthetic,
            _ => return None,
        };
        let (low, high): (f64, f64) = (low.parse().ok()?, high.parse().ok()?);
        let is_comparable = match comparable {
            "yes" => true,
            "no" => false,
            _ => return None,
        };
        (low > 0.0 && low <= high).then(|| {
            Some(Self {
                publication: publication_named(publication)?,
                size: size.to_owned(),
                path,
                workload: word(workload)?,
                streams,
                family,
                measure,
                low,
                high,
                is_comparable,
                conditions: spelled(conditions),
            })
        })?
    }

    /// Whether it is about a machine size; upper and lower case are equal.
    pub fn is_of(&self, size: &str) -> bool {
        self.size.eq_ignore_ascii_case(size)
    }

    /// Whether a workload has the traffic that it is about.
    pub fn has_traffic_of(&self, workload: &Workload) -> bool {
        workload.traffic.kind() == self.workload
            && self.family.is_none_or(|family| family == workload.family)
            && self.streams.is_none_or(|streams| workload.traffic.facts().concurrency == streams)
    }
}

impl Packets {
    fn from_line(line: &str) -> Option<Self> {
        let fields: Vec<&str> = line.split(',').collect();
        let &[publication, size, frame, sender, receiver, conditions] = fields.as_slice() else {
            return None;
        };
        Some(Self {
            publication: publication_named(publication)?,
            size: size.to_owned(),
            frame: frame.parse().ok()?,
            sender_pps: sender.parse().ok()?,
            receiver_pps: receiver.parse().ok()?,
            conditions: spelled(conditions),
        })
    }
}

/// A list in a table has semicolons, because its columns have commas.
fn spelled(conditions: &str) -> String {
    conditions.replace("; ", ", ")
}

/// A word of an enumeration.
fn word<T: serde::de::DeserializeOwned>(text: &str) -> Option<T> {
    serde_json::from_value(text.into()).ok()
}

fn rows(text: &'static str, columns: &'static str) -> impl Iterator<Item = &'static str> {
    text.lines().filter(move |line| !line.starts_with('#') && *line != columns)
}

/// Every source.
pub fn publications() -> &'static [Publication] {
    static TABLE: LazyLock<Vec<Publication>> = LazyLock::new(|| {
        rows(PUBLICATIONS, PUBLICATION_COLUMNS).filter_map(Publication::from_line).collect()
    });
    &TABLE
}

/// The source of a name.
pub fn publication_named(id: &str) -> Option<&'static Publication> {
    publications().iter().find(|publication| publication.id == id)
}

/// Every figure.
pub fn figures() -> &'static [Figure] {
    static TABLE: LazyLock<Vec<Figure>> =
        LazyLock::new(|| rows(FIGURES, FIGURE_COLUMNS).filter_map(Figure::from_line).collect());
    &TABLE
}

/// Every packet rate.
pub fn packets() -> &'static [Packets] {
    static TABLE: LazyLock<Vec<Packets>> =
        LazyLock::new(|| rows(PACKETS, PACKET_COLUMNS).filter_map(Packets::from_line).collect());
    &TABLE
}

/// The packet rates of a machine size; upper and lower case are equal.
pub fn packets_of_size(size: &str) -> Vec<&'static Packets> {
    packets().iter().filter(|rate| rate.size.eq_ignore_ascii_case(size)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_of_the_tables_is_read() {
        for (text, columns, read) in [
            (PUBLICATIONS, PUBLICATION_COLUMNS, publications().len()),
            (FIGURES, FIGURE_COLUMNS, figures().len()),
            (PACKETS, PACKET_COLUMNS, packets().len()),
        ] {
            assert!(text.lines().any(|line| line == columns), "{columns}");
            assert_eq!(rows(text, columns).count(), read, "{columns}");
        }
    }

    #[test]
    fn every_publication_has_figures_and_an_id_of_its_own() {
        for (index, publication) in publications().iter().enumerate() {
            let id = &publication.id;
            let has_figures = figures().iter().any(|figure| figure.publication == publication);
            assert!(has_figures || packets().iter().any(|rate| rate.publication == publication), "{id}");
            assert!(publications()[..index].iter().all(|other| other.id != *id), "{id}");
        }
    }

    #[test]
    fn sizes_are_those_of_the_table_of_sizes_or_no_cloud_s() {
        for figure in figures() {
            let is_known = crate::size::named(&figure.size).is_some();
            assert_eq!(is_known, figure.size.starts_with("Standard_"), "{}", figure.size);
        }
    }

    #[test]
    fn streams_of_a_figure_are_compared_with_those_of_every_workload() {
        let plan = include_str!("../../../plans/latency-under-load.toml");
        let plan = crate::plan::parse(plan, "latency-under-load.toml").unwrap();
        let workload = &plan.arms[0].workloads[0];
        let of = |streams| Figure {
            workload: WorkloadType::LoadedLatency,
            family: None,
            streams: Some(streams),
            ..figures()[0].clone()
        };
        assert!(of(16).has_traffic_of(workload));
        assert!(!of(8).has_traffic_of(workload));
    }

    #[test]
    fn packet_rate_is_found_by_its_size_in_any_case() {
        let found = packets_of_size("standard_e192IDS_v6");
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].frame, found[0].receiver_pps), (68, 44_208_919.0));
        assert_eq!(found[0].publication.source(), "Azure DPDK Performance Report of 2025-04");
        assert!(packets_of_size("Standard_D2s_v5").is_empty());
    }

    #[test]
    fn source_without_a_date_names_when_it_was_read() {
        let undated = publication_named("azure-latency-test").unwrap();
        assert_eq!(undated.source(), "Azure accelerated networking put to the test, read 2026-11-21");
    }
}
