//! The trials of a run as Apache Parquet files, for notebooks and data bases: one row for each trial and metric, and one for each interval of a
//! series. The columns of both files are in docs/exports.md.
//!
//! Every column is optional, so that a missing value is null. Only with the feature `parquet`.
use std::sync::Arc;

use netduel_model::run::Run;
use netduel_model::sample::{Flow, RoundTripReport};
use netduel_model::trial::Trial;
use netduel_model::word::word;
use netduel_model::workload::Role;
use parquet::basic::Compression;
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;

use crate::analysis::{Bound, in_schedule_order};
use crate::rows::{self, Row, block_number};
use crate::words;

/// A column with its values.
enum Values {
    Text(Vec<Option<ByteArray>>),
    /// Integers, with the annotation of their type.
    Integer(&'static str, Vec<Option<i64>>),
    Double(Vec<Option<f64>>),
    Boolean(Vec<Option<bool>>),
}

struct Column {
    name: &'static str,
    values: Values,
}

impl Column {
    fn text<T: AsRef<str>>(name: &'static str, values: impl Iterator<Item = Option<T>>) -> Self {
        let values = values.map(|value| value.map(|text| ByteArray::from(text.as_ref()))).collect();
        Self { name, values: Values::Text(values) }
    }

    fn integer(name: &'static str, values: impl Iterator<Item = Option<u64>>) -> Self {
        let values = values.map(|value| value.map(integer)).collect();
        Self { name, values: Values::Integer("", values) }
    }

    /// The definition of the column.
    fn definition(&self) -> String {
        let name = self.name;
        match &self.values {
            Values::Text(_) => format!("OPTIONAL BYTE_ARRAY {name} (STRING);"),
            Values::Integer(annotation, _) => format!("OPTIONAL INT64 {name} {annotation};"),
            Values::Double(_) => format!("OPTIONAL DOUBLE {name};"),
            Values::Boolean(_) => format!("OPTIONAL BOOLEAN {name};"),
        }
    }
}

/// The rows of every trial: what identifies it.
fn slot_columns(run: &Run, trials: &[&Trial]) -> Vec<Column> {
    let each = || trials.iter();
    let started = each().map(|trial| Some(integer(trial.started_unix_ms))).collect();
    vec![
        Column::text("plan", each().map(|_| Some(run.header.plan.name.clone()))),
        Column::text("run", each().map(|_| Some(run.header.id.to_string()))),
        Column { name: "started", values: Values::Integer("(TIMESTAMP(MILLIS,true))", started) },
        Column::integer("block", each().map(|trial| Some(block_number(trial)))),
        Column::integer("position", each().map(|trial| Some(u64::from(trial.slot.position)))),
        Column::integer("attempt", each().map(|trial| Some(u64::from(trial.attempt)))),
        Column::text("arm", each().map(|trial| Some(trial.slot.arm.to_string()))),
        Column::text("workload", each().map(|trial| Some(trial.slot.workload.to_string()))),
        Column {
            name: "valid",
            values: Values::Boolean(each().map(|trial| Some(trial.is_valid())).collect()),
        },
    ]
}

/// A file with a row for each counting trial and metric; a trial without a figure has one row with its reason.
pub fn trials(run: &Run) -> Result<Vec<u8>, ParquetError> {
    let listed: Vec<_> = rows::of_run(run).collect();
    let rows: Vec<(&Trial, &Row)> =
        listed.iter().flat_map(|(trial, rows)| rows.iter().map(move |row| (&**trial, row))).collect();
    let trials: Vec<&Trial> = rows.iter().map(|(trial, _)| *trial).collect();
    let each = || rows.iter().map(|(_, row)| *row);
    let known = |text: &'static str| Some(text).filter(|text| !text.is_empty());
    let settings = words::settings_of_command_line(&run.header);
    let mut columns = slot_columns(run, &trials);
    columns.extend([
        Column::text("metric", each().map(|row| known(row.metric))),
        Column::text("unit", each().map(|row| known(row.unit))),
        Column { name: "value", values: Values::Double(each().map(|row| row.value).collect()) },
        Column::text("reason", trials.iter().map(|trial| trial.validity.reason())),
        Column::text("bound", each().map(|row| row.bound.map(Bound::key))),
        Column::text("doubt", each().map(|row| row.doubt.clone())),
        Column::text("settings", trials.iter().map(|_| settings.as_deref())),
    ]);
    file("trial", columns)
}

/// An interval of a series.
#[derive(Default)]
struct Interval {
    role: Option<Role>,
    kind: &'static str,
    end_ns: u64,
    length_ns: Option<u64>,
    bytes: Option<u64>,
    messages: Option<u64>,
    round_trips: Option<u64>,
    p50_ns: Option<u64>,
    max_ns: Option<u64>,
}

/// A file with a row for each interval that an end of a counting trial recorded: bytes that it sent and received, and its round trips.
pub fn series(run: &Run) -> Result<Vec<u8>, ParquetError> {
    let listed = in_schedule_order(run);
    let rows: Vec<(&Trial, Interval)> = listed
        .iter()
        .flat_map(|trial| intervals(trial).into_iter().map(move |row| (&**trial, row)))
        .collect();
    let trials: Vec<&Trial> = rows.iter().map(|(trial, _)| *trial).collect();
    let each = || rows.iter().map(|(_, row)| row);
    let mut columns = slot_columns(run, &trials);
    columns.extend([
        Column::text("role", each().map(|row| row.role.as_ref().map(word))),
        Column::text("kind", each().map(|row| Some(row.kind))),
        Column::integer("end_ns", each().map(|row| Some(row.end_ns))),
        Column::integer("length_ns", each().map(|row| row.length_ns)),
        Column::integer("bytes", each().map(|row| row.bytes)),
        Column::integer("messages", each().map(|row| row.messages)),
        Column::integer("round_trips", each().map(|row| row.round_trips)),
        Column::integer("p50_ns", each().map(|row| row.p50_ns)),
        Column::integer("max_ns", each().map(|row| row.max_ns)),
    ]);
    file("interval", columns)
}

fn intervals(trial: &Trial) -> Vec<Interval> {
    let mut rows = Vec::new();
    for role in [Role::Client, Role::Server] {
        let Some(end) = trial.end(role) else { continue };
        let mut flow = |kind, flow: &Option<Flow>| {
            let samples = flow.iter().flat_map(|flow| &flow.series);
            rows.extend(samples.map(|sample| Interval {
                role: Some(role),
                kind,
                end_ns: sample.end_ns,
                length_ns: Some(sample.length_ns),
                bytes: Some(sample.bytes),
                messages: Some(sample.messages),
                ..Interval::default()
            }));
        };
        flow("sent", &end.report.sent);
        flow("received", &end.report.received);
        let round_trips = end.report.round_trips.as_ref().map(|report: &RoundTripReport| &report.series);
        rows.extend(round_trips.into_iter().flatten().map(|sample| Interval {
            role: Some(role),
            kind: "round-trips",
            end_ns: sample.end_ns,
            round_trips: Some(sample.count),
            // An interval without a round trip has no median.
            p50_ns: (sample.count > 0).then_some(sample.p50_ns),
            max_ns: (sample.count > 0).then_some(sample.max_ns),
            ..Interval::default()
        }));
    }
    rows
}

fn file(name: &str, columns: Vec<Column>) -> Result<Vec<u8>, ParquetError> {
    let definitions: String = columns.iter().map(Column::definition).collect();
    let schema = Arc::new(parse_message_type(&format!("message {name} {{ {definitions} }}"))?);
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_created_by(netduel_model::PROGRAM.to_owned())
        .build();
    let mut writer = SerializedFileWriter::new(Vec::new(), schema, Arc::new(properties))?;
    let mut group = writer.next_row_group()?;
    for column in columns {
        let Some(mut writer) = group.next_column()? else { break };
        match column.values {
            Values::Text(values) => {
                let (values, levels) = present(values);
                writer.typed::<ByteArrayType>().write_batch(&values, Some(&levels), None)?;
            }
            Values::Integer(_, values) => {
                let (values, levels) = present(values);
                writer.typed::<Int64Type>().write_batch(&values, Some(&levels), None)?;
            }
            Values::Double(values) => {
                let (values, levels) = present(values);
                writer.typed::<DoubleType>().write_batch(&values, Some(&levels), None)?;
            }
            Values::Boolean(values) => {
                let (values, levels) = present(values);
                writer.typed::<BoolType>().write_batch(&values, Some(&levels), None)?;
            }
        }
        writer.close()?;
    }
    group.close()?;
    writer.into_inner()
}

/// The present values, and for each row whether it has one: the definition levels of an optional column.
fn present<T>(values: Vec<Option<T>>) -> (Vec<T>, Vec<i16>) {
    let levels = values.iter().map(|value| i16::from(value.is_some())).collect();
    (values.into_iter().flatten().collect(), levels)
}

/// An integer of a column, which has a sign. A changed run file may have a larger number.
fn integer(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}
