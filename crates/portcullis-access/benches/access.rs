//! What a decision of access costs: eight columns of a hospital's database under three roles, alone and among a
//! thousand policies about other things: `cargo bench -p portcullis-access`.
#![expect(clippy::expect_used, reason = "a benchmark stops when it cannot run")]

use std::collections::BTreeMap;
use std::hint::black_box;

use criterion::Criterion;
use portcullis_access::{Access, AccessCompiler};
use portcullis_core::action::Action;
use portcullis_core::bundle::{AccessPolicies as _, Bundle};
use portcullis_core::effect::{Effect, Resource, ResourceKind, Verb};
use portcullis_core::event::{Actor, EVENT_VERSION, Event, EventBody, Mode, RunOpened};
use portcullis_core::id::{ActionId, Digest};
use portcullis_core::principal::Principal;
use portcullis_core::state::RunState;
use portcullis_core::time::Timestamp;

const TABLES: [(&str, &str); 8] = [
    ("allergy", "patientunitstayid drugname allergyname allergytime"),
    ("diagnosis", "patientunitstayid icd9code diagnosisname diagnosistime"),
    ("lab", "patientunitstayid labname labresult labresulttime"),
    ("medication", "patientunitstayid drugname dosage routeadmin drugstarttime drugstoptime"),
    ("microlab", "patientunitstayid culturesite organism culturetakentime"),
    (
        "patient",
        "patientunitstayid gender age ethnicity hospitalid wardid admissionheight admissionweight uniquepid",
    ),
    ("treatment", "patientunitstayid treatmentname treatmenttime"),
    ("vitalperiodic", "patientunitstayid temperature sao2 heartrate respiration observationtime"),
];

const POLICIES: &str = r#"
permit (principal, action in Action::"call", resource);
permit (principal in Role::"physician", action == Action::"read", resource is Column)
when {
  resource in [Table::"allergy", Table::"diagnosis", Table::"lab", Table::"medication", Table::"microlab",
               Table::"patient", Table::"treatment", Table::"vitalperiodic"]
  && resource.catalogued
};
permit (principal in Role::"clerk", action == Action::"read", resource is Column)
when {
  [Column::"lab.patientunitstayid", Column::"patient.uniquepid", Column::"patient.hospitalid"].contains(resource)
};
"#;

fn tables() -> String {
    let table = |(name, columns): &(&str, &str)| {
        let columns: Vec<String> = columns.split(' ').map(|column| format!("'{column}'")).collect();
        format!("[[table]]\nname = '{name}'\ncolumns = [{}]\n", columns.join(", "))
    };
    TABLES.iter().map(table).collect()
}

/// Policies about other roles, verbs, kinds and tools.
fn unrelated(count: usize) -> String {
    let policy = |n: usize| match n % 4 {
        0 => format!(
            "permit (principal in Role::\"r{n}\", action == Action::\"read\", resource is Column) when {{ \
             resource in Table::\"lab\" && resource.catalogued }};\n"
        ),
        1 => format!("forbid (principal, action == Action::\"write\", resource in Path::\"/srv/{n}\");\n"),
        2 => format!(
            "forbid (principal, action == Action::\"send\", resource is Host) when {{ resource.name == \"h{n}\" }};\n"
        ),
        _ => format!("forbid (principal, action, resource == Command::\"c{n}\");\n"),
    };
    (0..count).map(policy).collect()
}

fn bundle(more: usize) -> Bundle {
    let main = "version = 1\npolicy = 'p'\n[access]\ndefault = 'deny'\n";
    let policy =
        "[[policy]]\nname = 'p'\nallowed_types = ['QUERY_DB']\nmax_steps = 9\nmax_side_effects = 9\n";
    let tools = "[[tool]]\nname = 'query'\ntype = 'QUERY_DB'\nside_effecting = false\n";
    let files: BTreeMap<String, Vec<u8>> = [
        ("portcullis.toml", main.to_owned()),
        ("policies/p.toml", policy.to_owned()),
        ("tools/t.toml", tools.to_owned()),
        ("tables/t.toml", tables()),
        ("access/a.cedar", POLICIES.to_owned()),
        ("access/b.cedar", unrelated(more)),
    ]
    .map(|(path, text)| (path.to_owned(), text.into_bytes()))
    .into();
    Bundle::load_with(&files, &[&AccessCompiler]).expect("a bundle")
}

fn run(role: &str) -> RunState {
    let opened = RunOpened {
        principal: Principal { roles: vec![role.to_owned()], ..Principal::named("alice") },
        surface: "bench".to_owned(),
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

fn eight_columns() -> Vec<Effect> {
    let column = |table: &str, column: &str| {
        let resource = Resource::new(ResourceKind::Column, format!("{table}.{column}"))
            .with("catalogued", true)
            .with("table", table);
        Effect::new(Verb::Read, resource)
    };
    vec![
        column("lab", "patientunitstayid"),
        column("lab", "labname"),
        column("lab", "labresult"),
        column("patient", "patientunitstayid"),
        column("patient", "age"),
        column("patient", "gender"),
        column("medication", "drugname"),
        column("medication", "dosage"),
    ]
}

fn decisions(criterion: &mut Criterion) {
    let arguments = serde_json::json!({"code": "…"});
    let action = Action::new(ActionId::from_bytes([1; 16]), Some("query".to_owned()), arguments, None);
    let effects = eight_columns();
    for more in [0, 1_000] {
        let bundle = bundle(more);
        let access = bundle.compiled::<Access>().expect("compiled");
        for (role, findings) in [("physician", 0), ("clerk", 1)] {
            let run = run(role);
            assert_eq!(access.decide(&bundle, &run, &action, &effects).len(), findings);
            let name = format!("{role}, 8 columns, {more} unrelated policies");
            criterion.bench_function(&name, |bencher| {
                bencher.iter(|| access.decide(&bundle, &run, black_box(&action), black_box(&effects)));
            });
        }
    }
}

fn loading(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("load");
    group.sample_size(10);
    for more in [0, 1_000] {
        group.bench_function(format!("{more} unrelated policies"), |bencher| bencher.iter(|| bundle(more)));
    }
}

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    decisions(&mut criterion);
    loading(&mut criterion);
    criterion.final_summary();
}
