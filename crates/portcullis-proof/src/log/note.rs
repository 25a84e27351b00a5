//! Signed notes: a text and the lines of those who signed it (C2SP `signed-note`).
//!
//! ```text
//! <text, ends in a newline>
//! <empty line>
//! — <key name> base64(<key id> || <signature>)        one line a signature
//! ```
//!
//! Reading a note believes nothing. [`Note::verify`] takes the keys that are trusted: signatures of other keys are
//! ignored, no matter who they claim to be of, and one of a trusted key that does not hold condemns the whole note.

use crate::log::key::{KeyKind, NoteSigner, TimeOutside, VerifierKey, check_name};
use crate::log::text::{Place, TextError, TextLines, base64_bytes, base64_text};

/// The longest note in bytes.
pub const NOTE_BYTES_MAX: usize = 256 << 10;

/// The most signatures of one note.
pub const NOTE_SIGNATURES_MAX: usize = 64;

/// One signature line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoteSignature<'a> {
    /// The name of the key.
    pub name: &'a str,
    /// The id of the key.
    pub key_id: u32,
    /// What follows the id: for an unknown key anything.
    pub signature: Vec<u8>,
    /// Where the line starts.
    place: Place,
}

impl NoteSignature<'_> {
    /// The line, with its newline.
    #[must_use]
    pub fn line(&self) -> String {
        let bytes = [&self.key_id.to_be_bytes()[..], &self.signature].concat();
        format!("— {} {}\n", self.name, base64_text(&bytes))
    }
}

/// A note whose signatures nobody has checked yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note<'a> {
    text: &'a str,
    signatures: Vec<NoteSignature<'a>>,
}

impl std::fmt::Display for Note<'_> {
    /// The note as a file.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "{}", self.text)?;
        self.signatures.iter().try_for_each(|signature| f.write_str(&signature.line()))
    }
}

/// A signature that holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Signed<'k> {
    /// The key.
    pub key: &'k VerifierKey,
    /// The time that a cosignature states, in seconds since 1970.
    pub time: Option<u64>,
}

/// Why the signatures of a note do not make it trusted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoteError {
    /// A signature of a trusted key does not hold.
    #[error("line {line}, byte {byte}: the signature of `{name}` does not hold")]
    Forged {
        /// The line of the note, from 1.
        line: u64,
        /// The offset of the line in the note.
        byte: u64,
        /// The name of the key.
        name: String,
    },
    /// No trusted key signed.
    #[error("no trusted key signed the note; it is signed by {names}")]
    Unsigned {
        /// Who signed.
        names: String,
    },
}

impl<'a> Note<'a> {
    /// Reads a note.
    ///
    /// # Errors
    /// The first line that is not as the format says.
    pub fn parse(bytes: &'a [u8]) -> Result<Note<'a>, TextError> {
        let mut lines = TextLines::new(bytes, NOTE_BYTES_MAX)?;
        // The last empty line separates; whatever stands before it is text.
        let mut separator = None;
        while let Some((place, line)) = lines.next_text()? {
            if line.is_empty() && place.line > 1 {
                separator = Some(place);
            }
        }
        let Some(separator) = separator else {
            return Err(lines
                .place()
                .error("the note has no empty line between its text and its signatures"));
        };
        let text = std::str::from_utf8(bytes).unwrap_or_default();
        let Some((text, rest)) = text.split_at_checked(separator.byte as usize) else {
            return Err(separator.error("the note is not UTF-8"));
        };
        let signatures = signature_lines(rest.strip_prefix('\n').unwrap_or(rest).as_bytes())
            .map_err(|error| error.within(Place { line: separator.line + 1, byte: separator.byte + 1 }))?
            .into_iter()
            .map(|mut signature| {
                signature.place.line += separator.line;
                signature.place.byte += separator.byte + 1;
                signature
            })
            .collect();
        Ok(Note { text, signatures })
    }

    /// The text, with its last newline. Not to be believed before [`Note::verify`].
    #[must_use]
    pub fn text(&self) -> &'a str {
        self.text
    }

    /// The signatures, as they stand.
    #[must_use]
    pub fn signatures(&self) -> &[NoteSignature<'a>] {
        &self.signatures
    }

    /// Checks every signature of a key in `keys`; the answer has each such key once, in the order of the note.
    ///
    /// # Errors
    /// When a signature of one of them does not hold, or none of them signed.
    pub fn verify<'k>(
        &self,
        keys: impl IntoIterator<Item = &'k VerifierKey> + Clone,
    ) -> Result<Vec<Signed<'k>>, NoteError> {
        let mut signed: Vec<Signed<'k>> = Vec::new();
        for signature in &self.signatures {
            let known = |key: &&VerifierKey| key.name() == signature.name && key.id() == signature.key_id;
            let Some(key) = keys.clone().into_iter().find(known) else { continue };
            let time = key.verify(self.text, &signature.signature).map_err(|_| NoteError::Forged {
                line: signature.place.line,
                byte: signature.place.byte,
                name: signature.name.to_owned(),
            })?;
            if !signed.iter().any(|before| before.key == key) {
                signed.push(Signed { key, time });
            }
        }
        if signed.is_empty() {
            return Err(self.unsigned());
        }
        Ok(signed)
    }

    /// The error that no trusted key signed.
    pub(super) fn unsigned(&self) -> NoteError {
        let names: Vec<_> =
            self.signatures.iter().take(8).map(|signature| format!("`{}`", signature.name)).collect();
        NoteError::Unsigned { names: names.join(", ") }
    }
}

/// Reads signature lines, as they end a note and as a witness answers; at least one.
///
/// # Errors
/// The first line that is not a signature line.
pub fn signature_lines(bytes: &[u8]) -> Result<Vec<NoteSignature<'_>>, TextError> {
    let mut lines = TextLines::new(bytes, NOTE_BYTES_MAX)?;
    let mut signatures = Vec::new();
    while let Some((place, line)) = lines.next_text()? {
        if signatures.len() == NOTE_SIGNATURES_MAX {
            return Err(place.error(format!("more than {NOTE_SIGNATURES_MAX} signatures")));
        }
        let parts = line.strip_prefix("— ").and_then(|rest| rest.split_once(' '));
        let (name, base64) = parts.ok_or_else(|| place.error("expected a signature, `— NAME BASE64`"))?;
        check_name(name).map_err(|error| place.error(error.to_string()))?;
        let bytes = base64_bytes(base64).map_err(|message| place.error(message))?;
        let Some((id, signature)) = bytes.split_first_chunk::<4>().filter(|(_, rest)| !rest.is_empty())
        else {
            return Err(place.error("a signature has a key id of 4 bytes and at least one byte after it"));
        };
        let (key_id, signature) = (u32::from_be_bytes(*id), signature.to_vec());
        signatures.push(NoteSignature { name, key_id, signature, place });
    }
    if signatures.is_empty() {
        return Err(lines.place().error("there is no signature"));
    }
    Ok(signatures)
}

/// Why a note could not be signed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SignError {
    /// The text cannot be that of a note.
    #[error("the text cannot be signed as a note: {0}")]
    Text(TextError),
    /// A cosignature cannot state the time.
    #[error(transparent)]
    Time(#[from] TimeOutside),
}

/// Signs a text, which ends in a newline and has no control character besides newlines, with keys of type `0x01`.
///
/// # Errors
/// When the text cannot be that of a note, or there is no signer of that type.
pub fn sign_note(text: &str, signers: &[&NoteSigner]) -> Result<String, SignError> {
    let mut note = format!("{text}\n");
    for signer in signers.iter().filter(|signer| signer.verifier().kind() == KeyKind::Ed25519) {
        note.push_str(&signer.sign(text, 0)?);
    }
    match Note::parse(note.as_bytes()) {
        Ok(parsed) if parsed.text == text => Ok(note),
        Ok(_) => Err(SignError::Text(Place::START.error("the text does not end in one newline"))),
        Err(error) => Err(SignError::Text(error)),
    }
}
