//! What programs are for.

use portcullis_core::program::{Failure, Objection, Says};
use serde_json::json;

use crate::{answer, load, shared, told};

/// What one program answers for a call with this text.
fn says(program: &str, text: &str) -> (Vec<Objection>, Vec<Failure>) {
    let set = load(&shared(), &[("x", program)]).unwrap_or_else(|mistakes| panic!("{mistakes:?}"));
    let said = answer(set.check(&told(text).to_string(), &format!("{program} {text}"))).unwrap();
    (said.objections, said.failures)
}

/// The value of an expression, as a reason.
fn value(expression: &str) -> String {
    let program = format!("def check(action, run, principal):\n    return deny(str({expression}))\n");
    let (objections, failures) = says(&program, "a text");
    match (objections.as_slice(), failures.as_slice()) {
        ([one], []) => one.reasons.join("; "),
        (_, [failure]) => format!("failed: {}", failure.why),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_program_denies_holds_or_says_nothing() {
    let program = "def check(action, run, principal):\n    text = action.args[\"text\"]\n    if text == \"deny\":\n        return deny([\"one\", \"two\"], [\"a\", \"b\"])\n    if text == \"hold\":\n        return hold(\"three\")\n    if text == \"both\":\n        return [hold(\"three\"), deny(\"four\")]\n";
    let objection = |says, reasons: &[&str], denied: &[&str]| Objection {
        program: "x".into(),
        says,
        reasons: reasons.iter().map(|reason| (*reason).to_owned()).collect(),
        denied: denied.iter().map(|denied| (*denied).to_owned()).collect(),
    };
    assert_eq!(says(program, "tea"), (vec![], vec![]));
    assert_eq!(says(program, "deny").0, [objection(Says::Deny, &["one", "two"], &["a", "b"])]);
    assert_eq!(says(program, "hold").0, [objection(Says::Hold, &["three"], &[])]);
    let both = [objection(Says::Hold, &["three"], &[]), objection(Says::Deny, &["four"], &[])];
    assert_eq!(says(program, "both").0, both);
}

#[test]
fn a_failure_has_its_line_and_does_not_hide_what_others_say() {
    let failing = "def check(action, run, principal):\n    return action.args[\"missing\"]\n";
    let denying = "def check(action, run, principal):\n    return deny(\"no\")\n";
    let set = load(&shared(), &[("a", failing), ("b", denying)]).unwrap();
    let said = answer(set.check(&told("tea").to_string(), "two programs")).unwrap();
    assert_eq!(said.objections.len(), 1);
    assert!(said.failures[0].program == "a" && said.failures[0].why.starts_with("2:12: "), "{said:?}");
}

#[test]
fn the_toolbox_does_what_its_manual_says() {
    for (expression, wanted) in [
        (
            "check_access({\"t\": [\"a\", \"b\"]}, {\"t\": [\"a\", \"c\"], \"u\": [\"a\"]})",
            "[\"t.c\", \"u.a\"]",
        ),
        ("check_access({\"t\": set([\"a\"])}, {\"t\": [\"a\"]})", "[]"),
        (
            "check_rules([{\"activity\": \"hotel\", \"attribute\": \"age\", \"operator\": \">=\", \"value\": 18, \"message\": \"too young\"}], \"hotel\", {\"age\": 17})",
            "[\"too young\"]",
        ),
        (
            "check_rules([{\"activity\": \"hotel\", \"attribute\": \"age\", \"operator\": \">=\", \"value\": 18, \"message\": \"too young\"}], \"hotel\", {\"age\": 18})",
            "[]",
        ),
        (
            "check_rules([{\"activity\": \"hotel\", \"attribute\": \"age\", \"operator\": \">=\", \"value\": 18, \"message\": \"too young\"}], \"hotel\", {})",
            "[\"too young\"]",
        ),
        ("has_seen(run, \"tool\"), has_seen(run, \"tool:mail\"), has_seen(run, \"unknown\")", "failed: "),
        (
            "[has_seen(run, \"tool\"), has_seen(run, \"tool:mail\"), has_seen(run, \"unknown\")]",
            "[True, True, False]",
        ),
        ("matches(\"(?i)TEXT$\", action.args[\"text\"])", "True"),
        ("find_all(\"(\\\\w)e\", \"tea seed\")", "[\"t\", \"s\"]"),
        ("words(\"Tea, and Coffee!\")", "[\"tea\", \"and\", \"coffee\"]"),
        ("money(\"EUR 1,234.50\").cents", "123450"),
        ("money(\"$5\").currency", "USD"),
        ("money(\"5 or 6\")", "None"),
        ("day(\"2026-11-28\") - day(\"2026-11-01\")", "27"),
        ("weekday(action.at)", "5"),
        ("minute(action.at)", "876"),
        ("minute(action.at, 600)", "36"),
        ("day(\"soon\")", "failed: "),
        ("len(set([1, 2, 2]))", "2"),
        ("effects(action, verb = \"read\")", "[]"),
        ("columns(action)", "{}"),
    ] {
        let got = value(expression);
        assert!(got == wanted || (wanted == "failed: " && got.starts_with(wanted)), "{expression}: {got}");
    }
}

#[test]
fn columns_come_from_effects() {
    let program = "def check(action, run, principal):\n    return deny(str(columns(action)), [effect.name for effect in effects(action, kind = \"table\")])\n";
    let set = load(&shared(), &[("x", program)]).unwrap();
    let effect = |kind, name| json!({"verb": "read", "kind": kind, "name": name, "attributes": {}});
    let mut told = told("");
    told["action"]["effects"] =
        json!([effect("table", "lab"), effect("column", "lab.labname"), effect("table", "cost")]);
    let said = answer(set.check(&told.to_string(), "columns")).unwrap();
    assert_eq!(said.objections[0].reasons, ["{\"cost\": [\"*\"], \"lab\": [\"labname\"]}"]);
    assert_eq!(said.objections[0].denied, ["lab", "cost"]);
}

#[test]
fn a_program_remembers_nothing_and_changes_nothing() {
    let changing = "def check(action, run, principal):\n    action.args[\"text\"] = \"other\"\n";
    let remembering = "SEEN = []\n\ndef check(action, run, principal):\n    SEEN.append(1)\n";
    for program in [changing, remembering] {
        let why = &says(program, "tea").1[0].why;
        assert!(why.contains("frozen") || why.contains("mmutable"), "{why}");
    }
    let copying = "def check(action, run, principal):\n    args = dict(action.args)\n    args[\"text\"] = \"other\"\n    return deny([args[\"text\"], action.args[\"text\"]])\n";
    let (objections, failures) = says(copying, "tea");
    assert!(objections[0].reasons == ["other", "tea"] && failures.is_empty());
}

#[test]
fn an_engine_that_is_none_is_an_error_and_the_set_denies() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("portcullis-starlark");
    std::fs::copy("/bin/true", &path).unwrap();
    let error =
        portcullis_program::pool::Pool::start(portcullis_program::Engine::open(&path).unwrap()).unwrap_err();
    assert!(error.to_string().contains("cannot be used"), "{error}");
}

/// A bundle with modules and one program, loaded; or its mistakes.
fn with_modules(modules: &[(&str, &str)], program: &str) -> Result<Vec<Objection>, Vec<String>> {
    let sources: Vec<(String, &str)> =
        modules.iter().map(|(name, text)| (format!("modules/{name}.star"), *text)).collect();
    let mut files: Vec<(&str, &str)> = sources.iter().map(|(path, text)| (path.as_str(), *text)).collect();
    files.push(("programs/x.star", program));
    let set = crate::load_files(&shared(), &files)?;
    Ok(answer(set.check(&told("tea").to_string(), &format!("{modules:?} {program}"))).unwrap().objections)
}

#[test]
fn programs_load_modules_and_modules_those_before_them() {
    let limits = "LIMIT = 3\n\ndef over(n):\n    return n > LIMIT\n";
    let words = "load(\"limits.star\", \"over\")\n\ndef long(text):\n    return over(len(text))\n";
    let program = "load(\"words.star\", \"long\")\n\ndef check(action, run, principal):\n    if long(action.args[\"text\"] + \"!\"):\n        return deny(\"long\")\n";
    let said = with_modules(&[("limits", limits), ("words", words)], program).unwrap();
    assert_eq!(said.len(), 1);

    let later = with_modules(&[("a", words), ("limits", limits)], program).unwrap_err();
    assert!(
        later[0].contains("there is no module `limits.star`") && later[0].contains("modules/a.star:1"),
        "{later:?}"
    );
    let missing = with_modules(&[], program).unwrap_err();
    assert!(missing[0].contains("there is no module `words.star`"), "{missing:?}");
    let file = with_modules(&[], &program.replace("words.star", "/etc/passwd")).unwrap_err();
    assert!(file[0].contains("there is no module"), "{file:?}");
    let broken = with_modules(&[("words", "def long(text)\n")], program).unwrap_err();
    assert!(broken.len() == 1 && broken[0].contains("modules/words.star"), "{broken:?}");
}

#[test]
fn a_module_is_part_of_what_is_loaded_again_and_its_names_are_frozen() {
    let module = "SEEN = []\n\ndef see(text):\n    SEEN.append(text)\n    return len(SEEN)\n";
    let program = "load(\"seen.star\", \"see\")\n\ndef check(action, run, principal):\n    return deny(str(see(\"x\")))\n";
    let files = [("modules/seen.star", module), ("programs/x.star", program)];
    let set = crate::load_files(&shared(), &files).unwrap();
    let said = answer(set.check(&told("tea").to_string(), "frozen")).unwrap();
    assert!(said.objections.is_empty() && said.failures[0].why.contains("mmutable"), "{said:?}");
}
