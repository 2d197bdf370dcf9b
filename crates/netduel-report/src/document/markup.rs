//! The author's commentary: a subset of Markdown as blocks of a report. It knows headings, paragraphs, bulleted and numbered lists, fenced
//! and indented code, strong and emphasized text, code and links. Anything else, HTML and images too, stays the text that it is: the
//! renderers escape it.
use super::block::{Block, Span, Style, Text};

/// What stands before a line of indented code; a tab counts as much.
const INDENT_OF_CODE: &str = "    ";

/// Longest address of a link, bytes.
const ADDRESS_LEN_MAX: usize = 2000;

/// A text as blocks.
pub fn blocks(text: &str) -> Vec<Block> {
    let mut parser = Parser::default();
    let mut lines = text.lines().map(|line| line.replace('\t', INDENT_OF_CODE));
    while let Some(line) = lines.next() {
        if let Some(fence) = fence(&line) {
            parser.end();
            let code: Vec<String> = lines.by_ref().take_while(|line| !closes(line, fence)).collect();
            parser.blocks.push(Block::Code(code));
        } else {
            parser.line(&line);
        }
    }
    parser.end();
    parser.blocks
}

/// The characters of a fence that a line opens.
fn fence(line: &str) -> Option<&'static str> {
    ["```", "~~~"].into_iter().find(|fence| line.trim_start().starts_with(fence))
}

fn closes(line: &str, fence: &str) -> bool {
    let line = line.trim();
    line.starts_with(fence) && line.trim_start_matches(&fence[..1]).is_empty()
}

/// What the lines since the last block are.
#[derive(Debug, Default, PartialEq, Clone, Copy)]
enum Open {
    #[default]
    Nothing,
    Paragraph,
    Bullets,
    Numbers,
    Code,
}

#[derive(Default)]
struct Parser {
    blocks: Vec<Block>,
    open: Open,
    /// Items of a list, lines of code, or the one text of a paragraph.
    parts: Vec<String>,
    /// Whether a blank line came since the last line of the open block.
    is_apart: bool,
}

impl Parser {
    fn line(&mut self, line: &str) {
        let content = line.trim();
        if content.is_empty() {
            match self.open {
                Open::Paragraph => self.end(),
                Open::Code => self.parts.push(String::new()),
                _ => self.is_apart = true,
            }
            return;
        }
        // Spaces alone are an indent (CommonMark 0.31.2, section 2.2 and 4.4): other white space is part of the text.
        let is_indented = line.starts_with(' ');
        let code = line.strip_prefix(INDENT_OF_CODE);
        let may_be_code = self.open == Open::Code || self.open == Open::Nothing;
        if let Some(code) = code.filter(|_| may_be_code) {
            self.begin(Open::Code);
            self.parts.push(code.to_owned());
        } else if let Some(title) = heading(content) {
            self.end();
            self.blocks.push(Block::Heading(title.to_owned()));
        } else if let Some(item) = bullet(content) {
            self.begin(Open::Bullets);
            self.parts.push(item.to_owned());
        } else if let Some(item) = number(content) {
            self.begin(Open::Numbers);
            self.parts.push(item.to_owned());
        } else {
            // A line of text continues an item, unless it stands apart from it without an indent.
            let continues =
                matches!(self.open, Open::Bullets | Open::Numbers) && (!self.is_apart || is_indented);
            if !continues {
                self.begin(Open::Paragraph);
            }
            match self.parts.last_mut() {
                Some(part) => {
                    part.push(' ');
                    part.push_str(content);
                }
                None => self.parts.push(content.to_owned()),
            }
        }
        self.is_apart = false;
    }

    fn begin(&mut self, kind: Open) {
        if self.open != kind {
            self.end();
            self.open = kind;
        }
    }

    fn end(&mut self) {
        let parts = std::mem::take(&mut self.parts);
        let texts = |parts: Vec<String>| parts.iter().map(|part| inline(part)).collect();
        match std::mem::take(&mut self.open) {
            Open::Nothing => {}
            Open::Paragraph => self.blocks.extend(parts.iter().map(|part| Block::Paragraph(inline(part)))),
            Open::Bullets => self.blocks.push(Block::List(texts(parts))),
            Open::Numbers => self.blocks.push(Block::Numbered(texts(parts))),
            Open::Code => {
                let length = parts.iter().rposition(|line| !line.is_empty()).map_or(0, |last| last + 1);
                self.blocks.push(Block::Code(parts[..length].to_vec()));
            }
        }
        self.is_apart = false;
    }
}

/// `## Title`: levels of headings are not distinguished, because the section is the only level above them.
fn heading(line: &str) -> Option<&str> {
    let title = line.trim_start_matches('#');
    let level = line.len() - title.len();
    let title = title.strip_prefix(' ')?.trim().trim_end_matches('#').trim_end();
    ((1..=6).contains(&level) && !title.is_empty()).then_some(title)
}

fn bullet(line: &str) -> Option<&str> {
    ["- ", "* ", "+ "].into_iter().find_map(|sign| line.strip_prefix(sign)).map(str::trim)
}

fn number(line: &str) -> Option<&str> {
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    let rest = (1..=9).contains(&digits).then(|| &line[digits..])?;
    rest.strip_prefix(". ").or_else(|| rest.strip_prefix(") ")).map(str::trim)
}

/// Emphasis, code and links of a line. A sign without its partner is text.
fn inline(line: &str) -> Text {
    let mut text = Text::default();
    let (mut plain, mut rest) = (String::new(), line);
    while let Some(c) = rest.chars().next() {
        let (span, length) = match c {
            '\\' if rest[1..].starts_with(|c: char| c.is_ascii_punctuation()) => {
                plain.push_str(&rest[1..2]);
                rest = &rest[2..];
                continue;
            }
            // In the plain text of a report backticks mark code already.
            '`' => match near(&rest[1..]).find('`') {
                Some(end) => {
                    plain.push_str(&rest[..end + 2]);
                    rest = &rest[end + 2..];
                    continue;
                }
                None => (None, 1),
            },
            '*' | '_' => stressed(rest, plain.chars().last()),
            '[' => link(rest),
            '<' => bare(rest),
            _ => (None, c.len_utf8()),
        };
        match span {
            Some(span) => {
                if !plain.is_empty() {
                    text = text.and(std::mem::take(&mut plain), Style::Plain);
                }
                text.0.push(span);
            }
            None => plain.push_str(&rest[..length]),
        }
        rest = &rest[length..];
    }
    if plain.is_empty() { text } else { text.and(plain, Style::Plain) }
}

/// Where the partner of a sign can be: a bound keeps a text of nothing but signs from taking quadratic time.
fn near(rest: &str) -> &str {
    const BYTES: usize = 4096;
    if rest.len() <= BYTES {
        return rest;
    }
    let end = (0..=BYTES).rev().find(|end| rest.is_char_boundary(*end)).unwrap_or(0);
    &rest[..end]
}

/// `**strong**`, `*emphasis*` and the same with underscores, and how long it is. An underscore within a word is no sign.
fn stressed(rest: &str, before: Option<char>) -> (Option<Span>, usize) {
    let sign = &rest[..1];
    let double = format!("{sign}{sign}");
    let (mark, style) =
        if rest.starts_with(&double) { (double.as_str(), Style::Strong) } else { (sign, Style::Emphasis) };
    let within = sign == "_" && before.is_some_and(char::is_alphanumeric);
    let inner = near(&rest[mark.len()..]);
    let end = inner.find(mark).filter(|end| *end > 0 && !within);
    let end = end.filter(|end| !inner.starts_with(' ') && !inner[..*end].ends_with(' '));
    match end {
        Some(end) => {
            let span = Span { text: inner[..end].to_owned(), style };
            (Some(span), 2 * mark.len() + end)
        }
        None => (None, mark.len()),
    }
}

/// `[words](address)`, and how long it is.
fn link(rest: &str) -> (Option<Span>, usize) {
    let rest = near(rest);
    let found = rest.find("](").and_then(|middle| {
        let address = &rest[middle + 2..];
        let end = address.find(')')?;
        let address = address[..end].split_whitespace().next().unwrap_or_default();
        let words = &rest[1..middle];
        let span = Span { text: words.to_owned(), style: Style::Web(web(address)?) };
        (!words.is_empty() && !words.contains('[')).then_some((span, middle + 3 + end))
    });
    found.map_or((None, 1), |(span, length)| (Some(span), length))
}

/// `<https://...>`, and how long it is.
fn bare(rest: &str) -> (Option<Span>, usize) {
    let rest = near(rest);
    let found = rest.find('>').and_then(|end| Some((web(&rest[1..end])?, end + 1)));
    found.map_or((None, 1), |(address, length)| {
        (Some(Span { text: address.clone(), style: Style::Web(address) }), length)
    })
}

/// An address on the web: no other scheme, as `javascript:` or `file:`, becomes a link.
fn web(address: &str) -> Option<String> {
    let is_web = ["https://", "http://"].iter().any(|scheme| {
        address.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme))
            && address.len() > scheme.len()
    });
    let is_plain = !address.contains(|c: char| c.is_whitespace() || c.is_control() || "\"'<>`\\".contains(c));
    (is_web && is_plain && address.len() <= ADDRESS_LEN_MAX).then(|| address.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A block in one line.
    fn shown(block: &Block) -> String {
        let text = |text: &Text| {
            let span = |span: &Span| match &span.style {
                Style::Plain => span.text.clone(),
                Style::Strong => format!("B({})", span.text),
                Style::Emphasis => format!("E({})", span.text),
                Style::Web(address) => format!("L({} {address})", span.text),
                other => panic!("{other:?}"),
            };
            text.0.iter().map(span).collect::<String>()
        };
        let items = |items: &[Text]| items.iter().map(text).collect::<Vec<_>>().join(" | ");
        match block {
            Block::Heading(title) => format!("h {title}"),
            Block::Paragraph(words) => format!("p {}", text(words)),
            Block::List(all) => format!("ul {}", items(all)),
            Block::Numbered(all) => format!("ol {}", items(all)),
            Block::Code(lines) => format!("code {}", lines.join("\\n")),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn blocks_are_distinguished() {
        let text = "# A title #\nfirst line\nsecond line\n\n- one\n  goes on\n- two\n\n1. first\n2) second\n\nafter\n\n    indented\n\n    code\n\n```sh\n# no heading\n```\n#no heading\n";
        let blocks: Vec<String> = blocks(text).iter().map(shown).collect();
        assert_eq!(
            blocks,
            [
                "h A title",
                "p first line second line",
                "ul one goes on | two",
                "ol first | second",
                "p after",
                "code indented\\n\\ncode",
                "code # no heading",
                "p #no heading",
            ]
        );
    }

    #[test]
    fn white_space_of_several_bytes_is_no_indent_of_code() {
        for indent in ["\u{3000}\u{3000}", "  \u{3000}", "\u{2003}\u{2003}", "\u{a0}\u{3000}", "   \u{85}"] {
            let shown: Vec<String> = blocks(&format!("{indent}one\n{indent}two")).iter().map(shown).collect();
            assert_eq!(shown, ["p one two"], "{indent:?}");
        }
        assert_eq!(shown(&blocks("    \u{3000}code")[0]), "code \u{3000}code");
    }

    #[test]
    fn emphasis_code_and_links_are_marked() {
        for (line, expected) in [
            ("a **b** and *c* of `d*e*`", "a B(b) and E(c) of `d*e*`"),
            ("net_core_max and 2 * 3 * 4", "net_core_max and 2 * 3 * 4"),
            ("_a_ __b__ **open", "E(a) B(b) **open"),
            ("[the page](https://example.org/a?b=c) x", "L(the page https://example.org/a?b=c) x"),
            ("<https://example.org>", "L(https://example.org https://example.org)"),
            ("\\*no\\* [a] (b)", "*no* [a] (b)"),
            ("é*ü*ß [ö](http://ä.example)", "éE(ü)ß L(ö http://ä.example)"),
        ] {
            assert_eq!(shown(&Block::Paragraph(inline(line))), format!("p {expected}"));
        }
    }

    #[test]
    fn html_images_and_other_schemes_stay_text() {
        for line in [
            "<script>alert(1)</script>",
            "[a](javascript:alert(1))",
            "[a](file:///etc/passwd)",
            "[a](data:text/html,x)",
            "[a](https://x\"onmouseover=\"y)",
            "![a](x.png)",
        ] {
            let Block::Paragraph(text) = &blocks(line)[0] else { panic!("{line}") };
            assert!(text.0.iter().all(|span| span.style == Style::Plain), "{text:?}");
            assert_eq!(text.characters(), line);
        }
        // An image of the web becomes a link after its sign: nothing is loaded.
        assert_eq!(shown(&blocks("![a](https://x/y.png)")[0]), "p !L(a https://x/y.png)");
    }

    #[test]
    fn long_texts_of_signs_take_linear_time() {
        for sign in ["*", "_", "[", "<", "`", "![](", "- ", "\\"] {
            assert!(!blocks(&sign.repeat(60_000)).is_empty(), "{sign}");
        }
    }
}
