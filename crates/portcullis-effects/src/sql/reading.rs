//! Walks the tree of a statement: queries open scopes, names are looked up in them.
//!
//! The parser's own visitor walks, so that no corner of the tree is left out: every expression anywhere is seen.
//! Before it enters a `select`, the scope is made from what is in its `from`.

use std::ops::ControlFlow;
use std::rc::Rc;

use portcullis_core::bundle::{EffectSettings, SqlDialect};
use portcullis_core::effect::Verb;
use sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, LambdaFunctionParameter,
    ObjectName, OneOrManyWithParens, OrderBy, OrderByExpr, OrderByKind, Query, Select, SelectFlavor,
    SelectItem, SelectItemQualifiedWildcardKind, SetExpr, SetOperator, Spanned, Statement, TableFactor,
    Visit, Visitor, WildcardAdditionalOptions,
};
use sqlparser::tokenizer::Span;

use super::names::{self, folded};
use super::output::{How, Output};
use super::scopes::{Cte, Derived, Relation, Scope, Source, names_of};

/// Reads one statement.
pub(super) fn read(statement: &Statement, dialect: SqlDialect, output: &mut Output<'_, '_, '_>) {
    if output.is_full() {
        return;
    }
    let settings = output.surroundings.settings;
    let mut reading = Reading {
        output,
        settings,
        dialect,
        scopes: Vec::new(),
        frames: Vec::new(),
        ctes: Vec::new(),
        walls: Vec::new(),
        passed_over: Vec::new(),
    };
    let _ = statement.visit(&mut reading);
}

/// Identifies a node of the tree while the tree exists.
pub(super) fn address<T>(node: &T) -> usize {
    std::ptr::from_ref(node).addr()
}

/// One query or statement that is being walked: what to go back to after it.
#[derive(Debug)]
struct Frame {
    scopes: usize,
    ctes: usize,
    walls: usize,
    passed_over: usize,
    /// The scope around it.
    outer: Option<usize>,
    /// Several queries put together: what orders them sees their output alone.
    is_operation: bool,
    explained: bool,
}

/// A statement that is being read.
#[derive(Debug)]
pub(super) struct Reading<'r, 'o, 'e, 'c> {
    pub(super) output: &'r mut Output<'o, 'e, 'c>,
    pub(super) settings: &'c EffectSettings,
    pub(super) dialect: SqlDialect,
    pub(super) scopes: Vec<Scope<'c>>,
    frames: Vec<Frame>,
    pub(super) ctes: Vec<Cte<'c>>,
    /// Queries that see another scope than the one around them, by address.
    pub(super) walls: Vec<(usize, Option<usize>)>,
    /// Nodes that are not read in place, by address: targets of statements, names in `order by`.
    pub(super) passed_over: Vec<usize>,
}

impl<'c> Reading<'_, '_, '_, 'c> {
    pub(super) fn flow(&self) -> ControlFlow<()> {
        if self.output.is_full() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    /// The scope that names are looked up in first.
    pub(super) fn innermost(&self) -> Option<usize> {
        match self.frames.last() {
            Some(frame) if self.scopes.len() <= frame.scopes => frame.outer,
            _ => self.scopes.len().checked_sub(1),
        }
    }

    fn enter(&mut self, outer: Option<usize>, is_operation: bool) {
        self.frames.push(Frame {
            scopes: self.scopes.len(),
            ctes: self.ctes.len(),
            walls: self.walls.len(),
            passed_over: self.passed_over.len(),
            outer,
            is_operation,
            explained: self.output.explained,
        });
    }

    fn leave(&mut self) {
        if let Some(frame) = self.frames.pop() {
            self.scopes.truncate(frame.scopes);
            self.ctes.truncate(frame.ctes);
            self.walls.truncate(frame.walls);
            self.passed_over.truncate(frame.passed_over);
            self.output.explained = frame.explained;
        }
    }

    /// Opens a scope within the current query or statement.
    pub(super) fn open(&mut self, relations: Vec<Relation<'c>>) {
        let outer = self.frames.last().and_then(|frame| frame.outer);
        self.scopes.push(Scope { relations, outer, ..Scope::default() });
    }

    fn announce_ctes(&mut self, query: &Query) {
        let Some(with) = &query.with else { return };
        for cte in &with.cte_tables {
            // Without a first part that draws from tables, the name means the query from the start.
            let recursive = with.recursive || self.dialect == SqlDialect::MsSql;
            let first = if recursive { first_part(&cte.query) } else { None };
            let anchor = match first {
                Some(SetExpr::Select(select)) => Some(address(select.as_ref())),
                _ => None,
            };
            let columns = cte.alias.columns.iter().map(|column| folded(&column.name)).collect();
            self.ctes.push(Cte {
                name: folded(&cte.alias.name),
                query: address(cte.query.as_ref()),
                anchor,
                visible: first.is_some() && anchor.is_none(),
                derived: Rc::new(Derived { opaque: true, ..Derived::default() }),
                renamed: columns,
            });
        }
    }

    /// Makes a named query visible to what follows it.
    fn finish_cte(&mut self, query: &Query) {
        let place = address(query);
        let Some(at) = self.ctes.iter().rposition(|cte| cte.query == place) else { return };
        let mut derived = self.outputs(query);
        if let Some(cte) = self.ctes.get_mut(at) {
            derived.columns.extend(cte.renamed.iter().cloned());
            cte.derived = Rc::new(derived);
            cte.visible = true;
        }
    }

    fn enter_select(&mut self, select: &Select) {
        let (mut relations, joined) = self.relations(&select.from);
        self.read_joined(&joined, &relations);
        for view in &select.lateral_views {
            let columns = view.lateral_col_alias.iter().map(folded).collect();
            let name = names::parts(&view.lateral_view_name).unwrap_or_default();
            relations.push(Relation::derived(name, Derived { columns, opaque: true, ..Derived::default() }));
        }
        if let Some(frame) = self.frames.last() {
            self.scopes.truncate(frame.scopes);
        }
        self.open(relations);
        if let Some(scope) = self.scopes.last_mut() {
            let aliased = select.projection.iter().filter(|item| !matches!(item, SelectItem::UnnamedExpr(_)));
            scope.aliases = aliased.flat_map(names_of).collect();
        }
        if !joined.lateral {
            self.wall_off(select);
        }
        self.read_wildcards(&select.projection);
        self.read_modified(&select.projection);
        if select.flavor == SelectFlavor::FromFirstNoSelect {
            // `from t` is `select * from t`.
            self.read_all(&[], None, Span::empty());
        }
        if let Some(into) = &select.into {
            self.select_into(into);
        }
    }

    /// Queries in a `from` do not see the other items of it.
    fn wall_off(&mut self, select: &Select) {
        let outer = self.scopes.last().and_then(|scope| scope.outer);
        for item in &select.from {
            let factors = std::iter::once(&item.relation).chain(item.joins.iter().map(|join| &join.relation));
            for factor in factors {
                if let TableFactor::Derived { subquery, .. } = factor {
                    self.walls.push((address(subquery.as_ref()), outer));
                }
            }
        }
    }

    /// `*` and `t.*` in a projection or `returning`.
    pub(super) fn read_wildcards(&mut self, items: &[SelectItem]) {
        for item in items {
            match item {
                SelectItem::Wildcard(options) => {
                    self.read_all(&[], Some(options), options.wildcard_token.0.span)
                }
                SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), options) => {
                    let wanted = names::parts(name).unwrap_or_default();
                    self.read_all(&wanted, Some(options), name.span());
                }
                _ => {}
            }
        }
    }

    /// All columns of what `wanted` names, of everything in the innermost scope when it is empty.
    pub(super) fn read_all(
        &mut self,
        wanted: &[String],
        options: Option<&WildcardAdditionalOptions>,
        span: Span,
    ) {
        let without: Vec<String> = options.map(excluded).unwrap_or_default();
        let mut next = self.innermost();
        while let Some(scope) = next.and_then(|at| self.scopes.get(at)) {
            let found: Vec<Relation<'c>> = scope
                .relations
                .iter()
                .filter(
                    |relation| if wanted.is_empty() { !relation.hidden } else { relation.is_named(wanted) },
                )
                .cloned()
                .collect();
            next = scope.outer;
            for relation in &found {
                self.read_relation(relation, &without, span);
            }
            if wanted.is_empty() || !found.is_empty() {
                return;
            }
        }
        if !wanted.is_empty() {
            for table in names::tables(self.settings, wanted) {
                self.output.all_columns(Verb::Read, &table, span);
            }
        }
    }

    fn read_relation(&mut self, relation: &Relation<'c>, without: &[String], span: Span) {
        let Source::Base(tables) = &relation.source else { return };
        for table in tables {
            match table.columns {
                Some(columns) => {
                    for column in columns.iter().filter(|column| !without.contains(column)) {
                        self.output.column(Verb::Read, table, column, span);
                    }
                }
                None => self.output.column(Verb::Read, table, "*", span),
            }
        }
    }

    /// Looks a name without qualifier up, from the inside out.
    pub(super) fn read_name(&mut self, ident: &Ident) {
        let name = folded(ident);
        if name.starts_with('@') || (ident.quote_style.is_none() && is_word_of_sql(&name)) {
            return;
        }
        let mut known = false;
        let mut next = self.innermost();
        while let Some(scope) = next.and_then(|at| self.scopes.get(at)) {
            next = scope.outer;
            let mut certain = Vec::new();
            let mut possible = Vec::new();
            let mut whole = Vec::new();
            let mut settled = false;
            known |= scope.aliases.contains(&name);
            for relation in scope.relations.iter().filter(|relation| !relation.hidden) {
                let open = match &relation.source {
                    Source::Base(tables) => tables,
                    Source::Derived(derived) => {
                        settled |= derived.columns.contains(&name);
                        known |= derived.opaque;
                        &derived.open
                    }
                };
                for table in open {
                    match table.columns {
                        Some(columns) if columns.contains(&name) => certain.push(table.clone()),
                        Some(_) => {}
                        None => possible.push(table.clone()),
                    }
                }
                if relation.is_named(std::slice::from_ref(&name)) {
                    whole.push(relation.clone());
                }
            }
            settled |= !certain.is_empty();
            if settled {
                certain.iter().for_each(|table| self.output.column(Verb::Read, table, &name, ident.span));
                return;
            }
            if !whole.is_empty() {
                // The row as a value: `row_to_json(t)`.
                whole.iter().for_each(|relation| self.read_relation(relation, &[], ident.span));
                return;
            }
            known |= !possible.is_empty();
            possible.iter().for_each(|table| self.output.column(Verb::Read, table, &name, ident.span));
        }
        // Some databases take a name in double quotes that is no column for a string.
        if !known && ident.quote_style != Some('"') {
            self.read_unplaced(&name, ident.span);
        }
    }

    /// A name that is nobody's, such as `rowid`: counts for every table of the nearest scope that has one.
    fn read_unplaced(&mut self, name: &str, span: Span) {
        let mut next = self.innermost();
        while let Some(scope) = next.and_then(|at| self.scopes.get(at)) {
            next = scope.outer;
            let visible = scope.relations.iter().filter(|relation| !relation.hidden);
            let tables: Vec<_> = visible.flat_map(|relation| relation.tables()).cloned().collect();
            if !tables.is_empty() {
                tables.iter().for_each(|table| self.output.column(Verb::Read, table, name, span));
                return;
            }
        }
    }

    /// The relation that a qualifier means.
    pub(super) fn relation_named(&self, qualifier: &[String]) -> Option<Relation<'c>> {
        let mut next = self.innermost();
        while let Some(scope) = next.and_then(|at| self.scopes.get(at)) {
            if let Some(found) = scope.relations.iter().find(|relation| relation.is_named(qualifier)) {
                return Some(found.clone());
            }
            next = scope.outer;
        }
        None
    }

    /// Looks up `a.b`, `schema.table.column` or a field of a column.
    fn read_compound(&mut self, idents: &[Ident]) {
        let parts: Vec<String> = idents.iter().map(folded).collect();
        let span = Span::union_iter(idents.iter().map(|ident| ident.span));
        let is_variable = parts.first().is_some_and(|part| part.starts_with('@'));
        if is_variable {
            return;
        }
        for at in (1..parts.len()).rev() {
            let (Some(qualifier), Some(column)) = (parts.get(..at), parts.get(at)) else { continue };
            let Some(relation) = self.relation_named(qualifier) else { continue };
            match &relation.source {
                Source::Base(tables) => {
                    tables.iter().for_each(|table| self.output.column(Verb::Read, table, column, span));
                }
                Source::Derived(derived) if derived.columns.contains(column) => {}
                Source::Derived(derived) => {
                    derived.open.iter().for_each(|table| self.output.column(Verb::Read, table, column, span));
                }
            }
            return;
        }
        if self.read_by_own_name(&parts, span) {
            return;
        }
        if let Some(first) = idents.first() {
            self.read_name(first);
        }
    }

    fn read_function(&mut self, function: &Function) {
        self.function_effects(&function.name, &function.args);
        let counts = names::parts(&function.name)
            .is_some_and(|parts| parts.last().is_some_and(|name| name == "count"));
        let FunctionArguments::List(list) = &function.args else { return };
        for argument in &list.args {
            let (FunctionArg::Unnamed(value)
            | FunctionArg::Named { arg: value, .. }
            | FunctionArg::ExprNamed { arg: value, .. }) = argument;
            match value {
                FunctionArgExpr::QualifiedWildcard(name) => {
                    let wanted = names::parts(name).unwrap_or_default();
                    self.read_all(&wanted, None, name.span());
                }
                // `count(*)` looks at no column; others take the row.
                FunctionArgExpr::Wildcard | FunctionArgExpr::WildcardWithOptions(_) if !counts => {
                    self.read_all(&[], None, function.name.span());
                }
                _ => {}
            }
        }
    }

    fn read_factor(&mut self, factor: &TableFactor) {
        match factor {
            TableFactor::Table { name, alias, args: None, .. } => {
                if self.passed_over.contains(&address(factor)) || self.cte(name).is_some() {
                    return;
                }
                if self.read_file_as_table(name) {
                    return;
                }
                for table in self.tables_meant(name, alias.as_ref().map(|alias| &alias.name)) {
                    if !table.name.starts_with('@') {
                        self.output.table(Verb::Read, &table, How::default(), name.span());
                    }
                }
            }
            TableFactor::Table { name, args: Some(arguments), .. } => {
                self.table_function(name, &arguments.args);
            }
            TableFactor::Function { name, args, .. } => self.table_function(name, args),
            TableFactor::TableFunction { expr, .. } => self.table_of(expr),
            TableFactor::SemanticView { name, .. } => self.read_whole(name),
            _ => {}
        }
    }

    fn read_table_queries(&mut self, query: &Query) {
        let mut parts = vec![query.body.as_ref()];
        while let Some(part) = parts.pop() {
            match part {
                SetExpr::SetOperation { left, right, .. } => parts.extend([right.as_ref(), left.as_ref()]),
                SetExpr::Table(table) => {
                    for table in self.tables_of_statement(table) {
                        self.output.table(Verb::Read, &table, How::default(), Span::empty());
                        self.output.all_columns(Verb::Read, &table, Span::empty());
                    }
                }
                _ => {}
            }
        }
    }

    /// Notes a column of `match (a, b) against (…)`.
    fn read_object(&mut self, name: &ObjectName) {
        let idents: Vec<Ident> = name.0.iter().filter_map(|part| part.as_ident()).cloned().collect();
        match idents.as_slice() {
            [ident] => self.read_name(ident),
            idents => self.read_compound(idents),
        }
    }

    /// Names at the top of an `order by` mean what the projection calls so.
    fn pass_over_alias(&mut self, order: &OrderByExpr) {
        let Expr::Identifier(ident) = &order.expr else { return };
        let name = folded(ident);
        let is_operation = self.frames.last().is_some_and(|frame| frame.is_operation);
        let innermost = self.innermost().and_then(|at| self.scopes.get(at));
        if is_operation || innermost.is_some_and(|scope| scope.aliases.contains(&name)) {
            self.passed_over.push(address(&order.expr));
        }
    }
}

impl Visitor for Reading<'_, '_, '_, '_> {
    type Break = ();

    fn pre_visit_statement(&mut self, statement: &Statement) -> ControlFlow<()> {
        self.enter(self.innermost(), false);
        self.read_statement(statement);
        self.flow()
    }

    fn post_visit_statement(&mut self, _: &Statement) -> ControlFlow<()> {
        self.leave();
        self.flow()
    }

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        let place = address(query);
        let wall = self.walls.iter().rev().find(|(walled, _)| *walled == place);
        let outer = wall.map_or_else(|| self.innermost(), |(_, outer)| *outer);
        let is_operation = matches!(query.body.as_ref(), SetExpr::SetOperation { .. });
        self.enter(outer, is_operation);
        self.announce_ctes(query);
        self.read_table_queries(query);
        self.flow()
    }

    fn post_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        self.leave();
        self.finish_cte(query);
        self.flow()
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<()> {
        self.enter_select(select);
        self.flow()
    }

    fn post_visit_select(&mut self, select: &Select) -> ControlFlow<()> {
        let place = address(select);
        for cte in self.ctes.iter_mut().filter(|cte| cte.anchor == Some(place)) {
            cte.visible = true;
        }
        match self.frames.last() {
            Some(frame) if frame.is_operation => self.scopes.truncate(frame.scopes),
            _ => {}
        }
        self.flow()
    }

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<()> {
        self.read_factor(factor);
        self.flow()
    }

    fn pre_visit_order_by(&mut self, order: &OrderBy) -> ControlFlow<()> {
        if let OrderByKind::Expressions(expressions) = &order.kind {
            expressions.iter().for_each(|expression| self.pass_over_alias(expression));
        }
        self.flow()
    }

    fn pre_visit_expr(&mut self, expression: &Expr) -> ControlFlow<()> {
        match expression {
            Expr::Identifier(_) | Expr::CompoundIdentifier(_)
                if self.passed_over.contains(&address(expression)) => {}
            Expr::Identifier(ident) => self.read_name(ident),
            Expr::CompoundIdentifier(idents) => self.read_compound(idents),
            Expr::Function(function) => self.read_function(function),
            Expr::Value(value) if self.is_position(&value.value) => self.read_all(&[], None, value.span),
            Expr::QualifiedWildcard(name, _) => {
                let wanted = names::parts(name).unwrap_or_default();
                self.read_all(&wanted, None, name.span());
            }
            Expr::MatchAgainst { columns, .. } => columns.iter().for_each(|column| self.read_object(column)),
            Expr::Lambda(lambda) => {
                let name = |parameter: &LambdaFunctionParameter| folded(&parameter.name);
                let columns = match &lambda.params {
                    OneOrManyWithParens::One(one) => std::iter::once(name(one)).collect(),
                    OneOrManyWithParens::Many(many) => many.iter().map(name).collect(),
                };
                self.enter(self.innermost(), false);
                self.open(vec![Relation::derived(Vec::new(), Derived { columns, ..Derived::default() })]);
            }
            _ => {}
        }
        self.flow()
    }

    fn post_visit_expr(&mut self, expression: &Expr) -> ControlFlow<()> {
        if matches!(expression, Expr::Lambda(_)) {
            self.leave();
        }
        self.flow()
    }
}

/// The first part of a recursive query, where the query has the form of one.
fn first_part(query: &Query) -> Option<&SetExpr> {
    let SetExpr::SetOperation { op: SetOperator::Union, left, .. } = query.body.as_ref() else { return None };
    let mut part = left.as_ref();
    loop {
        match part {
            SetExpr::SetOperation { left, .. } => part = left,
            SetExpr::Query(query) => part = query.body.as_ref(),
            other => return Some(other),
        }
    }
}

/// The columns that a wildcard leaves out.
fn excluded(options: &WildcardAdditionalOptions) -> Vec<String> {
    use sqlparser::ast::ExcludeSelectItem;
    let mut without = Vec::new();
    let last = |name: &ObjectName| name.0.last().and_then(|part| part.as_ident()).map(folded);
    match &options.opt_exclude {
        Some(ExcludeSelectItem::Single(column)) => without.extend(last(column)),
        Some(ExcludeSelectItem::Multiple(columns)) => without.extend(columns.iter().filter_map(last)),
        None => {}
    }
    if let Some(except) = &options.opt_except {
        without.push(folded(&except.first_element));
        without.extend(except.additional_elements.iter().map(folded));
    }
    without
}

/// Words that stand where a column could and are none.
fn is_word_of_sql(name: &str) -> bool {
    matches!(
        name,
        "default"
            | "array"
            | "current_date"
            | "current_time"
            | "current_timestamp"
            | "current_user"
            | "session_user"
            | "system_user"
            | "localtime"
            | "localtimestamp"
            | "sysdate"
            | "systimestamp"
            | "rownum"
    )
}
