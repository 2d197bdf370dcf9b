//! Values of options that have a grammar of their own: conditions of `--fail-if`, colours and ranges of ports.
use netduel_model::data_ports::DataPorts;
use netduel_model::publication::colour;
use netduel_report::document::accent::{Accent, CONTRAST_LEAST, PAPERS, contrast, hexadecimal};
use netduel_report::gate::Condition;

/// Parses a text as each of them. A value is shown as it was written.
pub(crate) fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match text.parse::<Condition>() {
        Ok(condition) => assert_eq!(condition.to_string().parse().as_ref(), Ok(&condition)),
        Err(error) => assert!(!error.to_string().is_empty(), "an invalid condition has a reason"),
    }
    if let Some(chosen) = colour(text) {
        assert_eq!(hexadecimal(chosen), text.to_ascii_lowercase());
        for (on, paper) in Accent::of(chosen).on.into_iter().zip(PAPERS) {
            assert!(contrast(on, paper) >= CONTRAST_LEAST, "{text}");
        }
    }
    if let Ok(ports) = text.parse::<DataPorts>() {
        assert_eq!(ports.to_string().parse().as_ref(), Ok(&ports));
    }
}
