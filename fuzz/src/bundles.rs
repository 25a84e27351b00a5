//! What reads a bundle, and what reads effects against one.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::LazyLock;

use portcullis_access::AccessCompiler;
use portcullis_core::bundle::{Bundle, Compiler as _, Diagnostic};
use portcullis_core::effect::Effects;
use portcullis_effects::{Sink, Surroundings};

use crate::text;

const MAIN: &str = "version = 1\n[effects]\nworkspace = \"/home/u/project\"\nhome = \"/home/u\"\n\
    [access]\ndefault = \"deny\"\nattributes = { age = \"integer\", member = \"boolean\" }\n";
const POLICY: &str = "[[policy]]\nname = \"p\"\nallowed_types = []\nmax_steps = 1\nmax_side_effects = 0\n";
const TOOLS: &str = "[[tool]]\nname = \"t\"\ntype = \"OTHER\"\nside_effecting = true\n\
    args.a = { type = \"string\" }\nargs.b = { type = \"integer\", required = false }\n";
const TABLES: &str =
    "[[table]]\nname = \"t\"\ncolumns = [\"a\", \"b\"]\n[[table]]\nname = \"u\"\ncolumns = [\"a\", \"c\"]\n";
const FUNCTIONS: &str = "[[function]]\nname = \"Load\"\ndoes = \"load-table\"\n[[function]]\nname = \"Filter\"\n\
    does = \"filter-table\"\n[[function]]\nname = \"Get\"\ndoes = \"get-value\"\n[[function]]\nname = \"Sql\"\ndoes = \"run-sql\"\n";

/// Activities of a published example; only readers look at them, and loading them takes longer than all else.
macro_rules! activities {
    ($($name:literal),+ $(,)?) => {
        &[$((
            concat!("activities/", $name, ".toml"),
            include_str!(concat!("../../examples/web-rules/activities/", $name, ".toml")),
        )),+]
    };
}
const ACTIVITIES: &[(&str, &str)] = activities!("besides", "car", "flight", "hotel", "job", "media", "shop");

/// Loads a bundle in which some files are the input.
fn load(files: &[(&str, &str)]) -> Result<Bundle, Vec<Diagnostic>> {
    let mut all: BTreeMap<String, Vec<u8>> = [
        ("portcullis.toml", MAIN),
        ("policies/p.toml", POLICY),
        ("tools/t.toml", TOOLS),
        ("tables/t.toml", TABLES),
        ("functions/f.toml", FUNCTIONS),
    ]
    .into_iter()
    .map(|(path, text)| (path.to_owned(), text.as_bytes().to_vec()))
    .collect();
    all.extend(files.iter().map(|(path, text)| ((*path).to_owned(), text.as_bytes().to_vec())));
    Bundle::load_with(&all, &[&AccessCompiler])
}

static BUNDLE: LazyLock<Bundle> = LazyLock::new(|| match load(ACTIVITIES) {
    Ok(bundle) => bundle,
    Err(mistakes) => panic!("the bundle of the targets: {mistakes:?}"),
});

thread_local! {
    /// What access policies are compiled against. Loaded once: of files of policies, loading keeps the text alone.
    static RULED: RefCell<Bundle> = RefCell::new(match load(&[]) {
        Ok(bundle) => bundle,
        Err(mistakes) => panic!("the bundle of the targets: {mistakes:?}"),
    });
}

/// Access policies, compiled as they are when a bundle is loaded.
pub fn policy(bytes: &[u8]) {
    RULED.with_borrow_mut(|bundle| {
        bundle.access.files.insert("access/p.cedar".to_owned(), text(bytes).to_owned());
        drop(AccessCompiler.compile(bundle));
    });
}

/// The main file of a bundle: TOML and what stands in it.
pub fn main_file(bytes: &[u8]) {
    drop(load(&[("portcullis.toml", text(bytes))]));
}

/// Reads a text and checks what holds of every reader.
pub fn read(bytes: &[u8], reader: impl FnOnce(&str, &Surroundings<'_>, &mut Sink<'_>)) {
    let text = text(bytes);
    let surroundings = Surroundings {
        settings: &BUNDLE.effects,
        workspace: Some("/home/u/project"),
        home: Some("/home/u"),
        directory: Some("/home/u/project"),
    };
    let mut effects = Effects::none();
    let mut sink = Sink::new(&mut effects, "/arguments/text");
    reader(text, &surroundings, &mut sink);
    for effect in effects.iter() {
        if let Some(span) = &effect.span {
            assert!(text.get(span.start..span.end).is_some(), "{effect} is placed outside of the text");
        }
    }
}
