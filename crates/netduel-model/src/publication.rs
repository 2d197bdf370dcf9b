//! What an author adds to a report: title, names, purpose, commentary, logo and colour. It changes no result.
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Longest commentary, bytes: that of a long article. It is stored with each run.
pub const COMMENTARY_LEN_MAX: usize = 256 << 10;
/// Longest of the other texts, characters: a heading or a paragraph.
pub const TEXT_LEN_MAX: usize = 2000;

/// Words and pictures of the author, as the `[report]` of a plan and the options of the command line have them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Publication {
    /// Title of the report.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The author.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub author: Option<String>,
    /// The author's organization.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub organization: Option<String>,
    /// The purpose of the report.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub purpose: Option<String>,
    /// The readers that the report is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audience: Option<String>,
    /// The author's commentary, Markdown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commentary: Option<String>,
    /// The file of the logo, as a plan names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub logo: Option<String>,
    /// The logo itself, a `data:` URI of a PNG image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// The accent colour, `#rrggbb`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accent: Option<String>,
}

impl Publication {
    /// Whether the author adds nothing.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// This one laid over another: what it does not have is that of the other.
    #[must_use]
    pub fn over(&self, other: &Self) -> Self {
        let first = |own: &Option<String>, other: &Option<String>| own.clone().or_else(|| other.clone());
        Self {
            title: first(&self.title, &other.title),
            author: first(&self.author, &other.author),
            organization: first(&self.organization, &other.organization),
            purpose: first(&self.purpose, &other.purpose),
            audience: first(&self.audience, &other.audience),
            commentary: first(&self.commentary, &other.commentary),
            logo: first(&self.logo, &other.logo),
            image: first(&self.image, &other.image),
            accent: first(&self.accent, &other.accent),
        }
    }
}

/// The three parts of a colour `#rrggbb`.
pub fn colour(text: &str) -> Option<[u8; 3]> {
    // The conversion takes a sign, too.
    let is_digits = |text: &&str| text.len() == 6 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let digits = text.strip_prefix('#').filter(is_digits)?;
    let part = |from: usize| u8::from_str_radix(&digits[from..from + 2], 16).ok();
    Some([part(0)?, part(2)?, part(4)?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colour_is_six_hexadecimal_digits() {
        assert_eq!(colour("#0b5FA5"), Some([11, 95, 165]));
        for wrong in ["0b5fa5", "#0b5fa", "#0b5fa5f", "#0b5fag", "#+1+2+3", "#é5fa5", "red", ""] {
            assert_eq!(colour(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn upper_publication_has_precedence() {
        let named = |author: &str| Publication { author: Some(author.to_owned()), ..Publication::default() };
        let below = Publication { purpose: Some("p".to_owned()), ..named("below") };
        let merged = named("above").over(&below);
        assert_eq!((merged.author.as_deref(), merged.purpose.as_deref()), (Some("above"), Some("p")));
        assert!(Publication::default().over(&Publication::default()).is_empty());
    }
}
