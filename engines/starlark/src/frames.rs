//! Messages: four bytes of length, the least significant first, then JSON.

use std::io::{self, Read, Write};

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Largest message that is read. The gate sends none that is larger.
const BYTES_MAX: usize = 4 << 20;

/// What the gate asks.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) enum Asked {
    /// Reads a module, which the programs of a set and later modules may load.
    Module(LoadModule),
    /// Reads a program, which belongs to a set.
    Load(Load),
    /// Runs all programs of a set.
    Check(Check),
    /// Forgets a set.
    Forget(Forget),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Load {
    pub(crate) set: String,
    pub(crate) program: String,
    pub(crate) file: String,
    pub(crate) source: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LoadModule {
    pub(crate) set: String,
    pub(crate) file: String,
    pub(crate) source: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Check {
    pub(crate) set: String,
    pub(crate) input: Value,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Forget {
    pub(crate) set: String,
}

/// What is answered.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Said {
    /// Once, at the beginning.
    Ready(Ready),
    /// A program or module was read, with its mistakes.
    Loaded(Vec<Mistake>),
    /// What the programs of a set say.
    Checked(Answer),
    /// A set was forgotten.
    Forgotten,
}

#[derive(Debug, Serialize)]
pub(crate) struct Ready {
    pub(crate) protocol: u32,
    pub(crate) engine: &'static str,
    pub(crate) version: &'static str,
}

/// A mistake in a program, with its bytes.
#[derive(Debug, Serialize)]
pub(crate) struct Mistake {
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) message: String,
}

#[derive(Debug, Default, Serialize)]
pub(crate) struct Answer {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) objections: Vec<Objection>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) failures: Vec<Failure>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Objection {
    pub(crate) program: String,
    pub(crate) says: String,
    pub(crate) reasons: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) denied: Vec<String>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Failure {
    pub(crate) program: String,
    pub(crate) why: String,
}

/// The next message, or `None` at the end.
pub(crate) fn read(from: &mut impl Read, buffer: &mut Vec<u8>) -> io::Result<Option<Asked>> {
    let mut length = [0; 4];
    if let Err(error) = from.read_exact(&mut length) {
        return if error.kind() == io::ErrorKind::UnexpectedEof { Ok(None) } else { Err(error) };
    }
    let length = u32::from_le_bytes(length) as usize;
    if length > BYTES_MAX {
        return Err(io::Error::other("a message is too long"));
    }
    buffer.clear();
    buffer.resize(length, 0);
    from.read_exact(buffer)?;
    Ok(Some(serde_json::from_slice(buffer)?))
}

/// Writes a message in one go.
pub(crate) fn write(to: &mut impl Write, said: &Said, buffer: &mut Vec<u8>) -> io::Result<()> {
    buffer.clear();
    buffer.extend([0; 4]);
    serde_json::to_writer(&mut *buffer, said)?;
    let length = u32::try_from(buffer.len().saturating_sub(4)).map_err(io::Error::other)?;
    if let Some(head) = buffer.get_mut(..4) {
        head.copy_from_slice(&length.to_le_bytes());
    }
    to.write_all(buffer)?;
    to.flush()
}
