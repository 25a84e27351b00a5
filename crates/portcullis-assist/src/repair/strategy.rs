//! The strategies: which rewrites are asked for, in which order, and which one is taken.

use portcullis_contracts::limits::MAX_REPLY_BYTES;

use super::attempt::{Attempt, Candidate};
use super::prompt::{self, Tagged};
use super::score::{Scale, sort};
use super::settings::{Settings, Strategy};
use crate::budget::Metered;
use crate::judge::{Decider, Judge, Judgement, Standing, Task, detect, exact};
use crate::model::{Finish, Model as _, ModelError};
use crate::tag::between;

/// One repair under way.
pub(super) struct Work<'a> {
    pub(super) model: &'a Metered<'a>,
    pub(super) judge: Judge<'a>,
    pub(super) task: &'a Task<'a>,
    pub(super) settings: &'a Settings,
    pub(super) scale: Scale,
    pub(super) before: &'a [Judgement],
    /// Places of contracts that gave way in a conflict.
    pub(super) gave_way: &'a [usize],
    /// Candidate 0.
    pub(super) first: Candidate,
    /// The best so far.
    pub(super) best: Candidate,
    pub(super) attempts: Vec<Attempt>,
}

impl Work<'_> {
    /// Runs the strategy; an error is why it did not come to its end.
    pub(super) async fn run(&mut self) -> Result<(), ModelError> {
        if let Some(error) = &self.first.detection.error {
            return Err(error.clone());
        }
        // What is undecided is not known to be broken, and is not rewritten on suspicion.
        if self.broken(&self.first).is_empty() {
            return Ok(());
        }
        match self.settings.strategy {
            Strategy::Mechanical => Ok(()),
            Strategy::Batch => self.batch().await,
            Strategy::Iterative => self.iterative().await,
            Strategy::Retry { attempts } => self.retry(attempts).await,
            Strategy::BestOf { samples, oracle } => self.best_of(samples, oracle).await,
            Strategy::MapReduce => self.map_reduce().await,
        }
    }

    async fn batch(&mut self) -> Result<(), ModelError> {
        let asked = self.rewrite(&self.first, &self.broken(&self.first), 0.0);
        self.try_rewrite(asked, self.settings.judges_once()).await
    }

    async fn iterative(&mut self) -> Result<(), ModelError> {
        let mut order = self.broken(&self.first);
        sort(&mut order, self.task.contracts);
        for at in order {
            if self.broken(&self.best).contains(&at) {
                let asked = self.rewrite(&self.best, &[at], 0.0);
                self.try_rewrite(asked, true).await?;
            }
        }
        Ok(())
    }

    async fn retry(&mut self, attempts: u32) -> Result<(), ModelError> {
        for attempt in 0..attempts {
            let broken = self.broken(&self.best);
            if broken.is_empty() {
                break;
            }
            let asked = self.rewrite(&self.best, &broken, self.temperature(attempt));
            self.try_rewrite(asked, true).await?;
        }
        Ok(())
    }

    async fn best_of(&mut self, samples: u32, oracle: bool) -> Result<(), ModelError> {
        let broken = self.broken(&self.first);
        for sample in 0..samples {
            let asked = self.rewrite(&self.first, &broken, self.temperature(sample));
            self.try_rewrite(asked, !oracle).await?;
            let judgements = self.best.detection.judgements.iter().enumerate();
            let settled = |(at, judgement): (usize, &Judgement)| {
                judgement.holds() || self.gave_way.contains(&at) || (oracle && judgement.by != Decider::Exact)
            };
            if self.best.number != 0 && judgements.into_iter().all(settled) {
                break;
            }
        }
        if self.best.judged {
            return Ok(());
        }
        // The oracle's choice is judged once, and has to stand against candidate 0 like any other.
        let chosen = std::mem::replace(&mut self.best, self.first.clone());
        let judged = self.look(chosen.reply, chosen.number, true).await;
        self.note(&judged);
        let error = judged.detection.error.clone();
        self.consider(judged);
        error.map_or(Ok(()), Err)
    }

    async fn map_reduce(&mut self) -> Result<(), ModelError> {
        let mut parts = Vec::new();
        for at in self.broken(&self.first) {
            let asked = self.rewrite(&self.first, &[at], 0.0);
            let part = self.ask(asked).await?;
            self.attempts.push(Attempt { reply: part.clone(), judgements: None });
            parts.extend(part.map(|text| (at, text)));
        }
        if parts.is_empty() {
            return Ok(());
        }
        let asked = prompt::merge(self.task, &self.first, &parts, self.gave_way);
        self.try_rewrite(asked, self.settings.judges_once()).await
    }

    /// Places of contracts that are known to be broken and that a rewrite is worth asking for.
    fn broken(&self, candidate: &Candidate) -> Vec<usize> {
        let all = candidate.detection.judgements.iter().enumerate();
        let broken = all.filter(|(_, judgement)| judgement.standing == Standing::Broken).map(|(at, _)| at);
        broken.filter(|at| !self.gave_way.contains(at)).collect()
    }

    fn rewrite(&self, from: &Candidate, broken: &[usize], temperature: f64) -> Tagged {
        prompt::rewrite(self.task, from, broken, self.gave_way, temperature)
    }

    /// The first rewrite is the likeliest; those after it vary.
    fn temperature(&self, rewrite: u32) -> f64 {
        if rewrite == 0 { 0.0 } else { self.settings.temperature }
    }

    /// Asks for a rewrite, judges it, and takes it where it is better.
    async fn try_rewrite(&mut self, asked: Tagged, judge: bool) -> Result<(), ModelError> {
        let rewritten = self.ask(asked).await?;
        self.attempts.push(Attempt { reply: None, judgements: None });
        let Some(text) = rewritten else { return Ok(()) };
        let reply = if self.settings.mechanical {
            portcullis_contracts::repair(self.task.contracts, &text, self.task.context).text
        } else {
            text
        };
        let candidate = self.look(reply, self.attempts.len(), judge).await;
        self.note(&candidate);
        let error = candidate.detection.error.clone();
        self.consider(candidate);
        error.map_or(Ok(()), Err)
    }

    /// The text of a rewrite; none where the answer cannot be read as one.
    async fn ask(&self, asked: Tagged) -> Result<Option<String>, ModelError> {
        let completion = self.model.complete(&asked.request).await?;
        let text = between(&completion.text, &asked.tag, completion.finish == Finish::Stop);
        let usable = |text: &&str| !text.trim().is_empty() && text.len() <= MAX_REPLY_BYTES;
        Ok(text.filter(usable).filter(|_| completion.finish == Finish::Stop).map(str::to_owned))
    }

    async fn look(&self, reply: String, number: usize, judge: bool) -> Candidate {
        let task = Task { reply: &reply, ..*self.task };
        let detection =
            if judge { detect(self.judge, &task).await } else { exact(&task, self.judge, "not asked again") };
        // A model that was asked and gave no answer leaves its contracts undecided, and the candidate the worse for it.
        let judged = judge || detection.judgements.iter().all(|judgement| judgement.by == Decider::Exact);
        Candidate { number, reply, detection, judged }
    }

    /// Records what is known of a candidate.
    fn note(&mut self, candidate: &Candidate) {
        if let Some(attempt) = candidate.number.checked_sub(1).and_then(|at| self.attempts.get_mut(at)) {
            attempt.reply = Some(candidate.reply.clone());
            attempt.judgements = Some(candidate.detection.judgements.clone());
        }
    }

    fn consider(&mut self, candidate: Candidate) {
        if self.is_better(&candidate) {
            self.best = candidate;
        }
    }

    fn is_better(&self, candidate: &Candidate) -> bool {
        let new = &candidate.detection.judgements;
        let old = &self.best.detection.judgements;
        if self.settings.no_degrade {
            // Before an oracle's choice is judged, only what code decides can be lost.
            let counts = |after: &Judgement| candidate.judged || after.by == Decider::Exact;
            let lost =
                |(before, after): (&Judgement, &Judgement)| before.holds() && counts(after) && !after.holds();
            if self.before.iter().zip(new).any(lost) {
                return false;
            }
        }
        if candidate.judged {
            return self.scale.score(new) > self.scale.score(old);
        }
        // Where nobody asked about judged contracts, code has the say. At equal, a rewrite that was made for a judged
        // contract is taken over the reply that is known to break it.
        let (new, old_score) = (self.scale.exact_score(new), self.scale.exact_score(old));
        let made_for_judged = old
            .iter()
            .any(|judgement| judgement.by != Decider::Exact && judgement.standing == Standing::Broken);
        new > old_score || (new == old_score && self.best.number == 0 && made_for_judged)
    }
}
