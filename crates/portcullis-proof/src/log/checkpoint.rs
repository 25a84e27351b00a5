//! Checkpoints: what a log says of its tree, as the text of a signed note (C2SP `tlog-checkpoint`).
//!
//! ```text
//! logs.example.com/gate            the origin: which log
//! 20852163                         how many leaves
//! CsUYapGGPo4dkMgIAUqom/Xajj7h...  the root over them
//! ```

use crate::chain::Digest;
use crate::log::key::NoteSigner;
use crate::log::note::{NOTE_BYTES_MAX, Note, SignError, sign_note, signature_lines};
use crate::log::text::{TextError, TextLines, base64_text, decimal, hash};
use crate::log::tree::{TREE_SIZE_MAX, TreeHead, empty_root};
use crate::trust::check_origin;

/// The longest text of a checkpoint in bytes.
pub const CHECKPOINT_BYTES_MAX: usize = 16 << 10;

/// The most extension lines that are read. This log writes none, because they cannot be audited.
pub const EXTENSIONS_MAX: usize = 16;

/// A tree of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkpoint {
    origin: String,
    head: TreeHead,
    extensions: Vec<String>,
}

impl Checkpoint {
    /// The checkpoint of a tree.
    ///
    /// # Errors
    /// When the origin cannot be one, the size is that of no tree, or an empty tree has another root than its own.
    pub fn new(origin: &str, head: TreeHead) -> Result<Checkpoint, String> {
        check_origin(origin)?;
        check_head(head)?;
        Ok(Checkpoint { origin: origin.to_owned(), head, extensions: Vec::new() })
    }

    /// Reads the text of a note.
    ///
    /// # Errors
    /// The first line that is not as the format says.
    pub fn parse(text: &str) -> Result<Checkpoint, TextError> {
        Checkpoint::read(text.as_bytes())
    }

    fn read(text: &[u8]) -> Result<Checkpoint, TextError> {
        let mut lines = TextLines::new(text, CHECKPOINT_BYTES_MAX)?;
        let (place, origin) = lines.expect("the origin")?;
        check_origin(origin).map_err(|message| place.error(message))?;
        let (place, size) = lines.expect("the size of the tree")?;
        let size = decimal(size).map_err(|message| place.error(message))?;
        let (place, root) = lines.expect("the root of the tree")?;
        let root = hash(root).map_err(|message| place.error(message))?;
        let head = TreeHead { size, root };
        check_head(head).map_err(|message| place.error(message))?;
        let mut extensions = Vec::new();
        while let Some((place, line)) = lines.next_text()? {
            if line.is_empty() || extensions.len() == EXTENSIONS_MAX {
                let message = format!("at most {EXTENSIONS_MAX} extension lines, none of them empty");
                return Err(place.error(message));
            }
            extensions.push(line.to_owned());
        }
        Ok(Checkpoint { origin: origin.to_owned(), head, extensions })
    }

    /// Reads a note and the checkpoint in it. Neither is to be believed before its signatures are verified.
    ///
    /// # Errors
    /// The first line, from the top, that is not as the formats say.
    pub fn from_note(bytes: &[u8]) -> Result<(Note<'_>, Checkpoint), TextError> {
        let mut lines = TextLines::new(bytes, NOTE_BYTES_MAX)?;
        // No line of a checkpoint is empty, so the first empty line is the one before the signatures.
        let end = bytes.windows(2).position(|pair| pair == b"\n\n").map_or(bytes.len(), |end| end + 1);
        let text = bytes.get(..end).unwrap_or_default();
        let checkpoint = Checkpoint::read(text)?;
        while lines.place().byte < text.len() as u64 {
            lines.next_text()?;
        }
        match lines.next_text()? {
            Some(_) => {}
            None => return Err(lines.place().error("the text ends where an empty line belongs")),
        }
        let place = lines.place();
        signature_lines(lines.rest()).map_err(|error| error.within(place))?;
        Ok((Note::parse(bytes)?, checkpoint))
    }

    /// Signs the checkpoint. The caller has made sure that no other tree of its origin and size was signed before.
    ///
    /// # Errors
    /// When no signer is of the type that signs notes.
    pub fn sign(&self, signers: &[&NoteSigner]) -> Result<String, SignError> {
        sign_note(&self.text(), signers)
    }

    /// The text of the note.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = format!("{}\n{}\n{}\n", self.origin, self.head.size, base64_text(&self.head.root.0));
        for line in &self.extensions {
            text.push_str(line);
            text.push('\n');
        }
        text
    }

    /// Which log.
    #[must_use]
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// Its tree.
    #[must_use]
    pub fn head(&self) -> TreeHead {
        self.head
    }

    /// The number of leaves.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.head.size
    }

    /// The root.
    #[must_use]
    pub fn root(&self) -> Digest {
        self.head.root
    }
}

fn check_head(head: TreeHead) -> Result<(), String> {
    if head.size > TREE_SIZE_MAX {
        return Err(format!("a tree has at most {TREE_SIZE_MAX} leaves"));
    }
    if head.size == 0 && head.root != empty_root() {
        return Err("a tree without leaves has the hash of nothing as its root".to_owned());
    }
    Ok(())
}
