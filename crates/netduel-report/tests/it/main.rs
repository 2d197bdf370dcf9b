//! Reports of made-up runs in every format: words, figures, hostile texts, and the page in a real browser.
mod browser;
mod builder;
mod figures;
mod formats;
mod hostile;
mod nonsense;
