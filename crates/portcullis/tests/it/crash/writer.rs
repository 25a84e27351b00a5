//! A writer: an agent that acts through the gate and keeps books of its own.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use portcullis_core::event::OutcomeStatus;
use portcullis_core::id::RunId;
use portcullis_gateway::api::{OpenRun, ProposeAction, ReportOutcome};
use portcullis_gateway::client::{ClientError, Run, StartOptions};
use portcullis_gateway::home::Home;
use portcullis_session::surface::Surface as _;
use serde_json::json;

/// The writer's folder; its presence makes a writer of this process.
pub(super) const FOLDER: &str = "PORTCULLIS_TEST_WRITER";
/// The program whose `serve` is the daemon, the state folder, and the bundle.
pub(super) const PROGRAM: &str = "PORTCULLIS_TEST_PROGRAM";
pub(super) const HOME: &str = "PORTCULLIS_TEST_HOME";
pub(super) const BUNDLE: &str = "PORTCULLIS_TEST_BUNDLE";
/// Answers, effects, trouble: the writer's books. And the file that asks it to stop.
pub(super) const ANSWERS: &str = "answers";
pub(super) const EFFECTS: &str = "effects";
pub(super) const TROUBLE: &str = "trouble";
pub(super) const STOP: &str = "stop";
/// Every fifth call must be denied.
const FORBIDDEN_EVERY: u64 = 5;
/// The longest breath between two calls, in milliseconds, in the short form. Without any the runs get so long that
/// the test mostly reads them again, and the machine is never idle enough for anything to be killed at rest.
const BREATH_MS_MAX: u64 = 100;
/// How long a writer that has lost its run tries to get it back.
const PATIENCE: Duration = Duration::from_secs(60);

pub(super) fn is_forbidden(number: u64) -> bool {
    number % FORBIDDEN_EVERY == FORBIDDEN_EVERY - 1
}

/// Not a test by itself: the crash test starts this test binary again with it, as a process of its own.
#[test]
fn writer_process() {
    let Some(folder) = std::env::var_os(FOLDER).map(PathBuf::from) else { return };
    let home = Home::at(Path::new(&std::env::var_os(HOME).unwrap())).unwrap();
    let start = StartOptions {
        program: std::env::var_os(PROGRAM).map(PathBuf::from),
        bundle: std::env::var_os(BUNDLE).map(PathBuf::from),
        ..StartOptions::default()
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(write(&folder, &home, &start));
}

async fn write(folder: &Path, home: &Home, start: &StartOptions) {
    let [mut answers, mut effects, mut trouble] =
        [ANSWERS, EFFECTS, TROUBLE].map(|name| Book::open(&folder.join(name)));
    let mut run = open(home, start, None, &mut trouble).await;
    answers.write(&format!("run {}", run.id()));
    let mut number = 0;
    while !folder.join(STOP).exists() {
        let text = if is_forbidden(number) { "something forbidden" } else { "something harmless" };
        let proposal = ProposeAction {
            tool: Some("note".into()),
            arguments: json!({"number": number, "text": text}),
            ..ProposeAction::default()
        };
        let answer = match run.propose(proposal.clone()).await {
            Ok(answer) => answer,
            Err(error) => {
                trouble.write(&format!("propose: {error}"));
                // The old one is dropped after the new one is there: a run that nobody holds is abandoned.
                run = open(home, start, Some(run.id()), &mut trouble).await;
                continue;
            }
        };
        let (action, seq) = (answer.judged().action, answer.judged().seq);
        let permit = answer.permit();
        answers.write(&format!("verdict {action} {seq} {} {number}", permit.is_some()));
        if permit.is_some() {
            effects.write(&format!("{action} {number}"));
            let outcome = ReportOutcome::of(action, OutcomeStatus::Ok, Some("noted".into()));
            loop {
                match run.outcome(outcome.clone()).await {
                    Ok(reported) => {
                        answers.write(&format!("outcome {action} {}", reported.seq));
                        break;
                    }
                    // It was recorded the first time, and the answer was lost with the daemon.
                    Err(error) if error.code().is_some() && !error.calls_for_resuming() => {
                        trouble.write(&format!("outcome {action}: {error}"));
                        break;
                    }
                    Err(error) => {
                        trouble.write(&format!("lost: {error}"));
                        run = open(home, start, Some(run.id()), &mut trouble).await;
                    }
                }
            }
        }
        number += 1;
        if !super::is_long() {
            // Every length of a breath comes up, and those of two calls in a row differ much.
            tokio::time::sleep(Duration::from_millis(number * 37 % BREATH_MS_MAX)).await;
        }
    }
    run.close().await.unwrap();
}

async fn open(home: &Home, start: &StartOptions, resume: Option<RunId>, trouble: &mut Book) -> Run {
    let begin = Instant::now();
    loop {
        let open = OpenRun { surface: "test".into(), resume, ..OpenRun::default() };
        match Run::open(home, start.clone(), open).await {
            Ok(run) => return run,
            Err(error) => {
                trouble.write(&format!("open: {error}"));
                let hopeless = matches!(error, ClientError::Refused { .. }) && !error.calls_for_resuming();
                assert!(!hopeless && begin.elapsed() < PATIENCE, "{error}");
            }
        }
    }
}

/// A file whose lines are on the disk when they are written.
struct Book(File);

impl Book {
    fn open(path: &Path) -> Self {
        Self(OpenOptions::new().create(true).append(true).open(path).unwrap())
    }

    fn write(&mut self, line: &str) {
        self.0.write_all(format!("{}\n", line.replace('\n', " ")).as_bytes()).unwrap();
        self.0.sync_data().unwrap();
    }
}
