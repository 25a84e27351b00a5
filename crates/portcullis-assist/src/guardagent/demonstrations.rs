//! Demonstrations that users add: a folder of files, one example a file.
//!
//! ```toml
//! input = "Which drugs was patient 12 given?"
//! output = "db = LoadDB('medication')"
//! plan = """
//! 1. …
//! """
//! program = '''
//! def check(action, run, principal):
//!     …
//! '''
//! ```

use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::memory::{Example, Memory, MemoryError};
use crate::limits::{MAX_EXAMPLE_FILE_BYTES, MAX_MEMORIES};

/// Why demonstrations cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum DemonstrationError {
    /// The folder, or a file of it.
    #[error("cannot read the demonstrations `{}`: {source}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A file is of another form.
    #[error(
        "the demonstration `{}` cannot be read: {why}; it needs the texts `input`, `output`, `plan` and `program`",
        path.display()
    )]
    Form {
        /// Which.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// It does not go into a memory.
    #[error("the demonstration `{}`: {source}", path.display())]
    Memory {
        /// Which.
        path: PathBuf,
        /// Why.
        source: MemoryError,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    input: String,
    output: String,
    plan: String,
    program: String,
}

/// A memory of the files `*.toml` of a folder, in the order of their names.
///
/// # Errors
/// The folder or a file cannot be read, is of another form, or too large.
pub fn demonstrations(folder: &Path) -> Result<Memory, DemonstrationError> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| DemonstrationError::File { path, source }
    };
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed(folder))? {
        let path = entry.map_err(failed(folder))?.path();
        if path.extension().is_some_and(|ending| ending == "toml") {
            paths.push(path);
        }
        if paths.len() > MAX_MEMORIES {
            let source = std::io::Error::other(format!("more than {MAX_MEMORIES} files"));
            return Err(DemonstrationError::File { path: folder.to_owned(), source });
        }
    }
    paths.sort();
    let mut memory = Memory::new();
    for path in paths {
        let form = |why: String| DemonstrationError::Form { path: path.clone(), why };
        let mut text = String::new();
        let file = File::open(&path).map_err(failed(&path))?;
        file.take(MAX_EXAMPLE_FILE_BYTES + 1).read_to_string(&mut text).map_err(failed(&path))?;
        if text.len() as u64 > MAX_EXAMPLE_FILE_BYTES {
            return Err(form(format!("it has more than {MAX_EXAMPLE_FILE_BYTES} bytes")));
        }
        let name = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
        memory
            .add(demonstration(&name, &text).map_err(form)?)
            .map_err(|source| DemonstrationError::Memory { path: path.clone(), source })?;
    }
    Ok(memory)
}

/// One demonstration from the text of its file.
///
/// # Errors
/// It is of another form.
pub fn demonstration(name: &str, text: &str) -> Result<Example, String> {
    let Written { input, output, plan, program } =
        toml::from_str(text).map_err(|error| error.message().to_owned())?;
    Ok(Example { name: name.to_owned(), input, output, plan, program })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_of_files_becomes_a_memory_and_mistakes_have_their_place() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
        let good = "input = 'a'\noutput = 'b'\nplan = 'c'\nprogram = '''\nd\n'''\n";
        write("two.toml", good);
        write("one.toml", good);
        write("notes.md", "not one");
        let memory = demonstrations(folder.path()).unwrap();
        let names: Vec<&str> = memory.examples().map(|example| example.name.as_str()).collect();
        assert_eq!(names, ["one", "two"]);
        assert_eq!(memory.examples().next().unwrap().program, "d\n");

        write("three.toml", "input = 'a'\n");
        let error = demonstrations(folder.path()).unwrap_err().to_string();
        assert!(error.contains("three.toml") && error.contains("missing field `output`"), "{error}");
        write("three.toml", &good.replace("'a'", &format!("'{}'", "a".repeat(70_000))));
        let error = demonstrations(folder.path()).unwrap_err().to_string();
        assert!(error.contains("three.toml") && error.contains("65536"), "{error}");
    }
}
