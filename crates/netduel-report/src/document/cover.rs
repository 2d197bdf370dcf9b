//! The cover: what a file shows before its sections. Its parts only; `front` builds it.
use super::accent::Accent;

/// The start of every logo.
pub const LOGO_START: &str = "data:image/png;base64,";
/// Longest logo: 128 KiB of PNG as base64.
const LOGO_LEN_MAX: usize = 176 << 10;

/// Whether a text is a logo as netduel stores it: a run file can come from elsewhere.
pub(super) fn is_image(text: &str) -> bool {
    let is_base64 = |byte: u8| byte.is_ascii_alphanumeric() || b"+/=".contains(&byte);
    let data = text.strip_prefix(LOGO_START).filter(|_| text.len() <= LOGO_LEN_MAX);
    data.is_some_and(|data| data.bytes().all(is_base64))
}

/// The cover of a report; empty where a document has none.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Cover {
    /// The title of the author; absent: the question is the title.
    pub title: Option<String>,
    /// Author and organization.
    pub by: Vec<String>,
    /// Run, date, hosts, size, NIC, region and program.
    pub facts: Vec<(String, String)>,
    /// The logo, a `data:` URI of a PNG image.
    pub logo: Option<String>,
    /// The accent colour on either theme.
    pub accent: Option<Accent>,
}
