//! What a call was to write into a file, and whether it is there.

use std::path::Path;

use serde_json::Value;

use super::place::Place;
use super::{NotPassed, file};

/// Arguments that hold what is written, by the names that tools for files give them.
const CONTENT: [&str; 13] = [
    "content",
    "contents",
    "data",
    "file_content",
    "file_text",
    "insert_text",
    "new_content",
    "new_str",
    "new_string",
    "new_text",
    "newText",
    "replacement",
    "text",
];
/// Texts of one call that are looked for.
const TEXTS_MAX: usize = 64;
/// Deepest nesting of arguments that is looked at.
const DEPTH_MAX: usize = 8;

/// What came of a look at a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Looked {
    /// All of it is there.
    Holds(String),
    /// Some of it is not.
    Broken(String),
    /// It cannot be known.
    NotChecked(String),
}

/// The texts that the arguments of a call write into a file, if they say so; `None` where they are too many.
#[must_use]
pub fn texts_written(arguments: &Value) -> Option<Vec<&str>> {
    let mut found = Vec::new();
    collect(arguments, 0, &mut found);
    (found.len() <= TEXTS_MAX).then_some(found)
}

fn collect<'v>(value: &'v Value, depth: usize, found: &mut Vec<&'v str>) {
    if depth > DEPTH_MAX || found.len() > TEXTS_MAX {
        return;
    }
    match value {
        Value::Object(map) => {
            for (name, value) in map {
                match value {
                    Value::String(text) if CONTENT.contains(&name.as_str()) => found.push(text),
                    _ => collect(value, depth + 1, found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, depth + 1, found)),
        _ => {}
    }
}

/// Looks whether a file in the folder in which the agent works has all of these texts in it. No link that leads out of the
/// folder is followed. Blocks.
#[must_use]
pub fn look(workspace: Option<&Path>, path: &str, texts: &[&str]) -> Looked {
    let Some(workspace) = workspace else {
        return Looked::NotChecked("nobody said in which folder of this machine the agent works".to_owned());
    };
    if !workspace.is_dir() {
        let folder = workspace.display();
        return Looked::NotChecked(format!(
            "the folder in which the agent works, `{folder}`, is not on this machine"
        ));
    }
    if !Path::new(path).starts_with(workspace) {
        return Looked::NotChecked("it is outside of the folder in which the agent works".to_owned());
    }
    let content = match (Place { workspace: Some(workspace) }).read(path) {
        Ok(content) => content,
        Err(NotPassed::Fail(why)) => return Looked::Broken(why),
        Err(NotPassed::Error(why) | NotPassed::Timeout(why)) => return Looked::NotChecked(why),
    };
    for text in texts.iter().filter(|text| !text.is_empty()) {
        match file::contains(&content, path, text) {
            Ok(_) => {}
            Err(NotPassed::Fail(why)) => return Looked::Broken(why),
            Err(NotPassed::Error(why) | NotPassed::Timeout(why)) => return Looked::NotChecked(why),
        }
    }
    Looked::Holds(format!("it has {} bytes, with what was written", content.len()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_written_is_read_from_the_arguments_of_tools_for_files() {
        let texts = |arguments: &Value| texts_written(arguments).map(|texts| texts.len());
        assert_eq!(texts_written(&json!({"path": "/a", "content": "x"})), Some(vec!["x"]));
        assert_eq!(
            texts_written(&json!({"file_path": "/a", "old_string": "x", "new_string": "y"})),
            Some(vec!["y"])
        );
        assert_eq!(
            texts(&json!({"path": "/a", "edits": [{"oldText": "a", "newText": "b"}, {"newText": "c"}]})),
            Some(2)
        );
        assert_eq!(texts(&json!({"command": "echo x > /a"})), Some(0));
        assert_eq!(texts(&json!({"edits": vec![json!({"newText": "b"}); TEXTS_MAX + 1]})), None);
    }

    #[test]
    fn a_file_is_looked_at_in_the_agents_folder_alone() {
        let folder = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name).display().to_string();
        std::fs::write(at("a"), "one two three").unwrap();
        std::fs::write(outside.path().join("b"), "one").unwrap();
        std::os::unix::fs::symlink(outside.path().join("b"), at("link")).unwrap();
        let look = |path: &str, texts: &[&str]| look(Some(folder.path()), path, texts);
        assert!(matches!(look(&at("a"), &["two", "three"]), Looked::Holds(_)));
        assert!(matches!(look(&at("a"), &["four"]), Looked::Broken(_)));
        assert!(matches!(look(&at("missing"), &["one"]), Looked::Broken(_)));
        assert!(matches!(look(&at("link"), &["one"]), Looked::NotChecked(_)));
        assert!(matches!(
            look(&outside.path().join("b").display().to_string(), &["one"]),
            Looked::NotChecked(_)
        ));
        let elsewhere = Some(Path::new("/no/such/folder"));
        assert!(matches!(super::look(elsewhere, "/no/such/folder/a", &["one"]), Looked::NotChecked(_)));
        assert!(matches!(super::look(None, &at("a"), &["two"]), Looked::NotChecked(_)));
    }
}
