//! What a verdict means: better, worse, the same, or inconclusive.

/// What a verdict means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    /// The arm is better than the baseline.
    Better,
    /// The arm is worse.
    Worse,
    /// No difference beyond the margin of the plan.
    Same,
    /// Inconclusive.
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

    /// What stands before a verdict, so that the tones differ without colour. The words of the other verdicts need none.
    pub fn mark(self) -> &'static str {
        match self {
            Self::Better => "better: ",
            Self::Worse => "worse: ",
            Self::Same | Self::Open => "",
        }
    }
}
