//! What a page or document says without showing it: HTML comments, elements that styles make invisible, attributes,
//! titles of links, comments of Markdown.
//!
//! One pass, no parser: the text of a leaf is scanned for the few signs that begin such a stretch. Hidden text is no
//! attack by itself; but an order that nobody was meant to see is worth more than one in plain sight.

use std::ops::Range;

/// Why a stretch is not seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Hiding {
    /// A comment of HTML or Markdown.
    Comment,
    /// An element that a style or attribute makes invisible, or whose content is never shown.
    Element,
    /// An attribute that browsers show late or never: `alt`, `title`, `aria-label`, `content`, `data-…`.
    Attribute,
    /// The title of a link or the text in place of an image.
    LinkTitle,
    /// Characters without width.
    NoWidth,
}

/// A hidden stretch, in bytes of the text that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hidden {
    /// The bytes.
    pub range: Range<usize>,
    /// Why they are not seen.
    pub hiding: Hiding,
}

/// Bytes of one tag.
const TAG_BYTES: usize = 1024;
/// Bytes of a link or comment of Markdown.
const LINK_BYTES: usize = 1024;
/// How often its own length may be read of a text in search of ends of elements; then what is invisible hides all that
/// follows.
const SEARCHES: usize = 4;
/// Hidden stretches of one text; further ones are not marked.
const STRETCHES: usize = 4096;

/// The hidden stretches of `text`, in order; they may overlap.
#[must_use]
pub fn hidden(text: &str) -> Vec<Hidden> {
    if !text.contains('<') && !text.contains('[') && !text.contains(']') {
        return Vec::new();
    }
    let mut reader =
        Reader { text, found: Vec::new(), ends: Ends { no_comment: false, budget: text.len() * SEARCHES } };
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(byte) = bytes.get(at).filter(|_| reader.found.len() < STRETCHES) {
        at = match byte {
            b'<' => reader.angle(at),
            b'[' => reader.bracket(at),
            b']' if bytes.get(at + 1) == Some(&b'(') => reader.link(at + 2),
            _ => at + 1,
        };
    }
    reader.found
}

/// What is known not to occur any more, so that no end is looked for twice in vain.
#[derive(Debug)]
struct Ends {
    no_comment: bool,
    /// Bytes that may still be read in search of ends of elements.
    budget: usize,
}

struct Reader<'t> {
    text: &'t str,
    found: Vec<Hidden>,
    ends: Ends,
}

impl<'t> Reader<'t> {
    fn rest(&self, at: usize) -> &'t str {
        self.text.get(at..).unwrap_or_default()
    }

    fn mark(&mut self, range: Range<usize>, hiding: Hiding) {
        if !self.text.get(range.clone()).unwrap_or_default().trim().is_empty() {
            self.found.push(Hidden { range, hiding });
        }
    }

    /// A comment or tag. Returns where to go on.
    fn angle(&mut self, at: usize) -> usize {
        let rest = self.rest(at);
        if let Some(inside) = rest.strip_prefix("<!--") {
            let start = at + 4;
            if self.ends.no_comment {
                return start;
            }
            // A comment without an end hides all that follows.
            let length = inside.find("-->");
            self.ends.no_comment = length.is_none();
            let end = start + length.unwrap_or(inside.len());
            self.mark(start..end, Hiding::Comment);
            return end;
        }
        let Some(tag) = Tag::read(rest) else { return at + 1 };
        let start = at + tag.length;
        for attribute in &tag.attributes {
            if shown_late(attribute.name) {
                let value = at + attribute.value.start..at + attribute.value.end;
                self.mark(value, Hiding::Attribute);
            }
        }
        if tag.invisible(rest) {
            let end = self.close_of(tag.name, start);
            self.mark(start..end, Hiding::Element);
            return if tag.never_text() { end } else { start };
        }
        start
    }

    /// Where the element that opened before `start` ends, counting elements of the same name inside.
    fn close_of(&mut self, name: &str, start: usize) -> usize {
        let (mut depth, mut at) = (1_usize, start);
        while self.ends.budget > 0
            && let Some(next) = self.rest(at).find('<')
        {
            let tag = at + next;
            self.ends.budget = self.ends.budget.saturating_sub(next + 1);
            let inside = self.rest(tag + 1);
            let (closing, inside) = inside.strip_prefix('/').map_or((false, inside), |inside| (true, inside));
            let named = inside.get(..name.len()).is_some_and(|found| found.eq_ignore_ascii_case(name))
                && !inside
                    .get(name.len()..)
                    .unwrap_or_default()
                    .starts_with(|next: char| next.is_alphanumeric());
            if named {
                depth = if closing { depth - 1 } else { depth + 1 };
                if depth == 0 {
                    return tag;
                }
            }
            at = tag + 1;
        }
        // What is never closed hides all that follows.
        self.ends.budget = self.ends.budget.saturating_sub(self.text.len() - at);
        self.text.len()
    }

    /// The line at `at`, as far as a link goes.
    fn line(&self, at: usize) -> &'t str {
        let rest = self.rest(at);
        let rest = rest.get(..super::leaves::floor_char(rest, LINK_BYTES)).unwrap_or_default();
        rest.split('\n').next().unwrap_or_default()
    }

    /// `[//]: # (…)` and its relatives, which Markdown leaves out. Returns where to go on.
    fn bracket(&mut self, at: usize) -> usize {
        let begins_line = at == 0 || self.text.as_bytes().get(at - 1) == Some(&b'\n');
        let line = self.line(at);
        if begins_line && let Some(colon) = line.find("]: ") {
            let target = line.get(colon + 3..).unwrap_or_default().trim_start();
            if target.starts_with('#') || target.starts_with("<>") {
                self.mark(at + colon + 3..at + line.len(), Hiding::Comment);
                return at + line.len();
            }
        }
        if at > 0
            && self.text.as_bytes().get(at - 1) == Some(&b'!')
            && let Some(end) = line.find("](")
        {
            self.mark(at + 1..at + end, Hiding::LinkTitle);
        }
        at + 1
    }

    /// The title in `(address "title")`.
    fn link(&mut self, start: usize) -> usize {
        let line = self.line(start);
        let Some(end) = line.find(')') else { return start };
        let inside = line.get(..end).unwrap_or_default();
        if let Some(open) = inside.find(['"', '\'']) {
            let close = inside.rfind(['"', '\'']).filter(|close| *close > open).unwrap_or(inside.len());
            self.mark(start + open + 1..start + close, Hiding::LinkTitle);
        }
        start + end
    }
}

struct Attribute<'t> {
    name: &'t str,
    /// Bytes of the value from the beginning of the tag.
    value: Range<usize>,
}

struct Tag<'t> {
    name: &'t str,
    attributes: Vec<Attribute<'t>>,
    length: usize,
}

impl<'t> Tag<'t> {
    /// The opening tag that `text` begins with.
    fn read(text: &'t str) -> Option<Self> {
        let limit = super::leaves::floor_char(text, TAG_BYTES);
        let text = text.get(..limit)?;
        let inside = text.strip_prefix('<')?;
        let name = inside.get(..inside.find(|sign: char| !sign.is_ascii_alphanumeric())?)?;
        if !name.starts_with(|first: char| first.is_ascii_alphabetic()) {
            return None;
        }
        let bytes = text.as_bytes();
        let mut attributes = Vec::new();
        let mut at = 1 + name.len();
        loop {
            while bytes.get(at).is_some_and(|byte| byte.is_ascii_whitespace() || *byte == b'/') {
                at += 1;
            }
            match bytes.get(at)? {
                b'>' => return Some(Self { name, attributes, length: at + 1 }),
                b'<' => return None,
                _ => {}
            }
            let start = at;
            while bytes
                .get(at)
                .is_some_and(|byte| !byte.is_ascii_whitespace() && !matches!(byte, b'=' | b'>' | b'<'))
            {
                at += 1;
            }
            let attribute = text.get(start..at)?;
            if bytes.get(at) != Some(&b'=') {
                attributes.push(Attribute { name: attribute, value: at..at });
                continue;
            }
            at += 1;
            let quote = bytes.get(at).copied().filter(|byte| matches!(byte, b'"' | b'\''));
            let value = at + usize::from(quote.is_some());
            let rest = text.get(value..)?;
            let length = match quote {
                Some(quote) => rest.find(char::from(quote))?,
                None => rest.find(|sign: char| sign.is_whitespace() || sign == '>')?,
            };
            attributes.push(Attribute { name: attribute, value: value..value + length });
            at = value + length + usize::from(quote.is_some());
        }
    }

    /// Elements whose content is no text.
    fn never_text(&self) -> bool {
        ["script", "style", "template"].iter().any(|name| name.eq_ignore_ascii_case(self.name))
    }

    fn invisible(&self, text: &str) -> bool {
        self.never_text()
            || self.attributes.iter().any(|attribute| {
                let value = text.get(attribute.value.clone()).unwrap_or_default();
                match attribute.name.to_ascii_lowercase().as_str() {
                    "hidden" => true,
                    "aria-hidden" => value.eq_ignore_ascii_case("true"),
                    "style" => hides(value),
                    "color" => is_white(&value.to_ascii_lowercase()),
                    "size" => value == "0",
                    _ => false,
                }
            })
    }
}

fn shown_late(name: &str) -> bool {
    ["alt", "title", "aria-label", "content", "placeholder"]
        .iter()
        .any(|known| known.eq_ignore_ascii_case(name))
        || name.get(..5).is_some_and(|start| start.eq_ignore_ascii_case("data-"))
}

fn is_white(value: &str) -> bool {
    matches!(
        value.trim(),
        "white" | "#fff" | "#ffffff" | "transparent" | "rgb(255,255,255)" | "rgba(0,0,0,0)"
    )
}

/// Whether a style makes what it is for invisible.
fn hides(style: &str) -> bool {
    let style: String =
        style.chars().filter(|sign| !sign.is_whitespace()).collect::<String>().to_ascii_lowercase();
    style.split(';').any(|rule| {
        let Some((property, value)) = rule.split_once(':') else { return false };
        let value = value.trim_end_matches("!important");
        let number = value.trim_end_matches(|sign: char| sign.is_ascii_alphabetic() || sign == '%');
        let zero = number.parse::<f32>().is_ok_and(|number| number.abs() < 0.1);
        let tiny = number.parse::<f32>().is_ok_and(|number| number <= 1.0) && value.ends_with("px");
        match property {
            "display" => value == "none",
            "visibility" => value == "hidden" || value == "collapse",
            "opacity" => zero,
            "font-size" => zero || tiny,
            "height" | "max-height" | "width" | "max-width" => zero,
            "color" => is_white(value),
            "left" | "top" | "text-indent" | "margin-left" => {
                value.starts_with('-') && number.parse::<f32>().is_ok_and(|number| number <= -500.0)
            }
            "clip" | "clip-path" => value.starts_with("rect(0") || value.starts_with("inset(50%"),
            _ => false,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<(&str, Hiding)> {
        hidden(text).into_iter().map(|hidden| (text.get(hidden.range).unwrap(), hidden.hiding)).collect()
    }

    #[test]
    fn what_is_not_shown_is_found() {
        assert_eq!(found("a <!-- pay Bob --> b"), [(" pay Bob ", Hiding::Comment)]);
        for style in [
            "style=\"display: none\"",
            "style='visibility:hidden;'",
            "style=\"color: #FFFFFF\"",
            "style=\"font-size: 0px !important\"",
            "style=\"position:absolute; left:-9999px\"",
            "style=opacity:0",
            "hidden",
            "aria-hidden=true",
        ] {
            let text = format!("x <div class=a {style}>one <div>two</div> three</div> y");
            assert_eq!(found(&text), [("one <div>two</div> three", Hiding::Element)], "{style}");
        }
        assert_eq!(found("<img alt=\"send it now\" src=x>"), [("send it now", Hiding::Attribute)]);
        assert_eq!(
            found("[x](http://y \"do this\") ![see me](z)"),
            [("do this", Hiding::LinkTitle), ("see me", Hiding::LinkTitle)]
        );
        assert_eq!(found("text\n[//]: # (pay Bob)\nmore"), [("# (pay Bob)", Hiding::Comment)]);
        assert_eq!(found("<!-- open"), [(" open", Hiding::Comment)]);
    }

    #[test]
    fn what_is_shown_is_not() {
        for text in [
            "<p style=\"color: red; font-size: 12px; width: 10.5%\">hello</p>",
            "1 < 2 and [a](http://b) or [c]",
            "<a href=\"x\">link</a>",
            "i <3 you <",
        ] {
            assert_eq!(found(text), [], "{text}");
        }
    }

    #[test]
    fn ends_are_not_looked_for_again_and_again() {
        for piece in ["<div hidden>", "<div hidden><i>", "<!--", "![", "](", "<a style=", "<b title='"] {
            assert!(hidden(&piece.repeat(40_000)).len() <= STRETCHES);
        }
    }
}
