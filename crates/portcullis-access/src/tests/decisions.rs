//! What policies make of actions.

use portcullis_core::effect::{Effect, Resource, ResourceKind, Verb};
use portcullis_core::principal::{Attribute, Decimal};
use portcullis_core::state::RunState;
use serde_json::json;

use super::world::{call, decide, load, principal, query, read, run, told, touch};

const CLINIC: &str = r#"
permit (principal, action in Action::"call", resource);

permit (principal in Role::"physician", action == Action::"read", resource is Column)
when { resource in [Table::"lab", Table::"patient"] && resource.catalogued };

permit (principal in Role::"general administration", action == Action::"read", resource is Column)
when { [Column::"lab.patientunitstayid", Column::"patient.patientunitstayid"].contains(resource) };
"#;

fn clinic(roles: &[&str], columns: &[&str]) -> String {
    let bundle = load("deny", CLINIC).unwrap();
    let effects: Vec<Effect> = columns.iter().map(|column| read(column)).collect();
    told(&decide(&bundle, &run(principal(roles, &[])), &query(), &effects))
}

/// The findings under one policy text, for a physician who is 17, with `default`.
fn under(default: &str, policies: &str, effects: &[Effect]) -> String {
    let bundle = load(default, policies).unwrap_or_else(|mistakes| panic!("{mistakes:#?}"));
    let physician = principal(&["physician"], &[("age", Attribute::Integer(17))]);
    told(&decide(&bundle, &run(physician), &query(), effects))
}

#[test]
fn a_role_reads_what_it_may_and_all_that_it_may_not_is_listed() {
    assert_eq!(clinic(&["physician"], &["lab.labname", "patient.age"]), "");
    assert_eq!(
        clinic(&["general administration"], &["lab.patientunitstayid", "lab.labname", "patient.age"]),
        "access/not-permitted deny [] [column lab.labname, column patient.age]"
    );
    assert_eq!(
        clinic(&[], &["lab.labname"]),
        "access/not-permitted deny [] [column lab.labname]",
        "no role, no right"
    );
}

#[test]
fn an_unlisted_column_is_denied_and_databases_are_kept_apart() {
    assert_eq!(
        clinic(&["physician"], &["lab.labid!", "lab.labname"]),
        "access/not-permitted deny [] [column lab.labid]"
    );
    assert_eq!(
        clinic(&["general administration"], &["lab.patientunitstayid", "cost.patientunitstayid"]),
        "access/not-permitted deny [] [column cost.patientunitstayid]"
    );
}

#[test]
fn another_name_of_a_role_is_the_role() {
    assert_eq!(clinic(&["general admission"], &["patient.patientunitstayid"]), "");
}

#[test]
fn forbids_join_and_permits_yield_to_the_weakest() {
    let lab = [read("lab.labname")];
    let all = "permit (principal, action, resource);";
    for (policies, expected) in [
        (all.to_owned(), ""),
        (
            format!("{all} @id(\"f\") forbid (principal, action == Action::\"read\", resource);"),
            "access/f deny [f] [column lab.labname]",
        ),
        (
            format!(
                "{all} @id(\"f\") @decision(\"review\") forbid (principal, action, resource is Column);\
                 @id(\"g\") @decision(\"warn\") @rule(\"look\") forbid (principal, action, resource is Column);"
            ),
            "access/f review [f] [column lab.labname]\naccess/look warn [g] [column lab.labname]",
        ),
        (
            "@id(\"f\") @decision(\"warn\") forbid (principal, action, resource is Column);\
             permit (principal, action in Action::\"call\", resource);"
                .to_owned(),
            "access/f warn [f] [column lab.labname]\naccess/not-permitted deny [] [column lab.labname]",
        ),
        (
            "@decision(\"review\") permit (principal, action, resource);".to_owned(),
            "access/clinic-1 review [clinic-1] [tool query, column lab.labname]",
        ),
        (format!("@decision(\"review\") permit (principal, action, resource); {all}"), ""),
        (
            "@decision(\"review\") permit (principal, action, resource);\
             @decision(\"warn\") permit (principal, action, resource is Column);\
             @decision(\"warn\") permit (principal, action, resource is Column);"
                .to_owned(),
            "access/clinic-1 review [clinic-1] [tool query]\n\
             access/clinic-2 warn [clinic-2, clinic-3] [column lab.labname]",
        ),
    ] {
        assert_eq!(under("deny", &policies, &lab), expected, "{policies}");
    }
}

#[test]
fn what_nothing_permits_follows_the_default() {
    let other = "permit (principal, action == Action::\"write\", resource is Path);";
    let lab = [read("lab.labname")];
    assert_eq!(under("allow", other, &lab), "");
    assert_eq!(
        under("review", other, &lab),
        "access/not-permitted review [] [tool query, column lab.labname]"
    );
    assert_eq!(under("deny", "", &lab), "access/not-permitted deny [] [tool query, column lab.labname]");
}

#[test]
fn attributes_of_principals_decide_at_the_boundary_and_may_be_missing() {
    let policies = r#"
        @rule("too-young") @reason("you must be 18 to book a hotel")
        forbid (principal, action, resource == Activity::"book-hotel")
        when { principal has age && principal.age < 18 };
        @rule("age-unknown")
        forbid (principal, action, resource == Activity::"book-hotel")
        unless { principal has age };
        @rule("no-member")
        forbid (principal, action, resource == Activity::"book-hotel")
        unless { principal has member && principal.member };
    "#;
    let bundle = load("allow", policies).unwrap();
    let book = [touch(Verb::Execute, ResourceKind::Activity, "book-hotel")];
    let rules = |attributes: &[(&str, Attribute)]| {
        let findings = decide(&bundle, &run(principal(&[], attributes)), &query(), &book);
        findings.iter().map(|finding| finding.rule.to_string()).collect::<Vec<_>>().join(" ")
    };
    let member = ("member", Attribute::Boolean(true));
    assert_eq!(rules(&[("age", Attribute::Integer(18)), member.clone()]), "");
    assert_eq!(rules(&[("age", Attribute::Integer(17)), member.clone()]), "access/too-young");
    assert_eq!(rules(&[member]), "access/age-unknown");
    assert_eq!(rules(&[("age", Attribute::Integer(17))]), "access/too-young access/no-member");
    assert_eq!(rules(&[("age", Attribute::Text("17".into()))]), "access/principal-attribute");
}

#[test]
fn a_principal_with_decimals_and_text_and_one_that_nobody_declared() {
    let policies = r#"
        forbid (principal, action == Action::"pay", resource is Payee)
        when { resource has amount && principal has limit && resource.amount.greaterThan(principal.limit) };
    "#;
    let bundle = load("allow", policies).unwrap();
    let amount = |ten_thousandths| Attribute::Decimal(Decimal { ten_thousandths });
    let payee = Resource::new(ResourceKind::Payee, "acme").with("currency", "EUR");
    let pay = |sum: i64| {
        let resource = Resource { attributes: payee.attributes.clone(), ..payee.clone() };
        let mut resource = resource;
        resource.attributes.insert("amount", amount(sum));
        let who = principal(&[], &[("limit", amount(1_000_000)), ("shoe_size", Attribute::Integer(43))]);
        decide(&bundle, &run(who), &call("pay", json!({})), &[Effect::new(Verb::Pay, resource)]).len()
    };
    assert_eq!((pay(1_000_000), pay(1_000_001)), (0, 1));
}

#[test]
fn resources_lie_in_folders_domains_and_tables() {
    let policies = r#"
        @id("etc") forbid (principal, action, resource in Path::"/etc");
        @id("example") forbid (principal, action, resource in Domain::"example.com");
        @id("lab") forbid (principal, action, resource in Table::"lab");
        @id("mail") forbid (principal, action == Action::"send", resource is Recipient in Domain::"com");
    "#;
    let host = |name: &str| touch(Verb::Send, ResourceKind::Host, name);
    let recipient =
        Resource::new(ResourceKind::Recipient, "a@mail.example.com").with("domain", "mail.example.com");
    let effects = [
        touch(Verb::Write, ResourceKind::Path, "/etc/ssh/keys"),
        touch(Verb::Write, ResourceKind::Path, "/etc"),
        touch(Verb::Write, ResourceKind::Path, "/etcetera"),
        host("example.com"),
        host("api.example.com"),
        host("notexample.com"),
        read("lab.labname"),
        Effect::new(Verb::Send, recipient),
    ];
    assert_eq!(
        under("allow", policies, &effects),
        "access/etc deny [etc] [path /etc/ssh/keys, path /etc]\n\
         access/example deny [example] [host example.com, host api.example.com, recipient a@mail.example.com]\n\
         access/lab deny [lab] [column lab.labname]\n\
         access/mail deny [mail] [recipient a@mail.example.com]"
    );
}

#[test]
fn one_name_with_two_sets_of_attributes_is_judged_twice() {
    let policies = "@id(\"p\") forbid (principal, action, resource is Path) when { !resource.resolved };";
    let path = |resolved: bool| {
        let resource = Resource::new(ResourceKind::Path, "/a").with("resolved", resolved);
        Effect::new(Verb::Write, resource)
    };
    for effects in [[path(true), path(false)], [path(false), path(true)]] {
        assert_eq!(under("allow", policies, &effects), "access/p deny [p] [path /a]");
    }
}

#[test]
fn calls_are_judged_by_tool_and_arguments() {
    let policies = r#"
        @id("rows") forbid (principal, action == Action::"call:q1", resource)
        when { context.args has rows && context.args.rows > 100 };
        @id("tag") forbid (principal, action == Action::"call:q1", resource)
        when { context.args has tags && context.args.tags.contains("secret") };
        @id("page") forbid (principal, action == Action::"call:q1", resource)
        when { context.args has page && context.args.page has size && context.args.page.size > 5 };
        @id("risk") forbid (principal, action in Action::"call", resource)
        when { resource.risk.greaterThan(decimal("0.5")) };
        @id("listed") forbid (principal, action == Action::"call", resource) when { !resource.known };
    "#;
    let bundle = load("allow", policies).unwrap();
    let policies_for = |tool: &str, arguments| {
        let findings = decide(&bundle, &run(principal(&[], &[])), &call(tool, arguments), &[]);
        told(&findings)
    };
    assert_eq!(policies_for("query", json!({"sql": "x", "rows": 100, "tags": ["a"]})), "");
    assert_eq!(policies_for("q1", json!({"sql": "x", "rows": 101})), "access/rows deny [rows] [tool query]");
    assert_eq!(
        policies_for(
            "query",
            json!({"sql": "x", "rows": null, "tags": ["a", "secret"], "page": {"size": 6.0}})
        ),
        "access/tag deny [tag] [tool query]\naccess/page deny [page] [tool query]"
    );
    assert_eq!(policies_for("pay", json!({})), "access/risk deny [risk] [tool pay]");
    assert_eq!(
        policies_for("nobody-knows", json!({"x": 1})),
        "access/risk deny [risk] [tool nobody-knows]\naccess/listed deny [listed] [tool nobody-knows]"
    );
    for misfit in [json!({"sql": "x", "rows": "many"}), json!({}), json!({"sql": 1}), json!([1])] {
        assert_eq!(policies_for("query", misfit), "access/arguments deny [] [tool query]");
    }
}

#[test]
fn arguments_never_stand_in_messages() {
    let bundle = load("deny", "forbid (principal, action, resource is Path);").unwrap();
    let effects = [touch(Verb::Read, ResourceKind::Path, "/home/s3cret")];
    let arguments = json!({"sql": {"s3cret": 1}});
    for finding in decide(&bundle, &run(principal(&[], &[])), &call("query", arguments), &effects) {
        assert!(!finding.message.contains("s3cret"), "{}", finding.message);
    }
}

#[test]
fn a_policy_that_cannot_be_evaluated_denies() {
    let policies = "@id(\"sum\") permit (principal, action, resource) when { context.run.steps + \
                    9223372036854775807 > 0 };\
                    @id(\"product\") permit (principal, action == Action::\"read\", resource is Column)\
                    when { (context.run.steps + 9223372036854775807) * 2 > 0 };";
    assert_eq!(
        under("allow", policies, &[read("lab.labname")]),
        "access/policy-error deny [product] [column lab.labname]"
    );
}

#[test]
fn without_a_principal_nothing_is_permitted() {
    let bundle = load("allow", "permit (principal, action, resource);").unwrap();
    assert_eq!(told(&decide(&bundle, &RunState::new(), &query(), &[])), "access/no-principal deny [] []");
}

#[test]
fn a_permit_of_a_role_is_not_one_of_its_namesake() {
    let policies = "permit (principal == Principal::\"physician\", action, resource);\
                    permit (principal == Role::\"physician\", action, resource);";
    assert_eq!(
        under("deny", policies, &[]),
        "access/not-permitted deny [] [tool query]",
        "a principal is never equal to a role"
    );
}
