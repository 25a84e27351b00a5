//! What is loaded and probably not meant.

use super::world::load;

/// `name line:column message`, without what the bundle's settings alone bring up.
fn lints(default: &str, policies: &str) -> Vec<String> {
    let bundle = load(default, policies).unwrap_or_else(|mistakes| panic!("{mistakes:#?}"));
    let lints = crate::lint(&bundle).into_iter().filter(|lint| lint.diagnostic.file.ends_with(".cedar"));
    lints
        .map(|lint| {
            let d = lint.diagnostic;
            format!("{} {}:{} {}", lint.name, d.line, d.column, d.message)
        })
        .collect()
}

#[test]
fn each_lint_fires() {
    let read = "action == Action::\"read\", resource is Column";
    for (policies, expected) in [
        ("permit (principal, action, resource);".to_owned(), "over-broad 1:1 `clinic-1` permits every action for every principal"),
        (
            format!("forbid (principal, {read});\npermit (principal in Role::\"a\", {read}) when {{ resource.catalogued }};"),
            "unreachable-policy 2:1 `clinic-2` never permits anything: `clinic-1` forbids all of it",
        ),
        (
            format!("forbid (principal, {read}) when {{ resource.catalogued }};\npermit (principal, {read}) when {{ resource.catalogued }};"),
            "conflicting-policies 2:1 `clinic-2` permits exactly what `clinic-1` forbids",
        ),
        (
            format!("permit (principal, {read}) when {{ resource.catalogued && resource in Table::\"lab\" }};\npermit (principal, {read}) when {{ resource.catalogued }};"),
            "shadowed-policy 1:1 `clinic-1` has no effect: `clinic-2` applies to every request that it applies to",
        ),
        (
            format!("permit (principal, {read});\npermit (principal, {read});"),
            "shadowed-policy 2:1 `clinic-2` has no effect: `clinic-1` applies to every request that it applies to",
        ),
        (
            "forbid (principal, action, resource in Path::\"/etc\");\nforbid (principal, action, resource == Path::\"/etc/passwd\");".to_owned(),
            "shadowed-policy 2:1 `clinic-2` has no effect: `clinic-1` applies to every request that it applies to",
        ),
        (
            format!("permit (principal, {read})\nwhen {{ resource.name == \"a\" && resource.name == \"b\" }};"),
            "never-matches 1:1 `clinic-1` never applies: two of its conditions exclude each other",
        ),
        (
            format!("permit (principal, {read}) when {{ resource.catalogued }} unless {{ resource.catalogued }};"),
            "never-matches 1:1 `clinic-1` never applies: two of its conditions exclude each other",
        ),
        (
            "permit (principal, action == Action::\"read\", resource is Domain);".to_owned(),
            "never-matches 1:1 `clinic-1` never applies: its action does not apply to such resources",
        ),
        (
            format!("permit (principal, {read}) when {{ resource is Path }};"),
            "never-matches 1:1 `clinic-1` never applies: its conditions are always false",
        ),
        (
            format!("permit (principal, {read}) when {{ resource in Table::\"surgery\" }};"),
            "unknown-name 1:85 `clinic-1` names the table `surgery`, which the bundle does not list",
        ),
        (
            format!("permit (principal, {read}) when {{ resource == Column::\"surgery.room\" }};"),
            "unknown-name 1:85 `clinic-1` names the column `surgery.room`, which the bundle does not list",
        ),
    ] {
        let found = lints("deny", &policies);
        assert_eq!(found, [expected], "{policies}");
    }
    let found = lints("allow", "permit (principal, action == Action::\"read\", resource is Column);");
    assert_eq!(
        found,
        ["useless-permit 1:1 `clinic-1` has no effect: the bundle allows whatever is not forbidden"]
    );
}

#[test]
fn what_differs_is_silent() {
    let policies = r#"
        permit (principal in Role::"a", action == Action::"read", resource is Column in Table::"lab");
        permit (principal in Role::"b", action == Action::"read", resource is Column in Table::"lab");
        permit (principal in Role::"a", action == Action::"read", resource is Column in Table::"patient");
        @decision("review") permit (principal in Role::"a", action == Action::"write", resource is Column);
        forbid (principal, action == Action::"read", resource in Table::"lab") when { context.run.tainted };
        @decision("review") forbid (principal in Role::"b", action == Action::"read", resource is Column);
        permit (principal, action == Action::"call:q1", resource);
        permit (principal, action == Action::"call", resource) when { !resource.side_effecting };
    "#;
    assert_eq!(lints("deny", policies), Vec::<String>::new());
}

#[test]
fn settings_that_no_policy_uses_are_named() {
    let policies = "forbid (principal, action, resource) when { principal has age && principal.age < 3 };";
    let bundle = load("allow", policies).unwrap();
    let lints: Vec<String> = crate::lint(&bundle).into_iter().map(|lint| lint.diagnostic.message).collect();
    assert_eq!(
        lints,
        [
            "no access policy uses the attribute `limit`",
            "no access policy uses the attribute `member`",
            "no access policy uses the attribute `ward`",
            "`general admission` is an alias of the role `general administration`, which no policy names",
        ]
    );
}
