//! A guard program as the judge: a command on this machine that reads a reply with statements about it and says which
//! hold. The format of both is `specs/judge.md`.
//!
//! A program is held to more than a model: it was written for this. An answer that is not of the form, whatever is
//! wrong with it, fails the whole detection, and so does a program that does not end in time or ends with an error.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use portcullis_contracts::Contract;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, Command};
use tokio::time::timeout;

use super::{Decider, Judgement, Standing, Task, shortened};
use crate::limits::{MAX_ERROR_CHARS, MAX_JUDGE_BYTES, MAX_JUDGE_ERROR_BYTES};
use crate::model::ModelError;

/// A guard program that judges: run once a reply, without arguments, and with the caller's environment and folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    path: PathBuf,
    time: Duration,
}

#[derive(Serialize)]
struct Question<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt: Option<&'a str>,
    reply: &'a str,
    statements: Vec<Asked<'a>>,
}

#[derive(Serialize)]
struct Asked<'a> {
    id: &'a str,
    statement: &'a str,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Answer {
    verdicts: Vec<Verdict>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Verdict {
    id: String,
    /// None where the program cannot tell.
    holds: Option<bool>,
    #[serde(default)]
    explanation: String,
}

impl Program {
    /// The program at a path, and how long it may take for one reply.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>, time: Duration) -> Self {
        Self { path: path.into(), time }
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A judgement for each of the contracts, in order.
    pub(super) async fn judge(
        &self,
        task: &Task<'_>,
        judged: &[&Contract],
    ) -> Result<Vec<Judgement>, ModelError> {
        let asked = |contract: &&'_ Contract| (contract.id.clone(), contract.statement.clone());
        let asked: Vec<(String, String)> = judged.iter().map(asked).collect();
        let statements = asked.iter().map(|(id, statement)| Asked { id, statement }).collect();
        let question = Question { prompt: task.context.prompt, reply: task.reply, statements };
        let question = serde_json::to_vec(&question).map_err(|error| self.failed(&error.to_string()))?;
        let answer = self.run(&question).await?;
        let answer: Answer = serde_json::from_slice(&answer)
            .map_err(|error| self.failed(&format!("answered with something else than verdicts: {error}")))?;
        let mut verdicts = BTreeMap::new();
        for verdict in answer.verdicts {
            if !judged.iter().any(|contract| contract.id == verdict.id) {
                return Err(
                    self.failed(&format!("judged `{}`, which it was not asked about", line(&verdict.id)))
                );
            }
            if let Some(twice) = verdicts.insert(verdict.id.clone(), verdict) {
                return Err(self.failed(&format!("judged `{}` twice", twice.id)));
            }
        }
        judged
            .iter()
            .map(|contract| {
                let verdict = verdicts
                    .remove(&contract.id)
                    .ok_or_else(|| self.failed(&format!("did not judge `{}`", contract.id)))?;
                let standing = match verdict.holds {
                    Some(true) => Standing::Holds,
                    Some(false) => Standing::Broken,
                    None => Standing::Undecided,
                };
                let explanation = shortened(&verdict.explanation);
                Ok(Judgement::judged(contract, Decider::Program, standing, explanation))
            })
            .collect()
    }

    /// What it writes for an input.
    async fn run(&self, input: &[u8]) -> Result<Vec<u8>, ModelError> {
        let mut child = Command::new(&self.path)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| self.failed(&format!("cannot be started: {error}")))?;
        let ran = timeout(self.time, talk(&mut child, input)).await;
        let Ok(ran) = ran else {
            // Dropped, it is killed; what it started itself may live on, and is not waited for.
            return Err(self.failed(&format!("did not answer within {} s", self.time.as_secs_f64())));
        };
        let (status, answer, complaint) = ran.map_err(|error| self.failed(&error.to_string()))?;
        if !status.success() {
            let complaint = line(&String::from_utf8_lossy(&complaint));
            let said = if complaint.is_empty() { String::new() } else { format!(": {complaint}") };
            return Err(self.failed(&format!("ended with {status}{said}")));
        }
        if answer.len() > MAX_JUDGE_BYTES {
            return Err(self.failed(&format!("answered with more than {MAX_JUDGE_BYTES} bytes")));
        }
        Ok(answer)
    }

    fn failed(&self, why: &str) -> ModelError {
        ModelError::Program(format!("`{}` {why}", self.path.display()))
    }
}

type Said = (std::process::ExitStatus, Vec<u8>, Vec<u8>);

/// Writes and reads at the same time: neither side may wait for the other's buffer.
async fn talk(child: &mut Child, input: &[u8]) -> std::io::Result<Said> {
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let write = async {
        if let Some(mut stdin) = stdin {
            // A program need not read all of it.
            let _closed = stdin.write_all(input).await;
        }
    };
    let ((), answer, complaint) =
        tokio::join!(write, all(stdout, MAX_JUDGE_BYTES), all(stderr, MAX_JUDGE_ERROR_BYTES));
    Ok((child.wait().await?, answer?, complaint?))
}

/// Reads to the end and keeps little more than a limit.
async fn all(from: Option<impl AsyncRead + Unpin>, limit: usize) -> std::io::Result<Vec<u8>> {
    let mut kept = Vec::new();
    if let Some(mut from) = from {
        (&mut from).take(limit as u64 + 1).read_to_end(&mut kept).await?;
        tokio::io::copy(&mut from, &mut tokio::io::sink()).await?;
    }
    Ok(kept)
}

/// The beginning of a text on one line.
fn line(text: &str) -> String {
    let line: String =
        text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(MAX_ERROR_CHARS).collect();
    line.trim().to_owned()
}
