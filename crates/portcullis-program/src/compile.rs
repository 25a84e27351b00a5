//! From the programs of a bundle to a set that can be asked.

use std::sync::Arc;

use portcullis_core::bundle::{Bundle, Compiled, Compiler, Diagnostic, NAME_BYTES_MAX};
use portcullis_core::id::DigestBuilder;
use portcullis_core::program::PROGRAMS_MAX;

use crate::pool::{Loaded, Pool};
use crate::scan;
use crate::set::{Kind, ProgramSet, Source};

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
    let modules = bundle.programs.modules().iter().map(|file| (Kind::Module, file));
    let programs = bundle.programs.files().iter().map(|file| (Kind::Program, file));
    for (kind, (file, text)) in modules.chain(programs) {
        match source(kind, file, text) {
            Ok(source) => sources.push(source),
            Err(mistake) => mistakes.push(mistake),
        }
    }
    if let Some(source) = sources.get(PROGRAMS_MAX) {
        let message = format!("more than {PROGRAMS_MAX} programs and modules");
        mistakes.push(Diagnostic::new(&source.file, &source.text, 0..0, message));
    }
    if let (Ok(pool), true) = (&pool, mistakes.is_empty()) {
        mistakes.extend(tried_all(pool, &sources));
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
    let source = source(Kind::Program, &format!("programs/{name}.star"), text)?;
    if let Some(mistake) = tried(pool, &[], &source) {
        return Err(mistake);
    }
    let digest = DigestBuilder::new("portcullis/program/v1").part(text.as_bytes()).finish();
    Ok(ProgramSet::new(digest.to_string(), vec![source], Ok(Arc::clone(pool))))
}

/// The set that a bundle was compiled to.
pub fn of(bundle: &Bundle) -> Option<&Arc<ProgramSet>> {
    bundle.compiled::<Arc<ProgramSet>>()
}

/// A program or module with its name, if it may be given to a parser.
fn source(kind: Kind, file: &str, text: &str) -> Result<Source, Diagnostic> {
    let (folder, what) = match kind {
        Kind::Module => ("modules/", "module"),
        Kind::Program => ("programs/", "program"),
    };
    let name = file.strip_prefix(folder).and_then(|name| name.strip_suffix(".star")).unwrap_or(file);
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_';
    if name.is_empty() || name.len() > NAME_BYTES_MAX || !name.chars().all(plain) {
        let message = format!("`{name}` is no name of a {what}");
        return Err(Diagnostic::new(file, text, 0..0, message).help(format!(
            "lower-case letters, digits, `-` and `_`, at most {NAME_BYTES_MAX}, directly in `{folder}`"
        )));
    }
    scan::scan(text)
        .map_err(|found| Diagnostic::new(file, text, found.span, found.message).help(found.help))?;
    Ok(Source { kind, name: name.to_owned(), file: file.to_owned(), text: text.to_owned() })
}

/// The mistakes with which a worker cannot read them. Programs are not tried before all modules can be read.
fn tried_all(pool: &Pool, sources: &[Source]) -> Vec<Diagnostic> {
    let modules = sources.partition_point(|source| source.kind == Kind::Module);
    let (modules, programs) = sources.split_at_checked(modules).unwrap_or((sources, &[]));
    let before = |number: usize| modules.get(..number).unwrap_or_default();
    let mut mistakes = (0..).zip(modules).filter_map(|(number, module)| tried(pool, before(number), module));
    match mistakes.next() {
        Some(first) => vec![first],
        None => programs.iter().filter_map(|program| tried(pool, modules, program)).collect(),
    }
}

/// The mistake with which a worker cannot read a source after others.
fn tried(pool: &Pool, after: &[Source], source: &Source) -> Option<Diagnostic> {
    let (file, text) = (source.file.as_str(), source.text.as_str());
    match pool.try_load(after, source) {
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
