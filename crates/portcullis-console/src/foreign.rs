//! Texts that are not ours: what an agent, a tool or a server can have written.
//!
//! Which characters are marked is decided in [`portcullis_core::display`], for terminals and pages alike. Here a marked
//! character becomes an element of its own, which a text cannot imitate. Pages draw a hatched edge beside longer texts
//! of others, and beside nothing else.

use maud::{Markup, Render, html};
use portcullis_core::display;

/// The most that a page shows of a text that is one of many, in characters.
pub const PREVIEW_CHARS: usize = 400;

/// A short text of others within a line: a name, a rule, an argument.
#[derive(Debug, Clone, Copy)]
pub struct Shown<'a>(pub &'a str);

impl Render for Shown<'_> {
    fn render_to(&self, buffer: &mut String) {
        let mut plain = String::new();
        display::each(self.0, |c, marked| {
            if marked {
                plain.render_to(buffer);
                plain.clear();
                mark(c).render_to(buffer);
            } else {
                plain.push(c);
            }
        });
        plain.render_to(buffer);
    }
}

/// The text with marks for what cannot be seen. Nothing is left out.
#[must_use]
pub fn shown(text: &str) -> Markup {
    Shown(text).render()
}

/// The beginning of a text, at most `chars` characters of it.
#[must_use]
pub fn start(text: &str, chars: usize) -> Markup {
    match text.char_indices().nth(chars) {
        None => shown(text),
        Some((end, _)) => html! { (shown(text.get(..end).unwrap_or_default())) "…" },
    }
}

/// A sentence of ours in which backticks stand around names of others.
#[must_use]
pub fn sentence(text: &str) -> Markup {
    html! {
        @for (place, part) in text.split('`').enumerate() {
            @if place % 2 == 1 { code { (shown(part)) } } @else { (shown(part)) }
        }
    }
}

/// A text of several lines with the hatched edge, all of it.
#[must_use]
pub fn block(by: &str, text: &str) -> Markup {
    html! { div .foreign { @if !by.is_empty() { span .by { (by) } } (shown(text)) } }
}

/// How many characters of a text are marked.
#[must_use]
pub fn marked(text: &str) -> usize {
    let mut count = 0;
    display::each(text, |c, marked| count += usize::from(marked && c != '\n'));
    count
}

fn mark(c: char) -> Markup {
    if c == '\n' {
        return html! { span .nl aria-hidden="true" { "⏎" } br; };
    }
    html! { span .cc { (name(c)) } }
}

/// What a marked character is called.
fn name(c: char) -> String {
    let short = match c {
        '\0' => "NUL",
        '\u{7}' => "BEL",
        '\u{8}' => "BS",
        '\t' => "TAB",
        '\r' => "CR",
        '\u{1b}' => "ESC",
        '\u{7f}' => "DEL",
        '\u{a0}' => "NBSP",
        '\u{ad}' => "SHY",
        '\u{200b}' => "ZWSP",
        '\u{200c}' => "ZWNJ",
        '\u{200d}' => "ZWJ",
        '\u{200e}' => "LRM",
        '\u{200f}' => "RLM",
        '\u{202a}' => "LRE",
        '\u{202b}' => "RLE",
        '\u{202c}' => "PDF",
        '\u{202d}' => "LRO",
        '\u{202e}' => "RLO",
        '\u{2066}' => "LRI",
        '\u{2067}' => "RLI",
        '\u{2068}' => "FSI",
        '\u{2069}' => "PDI",
        '\u{feff}' => "BOM",
        _ => "",
    };
    match (short, c.is_ascii()) {
        (short, true) if !short.is_empty() => short.to_owned(),
        ("", _) => format!("U+{:04X}", u32::from(c)),
        (short, _) => format!("{short} U+{:04X}", u32::from(c)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_cannot_become_an_element_or_hide() {
        let text = "<script>alert(1)</script>\u{1b}[2K\r\u{202e}x\ny \u{430}pp.org";
        let html = shown(text).into_string();
        assert!(!html.contains("<script"), "{html}");
        for mark in [
            "&lt;script&gt;",
            "<span class=\"cc\">ESC</span>",
            ">CR<",
            ">RLO U+202E<",
            ">U+0430<",
            "⏎</span><br>y",
        ] {
            assert!(html.contains(mark), "{mark} in {html}");
        }
        assert!(!html.contains(['\u{1b}', '\u{202e}', '\r', '\u{430}']), "{html}");
        assert_eq!(marked(text), 4);
    }

    #[test]
    fn what_is_cut_says_so() {
        assert_eq!(start("größe", 5).into_string(), "größe");
        assert_eq!(start("größe<", 3).into_string(), "grö…");
    }
}
