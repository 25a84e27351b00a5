//! How long it takes to read the effects of a query of some 300 bytes, in one dialect and where none is named.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use portcullis_core::bundle::{EffectSettings, SqlDialect};
use portcullis_core::effect::Effects;
use portcullis_effects::{Sink, Surroundings, sql};

const QUERY: &str = "select p.name, v.ward, count(*) as visits from patients p join visits v on v.patient_id = p.id \
    where p.birth_date < '1950-01-01' and v.doctor in (select doctor from rota where day = 'monday') \
    group by p.name, v.ward having count(*) > 3 order by visits desc, p.name limit 20 offset 40";

fn read(c: &mut Criterion) {
    for (name, dialect, text) in [
        ("postgres", SqlDialect::Postgres, QUERY.to_owned()),
        ("no dialect", SqlDialect::Generic, QUERY.to_owned()),
        ("no dialect, contested", SqlDialect::Generic, format!("{QUERY} -- \"x\"")),
    ] {
        let settings = EffectSettings { dialect, ..EffectSettings::default() };
        let surroundings = Surroundings { settings: &settings, workspace: None, home: None, directory: None };
        c.bench_function(&format!("sql/{name}"), |b| {
            b.iter(|| {
                let mut effects = Effects::none();
                sql::read(black_box(&text), &surroundings, &mut Sink::new(&mut effects, "/arguments/sql"));
                effects
            });
        });
    }
}

criterion_group!(benches, read);
criterion_main!(benches);
