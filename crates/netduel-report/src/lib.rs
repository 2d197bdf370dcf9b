//! Verdict table, HTML, Markdown, JSON and CSV from stored runs.
