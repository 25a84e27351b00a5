//! The trust file: what the verifier believes already.
//!
//! It is never part of an export. An export that names its own trust proves only that it agrees with itself.
//!
//! ```text
//! portcullis-trust/v1
//! origin <origin>
//! head <run> <count> <link>
//! ```

use std::collections::HashMap;

use crate::chain::{Digest, Id};
use crate::report::Head;

/// The first line of a trust file.
pub const TRUST_FORMAT: &str = "portcullis-trust/v1";

/// The most heads in one trust file.
pub const TRUST_HEADS_MAX: usize = 1 << 20;

/// The longest origin in bytes.
pub const ORIGIN_BYTES_MAX: usize = 256;

/// An origin and the heads that are believed of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Trust {
    origin: String,
    heads: HashMap<Id, Vec<Head>>,
}

/// Why a text is not a trust file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line} of the trust file: {message}")]
pub struct TrustError {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub message: String,
}

impl Trust {
    /// Reads a trust file.
    ///
    /// # Errors
    /// The first line that is not as the format says.
    pub fn parse(text: &str) -> Result<Trust, TrustError> {
        Trust::parse_within(text, TRUST_HEADS_MAX)
    }

    fn parse_within(text: &str, heads_max: usize) -> Result<Trust, TrustError> {
        let mut trust = Trust::default();
        let mut origin = None;
        let mut heads = 0usize;
        let mut first = true;
        for (index, line) in text.lines().enumerate() {
            let fail = |message: String| TrustError { line: index + 1, message };
            if line.starts_with('#') || line.is_empty() {
                continue;
            }
            if std::mem::take(&mut first) {
                if line != TRUST_FORMAT {
                    return Err(fail(format!("expected `{TRUST_FORMAT}`")));
                }
            } else if let Some(name) = line.strip_prefix("origin ") {
                if origin.is_some() {
                    return Err(fail("a second origin; use one trust file per origin".to_owned()));
                }
                check_origin(name).map_err(fail)?;
                origin = Some(name.to_owned());
            } else if let Some(rest) = line.strip_prefix("head ") {
                heads += 1;
                if heads > heads_max {
                    return Err(fail(format!("more than {heads_max} heads")));
                }
                let (run, head) = parse_head(rest).map_err(fail)?;
                trust.heads.entry(run).or_default().push(head);
            } else {
                return Err(fail("expected `origin NAME` or `head RUN COUNT LINK`".to_owned()));
            }
        }
        trust.origin = origin.ok_or_else(|| TrustError {
            line: text.lines().count(),
            message: format!("the file ends without `{}`", if first { TRUST_FORMAT } else { "origin NAME" }),
        })?;
        for heads in trust.heads.values_mut() {
            heads.sort_by_key(|head| head.count);
        }
        Ok(trust)
    }

    /// The origin.
    #[must_use]
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// The heads of one run, by count.
    #[must_use]
    pub fn heads(&self, run: Id) -> &[Head] {
        self.heads.get(&run).map_or(&[], Vec::as_slice)
    }
}

/// Whether a name can be in a trust file.
///
/// # Errors
/// A text that says what is wrong with it.
pub fn check_origin(name: &str) -> Result<(), String> {
    if name.is_empty() || name.len() > ORIGIN_BYTES_MAX {
        return Err(format!("an origin has 1 to {ORIGIN_BYTES_MAX} bytes"));
    }
    if name.chars().any(|c| c.is_whitespace() || c.is_control()) {
        return Err("an origin has no white space and no control characters".to_owned());
    }
    Ok(())
}

fn parse_head(text: &str) -> Result<(Id, Head), String> {
    let mut words = text.split(' ');
    let (Some(run), Some(count), Some(link), None) = (words.next(), words.next(), words.next(), words.next())
    else {
        return Err("expected `head RUN COUNT LINK`, one space between".to_owned());
    };
    let run = run.parse().map_err(|error| format!("run `{run}`: {error}"))?;
    let number: u64 = count.parse().map_err(|_| format!("count `{count}`: expected a whole number"))?;
    if number == 0 || number.to_string() != count {
        return Err(format!("count `{count}`: expected a whole number from 1 without leading zeros"));
    }
    let link: Digest = link.parse().map_err(|error| format!("link `{link}`: {error}"))?;
    Ok((run, Head { count: number, link }))
}

/// The line of a trust file that states a head, without newline.
#[must_use]
pub fn head_line(run: Id, head: Head) -> String {
    format!("head {run} {} {}", head.count, head.link)
}

/// The lines with which a trust file starts, each with its newline.
#[must_use]
pub fn preamble(origin: &str) -> String {
    format!("{TRUST_FORMAT}\norigin {origin}\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chain::Hex;

    #[test]
    fn reads_what_it_writes() {
        let (run, head) = (Hex([1; 16]), Head { count: 7, link: Hex([2; 32]) });
        let text = format!("# kept by audit\n{}{}\n", preamble("portcullis/test"), head_line(run, head));
        let trust = Trust::parse(&text).unwrap();
        assert_eq!(trust.origin(), "portcullis/test");
        assert_eq!(trust.heads(run), [head]);
        assert_eq!(trust.heads(Hex([3; 16])), []);
    }

    #[test]
    fn names_the_bad_line() {
        let good = preamble("o");
        let zeros = "0".repeat(64);
        let run = "0".repeat(32);
        for (text, line, message) in [
            (String::new(), 0, "ends without `portcullis-trust/v1`"),
            ("portcullis-trust/v1\n".to_owned(), 1, "ends without `origin NAME`"),
            ("portcullis-trust/v2\n".to_owned(), 1, "expected `portcullis-trust/v1`"),
            (format!("{good}origin p\n"), 3, "second origin"),
            (format!("{good}#\nhead x\n"), 4, "expected `head RUN COUNT LINK`"),
            (format!("{good}head {run} 01 {zeros}\n"), 3, "without leading zeros"),
            (format!("{good}head {run} 0 {zeros}\n"), 3, "from 1"),
            (format!("{good}head {run} +1 {zeros}\n"), 3, "without leading zeros"),
            (format!("{good}head {run} 1 {zeros}0\n"), 3, "64 lower-case hexadecimal digits"),
            (format!("{good}head {run} 1 {zeros} \n"), 3, "one space between"),
            (format!("{good}tail\n"), 3, "expected `origin NAME`"),
            ("portcullis-trust/v1\norigin a b\n".to_owned(), 2, "no white space"),
        ] {
            let error = Trust::parse(&text).unwrap_err();
            assert_eq!(error.line, line, "{text}");
            assert!(error.message.contains(message), "{text}: {error}");
        }
    }

    #[test]
    fn so_many_heads_are_read() {
        let heads = |count: u64| {
            let head = |count| head_line(Hex([1; 16]), Head { count, link: Hex([2; 32]) }) + "\n";
            preamble("o") + &(1..=count).map(head).collect::<String>()
        };
        assert_eq!(Trust::parse_within(&heads(3), 3).unwrap().heads(Hex([1; 16])).len(), 3);
        let error = Trust::parse_within(&heads(4), 3).unwrap_err();
        assert_eq!((error.line, error.message.as_str()), (6, "more than 3 heads"));
    }
}
