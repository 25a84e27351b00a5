//! Tables, rows and columns as `pandas` has them.
//!
//! What keeps rows and columns apart is all that matters: which columns a method looks at, and whether what comes
//! out still is a table. A name that is not a method is a column.

mod names;

use std::collections::BTreeSet;
use std::ops::Range;
use std::rc::Rc;

use portcullis_core::effect::Verb;
use ruff_python_ast::Expr;

use super::interpreter::{Arguments, Interpreter};
use super::value::{Atom, Frame, Object, Value};
use names::{
    BY_COLUMN, FILE_NAMES, LOCATORS, MASKS, OPTIONS, OTHERS, PER_ROW, ROW_METHODS, SAME, SAVERS,
    SERIES_PROPERTIES, SHAPE, WHOLE_DATA, WHOLE_TABLE, WRITERS,
};

impl<'a> Interpreter<'a, '_> {
    /// `frame.name`
    pub(super) fn frame_attribute(&mut self, frame: &Rc<Frame>, name: &str, range: Range<usize>) -> Value {
        let handle: Value = Atom::Table(Rc::clone(frame)).into();
        if SHAPE.contains(&name) {
            // A method of grouped tables in part: `groupby('a').size()`.
            return Atom::Method(Rc::new((Value::data(), name.into()))).into();
        }
        if name == "T" {
            return handle;
        }
        if name == "values" {
            self.read_all(frame, range);
            return Value::data();
        }
        let groups = [SAME, BY_COLUMN, WHOLE_TABLE, WHOLE_DATA, WRITERS, OTHERS, LOCATORS];
        if groups.iter().any(|group| group.contains(&name)) {
            return Atom::Method(Rc::new((handle, name.into()))).into();
        }
        self.read_column(frame, name, range);
        Atom::Series.into()
    }

    /// `row.name`
    pub(super) fn row_attribute(&mut self, frame: &Rc<Frame>, name: &str, range: Range<usize>) -> Value {
        let row: Value = Atom::Row(Rc::clone(frame)).into();
        match name {
            "index" | "name" | "size" | "shape" | "empty" | "dtype" | "Index" | "_fields" => Value::data(),
            "iloc" | "iat" | "loc" | "at" => row,
            _ if ROW_METHODS.contains(&name) => Atom::Method(Rc::new((row, name.into()))).into(),
            _ => {
                self.read_column(frame, name, range);
                Value::data()
            }
        }
    }

    /// `column.name`
    pub(super) fn series_attribute(name: &str) -> Value {
        if SERIES_PROPERTIES.contains(&name) {
            return Atom::Series.into();
        }
        Atom::Method(Rc::new((Atom::Series.into(), name.into()))).into()
    }

    /// `frame[index]`
    pub(super) fn frame_subscript(
        &mut self,
        frame: &Rc<Frame>,
        index: &Value,
        expression: &Expr,
        range: Range<usize>,
    ) -> Value {
        let handle: Value = Atom::Table(Rc::clone(frame)).into();
        if matches!(expression, Expr::Slice(_)) {
            return handle;
        }
        let mut all = Value::none();
        for atom in index.atoms() {
            let value = match atom {
                Atom::Mask => handle.clone(),
                Atom::Integer(_) => Atom::Row(Rc::clone(frame)).into(),
                Atom::Text(text) => {
                    match text.known() {
                        Some(column) => self.read_column(frame, column, text.range()),
                        None => self.read_some_column(frame, range.clone()),
                    }
                    Atom::Series.into()
                }
                Atom::List(id) => self.project(frame, *id, &range),
                _ => {
                    self.read_some_column(frame, range.clone());
                    handle.or(&Atom::Series.into())
                }
            };
            all = all.or(&value);
        }
        all
    }

    /// `frame[['a', 'b']]`: what is left are these columns.
    fn project(&mut self, frame: &Rc<Frame>, id: super::value::HeapId, range: &Range<usize>) -> Value {
        let items = self.items_of(id);
        if !items.is_none() && items.atoms().iter().all(|atom| *atom == Atom::Mask) {
            return Atom::Table(Rc::clone(frame)).into();
        }
        self.read_named(frame, &Atom::List(id).into(), range);
        let columns: Option<BTreeSet<String>> = items
            .atoms()
            .iter()
            .map(|atom| match atom {
                Atom::Text(text) => text.known().map(|name| name.trim().to_lowercase()),
                _ => None,
            })
            .collect();
        let shown = columns.or_else(|| frame.shown.clone());
        Atom::Table(Rc::new(Frame { shown, ..(**frame).clone() })).into()
    }

    /// `row[index]`
    pub(super) fn row_subscript(&mut self, frame: &Rc<Frame>, index: &Value, range: Range<usize>) -> Value {
        for atom in index.atoms() {
            match atom {
                Atom::Text(text) => match text.known() {
                    Some(column) => self.read_column(frame, column, text.range()),
                    None => self.read_some_column(frame, range.clone()),
                },
                Atom::List(id) => self.read_named(frame, &Atom::List(*id).into(), &range),
                _ => self.read_some_column(frame, range.clone()),
            }
        }
        Value::data()
    }

    /// `frame.loc[index]` and its like.
    pub(super) fn locate(
        &mut self,
        frame: &Rc<Frame>,
        locator: &str,
        index: &Value,
        expression: &'a Expr,
        range: Range<usize>,
    ) -> Value {
        let by_position = locator.starts_with('i');
        let handle: Value = Atom::Table(Rc::clone(frame)).into();
        let rows_are = |rows: &Expr, value: &Value| -> Value {
            let mask = value.atoms().iter().all(|atom| matches!(atom, Atom::Mask | Atom::List(_)));
            if matches!(rows, Expr::Slice(_)) || mask {
                return handle.clone();
            }
            handle.or(&Atom::Row(Rc::clone(frame)).into())
        };
        let Expr::Tuple(tuple) = expression else {
            if index.single().is_some_and(|atom| matches!(atom, Atom::Integer(_))) {
                return Atom::Row(Rc::clone(frame)).into();
            }
            return rows_are(expression, index);
        };
        let items = self.exact_items(index).unwrap_or_default();
        let (Some(rows), Some(columns)) = (tuple.elts.first(), tuple.elts.get(1)) else { return handle };
        let (row, column) = (items.first().cloned(), items.get(1).cloned().unwrap_or_else(Value::unknown));
        if let (Expr::Slice(slice), false) = (columns, by_position)
            && slice.lower.is_none()
            && slice.upper.is_none()
        {
            return row.map_or_else(|| handle.clone(), |row| rows_are(rows, &row));
        }
        if by_position || matches!(columns, Expr::Slice(_)) {
            self.read_some_column(frame, range);
            return handle.or(&Atom::Series.into()).or(&Value::data());
        }
        self.frame_subscript(frame, &column, columns, range)
    }

    /// Calls a method of a table.
    pub(super) fn frame_method(&mut self, frame: &Rc<Frame>, name: &str, arguments: &Arguments) -> Value {
        let handle: Value = Atom::Table(Rc::clone(frame)).into();
        let row: Value = Atom::Row(Rc::clone(frame)).into();
        let range = arguments.range.clone();
        if matches!(name, "eval" | "query") {
            self.evaluated(arguments);
        }
        if BY_COLUMN.contains(&name) {
            self.read_arguments(frame, arguments);
            self.run_callbacks(arguments);
            return match name {
                "value_counts" | "unique" | "nunique" => Value::data(),
                "get" | "pop" => Atom::Series.into(),
                "duplicated" => Atom::Mask.into(),
                _ => handle,
            };
        }
        if SAME.contains(&name) {
            self.run_callbacks(arguments);
            return if matches!(name, "isna" | "isnull" | "notna" | "notnull") {
                Atom::Mask.into()
            } else {
                handle
            };
        }
        if WHOLE_TABLE.contains(&name) {
            self.read_all(frame, range);
            self.run_callbacks(arguments);
            return handle;
        }
        if WHOLE_DATA.contains(&name) {
            self.read_all(frame, range);
            return Value::data();
        }
        if WRITERS.contains(&name) {
            self.read_all(frame, range);
            self.write_table(name, arguments);
            return Value::data();
        }
        match name {
            "iterrows" => {
                let pair = Object::List { items: vec![Value::data(), row], exact: true, rest: Value::none() };
                let pair = self.allocate((range.start, 30), pair);
                self.list(Atom::List(pair).into(), (range.start, 31))
            }
            "itertuples" => self.list(row, (range.start, 32)),
            "to_dict" | "to_records" => {
                let records = self.list(row.clone(), (range.start, 33));
                if arguments.get(0, "orient").is_some_and(|orient| orient.known_text() == Some("records")) {
                    records
                } else {
                    records.or(&row)
                }
            }
            "query" => {
                self.query(frame, arguments);
                handle
            }
            "merge" | "join" | "append" | "concat" => self.tables_joined(&handle, arguments),
            "assign" | "rename" | "insert" => self.with_derived(frame, arguments),
            "apply" | "agg" | "aggregate" | "transform" | "pipe" | "map" => {
                self.applied(frame, name, arguments)
            }
            _ => handle,
        }
    }

    /// A table is written to the file that the first argument names, or to a database.
    fn write_table(&mut self, name: &str, arguments: &Arguments) {
        let range = arguments.range.clone();
        if name == "to_sql" || name == "to_gbq" {
            self.unknown("a table is written to a database", range);
        } else if let Some(path) =
            arguments.positional.first().or_else(|| arguments.named.first().map(|it| &it.1))
        {
            self.path_effect(Verb::Write, &path.clone(), &range, &[]);
        }
    }

    /// A table together with those among the arguments.
    fn tables_joined(&mut self, handle: &Value, arguments: &Arguments) -> Value {
        let combined = self.combined(std::iter::once(handle).chain(arguments.all()));
        for atom in combined.atoms() {
            if let Atom::Table(frame) = atom {
                self.read_joined(&Rc::clone(frame), arguments);
            }
        }
        combined
    }

    pub(super) fn list(&mut self, element: Value, site: (usize, u16)) -> Value {
        let id = self.allocate(site, Object::List { items: Vec::new(), exact: false, rest: element });
        Atom::List(id).into()
    }

    /// Reads the columns that arguments name, options left out.
    fn read_arguments(&mut self, frame: &Frame, arguments: &Arguments) {
        let range = arguments.range.clone();
        let named = arguments.named.iter().filter(|(name, _)| !OPTIONS.contains(&name.as_str()));
        for value in arguments.positional.iter().chain(named.map(|(_, value)| value)).chain(&arguments.rest) {
            let names = |atom: &Atom| matches!(atom, Atom::Text(_) | Atom::List(_) | Atom::Unknown);
            if value.any(names) && !self.items_are_masks(value) {
                self.read_named(frame, value, &range);
            } else if value.any(|atom| *atom == Atom::Data) && arguments.positional.first() == Some(value) {
                // `groupby(name)` where the name is data; numbers of rows are literals as a rule.
                self.read_some_column(frame, range.clone());
            }
        }
    }

    fn items_are_masks(&self, value: &Value) -> bool {
        match value.single() {
            Some(Atom::List(id)) => {
                let items = self.items_of(*id);
                items.is_none()
                    || items.atoms().iter().all(|atom| matches!(atom, Atom::Mask | Atom::Series | Atom::Data))
            }
            _ => false,
        }
    }

    fn read_joined(&mut self, frame: &Frame, arguments: &Arguments) {
        for name in ["on", "left_on", "right_on"] {
            if let Some(value) = arguments.named(name).cloned() {
                self.read_named(frame, &value, &arguments.range);
            }
        }
    }

    /// One table made of several.
    pub(super) fn combined<'v>(&self, values: impl Iterator<Item = &'v Value>) -> Value {
        let mut frame =
            Frame { tables: Some(BTreeSet::new()), shown: Some(BTreeSet::new()), derived: BTreeSet::new() };
        let mut open: Vec<Value> = values.cloned().collect();
        let mut left = 64;
        while let Some(value) = open.pop() {
            left -= 1;
            if left == 0 {
                return Value::unknown();
            }
            for atom in value.atoms() {
                match atom {
                    Atom::Table(part) | Atom::Row(part) => {
                        match (&mut frame.tables, &part.tables) {
                            (Some(tables), Some(more)) => tables.extend(more.iter().cloned()),
                            (tables, _) => *tables = None,
                        }
                        match (&mut frame.shown, &part.shown) {
                            (Some(shown), Some(more)) => shown.extend(more.iter().cloned()),
                            (shown, _) => *shown = None,
                        }
                        frame.derived.extend(part.derived.iter().cloned());
                    }
                    Atom::List(id) | Atom::Dict(id) => open.push(self.items_of(*id)),
                    _ => {}
                }
            }
        }
        if frame.tables.as_ref().is_some_and(BTreeSet::is_empty) {
            return Value::data();
        }
        Atom::Table(Rc::new(frame)).into()
    }

    /// `assign(new=…)`, `rename(columns={'old': 'new'})`: the new names are the code's own.
    fn with_derived(&mut self, frame: &Rc<Frame>, arguments: &Arguments) -> Value {
        let mut new = (**frame).clone();
        self.run_callbacks_with(arguments, &Atom::Table(Rc::clone(frame)).into());
        for (name, value) in &arguments.named {
            if name == "columns" {
                if let Some(Atom::Dict(id)) = value.single() {
                    for atom in self.items_of(*id).atoms() {
                        if let Atom::Text(text) = atom
                            && let Some(name) = text.known()
                        {
                            new.derived.insert(name.trim().to_lowercase());
                        }
                    }
                    // What was renamed may be anything that is left.
                    if let Some(Object::Dict { entries, .. }) = self.object(*id) {
                        let old: Vec<String> = entries.keys().cloned().collect();
                        old.iter().for_each(|name| self.read_column(frame, name, arguments.range.clone()));
                    }
                }
            } else {
                new.derived.insert(name.to_lowercase());
            }
        }
        if let Some(shown) = &mut new.shown {
            shown.extend(new.derived.iter().cloned());
        }
        Atom::Table(Rc::new(new)).into()
    }

    fn applied(&mut self, frame: &Rc<Frame>, name: &str, arguments: &Arguments) -> Value {
        let handle: Value = Atom::Table(Rc::clone(frame)).into();
        let range = arguments.range.clone();
        let mut new = (**frame).clone();
        let mut named = false;
        for (column, value) in &arguments.named {
            // `agg(total=('cost', 'sum'))`
            if let Some(items) = self.exact_items(value)
                && let Some(source) = items.first()
            {
                named = true;
                self.read_named(frame, source, &range);
                new.derived.insert(column.to_lowercase());
            }
        }
        match arguments.positional.first().and_then(Value::single) {
            Some(Atom::Dict(id)) => {
                let keys: Vec<String> = match self.object(*id) {
                    Some(Object::Dict { entries, rest }) if rest.is_none() => {
                        entries.keys().cloned().collect()
                    }
                    _ => {
                        self.read_some_column(frame, range);
                        return handle;
                    }
                };
                for key in keys {
                    self.read_column(frame, &key, range.clone());
                }
            }
            Some(Atom::Function(_) | Atom::Partial(_)) => {
                let given: Value = if name == "pipe" {
                    handle.clone()
                } else {
                    handle.or(&Atom::Row(Rc::clone(frame)).into())
                };
                let result = self.run_callbacks_with(arguments, &given);
                return if result.is_tabular() { result } else { Atom::Series.into() };
            }
            _ if named => {}
            _ => {
                self.read_all(frame, range);
                self.run_callbacks(arguments);
            }
        }
        Atom::Table(Rc::new(new)).into()
    }

    /// Text that `pandas` evaluates: behind `@` it reaches the variables of the code, and calls them.
    fn evaluated(&mut self, arguments: &Arguments) {
        for text in self.strings(arguments.positional.first(), &arguments.range) {
            let known = text.known().unwrap_or("@(");
            if known.contains("__") || (known.contains('@') && known.contains('(')) {
                self.unknown("an expression in a text calls what it is not known to mean", text.range());
            }
        }
    }

    /// `frame.query('age > 3 and sex == @x')`: the names in the expression are columns.
    fn query(&mut self, frame: &Frame, arguments: &Arguments) {
        for text in self.strings(arguments.positional.first(), &arguments.range) {
            let Some(expression) = text.known() else {
                self.read_some_column(frame, text.range());
                continue;
            };
            // `@name` means a variable of the code.
            let plain = expression.replace(['`', '@'], " ");
            let variables: BTreeSet<&str> = expression
                .split('@')
                .skip(1)
                .filter_map(|rest| rest.split(|c: char| !c.is_alphanumeric() && c != '_').next())
                .collect();
            let names = super::names_in(&plain);
            let Some(names) = names else {
                self.read_some_column(frame, text.range());
                continue;
            };
            for name in names.iter().filter(|name| !variables.contains(name.as_str())) {
                self.read_column(frame, name, text.range());
            }
        }
    }

    /// Calls a method of a row.
    pub(super) fn row_method(&mut self, frame: &Rc<Frame>, name: &str, arguments: &Arguments) -> Value {
        let range = arguments.range.clone();
        let row: Value = Atom::Row(Rc::clone(frame)).into();
        match name {
            "get" | "pop" | "setdefault" => {
                let index = arguments.positional.first().cloned().unwrap_or_else(Value::unknown);
                self.row_subscript(frame, &index, range)
            }
            "keys" => Value::data(),
            "items" | "iteritems" => {
                self.read_all(frame, range.clone());
                let pair = Object::List {
                    items: vec![Value::data(), Value::data()],
                    exact: true,
                    rest: Value::none(),
                };
                let pair = self.allocate((range.start, 34), pair);
                self.list(Atom::List(pair).into(), (range.start, 35))
            }
            "to_dict" | "copy" | "_asdict" | "dropna" | "fillna" | "astype" | "to_frame" | "update" => row,
            "isna" | "isnull" | "notna" => Value::data(),
            _ => {
                self.read_all(frame, range);
                Value::data()
            }
        }
    }

    /// Calls a method of data: it may be a table, a figure or a sheet that is written to a file.
    pub(super) fn data_method(&mut self, name: &str, arguments: &Arguments) -> Value {
        let range = arguments.range.clone();
        let first = arguments.positional.first().cloned();
        match name {
            "eval" | "query" => self.evaluated(arguments),
            // An event loop, a connection that came by other hands.
            "subprocess_shell" | "subprocess_exec" | "create_connection" | "create_server"
            | "exec_command" => {
                self.unknown(format!("what `{name}` starts is not known"), range.clone());
            }
            "execute" | "executemany" | "executescript" => {
                let texts = first.as_ref().map(|text| self.strings(Some(text), &range));
                for text in texts.into_iter().flatten() {
                    super::sql::run(&text, self.surroundings, self.sink);
                }
            }
            "shuffle" => first.iter().for_each(|list| self.disorder(list)),
            _ => {}
        }
        if matches!(name, "to_sql" | "to_gbq") {
            self.unknown("a table is written to a database", range);
        } else if WRITERS.contains(&name) || SAVERS.contains(&name) {
            let named = || arguments.named.iter().find(|(name, _)| FILE_NAMES.contains(&name.as_str()));
            let path = arguments.positional.first().or_else(|| named().map(|(_, path)| path)).cloned();
            if let Some(path) = path.filter(|path| *path != Value::nothing()) {
                self.path_effect(Verb::Write, &path, &range, &[]);
            }
        }
        self.hand_over(arguments);
        Value::data()
    }

    /// Calls a method of a column.
    pub(super) fn series_method(&mut self, name: &str, arguments: &Arguments) -> Value {
        let result = self.run_callbacks_with(arguments, &Value::data());
        if result.is_tabular() {
            self.escape(&result, arguments.range.clone());
        }
        if MASKS.contains(&name) {
            Atom::Mask.into()
        } else if PER_ROW.contains(&name) {
            Atom::Series.into()
        } else {
            if WRITERS.contains(&name)
                && let Some(path) = arguments.positional.first().cloned()
            {
                self.path_effect(Verb::Write, &path, &arguments.range, &[]);
            }
            Value::data()
        }
    }
}
