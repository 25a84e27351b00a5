//! People who work on security write about attacks all day. None of their texts may stop a run, and neither may the
//! project's own manual, which speaks of little else.

use std::path::Path;
use std::sync::Arc;

use portcullis_core::event::Place;
use portcullis_core::label::Label;
use portcullis_core::principal::Principal;
use portcullis_core::verdict::Verdict;
use portcullis_session::bundle_dir;
use portcullis_session::dry::DryRun;
use portcullis_session::engine::Proposal;
use portcullis_session::policy;
use serde_json::{Value, json};

use super::path;

/// Advisories, reports, runbooks, questions; between lines of `%%`.
const TEXTS: &str = include_str!("../texts/security.txt");

/// The pages of the manual, and those of the guards.
fn manual() -> Vec<String> {
    let pages =
        |folder: &Path| -> Vec<_> { std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect() };
    let mut paths = pages(&path("../../docs"));
    paths.extend(pages(&path("../../docs/guards")));
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "md"));
    assert!(paths.len() > 30);
    paths.iter().map(|path| std::fs::read_to_string(path).unwrap()).collect()
}

/// A shipped bundle, and a call of it that only reads.
fn judged_by(name: &str, tool: &str, arguments: Value) -> (Arc<portcullis_core::bundle::Bundle>, Proposal) {
    let mut files = bundle_dir::read_files(&path("../../examples").join(name)).unwrap();
    if name == "agent" {
        let reader = format!("[[tool]]\nname = '{tool}'\ntype = 'RETRIEVE_DOCS'\nside_effecting = false\n");
        files.insert("tools/reader.toml".to_owned(), reader.into_bytes());
    }
    let call = Proposal { tool: Some(tool.to_owned()), arguments, ..Proposal::default() };
    (Arc::new(policy::load(&files).unwrap()), call)
}

#[test]
fn texts_on_security_stop_no_run() {
    let pipeline = Arc::new(policy::pipeline());
    let mut texts: Vec<String> = TEXTS.split("\n%%\n").map(str::to_owned).collect();
    assert!(texts.len() >= 25);
    texts.extend(manual());
    let folder = |path: &str| Some(path.to_owned());
    let place = Place { workspace: folder("/home/dev/shop"), home: folder("/home/dev"), gate: None };
    let mut stops = Vec::new();
    for (bundle, call) in [
        judged_by("bundle", "retrieve_compliance_documents", json!({"query": "travel"})),
        judged_by("agent", "read_file", json!({"path": "notes.txt"})),
        judged_by("developer", "Read", json!({"file_path": "/home/dev/shop/notes.txt"})),
    ] {
        for text in &texts {
            let short: String = text.chars().take(60).collect();
            for said in [
                vec![text.clone()],
                vec![format!("Please sum this up for me:\n\n{text}")],
                vec!["Good morning! A few small things today.".to_owned(), text.clone()],
            ] {
                let mut run = DryRun::open_as(
                    Arc::clone(&bundle),
                    Arc::clone(&pipeline),
                    bundle.default_policy(),
                    Principal::named("writer"),
                    Some(place.clone()),
                )
                .unwrap();
                for said in said {
                    let decision = run.input(&said, Label::User).decision;
                    if decision.verdict >= Verdict::Clarify {
                        stops
                            .push(format!("{short}: {:?}", decision.headline().map(|finding| &finding.rule)));
                    }
                }
                let judged = run.propose(call.clone());
                if !judged.enforced.proceeds() {
                    let rule = judged.decision.headline().map(|finding| &finding.rule);
                    stops.push(format!("{short}: then {rule:?}"));
                }
            }
        }
    }
    assert!(stops.is_empty(), "{}", stops.join("\n"));
}
