//! Budgets: how many calls, tokens, millionths of a currency and how much time a piece of work may take.
//!
//! [`Metered`] stands in front of a model, counts, and refuses the call that comes after a budget is used up. What a call
//! will cost is known only afterwards: the answer is cut to what is left, so a budget of tokens or money is exceeded by
//! the last call's prompt at most. Servers do not say what attempts that failed have cost, and these are not counted.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::clock::{BoxFuture, Clock};
use crate::limits::MAX_PROMPT_BYTES;
use crate::model::{Completion, Exhausted, Model, ModelError, Request, Usage};

/// What a model costs, in millionths of a currency for a million tokens: 2.50 a million is 2,500,000.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prices {
    /// Of tokens of requests.
    pub input: u64,
    /// Of tokens of answers.
    pub output: u64,
}

impl Prices {
    /// The cost of a call in millionths, rounded up.
    #[must_use]
    pub fn cost(&self, usage: Usage) -> u64 {
        let part = |tokens: u64, price: u64| u128::from(tokens) * u128::from(price);
        let total =
            part(usage.input_tokens, self.input).saturating_add(part(usage.output_tokens, self.output));
        u64::try_from(total.div_ceil(1_000_000)).unwrap_or(u64::MAX)
    }
}

/// What may be used up. What is absent is not bounded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Budget {
    /// Calls of the model.
    pub calls: Option<u32>,
    /// Tokens, of requests and answers together.
    pub tokens: Option<u64>,
    /// Millionths of a currency. Needs `prices`.
    pub cost_micros: Option<u64>,
    /// Time from the start.
    pub time: Option<Duration>,
    /// What tokens cost.
    pub prices: Option<Prices>,
}

/// What was used up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Spent {
    /// Calls, those that failed included.
    pub calls: u32,
    /// Requests that were sent for them: more than calls where some were tried again.
    pub attempts: u32,
    /// Tokens of requests.
    pub input_tokens: u64,
    /// Tokens of answers.
    pub output_tokens: u64,
    /// Calls whose tokens the server did not say: each of their bytes counts as a token, which is the most it can be.
    pub estimated_calls: u32,
    /// Millionths of a currency; none without prices.
    pub cost_micros: Option<u64>,
    /// Time since the start.
    pub time: Duration,
}

impl Spent {
    /// Adds what another piece of work used up.
    pub fn add(&mut self, other: &Self) {
        let Self { calls, attempts, input_tokens, output_tokens, estimated_calls, cost_micros, time } = other;
        self.calls = self.calls.saturating_add(*calls);
        self.attempts = self.attempts.saturating_add(*attempts);
        self.input_tokens = self.input_tokens.saturating_add(*input_tokens);
        self.output_tokens = self.output_tokens.saturating_add(*output_tokens);
        self.estimated_calls = self.estimated_calls.saturating_add(*estimated_calls);
        if let Some(cost) = cost_micros {
            self.cost_micros = Some(self.cost_micros.unwrap_or(0).saturating_add(*cost));
        }
        self.time = self.time.saturating_add(*time);
    }
}

/// A model with a budget around it.
#[derive(Debug)]
pub struct Metered<'a> {
    model: &'a dyn Model,
    clock: &'a dyn Clock,
    budget: Budget,
    start: Duration,
    spent: Mutex<Spent>,
}

impl<'a> Metered<'a> {
    /// Starts counting, and the time.
    #[must_use]
    pub fn new(model: &'a dyn Model, clock: &'a dyn Clock, budget: Budget) -> Self {
        let spent = Spent { cost_micros: budget.prices.map(|_| 0), ..Spent::default() };
        Self { model, clock, budget, start: clock.now(), spent: Mutex::new(spent) }
    }

    /// What was used up until now.
    #[must_use]
    pub fn spent(&self) -> Spent {
        let spent = *self.spent.lock().unwrap_or_else(PoisonError::into_inner);
        Spent { time: self.clock.now().saturating_sub(self.start), ..spent }
    }

    /// The request as what is left lets it through; or what is used up.
    fn admit(&self, request: &Request) -> Result<Request, ModelError> {
        if request.bytes() > MAX_PROMPT_BYTES {
            return Err(ModelError::TooLong { bytes: request.bytes(), limit: MAX_PROMPT_BYTES });
        }
        let spent = self.spent();
        let mut admitted = request.clone();
        if let Some(most) = self.budget.calls.filter(|most| spent.calls >= *most) {
            return Err(Exhausted::Calls(most).into());
        }
        if let Some(most) = self.budget.tokens {
            let left = most.saturating_sub(spent.input_tokens.saturating_add(spent.output_tokens));
            cut(&mut admitted, left, Exhausted::Tokens(most))?;
        }
        if let Some(most) = self.budget.cost_micros {
            let prices = self.budget.prices.ok_or(Exhausted::NoPrices)?;
            let left = most.saturating_sub(spent.cost_micros.unwrap_or(0));
            if left == 0 {
                return Err(Exhausted::Cost(most).into());
            }
            let tokens = u128::from(left) * 1_000_000 / u128::from(prices.output.max(1));
            cut(&mut admitted, u64::try_from(tokens).unwrap_or(u64::MAX), Exhausted::Cost(most))?;
        }
        if let Some(most) = self.budget.time {
            let left = most.checked_sub(spent.time).filter(|left| !left.is_zero());
            let left = left.ok_or(Exhausted::Time(most))?;
            admitted.time_left = Some(admitted.time_left.map_or(left, |before| before.min(left)));
        }
        Ok(admitted)
    }

    fn count(&self, request: &Request, answer: &Result<Completion, ModelError>) {
        // Nothing was sent: a budget around this one is used up.
        if matches!(answer, Err(ModelError::Budget(_) | ModelError::Nobody)) {
            return;
        }
        let mut spent = self.spent.lock().unwrap_or_else(PoisonError::into_inner);
        spent.calls = spent.calls.saturating_add(1);
        let Ok(completion) = answer else {
            spent.attempts = spent.attempts.saturating_add(1);
            return;
        };
        spent.attempts = spent.attempts.saturating_add(completion.attempts);
        let usage = completion.usage.unwrap_or_else(|| {
            spent.estimated_calls = spent.estimated_calls.saturating_add(1);
            Usage { input_tokens: request.bytes() as u64, output_tokens: completion.text.len() as u64 }
        });
        spent.input_tokens = spent.input_tokens.saturating_add(usage.input_tokens);
        spent.output_tokens = spent.output_tokens.saturating_add(usage.output_tokens);
        if let Some(prices) = self.budget.prices {
            spent.cost_micros = Some(spent.cost_micros.unwrap_or(0).saturating_add(prices.cost(usage)));
        }
    }
}

/// Cuts the answer to so many tokens; none left is an error.
fn cut(request: &mut Request, tokens: u64, exhausted: Exhausted) -> Result<(), Exhausted> {
    if tokens == 0 {
        return Err(exhausted);
    }
    let tokens = u32::try_from(tokens).unwrap_or(u32::MAX);
    request.max_output_tokens = request.max_output_tokens.min(tokens);
    Ok(())
}

impl Model for Metered<'_> {
    fn complete<'a>(&'a self, request: &'a Request) -> BoxFuture<'a, Result<Completion, ModelError>> {
        Box::pin(async move {
            let admitted = self.admit(request)?;
            let answer = self.model.complete(&admitted).await;
            self.count(&admitted, &answer);
            answer
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::VirtualClock;
    use crate::model::Finish;

    /// A stand-in that takes two seconds a call and says no tokens.
    #[derive(Debug)]
    struct Slow(VirtualClock);

    impl Model for Slow {
        fn complete<'a>(&'a self, request: &'a Request) -> BoxFuture<'a, Result<Completion, ModelError>> {
            self.0.advance(Duration::from_secs(2));
            let text = format!("{} s left", request.time_left.map_or(0, |left| left.as_secs()));
            Box::pin(std::future::ready(Ok(Completion {
                text,
                finish: Finish::Stop,
                usage: None,
                attempts: 1,
            })))
        }
    }

    async fn texts(budget: Budget) -> (Vec<String>, Exhausted, Spent) {
        let model = Slow(VirtualClock::new());
        let metered = Metered::new(&model, &model.0, budget);
        let mut texts = Vec::new();
        loop {
            match metered.complete(&Request::new("0123456789", "", 1_000)).await {
                Ok(completion) => texts.push(completion.text),
                Err(ModelError::Budget(exhausted)) => return (texts, exhausted, metered.spent()),
                Err(error) => panic!("{error}"),
            }
        }
    }

    #[tokio::test]
    async fn time_runs_out_and_each_call_knows_what_is_left() {
        let time = Duration::from_secs(5);
        let (texts, exhausted, spent) = texts(Budget { time: Some(time), ..Budget::default() }).await;
        assert_eq!(texts, ["5 s left", "3 s left", "1 s left"]);
        assert_eq!((exhausted, spent.time.as_secs()), (Exhausted::Time(time), 6));
    }

    #[tokio::test]
    async fn tokens_that_nobody_says_are_as_many_as_bytes() {
        let (texts, exhausted, spent) = texts(Budget { tokens: Some(20), ..Budget::default() }).await;
        // Ten bytes asked and eight answered are less than 20, twice as many are not.
        assert_eq!((texts.len(), exhausted), (2, Exhausted::Tokens(20)));
        assert_eq!((spent.input_tokens, spent.output_tokens, spent.estimated_calls), (20, 16, 2));
        let free = Budget { cost_micros: Some(5), ..Budget::default() };
        assert_eq!(super::Exhausted::NoPrices, self::texts(free).await.1);
    }

    #[test]
    fn costs_are_rounded_up() {
        let prices = Prices { input: 150_000, output: 600_000 };
        assert_eq!(prices.cost(Usage { input_tokens: 1_000, output_tokens: 1_000 }), 750);
        assert_eq!(prices.cost(Usage { input_tokens: 1, output_tokens: 0 }), 1);
        let dear = Prices { input: u64::MAX, output: u64::MAX };
        assert_eq!(dear.cost(Usage { input_tokens: u64::MAX, output_tokens: u64::MAX }), u64::MAX);
    }
}
