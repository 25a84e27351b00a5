//! Labels: the sources of a value. A run carries the set of labels of everything its agent has seen, and a grant
//! holds only while that set is a subset of what the approver was shown.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::id::RunId;
use crate::limits::{LABELS_MAX, NAME_BYTES_MAX};

/// The source of a value.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Label {
    /// Said by the user on whose behalf the agent acts.
    User,
    /// Said by the operator: system prompt, bundle.
    Operator,
    /// Returned by the named tool. Not trusted: anyone may have written what a tool returns.
    Tool(String),
    /// Said by the named server outside of the results of its tools: contents of resources, prompts, notifications,
    /// questions of its own. Not trusted either.
    Server(String),
    /// Said by the agent of the run with this id: of the run that opened this one, or of one that this one opened. Not
    /// trusted: what that agent says may be what others told it.
    Run(RunId),
    /// The source is not known, or was forgotten by a bounded index. Treated as tainted.
    Unknown,
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::User => f.write_str("user"),
            Self::Operator => f.write_str("operator"),
            Self::Tool(name) => write!(f, "tool:{name}"),
            Self::Server(name) => write!(f, "server:{name}"),
            Self::Run(run) => write!(f, "run:{run}"),
            Self::Unknown => f.write_str("unknown"),
        }
    }
}

impl FromStr for Label {
    type Err = std::convert::Infallible;

    /// Never fails: text that names no source is [`Label::Unknown`], which is the tainted one.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(match text {
            "user" => Self::User,
            "operator" => Self::Operator,
            _ => match text.split_once(':') {
                Some(("tool", name)) if name.len() <= NAME_BYTES_MAX => Self::Tool(name.to_owned()),
                Some(("server", name)) if name.len() <= NAME_BYTES_MAX => Self::Server(name.to_owned()),
                Some(("run", id)) => id.parse().map_or(Self::Unknown, Self::Run),
                _ => Self::Unknown,
            },
        })
    }
}

impl Serialize for Label {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Label {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        Ok(text.parse().unwrap_or(Self::Unknown))
    }
}

impl JsonSchema for Label {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Label".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": "^(user|operator|unknown|tool:.*|server:.*|run:[0-9a-f]{32})$" })
    }
}

/// A bounded set of labels. When it is full, further labels collapse into [`Label::Unknown`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct LabelSet(BTreeSet<Label>);

impl LabelSet {
    /// Adds a label, or [`Label::Unknown`] when the set is full.
    pub fn insert(&mut self, label: Label) {
        if self.0.len() < LABELS_MAX || self.0.contains(&label) {
            self.0.insert(label);
        } else {
            self.0.insert(Label::Unknown);
        }
    }

    /// Adds labels, each like [`Self::insert`].
    pub fn extend(&mut self, labels: impl IntoIterator<Item = Label>) {
        labels.into_iter().for_each(|label| self.insert(label));
    }

    /// Whether there is no label.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether everything in this set is also in `shown`.
    pub fn is_subset(&self, shown: &Self) -> bool {
        self.0.is_subset(&shown.0)
    }

    /// Shows every label, which may be changed.
    pub(crate) fn each_mut(&mut self, show: &mut dyn FnMut(&mut Label)) {
        let labels = std::mem::take(&mut self.0).into_iter().map(|mut label| {
            show(&mut label);
            label
        });
        self.0 = labels.collect();
    }

    /// The labels in their fixed order.
    pub fn iter(&self) -> impl Iterator<Item = &Label> {
        self.0.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_set_collapses_into_unknown() {
        let mut set = LabelSet::default();
        for n in 0..LABELS_MAX + 10 {
            set.insert(Label::Tool(n.to_string()));
        }
        assert_eq!(set.iter().count(), LABELS_MAX + 1);
        assert!(set.iter().any(|label| *label == Label::Unknown));
        assert!(!set.is_subset(&LabelSet::default()));
    }

    #[test]
    fn unknown_text_is_tainted() {
        assert_eq!("tool:read_file".parse(), Ok(Label::Tool("read_file".into())));
        assert_eq!("server:npx mail".parse(), Ok(Label::Server("npx mail".into())));
        assert_eq!(Label::Server("npx mail".into()).to_string(), "server:npx mail");
        let run = Label::Run(RunId::from_bytes([7; 16]));
        assert_eq!(run.to_string().parse(), Ok(run));
        for text in ["operato", "run:", "run:07", "run:tool:x"] {
            assert_eq!(text.parse(), Ok(Label::Unknown), "{text}");
        }
    }
}
