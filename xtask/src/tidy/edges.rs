//! Which of our crates may depend on which: a crate's most important property is what it does not depend on.
//!
//! The table is the one of ARCHITECTURE.md. It holds for every kind of dependency, those of tests included, so that a
//! test cannot bring in by the back door what the code may not use; where a test has to, the table says so.

use serde_json::Value;

use crate::process::{Failure, Result};

const CORE: &str = "portcullis-core";
const PROOF: &str = "portcullis-proof";

/// What the driver of a run may use.
const BELOW_SESSION: &[&str] = &[
    CORE,
    PROOF,
    "portcullis-access",
    "portcullis-assist",
    "portcullis-contain",
    "portcullis-contracts",
    "portcullis-detect",
    "portcullis-effects",
    "portcullis-guards",
    "portcullis-ledger",
    "portcullis-program",
    "portcullis-trajectory",
    "portcullis-wire",
];

/// What the tests of a crate may use beyond the crate itself: the Markdown cases of guards are run by a session.
const FOR_TESTS: &[(&str, &str)] =
    &[("portcullis-access", "portcullis-session"), ("portcullis-guards", "portcullis-session")];

/// One crate's allowance.
struct Rule {
    name: &'static str,
    ours: Ours,
    /// Pure: no async runtime, HTTP or SQL.
    pure: bool,
}

enum Ours {
    /// These and no others.
    Only(&'static [&'static str]),
    /// What a session may use, the session, and these.
    Session(&'static [&'static str]),
    /// Any but these.
    AllBut(&'static [&'static str]),
}

const RULES: &[Rule] = &[
    Rule { name: CORE, ours: Ours::Only(&[]), pure: true },
    Rule { name: PROOF, ours: Ours::Only(&[]), pure: true },
    Rule { name: "portcullis-wire", ours: Ours::Only(&[CORE]), pure: true },
    Rule { name: "portcullis-hook", ours: Ours::Only(&[]), pure: true },
    Rule { name: "portcullis-detect", ours: Ours::Only(&[]), pure: true },
    Rule { name: "portcullis-console", ours: Ours::Only(&[CORE]), pure: true },
    Rule { name: "portcullis-effects", ours: Ours::Only(&[CORE]), pure: true },
    Rule { name: "portcullis-contracts", ours: Ours::Only(&[]), pure: true },
    Rule { name: "portcullis-access", ours: Ours::Only(&[CORE, "portcullis-effects"]), pure: true },
    Rule { name: "portcullis-prove", ours: Ours::Only(&[CORE, "portcullis-access"]), pure: false },
    Rule {
        name: "portcullis-trajectory",
        ours: Ours::Only(&[CORE, "portcullis-contracts", "portcullis-detect"]),
        pure: true,
    },
    Rule {
        name: "portcullis-guards",
        ours: Ours::Only(&[CORE, "portcullis-contracts", "portcullis-effects", "portcullis-trajectory"]),
        pure: true,
    },
    Rule { name: "portcullis-contain", ours: Ours::Only(&[CORE, "portcullis-effects"]), pure: true },
    Rule {
        name: "portcullis-program",
        ours: Ours::Only(&[CORE, "portcullis-effects", "portcullis-contain"]),
        pure: false,
    },
    Rule {
        name: "portcullis-assist",
        ours: Ours::Only(&[CORE, "portcullis-contracts", "portcullis-program", "portcullis-access"]),
        pure: false,
    },
    Rule { name: "portcullis-ledger", ours: Ours::Only(&[CORE, PROOF]), pure: false },
    Rule { name: "portcullis-session", ours: Ours::Only(BELOW_SESSION), pure: false },
    Rule {
        name: "portcullis-work",
        ours: Ours::Only(&[CORE, "portcullis-contain", "portcullis-contracts"]),
        pure: false,
    },
    Rule {
        name: "portcullis-governance",
        ours: Ours::Only(&[CORE, PROOF, "portcullis-contracts", "portcullis-trajectory"]),
        pure: true,
    },
    Rule { name: "portcullis-sim", ours: Ours::Session(&["portcullis-governance"]), pure: false },
    Rule { name: "portcullis-gateway", ours: Ours::AllBut(&["portcullis-eval", "portcullis"]), pure: false },
    Rule { name: "portcullis-eval", ours: Ours::AllBut(&["portcullis-gateway", "portcullis"]), pure: false },
    Rule { name: "portcullis", ours: Ours::AllBut(&[]), pure: false },
    Rule { name: "xtask", ours: Ours::Only(&[]), pure: true },
];

/// Crates of others that no pure crate depends on.
const IMPURE: &[&str] = &[
    "async-std",
    "axum",
    "futures",
    "hyper",
    "hyper-util",
    "postgres",
    "reqwest",
    "rmcp",
    "rusqlite",
    "smol",
    "sqlx",
    "tokio",
    "tokio-postgres",
    "ureq",
];

/// Every edge that the table does not allow.
///
/// # Errors
/// Cargo's metadata lacks something it is documented to have.
pub(super) fn check(metadata: &Value) -> Result<Vec<String>> {
    let packages = metadata.get("packages").and_then(Value::as_array).ok_or_else(|| malformed("packages"))?;
    let mut problems = Vec::new();
    for package in packages.iter().filter(|package| package.get("source").is_some_and(Value::is_null)) {
        let name = text(package, "name")?;
        let Some(rule) = RULES.iter().find(|rule| rule.name == name) else {
            problems.push(format!("{name}: a crate that the table in xtask/src/tidy/edges.rs does not know"));
            continue;
        };
        for dependency in
            package.get("dependencies").and_then(Value::as_array).ok_or_else(|| malformed("dependencies"))?
        {
            let on = text(dependency, "name")?;
            let ours = dependency.get("path").is_some_and(Value::is_string);
            let in_tests = dependency.get("kind").and_then(Value::as_str) == Some("dev")
                && FOR_TESTS.contains(&(name, on));
            if ours && !in_tests && !allows(&rule.ours, on) {
                problems.push(format!(
                    "{name}: may not depend on {on}; the design has it the other way or apart"
                ));
            } else if !ours && rule.pure && IMPURE.contains(&on) {
                problems.push(format!("{name}: may not depend on {on}; it is pure: no async, HTTP or SQL"));
            }
        }
    }
    Ok(problems)
}

fn allows(ours: &Ours, on: &str) -> bool {
    match ours {
        Ours::Only(names) => names.contains(&on),
        Ours::Session(more) => {
            on == "portcullis-session" || BELOW_SESSION.contains(&on) || more.contains(&on)
        }
        Ours::AllBut(names) => !names.contains(&on),
    }
}

fn text<'a>(value: &'a Value, field: &str) -> Result<&'a str> {
    value.get(field).and_then(Value::as_str).ok_or_else(|| malformed(field))
}

fn malformed(field: &str) -> Failure {
    Failure::new(format!("cargo's metadata has no `{field}` where one is expected"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn problems(name: &str, on: &str, path: Option<&str>) -> Vec<String> {
        let package = json!({"name": name, "source": null, "dependencies": [{"name": on, "path": path}]});
        check(&json!({"packages": [package]})).unwrap()
    }

    #[test]
    fn an_edge_against_the_design_fires() {
        for (name, on) in [
            ("portcullis-core", "portcullis-proof"),
            ("portcullis-proof", "portcullis-core"),
            ("portcullis-wire", "portcullis-guards"),
            ("portcullis-guards", "portcullis-session"),
            ("portcullis-session", "portcullis-gateway"),
            ("portcullis-sim", "portcullis-gateway"),
            ("portcullis-gateway", "portcullis-eval"),
        ] {
            assert_eq!(problems(name, on, Some("/x")).len(), 1, "{name} -> {on}");
        }
    }

    #[test]
    fn an_edge_of_the_design_is_silent() {
        for (name, on) in [
            ("portcullis-guards", "portcullis-core"),
            ("portcullis-ledger", "portcullis-proof"),
            ("portcullis-sim", "portcullis-ledger"),
            ("portcullis-gateway", "portcullis-session"),
            ("portcullis-gateway", "portcullis-sim"),
            ("portcullis", "portcullis-gateway"),
        ] {
            assert_eq!(problems(name, on, Some("/x")), Vec::<String>::new(), "{name} -> {on}");
        }
    }

    #[test]
    fn what_tests_may_use_the_code_may_not() {
        let edge = |kind: Value| {
            let on = json!({"name": "portcullis-session", "path": "/x", "kind": kind});
            let package = json!({"name": "portcullis-guards", "source": null, "dependencies": [on]});
            check(&json!({"packages": [package]})).unwrap().len()
        };
        assert_eq!((edge(json!("dev")), edge(Value::Null), edge(json!("build"))), (0, 1, 1));
    }

    #[test]
    fn purity_fires_and_an_unknown_crate_does() {
        assert_eq!(problems("portcullis-core", "tokio", None).len(), 1);
        assert_eq!(problems("portcullis-session", "tokio", None).len(), 0);
        assert!(problems("portcullis-utils", "serde", None)[0].contains("does not know"));
    }

    #[test]
    fn metadata_of_another_form_is_an_error() {
        assert!(check(&json!({})).is_err());
    }
}
