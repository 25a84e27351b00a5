//! One event line, read as strictly as evidence must be.
//!
//! The line is hashed as bytes before it is read here, so nothing in this file can change what is proven; reading
//! only gives the state machine its words. It refuses what two readers could understand differently: a key that
//! stands twice in one object (at any depth), an unknown field of the envelope, a missing one.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};

use crate::chain::Digest;

/// The version of the event envelope.
pub const EVENT_VERSION: u64 = 1;

/// The most payloads that one event may name.
pub const EVENT_PAYLOADS_MAX: usize = 256;

/// The kinds of events. The set is closed: a verifier that does not know a kind cannot judge the run.
pub const KINDS: [&str; 20] = [
    "run-opened",
    "config",
    "input",
    "proposed",
    "verdict",
    "enforcement",
    "approval-requested",
    "approval-decided",
    "grant-claimed",
    "outcome",
    "observation",
    "observed",
    "output",
    "evidence",
    "work",
    "state",
    "fact",
    "control",
    "gap",
    "run-closed",
];

/// An event as verification reads it.
#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Event<'a> {
    /// The version of the envelope, [`EVENT_VERSION`].
    pub v: u64,
    /// The position in the run, dense from 1 across segments.
    pub seq: u64,
    /// When, as the writer's clock told it, in RFC 3339.
    #[serde(borrow)]
    pub t: Cow<'a, str>,
    /// One of [`KINDS`].
    #[serde(borrow)]
    pub kind: Cow<'a, str>,
    /// Who caused it.
    #[serde(borrow)]
    pub actor: Cow<'a, str>,
    /// The seq of the causing event.
    #[serde(deserialize_with = "present")]
    pub cause: Option<u64>,
    /// The payloads that the event names.
    #[serde(borrow)]
    pub payloads: Payloads<'a>,
    /// The members of the body that verification may read.
    #[serde(borrow)]
    pub body: Body<'a>,
}

impl<'a> Event<'a> {
    /// Reads a line.
    ///
    /// # Errors
    /// A text that says what is wrong with the line.
    pub fn from_line(line: &'a [u8]) -> Result<Event<'a>, String> {
        let event: Event<'a> = serde_json::from_slice(line).map_err(|error| error.to_string())?;
        if event.v != EVENT_VERSION {
            return Err(format!("event version `{}`, this verifier reads version {EVENT_VERSION}", event.v));
        }
        if !KINDS.contains(&event.kind.as_ref()) {
            return Err(format!("unknown kind `{}`", event.kind));
        }
        if let Some(cause) = event.cause
            && (cause == 0 || cause >= event.seq)
        {
            return Err(format!("the cause `{cause}` is not an event before {}", event.seq));
        }
        Ok(event)
    }
}

/// An `Option` whose field must be there: `null` is a statement, absence is a missing one.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    Option::deserialize(deserializer)
}

/// What an event says of one payload.
#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PayloadRef<'a> {
    /// The salted commitment.
    pub commitment: Digest,
    /// The media type that the commitment binds.
    #[serde(borrow)]
    pub media_type: Cow<'a, str>,
    /// The length in bytes.
    pub bytes: u64,
}

/// The payloads of an event, by name.
#[derive(Debug, Default)]
pub struct Payloads<'a>(pub Vec<(Cow<'a, str>, PayloadRef<'a>)>);

impl<'de: 'a, 'a> Deserialize<'de> for Payloads<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Payloads<'a>, D::Error> {
        struct Members<'a>(std::marker::PhantomData<&'a ()>);
        impl<'de: 'a, 'a> Visitor<'de> for Members<'a> {
            type Value = Payloads<'a>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of payloads")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Payloads<'a>, A::Error> {
                let mut keys = Keys::default();
                let mut payloads = Vec::new();
                while let Some(Key(key)) = map.next_key::<Key<'a>>()? {
                    keys.add(key.clone())?;
                    if payloads.len() == EVENT_PAYLOADS_MAX {
                        return Err(A::Error::custom(format!("more than {EVENT_PAYLOADS_MAX} payloads")));
                    }
                    payloads.push((key, map.next_value::<PayloadRef<'a>>()?));
                }
                Ok(Payloads(payloads))
            }
        }
        deserializer.deserialize_map(Members(std::marker::PhantomData))
    }
}

/// The body of an event: an object whose members differ by kind.
#[derive(Debug, Default)]
pub struct Body<'a>(Vec<(Cow<'a, str>, Value<'a>)>);

impl<'a> Body<'a> {
    /// A member that is text.
    ///
    /// # Errors
    /// When the member is missing or is something else.
    pub fn text(&self, name: &str) -> Result<&str, String> {
        match self.get(name) {
            Some(Value::Text(text)) => Ok(text),
            Some(_) => Err(format!("`body.{name}` is not a text")),
            None => Err(format!("`body.{name}` is missing")),
        }
    }

    /// A member that is a whole number from 0.
    ///
    /// # Errors
    /// When the member is missing or is something else.
    pub fn number(&self, name: &str) -> Result<u64, String> {
        match self.get(name) {
            Some(Value::Number(number)) => Ok(*number),
            Some(_) => Err(format!("`body.{name}` is not a whole number from 0")),
            None => Err(format!("`body.{name}` is missing")),
        }
    }

    /// Whether the body has the member at all.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    fn get(&self, name: &str) -> Option<&Value<'a>> {
        self.0.iter().find(|(key, _)| key == name).map(|(_, value)| value)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Body<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Body<'a>, D::Error> {
        struct Members<'a>(std::marker::PhantomData<&'a ()>);
        impl<'de: 'a, 'a> Visitor<'de> for Members<'a> {
            type Value = Body<'a>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Body<'a>, A::Error> {
                let mut keys = Keys::default();
                let mut members = Vec::new();
                while let Some(Key(key)) = map.next_key::<Key<'a>>()? {
                    keys.add(key.clone())?;
                    members.push((key, map.next_value::<Value<'a>>()?));
                }
                Ok(Body(members))
            }
        }
        deserializer.deserialize_map(Members(std::marker::PhantomData))
    }
}

/// Any JSON value: walked to its leaves for duplicate keys, kept only where a member of a body can be read.
#[derive(Debug)]
enum Value<'a> {
    Text(Cow<'a, str>),
    Number(u64),
    Other,
}

impl<'de: 'a, 'a> Deserialize<'de> for Value<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Value<'a>, D::Error> {
        struct Any<'a>(std::marker::PhantomData<&'a ()>);
        impl<'de: 'a, 'a> Visitor<'de> for Any<'a> {
            type Value = Value<'a>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("any JSON value")
            }
            fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Value<'a>, E> {
                Ok(Value::Text(Cow::Borrowed(text)))
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Value<'a>, E> {
                Ok(Value::Text(Cow::Owned(text.to_owned())))
            }
            fn visit_u64<E: Error>(self, number: u64) -> Result<Value<'a>, E> {
                Ok(Value::Number(number))
            }
            fn visit_i64<E: Error>(self, _: i64) -> Result<Value<'a>, E> {
                Ok(Value::Other)
            }
            fn visit_f64<E: Error>(self, _: f64) -> Result<Value<'a>, E> {
                Ok(Value::Other)
            }
            fn visit_bool<E: Error>(self, _: bool) -> Result<Value<'a>, E> {
                Ok(Value::Other)
            }
            fn visit_unit<E: Error>(self) -> Result<Value<'a>, E> {
                Ok(Value::Other)
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value<'a>, A::Error> {
                while items.next_element::<Value<'a>>()?.is_some() {}
                Ok(Value::Other)
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value<'a>, A::Error> {
                let mut keys = Keys::default();
                while let Some(Key(key)) = map.next_key::<Key<'a>>()? {
                    keys.add(key.clone())?;
                    map.next_value::<Value<'a>>()?;
                }
                Ok(Value::Other)
            }
        }
        deserializer.deserialize_any(Any(std::marker::PhantomData))
    }
}

/// A key, borrowed from the line where it has no escapes.
struct Key<'a>(Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Key<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Key<'a>, D::Error> {
        struct Text<'a>(std::marker::PhantomData<&'a ()>);
        impl<'de: 'a, 'a> Visitor<'de> for Text<'a> {
            type Value = Key<'a>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a key")
            }
            fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Key<'a>, E> {
                Ok(Key(Cow::Borrowed(text)))
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Key<'a>, E> {
                Ok(Key(Cow::Owned(text.to_owned())))
            }
        }
        deserializer.deserialize_str(Text(std::marker::PhantomData))
    }
}

/// Up to this many keys of one object are compared one by one; beyond it they are hashed, so that the time for an
/// object stays linear in its size.
const KEYS_COMPARED_MAX: usize = 16;

/// The keys of one object so far.
#[derive(Default)]
struct Keys<'a> {
    few: Vec<Cow<'a, str>>,
    many: HashSet<Cow<'a, str>>,
}

impl<'a> Keys<'a> {
    fn add<E: Error>(&mut self, key: Cow<'a, str>) -> Result<(), E> {
        if self.few.contains(&key) || self.many.contains(&key) {
            return Err(E::custom(format!("duplicate key `{key}`")));
        }
        if self.few.len() < KEYS_COMPARED_MAX {
            self.few.push(key);
        } else {
            self.many.insert(key);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(cause: &str, payloads: &str, body: &str) -> String {
        format!(
            r#"{{"v":1,"seq":5,"t":"2026-11-21T01:02:03.123456Z","kind":"input","actor":"a","cause":{cause},"payloads":{payloads},"body":{body}}}"#
        )
    }

    fn error(line: &str) -> String {
        Event::from_line(line.as_bytes()).unwrap_err()
    }

    #[test]
    fn reads_an_event() {
        let line = line("4", "{}", r#"{"action":"x","count":3,"other":[{"a":1},null,-1,1.5,true]}"#);
        let event = Event::from_line(line.as_bytes()).unwrap();
        assert_eq!((event.seq, event.cause), (5, Some(4)));
        assert_eq!(event.body.text("action"), Ok("x"));
        assert_eq!(event.body.number("count"), Ok(3));
        assert_eq!(event.body.number("action").unwrap_err(), "`body.action` is not a whole number from 0");
        assert_eq!(event.body.text("status").unwrap_err(), "`body.status` is missing");
        assert!(event.body.has("other"));
    }

    #[test]
    fn refuses_what_two_readers_could_read_differently() {
        assert!(error(&line("null", "{}", r#"{"a":1,"a":1}"#)).contains("duplicate key `a`"));
        assert!(error(&line("null", "{}", r#"{"a":[{"b":1,"\u0062":1}]}"#)).contains("duplicate key `b`"));
        assert!(error(&line("null", r#"{"p":1,"p":1}"#, "{}")).contains("invalid type"));
        assert!(
            error(&line("null", "{}", "{}").replace("\"v\":1", "\"v\":1,\"v\":1"))
                .contains("duplicate field")
        );
        assert!(
            error(&line("null", "{}", "{}").replace("\"v\":1", "\"v\":1,\"x\":1")).contains("unknown field")
        );
        assert!(
            error(&line("null", "{}", "{}").replace("\"cause\":null,", "")).contains("missing field `cause`")
        );
        assert!(error(&line("null", "{}", "{}").replace("\"v\":1", "\"v\":2")).contains("event version `2`"));
        assert!(
            error(&line("null", "{}", "{}").replace("input", "inputs")).contains("unknown kind `inputs`")
        );
        assert!(error(&line("5", "{}", "{}")).contains("not an event before 5"));
        assert!(error(&line("0", "{}", "{}")).contains("not an event before 5"));
        assert!(error(&line("null", "[]", "{}")).contains("expected an object of payloads at"));
        assert!(error(&line("null", "{}", "[]")).contains("expected an object at"));
        let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
        assert!(error(&line("null", "{}", &format!("{{\"a\":{deep}}}"))).contains("recursion"));
    }

    #[test]
    fn keys_are_compared_however_many_there_are() {
        let object = |last: usize| {
            let members: Vec<_> = (0..40).chain([last]).map(|key| format!("\"k{key}\":1")).collect();
            format!("{{{}}}", members.join(","))
        };
        assert!(Event::from_line(line("null", "{}", &object(40)).as_bytes()).is_ok());
        for again in 0..40 {
            let expected = format!("duplicate key `k{again}`");
            assert!(error(&line("null", "{}", &object(again))).contains(&expected));
            assert!(error(&line("null", "{}", &format!("{{\"a\":{}}}", object(again)))).contains(&expected));
        }
    }

    #[test]
    fn an_event_names_so_many_payloads() {
        let payloads = |count: usize| {
            let digest = "0".repeat(64);
            let named = |name| format!(r#""{name}":{{"commitment":"{digest}","media_type":"a","bytes":1}}"#);
            format!("{{{}}}", (0..count).map(named).collect::<Vec<_>>().join(","))
        };
        let most = line("null", &payloads(EVENT_PAYLOADS_MAX), "{}");
        assert_eq!(Event::from_line(most.as_bytes()).unwrap().payloads.0.len(), EVENT_PAYLOADS_MAX);
        assert!(
            error(&line("null", &payloads(EVENT_PAYLOADS_MAX + 1), "{}")).contains("more than 256 payloads")
        );
    }
}
