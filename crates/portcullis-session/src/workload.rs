//! What the benchmarks judge: a bundle of 100 tools and 50 policies with 100 restricted keywords, and a call
//! that passes all of them, in as many bytes as asked for.
//!
//! The call goes the whole way: its tool is known, its arguments are held against a JSON Schema, no keyword
//! is in it, and it counts as a side effect. A call that is denied early would be cheaper.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::{Value, json};

/// Tools in the registry, each with a JSON Schema.
pub const TOOLS: usize = 100;
/// Runtime policies.
pub const POLICIES: usize = 50;
/// Restricted keywords of each policy, 100 over all: one automaton looks for all of them.
pub const KEYWORDS_PER_POLICY: usize = 2;
/// The smallest call there is, in bytes of arguments.
pub const ARGUMENTS_BYTES_MIN: usize = 200;

/// The policy that runs are governed by: one from the middle.
pub const POLICY: &str = "policy 25";

/// The files of the bundle.
pub fn bundle_files() -> BTreeMap<String, Vec<u8>> {
    let main = format!("version = 1\nmode = \"enforce\"\npolicy = \"{POLICY}\"\nunknown_tools = \"deny\"\n");
    let (mut tools, mut policies) = (String::new(), String::new());
    // Writing to a string does not fail.
    for number in 0..TOOLS {
        let _ = writeln!(tools, "{}", tool_table(number));
    }
    for number in 0..POLICIES {
        let _ = writeln!(policies, "{}", policy_table(number));
    }
    [("portcullis.toml", main), ("tools/all.toml", tools), ("policies/all.toml", policies)]
        .into_iter()
        .map(|(path, text)| (path.to_owned(), text.into_bytes()))
        .collect()
}

fn tool_table(number: usize) -> String {
    format!(
        r#"[[tool]]
id = "tool_{number}"
name = "Tool {number}"
type = "WRITE_FILE"
description = "Files a note in a folder."
side_effecting = true
risk = 0.3
enabled = true
[tool.args]
type = "object"
required = ["path", "text", "priority"]
additionalProperties = false
[tool.args.properties]
path = {{ type = "string", minLength = 1, maxLength = 4096 }}
text = {{ type = "string", maxLength = 100000 }}
priority = {{ type = "integer", minimum = 0, maximum = 10 }}
urgent = {{ type = "boolean" }}
tags = {{ type = "array", maxItems = 16, items = {{ type = "string", maxLength = 64 }} }}
owner = {{ type = "object", required = ["name"], properties = {{ name = {{ type = "string" }} }} }}
"#
    )
}

fn policy_table(number: usize) -> String {
    let keywords: Vec<String> =
        (0..KEYWORDS_PER_POLICY).map(|k| format!("\"{}\"", keyword(number, k))).collect();
    format!(
        r#"[[policy]]
name = "policy {number}"
allowed_types = ["RETRIEVE_DOCS", "QUERY_DB", "WRITE_FILE", "CALCULATE"]
max_steps = 4000000000
max_side_effects = 4000000000
approval_for_side_effects = false
restricted_keywords = [{}]
escalate_on_verification_fail = false
"#,
        keywords.join(", ")
    )
}

/// Keywords of one or two words, as operators write them.
fn keyword(policy: usize, number: usize) -> String {
    const VERBS: [&str; 10] =
        ["wire", "override", "delete", "purge", "payout", "transfer", "leak", "bypass", "forge", "launder"];
    const NOUNS: [&str; 10] =
        ["", " records", " ledger", " funds", " audit", " backup", " key", " token", " limits", " invoice"];
    let index = policy * KEYWORDS_PER_POLICY + number;
    let word = |words: &[&'static str], index: usize| words.get(index % words.len()).copied().unwrap_or("x");
    format!("{}{}", word(&VERBS, index), word(&NOUNS, index / VERBS.len()))
}

/// The tool of call number `number`, by the id that agents use.
pub fn tool(number: usize) -> String {
    format!("tool_{}", number % TOOLS)
}

/// The arguments of call number `number`: `bytes` bytes of JSON, at least [`ARGUMENTS_BYTES_MIN`].
pub fn arguments(number: usize, bytes: usize) -> Value {
    let arguments = |text: String| {
        json!({
            "path": format!("notes/2026/quarter-{}/entry-{:06}.md", number % 4 + 1, number % 1_000_000),
            "text": text,
            "priority": number % 10,
            "urgent": number.is_multiple_of(2),
            "tags": ["meeting", "follow-up", "customer"],
            "owner": { "name": "Ada Lovelace" },
        })
    };
    let taken = arguments(String::new()).to_string().len();
    let prose =
        "The customer asked for the figures of the last quarter and we agreed to send them by Friday. ";
    arguments(prose.chars().cycle().take(bytes.saturating_sub(taken)).collect())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::Arc;

    use portcullis_core::verdict::Verdict;

    use super::*;
    use crate::dry::DryRun;
    use crate::engine::Proposal;

    #[test]
    fn the_calls_are_allowed_and_as_long_as_asked_for() {
        let bundle = Arc::new(crate::policy::load(&bundle_files()).unwrap());
        assert_eq!((bundle.registry.iter().count(), bundle.policies().len()), (TOOLS, POLICIES));
        let keywords: BTreeSet<&String> =
            bundle.policies().iter().flat_map(|policy| &policy.restricted_keywords).collect();
        assert_eq!(keywords.len(), POLICIES * KEYWORDS_PER_POLICY);
        let mut run = DryRun::open(bundle, Arc::new(crate::policy::pipeline()), POLICY).unwrap();
        for (number, bytes) in [(0, 256), (1, 256), (99, 4_096), (123_456, ARGUMENTS_BYTES_MIN)] {
            let arguments = arguments(number, bytes);
            assert_eq!(arguments.to_string().len(), bytes);
            let judged = run.propose(Proposal { tool: Some(tool(number)), arguments, ..Proposal::default() });
            assert_eq!(judged.decision.verdict, Verdict::Allow, "{:?}", judged.decision);
        }
    }

    #[test]
    fn what_the_calls_pass_can_deny() {
        let bundle = Arc::new(crate::policy::load(&bundle_files()).unwrap());
        let mut run = DryRun::open(bundle, Arc::new(crate::policy::pipeline()), POLICY).unwrap();
        let mut denied = |change: &dyn Fn(&mut Value)| {
            let mut arguments = arguments(0, 256);
            change(&mut arguments);
            let proposal = Proposal { tool: Some(tool(0)), arguments, planned: None, ..Proposal::default() };
            run.propose(proposal).decision.verdict == Verdict::Deny
        };
        assert!(denied(&|arguments| arguments["text"] = keyword(25, 1).into()));
        assert!(denied(&|arguments| arguments["priority"] = json!(11)));
        assert!(!denied(&|arguments| arguments["text"] = keyword(24, 1).into()), "another policy's keyword");
    }
}
