//! What a request says: rules about calls. They can only stop calls.

use std::fmt;
use std::ops::Range;

use portcullis_core::limits::PRINCIPAL_WINDOW_MAX_MICROS;
use serde::{Deserialize, Serialize};

/// One rule. A call of one of the tools is stopped if no condition is false for it and, where the rule asks about the
/// past, the past is as it says. A condition of which nobody can tell, since an argument or attribute is missing, is not
/// false: what cannot be told is stopped.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// Unique in a draft; names its file or sequence.
    pub id: String,
    /// The words of the request, in bytes.
    pub span: Range<usize>,
    /// The tools whose calls are judged.
    pub tools: Vec<String>,
    /// Which of their calls.
    pub when: Vec<Condition>,
    /// What must have happened before for the call to be stopped.
    pub past: Option<Past>,
    /// What becomes of the call.
    pub stop: Stop,
}

/// What becomes of a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stop {
    /// It is denied.
    Deny,
    /// It is held until a person approves: one of this role, or any approver.
    Hold(Option<String>),
}

/// Something that is true of a call, false, or cannot be told.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Condition {
    /// The principal has one of these roles.
    Role(Vec<String>),
    /// An attribute of the principal compares so.
    Attribute(String, Compare, Number),
    /// An attribute of the principal is true.
    Flag(String),
    /// An argument is so.
    Argument(String, Test),
    /// The call comes at such a time.
    At(Times),
    /// The opposite.
    Not(Box<Condition>),
    /// One of them holds.
    Any(Vec<Condition>),
    /// All of them hold.
    All(Vec<Condition>),
}

/// What an argument is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Test {
    /// One of these, whatever the case.
    OneOf(Vec<String>),
    /// A number that compares so.
    Compares(Compare, Number),
    /// An address or host in one of these domains; with subdomains, or exactly.
    InDomain(Vec<String>, bool),
    /// A path in one of these folders.
    Under(Vec<String>),
    /// A path whose last part has one of these names; `*` at the beginning stands for any.
    Named(Vec<String>),
    /// A text that begins with one of these, whatever the case.
    Starts(Vec<String>),
    /// A text that has one of these in it, whatever the case.
    Contains(Vec<String>),
    /// Given, and not empty.
    Given,
    /// A list, or a text of parts with commas, with so many entries.
    Items(Compare, u32),
}

/// How two numbers compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Compare {
    /// More.
    #[serde(rename = ">")]
    Over,
    /// As much or more.
    #[serde(rename = ">=")]
    AtLeast,
    /// Less.
    #[serde(rename = "<")]
    Under,
    /// As much or less.
    #[serde(rename = "<=")]
    AtMost,
    /// As much.
    #[serde(rename = "==")]
    Equal,
}

/// A decimal number in millionths.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Number(pub i64);

impl Number {
    /// Millionths of one.
    pub const ONE: i64 = 1_000_000;

    /// A whole number.
    pub const fn whole(number: i64) -> Self {
        Self(number.saturating_mul(Self::ONE))
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (sign, size) = (if self.0 < 0 { "-" } else { "" }, self.0.unsigned_abs());
        let (whole, rest) = (size / 1_000_000, size % 1_000_000);
        if rest == 0 {
            return write!(f, "{sign}{whole}");
        }
        let text = format!("{sign}{whole}.{rest:06}");
        f.write_str(text.trim_end_matches('0'))
    }
}

impl Compare {
    /// Whether two numbers compare so.
    pub fn holds(self, left: i64, right: i64) -> bool {
        match self {
            Self::Over => left > right,
            Self::AtLeast => left >= right,
            Self::Under => left < right,
            Self::AtMost => left <= right,
            Self::Equal => left == right,
        }
    }

    /// As it is written.
    pub fn sign(self) -> &'static str {
        match self {
            Self::Over => ">",
            Self::AtLeast => ">=",
            Self::Under => "<",
            Self::AtMost => "<=",
            Self::Equal => "==",
        }
    }
}

/// Times. What is empty or absent does not matter.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Times {
    /// Days of the week; 0 is Monday.
    pub weekdays: Vec<u8>,
    /// Minutes since midnight: from the first, and before the second. Where the second is less, over midnight.
    pub minutes: Option<(u16, u16)>,
    /// Days, `2026-12-18`, both included; open where one is empty.
    pub dates: Option<(String, String)>,
    /// Minutes to be added to UTC.
    pub offset: i16,
}

/// What is asked of the past.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Past {
    /// The question.
    pub asks: Asks,
    /// Which earlier calls, of those that `after` and `before` name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub earlier: Vec<Condition>,
    /// The arguments that have to be equal: of the earlier call, and of the judged one.
    pub same: Option<(String, String)>,
    /// How far back counts; all of the run where nothing is said.
    pub within: Option<Window>,
}

impl Past {
    /// Whether it counts the calls of all runs of the principal: a limit within a time would otherwise be escaped by opening
    /// another run. Longer times than the gate looks back are counted within the run.
    #[must_use]
    pub fn is_over_principal(&self) -> bool {
        let is_limit = matches!(self.asks, Asks::Count(_) | Asks::Sum(..));
        let most = PRINCIPAL_WINDOW_MAX_MICROS / 1_000_000;
        is_limit && matches!(self.within, Some(Window::Seconds(seconds)) if seconds <= most)
    }
}

/// How far back counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Window {
    /// Seconds.
    Seconds(u64),
    /// From one midnight to the next, from Monday to Sunday, from the first to the last of a month, in UTC.
    Calendar(Unit),
}

/// A unit of the calendar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unit {
    /// A full hour.
    Hour,
    /// A day.
    Day,
    /// A week.
    Week,
    /// A month.
    Month,
    /// A year.
    Year,
}

/// A question about the past.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Asks {
    /// More calls than this, the judged one included.
    Count(u32),
    /// More of this argument in all than this, the judged call's included.
    Sum(String, Number),
    /// One of these tools was called.
    After(Vec<String>),
    /// None of these tools was called with success.
    Before(Vec<String>),
}
