//! What `hook install`, `uninstall` and `status` say.

use std::fs;
use std::path::{Path, PathBuf};

use super::{Client, Program};
use crate::command::Ran;

/// Somebody with a home and a project.
struct Person {
    client: Client,
    project: PathBuf,
}

impl Person {
    fn new() -> Self {
        let client = Client::new(Program::Whole);
        let project = client.folder.path().join("project");
        fs::create_dir(&project).unwrap();
        Self { client, project }
    }

    fn run(&self, args: &[&str]) -> Ran {
        let mut command = self.client.command(&[&["hook"], args].concat());
        command.current_dir(&self.project).env("HOME", self.client.folder.path());
        command.output().unwrap().into()
    }

    fn done(&self, args: &[&str]) -> String {
        let ran = self.run(args);
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{args:?}");
        ran.stdout
    }

    fn settings(&self) -> PathBuf {
        self.project.join(".claude/settings.json")
    }
}

#[test]
fn what_is_installed_already_is_said() {
    let person = Person::new();
    assert!(!person.done(&["install"]).contains("already"));
    let before = fs::read(person.settings()).unwrap();
    let again = person.done(&["install"]);
    assert!(again.contains("the hook is already installed") && !again.contains("@@"), "{again}");
    let again = person.run(&["install", "--json"]).json();
    assert_eq!((&again[0]["changed"], &again[0]["written"]), (&false.into(), &false.into()));
    assert_eq!(fs::read(person.settings()).unwrap(), before);
    person.done(&["uninstall"]);
    assert!(!person.settings().exists());
}

#[test]
fn a_policy_that_the_bundle_does_not_have_is_refused() {
    let person = Person::new();
    let ran = person.run(&["install", "--policy", "Nope"]);
    assert_eq!(ran.code, 64, "{}", ran.stderr);
    assert!(ran.stderr.contains("there is no runtime policy `Nope` in the bundle"), "{}", ran.stderr);
    assert!(!person.settings().exists());
    let bundle = super::quick_bundle(person.client.folder.path());
    let ran = person.run(&["install", "--bundle", bundle.to_str().unwrap(), "--policy", "Nope"]);
    assert_eq!(ran.code, 64, "{}", ran.stderr);
    assert!(!person.settings().exists());
}

/// The agent may be started where the variable is not set, or from another folder.
#[test]
fn the_state_folder_that_counts_here_is_named() {
    let person = Person::new();
    let named = |folder: &Path| format!(" --home {}", folder.display());
    person.done(&["install"]);
    let text = fs::read_to_string(person.settings()).unwrap();
    assert!(text.contains(&named(&person.client.home())), "{text}");

    let mut command = person.client.command(&["hook", "install", "--home", "../other/../there"]);
    command.current_dir(&person.project).env("HOME", person.client.folder.path());
    let ran: Ran = command.output().unwrap().into();
    assert_eq!(ran.code, 3, "`other` is not there, so that nobody knows where `..` leads");
    fs::create_dir(person.client.folder.path().join("other")).unwrap();
    let ran: Ran = command.output().unwrap().into();
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let text = fs::read_to_string(person.settings()).unwrap();
    assert!(text.contains(&named(&person.client.folder.path().join("there"))), "{text}");
    assert!(!text.contains(".."), "{text}");
}

#[test]
fn a_hook_that_stays_elsewhere_is_named() {
    let person = Person::new();
    person.done(&["install", "gemini-cli", "--user"]);
    let said = person.done(&["uninstall", "gemini-cli"]);
    assert!(said.contains(".gemini/settings.json has no entry of the hook"), "{said}");
    assert!(said.ends_with("portcullis hook uninstall gemini-cli --user\n"), "{said}");
    let said = person.done(&["uninstall", "gemini-cli", "--user"]);
    assert!(!said.contains("still"), "{said}");
}

#[test]
fn entries_are_shown_where_they_cannot_be_written() {
    let person = Person::new();
    fs::create_dir(person.project.join(".claude")).unwrap();
    fs::write(person.settings(), "{\n\t// mine\n}\n").unwrap();
    let ran = person.run(&["install"]);
    assert_eq!(ran.code, 3);
    for said in [
        "line 2, column 2: a comment",
        "if it does read them, add these entries by hand:",
        "\"PreToolUse\": [",
    ] {
        assert!(ran.stderr.contains(said), "{}", ran.stderr);
    }
    assert_eq!(fs::read_to_string(person.settings()).unwrap(), "{\n\t// mine\n}\n");
}

#[test]
fn tabs_of_a_file_are_shown_as_tabs() {
    let person = Person::new();
    fs::create_dir(person.project.join(".claude")).unwrap();
    fs::write(person.settings(), "{\r\n\t\"a\": 1\r\n}\r\n").unwrap();
    let said = person.done(&["install", "--dry-run"]);
    assert!(said.contains("\n-\t\"a\": 1\n+\t\"a\": 1,\n+\t\"hooks\": {\n"), "{said}");
}
