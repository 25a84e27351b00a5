//! How long reading a command takes: `cargo bench -p portcullis-effects --bench shell`.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use portcullis_core::bundle::EffectSettings;
use portcullis_core::effect::Effects;
use portcullis_effects::{Sink, Surroundings, shell};

/// About 80 bytes each, as coding agents write them.
const COMMANDS: [(&str, &str); 4] = [
    ("list", "cd crates/core && cargo test --quiet -- --nocapture 2>&1 | tail -n 40 > out.log"),
    ("search", "grep -rn \"fn read\" src --include='*.rs' | head -20; git status --short && ls -la"),
    ("loop", "for f in src/a.rs src/b.rs; do sed -n 1,40p \"$f\"; wc -l \"$f\"; done; echo finished"),
    ("nested", "sudo bash -c 'find /var/log -name \"*.gz\" -mtime +7 -exec rm -f {} \\; && echo ok'"),
];

fn read(criterion: &mut Criterion) {
    let settings = EffectSettings::default();
    let surroundings = Surroundings {
        settings: &settings,
        workspace: Some("/home/u/project"),
        home: Some("/home/u"),
        directory: Some("/home/u/project"),
    };
    let mut group = criterion.benchmark_group("shell");
    for (name, command) in COMMANDS {
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                let mut effects = Effects::none();
                shell::read(
                    black_box(command),
                    &surroundings,
                    &mut Sink::new(&mut effects, "/arguments/command"),
                );
                effects
            });
        });
    }
    group.finish();
}

criterion_group!(benches, read);
criterion_main!(benches);
