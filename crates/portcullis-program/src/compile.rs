//! From the programs of a bundle to a set that can be asked.

use std::sync::Arc;

use portcullis_core::bundle::{Bundle, Compiled, Compiler, Diagnostic};
use portcullis_core::program::PROGRAMS_MAX;

use crate::pool::{Loaded, Pool};
use crate::scan;
use crate::set::{ProgramSet, Source};

/// Longest name of a program, in bytes.
const NAME_BYTES_MAX: usize = 64;

/// Checks the programs of a bundle and has them loaded.
///
/// Where the engine cannot be used, the bundle loads, what can be checked without the engine is checked, and every action
/// is denied: a bundle can be looked at anywhere, and nothing passes that its programs did not see.
#[derive(Debug, Clone, Copy)]
pub struct ProgramCompiler;

impl Compiler for ProgramCompiler {
    fn compile(&self, bundle: &Bundle) -> Result<Option<Compiled>, Vec<Diagnostic>> {
        if bundle.programs.is_empty() {
            return Ok(None);
        }
        let pool = Pool::of_process().map_err(|error| error.to_string());
        compile(bundle, pool).map(|set| Some(Compiled::new(Arc::new(set))))
    }
}

/// The programs of a bundle with this pool.
///
/// # Errors
/// What is wrong with the programs.
pub fn compile(bundle: &Bundle, pool: Result<Arc<Pool>, String>) -> Result<ProgramSet, Vec<Diagnostic>> {
    let mut mistakes = Vec::new();
    let mut sources = Vec::new();
    for (file, text) in bundle.programs.files() {
        match source(file, text) {
            Ok(source) => sources.push(source),
            Err(mistake) => mistakes.push(mistake),
        }
    }
    if let Some(source) = sources.get(PROGRAMS_MAX) {
        let message = format!("more than {PROGRAMS_MAX} programs");
        mistakes.push(Diagnostic::new(&source.file, &source.text, 0..0, message));
    }
    if let (Ok(pool), true) = (&pool, mistakes.is_empty()) {
        mistakes.extend(sources.iter().filter_map(|source| tried(pool, source)));
    }
    if !mistakes.is_empty() {
        return Err(mistakes);
    }
    let set = ProgramSet::new(bundle.programs.digest().to_string(), sources, pool);
    if let Ok(pool) = &set.pool {
        pool.keep(&set);
    }
    Ok(set)
}

/// One program alone, which belongs to no bundle: a draft. It is checked like those of a bundle, and no worker keeps it.
///
/// # Errors
/// What is wrong with it.
pub fn alone(name: &str, text: &str, pool: &Arc<Pool>) -> Result<ProgramSet, Diagnostic> {
    let source = source(&format!("programs/{name}.star"), text)?;
    if let Some(mistake) = tried(pool, &source) {
        return Err(mistake);
    }
    let digest = ring::digest::digest(&ring::digest::SHA256, text.as_bytes());
    let digest: String = digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(ProgramSet::new(digest, vec![source], Ok(Arc::clone(pool))))
}

/// The set that a bundle was compiled to.
pub fn of(bundle: &Bundle) -> Option<&Arc<ProgramSet>> {
    bundle.compiled::<Arc<ProgramSet>>()
}

/// A program with its name, if it may be given to a parser.
fn source(file: &str, text: &str) -> Result<Source, Diagnostic> {
    let name = file.strip_prefix("programs/").and_then(|name| name.strip_suffix(".star")).unwrap_or(file);
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_';
    if name.is_empty() || name.len() > NAME_BYTES_MAX || !name.chars().all(plain) {
        let message = format!("`{name}` is no name of a program");
        return Err(Diagnostic::new(file, text, 0..0, message).help(format!(
            "lower-case letters, digits, `-` and `_`, at most {NAME_BYTES_MAX}, directly in `programs/`"
        )));
    }
    scan::scan(text)
        .map_err(|found| Diagnostic::new(file, text, found.span, found.message).help(found.help))?;
    Ok(Source { program: name.to_owned(), file: file.to_owned(), text: text.to_owned() })
}

/// The mistake with which a worker cannot read a program.
fn tried(pool: &Pool, source: &Source) -> Option<Diagnostic> {
    let (file, text) = (source.file.as_str(), source.text.as_str());
    match pool.try_load(source) {
        Loaded::Read(mistakes) => mistakes.into_iter().next().map(|mistake| {
            let end = mistake.end.max(mistake.start);
            Diagnostic::new(file, text, mistake.start..end, mistake.message)
        }),
        Loaded::Lost(why) => {
            let message = format!("the worker was lost while it read this: {why}");
            Some(
                Diagnostic::new(file, text, 0..0, message)
                    .help("the top level of a program only sets up tables"),
            )
        }
        Loaded::Unstarted(why) => Some(Diagnostic::new(file, text, 0..0, why)),
    }
}
