//! Values written as Python source or as JSON, as data sets and models write them: `{'days': 3, 'quiet': True}`.

use std::iter::Peekable;
use std::str::Chars;

use serde_json::{Map, Number, Value};

/// Deepest nesting that is read.
const DEPTH_MAX: usize = 32;

/// Reads the value at the start of a text; none where there is none. What follows is left.
pub fn read(text: &str) -> Option<Value> {
    let mut reader = Reader { rest: text.trim_start().chars().peekable() };
    reader.value(0)
}

struct Reader<'t> {
    rest: Peekable<Chars<'t>>,
}

impl Reader<'_> {
    fn space(&mut self) {
        while self.rest.next_if(|c| c.is_whitespace()).is_some() {}
    }

    /// Whether `c` comes next, which is taken then.
    fn take(&mut self, c: char) -> bool {
        self.space();
        self.rest.next_if_eq(&c).is_some()
    }

    fn value(&mut self, depth: usize) -> Option<Value> {
        if depth > DEPTH_MAX {
            return None;
        }
        self.space();
        match *self.rest.peek()? {
            '{' => self.map(depth),
            open @ ('[' | '(') => self.list(if open == '[' { ']' } else { ')' }, depth),
            quote @ ('\'' | '"') => self.string(quote).map(Value::String),
            _ => self.word(),
        }
    }

    fn map(&mut self, depth: usize) -> Option<Value> {
        self.rest.next();
        let mut map = Map::new();
        loop {
            if self.take('}') {
                return Some(Value::Object(map));
            }
            let Value::String(key) = self.value(depth + 1)? else { return None };
            if !self.take(':') {
                return None;
            }
            map.insert(key, self.value(depth + 1)?);
            if !self.take(',') {
                return self.take('}').then_some(Value::Object(map));
            }
        }
    }

    fn list(&mut self, close: char, depth: usize) -> Option<Value> {
        self.rest.next();
        let mut items = Vec::new();
        loop {
            if self.take(close) {
                return Some(Value::Array(items));
            }
            items.push(self.value(depth + 1)?);
            if !self.take(',') {
                return self.take(close).then_some(Value::Array(items));
            }
        }
    }

    fn string(&mut self, quote: char) -> Option<String> {
        self.rest.next();
        let mut text = String::new();
        loop {
            match self.rest.next()? {
                c if c == quote => return Some(text),
                '\\' => match self.rest.next()? {
                    'n' => text.push('\n'),
                    't' => text.push('\t'),
                    'r' => text.push('\r'),
                    'u' => text.push(self.code_point()?),
                    other => text.push(other),
                },
                c => text.push(c),
            }
        }
    }

    fn code_point(&mut self) -> Option<char> {
        let digits: String = self.rest.by_ref().take(4).collect();
        Some(
            u32::from_str_radix(&digits, 16)
                .ok()
                .and_then(char::from_u32)
                .unwrap_or(char::REPLACEMENT_CHARACTER),
        )
    }

    fn word(&mut self) -> Option<Value> {
        let mut word = String::new();
        while let Some(c) = self.rest.next_if(|c| c.is_alphanumeric() || matches!(c, '.' | '-' | '+' | '_')) {
            word.push(c);
        }
        match word.as_str() {
            "True" | "true" => Some(Value::Bool(true)),
            "False" | "false" => Some(Value::Bool(false)),
            "None" | "null" => Some(Value::Null),
            _ => match word.parse::<i64>() {
                Ok(whole) => Some(whole.into()),
                Err(_) => Number::from_f64(word.parse().ok()?).map(Value::Number),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn python_and_json_are_read_alike() {
        let wanted = json!({"a": [1, 2.5, null], "quiet": true, "who": "Ida's \"aunt\"\n"});
        for text in [
            "{'a': [1, 2.5, None], 'quiet': True, 'who': 'Ida\\'s \"aunt\"\\n'} and more",
            "{\"a\": [1, 2.5, null], \"quiet\": true, \"who\": \"Ida's \\\"aunt\\\"\\n\"}\nnext",
            "{'a': (1, 2.5, None,), 'quiet': True, 'who': \"Ida's \\\"aunt\\\"\\n\",}",
        ] {
            assert_eq!(read(text), Some(wanted.clone()), "{text}");
        }
        assert_eq!(read("None"), Some(Value::Null));
    }

    #[test]
    fn what_does_not_end_is_no_value() {
        for text in ["", "{'a': 1", "{'a' 1}", "[1, 2", "'open", "{1: 2}", "words and more"] {
            assert_eq!(read(text), None, "{text}");
        }
        assert_eq!(read(&"[".repeat(1_000)), None);
    }
}
