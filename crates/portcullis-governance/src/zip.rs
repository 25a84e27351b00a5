//! The archive of a pack: the same files make the same bytes.

use std::io::{Cursor, Write as _};

use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, ZipWriter};

/// A file by its name.
pub type Named = (String, Vec<u8>);

/// Why an archive could not be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write `{name}` into the archive: {message}")]
pub struct ZipError {
    /// The file.
    pub name: String,
    /// Why.
    pub message: String,
}

/// Packs files in their order.
///
/// # Errors
/// When one cannot be packed.
pub fn write(files: &[Named]) -> Result<Vec<u8>, ZipError> {
    let options = SimpleFileOptions::default()
        .compression_method(CompressionMethod::Deflated)
        .last_modified_time(DateTime::default())
        .unix_permissions(0o644);
    let failed = |name: &str, error: &dyn std::fmt::Display| ZipError {
        name: name.to_owned(),
        message: error.to_string(),
    };
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in files {
        archive.start_file(name.as_str(), options).map_err(|error| failed(name, &error))?;
        archive.write_all(bytes).map_err(|error| failed(name, &error))?;
    }
    Ok(archive.finish().map_err(|error| failed("the end of the archive", &error))?.into_inner())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_files_make_the_same_bytes() {
        let files = vec![("a.json".to_owned(), b"{}".to_vec()), ("log/b.leaf".to_owned(), vec![7; 1_000])];
        let archive = write(&files).unwrap();
        assert_eq!(archive, write(&files).unwrap());
        assert!(archive.len() < 600, "{}", archive.len());
        assert!(write(&[files[0].clone(), files[0].clone()]).is_err(), "no file twice");
    }
}
