//! A model on the command line: where it is, what it may cost, and cassettes in its place.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use portcullis_assist::record::Used;
use portcullis_assist::{
    Budget, Client, Clock, Http, Key, Metered, Options, Prices, Recorder, Replay, SystemClock, Timeouts,
    Transport,
};

use crate::failure::Failure;

/// The variable whose key is sent where no other is named.
const KEY_VARIABLE: &str = "PORTCULLIS_MODEL_KEY";
/// Millionths in one.
const MICROS: f64 = 1e6;
/// Longest time that can be given, in seconds: a day.
const SECONDS_MAX: f64 = 86_400.0;

/// Which model is asked, and what that may cost.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Model")]
pub(crate) struct ModelArgs {
    /// Ask this model: the address of an OpenAI-compatible server and the model's name, such as
    /// `http://127.0.0.1:8080/v1/NAME`; of a cassette, the name is enough
    #[arg(long, value_name = "URL/NAME", value_parser = Named::read)]
    model: Option<Named>,
    /// The environment variable with the server's key; otherwise PORTCULLIS_MODEL_KEY, where it is set
    #[arg(long, value_name = "VARIABLE", requires = "model")]
    key_env: Option<String>,
    /// Answer from this cassette instead of a server
    #[arg(long, value_name = "FILE", requires = "model")]
    cassette: Option<PathBuf>,
    /// Ask the server, and record a new cassette
    #[arg(long, requires = "cassette")]
    record: bool,
    /// How long one attempt at a call may take, in seconds
    #[arg(long, value_name = "SECONDS", default_value = "300", value_parser = seconds)]
    timeout: Duration,
    /// Most calls of the model, over all replies
    #[arg(long, value_name = "N", requires = "model")]
    budget_calls: Option<u32>,
    /// Most tokens, of questions and answers together
    #[arg(long, value_name = "N", requires = "model")]
    budget_tokens: Option<u64>,
    /// Most money, in the currency of --prices
    #[arg(long, value_name = "AMOUNT", requires_all = ["model", "prices"], value_parser = micros)]
    budget_cost: Option<u64>,
    /// Most time, in seconds
    #[arg(long, value_name = "SECONDS", requires = "model", value_parser = seconds)]
    budget_time: Option<Duration>,
    /// What a million tokens cost, of questions and of answers, such as `0.15/0.60`
    #[arg(long, value_name = "IN/OUT", requires = "model", value_parser = prices)]
    prices: Option<Prices>,
}

/// A server and a model of it, or a model alone.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Named {
    address: Option<String>,
    name: String,
}

impl Named {
    /// The name is what follows `/v1/`, or else the last part.
    fn read(text: &str) -> Result<Self, String> {
        let Some((scheme, rest)) = text.split_once("://") else {
            let name = text.trim();
            return match name {
                "" => Err("there is no name".to_owned()),
                name => Ok(Self { address: None, name: name.to_owned() }),
            };
        };
        let split = match rest.split_once("/v1/") {
            Some((host, name)) => Some((format!("{scheme}://{host}/v1"), name)),
            None => rest.rsplit_once('/').map(|(host, name)| (format!("{scheme}://{host}"), name)),
        };
        let Some((address, name)) = split.filter(|(_, name)| !name.is_empty()) else {
            return Err(
                "the model's name is missing after the address, as in `http://host/v1/NAME`".to_owned()
            );
        };
        Ok(Self { address: Some(address), name: name.to_owned() })
    }
}

pub(crate) fn seconds(text: &str) -> Result<Duration, String> {
    match text.parse::<f64>() {
        Ok(number) if number > 0.0 && number <= SECONDS_MAX => Ok(Duration::from_secs_f64(number)),
        _ => Err(format!("`{text}` is no number of seconds from 0 to {SECONDS_MAX}")),
    }
}

/// An amount of money in millionths.
fn micros(text: &str) -> Result<u64, String> {
    /// More than any model costs, and exact in a float.
    const AMOUNT_MAX: f64 = 1e9;
    match text.parse::<f64>() {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is from 0 to 1e15")]
        Ok(amount) if (0.0..=AMOUNT_MAX).contains(&amount) => Ok((amount * MICROS).round() as u64),
        _ => Err(format!("`{text}` is no amount from 0 to {AMOUNT_MAX}")),
    }
}

fn prices(text: &str) -> Result<Prices, String> {
    let (input, output) = text.split_once('/').ok_or("give two prices, such as `0.15/0.60`")?;
    Ok(Prices { input: micros(input)?, output: micros(output)? })
}

/// A model that is ready to be asked.
#[derive(Debug)]
pub(crate) struct Opened {
    client: Client,
    clock: Arc<dyn Clock>,
    budget: Budget,
}

impl Opened {
    /// Starts counting what is used up of the budget.
    pub(crate) fn metered(&self) -> Metered<'_> {
        Metered::new(&self.client, &*self.clock, self.budget)
    }

    /// The clock that waits and budgets of time go by.
    pub(crate) fn clock(&self) -> &dyn Clock {
        &*self.clock
    }

    /// What a part of the work is counted by: the prices, without a limit of its own.
    pub(crate) fn counting(&self) -> Budget {
        Budget { prices: self.budget.prices, ..Budget::default() }
    }
}

impl ModelArgs {
    /// The model that is named; none where none is.
    pub(crate) fn open(&self) -> Result<Option<Opened>, Failure> {
        let Some(Named { address, name }) = &self.model else { return Ok(None) };
        let budget = Budget {
            calls: self.budget_calls,
            tokens: self.budget_tokens,
            cost_micros: self.budget_cost,
            time: self.budget_time,
            prices: self.prices,
        };
        let (transport, clock): (Arc<dyn Transport>, Arc<dyn Clock>) = match (&self.cassette, self.record) {
            (Some(path), false) => {
                let replay = Replay::open(path).map_err(Failure::unreadable)?;
                let clock = replay.clock();
                (Arc::new(replay), clock)
            }
            (Some(path), true) => {
                let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
                let server = self.server(address.as_deref())?;
                let recorder = Recorder::create(path, server, Arc::clone(&clock)).map_err(|error| {
                    Failure::unreadable(error)
                        .help("a recording is a new file: name one that is not there yet")
                })?;
                (Arc::new(recorder), clock)
            }
            (None, _) => (self.server(address.as_deref())?, Arc::new(SystemClock::new())),
        };
        let client = Client::new(Options::new(name), transport, Arc::clone(&clock));
        Ok(Some(Opened { client, clock, budget }))
    }

    fn server(&self, address: Option<&str>) -> Result<Arc<dyn Transport>, Failure> {
        let address = address.ok_or_else(|| {
            Failure::usage("the model's name alone does not say where it is served").help(
                "give the address too, as in `--model http://127.0.0.1:8080/v1/NAME`, or a `--cassette`",
            )
        })?;
        let key = match &self.key_env {
            Some(variable) => Some(Key::from_env(variable).map_err(Failure::unreadable)?),
            None if std::env::var_os(KEY_VARIABLE).is_some() => {
                Some(Key::from_env(KEY_VARIABLE).map_err(Failure::unreadable)?)
            }
            None => None,
        };
        let timeouts = Timeouts::default();
        let timeouts = Timeouts {
            connect: timeouts.connect.min(self.timeout),
            idle: timeouts.idle.min(self.timeout),
            total: self.timeout,
        };
        Ok(Arc::new(Http::new(address, key, timeouts).map_err(Failure::unreadable)?))
    }

    /// The model's name, and where its answers come from; empty where none is named.
    pub(crate) fn described(&self) -> String {
        let Some(Named { name, .. }) = &self.model else { return String::new() };
        match &self.cassette {
            Some(path) if !self.record => format!("{name}, answers of the cassette `{}`", path.display()),
            _ => name.clone(),
        }
    }

    /// The cassette that is read or recorded.
    pub(crate) fn cassette(&self) -> Option<&Path> {
        self.cassette.as_deref()
    }

    /// The model's name; empty where none is named.
    pub(crate) fn name(&self) -> &str {
        self.model.as_ref().map_or("", |model| model.name.as_str())
    }

    /// Whether one is named.
    pub(crate) fn is_named(&self) -> bool {
        self.model.is_some()
    }
}

/// What was used up, in words.
pub(crate) fn used(spent: &Used) -> String {
    let calls = crate::out::count(spent.calls as usize, "call", "calls");
    let mut words = format!("{calls}, {} tokens in, {} out", spent.input_tokens, spent.output_tokens);
    if spent.estimated_calls > 0 {
        words.push_str(&format!(" ({} of them estimated from bytes)", spent.estimated_calls));
    }
    if let Some(micros) = spent.cost_micros {
        words.push_str(&format!(", cost {:.6}", micros as f64 / MICROS));
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_is_an_address_and_a_name() {
        for (text, address, name) in [
            ("http://127.0.0.1:8080/v1/m", Some("http://127.0.0.1:8080/v1"), "m"),
            ("https://host/api/v1/org/model-70b", Some("https://host/api/v1"), "org/model-70b"),
            ("https://host/openai/m", Some("https://host/openai"), "m"),
            ("stand-in", None, "stand-in"),
            ("org/model", None, "org/model"),
        ] {
            let named = Named { address: address.map(str::to_owned), name: name.to_owned() };
            assert_eq!(Named::read(text), Ok(named));
        }
        for text in ["http://host/v1/", "https://host", ""] {
            assert!(Named::read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn money_is_counted_in_millionths() {
        assert_eq!(prices("0.15/0.6"), Ok(Prices { input: 150_000, output: 600_000 }));
        assert_eq!(micros("2.5"), Ok(2_500_000));
        assert!(micros("-1").is_err() && micros("NaN").is_err() && prices("1").is_err());
        assert_eq!(seconds("0.5"), Ok(Duration::from_millis(500)));
        assert!(seconds("0").is_err() && seconds("inf").is_err());
    }
}
