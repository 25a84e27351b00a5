//! Proofs and counterexamples. Without the solver only its absence is tested; the others say that they were skipped.

use std::collections::BTreeMap;
use std::path::Path;

use portcullis_access::AccessCompiler;

use super::*;

fn bundle(default: &str, policies: &str) -> Bundle {
    let main = format!(
        "version = 1\npolicy = 'p'\n[access]\ndefault = '{default}'\nattributes = {{ age = 'integer' }}\n"
    );
    bundle_of(&main, policies)
}

fn bundle_of(main: &str, policies: &str) -> Bundle {
    let policy =
        "[[policy]]\nname = 'p'\nallowed_types = ['QUERY_DB']\nmax_steps = 9\nmax_side_effects = 9\n";
    let tools = "[[tool]]\nname = 'query'\ntype = 'QUERY_DB'\nside_effecting = false\n";
    let files: BTreeMap<String, Vec<u8>> = [
        ("portcullis.toml", main),
        ("policies/p.toml", policy),
        ("tools/t.toml", tools),
        ("access/a.cedar", policies),
    ]
    .map(|(path, text)| (path.to_owned(), text.as_bytes().to_vec()))
    .into();
    Bundle::load_with(&files, &[&AccessCompiler]).unwrap_or_else(|mistakes| panic!("{mistakes:#?}"))
}

fn prove(old: (&str, &str), new: (&str, &str)) -> Proof {
    prove_narrowing(&bundle(old.0, old.1), &bundle(new.0, new.1), Path::new(SOLVER), Times::default())
}

fn solver_is_there() -> bool {
    let there = std::process::Command::new(SOLVER).arg("--version").output().is_ok();
    if !there {
        eprintln!("SKIPPED: the solver {SOLVER} is not installed");
    }
    there
}

const READ: &str =
    "permit (principal, action == Action::\"read\", resource is Column) when { resource.catalogued };";

#[test]
fn a_narrowing_is_proved() {
    if !solver_is_there() {
        return;
    }
    let narrower = format!("{READ} forbid (principal, action, resource) when {{ context.run.tainted }};");
    let proof = prove(("deny", READ), ("deny", &narrower));
    assert!(matches!(proof, Proof::Proved { questions } if questions > 100), "{proof:?}");
    let proof = prove(
        ("allow", ""),
        ("allow", "@decision(\"review\") permit (principal, action, resource is Path);"),
    );
    assert!(matches!(proof, Proof::Proved { .. }), "{proof:?}");
}

#[test]
fn a_widening_is_shown_with_the_policy_that_widens() {
    if !solver_is_there() {
        return;
    }
    let wider = format!(
        "{READ} @id(\"young\") permit (principal, action == Action::\"read\", resource is Column) when {{ principal \
         has age && principal.age < 18 }};"
    );
    for (old, new) in
        [(READ, wider.as_str()), ("@decision(\"review\") permit (principal, action, resource);", &wider)]
    {
        match prove(("deny", old), ("deny", new)) {
            Proof::Counterexample { request, policies, .. } => {
                assert!(!policies.is_empty());
                assert!(request.contains("Action::\"read\""), "{request}");
            }
            other => panic!("{other:?}"),
        }
    }
    let milder = "@decision(\"warn\") forbid (principal, action, resource is Path);";
    let proof = prove(("allow", "forbid (principal, action, resource is Path);"), ("allow", milder));
    assert!(matches!(proof, Proof::Counterexample { .. }), "{proof:?}");
}

/// A person decides now where nobody could before.
#[test]
fn a_milder_level_is_shown() {
    if !solver_is_there() {
        return;
    }
    let denied = "forbid (principal, action, resource is Path);";
    let held = format!("@decision(\"review\") {denied}");
    match prove(("allow", denied), ("allow", &held)) {
        Proof::Counterexample { through: Through::MayBeGranted, .. } => {}
        other => panic!("{other:?}"),
    }
    let proof = prove(("allow", &held), ("allow", denied));
    assert!(matches!(proof, Proof::Proved { .. }), "{proof:?}");
    let proof = prove(("deny", READ), ("review", READ));
    assert!(matches!(proof, Proof::Counterexample { through: Through::MayBeGranted, .. }), "{proof:?}");
}

#[test]
fn what_lies_outside_of_a_proof_is_named() {
    let strict = bundle("deny", READ);
    let main = |more: &str| {
        format!(
            "version = 1\npolicy = 'p'\n{more}[access]\ndefault = 'deny'\nattributes = {{ age = 'integer' }}\n"
        )
    };
    let loose = bundle_of(&main("mode = 'observe'\nunknown_tools = 'allow'\n"), READ);
    let parts: Vec<String> = outside(&strict, &loose).into_iter().map(|part| part.part).collect();
    assert_eq!(parts, ["mode", "unknown_tools"]);
    assert_eq!(outside(&strict, &bundle("deny", "")), [], "access policies are what is proved");
    assert_eq!(outside(&loose, &strict), [], "stricter parts need no proof");
}

#[test]
fn what_cannot_be_compared_is_unknown_and_says_why() {
    let adds = "permit (principal, action, resource) when { context.run.steps + 1 > 3 };";
    let Proof::Unknown { why } = prove(("deny", adds), ("deny", READ)) else { panic!("known") };
    assert!(why.contains("`a-1` computes"), "{why}");
}

#[test]
fn a_missing_solver_is_said_to_be_missing() {
    let bundle = bundle("deny", READ);
    let proof = prove_narrowing(&bundle, &bundle, Path::new("/nowhere/cvc5"), Times::default());
    let Proof::SolverMissing { why } = proof else { panic!("{proof:?}") };
    assert!(why.contains("/nowhere/cvc5") && why.contains("install"), "{why}");
}
