//! Reads the fields of a JSON object strictly: each mistake names its field.

use serde_json::{Map, Value};

use super::error::WorkError;

/// Most bytes of a text in a criterion.
pub(super) const FIELD_BYTES_MAX: usize = 4 << 10;
/// Most entries of a list in a criterion.
pub(super) const FIELD_ENTRIES_MAX: usize = 64;

/// The fields of one object that nobody has read yet.
pub(super) struct Fields<'v> {
    /// Where the object is, e.g. `criteria[2]`.
    at: String,
    rest: Vec<(&'v str, &'v Value)>,
    known: Vec<&'static str>,
}

impl<'v> Fields<'v> {
    pub(super) fn of(at: &str, value: &'v Value) -> Result<Self, WorkError> {
        let fields = |map: &'v Map<String, Value>| map.iter().map(|(name, value)| (name.as_str(), value));
        match value.as_object() {
            Some(map) => Ok(Self { at: at.to_owned(), rest: fields(map).collect(), known: Vec::new() }),
            None => Err(WorkError::field(at, "must be an object")),
        }
    }

    pub(super) fn place(&self, name: &str) -> String {
        format!("{}.{name}", self.at)
    }

    pub(super) fn mistake(&self, name: &str, reason: impl Into<String>) -> WorkError {
        WorkError::field(self.place(name), reason)
    }

    pub(super) fn value(&mut self, name: &'static str) -> Option<&'v Value> {
        self.known.push(name);
        let at = self.rest.iter().position(|(field, _)| *field == name)?;
        Some(self.rest.swap_remove(at).1)
    }

    fn required<T>(&self, name: &'static str, value: Option<T>) -> Result<T, WorkError> {
        value.ok_or_else(|| self.mistake(name, "is missing"))
    }

    pub(super) fn text(&mut self, name: &'static str) -> Result<String, WorkError> {
        let text = self.optional_text(name)?;
        self.required(name, text)
    }

    pub(super) fn optional_text(&mut self, name: &'static str) -> Result<Option<String>, WorkError> {
        let Some(value) = self.value(name) else { return Ok(None) };
        self.as_text(name, value).map(Some)
    }

    fn as_text(&self, name: &str, value: &Value) -> Result<String, WorkError> {
        match value.as_str() {
            None => Err(self.mistake(name, "must be a text")),
            Some("") => Err(self.mistake(name, "is empty")),
            Some(text) if text.len() > FIELD_BYTES_MAX => {
                Err(self.mistake(name, format!("has {} bytes; the limit is {FIELD_BYTES_MAX}", text.len())))
            }
            Some(text) if text.contains('\0') => Err(self.mistake(name, "has a zero byte")),
            Some(text) => Ok(text.to_owned()),
        }
    }

    /// True or false; false where it is left out.
    pub(super) fn optional_bool(&mut self, name: &'static str) -> Result<bool, WorkError> {
        match self.value(name) {
            None => Ok(false),
            Some(Value::Bool(value)) => Ok(*value),
            Some(_) => Err(self.mistake(name, "must be true or false")),
        }
    }

    /// A URL of HTTP by its look; whoever asks it reads it whole.
    pub(super) fn url(&mut self, name: &'static str) -> Result<String, WorkError> {
        let url = self.text(name)?;
        let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
        let host = rest.and_then(|rest| rest.split(['/', '?', '#']).next()).unwrap_or_default();
        if host.is_empty() || url.chars().any(|c| c.is_whitespace() || c.is_control()) {
            return Err(self.mistake(name, "must be a URL that begins with `https://` or `http://`"));
        }
        if host.contains('@') || url.contains('#') {
            return Err(self.mistake(name, "must have no user, no password and no fragment"));
        }
        Ok(url)
    }

    pub(super) fn any(&mut self, name: &'static str) -> Result<Value, WorkError> {
        let value = self.value(name).cloned();
        self.required(name, value)
    }

    pub(super) fn optional_integer(
        &mut self,
        name: &'static str,
        (least, most): (u32, u32),
    ) -> Result<Option<u32>, WorkError> {
        let Some(value) = self.value(name) else { return Ok(None) };
        let number = value.as_u64().and_then(|number| u32::try_from(number).ok());
        match number.filter(|number| (least..=most).contains(number)) {
            Some(number) => Ok(Some(number)),
            None => Err(self.mistake(name, format!("must be a whole number from {least} to {most}"))),
        }
    }

    pub(super) fn integer(&mut self, name: &'static str, range: (u32, u32)) -> Result<u32, WorkError> {
        let number = self.optional_integer(name, range)?;
        self.required(name, number)
    }

    pub(super) fn texts(&mut self, name: &'static str) -> Result<Vec<String>, WorkError> {
        let Some(value) = self.value(name) else { return Err(self.mistake(name, "is missing")) };
        let Some(list) = value.as_array() else { return Err(self.mistake(name, "must be a list of texts")) };
        if list.is_empty() || list.len() > FIELD_ENTRIES_MAX {
            return Err(self.mistake(name, format!("must have 1 to {FIELD_ENTRIES_MAX} entries")));
        }
        let entry = |(at, value)| self.as_text(&format!("{name}[{at}]"), value);
        list.iter().enumerate().map(entry).collect()
    }

    /// Nothing is left that nobody knows.
    pub(super) fn finish(self) -> Result<(), WorkError> {
        match self.rest.first() {
            None => Ok(()),
            Some((name, _)) => {
                let known = self.known.join("`, `");
                Err(self.mistake(name, format!("is not a field of this; there are `{known}`")))
            }
        }
    }
}
