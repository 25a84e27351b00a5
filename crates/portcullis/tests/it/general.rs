//! What holds for every command: help, usage errors, colour, closed pipes.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::Stdio;

use crate::command::{portcullis, run};

/// Walks the commands as the help lists them.
fn visit(path: &[&str], seen: &mut Vec<String>) {
    let mut args = path.to_vec();
    args.push("--help");
    let help = run(&args);
    assert_eq!((help.code, help.stderr.as_str()), (0, ""), "{path:?}");
    assert!(help.stdout.contains("Example"), "{path:?} has no examples:\n{}", help.stdout);
    assert!(help.stdout.contains("--json"), "{path:?}");
    seen.push(path.join(" "));
    let listed = help.stdout.split("Commands:\n").nth(1).unwrap_or_default();
    for line in listed.lines().take_while(|line| line.starts_with("  ")) {
        match line.split_whitespace().next() {
            Some("help") | None => {}
            // The second and later lines of a description are indented further.
            Some(_) if line.starts_with("   ") => {}
            Some(name) => visit(&[path, &[name]].concat(), seen),
        }
    }
}

#[test]
fn every_command_has_help_with_examples() {
    let mut seen = Vec::new();
    visit(&[], &mut seen);
    for command in ["check", "verify", "policy test", "demo-server", "completions"] {
        assert!(seen.iter().any(|name| name == command), "{command} is not among {seen:?}");
    }
}

/// Help as a terminal with so many columns shows it.
fn help(path: &str, columns: usize) -> String {
    let args: Vec<&str> = path.split(' ').filter(|word| !word.is_empty()).chain(["--help"]).collect();
    let output = portcullis(&args).env("COLUMNS", columns.to_string()).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

/// The lines of its examples.
fn examples(help: &str) -> Vec<&str> {
    let lines = help.lines().skip_while(|line| !matches!(*line, "Example:" | "Examples:")).skip(1);
    lines.take_while(|line| !line.is_empty()).collect()
}

#[test]
fn help_fits_narrow_terminals_and_no_example_breaks_within_a_command() {
    const NARROW: usize = 80;
    let mut paths = Vec::new();
    visit(&[], &mut paths);
    for path in paths {
        let narrow = help(&path, NARROW);
        for columns in [NARROW, 100] {
            let shown = help(&path, columns);
            let long = shown.lines().find(|line| line.chars().count() > columns);
            assert_eq!(long, None, "`{path}` at {columns} columns");
            assert_eq!(examples(&shown), examples(&narrow), "`{path}` at {columns} columns");
        }
        // A line that does not begin a command goes on with one, in a way that a shell understands.
        let shown = examples(&narrow);
        assert!(!shown.is_empty(), "{path}");
        for (number, line) in shown.iter().enumerate() {
            let goes_on = number > 0 && shown[number - 1].ends_with(['\\', '&', '|']);
            let begins = line.starts_with("  ") && !line.starts_with("   ");
            assert!(line.starts_with("  ") && begins != goes_on, "`{path}`: {line:?} in {shown:#?}");
        }
        // Options of the command come first, those of all commands under a heading of their own.
        let (own, global) = narrow.split_once("\nGlobal options:\n").expect(&path);
        assert!(own.contains("--help") && !own.contains("--home <DIR>"), "{path}");
        assert!(global.contains("--home <DIR>") && global.contains("--color <WHEN>"), "{path}");
    }
}

#[test]
fn mistakes_in_the_command_line_exit_with_64() {
    for args in [
        &[][..],
        &["chek"],
        &["check"],
        &["check", "--polcy", "x"],
        &["verify", "a", "b"],
        &["policy"],
        &["completions", "tcsh"],
        &["--color", "sometimes", "check", "x"],
    ] {
        let ran = run(args);
        assert_eq!((ran.code, ran.stdout.as_str()), (64, ""), "{args:?}: {}", ran.stderr);
        assert!(!ran.stderr.is_empty());
    }
    assert!(run(&["check", "--polcy"]).stderr.contains("'--policy'"), "the nearest option is named");
}

#[test]
fn mistakes_are_json_where_json_is_asked_for() {
    let ran = run(&["check", "--json"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (64, ""));
    let [line] = ran.json().try_into().unwrap();
    assert_eq!(line["error"]["code"], "usage");
    let ran = run(&["verify", "no/such/file", "--json"]);
    assert_eq!(ran.code, 3);
    assert_eq!(ran.json()[0]["error"]["code"], "could_not_read");
}

#[test]
fn colour_is_for_terminals_unless_asked_for() {
    let trace = "examples/traces/assistant.jsonl";
    let escape = |args: &[&str]| run(args).stdout.contains('\u{1b}');
    assert!(!escape(&["check", trace]), "a pipe gets none");
    assert!(escape(&["check", trace, "--color", "always"]));
    assert!(!escape(&["check", trace, "--color=never"]));
    assert!(!escape(&["--help"]));
    let forced = portcullis(&["check", trace]).env("CLICOLOR_FORCE", "1").output().unwrap();
    assert!(forced.stdout.contains(&0x1b));
    let both =
        portcullis(&["check", trace]).env("CLICOLOR_FORCE", "1").env("NO_COLOR", "1").output().unwrap();
    assert!(!both.stdout.contains(&0x1b), "NO_COLOR is honoured");
}

#[test]
fn a_reader_that_leaves_is_no_drama() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("long.jsonl");
    let call = r#"{"id":"c","function":{"name":"send_email","arguments":"{}"}}"#;
    let record = format!(r#"{{"messages":[{{"role":"assistant","tool_calls":[{call}]}}]}}"#);
    std::fs::write(&trace, format!("{record}\n").repeat(20_000)).unwrap();
    let policy = ["--policy", "Strict Compliance Policy"];
    let mut child = portcullis(&[&["check", trace.to_str().unwrap()], &policy[..]].concat())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert!(line.contains("verdict"), "{line}");
    let mut stderr = String::new();
    child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
    assert_eq!(
        (child.wait().unwrap().code(), stderr.as_str()),
        (Some(1), "bundle: the shipped one\n"),
        "its answer stands"
    );
}
