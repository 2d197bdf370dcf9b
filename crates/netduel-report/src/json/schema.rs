//! The JSON Schemas of all documents, from their types. The table in this file is the only list of the documents.
use schemars::generate::SchemaSettings;
use serde_json::{Value, json};

use super::baseline::BaselineDocument;
use super::bed::{BedSizes, BedsDocument, CheckedBed};
use super::compare::CompareDocument;
use super::envelope::Document;
use super::error::ErrorDocument;
use super::history::HistoryDocument;
use super::inspect::InspectDocument;
use super::lab::LabsDocument;
use super::listing::{ChangedRun, Pairings, RemovedRuns, RunsDocument, RunsUsage, VerifiedRuns};
use super::plan::CheckedPlan;
use super::quick::{QuickDocument, QuickEvent};
use super::report::ReportDocument;
use super::serve::ServerEvent;

/// A type of document.
#[derive(Debug, Clone, Copy)]
pub struct DocumentType {
    /// Name, for example `netduel.report`.
    pub name: &'static str,
    /// Version.
    pub version: u32,
    /// The newest version that a release prints.
    pub released: u32,
    schema: fn() -> Value,
}

impl DocumentType {
    const fn of<D: Document>() -> Self {
        Self { name: D::NAME, version: D::VERSION, released: D::RELEASED, schema: schema::<D> }
    }

    /// Its JSON Schema (2020-12).
    pub fn schema(&self) -> Value {
        (self.schema)()
    }

    /// File name of its schema, for example `report.schema.json`.
    pub fn file_name(&self) -> String {
        format!("{}.schema.json", self.name.trim_start_matches("netduel."))
    }
}

/// All documents.
pub const DOCUMENTS: &[DocumentType] = &[
    DocumentType::of::<ReportDocument>(),
    DocumentType::of::<CompareDocument>(),
    DocumentType::of::<BaselineDocument>(),
    DocumentType::of::<HistoryDocument>(),
    DocumentType::of::<QuickDocument>(),
    DocumentType::of::<QuickEvent>(),
    DocumentType::of::<InspectDocument>(),
    DocumentType::of::<CheckedPlan>(),
    DocumentType::of::<RunsDocument>(),
    DocumentType::of::<RemovedRuns>(),
    DocumentType::of::<ChangedRun>(),
    DocumentType::of::<RunsUsage>(),
    DocumentType::of::<VerifiedRuns>(),
    DocumentType::of::<LabsDocument>(),
    DocumentType::of::<CheckedBed>(),
    DocumentType::of::<BedsDocument>(),
    DocumentType::of::<BedSizes>(),
    DocumentType::of::<Pairings>(),
    DocumentType::of::<ServerEvent>(),
    DocumentType::of::<ErrorDocument>(),
];

/// The schema of what is written: every key is present, so every key is required.
fn schema<D: Document>() -> Value {
    let generator = SchemaSettings::draft2020_12().for_serialize().into_generator();
    let mut schema = generator.into_root_schema_for::<D>().to_value();
    schema["title"] = D::NAME.into();
    schema["properties"]["document"] = with_const(&schema["properties"]["document"], &json!(D::NAME));
    schema["properties"]["version"] = with_const(&schema["properties"]["version"], &json!(D::VERSION));
    schema
}

fn with_const(property: &Value, value: &Value) -> Value {
    json!({ "description": property["description"], "const": value })
}
