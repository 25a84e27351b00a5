//! All that asks a language model: the client, judged contracts, repair strategies, and guard programs from requests.
//!
//! What a machine can check exactly, a machine checks (`portcullis-contracts`); a model is asked only about the rest.
//! [`Client`] asks a server, or a cassette ([`Recorder`], [`Replay`]); [`Metered`] bounds what that costs. [`detect`] judges
//! contracts, [`repair`] rewrites a reply until they hold, and neither knows of sockets: they ask a [`Model`].
//!
//! [`guardagent`] has a model write guard programs, which contained workers run.
//!
//! Who needs neither uses [`record`]: one call checks or repairs a reply and says what became of it in a form for programs.
//!
//! A model's word is never trusted further than it goes. An answer that cannot be read, that does not come or that
//! leaves a statement out is a detection that failed: the contract is *undecided*, which is not compliance. A rewrite
//! replaces the reply only where it is better, and exact checkers have the last word on what they can check.

mod budget;
mod cassette;
mod client;
mod clock;
pub mod guardagent;
mod judge;
pub mod limits;
mod model;
pub mod opinion;
pub mod record;
mod repair;
pub mod restate;
mod tag;
mod written;

pub use budget::{Budget, Metered, Prices, Spent};
pub use cassette::{CassetteError, Recorder, Replay};
pub use client::{
    Client, EndpointError, Head, Http, Key, Options, Retries, Sink, Timeouts, TokenLimit, Transport,
};
pub use clock::{BoxFuture, Clock, SystemClock, VirtualClock};
pub use judge::{Decider, Detect, Detection, Judge, Judgement, Program, Standing, Task, answers, detect};
pub use model::{Completion, Exhausted, Finish, Message, Model, ModelError, Request, Role, Schema, Usage};
pub use repair::{
    Answers, Attempt, Ended, Helpers, Priorities, Repaired, Settings, SettingsError, Strategy, repair,
};
pub use written::{Compiled, Tag, Written, WrittenError};
