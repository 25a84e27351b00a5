//! What keeps policies from loading, and what it says.

use portcullis_core::action::{Pending, Subject};
use portcullis_core::bundle::Bundle;
use portcullis_core::fact::Facts;
use portcullis_core::guard::{Context, Guard};
use portcullis_core::memory::NoMemory;
use portcullis_core::pipeline::{Pipeline, reserved};
use portcullis_core::time::Timestamp;

use super::world::{files, load, principal, query, run};
use crate::{Access, AccessGuard};

fn mistakes(policies: &str) -> Vec<String> {
    load("allow", policies).unwrap_err().iter().map(ToString::to_string).collect()
}

/// Policies with a mistake, and what is said of it.
const MISTAKES: &[(&str, &str)] = &[
    (
        "permit (principal, action == Action::\"raed\", resource);",
        "access/clinic.cedar:1:30: unrecognized action `Action::\"raed\"` (did you mean `Action::\"read\"`?)",
    ),
    (
        "permit (principal, action == Action::\"call:querry\", resource);",
        "access/clinic.cedar:1:30: unrecognized action `Action::\"call:querry\"` (did you mean \
         `Action::\"call:q1\"`?)",
    ),
    (
        "\npermit (principal, action == Action::\"read\", resource is Colum);",
        "access/clinic.cedar:2:58: unrecognized entity type `Colum` (did you mean `Column`?)",
    ),
    (
        "permit (principal, action == Action::\"read\", resource is Column)\nwhen { resource.cataloged };",
        "access/clinic.cedar:2:8: attribute `cataloged` on entity type `Column` not found (did you mean \
         `catalogued`?)",
    ),
    (
        "permit (principal, action == Action::\"read\", resource is Column)\nwhen { principal.agee > 3 };",
        "access/clinic.cedar:2:8: attribute `agee` on entity type `Principal` not found (did you mean `age`?)",
    ),
    (
        "permit (principal, action == Action::\"read\", resource is Column)\nwhen { principal.age > 3 };",
        "access/clinic.cedar:2:8: unable to guarantee safety of access to optional attribute `age` on entity \
         type `Principal` (check `principal has age && …` first)",
    ),
    (
        "permit (principal, action == Action::\"call:q1\", resource) when { context.args.row > 3 };",
        "access/clinic.cedar:1:66: attribute `args.row` in context for Action::\"call:q1\" not found (did you \
         mean `rows`?)",
    ),
    (
        "permit (principal, action, resource == Tool::\"qeury\");",
        "access/clinic.cedar:1:40: there is no tool `qeury` (did you mean `query`?)",
    ),
    (
        "forbid (principal, action, resource in Table::\"labs\");",
        "access/clinic.cedar:1:40: there is no table `labs` (did you mean `lab`? If both are meant, list `labs` in \
         the bundle as well)",
    ),
    (
        "forbid (principal, action, resource == Column::\"lab.labnam\");",
        "access/clinic.cedar:1:40: there is no column `lab.labnam` (did you mean `lab.labname`? If both are meant, \
         list `lab.labnam` in the bundle as well)",
    ),
    (
        "forbid (principal, action, resource == Host::\"Example.com\");",
        "access/clinic.cedar:1:40: `Example.com` never matches a host: write it in lower case",
    ),
    (
        "forbid (principal, action, resource in Domain::\"*.example.com\");",
        "access/clinic.cedar:1:40: `*.example.com` never matches a host: patterns are not supported; `in Domain::\"example.com\"` means that host and its subdomains",
    ),
    (
        "forbid (principal, action, resource in Path::\"/etc/\");",
        "access/clinic.cedar:1:40: `/etc/` never matches a path: remove the trailing `/`; `in` means the folder and everything below it",
    ),
    (
        "@decision(\"reveiw\") forbid (principal, action, resource);",
        "access/clinic.cedar:1:1: `reveiw` is not a decision of a `forbid` policy (did you mean `review`?)",
    ),
    (
        "@reasn(\"x\") forbid (principal, action, resource);",
        "access/clinic.cedar:1:1: `@reasn` is not an annotation of access policies (did you mean `reason`?)",
    ),
    (
        "@id(\"a\") forbid (principal, action, resource);\n@id(\"a\") forbid (principal, action, resource);",
        "access/clinic.cedar:2:1: the policy id `a` is taken: access/clinic.cedar:1 (give it an `@id`)",
    ),
    (
        "permit (principal == ?principal, action, resource);",
        "access/clinic.cedar:1:1: policy templates are not supported (name the principal or resource)",
    ),
    (
        "premit (principal, action, resource);",
        "access/clinic.cedar:1:1: invalid policy effect: premit (did you mean `permit`?)",
    ),
    (
        "permit (principal, action, resource) wehn { true };",
        "access/clinic.cedar:1:38: invalid policy condition: wehn (did you mean `when`?)",
    ),
    (
        "permit (principal, action, resource)",
        "access/clinic.cedar:1:37: unexpected end of input (expected `;` or identifier)",
    ),
];

#[test]
fn a_mistake_names_its_place_and_the_nearest_valid_name() {
    let mut wrong = Vec::new();
    for &(policies, expected) in MISTAKES {
        let found = mistakes(policies);
        if found.first().map(String::as_str) != Some(expected) {
            wrong.push(format!(
                "{policies}\n  expected {expected}\n  found    {}",
                found.join("\n           ")
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn one_mistake_is_reported_once_and_several_all() {
    let found = mistakes("permit (principal, action, resource) when { resource.nmae == \"x\" };");
    assert_eq!(found.len(), 1, "once, not for every type of resource: {found:#?}");
    let found = mistakes(
        "permit (principal, action == Action::\"raed\", resource);\npermit (principal, action, resource is Pth);",
    );
    assert_eq!(found.len(), 2, "{found:#?}");
}

#[test]
fn a_literal_entity_has_no_attributes_to_ask_for() {
    let found = mistakes("permit (principal, action, resource) when { Tool::\"query\".side_effecting };");
    assert!(found[0].contains("entity literals cannot be dereferenced"), "{found:#?}");
}

/// Deep text is an error on a small stack; what is within the bounds loads on one.
#[test]
fn depth_is_an_error_and_never_an_overflow() {
    let parens = |n: usize| format!("{}true{}", "(".repeat(n), ")".repeat(n));
    let conditions = [
        parens(5_000),
        parens(crate::BRACKETS_MAX - 1),
        parens(crate::BRACKETS_MAX - 1).replace('(', "!("),
        "true || ".repeat(5_000) + "true",
        "true && ".repeat(crate::OPERATORS_MAX - 3) + "true",
        "if true then true else ".repeat(crate::OPERATORS_MAX - 3) + "true",
        "if ".repeat(crate::OPERATORS_MAX - 3)
            + "true"
            + &" then true else true".repeat(crate::OPERATORS_MAX - 3),
        "1 + ".repeat(crate::OPERATORS_MAX - 3) + "1 == 1",
        format!("{}1{} == 1", "[".repeat(crate::BRACKETS_MAX - 1), "]".repeat(crate::BRACKETS_MAX - 1)),
        "(true && true && true && true && true && true && true && ".repeat(60) + "true" + &")".repeat(60),
    ];
    for condition in conditions {
        let policies = format!("permit (principal, action, resource) when {{ {condition} }};");
        let judged = std::thread::Builder::new().stack_size(2 << 20).spawn(move || {
            let Ok(bundle) = load("allow", &policies) else { return };
            let findings = super::world::decide(&bundle, &run(principal(&[], &[])), &query(), &[]);
            assert!(findings.iter().all(|finding| finding.rule == crate::rules::POLICY_ERROR));
        });
        judged.unwrap().join().unwrap();
    }
}

#[test]
fn the_schema_is_shown_as_it_is_checked() {
    let bundle = load("allow", "permit (principal, action, resource);").unwrap();
    let schema = bundle.compiled::<Access>().unwrap().schema_text();
    for part in [
        "entity Principal in [Role] {",
        "  \"limit\"?: decimal,".trim_matches('"'),
        "action \"call:q1\" in [\"call\"] appliesTo {",
        "args: { page?: { size?: Long }, rows?: Long, sql: String, tags?: Set<String> },",
    ] {
        let part = part.replace('"', "");
        assert!(schema.replace('"', "").contains(&part), "{part}\n{schema}");
    }
    assert_eq!(schema, crate::schema_text(&bundle));
}

fn verdict(bundle: &Bundle) -> Option<String> {
    let (run, action) = (run(principal(&[], &[])), query());
    let pending = Pending { at: Timestamp::from_micros(0), subject: Subject::Action(&action), grant: None };
    let context = Context::new(bundle, bundle.policy("p").unwrap(), &run);
    let pipeline = Pipeline::<NoMemory>::new(vec![Box::new(AccessGuard)]);
    let decision = pipeline.decide(&context, &pending, &Facts::none());
    decision.headline().map(|finding| finding.rule.to_string())
}

#[test]
fn the_guard_is_silent_without_policies_and_fails_closed_without_a_compiler() {
    assert_eq!(Guard::<NoMemory>::meta(&AccessGuard).id, "access");
    let mut none = files("allow", "");
    none.remove("access/clinic.cedar");
    assert_eq!(verdict(&Bundle::load(&none).unwrap()), None);
    let forbid = "forbid (principal, action, resource);";
    assert_eq!(verdict(&load("allow", forbid).unwrap()).as_deref(), Some("access/clinic-1"));
    let uncompiled = Bundle::load(&files("allow", forbid)).unwrap();
    assert_eq!(verdict(&uncompiled).as_deref(), Some(reserved::GUARD_FAILED));
    let mut denying = files("deny", "");
    denying.remove("access/clinic.cedar");
    assert_eq!(verdict(&Bundle::load(&denying).unwrap()).as_deref(), Some(reserved::GUARD_FAILED));
}
