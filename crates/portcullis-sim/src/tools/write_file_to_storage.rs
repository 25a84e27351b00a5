//! `write_file_to_storage`: writes a text file below `storage/`.
//!
//! The name is a relative path with `/` between its parts. It cannot lead outside: `..`, absolute
//! paths and backslashes are refused by their text, and a symbolic link is refused wherever one stands
//! on the way, even if it points back inside. A file is replaced by renaming a finished one over it,
//! so a reader sees the old content or the new, never half of either, and a link put in the file's
//! place at the last moment is replaced rather than followed. What remains is another process that
//! swaps a *folder* for a link between the check and the rename; whoever can do that can write there
//! without this tool.
//!
//! Result: `{"file", "bytes", "replaced"}`.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::json;

use super::workspace::{ensure_folder, io_error, kind_of};
use super::{ArgumentSpec, Arguments, Tool, ToolError, ToolOutput, Workspace};

/// Longest name, in bytes.
const MAX_NAME_BYTES: usize = 512;
/// Longest part of a name, in bytes: what common file systems take.
const MAX_PART_BYTES: usize = 255;
/// Most parts of a name.
const MAX_PARTS: usize = 8;
/// Largest file, in bytes.
const MAX_CONTENT_BYTES: usize = 1024 * 1024;
/// Most files and folders in the storage.
const MAX_ENTRIES: usize = 2_000;
/// Most bytes in the storage.
const MAX_STORED_BYTES: u64 = 64 * 1024 * 1024;

pub(super) static TOOL: Tool = Tool {
    id: "write_file_to_storage",
    name: "Write File to Storage",
    description: "Write a text file below the storage folder; an existing file of that name is replaced.",
    read_only: false,
    destructive: true,
    idempotent: true,
    arguments: &[
        ArgumentSpec {
            name: "filename",
            description: "A relative path such as `reports/march.md`.",
            max_bytes: MAX_NAME_BYTES,
        },
        ArgumentSpec { name: "content", description: "The text to store.", max_bytes: MAX_CONTENT_BYTES },
    ],
    run,
};

fn run(workspace: &Workspace, arguments: &Arguments<'_>) -> Result<ToolOutput, ToolError> {
    let name = arguments.text("filename")?;
    let content = arguments.text("content")?;
    let refuse = |problem: &str| Err(arguments.refuse("filename", problem.to_owned()));
    let parts = match parts(name) {
        Ok(parts) => parts,
        Err(problem) => return refuse(problem),
    };

    let _writing = workspace.lock_writing();
    let storage = workspace.storage();
    let target: PathBuf = parts.iter().fold(storage.clone(), |path, part| path.join(part));
    let Some((_, folders)) = parts.split_last() else { return refuse("is empty") };
    // Links are looked for before anything is made, so that a refused call leaves no folders behind.
    let mut folder = storage.clone();
    for part in folders {
        folder.push(part);
        match kind_of(&folder)? {
            Some(kind) if kind.is_symlink() => return refuse("leads over a symbolic link; write elsewhere"),
            Some(kind) if !kind.is_dir() => return refuse("leads through a file as if it were a folder"),
            _ => {}
        }
    }
    let replaced = match kind_of(&target)? {
        None => false,
        Some(kind) if kind.is_file() => true,
        Some(kind) if kind.is_symlink() => return refuse("is a symbolic link; choose another name"),
        Some(_) => return refuse("is a folder; choose another name"),
    };
    // A new file may bring its folders with it; a replaced one is counted twice, on the safe side.
    check_room(&storage, parts.len(), content.len())?;

    let mut folder = storage;
    for part in folders {
        folder.push(part);
        ensure_folder(&folder)?;
    }
    let unfinished = workspace.write_temporary(content.as_bytes())?;
    if let Err(error) = fs::rename(&unfinished, &target) {
        let _ = fs::remove_file(&unfinished);
        return Err(io_error("write", &target, error));
    }
    let file = format!("storage/{}", parts.join("/"));
    let did = if replaced { "replaced" } else { "wrote" };
    Ok(ToolOutput {
        text: format!("{did} {file} ({} bytes)", content.len()),
        structured: json!({"file": file, "bytes": content.len(), "replaced": replaced}),
    })
}

/// The parts of the path `name`, or what is wrong with it.
fn parts(name: &str) -> Result<Vec<&str>, &'static str> {
    let parts: Vec<&str> = name.split('/').collect();
    if name.starts_with('/') {
        return Err("is an absolute path; name a file relative to the storage");
    }
    if parts.len() > MAX_PARTS {
        return Err("has more than 8 parts; use fewer folders");
    }
    for part in &parts {
        if part.is_empty() {
            return Err("has an empty part; name a file");
        }
        if *part == "." || *part == ".." {
            return Err("holds `.` or `..` as a part, which could lead outside the storage");
        }
        if part.len() > MAX_PART_BYTES {
            return Err("has a part of more than 255 bytes");
        }
        // A backslash or colon separates parts, or names a drive or a stream, on some systems.
        if part.chars().any(|c| c.is_control() || c == '\\' || c == ':') {
            return Err(
                "holds a control character, a backslash or a colon; use letters, digits, `-`, `_` and `.`",
            );
        }
    }
    Ok(parts)
}

/// Checks that `entries` more files and folders and `bytes` more bytes fit into the storage.
fn check_room(storage: &Path, entries: usize, bytes: usize) -> Result<(), ToolError> {
    let full = |limit: String| ToolError::Limit {
        what: "the storage",
        limit,
        remedy: "write less, or remove files from it",
    };
    let mut entries = entries;
    let mut stored = bytes as u64;
    let mut folders = vec![storage.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).map_err(|error| io_error("list", &folder, error))? {
            let entry = entry.map_err(|error| io_error("list", &folder, error))?;
            let metadata = entry.metadata().map_err(|error| io_error("look at", &entry.path(), error))?;
            entries += 1;
            stored = stored.saturating_add(metadata.len());
            if metadata.is_dir() {
                folders.push(entry.path());
            }
            if entries > MAX_ENTRIES {
                return Err(full(format!("{MAX_ENTRIES} files and folders")));
            }
        }
    }
    if stored > MAX_STORED_BYTES {
        return Err(full(format!("{MAX_STORED_BYTES} bytes")));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn workspace() -> (tempfile::TempDir, Workspace) {
        let dir = tempfile::tempdir().unwrap();
        let workspace = Workspace::create(&dir.path().join("work"), &BTreeMap::new()).unwrap();
        (dir, workspace)
    }

    fn write(workspace: &Workspace, filename: &str, content: &str) -> Result<ToolOutput, ToolError> {
        workspace.call(TOOL.id, &json!({"filename": filename, "content": content}))
    }

    #[test]
    fn writes_and_replaces() {
        let (_dir, workspace) = workspace();
        let first = write(&workspace, "reports/2026/march.md", "one").unwrap();
        assert_eq!(
            first.structured,
            json!({"file": "storage/reports/2026/march.md", "bytes": 3, "replaced": false})
        );
        let second = write(&workspace, "reports/2026/march.md", "two!").unwrap();
        assert_eq!(second.text, "replaced storage/reports/2026/march.md (4 bytes)");
        assert_eq!(fs::read_to_string(workspace.storage().join("reports/2026/march.md")).unwrap(), "two!");
        assert_eq!(fs::read_dir(workspace.root().join("tmp")).unwrap().count(), 0);
    }

    #[test]
    fn no_name_leads_outside() {
        let (dir, workspace) = workspace();
        let long_part = "x".repeat(256);
        let deep = "d/".repeat(8) + "f";
        for name in [
            "",
            "/",
            "/etc/passwd",
            "../escaped",
            "a/../../escaped",
            "..",
            ".",
            "a/./b",
            "a//b",
            "a/",
            "a\\..\\b",
            "C:evil",
            "a\0b",
            "a\nb",
            long_part.as_str(),
            deep.as_str(),
        ] {
            let error = write(&workspace, name, "x").unwrap_err();
            assert!(matches!(error, ToolError::Argument { .. }), "{name:?}: {error}");
        }
        assert_eq!(fs::read_dir(workspace.storage()).unwrap().count(), 0);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[cfg(unix)]
    #[test]
    fn symbolic_links_are_not_followed() {
        let (dir, workspace) = workspace();
        let outside = dir.path().join("outside");
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("victim"), "untouched").unwrap();
        std::os::unix::fs::symlink(&outside, workspace.storage().join("link")).unwrap();
        std::os::unix::fs::symlink(outside.join("victim"), workspace.storage().join("file")).unwrap();
        std::os::unix::fs::symlink(outside.join("new"), workspace.storage().join("dangling")).unwrap();
        for name in ["link/victim", "link/new", "link/sub/new", "link", "file", "dangling"] {
            let error = write(&workspace, name, "x").unwrap_err().to_string();
            assert!(error.contains("symbolic link"), "{name}: {error}");
        }
        assert_eq!(fs::read_to_string(outside.join("victim")).unwrap(), "untouched");
        assert_eq!(fs::read_dir(&outside).unwrap().count(), 1);
    }

    #[test]
    fn files_and_folders_do_not_stand_in_for_each_other() {
        let (_dir, workspace) = workspace();
        write(&workspace, "a/b", "x").unwrap();
        assert!(write(&workspace, "a", "x").unwrap_err().to_string().contains("is a folder"));
        assert!(write(&workspace, "a/b/c", "x").unwrap_err().to_string().contains("leads through a file"));
    }

    #[test]
    fn sizes_are_limited() {
        let (_dir, workspace) = workspace();
        assert!(write(&workspace, "most", &"x".repeat(MAX_CONTENT_BYTES)).is_ok());
        assert!(write(&workspace, "more", &"x".repeat(MAX_CONTENT_BYTES + 1)).is_err());
        let large = fs::File::create(workspace.storage().join("large")).unwrap();
        large.set_len(MAX_STORED_BYTES - MAX_CONTENT_BYTES as u64 - 5).unwrap();
        assert!(write(&workspace, "fits", "12345").is_ok());
        let error = write(&workspace, "fits-not", "1").unwrap_err().to_string();
        assert_eq!(error, "the storage is limited to 67108864 bytes; write less, or remove files from it");
        assert!(check_room(&workspace.storage(), MAX_ENTRIES, 0).is_err());
    }
}
