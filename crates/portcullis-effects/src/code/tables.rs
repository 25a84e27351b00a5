//! The functions that a bundle declares, and what they read.
//!
//! Nothing about their names is known here: `functions/*.toml` says which function loads a table, which filters
//! one, which gets values out of a column, which runs SQL and which calls a tool.

use std::collections::BTreeSet;
use std::ops::Range;
use std::rc::Rc;

use portcullis_core::bundle::FunctionRole;
use portcullis_core::effect::{Resource, ResourceKind, Verb};

use super::condition::{self, Column};
use super::interpreter::{Arguments, Interpreter};
use super::text::{Part, Text, Texts, lowercase};
use super::value::{Atom, Frame, Object, Value};
use super::{ToolArgument, ToolCall, sql};

/// How deep a handle may lie within lists that stand for it.
const HANDLES_DEPTH_MAX: usize = 4;

impl Interpreter<'_, '_> {
    /// Calls a function of the bundle.
    pub(super) fn declared(&mut self, name: &str, arguments: &Arguments) -> Value {
        let range = arguments.range.clone();
        let Some(role) = self.surroundings.settings.functions.get(name) else { return Value::unknown() };
        self.run_callbacks(arguments);
        match role {
            FunctionRole::LoadTable => self.load_table(arguments),
            FunctionRole::FilterTable => {
                let frames = self.frames_of(arguments.at(0), &range);
                let conditions = self.strings(arguments.at(1), &range);
                for text in &conditions {
                    for column in condition::conditions(text) {
                        self.read_in(&frames, &column, text.range());
                    }
                }
                frames.into_iter().map(Atom::Table).collect()
            }
            FunctionRole::GetValue => {
                let frames = self.frames_of(arguments.at(0), &range);
                for text in self.strings(arguments.at(1), &range) {
                    let known = |name: &str| frames.iter().any(|frame| self.is_catalogued(frame, name));
                    for column in condition::value_columns(&text, known) {
                        self.read_in(&frames, &column, text.range());
                    }
                }
                Value::data()
            }
            FunctionRole::RunSql => {
                for text in self.strings(arguments.at(0), &range) {
                    sql::run(&text, self.surroundings, self.sink);
                }
                Value::data()
            }
            FunctionRole::CallTool(tool) => {
                self.call_tool(tool, arguments);
                Value::data()
            }
            FunctionRole::Pure => Value::data(),
        }
    }

    fn call_tool(&mut self, tool: &str, arguments: &Arguments) {
        let range = arguments.range.clone();
        self.effect(Verb::Execute, Resource::new(ResourceKind::Tool, tool), range.clone());
        for value in arguments.all() {
            self.escape(value, range.clone());
        }
        let mut given = Vec::new();
        for value in &arguments.positional {
            given.push(ToolArgument { name: None, value: self.json(value, 0) });
        }
        for (name, value) in &arguments.named {
            given.push(ToolArgument { name: Some(name.clone()), value: self.json(value, 0) });
        }
        let complete = arguments.rest.is_none();
        let call = ToolCall { tool, arguments: &given, complete, range };
        (self.tools)(&call, self.sink);
    }

    /// A value as JSON, when it is known completely.
    fn json(&self, value: &Value, depth: usize) -> Option<serde_json::Value> {
        if depth > HANDLES_DEPTH_MAX {
            return None;
        }
        match value.single()? {
            Atom::Text(text) => text.known().map(Into::into),
            Atom::Integer(number) => Some((*number).into()),
            Atom::List(id) => match self.object(*id)? {
                Object::List { items, exact: true, .. } => {
                    let items: Option<Vec<_>> = items.iter().map(|item| self.json(item, depth + 1)).collect();
                    items.map(Into::into)
                }
                _ => None,
            },
            Atom::Dict(id) => match self.object(*id)? {
                Object::Dict { entries, rest } if rest.is_none() => {
                    let mut object = serde_json::Map::new();
                    for (key, value) in entries {
                        object.insert(key.clone(), self.json(value, depth + 1)?);
                    }
                    Some(object.into())
                }
                _ => None,
            },
            _ => None,
        }
    }

    fn load_table(&mut self, arguments: &Arguments) -> Value {
        let mut frames = Vec::new();
        for text in self.strings(arguments.at(0), &arguments.range) {
            let Some(name) = text.known() else {
                self.unknown("a table is loaded whose name is not known", text.range());
                frames.push(Rc::new(Frame::default()));
                continue;
            };
            let name = name.trim().to_lowercase();
            let catalogued = self.surroundings.settings.tables.contains_key(&name);
            let table = Resource::new(ResourceKind::Table, name.as_str()).with("catalogued", catalogued);
            self.effect(Verb::Read, table, text.range());
            frames.push(Rc::new(Frame { tables: Some(BTreeSet::from([name])), ..Frame::default() }));
        }
        frames.into_iter().map(Atom::Table).collect()
    }

    /// The strings that an argument may be; one with a hole for what is not a string.
    pub(super) fn strings(&self, value: Option<&Value>, range: &Range<usize>) -> Texts {
        let mut texts = Texts::new();
        let atoms = value.map(Value::atoms).unwrap_or_default();
        for atom in atoms {
            let text = match atom {
                // No name of anything, unless it is all there is.
                Atom::Nothing if atoms.len() > 1 => continue,
                Atom::Text(text) | Atom::Location(text) => Rc::clone(text),
                Atom::Integer(number) => Rc::new(Text::literal(number.to_string(), range.clone())),
                Atom::List(id) => {
                    // A list of strings: each of them.
                    let items = self.items_of(*id);
                    let known = items.atoms().iter().all(|atom| matches!(atom, Atom::Text(_)));
                    if known && !items.is_none() {
                        for atom in items.atoms() {
                            if let Atom::Text(text) = atom {
                                texts.push(Rc::clone(text));
                            }
                        }
                        continue;
                    }
                    Rc::new(Text::hole(range.clone()))
                }
                _ => Rc::new(Text::hole(range.clone())),
            };
            texts.push(text);
        }
        if texts.is_empty() {
            texts.push(Rc::new(Text::hole(range.clone())));
        }
        texts
    }

    /// The tables that an argument may be.
    fn frames_of(&mut self, value: Option<&Value>, range: &Range<usize>) -> Vec<Rc<Frame>> {
        let mut frames = Vec::new();
        let mut other = false;
        if let Some(value) = value {
            self.gather_frames(value, &mut frames, &mut other, 0);
        }
        if frames.is_empty() || other {
            self.unknown("it is not known which table is used", range.clone());
        }
        frames
    }

    fn gather_frames(&self, value: &Value, frames: &mut Vec<Rc<Frame>>, other: &mut bool, depth: usize) {
        for atom in value.atoms() {
            match atom {
                Atom::Table(frame) | Atom::Row(frame) => {
                    if !frames.contains(frame) {
                        frames.push(Rc::clone(frame));
                    }
                }
                Atom::List(id) if depth < HANDLES_DEPTH_MAX => {
                    self.gather_frames(&self.items_of(*id), frames, other, depth + 1);
                }
                // Not a table: what is called fails, or was nothing (`None`) from the start.
                Atom::Data | Atom::Nothing | Atom::Text(_) | Atom::Integer(_) => {}
                _ => *other = true,
            }
        }
    }

    // Columns.

    fn is_catalogued(&self, frame: &Frame, column: &str) -> bool {
        let tables = &self.surroundings.settings.tables;
        frame
            .tables
            .iter()
            .flatten()
            .any(|table| tables.get(table).is_some_and(|known| known.columns.contains(column)))
    }

    fn read_in(&mut self, frames: &[Rc<Frame>], column: &Column, range: Range<usize>) {
        for frame in frames {
            match column {
                Column::Named(name) => self.read_column(frame, name, range.clone()),
                Column::Unknown => self.read_some_column(frame, range.clone()),
            }
        }
    }

    /// A column of a table is read.
    pub(super) fn read_column(&mut self, frame: &Frame, column: &str, range: Range<usize>) {
        let lower = lowercase(column.trim());
        let mut column = &*lower;
        let Some(tables) = &frame.tables else {
            self.unknown(format!("the column `{column}` of a table that is not known is read"), range);
            return;
        };
        if let Some((table, name)) = column.split_once('.')
            && tables.contains(table)
        {
            column = name;
        }
        let known = &self.surroundings.settings.tables;
        let has =
            |table: &String, column: &str| known.get(table).is_some_and(|it| it.columns.contains(column));
        let mut catalogued = tables.iter().any(|table| has(table, column));
        if !catalogued && frame.derived.contains(column) {
            return;
        }
        if !catalogued
            && tables.len() > 1
            && let Some(stem) = column.strip_suffix("_x").or_else(|| column.strip_suffix("_y"))
            && tables.iter().any(|table| has(table, stem))
        {
            // Joining tables renames columns that both have.
            column = stem;
            catalogued = true;
        }
        for table in tables {
            // Where none of them is known to have it, any may.
            if !catalogued || has(table, column) {
                self.read_column_of(table, column, catalogued, &range);
            }
        }
    }

    /// One column of one table is read. Programs read the same ones again and again; only the first time counts.
    fn read_column_of(&mut self, table: &str, column: &str, catalogued: bool, range: &Range<usize>) {
        if self.columns_read.get(table).is_some_and(|columns| columns.contains(column)) {
            return;
        }
        self.columns_read.entry(table.to_owned()).or_default().insert(column.to_owned());
        self.effect(Verb::Read, column_resource(table, column, catalogued), range.clone());
    }

    /// A column is read, and it is not known which.
    pub(super) fn read_some_column(&mut self, frame: &Frame, range: Range<usize>) {
        match &frame.tables {
            None => self.unknown("an unknown column of a table that is not known is read", range),
            Some(tables) => {
                for table in tables {
                    self.effect(Verb::Read, column_resource(table, "*", false), range.clone());
                }
            }
        }
    }

    /// All columns that are left in a table are read.
    pub(super) fn read_all(&mut self, frame: &Frame, range: Range<usize>) {
        if let Some(shown) = &frame.shown {
            for column in shown {
                self.read_column(frame, column, range.clone());
            }
            return;
        }
        let Some(tables) = &frame.tables else {
            self.unknown("all columns of a table that is not known are read", range);
            return;
        };
        let settings = self.surroundings.settings;
        for table in tables {
            match settings.tables.get(table) {
                Some(known) => {
                    for column in &known.columns {
                        self.read_column_of(table, column, true, &range);
                    }
                }
                None => self.effect(Verb::Read, column_resource(table, "*", false), range.clone()),
            }
        }
    }

    /// Reads the columns that a value names: a string, or a list of strings.
    pub(super) fn read_named(&mut self, frame: &Frame, value: &Value, range: &Range<usize>) {
        for text in self.strings(Some(value), range) {
            match text.known() {
                Some(name) => self.read_column(frame, name, text.range()),
                None => self.read_some_column(frame, range.clone()),
            }
        }
    }
}

fn column_resource(table: &str, column: &str, catalogued: bool) -> Resource {
    Resource::new(ResourceKind::Column, format!("{table}.{column}"))
        .with("catalogued", catalogued)
        .with("table", table)
}

/// Whether a text begins with something unknown.
pub(super) fn begins_unknown(parts: &[Part]) -> bool {
    matches!(parts.first(), Some(Part::Hole))
}
