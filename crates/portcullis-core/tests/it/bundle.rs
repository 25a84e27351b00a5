//! What a bundle's author is told.

use expect_test::{Expect, expect};
use portcullis_core::bundle::Bundle;

use crate::files;

#[track_caller]
fn check(more: &[(&str, &str)], expect: &Expect) {
    let diagnostics = Bundle::load(&files(more)).expect_err("the bundle has a mistake");
    let lines: Vec<String> = diagnostics.iter().map(ToString::to_string).collect();
    expect.assert_eq(&lines.join("\n"));
}

#[test]
fn mistakes_have_a_place_and_advice() {
    check(
        &[("portcullis.toml", "version = 1\nmode = \"enforc\"\nunknwon_tools = \"deny\"\npolicy = \"P\"\n")],
        &expect![[r#"
            portcullis.toml:2:8: `enforc` is not a value of `mode` (did you mean `enforce`?)
            portcullis.toml:3:1: unknown field `unknwon_tools` in the file (did you mean `unknown_tools`?)
            portcullis.toml:4:10: there is no runtime policy `P` (did you mean `p`?)"#]],
    );
    check(
        &[(
            "policies/p.toml",
            "[[policy]]\nname = 'p'\nallowed_types = ['SEND_EMIAL']\nmax_steps = 0\nrestricted_keywords = ['']\n",
        )],
        &expect![[r#"
            policies/p.toml:4:13: `max_steps` must be a whole number from 1 to 4294967295, found 0
            policies/p.toml:1:1: the policy lacks `max_side_effects`
            policies/p.toml:5:24: an empty keyword never matches"#]],
    );
    check(
        &[("tools/t.toml", "[[tool]]\nname = 'a'\ntype = 'X'\nside_effecting = 'yes'\nrisk = 2\n")],
        &expect![[r#"
            tools/t.toml:4:18: `side_effecting` must be true or false, found string
            tools/t.toml:5:8: `risk` must be a number from 0 to 1, found 2"#]],
    );
}

#[test]
fn a_budget_of_a_principal_says_what_it_limits() {
    let policy = |principal: &str| {
        format!(
            "[[policy]]\nname = 'q'\nallowed_types = []\nmax_steps = 1\nmax_side_effects = 0\n[policy.principal]\n{principal}"
        )
    };
    check(
        &[("policies/q.toml", &policy("per = 'week'\nmax_stps = 3\n"))],
        &expect![[r#"
        policies/q.toml:7:7: `week` is not a value of `per` (known here: hour, day)
        policies/q.toml:8:1: unknown field `max_stps` in the principal (did you mean `max_steps`?)
        policies/q.toml:6:1: the principal has no limit: give `max_steps`, `max_side_effects`, `max_bytes` or `max_cost`"#]],
    );
    check(
        &[("policies/q.toml", &policy("max_bytes = 0\n"))],
        &expect![[r#"
        policies/q.toml:6:1: the principal lacks `per`
        policies/q.toml:7:13: `max_bytes` must be a whole number from 1 to 4294967295, found 0
        policies/q.toml:6:1: the principal has no limit: give `max_steps`, `max_side_effects`, `max_bytes` or `max_cost`"#]],
    );
    check(
        &[("policies/q.toml", &policy("per = 'day'\n"))],
        &expect![
            "policies/q.toml:6:1: the principal has no limit: give `max_steps`, `max_side_effects`, `max_bytes` or `max_cost`"
        ],
    );
}

#[test]
fn broken_files_are_named() {
    check(
        &[("portcullis.toml", "version = 1\nmode = \n")],
        &expect![[r#"portcullis.toml:2:8: string values must be quoted, expected literal string"#]],
    );
    check(
        &[("knowledge.json", "{\"a\": \"b\",\n \"c\": }")],
        &expect![[r#"knowledge.json:2:7: not JSON: expected value at line 2 column 7"#]],
    );
    check(
        &[("knowledge.json", "{\"a\": 1}")],
        &expect![[r#"knowledge.json:1:1: document `a` must be a string"#]],
    );
    check(
        &[("polices/p.toml", "")],
        &expect![[r#"polices/p.toml:1:1: this file has no place in a bundle (did you mean `policies/`?)"#]],
    );
}

#[test]
fn names_are_unique_and_references_resolve() {
    let tool = "[[tool]]\nname = 'a'\ntype = 'X'\nside_effecting = false\n";
    check(
        &[
            ("tools/a.toml", tool),
            ("tools/b.toml", tool),
            ("plans/p.toml", "[[plan]]\nname = 'x'\n[[plan.step]]\naction = 'y'\ntool = 'aa'\n"),
        ],
        &expect![[r#"
            tools/b.toml:2:8: the tool name `a` is used twice
            plans/p.toml:5:8: there is no tool `aa` (did you mean `a`?)"#]],
    );
    check(
        &[(
            "policies/q.toml",
            "[[policy]]\nname = 'p'\nallowed_types = ['SEND_EMIAL']\nmax_steps = 1\nmax_side_effects = 0\n",
        )],
        &expect![[r#"
            policies/q.toml:2:8: the runtime policy name `p` is used twice
            policies/q.toml:3:18: there is no tool type `SEND_EMIAL` (did you mean `SEND_EMAIL`?)"#]],
    );
}

#[test]
fn the_digest_names_the_files() {
    let digest = |more: &[(&str, &str)]| Bundle::load(&files(more)).unwrap().digest();
    assert_eq!(digest(&[]), digest(&[]));
    assert_ne!(digest(&[]), digest(&[("portcullis.toml", "version = 1\n\n")]));
    assert_ne!(digest(&[]), digest(&[("README.md", "")]));
}

#[test]
fn keywords_may_be_written_as_in_the_form_of_the_seed() {
    let policy = "[[policy]]\nname = 'p'\nallowed_types = []\nmax_steps = 1\nmax_side_effects = 0\n\
                  restricted_keywords = ' wire, , transfer funds ,'\n";
    let bundle = Bundle::load(&files(&[("policies/p.toml", policy)])).unwrap();
    assert_eq!(bundle.policies()[0].restricted_keywords, ["wire", "transfer funds"]);
}

#[test]
fn lints_name_what_is_probably_not_meant() {
    let policy = "[[policy]]\nname = \"a\"\nallowed_types = [\"QUERY_DB\", \"CALCULATE\"]\nmax_steps = 2\n\
        max_side_effects = 3\nrestricted_keywords = [\"wire\", \"Wire transfer\", \"pay\"]\n\
        [[policy]]\nname = \"b\"\nallowed_types = [\"QUERY_DB\"]\nmax_steps = 5\nmax_side_effects = 0\n\
        approval_for_side_effects = true\n";
    let tools = "[[tool]]\nname = \"q\"\ntype = \"QUERY_DB\"\nside_effecting = true\n\
        [[tool]]\nname = \"m\"\ntype = \"SEND_EMAIL\"\nside_effecting = true\ninferred = true\n\
        [[tool]]\nname = \"off\"\ntype = \"WEB_FETCH\"\nside_effecting = true\nenabled = false\n";
    let bundle = Bundle::load(
        &[("portcullis.toml", "version = 1\n"), ("policies/p.toml", policy), ("tools/t.toml", tools)]
            .map(|(path, text)| (path.to_owned(), text.as_bytes().to_vec()))
            .into(),
    )
    .unwrap();
    let lints: Vec<String> = bundle
        .lint()
        .iter()
        .map(|lint| format!("{} {}:{}", lint.name, lint.diagnostic.file, lint.diagnostic.line))
        .collect();
    assert_eq!(
        lints,
        [
            "unused-type policies/p.toml:2",
            "shadowed-keyword policies/p.toml:2",
            "unreachable-limit policies/p.toml:2",
            "useless-approval policies/p.toml:8",
            "unreachable-tool tools/t.toml:6",
            "unconfirmed-tool tools/t.toml:6",
        ]
    );
}
