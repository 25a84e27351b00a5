//! `portcullis policy test`, and what is said about bundles that do not load.

use expect_test::expect;

use crate::command::{bundle_copy, run};

#[test]
fn the_shipped_bundle_passes_its_own_tests() {
    let ran = run(&["policy", "test"]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    // Programs have a bundle of their own: the shipped one needs no engine beside `portcullis`.
    let unseen = ran.stdout.lines().find(|line| line.contains("no test shows"));
    assert_eq!(
        unseen,
        Some("  no test shows: program/check, program/engine"),
        "the others are exercised:\n{}",
        ran.stdout
    );
    let shipped = run(&["policy", "test", "--json"]);
    let [summary] = shipped.json().try_into().unwrap();
    assert_eq!((&summary["record"], &summary["failed"]), (&"summary".into(), &0.into()));
    assert!(summary["passed"].as_u64().unwrap() >= 10, "{summary}");
    assert!(summary["rules"]["runtime-policy/step-limit"].as_u64() >= Some(1), "{summary}");
    assert_eq!(run(&["policy", "test", "--bundle", "examples/bundle"]).stdout, ran.stdout);
}

/// 150 ordinary commands raise nothing, and 40 others are held or denied by the rule that names their effect.
#[test]
fn the_bundle_for_a_developers_machine_passes_its_own_tests() {
    let ran = run(&["policy", "test", "--bundle", "examples/developer", "--json"]);
    let lines = ran.json();
    assert_eq!(ran.code, 0, "{}", ran.stdout);
    let summary = lines.last().unwrap();
    assert!(summary["allowed"].as_u64() >= Some(150), "{summary}");
    let rules = summary["rules"].as_object().unwrap();
    let held: u64 = rules.values().filter_map(serde_json::Value::as_u64).sum();
    assert!(held >= 40 && rules.len() >= 20, "{summary}");
    assert_eq!(run(&["policy", "lint", "--bundle", "examples/developer"]).code, 0);
}

#[test]
fn what_fails_is_named_by_file_and_line() {
    let bundle = bundle_copy();
    let own = bundle.path().join("own.md");
    std::fs::write(
        &own,
        "# Own\n\n## mail\n```run\ncall send_email {} => allow\ncall perform_calculation {\"expression\": \"1\"} => allow\n```\n\
         ## sums\n```run\ncall perform_calculation {\"expression\": \"1\"} => allow\n```\n",
    )
    .unwrap();
    let own = own.to_str().unwrap();
    let ran = run(&["policy", "test", own]);
    assert_eq!(ran.code, 1);
    let first = ran.stdout.lines().next().unwrap();
    assert!(first.starts_with(&format!("FAIL {own}:5 [Own / mail]: expected allow, got deny")), "{first}");
    assert!(ran.stdout.contains("1 passed, 1 failed in 1 file\n"), "{}", ran.stdout);
    let json = run(&["policy", "test", own, "--json"]).json();
    assert_eq!((&json[0]["record"], &json[0]["line"]), (&"failure".into(), &5.into()));

    std::fs::write(own, "```run\ncal x\n```\n").unwrap();
    let ran = run(&["policy", "test", own]);
    assert_eq!(ran.code, 1);
    assert!(ran.stdout.contains("own.md:2: `cal` is not a step (did you mean `call`?)"), "{}", ran.stdout);

    std::fs::write(own, "# no cases\n").unwrap();
    assert_eq!(run(&["policy", "test", own]).code, 2, "nothing was tested");
    assert_eq!(run(&["policy", "test", "no/such.md"]).code, 3);
}

#[test]
fn a_broken_bundle_shows_every_place() {
    let bundle = bundle_copy();
    let write = |name: &str, text: &str| std::fs::write(bundle.path().join(name), text).unwrap();
    write("portcullis.toml", "version = 1\nmode = \"enforce\"\npolcy = \"Strict Compliance Policy\"\n");
    write(
        "policies/strict.toml",
        "[[policy]]\nname = \"Strict Compliance Policy\"\nallowed_types = [\"CALCULAT\"]\nmax_steps = \"5\"\nmax_side_effects = 0\n",
    );
    let folder = bundle.path().to_str().unwrap();
    let ran = run(&["policy", "test", "--bundle", folder]);
    assert_eq!((ran.code, ran.stdout.as_str()), (3, ""));
    expect![[r#"
        error: `max_steps` must be a whole number from 1 to 4294967295, found string
         --> BUNDLE/policies/strict.toml:4:13
          |
        4 | max_steps = "5"
          |             ^^^

        error: unknown field `polcy` in the file
         --> BUNDLE/portcullis.toml:3:1
          |
        3 | polcy = "Strict Compliance Policy"
          | ^^^^^
          |
          = help: did you mean `policy`?

        error: the bundle at `BUNDLE` does not load: 2 errors
        help: fix the errors above; a bundle with errors is never used
    "#]]
    .assert_eq(&ran.stderr.replace(folder, "BUNDLE"));

    let json = run(&["check", "examples/traces/assistant.jsonl", "--bundle", folder, "--json"]);
    assert_eq!(json.code, 3);
    let [line] = json.json().try_into().unwrap();
    let error = &line["error"];
    assert_eq!(error["code"], "bundle_invalid");
    let places: Vec<String> = error["diagnostics"]
        .as_array()
        .unwrap()
        .iter()
        .map(|d| {
            let file = d["file"].as_str().unwrap().replace(folder, "BUNDLE");
            format!("{file}:{}:{} {} ({})", d["line"], d["column"], d["message"], d["help"])
        })
        .collect();
    expect![[r#"
        BUNDLE/policies/strict.toml:4:13 "`max_steps` must be a whole number from 1 to 4294967295, found string" (null)
        BUNDLE/portcullis.toml:3:1 "unknown field `polcy` in the file" ("did you mean `policy`?")"#]].assert_eq(&places.join("\n"));
}

#[test]
fn syntax_errors_and_odd_bytes_have_places_too() {
    let bundle = bundle_copy();
    let folder = bundle.path().to_str().unwrap();
    for (text, place) in [
        (&b"[[policy]\nname = 1\n"[..], "strict.toml:1:"),
        (b"name = \"\xff\"\n", "strict.toml:1:9"),
        ("# \u{e9}\u{1f600}\nname = \u{e9}\n".as_bytes(), "strict.toml:2:"),
        (b"\x1b[31m = 1\n", "strict.toml:1:1"),
    ] {
        std::fs::write(bundle.path().join("policies/strict.toml"), text).unwrap();
        let ran = run(&["policy", "test", "--bundle", folder]);
        assert_eq!(ran.code, 3);
        assert!(ran.stderr.contains(place), "{place} in {}", ran.stderr);
        assert!(!ran.stderr.contains('\u{1b}'), "{}", ran.stderr);
    }
    let ran = run(&["policy", "test", "--bundle", "no/such/folder"]);
    assert_eq!(ran.code, 3);
    assert!(ran.stderr.contains("error: cannot read the bundle at `no/such/folder`"), "{}", ran.stderr);
    assert!(ran.stderr.contains("help: a bundle is a folder"), "{}", ran.stderr);
}

#[test]
fn diff_shows_which_recorded_verdicts_change() {
    let bundle = bundle_copy();
    let folder = bundle.path().to_str().unwrap();
    let trace = "examples/traces/assistant.jsonl";
    let same = run(&["policy", "diff", "examples/bundle", folder, trace]);
    assert_eq!(same.code, 0, "{}", same.stderr);
    assert!(same.stdout.starts_with("0 verdicts change of "), "{}", same.stdout);

    let path = bundle.path().join("policies/strict.toml");
    let policy = std::fs::read_to_string(&path).unwrap();
    let stricter: String = policy
        .lines()
        .map(
            |line| if line.starts_with("max_steps") { "max_steps = 1\n".into() } else { format!("{line}\n") },
        )
        .collect();
    std::fs::write(&path, stricter).unwrap();
    let ran = run(&["policy", "diff", "examples/bundle", folder, trace, "--json"]);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    let lines = ran.json();
    let (summary, records) = lines.split_last().unwrap();
    let (parts, changes): (Vec<_>, Vec<_>) = records.iter().partition(|record| record["record"] == "part");
    assert_eq!((parts.len(), &parts[0]["direction"]), (1, &"tightened".into()), "{parts:?}");
    assert_eq!((&summary["parts"], &summary["loosened"]), (&1.into(), &0.into()));
    assert_eq!(summary["changed"], changes.len());
    assert!(!changes.is_empty());
    let newly = changes.iter().filter(|change| change["old"]["verdict"] == "allow").count();
    assert_eq!(summary["newly_stopped"], newly);
    for change in changes {
        assert_eq!(change["new"]["rule"], "runtime-policy/step-limit");
    }
    assert_eq!(run(&["policy", "diff", "examples/bundle", folder, "--home", folder]).code, 3);
}

/// The shipped bundle with lines of its main file replaced.
fn changed_copy(from: &str, to: &str) -> tempfile::TempDir {
    let bundle = bundle_copy();
    let path = bundle.path().join("portcullis.toml");
    let main = std::fs::read_to_string(&path).unwrap();
    assert!(main.contains(from), "{main}");
    std::fs::write(&path, main.replacen(from, to, 1)).unwrap();
    bundle
}

/// No recorded call reaches what was loosened, and it is told all the same.
#[test]
fn diff_names_what_recorded_calls_do_not_show() {
    let trace = "examples/traces/assistant.jsonl";
    let watched = changed_copy("mode = \"enforce\"", "mode = \"observe\"");
    let ran = run(&["policy", "diff", "examples/bundle", watched.path().to_str().unwrap(), trace]);
    assert_eq!(ran.code, 1, "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stdout.contains("loosened   mode: enforce -> observe"), "{}", ran.stdout);
    let back = run(&["policy", "diff", watched.path().to_str().unwrap(), "examples/bundle", trace]);
    assert_eq!(back.code, 0, "stricter, and no verdict changes: {}", back.stdout);
}

/// What may allow more, and was reached by no recorded call, is not taken for harmless unless somebody says so.
#[test]
fn diff_is_undecided_about_changes_of_which_nothing_general_can_be_said() {
    let bundle = bundle_copy();
    for entry in std::fs::read_dir(bundle.path().join("tools")).unwrap() {
        let path = entry.unwrap().path();
        let tools = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, tools.replace("type = \"WRITE_FILE\"", "type = \"OTHER\"")).unwrap();
    }
    let folder = bundle.path().to_str().unwrap();
    let args = ["policy", "diff", "examples/bundle", folder, "examples/traces/assistant.jsonl"];
    let ran = run(&args);
    assert_eq!(ran.code, 2, "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stdout.contains("1 changed in a way that may allow more"), "{}", ran.stdout);
    let allowed = run(&[&args[..], &["--allow-changed"]].concat());
    assert_eq!(allowed.code, 0, "{}{}", allowed.stdout, allowed.stderr);
}

/// The proof is about access policies; nothing else is called proved with them.
#[test]
fn proofs_cover_the_whole_bundle_or_say_what_they_do_not() {
    if std::process::Command::new("cvc5").arg("--version").output().is_err() {
        eprintln!("SKIPPED: the solver cvc5 is not installed");
        return;
    }
    let prove = |old: &std::path::Path, new: &std::path::Path| {
        run(&["policy", "diff", old.to_str().unwrap(), new.to_str().unwrap(), "--prove"])
    };
    let (same, other) = (bundle_copy(), bundle_copy());
    let ran = prove(same.path(), other.path());
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stdout.starts_with("proved: "), "{}", ran.stdout);

    let watched = changed_copy("mode = \"enforce\"", "mode = \"observe\"");
    let ran = prove(same.path(), watched.path());
    assert_eq!(ran.code, 1, "{}", ran.stdout);
    assert!(!ran.stdout.starts_with("proved"), "{}", ran.stdout);
    assert!(ran.stdout.contains("loosened   mode: enforce -> observe"), "{}", ran.stdout);
    let ran = prove(watched.path(), same.path());
    assert_eq!(ran.code, 0, "{}", ran.stdout);

    let settings = changed_copy(
        "version = 1",
        "version = 1\n[contracts]\nendpoint = \"http://127.0.0.1:1\"\nmodel = \"m\"\n",
    );
    let _ = settings;
}

/// What loads as a weaker policy than was written does not load.
#[test]
fn a_test_that_cannot_be_read_keeps_a_bundle_from_loading() {
    let bundle = bundle_copy();
    let text = "# Roles\n\n```run\nprincipal {\"id\": \"ann\", \"rolse\": [\"nurse\"]}\n```\n";
    std::fs::write(bundle.path().join("tests/roles.md"), text).unwrap();
    let ran = run(&["policy", "lint", "--bundle", bundle.path().to_str().unwrap()]);
    assert_eq!(ran.code, 3, "{}", ran.stdout);
    let place = "roles.md:4:1";
    assert!(ran.stderr.contains(place) && ran.stderr.contains("did you mean `roles`?"), "{}", ran.stderr);
}
