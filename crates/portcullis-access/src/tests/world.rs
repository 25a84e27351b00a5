//! A small hospital: a bundle, runs, actions.

use std::collections::BTreeMap;

use portcullis_core::action::Action;
use portcullis_core::bundle::{AccessPolicies as _, Bundle, Diagnostic};
use portcullis_core::effect::{Effect, Resource, ResourceKind, Verb};
use portcullis_core::event::{Actor, EVENT_VERSION, Event, EventBody, Mode, RunOpened};
use portcullis_core::finding::Finding;
use portcullis_core::id::{ActionId, Digest};
use portcullis_core::principal::{Attribute, Principal};
use portcullis_core::state::RunState;
use portcullis_core::time::Timestamp;
use serde_json::{Value, json};

use crate::{Access, AccessCompiler};

const MAIN: &str = "version = 1\npolicy = 'p'\n[access]\ndefault = 'DEFAULT'\nrole_aliases = { 'general admission' = \
                    'general administration' }\nattributes = { age = 'integer', member = 'boolean', limit = 'decimal', \
                    ward = 'text' }\n";
const POLICY: &str =
    "[[policy]]\nname = 'p'\nallowed_types = ['QUERY_DB', 'PAY']\nmax_steps = 9\nmax_side_effects = 9\n";
const TOOLS: &str = "[[tool]]\nname = 'query'\nid = 'q1'\ntype = 'QUERY_DB'\nside_effecting = false\nrisk = 0.2\n\
    [tool.args]\ntype = 'object'\nrequired = ['sql']\n\
    [tool.args.properties]\nsql = { type = 'string' }\nrows = { type = 'integer' }\n\
    tags = { type = 'array', items = { type = 'string' } }\n\
    page = { type = 'object', properties = { size = { type = 'integer' } } }\n\
    [[tool]]\nname = 'pay'\ntype = 'PAY'\nside_effecting = true\nrisk = 0.9\n";
const TABLES: &str = "[[table]]\nname = 'lab'\ncolumns = ['patientunitstayid', 'labname', 'labresult']\n\
    [[table]]\nname = 'patient'\ncolumns = ['patientunitstayid', 'age', 'gender']\n";

pub(crate) fn files(default: &str, policies: &str) -> BTreeMap<String, Vec<u8>> {
    let main = MAIN.replace("DEFAULT", default);
    let texts = [
        ("portcullis.toml", main.as_str()),
        ("policies/p.toml", POLICY),
        ("tools/t.toml", TOOLS),
        ("tables/t.toml", TABLES),
        ("access/clinic.cedar", policies),
    ];
    texts.map(|(path, text)| (path.to_owned(), text.as_bytes().to_vec())).into()
}

pub(crate) fn load(default: &str, policies: &str) -> Result<Bundle, Vec<Diagnostic>> {
    Bundle::load_with(&files(default, policies), &[&AccessCompiler])
}

pub(crate) fn principal(roles: &[&str], attributes: &[(&str, Attribute)]) -> Principal {
    Principal {
        id: "alice".to_owned(),
        roles: roles.iter().map(|role| (*role).to_owned()).collect(),
        attributes: attributes.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect(),
    }
}

pub(crate) fn run(principal: Principal) -> RunState {
    let opened = RunOpened {
        principal,
        surface: "test".to_owned(),
        session: None,
        policy: "p".to_owned(),
        bundle: Digest::from_bytes([0; 32]),
        configuration: None,
        mode: Mode::Enforce,
        place: None,
        parent: None,
    };
    let event = Event {
        v: EVENT_VERSION,
        seq: 1,
        t: Timestamp::from_micros(0),
        actor: Actor::gate(),
        cause: None,
        payloads: BTreeMap::new(),
        body: EventBody::RunOpened(opened),
    };
    RunState::fold([&event])
}

pub(crate) fn call(tool: &str, arguments: Value) -> Action {
    Action::new(ActionId::from_bytes([1; 16]), Some(tool.to_owned()), arguments, None)
}

pub(crate) fn query() -> Action {
    call("query", json!({"sql": "…"}))
}

/// A read of `table.column`; an uncatalogued one if it ends in `!`.
pub(crate) fn read(column: &str) -> Effect {
    let name = column.trim_end_matches('!');
    let table = name.split('.').next().unwrap();
    let resource = Resource::new(ResourceKind::Column, name)
        .with("catalogued", !column.ends_with('!'))
        .with("table", table);
    Effect::new(Verb::Read, resource)
}

pub(crate) fn touch(verb: Verb, kind: ResourceKind, name: &str) -> Effect {
    Effect::new(verb, Resource::new(kind, name))
}

pub(crate) fn decide(bundle: &Bundle, run: &RunState, action: &Action, effects: &[Effect]) -> Vec<Finding> {
    bundle.compiled::<Access>().expect("compiled").decide(bundle, run, action, effects)
}

/// `rule verdict [policies] [resources]`, a line each.
pub(crate) fn told(findings: &[Finding]) -> String {
    let line = |f: &Finding| {
        format!("{} {} [{}] [{}]", f.rule, f.verdict, f.policies.join(", "), f.resources.join(", "))
    };
    findings.iter().map(line).collect::<Vec<_>>().join("\n")
}
