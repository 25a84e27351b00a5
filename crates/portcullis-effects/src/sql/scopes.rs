//! Which table a column belongs to: what a query draws from, under which names.

use std::collections::BTreeSet;
use std::rc::Rc;

use portcullis_core::effect::Verb;
use sqlparser::ast::{
    Expr, Ident, JoinConstraint, JoinOperator, ObjectName, Query, Select, SelectFlavor, SelectItem,
    SelectItemQualifiedWildcardKind, SetExpr, Spanned, Statement, TableAlias, TableFactor, TableWithJoins,
};
use sqlparser::tokenizer::Span;

use super::names::{self, TableName, folded};
use super::reading::{Reading, address};

/// Most tables in one `from`; beyond, the query is unknown.
pub(super) const RELATIONS_MAX: usize = 256;

/// What a query gives: names of its columns. What they are made of was noted where the query itself was read.
#[derive(Debug, Clone, Default)]
pub(super) struct Derived<'c> {
    pub(super) columns: BTreeSet<String>,
    /// Tables whose columns all pass through, which are not catalogued: any name may be one of theirs.
    pub(super) open: Vec<TableName<'c>>,
    /// The tables that it draws from directly.
    pub(super) bases: Vec<TableName<'c>>,
    /// The names of the columns are not all known: table functions, pivots.
    pub(super) opaque: bool,
}

/// Where rows come from.
#[derive(Debug, Clone)]
pub(super) enum Source<'c> {
    /// A table; several, where the name may stand for each of them.
    Base(Vec<TableName<'c>>),
    /// A query or function.
    Derived(Rc<Derived<'c>>),
}

/// One item of a `from`.
#[derive(Debug, Clone)]
pub(super) struct Relation<'c> {
    /// What columns are qualified with: the alias, or the name as it is written.
    pub(super) qualifier: Vec<String>,
    pub(super) source: Source<'c>,
    /// Found only when it is named: `excluded`, `old`.
    pub(super) hidden: bool,
}

impl<'c> Relation<'c> {
    pub(super) fn base(qualifier: Vec<String>, tables: Vec<TableName<'c>>) -> Self {
        Self { qualifier, source: Source::Base(tables), hidden: false }
    }

    pub(super) fn derived(qualifier: Vec<String>, derived: Derived<'c>) -> Self {
        Self { qualifier, source: Source::Derived(Rc::new(derived)), hidden: false }
    }

    /// Whether `qualifier` means this: `users` and `public.users` do for `public.users`.
    pub(super) fn is_named(&self, qualifier: &[String]) -> bool {
        !qualifier.is_empty()
            && (self.qualifier.ends_with(qualifier)
                || matches!((qualifier, self.qualifier.as_slice()), ([.., asked], [own]) if asked == own))
    }

    pub(super) fn tables(&self) -> &[TableName<'c>] {
        match &self.source {
            Source::Base(tables) => tables,
            Source::Derived(derived) => &derived.bases,
        }
    }
}

/// What names mean in one query.
#[derive(Debug, Default)]
pub(super) struct Scope<'c> {
    pub(super) relations: Vec<Relation<'c>>,
    /// Names that the query gives to its columns.
    pub(super) aliases: BTreeSet<String>,
    /// The scope to look in next.
    pub(super) outer: Option<usize>,
}

/// A query with a name.
#[derive(Debug)]
pub(super) struct Cte<'c> {
    pub(super) name: String,
    /// Address of its query, which tells it apart while the tree is walked.
    pub(super) query: usize,
    /// Address of the first part of a recursive query, after which its own name means itself.
    pub(super) anchor: Option<usize>,
    pub(super) visible: bool,
    pub(super) derived: Rc<Derived<'c>>,
    /// Names given to its columns.
    pub(super) renamed: Vec<String>,
}

/// The columns that a `from` joins on by name.
#[derive(Debug, Default)]
pub(super) struct Joined {
    using: Vec<(String, Span)>,
    natural: Option<Span>,
    /// A later item sees the earlier ones: `lateral`, `cross apply`.
    pub(super) lateral: bool,
}

impl<'c> Reading<'_, '_, '_, 'c> {
    /// The tables that a name means; empty if it is computed.
    pub(super) fn tables_named(&mut self, name: &ObjectName) -> Vec<TableName<'c>> {
        match names::parts(name) {
            Some(parts) => names::tables(self.settings, &parts),
            None => {
                let range = self.output.range(name.span());
                self.output.unknown("sql", "the name of a table is computed", range);
                Vec::new()
            }
        }
    }

    /// The query with that name, where one is visible.
    pub(super) fn cte(&self, name: &ObjectName) -> Option<Rc<Derived<'c>>> {
        let [part] = name.0.as_slice() else { return None };
        let name = folded(part.as_ident()?);
        let cte = self.ctes.iter().rev().find(|cte| cte.visible && cte.name == name)?;
        Some(Rc::clone(&cte.derived))
    }

    /// What a `from` draws from.
    pub(super) fn relations(&mut self, from: &[TableWithJoins]) -> (Vec<Relation<'c>>, Joined) {
        let mut relations = Vec::new();
        let mut joined = Joined::default();
        for item in from {
            self.add_joined(item, &mut relations, &mut joined);
        }
        (relations, joined)
    }

    fn add_joined(&mut self, item: &TableWithJoins, relations: &mut Vec<Relation<'c>>, joined: &mut Joined) {
        self.add_factor(&item.relation, relations, joined);
        for join in &item.joins {
            self.add_factor(&join.relation, relations, joined);
            joined.lateral |=
                matches!(join.join_operator, JoinOperator::CrossApply | JoinOperator::OuterApply);
            match constraint(&join.join_operator) {
                Some(JoinConstraint::Using(columns)) => {
                    for column in columns {
                        let last = column.0.last().and_then(|part| part.as_ident());
                        joined.using.extend(last.map(|ident| (folded(ident), ident.span)));
                    }
                }
                Some(JoinConstraint::Natural) => joined.natural = Some(join.relation.span()),
                _ => {}
            }
        }
    }

    fn add_factor(&mut self, factor: &TableFactor, relations: &mut Vec<Relation<'c>>, joined: &mut Joined) {
        if relations.len() >= RELATIONS_MAX {
            let range = self.output.range(factor.span());
            self.output.unknown("sql", format!("more than {RELATIONS_MAX} tables in one query"), range);
            return;
        }
        match factor {
            TableFactor::Table { name, alias, args: None, .. } => {
                let relation = self.relation_of(name, alias.as_ref());
                relations.push(relation);
            }
            TableFactor::Derived { subquery, alias, lateral, .. } => {
                joined.lateral |= *lateral;
                let derived = self.outputs(subquery);
                relations.push(Relation::derived(
                    qualifier(alias.as_ref(), &[]),
                    renamed(derived, alias.as_ref()),
                ));
            }
            TableFactor::NestedJoin { table_with_joins, alias } => {
                let first = relations.len();
                self.add_joined(table_with_joins, relations, joined);
                if let Some(alias) = alias {
                    let inner = relations.get(first..).unwrap_or_default().to_vec();
                    let mut derived = Derived { opaque: true, ..Derived::default() };
                    inner.iter().for_each(|relation| add_all(relation, &mut derived));
                    relations.push(Relation::derived(vec![folded(&alias.name)], derived));
                }
            }
            TableFactor::Pivot { table, alias, .. }
            | TableFactor::Unpivot { table, alias, .. }
            | TableFactor::MatchRecognize { table, alias, .. } => {
                self.add_factor(table, relations, joined);
                relations.push(opaque(alias.as_ref(), &[]));
            }
            TableFactor::Table { name, alias, .. } | TableFactor::Function { name, alias, .. } => {
                relations.push(opaque(alias.as_ref(), &names::parts(name).unwrap_or_default()));
            }
            TableFactor::TableFunction { alias, .. }
            | TableFactor::UNNEST { alias, .. }
            | TableFactor::JsonTable { alias, .. }
            | TableFactor::OpenJsonTable { alias, .. }
            | TableFactor::XmlTable { alias, .. }
            | TableFactor::SemanticView { alias, .. } => relations.push(opaque(alias.as_ref(), &[])),
            TableFactor::UnpivotExpr { .. } => relations.push(opaque(None, &[])),
        }
    }

    /// A table or named query under its alias.
    pub(super) fn relation_of(&mut self, name: &ObjectName, alias: Option<&TableAlias>) -> Relation<'c> {
        let written = names::parts(name).unwrap_or_default();
        let qualifier = qualifier(alias, &written);
        if let Some(derived) = self.cte(name) {
            return Relation { qualifier, source: Source::Derived(derived), hidden: false };
        }
        if let [part] = name.0.as_slice()
            && part.as_ident().is_some_and(|ident| ident.quote_style == Some('\''))
        {
            // A file: its columns are no table's.
            return opaque(alias, &written);
        }
        let tables = self.tables_meant(name, alias.map(|alias| &alias.name));
        match alias {
            // The columns go by other names from here on: any of them may be meant.
            Some(alias) if !alias.columns.is_empty() => {
                for table in &tables {
                    self.output.all_columns(Verb::Read, table, alias.name.span);
                }
                let derived = Derived { bases: tables, opaque: true, ..Derived::default() };
                Relation::derived(qualifier, renamed(derived, Some(alias)))
            }
            _ => Relation::base(qualifier, tables),
        }
    }

    /// Notes the columns that tables are joined on by name.
    pub(super) fn read_joined(&mut self, joined: &Joined, relations: &[Relation<'c>]) {
        for (column, span) in &joined.using {
            for relation in relations {
                self.read_if_has(relation, column, *span);
            }
        }
        let Some(span) = joined.natural else { return };
        let tables: Vec<&TableName<'c>> = relations.iter().flat_map(Relation::tables).collect();
        if tables.iter().any(|table| table.columns.is_none()) {
            tables.iter().for_each(|table| self.output.all_columns(Verb::Read, table, span));
            return;
        }
        let names = |relation: &Relation<'c>| -> BTreeSet<String> {
            match &relation.source {
                Source::Base(tables) => {
                    tables.iter().filter_map(|table| table.columns).flatten().cloned().collect()
                }
                Source::Derived(derived) => derived.columns.clone(),
            }
        };
        let all: Vec<BTreeSet<String>> = relations.iter().map(names).collect();
        for (at, relation) in relations.iter().enumerate() {
            for column in all.get(at).into_iter().flatten() {
                let shared =
                    all.iter().enumerate().any(|(other, names)| other != at && names.contains(column));
                if shared {
                    self.read_if_has(relation, column, span);
                }
            }
        }
    }

    fn read_if_has(&mut self, relation: &Relation<'c>, column: &str, span: Span) {
        let tables = match &relation.source {
            Source::Base(tables) => tables,
            Source::Derived(derived) if !derived.columns.contains(column) => &derived.open,
            Source::Derived(_) => return,
        };
        for table in tables {
            if table.columns.is_none_or(|columns| columns.contains(column)) {
                self.output.column(Verb::Read, table, column, span);
            }
        }
    }

    /// What a query gives.
    pub(super) fn outputs(&mut self, query: &Query) -> Derived<'c> {
        let ctes = self.ctes.len();
        if let Some(with) = &query.with {
            for cte in &with.cte_tables {
                let derived = renamed(self.outputs(&cte.query), Some(&cte.alias));
                self.ctes.push(Cte {
                    name: folded(&cte.alias.name),
                    query: address(cte.query.as_ref()),
                    anchor: None,
                    visible: true,
                    derived: Rc::new(derived),
                    renamed: Vec::new(),
                });
            }
        }
        let mut derived = Derived { opaque: !query.pipe_operators.is_empty(), ..Derived::default() };
        let mut parts = vec![query.body.as_ref()];
        while let Some(part) = parts.pop() {
            match part {
                SetExpr::Select(select) => self.add_outputs(select, &mut derived),
                SetExpr::Query(query) => merge(&mut derived, self.outputs(query)),
                SetExpr::SetOperation { left, right, .. } => parts.extend([right.as_ref(), left.as_ref()]),
                SetExpr::Table(table) => {
                    let tables = self.tables_of_statement(table);
                    add_all(&Relation::base(Vec::new(), tables), &mut derived);
                }
                SetExpr::Insert(Statement::Insert(insert)) => {
                    let items = insert.returning.as_deref().unwrap_or_default();
                    items.iter().for_each(|item| add_named(item, &mut derived));
                    derived.opaque = true;
                }
                SetExpr::Values(_)
                | SetExpr::Insert(_)
                | SetExpr::Update(_)
                | SetExpr::Delete(_)
                | SetExpr::Merge(_) => derived.opaque = true,
            }
        }
        self.ctes.truncate(ctes);
        derived
    }

    /// The tables of a `table t` query.
    pub(super) fn tables_of_statement(&self, table: &sqlparser::ast::Table) -> Vec<TableName<'c>> {
        let parts: Vec<String> = [&table.schema_name, &table.table_name]
            .into_iter()
            .flatten()
            .map(|part| part.to_lowercase())
            .collect();
        names::tables(self.settings, &parts)
    }

    fn add_outputs(&mut self, select: &Select, derived: &mut Derived<'c>) {
        let (relations, _) = self.relations(&select.from);
        for relation in &relations {
            derived.bases.extend(relation.tables().iter().cloned());
        }
        if !select.lateral_views.is_empty() {
            derived.opaque = true;
        }
        if select.flavor == SelectFlavor::FromFirstNoSelect {
            relations.iter().for_each(|relation| add_all(relation, derived));
        }
        for item in &select.projection {
            match item {
                SelectItem::Wildcard(_) => relations.iter().for_each(|relation| add_all(relation, derived)),
                SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), _) => {
                    let wanted = names::parts(name).unwrap_or_default();
                    let named = relations.iter().filter(|relation| relation.is_named(&wanted));
                    named.for_each(|relation| add_all(relation, derived));
                }
                SelectItem::QualifiedWildcard(..) => derived.opaque = true,
                other => add_named(other, derived),
            }
        }
    }
}

/// The constraint of a join.
pub(super) const fn constraint(operator: &JoinOperator) -> Option<&JoinConstraint> {
    use JoinOperator as J;
    match operator {
        J::Join(constraint)
        | J::Inner(constraint)
        | J::Left(constraint)
        | J::LeftOuter(constraint)
        | J::Right(constraint)
        | J::RightOuter(constraint)
        | J::FullOuter(constraint)
        | J::CrossJoin(constraint)
        | J::Semi(constraint)
        | J::LeftSemi(constraint)
        | J::RightSemi(constraint)
        | J::Anti(constraint)
        | J::LeftAnti(constraint)
        | J::RightAnti(constraint)
        | J::StraightJoin(constraint)
        | J::AsOf { constraint, .. } => Some(constraint),
        J::CrossApply | J::OuterApply | J::ArrayJoin | J::LeftArrayJoin | J::InnerArrayJoin => None,
    }
}

fn qualifier(alias: Option<&TableAlias>, written: &[String]) -> Vec<String> {
    alias.map_or_else(|| written.to_vec(), |alias| vec![folded(&alias.name)])
}

fn opaque<'c>(alias: Option<&TableAlias>, written: &[String]) -> Relation<'c> {
    let derived = Derived { opaque: true, ..Derived::default() };
    Relation::derived(qualifier(alias, written), renamed(derived, alias))
}

/// A query's columns under the names that its alias gives them.
fn renamed<'c>(mut derived: Derived<'c>, alias: Option<&TableAlias>) -> Derived<'c> {
    if let Some(alias) = alias {
        derived.columns.extend(alias.columns.iter().map(|column| folded(&column.name)));
    }
    derived
}

fn add_all<'c>(relation: &Relation<'c>, derived: &mut Derived<'c>) {
    match &relation.source {
        Source::Base(tables) => {
            for table in tables {
                match table.columns {
                    Some(columns) => derived.columns.extend(columns.iter().cloned()),
                    None => derived.open.push(table.clone()),
                }
                derived.bases.push(table.clone());
            }
        }
        Source::Derived(inner) => merge(derived, inner.as_ref().clone()),
    }
    derived.open.truncate(RELATIONS_MAX);
    derived.bases.truncate(RELATIONS_MAX);
}

fn merge<'c>(into: &mut Derived<'c>, from: Derived<'c>) {
    into.columns.extend(from.columns);
    for (list, more) in [(&mut into.open, from.open), (&mut into.bases, from.bases)] {
        for table in more {
            if list.len() < RELATIONS_MAX && !list.contains(&table) {
                list.push(table);
            }
        }
    }
    into.opaque |= from.opaque;
}

fn add_named(item: &SelectItem, derived: &mut Derived<'_>) {
    derived.columns.extend(names_of(item));
}

/// The names that an item of a projection gives to columns.
pub(super) fn names_of(item: &SelectItem) -> Vec<String> {
    match item {
        SelectItem::ExprWithAlias { alias, .. } => vec![folded(alias)],
        SelectItem::ExprWithAliases { aliases, .. } => aliases.iter().map(folded).collect(),
        SelectItem::UnnamedExpr(expression) => own_name(expression).map(folded).into_iter().collect(),
        SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..) => Vec::new(),
    }
}

/// The name that an expression without alias gives to its column.
fn own_name(expression: &Expr) -> Option<&Ident> {
    match expression {
        Expr::Identifier(ident) => Some(ident),
        Expr::CompoundIdentifier(idents) => idents.last(),
        Expr::Function(function) => function.name.0.last().and_then(|part| part.as_ident()),
        Expr::Cast { expr, .. } | Expr::Nested(expr) => own_name(expr),
        _ => None,
    }
}
