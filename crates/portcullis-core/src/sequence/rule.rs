//! One rule about what happened before, and when it fires.

use serde_json::Value;

use super::index::Call;
use super::{Holds, Mark, Only};
use crate::principal::Principal;
use crate::state::marks::{From, History, Now, Tally, Whose};
use crate::verdict::Verdict;

/// A rule about what happened before a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sequence {
    /// Unique name, which its findings end in.
    pub id: String,
    /// Tools whose calls are judged; `*` at the end stands for any rest.
    pub tools: Vec<String>,
    /// Which of their calls. One of which that cannot be told is judged.
    pub only: Only,
    /// Calls on behalf of principals with one of these roles are not judged.
    pub unless_roles: Vec<String>,
    /// JSON pointer to the argument of the judged call that has to equal the key of a mark, for the mark to count.
    pub same: Option<String>,
    /// Whose past it is about.
    pub over: Over,
    /// What is asked of the past.
    pub asks: Asks,
    /// Only what happened since the latest of these counts. Where there was none, everything does.
    pub since: Option<String>,
    /// Only what happened within this counts.
    pub within: Option<Window>,
    /// What is required where it fires.
    pub verdict: Verdict,
    /// What to tell the agent and the approver, besides what was found.
    pub message: Option<String>,
    /// What the agent may do instead.
    pub instead: Option<String>,
}

/// Whose past a rule is about.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Over {
    /// The run's own.
    #[default]
    Run,
    /// That of all runs of the run's principal. It is a fact: the gate counts it, and records it with the verdict.
    Principal,
}

/// What a rule asks of the past.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Asks {
    /// Fires if this has happened.
    After(String),
    /// Fires unless this has happened and succeeded: the judged call comes too early.
    Before(String),
    /// Fires if this has happened more often, the judged call included.
    Count {
        /// What is counted.
        of: String,
        /// How often it may happen.
        at_most: u32,
    },
    /// Fires if the amounts of this come to more, the judged call's included, or one of them cannot be read.
    Sum {
        /// What is summed up.
        of: String,
        /// What it may come to, in millionths.
        at_most_micros: u64,
    },
}

impl Asks {
    /// The mark that it is about.
    pub fn of(&self) -> &str {
        match self {
            Self::After(of) | Self::Before(of) | Self::Count { of, .. } | Self::Sum { of, .. } => of,
        }
    }
}

/// How far back counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Window {
    /// Microseconds.
    Micros(u64),
    /// Steps of the run, the judged call's among them.
    Steps(u32),
}

/// What is remembered of the marks that a rule names.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Past<'a> {
    /// Of what it asks about.
    pub(crate) of: Option<&'a History>,
    /// Of that since which it counts.
    pub(crate) since: Option<&'a History>,
}

/// Why a rule fires.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fired(pub String);

impl Sequence {
    /// Whether it judges a call with these arguments, besides its tool. Of a principal that is not known no role is.
    pub fn judges(&self, arguments: &Value, principal: Option<&Principal>) -> bool {
        let has = |role: &String| principal.is_some_and(|principal| principal.roles.contains(role));
        !self.unless_roles.iter().any(has) && self.only.holds(arguments) != Holds::No
    }

    /// What of the past counts for a call. Logarithmic in what is remembered of a mark, which is bounded.
    pub(crate) fn tally(&self, past: Past<'_>, call: Call<'_>, now: Now) -> Tally {
        let whose = match (&self.same, call.key) {
            (None, _) => Whose::Anybody,
            (Some(_), Some(key)) => Whose::Of(key),
            // What belongs to nobody that is known may belong to anybody.
            (Some(_), None) => Whose::Unknown,
        };
        let from = From { since: past.since, within: self.within };
        past.of.map_or_else(Tally::default, |history| history.tally(whose, from, now))
    }

    /// Whether a call is stopped for which so much counts.
    pub(crate) fn fires(&self, tally: Tally, call: Call<'_>) -> Option<Fired> {
        let of = self.asks.of();
        let own = call.own.filter(|mark| self.is_alike(mark, call));
        let found = match &self.asks {
            Asks::After(_) if tally.count > 0 => format!("it comes after `{of}`{}", self.bounds()),
            Asks::Before(_) if !tally.has_succeeded => {
                format!("it comes before `{of}`, which has not succeeded{}", self.bounds())
            }
            Asks::Count { at_most, .. } => {
                let count = tally.count.saturating_add(u32::from(own.is_some()));
                if count <= *at_most {
                    return None;
                }
                format!("`{of}` happens {count} times{}; at most {at_most} are let through", self.bounds())
            }
            Asks::Sum { at_most_micros, .. } => {
                let unread = tally.unread > 0 || own.is_some_and(|mark| mark.amount_micros.is_none());
                let own = own.and_then(|mark| mark.amount_micros).unwrap_or(0);
                let sum = tally.sum_micros.saturating_add(own);
                if sum <= *at_most_micros && !unread {
                    return None;
                }
                let (sum, most) = (shown(sum), shown(*at_most_micros));
                let unread = if unread { ", besides an amount that cannot be read" } else { "" };
                format!("`{of}` comes to {sum}{unread}{}; at most {most} is let through", self.bounds())
            }
            Asks::After(_) | Asks::Before(_) => return None,
        };
        Some(Fired(found))
    }

    /// Whether a mark of the judged call itself counts.
    fn is_alike(&self, mark: &Mark, call: Call<'_>) -> bool {
        self.same.is_none() || mark.key.is_none() || call.key.is_none() || mark.key == call.key
    }

    /// ` within 10m since `review` in all runs of the principal`.
    fn bounds(&self) -> String {
        let same = if self.same.is_some() { " for the same" } else { "" };
        let within = self.within.map_or_else(String::new, |window| format!(" within {window}"));
        let since = self.since.as_ref().map_or_else(String::new, |since| format!(" since `{since}`"));
        let over = if self.over == Over::Principal { " in all runs of the principal" } else { "" };
        format!("{same}{within}{since}{over}")
    }
}

impl std::fmt::Display for Window {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Steps(steps) => write!(f, "{steps} steps"),
            Self::Micros(micros) => {
                let seconds = micros / 1_000_000;
                match UNITS.iter().find(|(size, _)| seconds.is_multiple_of(*size)) {
                    Some((size, unit)) => write!(f, "{}{unit}", seconds / size),
                    None => write!(f, "{seconds}s"),
                }
            }
        }
    }
}

/// Seconds of the units in which windows are written.
const UNITS: [(u64, &str); 4] = [(86_400, "d"), (3_600, "h"), (60, "m"), (1, "s")];

impl std::str::FromStr for Window {
    type Err = String;

    /// `90s`, `10m`, `24h`, `7d`, `20 steps`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = || format!("`{text}` is no window: write `90s`, `10m`, `24h`, `7d` or `20 steps`");
        if let Some(steps) = text.strip_suffix(" steps") {
            let steps: u32 = steps.parse().map_err(|_| wrong())?;
            return (steps > 0).then_some(Self::Steps(steps)).ok_or_else(wrong);
        }
        let (size, number) = UNITS
            .iter()
            .find_map(|(size, unit)| Some((*size, text.strip_suffix(unit)?)))
            .ok_or_else(wrong)?;
        let number: u32 = number.parse().map_err(|_| wrong())?;
        let micros = size.saturating_mul(number.into()).saturating_mul(1_000_000);
        (number > 0).then_some(Self::Micros(micros)).ok_or_else(wrong)
    }
}

/// Millionths as a decimal number.
fn shown(micros: u64) -> String {
    let text = format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_read_and_written() {
        for text in ["90s", "10m", "24h", "7d", "20 steps"] {
            assert!(text.parse::<Window>().is_ok(), "{text}");
        }
        assert_eq!("600s".parse::<Window>().unwrap().to_string(), "10m");
        assert_eq!("24h".parse::<Window>().unwrap().to_string(), "1d");
        for text in ["", "10", "m", "-1m", "0s", "0 steps", "1.5h", "10 m", "10steps"] {
            assert!(text.parse::<Window>().is_err(), "{text}");
        }
        assert_eq!((shown(12_500_000), shown(3_000_000)), ("12.5".to_owned(), "3".to_owned()));
    }
}
