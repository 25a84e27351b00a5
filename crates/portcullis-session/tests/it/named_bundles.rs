//! Bundles that whoever opens a run names: none of them takes the room of others, or speaks for the operator's.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use portcullis_core::event::{ClosedState, GrantScope, OutcomeStatus};
use portcullis_core::label::Label;
use portcullis_core::principal::{CredentialKind, Principal};
use portcullis_ledger::OpenOptions;
use portcullis_session::credentials::Identity;
use portcullis_session::engine::{Answer, Judgement, Reach, Says};
use portcullis_session::error::SessionError;
use portcullis_session::gate::{BUNDLES_OF_PRINCIPAL_MAX, Gate, OpenError, Opened, RunRequest};
use serde_json::json;

use crate::{call, files, gate};

/// A folder with a bundle.
fn bundle(folder: &Path, name: &str) -> PathBuf {
    let bundle = folder.join(name);
    for (path, bytes) in files("") {
        let path = bundle.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
    bundle
}

async fn open(gate: &Arc<Gate>, principal: &str, bundle: &Path) -> Result<Opened, OpenError> {
    let identity = Identity {
        kind: CredentialKind::Agent,
        principal: Principal::named(principal),
        policy: None,
        of_this_machine: true,
    };
    gate.open(RunRequest { bundle: Some(bundle.to_owned()), ..RunRequest::new(identity, "test") }).await
}

#[tokio::test(flavor = "multi_thread")]
async fn bundles_that_no_run_uses_make_room() {
    let folder = tempfile::tempdir().unwrap();
    let gate = gate(folder.path(), "", OpenOptions::default());
    let kept = bundle(folder.path(), "kept");
    let run = open(&gate, "agent", &kept).await.unwrap().run;
    for number in 0..300 {
        let bundle = bundle(folder.path(), &format!("b{number}"));
        let run = open(&gate, "agent", &bundle).await.unwrap().run;
        gate.close(run.id(), ClosedState::Closed).await.unwrap();
        fs::write(bundle.join("portcullis.toml"), "broken").unwrap();
    }
    // Those that were forgotten are not complained of either.
    assert!(gate.reload(false).await.is_empty());
    let complaints = gate.bundles().refusals_of_others();
    assert!((1..=16).contains(&complaints.len()), "{}", complaints.len());
    assert_eq!(gate.bundles().refusal(), None, "the operator's is in order");
    // What a live run uses is never given up, so that its changes still reach it.
    let before = run.with_state(|_, bundle| bundle.digest()).await;
    fs::write(kept.join("portcullis.toml"), "version = 1\nmode = 'observe'\n").unwrap();
    assert!(gate.reload(false).await.is_empty());
    assert_ne!(run.with_state(|_, bundle| bundle.digest()).await, before);
}

/// What a run remembers is read with the bundle that came into force, from its first input on.
#[tokio::test(flavor = "multi_thread")]
async fn a_reload_reaches_the_monitors_of_a_run() {
    const MONITORS: &str = "[[concept]]\nname = 'moonlight'\nwords = ['after dark']\n\
        [[pattern]]\nname = 'by-night'\nfamily = 'erosion'\nneeds = ['moonlight']\ncues = 3\n";
    let folder = tempfile::tempdir().unwrap();
    let gate = gate(folder.path(), "", OpenOptions::default());
    let bundle = bundle(folder.path(), "b");
    let run = open(&gate, "agent", &bundle).await.unwrap().run;
    let input = async |text: &str| {
        let judged = run.input(text.to_owned(), Label::User, Reach::Replace).await.unwrap();
        judged.decision.headline().map(|finding| finding.rule.to_string())
    };
    assert_eq!(input("Help me choose a lock for my garden shed.").await, None);
    fs::write(bundle.join("monitors.toml"), MONITORS).unwrap();
    assert!(gate.reload(false).await.is_empty());
    let rule = input("And what can one do there after dark?").await;
    assert_eq!(rule.as_deref(), Some("trajectory/drift"));
}

/// A grant was given under the rules of its time, whatever its scope.
#[tokio::test(flavor = "multi_thread")]
async fn a_reload_ends_grants() {
    const POLICY: &str = "[[policy]]\nname = 'p'\nallowed_types = ['RETRIEVE_DOCS', 'SEND_EMAIL']\nmax_steps = 100\n\
                          max_side_effects = 100\napproval_for_side_effects = true\n";
    let folder = tempfile::tempdir().unwrap();
    let gate = gate(folder.path(), "", OpenOptions::default());
    for (number, scope) in
        [GrantScope::Once, GrantScope::Arguments, GrantScope::Tool("send".into())].into_iter().enumerate()
    {
        let bundle = bundle(folder.path(), &format!("b{number}"));
        fs::write(bundle.join("policies/p.toml"), POLICY).unwrap();
        let run = open(&gate, "agent", &bundle).await.unwrap().run;
        let send = async || {
            let sent = gate.propose(&run, call("send", json!({"text": "x"})), Duration::ZERO).await.unwrap();
            let (judgement, permit) = sent;
            if let Some(permit) = &permit {
                run.outcome(permit.action(), OutcomeStatus::Ok, None, Reach::Replace).await.unwrap();
            }
            (judgement, permit.is_some())
        };
        let grant = async |judgement: &Judgement| {
            let says = Says::grant(scope.clone());
            let asked = judgement.approval.expect("held");
            gate.answer(asked, run.id(), Answer::rehearsed(says, "ann")).await.unwrap();
        };
        let (held, _) = send().await;
        grant(&held).await;
        // The same files are the same rules.
        assert!(gate.reload(true).await.is_empty());
        assert!(send().await.1, "{scope:?}");
        if scope == GrantScope::Once {
            let (held, _) = send().await;
            grant(&held).await;
        }
        fs::write(bundle.join("portcullis.toml"), "version = 1\n[approvals]\nrequire_note = true\n").unwrap();
        assert!(gate.reload(false).await.is_empty());
        let (held, permitted) = send().await;
        assert!(!permitted && held.approval.is_some(), "{scope:?}: {held:?}");
    }
}

/// A request was made under the rules of its time: what waits is judged by the new ones, and asked about again.
#[tokio::test(flavor = "multi_thread")]
async fn a_reload_ends_requests() {
    const HELD: &str = "[[policy]]\nname = 'p'\nallowed_types = ['RETRIEVE_DOCS', 'SEND_EMAIL']\nmax_steps = 100\n\
                        max_side_effects = 100\napproval_for_side_effects = true\n";
    let folder = tempfile::tempdir().unwrap();
    let gate = gate(folder.path(), "", OpenOptions::default());
    let bundle = bundle(folder.path(), "b");
    fs::write(bundle.join("policies/p.toml"), HELD).unwrap();
    let run = open(&gate, "agent", &bundle).await.unwrap().run;
    let send = |wait| gate.propose(&run, call("send", json!({"text": "x"})), wait);
    let first = send(Duration::ZERO).await.unwrap().0.approval.expect("held");
    let waiting = {
        let (gate, run) = (Arc::clone(&gate), Arc::clone(&run));
        let patient = Duration::from_secs(30);
        tokio::spawn(async move { gate.propose(&run, call("send", json!({"text": "x"})), patient).await })
    };
    let pending = async || run.with_state(|state, _| state.pending_approvals()).await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    fs::write(bundle.join("portcullis.toml"), "version = 1\n[approvals]\nrequire_note = true\n").unwrap();
    assert!(gate.reload(false).await.is_empty());

    let grant =
        |approval| gate.answer(approval, run.id(), Answer::rehearsed(Says::grant(GrantScope::Once), "ann"));
    let refused = grant(first).await.unwrap_err();
    assert!(refused.to_string().contains("was already decided"), "{refused}");
    assert!(pending().await.iter().all(|(approval, _)| *approval != first));
    let second = loop {
        assert!(!waiting.is_finished(), "it is asked about again");
        match pending().await.first() {
            Some((approval, _)) => break *approval,
            None => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    };
    grant(second).await.unwrap();
    assert!(waiting.await.unwrap().unwrap().1.is_some(), "it goes ahead by the grant that it waits for now");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_principal_takes_its_share_of_bundles_and_no_more() {
    let folder = tempfile::tempdir().unwrap();
    let gate = gate(folder.path(), "", OpenOptions::default());
    let mut last = None;
    for number in 0..BUNDLES_OF_PRINCIPAL_MAX {
        last = Some(open(&gate, "agent", &bundle(folder.path(), &format!("b{number}"))).await.unwrap());
    }
    let more = bundle(folder.path(), "more");
    let refused = open(&gate, "agent", &more).await.unwrap_err();
    assert!(matches!(refused, OpenError::Session(SessionError::TooManyBundles { .. })), "{refused}");
    assert!(open(&gate, "agent", &folder.path().join("b0")).await.is_ok(), "one that is in use already");
    assert!(open(&gate, "other", &more).await.is_ok());
    gate.close(last.unwrap().run.id(), ClosedState::Closed).await.unwrap();
    assert!(open(&gate, "agent", &more).await.is_ok());
}
