//! PNG images as a part of a page: structure checked, metadata removed. Nothing is decoded.
use crate::document::cover::LOGO_START;
use crate::html::base64;

/// Longest file, bytes.
pub const LEN_MAX: usize = 128 << 10;
/// Longest side, pixels: a small file can otherwise take much memory of a reader.
const SIDE_MAX: u32 = 2000;
const SIGNATURE: &[u8] = b"\x89PNG\r\n\x1a\n";
/// Chunks that a picture needs (PNG, third edition, section 5.6). Others, as texts, times and Exif data, can say more of an author than the picture.
const KEPT: [&[u8; 4]; 9] = [b"IHDR", b"PLTE", b"IDAT", b"IEND", b"tRNS", b"gAMA", b"cHRM", b"sRGB", b"pHYs"];

/// The images that a report takes, as an error proposes them.
pub fn remedy() -> String {
    format!("name a PNG file of at most {} KiB and {SIDE_MAX} by {SIDE_MAX} pixels", LEN_MAX >> 10)
}

/// An image as a `data:` URI.
///
/// # Errors
/// Why a file is no image that a report takes.
pub fn data_uri(bytes: &[u8]) -> Result<String, String> {
    let image = without_metadata(bytes)?;
    Ok(format!("{LOGO_START}{}", base64(&image)))
}

/// An image without the chunks that say more than the picture, and without what is behind its end.
///
/// # Errors
/// As [`data_uri`].
pub fn without_metadata(bytes: &[u8]) -> Result<Vec<u8>, String> {
    let Some(mut rest) = bytes.strip_prefix(SIGNATURE) else { return Err(other_format(bytes)) };
    let damaged = || "it is a damaged PNG file".to_owned();
    let mut image = SIGNATURE.to_vec();
    let mut is_first = true;
    while !rest.is_empty() {
        let length = rest.first_chunk().map(|bytes| u32::from_be_bytes(*bytes)).ok_or_else(damaged)?;
        let length = usize::try_from(length).map_err(|_| damaged())?;
        // Length, type, data and checksum.
        let chunk = length.checked_add(12).and_then(|length| rest.get(..length)).ok_or_else(damaged)?;
        let kind = chunk.get(4..8).ok_or_else(damaged)?;
        if is_first {
            check_size(kind, &chunk[8..chunk.len() - 4])?;
            is_first = false;
        }
        if KEPT.iter().any(|kept| kept.as_slice() == kind) {
            image.extend_from_slice(chunk);
        }
        rest = &rest[chunk.len()..];
        if kind == b"IEND" {
            return Ok(image);
        }
    }
    Err(damaged())
}

/// The first chunk has width and height.
fn check_size(kind: &[u8], data: &[u8]) -> Result<(), String> {
    let side = |from: usize| {
        let bytes = data.get(from..from + 4)?;
        Some(u32::from_be_bytes(bytes.try_into().ok()?))
    };
    match (kind, side(0), side(4)) {
        (b"IHDR", Some(width), Some(height)) if width > 0 && height > 0 => {
            if width.max(height) > SIDE_MAX {
                return Err(format!("it has {width} by {height} pixels"));
            }
            Ok(())
        }
        _ => Err("it is a damaged PNG file".to_owned()),
    }
}

fn other_format(bytes: &[u8]) -> String {
    let start = String::from_utf8_lossy(&bytes[..bytes.len().min(512)]);
    if start.contains("<svg") || start.trim_start().starts_with("<?xml") {
        return "it is an SVG file, which can contain scripts and links; convert it, for example with `rsvg-convert logo.svg -o logo.png`".to_owned();
    }
    "it is no PNG file".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk(kind: [u8; 4], data: &[u8]) -> Vec<u8> {
        [&(data.len() as u32).to_be_bytes(), kind.as_slice(), data, &[0; 4]].concat()
    }

    fn image(width: u32, height: u32, extra: &[u8]) -> Vec<u8> {
        let header = [&width.to_be_bytes(), &height.to_be_bytes(), [8, 0, 0, 0, 0].as_slice()].concat();
        [SIGNATURE, &chunk(*b"IHDR", &header), extra, &chunk(*b"IDAT", b"xx"), &chunk(*b"IEND", b"")].concat()
    }

    #[test]
    fn guides_state_the_limits_of_an_image() {
        let remedy = remedy();
        let limits = remedy.trim_start_matches("name a");
        assert!(include_str!("../../../docs/publish.md").contains(limits), "{limits}");
        let (length, _) = limits.split_once(" and ").expect("two limits");
        assert!(include_str!("../../../docs/plans.md").contains(length), "{length}");
    }

    #[test]
    fn metadata_are_removed_and_the_picture_is_kept() {
        let text = chunk(*b"tEXt", b"Author\0secret");
        let trailer = [image(2, 2, &text), b"after the end".to_vec()].concat();
        assert_eq!(without_metadata(&trailer), Ok(image(2, 2, &[])));
        assert!(data_uri(&trailer).is_ok_and(|uri| uri.starts_with(LOGO_START)));
    }

    #[test]
    fn what_is_no_small_png_is_refused_with_its_reason() {
        let whole = image(2, 2, &[]);
        for (bytes, reason) in [
            (b"<?xml version=\"1.0\"?><svg onload=\"x\"/>".to_vec(), "SVG"),
            (b"GIF89a".to_vec(), "no PNG"),
            (Vec::new(), "no PNG"),
            (image(3000, 2, &[]), "3000 by 2"),
            (image(0, 2, &[]), "damaged"),
            (whole[..whole.len() - 5].to_vec(), "damaged"),
            ([SIGNATURE, &chunk(*b"IEND", b"")].concat(), "damaged"),
        ] {
            assert!(data_uri(&bytes).is_err_and(|error| error.contains(reason)), "{reason}");
        }
    }
}
