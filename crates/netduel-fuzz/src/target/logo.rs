//! Logos: PNG files of an author, which a plan may name.
use netduel_report::png::{data_uri, without_metadata};

/// Takes the metadata out of an image. What remains is no longer, and has none.
pub(crate) fn run(bytes: &[u8]) {
    match without_metadata(bytes) {
        Ok(image) => {
            assert!(image.len() <= bytes.len());
            assert_eq!(without_metadata(&image).as_ref(), Ok(&image), "metadata remained");
            assert!(data_uri(bytes).is_ok_and(|uri| uri.is_ascii()));
        }
        Err(reason) => assert!(!reason.is_empty(), "a refused image has a reason"),
    }
}
