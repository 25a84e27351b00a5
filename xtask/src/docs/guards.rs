//! Pages about guards, from their source.
//!
//! A guard's doc comment is its page. Around it stand what its `GuardMeta` says and where its code and its cases are.
//! The source is read as text: this crate builds without those it looks after. Every crate may have guards; those of
//! the catalogue come first, then those that the pipeline adds.

use super::Files;
use crate::process::{Failure, Result};
use crate::tidy::guards::guard_of;

/// Where guards are.
pub(super) const SOURCES: &str = "crates";
/// Where guards are listed, in their order.
const CATALOGUES: [&str; 2] =
    ["crates/portcullis-guards/src/lib.rs", "crates/portcullis-session/src/policy.rs"];

/// What every page has, in this order.
const SECTIONS: [&str; 7] = [
    "What it does",
    "Why it matters",
    "Fires on",
    "Does not cover",
    "Configuration",
    "False positives",
    "References",
];

/// One guard, as its source describes it.
#[derive(Debug, PartialEq, Eq)]
struct Guard {
    id: String,
    hooks: Vec<String>,
    owasp: Vec<String>,
    unfaithful_to: Option<String>,
    /// The doc comment as Markdown.
    text: String,
    source: String,
}

/// The page of each guard, and the one that lists them.
///
/// # Errors
/// A guard that is not in the catalogue, or whose description cannot be read or lacks a section.
pub(super) fn pages(sources: &Files) -> Result<Files> {
    let mut catalogues = Vec::new();
    for path in CATALOGUES {
        let text = sources.get(path).ok_or_else(|| Failure::new(format!("`{path}` is not there")))?;
        catalogues.push(text);
    }
    let mut guards = Vec::new();
    for (path, text) in sources.iter().filter(|(path, _)| is_product(path)) {
        let code = text.split_once("#[cfg(test)]").map_or(text.as_str(), |(code, _)| code);
        for type_name in code.lines().filter_map(guard_of) {
            let guard = read(path, code, type_name)
                .map_err(|problem| Failure::new(format!("{path}: the guard `{type_name}` {problem}")))?;
            let place = catalogues.iter().enumerate().find_map(|(number, catalogue)| {
                let listed = [format!("::{type_name})"), format!("({type_name})")];
                listed.iter().find_map(|name| catalogue.find(name)).map(|at| (number, at))
            });
            let place = place.ok_or_else(|| {
                let listed = CATALOGUES.join("` or `");
                Failure::new(format!("{path}: the guard `{type_name}` is not in the catalogue of `{listed}`"))
            })?;
            guards.push((place, guard));
        }
    }
    guards.sort_by_key(|(place, _)| *place);
    let guards: Vec<Guard> = guards.into_iter().map(|(_, guard)| guard).collect();
    let mut pages: Files = guards.iter().map(|guard| (page_path(&guard.id), page(guard))).collect();
    pages.insert("docs/guards/README.md".to_owned(), list(&guards));
    Ok(pages)
}

/// Whether a file is part of what judges: no test, and not the evaluation, which breaks guards on purpose.
fn is_product(path: &str) -> bool {
    let inside = path.strip_prefix("crates/").and_then(|path| path.split_once("/src/"));
    inside.is_some_and(|(name, inside)| {
        name != "portcullis-eval" && !inside.split('/').any(|part| part == "tests" || part == "tests.rs")
    })
}

/// The Markdown cases of a guard: a file of the same name in its crate.
fn cases(source: &str) -> String {
    let (folder, inside) = source.split_once("/src/").unwrap_or(("", source));
    let stem = inside.trim_end_matches(".rs").trim_end_matches("/mod");
    let stem = stem.rsplit_once('/').map_or(stem, |(_, name)| name);
    format!("{folder}/tests/cases/{stem}.md")
}

fn read(path: &str, code: &str, type_name: &str) -> std::result::Result<Guard, String> {
    let text = doc_comment(code, type_name).ok_or("has no doc comment")?;
    let mut rest = text.as_str();
    for section in SECTIONS {
        let heading = format!("## {section}\n");
        let (_, after) = rest
            .split_once(&heading)
            .ok_or_else(|| format!("lacks the section `{section}`, or has it in another place"))?;
        let said = after.trim_start();
        if said.is_empty() || said.starts_with("## ") {
            return Err(format!("has nothing to say under `{section}`"));
        }
        rest = after;
    }
    let (_, meta) =
        code.split_once("GuardMeta {").filter(|_| code.contains("static META")).ok_or("has no META")?;
    let meta = meta.split_once("};").map_or(meta, |(meta, _)| meta);
    let field = |name: &str| meta.split_once(&format!("{name}:")).map(|(_, value)| value.trim_start());
    let list = |name: &str| {
        let (_, items) = field(name)?.split_once('[')?;
        let (items, _) = items.split_once(']')?;
        Some(
            items
                .split(',')
                .map(str::trim)
                .filter(|item| !item.is_empty())
                .map(str::to_owned)
                .collect::<Vec<_>>(),
        )
    };
    let quoted = |text: &str| text.trim_matches('"').to_owned();
    let id = field("id").and_then(|value| literal(value, code)).ok_or("has no readable `id`")?;
    let hooks = list("hooks").ok_or("has no readable `hooks`")?;
    let owasp = list("owasp").ok_or("has no readable `owasp`")?;
    let unfaithful_to = field("unfaithful_to").and_then(|value| value.strip_prefix("Some(Unfaithful::"));
    Ok(Guard {
        id: id.to_owned(),
        hooks: hooks.iter().map(|hook| hook.trim_start_matches("Hook::").to_lowercase()).collect(),
        owasp: owasp.iter().map(|risk| quoted(risk)).collect(),
        unfaithful_to: unfaithful_to
            .and_then(|rest| rest.split_once(')'))
            .map(|(kind, _)| kind.to_lowercase()),
        text,
        source: path.to_owned(),
    })
}

/// The text that a field has: written there, or in a constant of the file.
fn literal<'c>(value: &'c str, code: &'c str) -> Option<&'c str> {
    if let Some(text) = value.strip_prefix('"') {
        return text.split_once('"').map(|(text, _)| text);
    }
    let (name, _) = value.split_once(',')?;
    let (_, text) = code.split_once(&format!("const {name}: &str = \""))?;
    text.split_once('"').map(|(text, _)| text)
}

/// The doc comment above a struct, attributes in between aside.
fn doc_comment(code: &str, type_name: &str) -> Option<String> {
    let declared = |line: &str| {
        line.strip_prefix("pub struct ").is_some_and(|rest| {
            rest.strip_prefix(type_name).is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric()))
        })
    };
    let lines: Vec<&str> = code.lines().collect();
    let place = lines.iter().position(|line| declared(line))?;
    let above = lines.iter().take(place).rev().skip_while(|line| line.starts_with("#["));
    let mut comment: Vec<&str> = above.map_while(|line| line.strip_prefix("///")).collect();
    comment.reverse();
    let text: String =
        comment.iter().flat_map(|line| [line.strip_prefix(' ').unwrap_or(line), "\n"]).collect();
    (!text.trim().is_empty()).then_some(text)
}

fn page_path(id: &str) -> String {
    format!("docs/guards/{}.md", id.replace('/', "-"))
}

fn page(guard: &Guard) -> String {
    let Guard { id, hooks, owasp, unfaithful_to, text, source } = guard;
    let cases = cases(source);
    let name = cases.rsplit_once('/').map_or(cases.as_str(), |(_, name)| name);
    let unfaithful = unfaithful_to.as_deref().unwrap_or("none");
    format!(
        "<!-- Written by `cargo xtask docs` from {source}; change it there. -->\n# {id}\n\n\
         | | |\n|---|---|\n| runs at | {} |\n| OWASP | {} |\n| catches unfaithfulness to | {unfaithful} |\n\
         | code | [{source}](../../{source}) |\n| cases | [{name}](../../{cases}) |\n\n{text}",
        hooks.join(", "),
        if owasp.is_empty() { "none".to_owned() } else { owasp.join(", ") },
    )
}

fn list(guards: &[Guard]) -> String {
    let mut text = String::from(
        "<!-- Written by `cargo xtask docs` from the guards' doc comments; change it there. -->\n# Guards\n\n\
         All built-in guards in their declared order, which is the order of reasons in a decision. The verdict is the \
         strictest of all findings, so the order never changes it. OWASP ids are those of the *Top 10 for Agentic \
         Applications* (ASI) and the *Top 10 for LLM Applications* (LLM). `Seed 000` and `Seed 001` in the references are \
         the descriptions of a policy engine and of an escalation policy that the project set out from.\n\n\
         | guard | runs at | what it does |\n|---|---|---|\n",
    );
    for guard in guards {
        let file = page_path(&guard.id);
        let file = file.rsplit_once('/').map_or(file.as_str(), |(_, name)| name);
        text.push_str(&format!(
            "| [{}]({file}) | {} | {} |\n",
            guard.id,
            guard.hooks.join(", "),
            summary(&guard.text)
        ));
    }
    text
}

/// The first sentence of the page.
fn summary(text: &str) -> String {
    let body = text.split_once("\n").map_or("", |(_, body)| body);
    let words: Vec<&str> = body.split("\n## ").next().unwrap_or_default().split_whitespace().collect();
    let joined = words.join(" ");
    joined.split_once(". ").map_or(joined.clone(), |(first, _)| format!("{first}."))
}

#[cfg(test)]
mod tests {
    use super::*;

    const GUARD: &str = "//! Says no.\n\n/// ## What it does\n/// Says no. Always.\n///\n/// ## Why it matters\n/// It does.\n///\n\
        /// ## Fires on\n/// All.\n///\n/// ## Does not cover\n/// Nothing.\n///\n/// ## Configuration\n/// None.\n///\n\
        /// ## False positives\n/// Many.\n///\n/// ## References\n/// None.\n#[derive(Debug)]\npub struct No;\n\n\
        static META: GuardMeta = GuardMeta {\n    id: \"family/no\",\n    hooks: &[Hook::Action, Hook::Output],\n    \
        owasp: &[\"ASI02\"],\n    unfaithful_to: Some(Unfaithful::Task),\n};\n\nimpl Guard for No {\n}\n";

    fn sources(guard: &str) -> Files {
        let lib = "vec![Box::new(family::no::No)]".to_owned();
        let more = "guards.push(Box::new(Never));".to_owned();
        let [catalogue, pipeline] = CATALOGUES.map(str::to_owned);
        let file = "crates/portcullis-guards/src/family/no.rs".to_owned();
        Files::from([(catalogue, lib), (pipeline, more), (file, guard.to_owned())])
    }

    #[test]
    fn a_guard_becomes_a_page_and_a_line_of_the_list() {
        let pages = pages(&sources(GUARD)).unwrap();
        let page = &pages["docs/guards/family-no.md"];
        for part in [
            "# family/no\n",
            "| runs at | action, output |",
            "| OWASP | ASI02 |",
            "| catches unfaithfulness to | task |",
            "(../../crates/portcullis-guards/tests/cases/no.md)",
            "\n## What it does\nSays no. Always.\n\n## Why it matters\n",
        ] {
            assert!(page.contains(part), "{part} in {page}");
        }
        assert!(page.ends_with("## References\nNone.\n"), "{page}");
        assert!(
            pages["docs/guards/README.md"]
                .contains("| [family/no](family-no.md) | action, output | Says no. |")
        );
    }

    #[test]
    fn an_id_may_stand_in_a_constant() {
        let guard = GUARD
            .replace("id: \"family/no\"", "id: RULE")
            .replace("static META", "pub const RULE: &str = \"family/never\";\n\nstatic META");
        assert!(pages(&sources(&guard)).unwrap().contains_key("docs/guards/family-never.md"));
        let dangling = GUARD.replace("id: \"family/no\"", "id: ELSEWHERE");
        let problem = pages(&sources(&dangling)).unwrap_err().to_string();
        assert!(problem.contains("no readable `id`"), "{problem}");
    }

    #[test]
    fn other_crates_have_guards_too_and_tests_have_none() {
        let mut sources = sources(GUARD);
        let never =
            GUARD.replace("No;", "Never;").replace("for No ", "for Never ").replace("family/no", "never");
        sources.insert("crates/portcullis-other/src/never/mod.rs".to_owned(), never.clone());
        sources.insert("crates/portcullis-other/src/tests/made_up.rs".to_owned(), never.clone());
        sources.insert("crates/portcullis-other/tests/it/main.rs".to_owned(), never);
        let pages = pages(&sources).unwrap();
        assert_eq!(pages.len(), 3, "{:?}", pages.keys());
        assert!(
            pages["docs/guards/never.md"].contains("(../../crates/portcullis-other/tests/cases/never.md)")
        );
        let list = &pages["docs/guards/README.md"];
        assert!(list.find("(family-no.md)") < list.find("(never.md)"), "{list}");
    }

    #[test]
    fn what_is_missing_is_named() {
        let problem = |guard: &str| pages(&sources(guard)).unwrap_err().to_string();
        let without = GUARD.replace("/// ## Does not cover\n/// Nothing.\n///\n", "");
        assert!(problem(&without).contains("lacks the section `Does not cover`"), "{}", problem(&without));
        let empty = GUARD.replace("/// Nothing.\n", "");
        assert!(problem(&empty).contains("nothing to say under `Does not cover`"), "{}", problem(&empty));
        let unlisted = GUARD.replace("No;", "Nay;").replace("for No", "for Nay");
        assert!(problem(&unlisted).contains("not in the catalogue"), "{}", problem(&unlisted));
    }
}
