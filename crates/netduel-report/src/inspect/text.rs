//! An inspection for a terminal: the facts of each host, then the findings.
use super::Inspection;
use crate::{document, terminal};

/// The inspection as text of `width` columns; `colour` adds ANSI colours.
pub fn text(inspection: &Inspection, width: usize, colour: bool) -> String {
    terminal::sections(&document::hosts::inspected(inspection), width, colour)
}
