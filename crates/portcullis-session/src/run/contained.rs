//! What a live run records of what runs contained.

use portcullis_core::profile::Profile;

use super::Run;
use crate::engine::{Contain, Report, TextJudgement};
use crate::error::SessionError;
use crate::facts::Asked;

impl Run {
    /// Records and judges what was seen of something contained. A report that is refused is recorded as evidence.
    ///
    /// # Errors
    /// Besides those of every write: [`ReportError`](crate::engine::ReportError).
    pub async fn observed(&self, report: Report) -> Result<(u64, TextJudgement), SessionError> {
        let reported = report.clone();
        let judged = self.judge_text(
            |_, _, _| Asked::default(),
            move |engine, env, sources| Ok(engine.observed(env, reported, sources)?),
        );
        match judged.await {
            Err(SessionError::Report(error)) => {
                self.write(|engine, env| Ok(engine.report_refused(env, &report))).await?;
                Err(error.into())
            }
            judged => judged,
        }
    }

    /// Records that a server is started contained, and gives the ticket for what is seen of it. `server` is the command
    /// that starts it.
    ///
    /// # Errors
    /// Besides those of every write: too many servers of the run are contained.
    pub async fn contain_server(&self, server: &str, profile: Profile) -> Result<Contain, SessionError> {
        let mut given = None;
        self.write(|engine, env| {
            let (batch, contain) = engine.contain_server(env, server, profile)?;
            given = Some(contain);
            Ok(batch)
        })
        .await?;
        given.ok_or(SessionError::CutShort)
    }
}
