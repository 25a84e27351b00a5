//! A JSON object whose members keep their order and their spelling.

use serde::de::{Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

/// The members of an object in their order, as they were written.
#[derive(Debug, Clone, Default)]
pub(super) struct Members(pub(super) Vec<(String, Box<RawValue>)>);

impl Members {
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(key, _)| key == name).map(|(_, value)| value.get())
    }

    pub(super) fn set(&mut self, name: &str, value: &impl Serialize) -> serde_json::Result<()> {
        let value = to_raw_value(value)?;
        match self.0.iter_mut().find(|(key, _)| key == name) {
            Some((_, old)) => *old = value,
            None => self.0.push((name.to_owned(), value)),
        }
        Ok(())
    }

    pub(super) fn remove(&mut self, name: &str) {
        self.0.retain(|(key, _)| key != name);
    }

    /// The object with one member a line; what was not touched, as it was written.
    pub(super) fn pretty(&self) -> String {
        let member = |(key, value): &(String, Box<RawValue>)| {
            let indented =
                serde_json::from_str::<Self>(value.get()).ok().filter(|_| key == "hooks").map_or_else(
                    || value.get().to_owned(),
                    |hooks| hooks.pretty().trim_end().replace('\n', "\n  "),
                );
            format!("  {}: {indented}", Value::from(key.as_str()))
        };
        if self.0.is_empty() {
            return "{}\n".to_owned();
        }
        let members: Vec<String> = self.0.iter().map(member).collect();
        format!("{{\n{}\n}}\n", members.join(",\n"))
    }
}

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = Members;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
                let mut members = Members::default();
                while let Some(member) = map.next_entry::<String, Box<RawValue>>()? {
                    if members.get(&member.0).is_some() {
                        return Err(serde::de::Error::custom(format_args!("`{}` is there twice", member.0)));
                    }
                    members.0.push(member);
                }
                Ok(members)
            }
        }
        deserializer.deserialize_map(InOrder)
    }
}

impl Serialize for Members {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(key, value)| (key, value)))
    }
}
