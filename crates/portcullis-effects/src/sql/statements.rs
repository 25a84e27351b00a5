//! Statements that change rows, move data and run other statements.

use portcullis_core::effect::{ResourceKind, Verb};
use sqlparser::ast::{
    Assignment, AssignmentTarget, CopySource, CopyTarget, Delete, Expr, FromTable, Insert, Merge,
    MergeAction, MergeClauseKind, MergeInsertKind, MergeUpdateKind, ObjectName, OnConflict, OnConflictAction,
    OnInsert, OutputClause, SelectInto, Spanned, Statement, TableFactor, TableObject, TableWithJoins, Update,
    UpdateTableFromKind, UtilityOption, Value,
};
use sqlparser::tokenizer::Span;

use super::conditions::{is_always_true, is_limiting_join};
use super::names::{self, TableName, folded, literal};
use super::output::How;
use super::reading::{Reading, address};
use super::scopes::{Derived, Relation, Source};

const UNBOUNDED: How = How { unbounded: true, force: false };

/// What a statement writes to, and where it says so.
struct Target<'c> {
    relation: Relation<'c>,
    span: Span,
}

impl<'c> Reading<'_, '_, '_, 'c> {
    /// Notes what a statement does itself; the queries and expressions in it are walked afterwards, in the scope
    /// that is opened here.
    pub(super) fn read_statement(&mut self, statement: &Statement) {
        match statement {
            // What these hold is walked as well.
            Statement::Query(_)
            | Statement::Case(_)
            | Statement::If(_)
            | Statement::While(_)
            | Statement::Prepare { .. }
            | Statement::Declare { .. }
            | Statement::Return(_)
            | Statement::Assert { .. } => {}
            // These touch nothing.
            Statement::Raise(_)
            | Statement::RaisError { .. }
            | Statement::Throw(_)
            | Statement::Print(_)
            | Statement::WaitFor(_)
            | Statement::Open(_)
            | Statement::Close { .. }
            | Statement::Fetch { .. }
            | Statement::Deallocate { .. }
            | Statement::StartTransaction { .. }
            | Statement::Commit { .. }
            | Statement::Rollback { .. }
            | Statement::Savepoint { .. }
            | Statement::ReleaseSavepoint { .. }
            | Statement::LISTEN { .. }
            | Statement::UNLISTEN { .. }
            | Statement::UnlockTables
            | Statement::DetachDuckDBDatabase { .. }
            | Statement::List(_)
            | Statement::ShowFunctions { .. }
            | Statement::ShowVariable { .. }
            | Statement::ShowStatus { .. }
            | Statement::ShowVariables { .. }
            | Statement::ShowCreate { .. }
            | Statement::ShowColumns { .. }
            | Statement::ShowCatalogs { .. }
            | Statement::ShowDatabases { .. }
            | Statement::ShowProcessList { .. }
            | Statement::ShowSchemas { .. }
            | Statement::ShowCharset(_)
            | Statement::ShowObjects(_)
            | Statement::ShowTables { .. }
            | Statement::ShowViews { .. }
            | Statement::ShowCollation { .. }
            | Statement::ExplainTable { .. } => {}
            Statement::Explain { analyze, options, .. } => {
                self.output.explained = !(*analyze || options.as_deref().is_some_and(runs));
            }
            Statement::Insert(insert) => self.read_insert(insert),
            Statement::Update(update) => self.read_update(update),
            Statement::Delete(delete) => self.read_delete(delete),
            Statement::Merge(merge) => self.read_merge(merge),
            Statement::Truncate(truncate) => {
                let force = matches!(truncate.cascade, Some(sqlparser::ast::CascadeOption::Cascade));
                for target in &truncate.table_names {
                    self.on_table(Verb::Delete, &target.name, How { unbounded: true, force });
                }
            }
            Statement::Copy { source, to, target, .. } => self.read_copy(source, *to, target),
            Statement::Call(function) => {
                let range = self.output.range(function.name.span());
                self.output.unknown("sql procedure", format!("procedure `{}`", function.name), range);
            }
            Statement::Execute { name, parameters, immediate, .. } => {
                self.read_execute(name.as_ref(), parameters, *immediate);
            }
            other => self.read_definition(other),
        }
    }

    fn read_insert(&mut self, insert: &Insert) {
        if let Some(query) = &insert.source {
            let outer = self.innermost();
            self.walls.push((address(query.as_ref()), outer));
        }
        let name = match &insert.table {
            TableObject::TableName(name) => name,
            TableObject::TableFunction(function) => {
                let range = self.output.range(function.name.span());
                self.output.unknown("sql function", format!("writes through `{}`", function.name), range);
                return;
            }
            TableObject::TableQuery(query) => {
                let tables = self.outputs(query).bases;
                self.write_rows(&tables, &[], insert.overwrite, query.span());
                return;
            }
        };
        let mut relation = self.relation_of(name, None);
        let mut tables = relation.tables().to_vec();
        if let Some(alias) = &insert.table_alias {
            tables = self.tables_meant(name, Some(&alias.alias));
            relation = Relation::base(vec![folded(&alias.alias)], tables.clone());
        }
        let named: Vec<(String, Span)> = insert
            .columns
            .iter()
            .filter_map(|column| column.0.last().and_then(|part| part.as_ident()))
            .chain(&insert.after_columns)
            .map(|ident| (folded(ident), ident.span))
            .collect();
        let assigned = insert.assignments.is_empty();
        let replaces = insert.overwrite
            || insert.replace_into
            || matches!(insert.or, Some(sqlparser::ast::SqliteOnConflict::Replace));
        if replaces {
            let how = if insert.overwrite { UNBOUNDED } else { How::default() };
            tables.iter().for_each(|table| self.output.table(Verb::Delete, table, how, name.span()));
        }
        if assigned {
            self.write_rows(&tables, &named, false, name.span());
        } else {
            tables
                .iter()
                .for_each(|table| self.output.table(Verb::Write, table, How::default(), name.span()));
        }
        self.write_further_tables(insert);
        let mut relations = vec![relation];
        relations.extend(pseudo_tables(&["excluded", "values"], None));
        relations.extend(pseudo_tables(&["new", "inserted"], Some(&tables)));
        if let Some(alias) = &insert.insert_alias {
            let parts = names::parts(&alias.row_alias).unwrap_or_default();
            let columns = alias.col_aliases.iter().flatten().map(folded).collect();
            relations.push(Relation::derived(parts, Derived { columns, opaque: true, ..Derived::default() }));
        }
        self.open(relations);
        self.write_assigned(&insert.assignments, &tables);
        self.write_on_conflict(insert.on.as_ref(), &tables);
        self.read_wildcards(insert.returning.as_deref().unwrap_or_default());
        self.read_output(insert.output.as_ref());
    }

    /// `INSERT ALL … INTO`: other tables get rows of the same query.
    fn write_further_tables(&mut self, insert: &Insert) {
        let when = insert.multi_table_when_clauses.iter().flat_map(|when| &when.into_clauses);
        let others = insert.multi_table_else_clause.iter().flatten();
        for clause in insert.multi_table_into_clauses.iter().chain(when).chain(others) {
            let tables = self.tables_named(&clause.table_name);
            let columns: Vec<_> = clause.columns.iter().map(|ident| (folded(ident), ident.span)).collect();
            self.write_rows(&tables, &columns, false, clause.table_name.span());
        }
    }

    /// What is set instead where a row is there already.
    fn write_on_conflict(&mut self, on: Option<&OnInsert>, tables: &[TableName<'c>]) {
        match on {
            Some(OnInsert::DuplicateKeyUpdate(assignments)) => self.write_assigned(assignments, tables),
            Some(OnInsert::OnConflict(OnConflict { action: OnConflictAction::DoUpdate(update), .. })) => {
                self.write_assigned(&update.assignments, tables);
            }
            _ => {}
        }
    }

    /// Rows are written: the named columns, all of them where none is named.
    fn write_rows(
        &mut self,
        tables: &[TableName<'c>],
        columns: &[(String, Span)],
        overwrite: bool,
        span: Span,
    ) {
        for table in tables {
            if overwrite {
                self.output.table(Verb::Delete, table, UNBOUNDED, span);
            }
            self.output.table(Verb::Write, table, How::default(), span);
            for (column, span) in columns {
                self.output.column(Verb::Write, table, column, *span);
            }
            if columns.is_empty() {
                self.output.all_columns(Verb::Write, table, span);
            }
        }
    }

    /// Columns are assigned to: of the relation that the name is qualified with, else of `tables`.
    fn write_assigned(&mut self, assignments: &[Assignment], tables: &[TableName<'c>]) {
        for assignment in assignments {
            let columns = match &assignment.target {
                AssignmentTarget::ColumnName(column) => std::slice::from_ref(column),
                AssignmentTarget::Tuple(columns) => columns,
            };
            for column in columns {
                let parts = names::parts(column).unwrap_or_default();
                self.write_assigned_column(&parts, tables, column.span());
            }
        }
    }

    fn write_assigned_column(&mut self, parts: &[String], tables: &[TableName<'c>], span: Span) {
        for at in (1..parts.len()).rev() {
            let (Some(qualifier), Some(column)) = (parts.get(..at), parts.get(at)) else { continue };
            if let Some(relation) = self.relation_named(qualifier) {
                for table in relation.tables() {
                    self.output.table(Verb::Write, table, How::default(), span);
                    self.output.column(Verb::Write, table, column, span);
                }
                return;
            }
        }
        let Some(column) = parts.first() else { return };
        let has = |table: &&TableName<'c>| table.columns.is_some_and(|columns| columns.contains(column));
        let certain = tables.iter().any(|table| has(&table));
        for table in tables.iter().filter(|table| !certain || has(table)) {
            self.output.column(Verb::Write, table, column, span);
        }
    }

    /// The tables that a statement names as its target. The name may be an alias of something in its `from`.
    fn target(&mut self, factor: &TableFactor, from: &[Relation<'c>]) -> Option<Target<'c>> {
        let TableFactor::Table { name, alias, .. } = factor else { return None };
        let parts = names::parts(name).unwrap_or_default();
        let aliased =
            alias.is_none().then(|| from.iter().find(|relation| relation.qualifier == parts)).flatten();
        let relation = match aliased {
            Some(relation) => relation.clone(),
            None => self.relation_of(name, alias.as_ref()),
        };
        self.passed_over.push(address(factor));
        Some(Target { relation, span: name.span() })
    }

    fn read_update(&mut self, update: &Update) {
        let from: &[TableWithJoins] = match &update.from {
            Some(UpdateTableFromKind::BeforeSet(from) | UpdateTableFromKind::AfterSet(from)) => from,
            None => &[],
        };
        let (sources, joined) = self.relations(from);
        let mut limited = update.selection.as_ref().is_some_and(|condition| !is_always_true(condition));
        limited |= from.iter().chain([&update.table]).any(is_limiting_join);
        let how = How { unbounded: !limited, force: false };
        let mut relations = Vec::new();
        let mut tables = Vec::new();
        if update.table.joins.is_empty() {
            if let Some(target) = self.target(&update.table.relation, &sources) {
                tables = target.relation.tables().to_vec();
                tables.iter().for_each(|table| self.output.table(Verb::Write, table, how, target.span));
                relations.push(target.relation);
            } else {
                self.no_target(&update.table.relation);
            }
        } else {
            // Several tables at once: those are written whose columns are assigned to.
            let (all, joined) = self.relations(std::slice::from_ref(&update.table));
            self.read_joined(&joined, &all);
            tables.extend(all.iter().flat_map(Relation::tables).cloned());
            relations.extend(all);
        }
        let targets = tables.clone();
        for source in sources {
            if !relations_contain(&relations, &source.qualifier) {
                relations.push(source);
            }
        }
        self.read_joined(&joined, &relations);
        relations.extend(pseudo_tables(&["inserted", "deleted", "new", "old"], Some(&targets)));
        self.open(relations);
        if !update.table.joins.is_empty() {
            self.note_assigned_tables(&update.assignments, &targets, how);
        }
        self.write_assigned(&update.assignments, &targets);
        self.read_wildcards(update.returning.as_deref().unwrap_or_default());
        self.read_output(update.output.as_ref());
    }

    /// Of several joined tables, the ones that are written.
    fn note_assigned_tables(&mut self, assignments: &[Assignment], tables: &[TableName<'c>], how: How) {
        for assignment in assignments {
            let columns = match &assignment.target {
                AssignmentTarget::ColumnName(column) => std::slice::from_ref(column),
                AssignmentTarget::Tuple(columns) => columns,
            };
            for column in columns {
                let parts = names::parts(column).unwrap_or_default();
                let qualifier = parts.split_last().map(|(_, qualifier)| qualifier).unwrap_or_default();
                let relation = self.relation_named(qualifier);
                let named = relation.as_ref().map_or(tables, Relation::tables);
                let last = parts.last().cloned().unwrap_or_default();
                let has =
                    |table: &&TableName<'c>| table.columns.is_some_and(|columns| columns.contains(&last));
                let certain = named.iter().any(|table| has(&table));
                for table in named.iter().filter(|table| !certain || has(table)) {
                    self.output.table(Verb::Write, table, how, column.span());
                }
            }
        }
    }

    fn no_target(&mut self, factor: &TableFactor) {
        let range = self.output.range(factor.span());
        self.output.unknown("sql", "the statement changes something that is not a table by name", range);
    }

    fn read_delete(&mut self, delete: &Delete) {
        let (FromTable::WithFromKeyword(from) | FromTable::WithoutKeyword(from)) = &delete.from;
        let using = delete.using.as_deref().unwrap_or_default();
        let limited = delete.selection.as_ref().is_some_and(|condition| !is_always_true(condition))
            || from.iter().chain(using).any(is_limiting_join);
        let how = How { unbounded: !limited, force: false };
        let (mut relations, joined) = self.relations(using);
        let mut targets: Vec<TableName<'c>> = Vec::new();
        if delete.tables.is_empty() {
            for item in from {
                if let Some(target) = self.target(&item.relation, &relations) {
                    for table in target.relation.tables() {
                        self.output.table(Verb::Delete, table, how, target.span);
                    }
                    targets.extend(target.relation.tables().iter().cloned());
                    if !relations_contain(&relations, &target.relation.qualifier) {
                        relations.push(target.relation);
                    }
                } else {
                    self.no_target(&item.relation);
                }
                let rest: Vec<TableWithJoins> = item
                    .joins
                    .iter()
                    .map(|join| TableWithJoins { relation: join.relation.clone(), joins: Vec::new() })
                    .collect();
                relations.extend(self.relations(&rest).0);
            }
        } else {
            let (sources, joined) = self.relations(from);
            self.read_joined(&joined, &sources);
            relations.extend(sources);
            for name in &delete.tables {
                let parts = names::parts(name).unwrap_or_default();
                // `t.*` is an old way to write `t`.
                let parts = parts.strip_suffix(&["*".to_owned()]).unwrap_or(&parts).to_vec();
                let named = relations.iter().find(|relation| relation.is_named(&parts));
                let tables = match named {
                    Some(relation) => relation.tables().to_vec(),
                    // Of none of these tables; or a modifier that the parser does not know, before `from`.
                    None => {
                        let own = names::tables(self.settings, &parts);
                        own.into_iter().chain(relations.iter().flat_map(Relation::tables).cloned()).collect()
                    }
                };
                tables.iter().for_each(|table| self.output.table(Verb::Delete, table, how, name.span()));
                targets.extend(tables);
            }
        }
        self.read_joined(&joined, &relations);
        relations.extend(pseudo_tables(&["deleted", "old"], Some(&targets)));
        self.open(relations);
        self.read_wildcards(delete.returning.as_deref().unwrap_or_default());
        self.read_output(delete.output.as_ref());
    }

    fn read_merge(&mut self, merge: &Merge) {
        let Some(target) = self.target(&merge.table, &[]) else {
            self.no_target(&merge.table);
            return;
        };
        let tables = target.relation.tables().to_vec();
        let source = TableWithJoins { relation: merge.source.clone(), joins: Vec::new() };
        let (sources, _) = self.relations(std::slice::from_ref(&source));
        if let TableFactor::Derived { subquery, .. } = &merge.source {
            let outer = self.innermost();
            self.walls.push((address(subquery.as_ref()), outer));
        }
        let columns: Vec<String> = sources.iter().flat_map(known_columns).collect();
        let mut relations = vec![target.relation];
        relations.extend(sources);
        relations.extend(pseudo_tables(&["inserted", "deleted", "new", "old"], Some(&tables)));
        self.open(relations);
        let every_row = is_always_true(&merge.on);
        for clause in &merge.clauses {
            let limited = clause.predicate.as_ref().is_some_and(|condition| !is_always_true(condition));
            let on_all = every_row || clause.clause_kind == MergeClauseKind::NotMatchedBySource;
            let how = How { unbounded: on_all && !limited, force: false };
            match &clause.action {
                MergeAction::Insert(insert) => {
                    let named: Vec<(String, Span)> = insert
                        .columns
                        .iter()
                        .filter_map(|column| column.0.last().and_then(|part| part.as_ident()))
                        .map(|ident| (folded(ident), ident.span))
                        .collect();
                    self.write_rows(&tables, &named, false, target.span);
                    if !matches!(insert.kind, MergeInsertKind::Values(_)) {
                        self.read_source(&merge.source, &columns);
                    }
                }
                MergeAction::Update(update) => {
                    tables.iter().for_each(|table| self.output.table(Verb::Write, table, how, target.span));
                    match &update.kind {
                        MergeUpdateKind::Set(assignments) => self.write_assigned(assignments, &tables),
                        MergeUpdateKind::Wildcard => {
                            tables
                                .iter()
                                .for_each(|table| self.output.all_columns(Verb::Write, table, target.span));
                            self.read_source(&merge.source, &columns);
                        }
                    }
                    if let Some(condition) = &update.delete_predicate {
                        let how = How { unbounded: is_always_true(condition), force: false };
                        tables
                            .iter()
                            .for_each(|table| self.output.table(Verb::Delete, table, how, target.span));
                    }
                }
                MergeAction::Delete { .. } => {
                    tables.iter().for_each(|table| self.output.table(Verb::Delete, table, how, target.span));
                }
                MergeAction::DoNothing { .. } => {}
            }
        }
        self.read_output(merge.output.as_ref());
    }

    /// `insert row`, `update *`: the source gives all of its columns.
    fn read_source(&mut self, source: &TableFactor, columns: &[String]) {
        let TableFactor::Table { name, .. } = source else { return };
        if columns.is_empty() || self.cte(name).is_none() {
            for table in self.tables_named(name) {
                self.output.all_columns(Verb::Read, &table, name.span());
            }
        }
    }

    fn read_output(&mut self, output: Option<&OutputClause>) {
        match output {
            Some(OutputClause::Output { select_items, into_table, .. }) => {
                self.read_wildcards(select_items);
                if let Some(into) = into_table {
                    self.select_into(into);
                }
            }
            Some(OutputClause::Returning { select_items, .. }) => self.read_wildcards(select_items),
            None => {}
        }
    }

    /// `select … into t`.
    pub(super) fn select_into(&mut self, into: &SelectInto) {
        for target in &into.targets {
            self.passed_over.push(address(target));
            let parts: Vec<String> = match target {
                Expr::Identifier(ident) => vec![folded(ident)],
                Expr::CompoundIdentifier(idents) => idents.iter().map(folded).collect(),
                _ => continue,
            };
            if parts.first().is_some_and(|part| part.starts_with('@')) {
                continue;
            }
            for table in names::tables(self.settings, &parts) {
                self.output.table(Verb::Write, &table, How::default(), target.span());
            }
        }
    }

    fn read_copy(&mut self, source: &CopySource, to: bool, target: &CopyTarget) {
        let verb = if to { Verb::Read } else { Verb::Write };
        let mut span = Span::empty();
        match source {
            CopySource::Table { table_name, columns } => {
                span = table_name.span();
                for table in self.tables_named(table_name) {
                    self.output.table(verb, &table, How::default(), span);
                    for column in columns {
                        self.output.column(verb, &table, &folded(column), column.span);
                    }
                    if columns.is_empty() {
                        self.output.all_columns(verb, &table, span);
                    }
                }
            }
            CopySource::Query(_) => {}
        }
        let range = self.output.range(span);
        match target {
            CopyTarget::Stdin | CopyTarget::Stdout => {}
            CopyTarget::File { filename } => {
                self.output.path(if to { Verb::Write } else { Verb::Read }, filename, range);
            }
            CopyTarget::Program { command } => {
                let why = format!("runs `{command}` on the database's machine");
                self.output.unknown("sql program", why, range.clone());
                self.output.shell(command, range);
            }
        }
    }

    /// `execute p`, `exec sp_executesql N'…'`, `execute immediate '…'`.
    fn read_execute(&mut self, name: Option<&ObjectName>, parameters: &[Expr], immediate: bool) {
        let procedure =
            name.and_then(names::parts).and_then(|parts| parts.last().cloned()).unwrap_or_default();
        let runs_text = immediate
            || name.is_none()
            || (procedure == "immediate" && !parameters.is_empty())
            || procedure == "sp_executesql";
        let span =
            name.map_or_else(|| parameters.first().map_or_else(Span::empty, Spanned::span), Spanned::span);
        let range = self.output.range(span);
        if !runs_text {
            let what = if procedure == "xp_cmdshell" { "sql program" } else { "sql procedure" };
            self.output.unknown(what, format!("procedure `{procedure}`"), range);
            return;
        }
        match parameters.first().and_then(literal) {
            Some(text) => self.output.nested(text, range),
            None => self.output.unknown("sql", "runs SQL that is computed", range),
        }
    }

    /// An effect on a table by name, or on the tables of a query with that name.
    pub(super) fn on_table(&mut self, verb: Verb, name: &ObjectName, how: How) {
        for table in self.tables_named(name) {
            self.output.table(verb, &table, how, name.span());
        }
    }

    /// A file that the text names, or one that is computed.
    pub(super) fn on_file(&mut self, verbs: &[Verb], file: Option<&str>, span: Span) {
        let range = self.output.range(span);
        match file {
            Some(file) => verbs.iter().for_each(|verb| self.output.path(*verb, file, range.clone())),
            None => self.output.unknown("sql", "the name of a file is computed", range),
        }
    }

    /// Something that is not a table is made, changed or dropped.
    pub(super) fn on_setting(&mut self, verb: Verb, name: &str, span: Span) {
        self.output.other(verb, ResourceKind::Setting, name, How::default(), span);
    }
}

/// Whether `explain` runs the statement.
fn runs(options: &[UtilityOption]) -> bool {
    options.iter().any(|option| {
        let off = match &option.arg {
            Some(Expr::Value(value)) => match &value.value {
                Value::Boolean(value) => !value,
                Value::Number(digits, _) => *digits == "0",
                other => other.to_string().trim_matches('\'').eq_ignore_ascii_case("off"),
            },
            Some(Expr::Identifier(ident)) => matches!(folded(ident).as_str(), "off" | "false"),
            _ => false,
        };
        folded(&option.name) == "analyze" && !off
    })
}

fn relations_contain(relations: &[Relation<'_>], qualifier: &[String]) -> bool {
    relations.iter().any(|relation| relation.qualifier == qualifier)
}

/// Names that statements give to rows: new ones, which say nothing, or those of `tables`.
fn pseudo_tables<'c>(names: &[&str], tables: Option<&[TableName<'c>]>) -> Vec<Relation<'c>> {
    let relation = |name: &&str| {
        let qualifier = vec![(*name).to_owned()];
        let mut relation = match tables {
            Some(tables) => Relation::base(qualifier, tables.to_vec()),
            None => Relation::derived(qualifier, Derived { opaque: true, ..Derived::default() }),
        };
        relation.hidden = true;
        relation
    };
    names.iter().map(relation).collect()
}

fn known_columns(relation: &Relation<'_>) -> Vec<String> {
    match &relation.source {
        Source::Derived(derived) => derived.columns.iter().cloned().collect(),
        Source::Base(_) => Vec::new(),
    }
}
