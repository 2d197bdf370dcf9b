//! What a verdict means for the person who asked: better, worse, the same, or open.

/// What a verdict means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    /// The arm is better than the baseline.
    Better,
    /// The arm is worse.
    Worse,
    /// They do not differ by an amount that matters.
    Same,
    /// Inconclusive so far.
    Open,
}

impl Tone {
    /// One word, also the name of the style.
    pub fn word(self) -> &'static str {
        match self {
            Self::Better => "better",
            Self::Worse => "worse",
            Self::Same => "same",
            Self::Open => "open",
        }
    }

    /// A mark that tells the tones apart without colour.
    pub fn mark(self) -> &'static str {
        match self {
            Self::Better => "+",
            Self::Worse => "-",
            Self::Same => "=",
            Self::Open => "?",
        }
    }
}
