//! Index, rewriting and asking together against Cedar's own authorizer over the whole set of policies.

use std::collections::BTreeSet;
use std::sync::Arc;

use cedar_policy_core::ast::{Context, EntityUIDEntry, PolicySet, Request};
use cedar_policy_core::authorizer::{AuthorizationError, Authorizer};
use cedar_policy_core::entities::{Entities, NoEntitiesSchema, TCComputation};
use cedar_policy_core::extensions::Extensions;
use cedar_policy_core::parser::parse_policyset;
use portcullis_core::action::ActionKind;
use portcullis_core::bundle::Bundle;
use portcullis_core::effect::{Effect, Resource, ResourceKind, Verb};
use portcullis_core::principal::{Attribute, Principal};
use proptest::prelude::*;

use super::world::{load, principal, query, read, run, touch};
use crate::decide::Asking;
use crate::{Access, request};

fn scope_principal() -> impl Strategy<Value = &'static str> {
    prop_oneof![
        Just("principal"),
        Just("principal in Role::\"physician\""),
        Just("principal in Role::\"nurse\""),
        Just("principal == Principal::\"alice\""),
        Just("principal == Principal::\"bob\""),
        Just("principal is Principal in Role::\"physician\""),
        Just("principal is Principal"),
    ]
}

fn scope_action() -> impl Strategy<Value = &'static str> {
    prop_oneof![
        Just("action"),
        Just("action == Action::\"read\""),
        Just("action in [Action::\"read\", Action::\"write\"]"),
        Just("action == Action::\"write\""),
    ]
}

fn scope_resource() -> impl Strategy<Value = &'static str> {
    prop_oneof![
        Just("resource"),
        Just("resource is Column"),
        Just("resource is Path"),
        Just("resource == Column::\"lab.labname\""),
        Just("resource in Table::\"lab\""),
        Just("resource is Column in Table::\"patient\""),
        Just("resource in Path::\"/etc\""),
        Just("resource in Domain::\"example.com\""),
        Just("resource is Host in Domain::\"com\""),
    ]
}

/// Conditions that are well typed whatever the resource is.
fn condition() -> impl Strategy<Value = String> {
    let atom = prop_oneof![
        Just("resource in Table::\"lab\"".to_owned()),
        Just("resource in [Table::\"lab\", Table::\"patient\"]".to_owned()),
        Just("resource == Column::\"patient.age\"".to_owned()),
        Just("Column::\"lab.labresult\" == resource".to_owned()),
        Just("[Column::\"lab.labname\", Column::\"patient.age\"].contains(resource)".to_owned()),
        Just("resource is Column && resource.catalogued".to_owned()),
        Just("resource is Column && resource in Table::\"lab\" && resource.catalogued".to_owned()),
        Just("resource in Path::\"/etc\"".to_owned()),
        Just("principal has age && principal.age >= 18".to_owned()),
        Just("context.run.steps + 9223372036854775807 > 0".to_owned()),
        Just("context.run.steps - 9223372036854775807 - 2 > 0".to_owned()),
        Just("resource.name like \"*a*\"".to_owned()),
        Just("[\"lab.labname\", \"/etc/x\"].contains(resource.name)".to_owned()),
        Just("true".to_owned()),
    ];
    atom.prop_recursive(3, 8, 2, |inner| {
        prop_oneof![
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a}) && ({b})")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a}) || ({b})")),
            inner.prop_map(|a| format!("!({a})")),
        ]
    })
}

prop_compose! {
    fn policy()(
        forbid in prop::bool::weighted(0.3),
        decision in prop::option::weighted(0.2, prop_oneof![Just("review"), Just("warn")]),
        principal in scope_principal(),
        action in scope_action(),
        resource in scope_resource(),
        condition in prop::option::weighted(0.7, condition()),
    ) -> String {
        let effect = if forbid { "forbid" } else { "permit" };
        let decision = decision.map_or(String::new(), |word| format!("@decision(\"{word}\")\n"));
        let when = condition.map_or(String::new(), |condition| format!("\nwhen {{ {condition} }}"));
        format!("{decision}{effect} ({principal}, {action}, {resource}){when};\n")
    }
}

fn effect() -> impl Strategy<Value = Effect> {
    prop_oneof![
        6 => prop_oneof![
            Just("lab.labname"), Just("lab.labresult"), Just("patient.age"), Just("patient.gender"),
            Just("lab.labid!"), Just("cost.cost!"),
        ].prop_map(read),
        1 => Just(touch(Verb::Write, ResourceKind::Path, "/etc/x")),
        1 => Just(touch(Verb::Read, ResourceKind::Path, "/home/a")),
        1 => Just(touch(Verb::Read, ResourceKind::Host, "api.example.com")),
        1 => Just(touch(Verb::Write, ResourceKind::Table, "lab")),
    ]
}

fn who() -> impl Strategy<Value = Principal> {
    let roles = prop::sample::subsequence(vec!["physician", "nurse"], 0..=2);
    (roles, prop::option::of(17_i64..20)).prop_map(|(roles, age)| {
        let age: Vec<(&str, Attribute)> =
            age.map(|age| ("age", Attribute::Integer(age))).into_iter().collect();
        principal(&roles, &age)
    })
}

/// What Cedar itself says of one resource: the ids that determined it, and the ids that failed.
fn cedar(
    bundle: &Bundle,
    set: &PolicySet,
    who: &Principal,
    effect: &Effect,
) -> (bool, BTreeSet<String>, BTreeSet<String>) {
    let access = bundle.compiled::<Access>().unwrap();
    let types = &access.types;
    let run = run(who.clone());
    let uid = types.principal(&who.id);
    let roles: Vec<_> = who.roles.iter().map(|role| types.role(role)).collect();
    let principal = request::principal(&bundle.access, who, &uid, &roles).unwrap();
    let resource: &Resource = &effect.resource;
    let resource_uid = types.resource(resource.kind, &resource.name).unwrap();
    let entity = request::resource(resource, resource_uid.clone(), types.ancestors(resource), None);
    let entities = Entities::from_entities(
        [principal, entity],
        None::<&NoEntitiesSchema>,
        TCComputation::EnforceAlreadyComputed,
        Extensions::all_available(),
    );
    let context = request::effect_context(request::run(&run), "query", &effect.attributes);
    let known = |uid| EntityUIDEntry::known(uid, None);
    let request = Request::new_unchecked(
        known(uid),
        known(types.action(effect.verb.as_str())),
        known(resource_uid),
        Some(Context::Value(Arc::new(context))),
    );
    let answer = Authorizer::new().is_authorized(request, set, &entities.unwrap());
    let ids = answer.diagnostics.reason.iter().map(ToString::to_string).collect();
    let failed = answer
        .diagnostics
        .errors
        .iter()
        .map(|error| match error {
            AuthorizationError::PolicyEvaluationError { id, .. } => id.to_string(),
        })
        .collect();
    (answer.decision == cedar_policy_core::authorizer::Decision::Allow, ids, failed)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn together_is_apart_is_cedar(
        policies in prop::collection::vec(policy(), 0..8),
        effects in prop::collection::vec(effect(), 1..6),
        who in who(),
    ) {
        let text: String = policies.concat();
        let bundle = load("deny", &text);
        prop_assume!(bundle.is_ok());
        let bundle = bundle.unwrap();
        let access = bundle.compiled::<Access>().unwrap();
        let run = run(who.clone());
        let mut action = query();
        action.kind = ActionKind::Thought;
        let together = access.decide_by(&bundle, &run, &action, &effects, Asking::Together);
        let apart = access.decide_by(&bundle, &run, &action, &effects, Asking::Apart);
        prop_assert_eq!(&together, &apart, "{}", text);

        // The same ids for Cedar: policies are numbered in the order of the text.
        let set = parse_policyset(&text).unwrap();
        let id = |cedars: &str| format!("clinic-{}", cedars.trim_start_matches("policy").parse::<usize>().unwrap() + 1);
        for effect in &effects {
            let (allowed, reasons, failed) = cedar(&bundle, &set, &who, effect);
            let findings = access.decide_by(&bundle, &run, &action, std::slice::from_ref(effect), Asking::Together);
            let reasons: BTreeSet<String> = reasons.iter().map(|reason| id(reason)).collect();
            let failed: BTreeSet<String> = failed.iter().map(|failed| id(failed)).collect();
            let named = |rule: &dyn Fn(&str) -> bool| -> BTreeSet<String> {
                let those = findings.iter().filter(|finding| rule(&finding.rule));
                those.flat_map(|finding| finding.policies.clone()).collect()
            };
            prop_assert_eq!(named(&|rule| rule == crate::rules::POLICY_ERROR), failed.clone(), "{}", text);
            let ours = named(&|rule| rule != crate::rules::POLICY_ERROR);
            if allowed {
                prop_assert!(ours.is_subset(&reasons), "{text}");
                prop_assert_eq!(findings.is_empty(), failed.is_empty() && ours.is_empty());
            } else {
                // A forbid that does not deny is joined by what the permits say.
                let forbids = |id: &String| access.policies().any(|policy| policy.forbids && policy.id == *id);
                let ours: BTreeSet<String> = ours.into_iter().filter(forbids).collect();
                prop_assert_eq!(&ours, &reasons, "{}", text);
                prop_assert!(!findings.is_empty(), "{text}");
            }
        }
    }
}
