//! From a draft to files of a bundle: what is added, and what stands in the way.

use std::collections::{BTreeMap, BTreeSet};

use portcullis_core::tool::Registry;

use crate::draft::{Draft, Origin};

/// The file with the settings of a bundle.
const SETTINGS: &str = "portcullis.toml";

/// Files of a bundle with their new texts.
pub type Added = BTreeMap<String, String>;

impl Draft {
    /// The draft as this compiler makes it of the same request, answers and tools. One that is not equal to it was changed
    /// since, or made by another version. Of a program that somebody else wrote, everything but the program is made again.
    #[must_use]
    pub fn again(&self) -> Self {
        let (name, request, spec) = (&self.name, &self.request, self.spec());
        match &self.origin {
            Origin::Compiler { .. } => Self::compile(name, request, &spec, &self.answers),
            origin => {
                let source = self.files.get(&self.program_path()).map(String::as_str).unwrap_or_default();
                Self::of_program(name, request, &spec, &self.answers, source, origin.clone())
            }
        }
    }

    /// What it adds to a bundle, besides its tests.
    ///
    /// # Errors
    /// What stands in the way, one by one.
    pub fn added_to(&self, base: &BTreeMap<String, Vec<u8>>) -> Result<Added, Vec<String>> {
        let mut added = Added::new();
        let mut conflicts = Vec::new();
        for (path, text) in &self.files {
            match base.get(path) {
                Some(there) if there == text.as_bytes() => {}
                Some(_) => conflicts.push(format!("the bundle has another `{path}`")),
                None => drop(added.insert(path.clone(), text.clone())),
            }
        }
        if !self.settings.trim().is_empty() {
            match settings(base, self.settings.trim()) {
                Ok(text) => added.extend(text.map(|text| (SETTINGS.to_owned(), text))),
                Err(why) => conflicts.push(why),
            }
        }
        if conflicts.is_empty() { Ok(added) } else { Err(conflicts) }
    }

    /// Tools of its rules that a bundle does not list: there, the rules would never stop a call.
    pub fn tools_unknown_to(&self, registry: &Registry) -> BTreeSet<String> {
        let named = self.rules.iter().flat_map(|rule| &rule.tools);
        named.filter(|tool| registry.get(tool).is_none()).cloned().collect()
    }

    /// The tests without some of their runs, by the headings of those.
    #[must_use]
    pub fn tests_without(&self, left_out: &BTreeSet<String>) -> String {
        let mut sections = self.tests.split("\n## ");
        let mut text = sections.next().unwrap_or_default().to_owned();
        for section in sections {
            let heading = section.lines().next().unwrap_or_default();
            if !left_out.iter().any(|case| case.ends_with(heading)) {
                text.push_str("\n## ");
                text.push_str(section);
            }
        }
        text
    }
}

/// The settings of a bundle with more at the end; none where they are there already.
fn settings(base: &BTreeMap<String, Vec<u8>>, more: &str) -> Result<Option<String>, String> {
    let there = base.get(SETTINGS).map(Vec::as_slice).unwrap_or_default();
    let Ok(there) = std::str::from_utf8(there) else {
        return Err(format!("`{SETTINGS}` is not UTF-8"));
    };
    if there.contains(more) {
        return Ok(None);
    }
    let end = if there.is_empty() || there.ends_with('\n') { "" } else { "\n" };
    Ok(Some(format!("{there}{end}\n{more}\n")))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::spec::Spec;

    fn draft() -> Draft {
        let tools = json!([{"name": "issue_refund", "arguments": {"amount": {"type": "number"}}}]);
        let spec = Spec::of_json(&tools).unwrap();
        Draft::compile("refunds", "Refunds above 200 need approval from a team lead.", &spec, &[])
    }

    #[test]
    fn a_draft_is_added_once_and_never_over_something_else() {
        let draft = draft();
        assert_eq!(draft.again(), draft);
        let base: BTreeMap<String, Vec<u8>> = [(SETTINGS.to_owned(), b"version = 1".to_vec())].into();
        let added = draft.added_to(&base).unwrap();
        assert!(added[SETTINGS].starts_with("version = 1\n\n[[approvals.rule]]\n"), "{added:?}");
        let mut after = base;
        after.extend(added.into_iter().map(|(path, text)| (path, text.into_bytes())));
        assert_eq!(draft.added_to(&after).unwrap(), Added::new());
        let path = draft.files.keys().next().unwrap().clone();
        after.insert(path.clone(), b"other".to_vec());
        assert_eq!(draft.added_to(&after).unwrap_err(), [format!("the bundle has another `{path}`")]);
    }

    #[test]
    fn what_was_changed_since_is_not_the_draft() {
        for change in [
            |draft: &mut Draft| draft.files.values_mut().for_each(|text| text.push('#')),
            |draft: &mut Draft| draft.tests.push('x'),
            |draft: &mut Draft| draft.settings.clear(),
            |draft: &mut Draft| draft.request.push_str(" Only managers may issue refunds."),
        ] {
            let mut changed = draft();
            change(&mut changed);
            assert_ne!(changed.again(), changed);
        }
        let mut theirs = draft();
        theirs.origin = Origin::Person { name: "ann".to_owned() };
        theirs.files = [(theirs.program_path(), "def check".to_owned())].into();
        theirs.settings.clear();
        assert_eq!(theirs.again(), theirs);
        theirs.files.insert("programs/more.star".to_owned(), String::new());
        assert_ne!(theirs.again(), theirs);
    }

    #[test]
    fn runs_are_left_out_by_their_headings() {
        let draft = draft();
        let runs = |text: &str| text.matches("```run").count();
        let heading = draft.tests.lines().find_map(|line| line.strip_prefix("## ")).unwrap();
        let text = draft.tests_without(&[format!("Tests of `refunds` / {heading}")].into());
        assert_eq!(runs(&text) + 1, runs(&draft.tests));
        assert!(!text.contains(heading));
    }
}
