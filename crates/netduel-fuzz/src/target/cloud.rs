//! Documents of a cloud's metadata service, the bodies of its responses.
use netduel_host::metadata::of_document;
use netduel_model::snapshot::{Cloud, Provider};

/// Longest text of a fact, characters.
const TEXT_LEN_MAX: usize = 256;

/// Reads a document as that of each service that has one. What a snapshot says of it is short, controls no terminal and can be stored.
pub(crate) fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    for provider in [Provider::Azure, Provider::Aws] {
        let cloud = of_document(provider, text).expect("its service has documents");
        let stored = serde_json::to_value(&cloud).expect("facts can be stored");
        let facts = stored.as_object().expect("an object").values().filter_map(serde_json::Value::as_str);
        for fact in facts {
            assert!(fact.chars().count() <= TEXT_LEN_MAX && !fact.contains(char::is_control), "{fact:?}");
        }
        let reread: Cloud = serde_json::from_value(stored).expect("stored facts can be read");
        assert_eq!(reread, cloud);
    }
}
