//! The accent colour of an author, with enough contrast on both themes (WCAG 2.2, success criterion 1.4.3).

/// Least contrast of text (WCAG 2.2, level AA).
pub const CONTRAST_LEAST: f64 = 4.5;
/// The colour of the page, `--paper` of the style: light and dark.
pub const PAPERS: [[u8; 3]; 2] = [[0xff, 0xff, 0xff], [0x14, 0x17, 0x1a]];

/// A colour on the light and on the dark page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Accent {
    /// As the author chose it.
    pub chosen: [u8; 3],
    /// On the light page and on the dark one: the chosen colour, or the nearest mixture with black or white that has enough contrast.
    pub on: [[u8; 3]; 2],
}

impl Accent {
    /// The colour with enough contrast on both pages.
    pub fn of(chosen: [u8; 3]) -> Self {
        Self { chosen, on: PAPERS.map(|paper| readable(chosen, paper)) }
    }

    /// What was adjusted, a sentence for each page; empty when the chosen colour is readable on both.
    pub fn adjustments(&self) -> Vec<String> {
        let pages = ["light", "dark"].into_iter().zip(PAPERS).zip(self.on);
        let adjusted = pages.filter(|(_, on)| *on != self.chosen);
        adjusted
            .map(|((name, paper), on)| {
                format!(
                    "the accent {} has a contrast of {:.1} on the {name} page ({CONTRAST_LEAST} is needed), so the report uses {} there",
                    hexadecimal(self.chosen),
                    // Rounded down, so that it never looks like enough.
                    (contrast(self.chosen, paper) * 10.0).floor() / 10.0,
                    hexadecimal(on)
                )
            })
            .collect()
    }
}

/// As CSS writes a colour.
pub fn hexadecimal([red, green, blue]: [u8; 3]) -> String {
    format!("#{red:02x}{green:02x}{blue:02x}")
}

/// The contrast of two colours, 1 to 21.
pub fn contrast(one: [u8; 3], other: [u8; 3]) -> f64 {
    let (one, other) = (luminance(one), luminance(other));
    (one.max(other) + 0.05) / (one.min(other) + 0.05)
}

fn luminance(colour: [u8; 3]) -> f64 {
    let [red, green, blue] = colour.map(|part| {
        let part = f64::from(part) / 255.0;
        if part <= 0.04045 { part / 12.92 } else { ((part + 0.055) / 1.055).powf(2.4) }
    });
    0.2126 * red + 0.7152 * green + 0.0722 * blue
}

/// The colour, or the first mixture with black (on a light page) or white that has enough contrast.
fn readable(colour: [u8; 3], paper: [u8; 3]) -> [u8; 3] {
    let end: u8 = if luminance(paper) > 0.5 { 0 } else { 255 };
    let mixed = |share: u32| {
        colour.map(|part| ((u32::from(part) * (100 - share) + u32::from(end) * share + 50) / 100) as u8)
    };
    (0..=100).map(mixed).find(|mixed| contrast(*mixed, paper) >= CONTRAST_LEAST).unwrap_or([end; 3])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contrast_is_that_of_the_standard() {
        assert!((contrast([0; 3], [255; 3]) - 21.0).abs() < 1e-9);
        // #767676 is the lightest grey with enough contrast on white.
        assert!(
            contrast([0x76; 3], [255; 3]) >= CONTRAST_LEAST && contrast([0x77; 3], [255; 3]) < CONTRAST_LEAST
        );
    }

    #[test]
    fn pages_have_the_colour_of_the_style() {
        let style = include_str!("../../assets/style.css");
        let papers: Vec<&str> = style.split("--paper: ").skip(1).filter_map(|rest| rest.get(..7)).collect();
        assert_eq!(papers, PAPERS.map(hexadecimal));
    }

    #[test]
    fn unreadable_colour_is_adjusted_on_the_page_where_it_is_unreadable() {
        let yellow = Accent::of([0xff, 0xcc, 0x00]);
        assert_eq!(yellow.on[1], yellow.chosen, "it is readable on the dark page");
        assert!(contrast(yellow.on[0], PAPERS[0]) >= CONTRAST_LEAST);
        assert_eq!(yellow.adjustments().len(), 1);
        assert!(yellow.adjustments()[0].contains("light page"), "{:?}", yellow.adjustments());
        // 4.48 would round to what is needed.
        let grey = Accent::of([0x77; 3]).adjustments();
        assert!(grey[0].contains("has a contrast of 4.4 on the light page (4.5 is needed)"), "{grey:?}");
        for part in (0..=255).step_by(51) {
            let on = Accent::of([part, 255 - part, part / 2]).on;
            assert!(on.iter().zip(PAPERS).all(|(on, paper)| contrast(*on, paper) >= CONTRAST_LEAST));
        }
    }
}
