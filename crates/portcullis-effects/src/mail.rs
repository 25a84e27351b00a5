//! Mail addresses.
//!
//! A list of recipients as mail programs take it: `Ann <ann@a.example>, bob@b.example; team: c@c.example;`.
//! Anyone who could receive the message is found: each line is read, so that `a@b.example\nBcc: x@y.example` has two
//! recipients. Where a piece is not an address by the rules of RFC 5322, every address in it counts, and the
//! piece itself is *unknown*.
//!
//! A recipient is named by the whole address in lower case, its domain as name servers know it. Case of the part
//! before the `@` could matter by the standard; no mail service in use makes it so, and policies compare names.

use std::ops::Range;

use portcullis_core::effect::{Effect, Resource, ResourceKind, Verb};
use url::Host;

use crate::limits::{NESTING_MAX, TEXT_BYTES_MAX};
use crate::{Sink, Surroundings};

/// Longest address, in bytes (RFC 5321 allows 254 and some take more).
const ADDRESS_BYTES_MAX: usize = 512;

/// Reads `text` as recipients to whom something is sent.
pub fn read(text: &str, surroundings: &Surroundings<'_>, sink: &mut Sink<'_>) {
    read_as(Verb::Send, text, surroundings, sink);
}

/// Reads `text` as addresses to which `verb` is done: a tool that looks up a contact reads.
pub fn read_as(verb: Verb, text: &str, surroundings: &Surroundings<'_>, sink: &mut Sink<'_>) {
    let _ = surroundings;
    if text.len() > TEXT_BYTES_MAX {
        let why = format!("the recipients are longer than {TEXT_BYTES_MAX} bytes");
        return sink.unknown("email", why, 0..text.len());
    }
    let found = pieces(text);
    if found.is_empty() {
        sink.unknown("email", "the text holds no address", 0..text.len());
    }
    for piece in found {
        match piece {
            Piece::Address(resource, range) => sink.add(Effect::new(verb, resource), range),
            Piece::Unclear(why, range) => sink.unknown("email", why, range),
        }
    }
}

/// Reads a field of a message's header, such as its subject. It is one line: mail programs read text after a line end
/// as further fields, or as the message, so every address in it counts.
pub(crate) fn read_header(text: &str, sink: &mut Sink<'_>) {
    let end = text.trim_end().find(ends_line);
    let Some((end, rest)) = end.and_then(|end| Some((end, text.get(end..)?))) else { return };
    sink.unknown("mail header", "a field of the header holds a line end", end..text.len());
    for (resource, range) in resources(rest) {
        sink.add(Effect::new(Verb::Send, resource), end + range.start..end + range.end);
    }
}

/// Whether some program ends a line there.
const fn ends_line(c: char) -> bool {
    matches!(c, '\n' | '\r' | '\0' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// The recipients in `text` and their places. What is not an address is left out; [`read`] reports it.
pub fn resources(text: &str) -> Vec<(Resource, Range<usize>)> {
    if text.len() > TEXT_BYTES_MAX {
        return Vec::new();
    }
    let addresses = pieces(text).into_iter().filter_map(|piece| match piece {
        Piece::Address(resource, range) => Some((resource, range)),
        Piece::Unclear(..) => None,
    });
    addresses.collect()
}

enum Piece {
    Address(Resource, Range<usize>),
    Unclear(&'static str, Range<usize>),
}

fn pieces(text: &str) -> Vec<Piece> {
    let mut found = Vec::new();
    for segment in segments(text) {
        read_segment(text, &segment, &mut found);
    }
    found
}

/// Characters of one piece of the list, with their places; comments are left out.
struct Segment {
    characters: Vec<(usize, char, Inside)>,
    range: Range<usize>,
    /// Quotes, comments and angle brackets all end.
    closed: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Inside {
    Nothing,
    Quotes,
    Angle,
}

/// Splits at commas, semicolons and line ends that are in no quotes or comments. A line end splits
/// everything: folded lines do not occur in single values, injected ones do.
fn segments(text: &str) -> Vec<Segment> {
    let mut all = Vec::new();
    let mut now = Segment { characters: Vec::new(), range: 0..0, closed: true };
    let (mut quoted, mut angle, mut comment, mut escaped) = (false, false, 0_usize, false);
    for (at, c) in text.char_indices() {
        let line_end = ends_line(c);
        let separator = !quoted && comment == 0 && matches!(c, ',' | ';');
        if line_end || separator && !escaped {
            now.range.end = at;
            now.closed = !quoted && !angle && comment == 0;
            let start = at + c.len_utf8();
            all.push(std::mem::replace(
                &mut now,
                Segment { characters: Vec::new(), range: start..start, closed: true },
            ));
            (quoted, angle, comment, escaped) = (false, false, 0, false);
            continue;
        }
        match c {
            _ if escaped => escaped = false,
            '\\' if quoted || comment > 0 => escaped = true,
            '"' if comment == 0 => quoted = !quoted,
            '(' if !quoted && comment < NESTING_MAX => comment += 1,
            ')' if !quoted && comment > 0 => {
                comment -= 1;
                continue;
            }
            '<' if !quoted && comment == 0 => angle = true,
            '>' if !quoted && comment == 0 => {
                now.characters.push((at, c, Inside::Angle));
                angle = false;
                continue;
            }
            _ => {}
        }
        if comment == 0 {
            let inside = match (quoted || c == '"', angle) {
                (true, _) => Inside::Quotes,
                (false, true) => Inside::Angle,
                (false, false) => Inside::Nothing,
            };
            now.characters.push((at, c, inside));
        }
    }
    now.range.end = text.len();
    now.closed = !quoted && !angle && comment == 0;
    all.push(now);
    all
}

fn read_segment(text: &str, segment: &Segment, found: &mut Vec<Piece>) {
    let mut characters = segment.characters.as_slice();
    let blank = |characters: &[(usize, char, Inside)]| characters.iter().all(|(_, c, _)| c.is_whitespace());
    if segment.closed
        && blank(characters)
        && text.get(segment.range.clone()).is_some_and(|all| !all.contains('@'))
    {
        return;
    }
    // `Bcc:`, `team:`: names of headers and groups.
    while let Some(colon) =
        characters.iter().position(|&(_, c, inside)| c == ':' && inside == Inside::Nothing)
    {
        let (before, after) = characters.split_at_checked(colon + 1).unwrap_or((characters, &[]));
        if before.iter().any(|&(_, c, _)| matches!(c, '@' | '[')) {
            break;
        }
        characters = after;
    }
    if segment.closed && blank(characters) {
        return;
    }
    if segment.closed
        && let Some(piece) = mailbox(characters)
    {
        found.push(piece);
        return;
    }
    let before = found.len();
    scan(text, segment.range.clone(), found);
    let why = if found.len() == before {
        "the text holds no address"
    } else {
        "the list of recipients is malformed"
    };
    found.push(Piece::Unclear(why, segment.range.clone()));
}

/// `Ann <ann@a.example>` or `ann@a.example`, and nothing else.
fn mailbox(characters: &[(usize, char, Inside)]) -> Option<Piece> {
    let open = characters.iter().position(|&(_, c, inside)| c == '<' && inside == Inside::Angle);
    let address = match open {
        Some(open) => {
            let (name, rest) = characters.split_at_checked(open)?;
            let close = rest.iter().position(|&(_, c, inside)| c == '>' && inside == Inside::Angle)?;
            let (address, after) = rest.split_at_checked(close)?;
            let only_name = !name.iter().any(|&(_, c, inside)| c == '@' && inside == Inside::Nothing);
            let nothing_else = after.iter().skip(1).all(|(_, c, _)| c.is_whitespace());
            (only_name && nothing_else).then_some(address.get(1..)?)?
        }
        None => characters,
    };
    let start = address.iter().position(|(_, c, _)| !c.is_whitespace())?;
    let end = address.iter().rposition(|(_, c, _)| !c.is_whitespace())? + 1;
    let address = address.get(start..end)?;
    let at = address.iter().rposition(|&(_, c, inside)| c == '@' && inside != Inside::Quotes)?;
    let (local, domain) = address.split_at_checked(at)?;
    let first = address.first()?.0;
    let last = address.last().map(|&(at, c, _)| at + c.len_utf8())?;
    let local: Option<String> = match local.iter().all(|(_, _, inside)| *inside == Inside::Quotes) {
        true => unquoted(local),
        false => local
            .iter()
            .all(|&(_, c, inside)| is_atom(c) && inside != Inside::Quotes)
            .then(|| local.iter().map(|(_, c, _)| c).collect()),
    };
    let domain: String = domain.iter().skip(1).map(|(_, c, _)| c).collect();
    Some(Piece::Address(recipient(&local?, &domain)?, first..last))
}

/// A local part in quotes: without them if it needs none.
fn unquoted(local: &[(usize, char, Inside)]) -> Option<String> {
    let text: String = local.iter().map(|(_, c, _)| c).collect();
    let inner = text.strip_prefix('"')?.strip_suffix('"')?;
    if inner.is_empty()
        || inner.contains('"') && !inner.contains("\\\"")
        || inner.chars().any(char::is_control)
    {
        return None;
    }
    Some(if inner.chars().all(is_atom) { inner.to_owned() } else { text })
}

fn is_atom(c: char) -> bool {
    c.is_ascii_alphanumeric()
        || "!#$%&'*+/=?^_`{|}~.-".contains(c)
        || !c.is_ascii() && !c.is_whitespace() && !c.is_control()
}

/// The recipient of an address, or `None` if the domain is none.
fn recipient(local: &str, domain: &str) -> Option<Resource> {
    if local.is_empty() || local.len() + domain.len() > ADDRESS_BYTES_MAX {
        return None;
    }
    let domain = if domain.starts_with('[') {
        let literal = domain.to_lowercase();
        let body = literal.strip_prefix('[')?.strip_suffix(']')?;
        let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | ':' | '-');
        (!body.is_empty() && body.chars().all(allowed)).then_some(literal.clone())?
    } else {
        match Host::parse(domain).ok()? {
            Host::Domain(name) => {
                let name = name.strip_suffix('.').unwrap_or(&name).to_owned();
                let label = |label: &str| {
                    !label.is_empty()
                        && label.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'))
                };
                // An encoded name is another name to every mail program.
                (!domain.contains('%') && name.split('.').all(label)).then_some(name)?
            }
            Host::Ipv4(v4) => v4.to_string(),
            Host::Ipv6(_) => return None,
        }
    };
    let name = format!("{}@{domain}", local.to_lowercase());
    Some(Resource::new(ResourceKind::Recipient, name).with("domain", domain))
}

/// Every address in a text that is no proper list.
fn scan(text: &str, range: Range<usize>, found: &mut Vec<Piece>) {
    let Some(piece) = text.get(range.clone()) else { return };
    for (at, _) in piece.match_indices('@') {
        let (Some(before), Some(after)) = (piece.get(..at), piece.get(at + 1..)) else { continue };
        let outside =
            |c: char| !is_atom(c) || matches!(c, '\'' | '`' | '=' | '{' | '}' | '|' | '/' | '?' | '&');
        let start = before.rfind(outside).map_or(0, |place| {
            place + before.get(place..).and_then(|rest| rest.chars().next()).map_or(0, char::len_utf8)
        });
        let is_domain = |c: char| c.is_alphanumeric() || matches!(c, '.' | '-' | '_');
        let mut length = after.find(|c| !is_domain(c)).unwrap_or(after.len());
        if after.starts_with('[') {
            length = after.find(']').map_or(0, |end| end + 1);
        }
        let domain = after.get(..length).unwrap_or_default().trim_end_matches('.');
        let local = before.get(start..).unwrap_or_default();
        if let Some(resource) = recipient(local, domain) {
            let end = at + 1 + domain.len();
            found.push(Piece::Address(resource, range.start + start..range.start + end));
        }
    }
}
