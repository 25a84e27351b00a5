//! Contracts of a bundle as they are read when it loads.

use portcullis_core::bundle::Bundle;
use portcullis_guards::contracts::lint;
use portcullis_session::{policy, shipped};

/// The bundle that ships, with contracts and more in its main file; or its mistakes.
fn load(main: &str, contracts: &str) -> Result<Bundle, Vec<String>> {
    let mut files = shipped::default_bundle();
    let text = String::from_utf8(files["portcullis.toml"].clone()).unwrap();
    files.insert("portcullis.toml".into(), format!("{text}\n{main}").into_bytes());
    files.insert("contracts/c.toml".into(), contracts.into());
    policy::load(&files).map_err(|mistakes| mistakes.iter().map(ToString::to_string).collect())
}

fn contract(statement: &str, more: &str) -> String {
    format!("[[contract]]\nstatement = \"{statement}\"\n{more}\n")
}

#[test]
fn contracts_that_cannot_hold_together_are_named_with_their_places() {
    let long = contract("Answer with at least 300 words.", "name = 'long'");
    let brief = contract("Answer with at most 120 words.", "name = 'brief'");
    let [mistake] = load("", &format!("{long}{brief}")).unwrap_err().try_into().unwrap();
    assert!(
        mistake.starts_with(
            "contracts/c.toml:5:13: `brief` (\"Answer with at most 120 words.\") cannot hold together with \
             `long` (\"Answer with at least 300 words.\") at contracts/c.toml:2:13: "
        ),
        "{mistake}"
    );
    let [never] = load("", &contract("Answer with less than 0 words.", "")).unwrap_err().try_into().unwrap();
    assert!(never.contains("can never hold"), "{never}");
}

#[test]
fn contracts_about_different_texts_are_in_no_conflict() {
    let both = |first: &str, second: &str| {
        let first = contract("Answer with at least 300 words.", first);
        load("", &format!("{first}{}", contract("Answer with at most 120 words.", second)))
    };
    assert!(both("surfaces = ['http']", "surfaces = ['hook']").is_ok());
    assert!(both("tools = ['send_email']", "").is_ok());
    assert!(both("tools = ['send_email']", "tools = ['perform_calculation']").is_ok());
    assert!(both("surfaces = ['http']", "").is_err());
    assert!(both("surfaces = ['http', 'hook']", "surfaces = ['hook']").is_err());
    assert!(both("tools = ['send_email']", "tools = ['send_email', 'perform_calculation']").is_err());
}

#[test]
fn lints_say_which_contracts_nobody_can_decide() {
    let model = "[contracts]\nendpoint = 'http://127.0.0.1:1/v1'\nmodel = 'm'\n";
    let contracts = [
        contract("Be kind.", "name = 'a'"),
        contract("Be kind.", "name = 'b'\njudge = true"),
        contract("Do not use commas.", "name = 'c'\njudge = true"),
        contract("Contains no customer names", "name = 'd'"),
        contract("Must cite a known document", "name = 'e'"),
        contract("Must cite a known document", "name = 'f'\ntools = ['send_email']"),
        contract("Do not use commas.", "name = 'g'\nsurfaces = ['htpp', 'http']"),
    ];
    let bundle = load(model, &contracts.concat()).unwrap();
    let lints: Vec<String> =
        lint(&bundle).iter().map(|lint| format!("{} {}", lint.name, lint.diagnostic.message)).collect();
    let starts = [
        "unread-contract `a` cannot be checked by code",
        "idle-judge `c` is checked by code",
        "unread-contract `d` needs names",
        "unread-contract `f` needs documents",
        "unknown-surface `g` is about the surface `htpp`",
    ];
    assert_eq!(lints.len(), starts.len(), "{lints:?}");
    for (lint, start) in lints.iter().zip(starts) {
        assert!(lint.starts_with(start), "{lint}");
    }
    assert!(lint(&load("", "").unwrap()).is_empty());
}
