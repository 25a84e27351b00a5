//! How approvals were decided: by whom, how fast, and what asks most.

use std::collections::BTreeMap;

use axum::extract::State;
use portcullis_core::time::Timestamp;
use portcullis_ledger::{ApprovalFilter, ApprovalRow, ApprovalState};

use super::{Failure, Seen, Shared, read};
use crate::api;
use crate::daemon::auth::Approver;

const MICROS_PER_SECOND: u64 = 1_000_000;

pub(in super::super) async fn stats(
    State(shared): State<Shared>,
    Approver(_): Approver,
) -> Result<Seen<api::Stats>, Failure> {
    Ok(Seen(stats_now(&shared).await?))
}

/// How approvals were decided so far.
pub(in super::super) async fn stats_now(shared: &Shared) -> Result<api::Stats, Failure> {
    let rows = read(shared, |reader| reader.approvals(&ApprovalFilter::default())).await?;
    Ok(of(&rows))
}

#[derive(Default)]
struct Decided {
    granted: u64,
    refused: u64,
    answered: u64,
    /// How long each decision took, in seconds.
    took_s: Vec<u64>,
}

fn of(rows: &[ApprovalRow]) -> api::Stats {
    let mut approvers: BTreeMap<&str, Decided> = BTreeMap::new();
    let mut rules: BTreeMap<&str, api::RuleFigures> = BTreeMap::new();
    for row in rows {
        let rule = row.rule.as_deref().unwrap_or("unknown");
        let figures = rules.entry(rule).or_insert_with(|| api::RuleFigures {
            rule: rule.to_owned(),
            asked: 0,
            granted: 0,
            refused: 0,
            expired: 0,
        });
        figures.asked += 1;
        match row.state {
            ApprovalState::Granted | ApprovalState::Claimed | ApprovalState::Revoked => figures.granted += 1,
            ApprovalState::Refused => figures.refused += 1,
            ApprovalState::Expired => figures.expired += 1,
            ApprovalState::Pending | ApprovalState::Answered => {}
        }
        let by = row.decided_by.as_deref().and_then(|by| by.strip_prefix("approver:"));
        if let (Some(by), Some(at)) = (by, row.decided) {
            approvers.entry(by).or_default().take(row.state, at, row.requested);
        }
    }
    let mut approvers: Vec<_> = approvers.into_iter().map(|(by, decided)| decided.figures(by)).collect();
    approvers.sort_by_key(|one| std::cmp::Reverse(one.granted + one.refused + one.answered));
    let mut rules: Vec<_> = rules.into_values().collect();
    rules.sort_by_key(|rule| std::cmp::Reverse(rule.asked));
    api::Stats { since: rows.iter().map(|row| row.requested).min(), approvers, rules }
}

impl Decided {
    fn take(&mut self, state: ApprovalState, at: Timestamp, requested: Timestamp) {
        match state {
            ApprovalState::Granted | ApprovalState::Claimed | ApprovalState::Revoked => self.granted += 1,
            ApprovalState::Refused => self.refused += 1,
            ApprovalState::Answered => self.answered += 1,
            ApprovalState::Pending | ApprovalState::Expired => return,
        }
        self.took_s.push(at.micros_since(requested) / MICROS_PER_SECOND);
    }

    fn figures(mut self, approver: &str) -> api::ApproverFigures {
        self.took_s.sort_unstable();
        let of_ten = |tenths: usize| {
            let last = self.took_s.len().saturating_sub(1);
            self.took_s.get(last * tenths / 10).copied().unwrap_or(0)
        };
        api::ApproverFigures {
            approver: approver.to_owned(),
            median_s: of_ten(5),
            p90_s: of_ten(9),
            granted: self.granted,
            refused: self.refused,
            answered: self.answered,
        }
    }
}
