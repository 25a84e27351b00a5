//! The pool with its real engine: ordinary programs, and hostile ones.
#![cfg(test)]

mod hostile;
mod ordinary;

#[path = "../../../../engines/for_tests.rs"]
mod engine;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use portcullis_core::bundle::Bundle;
use portcullis_core::fact::FactAnswer;
use portcullis_core::program::Answer;
use portcullis_program::Engine;
use portcullis_program::compile::compile;
use portcullis_program::pool::Pool;
use portcullis_program::set::ProgramSet;
use serde_json::{Value, json};

/// A pool beside the built engine.
fn pool() -> Arc<Pool> {
    Pool::start(Engine::open(&installed()).unwrap()).unwrap()
}

/// One that tests share which lose no worker.
fn shared() -> Arc<Pool> {
    static POOL: OnceLock<Arc<Pool>> = OnceLock::new();
    Arc::clone(POOL.get_or_init(pool))
}

/// Programs by name, loaded; or their mistakes.
fn load(pool: &Arc<Pool>, programs: &[(&str, &str)]) -> Result<Arc<ProgramSet>, Vec<String>> {
    let paths: Vec<String> = programs.iter().map(|(name, _)| format!("programs/{name}.star")).collect();
    let files: Vec<(&str, &str)> =
        paths.iter().zip(programs).map(|(path, (_, text))| (path.as_str(), *text)).collect();
    load_files(pool, &files)
}

/// Files of a bundle by path, loaded; or their mistakes.
fn load_files(pool: &Arc<Pool>, sources: &[(&str, &str)]) -> Result<Arc<ProgramSet>, Vec<String>> {
    let policy = "[[policy]]\nname = 'p'\nallowed_types = []\nmax_steps = 1\nmax_side_effects = 1\n";
    let mut files: BTreeMap<String, Vec<u8>> =
        [("portcullis.toml", "version = 1\n"), ("policies/p.toml", policy)]
            .map(|(path, text)| (path.to_owned(), text.into()))
            .into();
    files.extend(sources.iter().map(|(path, text)| ((*path).to_owned(), text.as_bytes().to_vec())));
    let bundle = Bundle::load(&files)
        .map_err(|mistakes| mistakes.iter().map(ToString::to_string).collect::<Vec<String>>())?;
    let set = compile(&bundle, Ok(Arc::clone(pool)));
    set.map(Arc::new).map_err(|mistakes| mistakes.iter().map(ToString::to_string).collect())
}

/// What programs are told of a call with this text.
fn told(text: &str) -> Value {
    json!({
        "action": {"tool": "read", "args": {"text": text}, "effects": [], "at": "2026-11-28T14:36Z"},
        "run": {"steps": 1, "labels": ["user", "tool:mail"]},
        "principal": {"id": "agent", "roles": []},
    })
}

fn answer(fact: FactAnswer) -> Result<Answer, String> {
    match fact {
        FactAnswer::Known(answer) => Ok(serde_json::from_value(answer).unwrap()),
        FactAnswer::Failed(why) => Err(why),
    }
}

fn file(path: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// The engine where these tests look for it.
fn installed() -> std::path::PathBuf {
    let folder = std::env::current_exe().unwrap().parent().unwrap().to_owned();
    engine::put_into(&folder);
    folder.join("portcullis-starlark")
}
