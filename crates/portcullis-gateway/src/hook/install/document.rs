//! A settings file in JSON as its text and the places of what is in it, so that it can be changed in single places.
//!
//! What is read here is what the agent reads: plain JSON, and comments where the agent takes them out first. `jsonc-parser`
//! finds the places; that everything but comments is JSON is left to `serde_json`, because the former lets line breaks
//! in strings pass.

use std::ops::Range;

use jsonc_parser::ast::{self, Comment, ObjectPropName};
use jsonc_parser::common::Ranged as _;
use jsonc_parser::errors::ParseErrorKind;
use jsonc_parser::{CollectOptions, CommentCollectionStrategy, ParseOptions, parse_to_ast};
use serde::de::IgnoredAny;
use serde_json::{Map, Value};

/// A text that is an object, or nothing but blanks.
pub(super) struct Document {
    pub(super) text: String,
    /// The text with blanks in place of its comments.
    plain: String,
    comments: Vec<Range<usize>>,
    pub(super) root: Option<Node>,
}

/// A value and where it is.
pub(super) struct Node {
    pub(super) range: Range<usize>,
    pub(super) kind: Kind,
}

pub(super) enum Kind {
    Object(Vec<Member>),
    Array(Vec<Node>),
    Scalar,
}

/// A member of an object.
pub(super) struct Member {
    pub(super) name: String,
    /// Where its name begins.
    pub(super) start: usize,
    pub(super) value: Node,
}

/// Why a text is not read.
pub(super) enum Mistake {
    /// It has a comment.
    Comment(String),
    /// Anything else.
    Other(String),
}

impl Document {
    /// Reads a text; with `comments` if the agent takes them out.
    pub(super) fn read(text: String, comments: bool) -> Result<Self, Mistake> {
        let options = ParseOptions {
            allow_comments: comments,
            allow_loose_object_property_names: false,
            allow_trailing_commas: false,
            allow_missing_commas: false,
            allow_single_quoted_strings: false,
            allow_hexadecimal_numbers: false,
            allow_unary_plus_numbers: false,
            allow_bare_decimal_point_numbers: false,
            allow_non_finite_numbers: false,
            allow_extended_string_escapes: false,
        };
        let collect = CollectOptions { comments: CommentCollectionStrategy::Separate, tokens: false };
        let read = parse_to_ast(&text, &collect, &options).map_err(|error| {
            let (line, column) = (error.line_display(), error.column_display());
            match error.kind() {
                ParseErrorKind::CommentsNotAllowed => {
                    Mistake::Comment(format!("line {line}, column {column}: a comment"))
                }
                kind => Mistake::other(line, column, &kind.to_string()),
            }
        })?;
        let mut plain = text.clone().into_bytes();
        let mut comments = Vec::new();
        for comment in read.comments.iter().flatten().flat_map(|(_, comments)| comments.iter()) {
            let range = comment.range();
            comments.push(range.start..range.end);
            let ends = text.get(range.end..).unwrap_or_default();
            if matches!(comment, Comment::Line(_)) && ends.starts_with('\r') && !ends.starts_with("\r\n") {
                // Agents take such a comment to go on.
                let (line, column) = place(&text, range.end);
                return Err(Mistake::other(line, column, "A comment ends with a carriage return alone"));
            }
            for byte in plain.get_mut(range.start..range.end).into_iter().flatten() {
                if *byte != b'\n' {
                    *byte = b' ';
                }
            }
        }
        comments.sort_by_key(|comment| comment.start);
        let root = read.value.as_ref().map(node);
        let plain = String::from_utf8_lossy(&plain).into_owned();
        if root.is_some() {
            serde_json::from_str::<IgnoredAny>(&plain).map_err(|error| {
                let what = error.to_string();
                let what = what.split(" at line ").next().unwrap_or_default();
                Mistake::other(error.line(), error.column(), what)
            })?;
        }
        if root.as_ref().is_some_and(|root| root.members().is_none()) {
            return Err(Mistake::Other("it is not an object, `{…}`".to_owned()));
        }
        Ok(Self { text, plain, comments, root })
    }

    /// A value without its place. A number that is none for us stands as it is written.
    pub(super) fn value(&self, node: &Node) -> Value {
        match &node.kind {
            Kind::Object(members) => {
                let member = |member: &Member| (member.name.clone(), self.value(&member.value));
                Value::Object(members.iter().map(member).collect::<Map<_, _>>())
            }
            Kind::Array(elements) => elements.iter().map(|element| self.value(element)).collect(),
            Kind::Scalar => {
                let raw = self.text.get(node.range.clone()).unwrap_or_default();
                serde_json::from_str(raw).unwrap_or_else(|_| raw.into())
            }
        }
    }

    /// The member of a name, which may be there once.
    pub(super) fn only<'a>(&self, members: &'a [Member], name: &str) -> Result<Option<&'a Member>, String> {
        let mut of_name = members.iter().filter(|member| member.name == name);
        let first = of_name.next();
        match of_name.next() {
            None => Ok(first),
            Some(second) => {
                let (line, column) = place(&self.text, second.start);
                Err(format!(
                    "line {line}, column {column}: `{name}` is there twice, and agents differ in which they take; \
                     leave one of them"
                ))
            }
        }
    }

    /// The text from a place on, without comments.
    pub(super) fn after(&self, from: usize) -> &str {
        self.plain.get(from..).unwrap_or_default()
    }

    /// The text up to a place.
    pub(super) fn before(&self, to: usize) -> &str {
        self.text.get(..to).unwrap_or_default()
    }

    /// Where the blanks begin that stand before a place.
    pub(super) fn blank_before(&self, at: usize) -> usize {
        let blank = self.before(at).trim_end().len();
        let before = self.comments.partition_point(|comment| comment.end <= at);
        let comment = before.checked_sub(1).and_then(|last| self.comments.get(last));
        comment.map_or(blank, |comment| comment.end.max(blank))
    }

    /// Where the comments end that begin behind a value and on its line.
    pub(super) fn after_comments(&self, value_end: usize) -> usize {
        let mut end = value_end;
        loop {
            let rest = self.text.get(end..).unwrap_or_default();
            let start = end + (rest.len() - rest.trim_start_matches([' ', '\t']).len());
            let number = self.comments.partition_point(|comment| comment.start < start);
            let comment = self.comments.get(number).filter(|comment| comment.start == start);
            let one_line = |comment: &&Range<usize>| {
                self.text.get((*comment).clone()).is_some_and(|text| !text.contains('\n'))
            };
            match comment.filter(one_line) {
                Some(comment) => end = comment.end,
                None => return end,
            }
        }
    }
}

impl Mistake {
    fn other(line: usize, column: usize, what: &str) -> Self {
        let what = what.trim_end_matches('.');
        let mut letters = what.chars();
        let first = letters.next().map(|first| first.to_lowercase().to_string()).unwrap_or_default();
        Self::Other(format!(
            "line {line}, column {column}: {first}{}; correct it there first",
            letters.as_str()
        ))
    }
}

impl Node {
    pub(super) fn members(&self) -> Option<&[Member]> {
        match &self.kind {
            Kind::Object(members) => Some(members),
            _ => None,
        }
    }

    pub(super) fn elements(&self) -> Option<&[Self]> {
        match &self.kind {
            Kind::Array(elements) => Some(elements),
            _ => None,
        }
    }

    /// The places of what is in it.
    pub(super) fn children(&self) -> Vec<Range<usize>> {
        match &self.kind {
            Kind::Object(members) => {
                members.iter().map(|member| member.start..member.value.range.end).collect()
            }
            Kind::Array(elements) => elements.iter().map(|element| element.range.clone()).collect(),
            Kind::Scalar => Vec::new(),
        }
    }
}

/// The line and the column of a place, as people count them.
fn place(text: &str, at: usize) -> (usize, usize) {
    let before = text.get(..at).unwrap_or_default();
    let line = before.rsplit('\n').next().unwrap_or_default();
    (before.matches('\n').count() + 1, line.chars().count() + 1)
}

/// A value of the parser's as ours. The parser limits how deep they are nested.
fn node(value: &ast::Value<'_>) -> Node {
    let range = value.range();
    let kind = match value {
        ast::Value::Object(object) => {
            let member = |property: &ast::ObjectProp<'_>| Member {
                name: match &property.name {
                    ObjectPropName::String(name) => name.value.to_string(),
                    ObjectPropName::Word(name) => name.value.to_owned(),
                },
                start: property.range.start,
                value: node(&property.value),
            };
            Kind::Object(object.properties.iter().map(member).collect())
        }
        ast::Value::Array(array) => Kind::Array(array.elements.iter().map(node).collect()),
        _ => Kind::Scalar,
    };
    Node { range: range.start..range.end, kind }
}
