//! Where a text that was decoded stands in the raw bytes.
//!
//! A [`Places`] is a list of pieces in order. A *literal* piece has the same bytes on both sides. An *atom* is what one
//! escape, fold or replacement became: a range that touches it maps to the whole of it, so that no range of raw bytes
//! ever cuts an escape or a character.

use std::borrow::Cow;
use std::ops::Range;

/// A map from byte ranges of a decoded text to byte ranges of the raw text it came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Places {
    first: Piece,
    rest: Vec<Piece>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Piece {
    text: u32,
    raw: u32,
    text_len: u32,
    raw_len: u32,
    atom: bool,
}

impl Piece {
    fn text_end(self) -> u32 {
        self.text.saturating_add(self.text_len)
    }

    fn raw_end(self) -> u32 {
        self.raw.saturating_add(self.raw_len)
    }
}

impl Places {
    /// The places of a text that stands in the raw bytes as it is.
    pub(crate) fn literal(raw: Range<usize>) -> Self {
        let (start, len) = (narrow(raw.start), narrow(raw.len()));
        Self {
            first: Piece { text: 0, raw: start, text_len: len, raw_len: len, atom: false },
            rest: Vec::new(),
        }
    }

    /// The raw bytes that `text`, a range of bytes of the decoded text, came from. What reaches beyond the text is
    /// cut to it; an empty range maps to an empty one.
    #[must_use]
    pub fn raw(&self, text: Range<usize>) -> Range<usize> {
        let start = self.start_of(narrow(text.start));
        if text.start >= text.end {
            return start..start;
        }
        let end = self.end_of(narrow(text.end));
        start..end.max(start)
    }

    /// The raw bytes of the whole text.
    #[must_use]
    pub fn all(&self) -> Range<usize> {
        widen(self.first.raw)..widen(self.last().raw_end()).max(widen(self.first.raw))
    }

    fn last(&self) -> Piece {
        self.rest.last().copied().unwrap_or(self.first)
    }

    /// The last piece that begins at or before `text`.
    fn piece(&self, text: u32) -> Piece {
        let after = self.rest.partition_point(|piece| piece.text <= text);
        after.checked_sub(1).and_then(|at| self.rest.get(at)).copied().unwrap_or(self.first)
    }

    fn start_of(&self, text: u32) -> usize {
        let piece = self.piece(text);
        let within = if text >= piece.text_end() {
            piece.raw_len
        } else if piece.atom {
            0
        } else {
            text.saturating_sub(piece.text)
        };
        widen(piece.raw.saturating_add(within))
    }

    fn end_of(&self, text: u32) -> usize {
        let Some(before) = text.checked_sub(1) else { return widen(self.first.raw) };
        let piece = self.piece(before);
        let within = if piece.atom || text >= piece.text_end() {
            piece.raw_len
        } else {
            text.saturating_sub(piece.text)
        };
        widen(piece.raw.saturating_add(within))
    }

    fn pieces(&self) -> impl Iterator<Item = Piece> + '_ {
        std::iter::once(self.first).chain(self.rest.iter().copied())
    }

    /// These places seen through `outer`: this text was decoded from a text that was itself decoded.
    pub(crate) fn within(&self, outer: &Self) -> Self {
        let mut builder = Builder::default();
        for piece in self.pieces() {
            if piece.atom {
                builder.atom(outer.raw(widen(piece.raw)..widen(piece.raw_end())), widen(piece.text_len));
                continue;
            }
            let mut at = piece.raw;
            while at < piece.raw_end() {
                let under = outer.piece(at);
                let end = under.text_end().min(piece.raw_end());
                if end <= at {
                    break;
                }
                let range = widen(at)..widen(end);
                if under.atom {
                    builder.atom(outer.raw(range.clone()), range.len());
                } else {
                    builder.literal(outer.raw(range));
                }
                at = end;
            }
        }
        let start = outer.start_of(self.first.raw);
        builder.finish(start)
    }
}

/// Collects pieces in the order of the decoded text.
#[derive(Debug, Default)]
pub(crate) struct Builder {
    pieces: Vec<Piece>,
    text: u32,
}

impl Builder {
    /// Bytes that are the same on both sides.
    pub(crate) fn literal(&mut self, raw: Range<usize>) {
        let (start, len) = (narrow(raw.start), narrow(raw.len()));
        if let Some(last) = self.pieces.last_mut().filter(|last| !last.atom && last.raw_end() == start) {
            last.text_len = last.text_len.saturating_add(len);
            last.raw_len = last.raw_len.saturating_add(len);
        } else if len > 0 {
            self.pieces.push(Piece { text: self.text, raw: start, text_len: len, raw_len: len, atom: false });
        }
        self.text = self.text.saturating_add(len);
    }

    /// Raw bytes that became `text_len` other bytes, all of them or none. What became nothing is left out.
    pub(crate) fn atom(&mut self, raw: Range<usize>, text_len: usize) {
        let len = narrow(text_len);
        if len > 0 {
            let (start, raw_len) = (narrow(raw.start), narrow(raw.len()));
            self.pieces.push(Piece { text: self.text, raw: start, text_len: len, raw_len, atom: true });
        }
        self.text = self.text.saturating_add(len);
    }

    /// Each of these atoms, named by where it begins and how long it was in the order of the text, is now one byte long.
    pub(crate) fn shrink(&mut self, atoms: impl Iterator<Item = (usize, usize)>) {
        let mut atoms = atoms.map(|(at, length)| (narrow(at), narrow(length))).peekable();
        let Some(&(first, _)) = atoms.peek() else { return };
        let from = self.pieces.partition_point(|piece| piece.text < first);
        let mut shift = 0;
        for piece in self.pieces.iter_mut().skip(from) {
            let was = piece.text;
            piece.text = was.saturating_sub(shift);
            if let Some((_, length)) = atoms.next_if(|(at, _)| *at == was && piece.atom) {
                piece.text_len = 1;
                shift += length.saturating_sub(1);
            }
        }
        self.text = self.text.saturating_sub(shift);
    }

    /// The places; `start` is where an empty text stands.
    pub(crate) fn finish(self, start: usize) -> Places {
        let mut pieces = self.pieces.into_iter();
        let first = pieces.next().unwrap_or(Piece { raw: narrow(start), ..Piece::default() });
        Places { first, rest: pieces.collect() }
    }
}

/// A decoded text in the making: literal stretches of a source, and atoms between them. Copies nothing while there is
/// one literal stretch only.
#[derive(Debug)]
pub(crate) struct Draft<'t> {
    source: &'t str,
    pending: Range<usize>,
    text: String,
    places: Builder,
    copied: bool,
}

impl<'t> Draft<'t> {
    /// A draft that begins at `start` of `source`.
    pub(crate) fn new(source: &'t str, start: usize) -> Self {
        Self { source, pending: start..start, text: String::new(), places: Builder::default(), copied: false }
    }

    /// The next bytes of the text are these bytes of the source.
    pub(crate) fn literal(&mut self, range: Range<usize>) {
        if range.is_empty() {
            return;
        }
        if self.pending.is_empty() && !self.copied {
            self.pending = range;
        } else if self.pending.end == range.start {
            self.pending.end = range.end;
        } else {
            self.flush();
            self.pending = range;
        }
    }

    /// The next bytes of the text are `text`, which is what these bytes of the source mean.
    pub(crate) fn atom(&mut self, range: Range<usize>, text: &str) {
        self.flush();
        self.text.push_str(text);
        self.places.atom(range.clone(), text.len());
        self.pending = range.end..range.end;
        self.copied = true;
    }

    fn flush(&mut self) {
        if !self.pending.is_empty() {
            self.text.push_str(self.source.get(self.pending.clone()).unwrap_or_default());
            self.places.literal(self.pending.clone());
            self.copied = true;
        }
        self.pending = self.pending.end..self.pending.end;
    }

    /// The text and its places.
    pub(crate) fn finish(mut self) -> (Cow<'t, str>, Places) {
        if !self.copied {
            let range = self.pending;
            return (
                Cow::Borrowed(self.source.get(range.clone()).unwrap_or_default()),
                Places::literal(range),
            );
        }
        self.flush();
        let start = self.pending.start;
        (Cow::Owned(self.text), self.places.finish(start))
    }
}

/// Positions are kept in 32 bits: the limit on a text's bytes is far below.
fn narrow(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

fn widen(at: u32) -> usize {
    usize::try_from(at).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_never_cuts_an_escape() {
        let source = r"ab\ncd\u00e9f";
        let mut draft = Draft::new(source, 0);
        draft.literal(0..2);
        draft.atom(2..4, "\n");
        draft.literal(4..6);
        draft.atom(6..12, "é");
        draft.literal(12..13);
        let (text, places) = draft.finish();
        assert_eq!(text, "ab\ncdéf");
        assert_eq!(places.raw(0..1), 0..1);
        assert_eq!(places.raw(2..3), 2..4);
        assert_eq!(places.raw(1..4), 1..5);
        assert_eq!(places.raw(5..7), 6..12);
        assert_eq!(places.raw(0..8), 0..13);
        assert_eq!(places.raw(0..99), 0..13);
        assert_eq!(places.raw(3..3), 4..4);
        assert_eq!(places.all(), 0..13);
    }

    #[test]
    fn places_compose() {
        let mut outer = Builder::default();
        outer.literal(10..12);
        outer.atom(12..18, 2);
        outer.literal(18..20);
        let outer = outer.finish(10);
        let mut inner = Builder::default();
        inner.literal(1..3);
        inner.atom(3..5, 1);
        inner.literal(5..6);
        let both = inner.finish(1).within(&outer);
        assert_eq!(both.raw(0..1), 11..12);
        assert_eq!(both.raw(1..2), 12..18);
        assert_eq!(both.raw(2..3), 12..19);
        assert_eq!(both.raw(3..4), 19..20);
    }
}
