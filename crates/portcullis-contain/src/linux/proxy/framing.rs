//! Where the body of an HTTP/1 message ends (RFC 9112, 6 and 7), followed byte by byte.
//!
//! Bytes behind a request's end are never passed on: they would be a second request that nobody has judged.

/// Most digits of a chunk's size: 64 bits.
const SIZE_DIGITS_MAX: u8 = 16;
/// Most bytes of the lines between chunks, and of the fields behind the last one.
const LINES_BYTES_MAX: u32 = 8 << 10;

/// How a body ends, and how much of it is still to come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Framing {
    /// There is no body, or it has ended.
    None,
    /// After so many bytes.
    Length(u64),
    /// With the last chunk.
    Chunked(Chunks),
    /// When the connection ends.
    UntilClose,
}

/// Where in a chunked body one is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Chunks {
    at: At,
    /// Of the size that is being read, or of the chunk that is.
    size: u64,
    digits: u8,
    /// Bytes of lines since the last data.
    line_bytes: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
    Size,
    Extension,
    SizeLineFeed,
    Data,
    DataReturn,
    DataLineFeed,
    /// At the start of a line behind the last chunk.
    Trailer,
    TrailerLine,
    TrailerLineFeed,
    LastLineFeed,
}

impl Framing {
    pub(super) const CHUNKED: Self =
        Self::Chunked(Chunks { at: At::Size, size: 0, digits: 0, line_bytes: 0 });

    pub(super) fn length(length: u64) -> Self {
        if length == 0 { Self::None } else { Self::Length(length) }
    }

    /// How many of these bytes belong to the body. It is `None` afterwards if they end it.
    ///
    /// # Errors
    /// The chunks are not what chunks are.
    pub(super) fn take(&mut self, bytes: &[u8]) -> Result<usize, &'static str> {
        match self {
            Self::None => Ok(0),
            Self::UntilClose => Ok(bytes.len()),
            Self::Length(left) => {
                let taken = bytes.len().min(usize::try_from(*left).unwrap_or(usize::MAX));
                *self = Self::length(left.saturating_sub(u64::try_from(taken).unwrap_or(u64::MAX)));
                Ok(taken)
            }
            Self::Chunked(chunks) => {
                let mut taken = 0;
                while let Some(rest) = bytes.get(taken..).filter(|rest| !rest.is_empty()) {
                    let (step, has_ended) = chunks.step(rest)?;
                    taken += step;
                    if has_ended {
                        *self = Self::None;
                        break;
                    }
                }
                Ok(taken)
            }
        }
    }
}

impl Chunks {
    /// Takes one byte, or as much of a chunk's data as there is; whether the body ends there.
    fn step(&mut self, rest: &[u8]) -> Result<(usize, bool), &'static str> {
        let Some(&byte) = rest.first() else { return Ok((0, false)) };
        if self.at == At::Data {
            let taken = rest.len().min(usize::try_from(self.size).unwrap_or(usize::MAX));
            self.size = self.size.saturating_sub(u64::try_from(taken).unwrap_or(u64::MAX));
            if self.size == 0 {
                self.at = At::DataReturn;
            }
            return Ok((taken, false));
        }
        self.line_bytes += 1;
        if self.line_bytes > LINES_BYTES_MAX {
            return Err("the lines between chunks are too long");
        }
        self.at = match (self.at, byte) {
            (At::Size, digit) if digit.is_ascii_hexdigit() => {
                self.digits += 1;
                if self.digits > SIZE_DIGITS_MAX {
                    return Err("a chunk of more than 64 bits");
                }
                let digit = char::from(digit).to_digit(16).unwrap_or(0);
                self.size = (self.size << 4) | u64::from(digit);
                At::Size
            }
            (At::Size, b'\r') if self.digits > 0 => At::SizeLineFeed,
            (At::Size, b';') if self.digits > 0 => At::Extension,
            (At::Extension, b'\r') => At::SizeLineFeed,
            (At::Extension, other) if is_text(other) => At::Extension,
            (At::SizeLineFeed, b'\n') if self.size == 0 => At::Trailer,
            (At::SizeLineFeed, b'\n') => At::Data,
            (At::DataReturn, b'\r') => At::DataLineFeed,
            (At::DataLineFeed, b'\n') => {
                *self = Self { at: At::Size, size: 0, digits: 0, line_bytes: 0 };
                At::Size
            }
            (At::Trailer, b'\r') => At::LastLineFeed,
            (At::Trailer | At::TrailerLine, other) if is_text(other) => At::TrailerLine,
            (At::TrailerLine, b'\r') => At::TrailerLineFeed,
            (At::TrailerLineFeed, b'\n') => At::Trailer,
            (At::LastLineFeed, b'\n') => return Ok((1, true)),
            _ => return Err("the chunks of the body are not what chunks are"),
        };
        Ok((1, false))
    }
}

/// What stands in a line.
fn is_text(byte: u8) -> bool {
    byte == b'\t' || (byte >= b' ' && byte != 0x7f)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ends_at(body: &[u8], step: usize) -> Result<Option<usize>, &'static str> {
        let mut framing = Framing::CHUNKED;
        let mut taken = 0;
        for part in body.chunks(step.max(1)) {
            let now = framing.take(part)?;
            taken += now;
            if framing == Framing::None {
                return Ok(Some(taken));
            }
            assert_eq!(now, part.len());
        }
        Ok(None)
    }

    #[test]
    fn chunks_end_where_they_end_however_they_arrive() {
        for (body, end) in [
            (&b"0\r\n\r\nGET"[..], Some(5)),
            (b"3\r\nabc\r\n0\r\n\r\nGET /", Some(13)),
            (b"3;name=\"v\"\r\n\r\n\n\r\n0A\r\n0123456789\r\n0\r\nX: y\r\n\r\nmore", Some(44)),
            (b"3\r\nabc\r\n", None),
        ] {
            for step in 1..body.len() {
                assert_eq!(ends_at(body, step), Ok(end), "{}", String::from_utf8_lossy(body));
            }
        }
    }

    #[test]
    fn chunks_that_could_be_read_in_two_ways_are_refused() {
        for body in [
            &b"3\nabc\r\n"[..],
            b"\r\n",
            b"x\r\n",
            b"+3\r\n",
            b"0x3\r\n",
            b" 3\r\n",
            b"3 \r\n",
            b"-1\r\n",
            b";a\r\n",
            b"3\r\nabcd",
            b"3\r\nabc\n",
            b"0\r\n\n",
            b"0\r\nX: y\n\r\n",
            b"3;a\nb\r\n",
            b"3;a\rb\r\n",
            b"3\r\rabc",
            b"00000000000000003\r\n",
        ] {
            assert!(ends_at(body, body.len()).is_err(), "{}", String::from_utf8_lossy(body));
        }
        assert!(ends_at(&[b"3;".as_slice(), &[b'a'; 9000]].concat(), 100).is_err());
    }

    #[test]
    fn a_length_is_counted_down() {
        let mut framing = Framing::length(5);
        assert_eq!((framing.take(b"abc"), framing.take(b"defgh")), (Ok(3), Ok(2)));
        assert_eq!((framing.take(b"x"), framing), (Ok(0), Framing::None));
    }

    proptest! {
        #[test]
        fn how_bytes_are_cut_changes_nothing(body in proptest::collection::vec(
            prop_oneof![Just(b'\r'), Just(b'\n'), Just(b'0'), Just(b'2'), Just(b';'), any::<u8>()], 1..60), step in 1usize..9) {
            prop_assert_eq!(ends_at(&body, step), ends_at(&body, body.len()));
        }
    }
}
