//! Styled lines of characters, sparklines and bars. Pure: nothing knows a run or a terminal.

/// How a piece of a line looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// As the terminal shows text.
    Plain,
    /// A heading.
    Strong,
    /// What matters less.
    Dim,
    /// An improvement, a valid trial.
    Good,
    /// A loss, an invalid trial.
    Bad,
    /// A warning, a state that will change.
    Notice,
    /// Values and curves.
    Accent,
}

/// Colours of the view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Theme {
    /// Bright colours, for a dark background.
    Dark,
    /// Dark colours, for a light background.
    Light,
    /// No colours.
    Mono,
}

impl Theme {
    /// The next one.
    pub fn next(self) -> Self {
        match self {
            Self::Dark => Self::Light,
            Self::Light => Self::Mono,
            Self::Mono => Self::Dark,
        }
    }

    /// The parameters of the control sequence for a style (SGR in ECMA-48).
    pub fn sgr(self, style: Style) -> &'static str {
        match (self, style) {
            (_, Style::Plain) | (Self::Mono, Style::Good | Style::Accent | Style::Dim) => "",
            (_, Style::Strong) | (Self::Mono, Style::Bad | Style::Notice) => "1",
            (_, Style::Dim) => "2",
            (Self::Dark, Style::Good) => "92",
            (Self::Dark, Style::Bad) => "91",
            (Self::Dark, Style::Notice) => "93",
            (Self::Dark, Style::Accent) => "96",
            (Self::Light, Style::Good) => "32",
            (Self::Light, Style::Bad) => "31",
            (Self::Light, Style::Notice) => "35",
            (Self::Light, Style::Accent) => "34",
        }
    }
}

/// The characters of pictures: those of Unicode, or of ASCII where the locale has no UTF-8.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Glyphs {
    /// Heights of a sparkline, lowest first.
    pub heights: [char; 8],
    /// A valid trial, and one that is to come.
    pub valid: char,
    pub to_come: char,
    /// A line between columns, and beneath titles.
    pub vertical: char,
    pub horizontal: char,
    /// The centre of an interval.
    pub centre: char,
}

impl Glyphs {
    /// Those of Unicode.
    pub const UNICODE: Self = Self {
        heights: ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'],
        valid: '■',
        to_come: '·',
        vertical: '│',
        horizontal: '─',
        centre: '●',
    };
    /// Those of ASCII.
    pub const ASCII: Self = Self {
        heights: ['_', '.', ':', '-', '=', '+', '*', '#'],
        valid: '#',
        to_come: '.',
        vertical: '|',
        horizontal: '-',
        centre: 'o',
    };
}

/// A line of styled pieces.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Line(pub Vec<(Style, String)>);

impl Line {
    /// An empty line.
    pub fn new() -> Self {
        Self::default()
    }

    /// A line with one piece.
    pub fn of(style: Style, text: impl Into<String>) -> Self {
        Self(vec![(style, text.into())])
    }

    /// Adds a piece.
    #[must_use]
    pub fn with(mut self, style: Style, text: impl Into<String>) -> Self {
        self.0.push((style, text.into()));
        self
    }

    /// Columns. Every character of a name, a figure or a picture has one; wider ones of messages are cut by the terminal.
    pub fn width(&self) -> usize {
        self.0.iter().map(|(_, text)| text.chars().count()).sum()
    }

    /// The line with spaces up to this column; a longer one is cut there, with a mark.
    #[must_use]
    pub fn to(mut self, column: usize) -> Self {
        let width = self.width();
        if width <= column {
            self.0.push((Style::Plain, " ".repeat(column - width)));
            return self;
        }
        let mut left = column.saturating_sub(1);
        let mut pieces = Vec::new();
        for (style, text) in self.0 {
            let kept: String = text.chars().take(left).collect();
            left -= kept.chars().count();
            pieces.push((style, kept));
        }
        pieces.push((Style::Dim, if column == 0 { String::new() } else { "~".to_owned() }));
        Self(pieces)
    }

    /// The pieces of both lines.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.0.extend(other.0);
        self
    }

    /// The text without styles, and without spaces at its end.
    #[cfg(test)]
    pub fn text(&self) -> String {
        let text: String = self.0.iter().map(|(_, text)| text.as_str()).collect();
        text.trim_end().to_owned()
    }
}

/// A curve of the last values, as many as fit: the lowest value is the lowest character, and equal values are of middle height.
pub fn sparkline(values: &[f64], width: usize, glyphs: &Glyphs) -> String {
    let values = &values[values.len().saturating_sub(width)..];
    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
    let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    between(values, [low, high], glyphs)
}

/// Bars of shares from 0 to 1: one for each, or the maximum of neighbours where there are too many.
pub fn shares(shares: &[f64], width: usize, glyphs: &Glyphs) -> String {
    let of_one = shares.len().div_ceil(width.max(1)).max(1);
    let bars: Vec<f64> =
        shares.chunks(of_one).map(|group| group.iter().copied().fold(0.0, f64::max)).collect();
    between(&bars, [0.0, 1.0], glyphs)
}

fn between(values: &[f64], [low, high]: [f64; 2], glyphs: &Glyphs) -> String {
    let last = glyphs.heights.len() - 1;
    let height = |value: &f64| {
        let share = if high > low { (value - low) / (high - low) } else { 0.5 };
        glyphs.heights[(share.clamp(0.0, 1.0) * last as f64).round() as usize]
    };
    values.iter().map(height).collect()
}

/// An interval of a ratio on a logarithmic axis from `1 / reach` to `reach`, with a mark at 1.
pub fn interval([centre, low, high]: [f64; 3], reach: f64, width: usize, glyphs: &Glyphs) -> String {
    let last = width.saturating_sub(1);
    let column = |ratio: f64| {
        let share = 0.5 + ratio.ln() / reach.ln() / 2.0;
        (share.clamp(0.0, 1.0) * last as f64).round() as usize
    };
    let (from, to, at, one) = (column(low), column(high), column(centre), column(1.0));
    let character = |place: usize| match place {
        place if place == at => glyphs.centre,
        place if place == one => glyphs.vertical,
        place if (from..=to).contains(&place) => glyphs.horizontal,
        _ => ' ',
    };
    (0..width).map(character).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_is_cut_or_filled_to_its_column() {
        let line = || Line::of(Style::Strong, "abc").with(Style::Plain, "defg");
        assert_eq!((line().to(10).width(), line().to(10).text()), (10, "abcdefg".to_owned()));
        assert_eq!((line().to(5).width(), line().to(5).text()), (5, "abcd~".to_owned()));
        assert_eq!(line().to(0).text(), "");
    }

    #[test]
    fn sparkline_has_the_last_values_between_their_own_bounds() {
        let glyphs = &Glyphs::ASCII;
        assert_eq!(sparkline(&[9.0, 1.0, 2.0, 8.0], 3, glyphs), "_.#");
        assert_eq!(sparkline(&[5.0, 5.0], 9, glyphs), "==");
        assert_eq!(sparkline(&[], 9, glyphs), "");
    }

    #[test]
    fn bars_of_more_cores_than_columns_are_the_busiest_of_neighbours() {
        assert_eq!(shares(&[0.0, 1.0, 0.0, 0.0], 2, &Glyphs::ASCII), "#_");
        assert_eq!(shares(&[0.0, 0.5], 9, &Glyphs::ASCII), "_=");
        assert_eq!(shares(&[], 2, &Glyphs::ASCII), "");
    }

    #[test]
    fn interval_has_a_mark_at_no_difference() {
        assert_eq!(interval([2.0, 1.5, 2.7], 4.0, 11, &Glyphs::ASCII), "     |--o- ");
        assert_eq!(interval([1.0, 0.9, 1.1], 4.0, 11, &Glyphs::ASCII).trim(), "o");
    }
}
