//! Statements that make, change and drop what a database holds, and that change its settings.

use portcullis_core::effect::{ResourceKind, Verb};
use sqlparser::ast::{
    AlterTable, AlterTableOperation, CreateTable, CreateTableLikeKind, Expr, GrantObjects, Ident, ObjectName,
    ObjectType, RenameTableNameKind, Reset, SchemaName, Set, SetAssignment, Spanned, Statement,
};
use sqlparser::tokenizer::Span;

use super::names::{self, folded, literal};
use super::output::{How, Output};
use super::reading::Reading;

impl Reading<'_, '_, '_, '_> {
    /// Notes what a statement defines, alters, drops or sets; unknown where it is of a kind not listed.
    pub(super) fn read_definition(&mut self, statement: &Statement) {
        match statement {
            Statement::CreateTable(create) => self.read_create_table(create),
            Statement::CreateView(create) => {
                self.on_table(Verb::Write, &create.name, How::default());
                if let Some(to) = &create.to {
                    self.on_table(Verb::Write, to, How::default());
                }
                if create.or_replace {
                    self.on_table(Verb::Delete, &create.name, How::default());
                }
            }
            Statement::AlterView { name, .. } => self.on_table(Verb::Configure, name, How::default()),
            Statement::CreateVirtualTable { name, module_name, module_args, .. } => {
                self.on_table(Verb::Write, name, How::default());
                self.read_module(&folded(module_name), module_args, name.span());
            }
            Statement::CreateIndex(create) => {
                self.on_table(Verb::Configure, &create.table_name, How::default())
            }
            Statement::AlterTable(alter) => self.read_alter_table(alter),
            Statement::RenameTable(renames) => {
                for rename in renames {
                    self.on_table(Verb::Configure, &rename.old_name, How::default());
                    self.on_table(Verb::Configure, &rename.new_name, How::default());
                }
            }
            Statement::Drop { object_type, names, cascade, table, .. } => {
                for name in names {
                    self.read_drop(*object_type, name, *cascade, table.as_ref());
                }
            }
            Statement::CreatePolicy(policy) => {
                self.on_table(Verb::Configure, &policy.table_name, How::default())
            }
            Statement::AlterPolicy(policy) => {
                self.on_table(Verb::Configure, &policy.table_name, How::default())
            }
            Statement::DropPolicy(policy) => {
                self.on_table(Verb::Configure, &policy.table_name, How::default())
            }
            Statement::CreateTrigger(trigger) => {
                self.on_table(Verb::Configure, &trigger.table_name, How::default());
                self.on_named("trigger", &trigger.name);
            }
            Statement::DropTrigger(trigger) => {
                if let Some(table) = &trigger.table_name {
                    self.on_table(Verb::Configure, table, How::default());
                }
                self.on_named("trigger", &trigger.trigger_name);
            }
            other => self.read_upkeep(other),
        }
    }

    /// Statements that describe, tidy or lock tables.
    fn read_upkeep(&mut self, statement: &Statement) {
        match statement {
            Statement::Comment { object_name, .. } => {
                self.on_table(Verb::Configure, object_name, How::default())
            }
            Statement::Analyze(analyze) => {
                if let Some(table) = &analyze.table_name {
                    self.on_table(Verb::Configure, table, How::default());
                }
            }
            Statement::Vacuum(vacuum) => match &vacuum.table_name {
                Some(table) => self.on_table(Verb::Configure, table, How::default()),
                None => self.output.setting("vacuum", Span::empty()),
            },
            Statement::OptimizeTable { name, .. } => self.on_table(Verb::Configure, name, How::default()),
            Statement::Lock(lock) => {
                lock.tables
                    .iter()
                    .for_each(|table| self.on_table(Verb::Configure, &table.name, How::default()));
            }
            Statement::LockTables { tables } => {
                for lock in tables {
                    let name = ObjectName::from(vec![lock.table.clone()]);
                    self.on_table(Verb::Configure, &name, How::default());
                }
            }
            Statement::Flush { tables, .. } => {
                self.output.setting("flush", Span::empty());
                tables.iter().for_each(|table| self.on_table(Verb::Configure, table, How::default()));
            }
            other => self.read_administration(other),
        }
    }

    fn read_administration(&mut self, statement: &Statement) {
        match statement {
            Statement::Grant(grant) => self.read_grant(grant.objects.as_ref()),
            Statement::Revoke(revoke) => self.read_grant(revoke.objects.as_ref()),
            Statement::Deny(deny) => self.read_grant(Some(&deny.objects)),
            Statement::CreateRole(role) => role.names.iter().for_each(|name| self.on_named("role", name)),
            Statement::AlterRole { name, .. } => self.on_ident("role", name),
            Statement::CreateUser(user) => self.on_ident("user", &user.name),
            Statement::AlterUser(user) => self.on_ident("user", &user.name),
            Statement::Set(set) => self.read_set(set),
            Statement::AlterSession { .. } => self.output.setting("session", Span::empty()),
            Statement::Reset(reset) => match &reset.reset {
                Reset::ConfigurationParameter(name) => self.on_named("", name),
                Reset::ALL => self.output.setting("*", Span::empty()),
                Reset::SessionAuthorization => self.output.setting("session authorization", Span::empty()),
            },
            Statement::Discard { .. } => self.output.setting("*", Span::empty()),
            Statement::Use(_) => self.output.setting("current database", Span::empty()),
            Statement::Pragma { name, .. } => {
                let parts = names::parts(name).unwrap_or_default();
                pragma(parts.last().map(String::as_str).unwrap_or_default(), name.span(), self.output);
            }
            Statement::Kill { id, .. } => {
                let name = format!("sql {id}");
                self.output.other(Verb::Delete, ResourceKind::Process, &name, How::default(), Span::empty());
            }
            Statement::NOTIFY { channel, .. } => {
                self.on_setting(Verb::Send, &format!("channel {}", folded(channel)), channel.span);
            }
            Statement::CreateSchema { schema_name, .. } => match schema_name {
                SchemaName::Simple(name) | SchemaName::NamedAuthorization(name, _) => {
                    self.on_named("schema", name);
                }
                SchemaName::UnnamedAuthorization(name) => self.on_ident("schema", name),
            },
            Statement::AlterSchema(alter) => self.on_named("schema", &alter.name),
            Statement::CreateDatabase { db_name, location, .. } => {
                self.on_named("database", db_name);
                if let Some(location) = location {
                    self.on_file(&[Verb::Write], Some(location), db_name.span());
                }
            }
            Statement::CreateFunction(create) => self.on_named("function", &create.name),
            Statement::AlterFunction(alter) => self.on_named("function", &alter.function.name),
            Statement::DropFunction(drop) => {
                drop.func_desc.iter().for_each(|function| self.on_named("function", &function.name));
            }
            Statement::CreateProcedure { name, .. } => self.on_named("procedure", name),
            Statement::DropProcedure { proc_desc, .. } => {
                proc_desc.iter().for_each(|procedure| self.on_named("procedure", &procedure.name));
            }
            Statement::CreateMacro { name, .. } => self.on_named("function", name),
            Statement::CreateSequence { name, .. } => self.on_named("sequence", name),
            Statement::CreateType { name, .. } => self.on_named("type", name),
            Statement::AlterType(alter) => self.on_named("type", &alter.name),
            Statement::CreateDomain(domain) => self.on_named("type", &domain.name),
            Statement::DropDomain(domain) => self.on_named("type", &domain.name),
            Statement::AlterIndex { name, .. } => self.on_named("index", name),
            Statement::CreateExtension(create) => self.on_ident("extension", &create.name),
            Statement::DropExtension(drop) => {
                drop.names.iter().for_each(|name| self.on_ident("extension", name));
            }
            Statement::CreateServer(server) => self.on_named("server", &server.name),
            Statement::CreateSecret { .. } | Statement::DropSecret { .. } => {
                self.output.setting("secret", Span::empty());
            }
            other => self.read_transport(other),
        }
    }

    /// Statements that move whole files, databases and programs.
    fn read_transport(&mut self, statement: &Statement) {
        match statement {
            Statement::AttachDatabase { database_file_name, .. } => {
                let file = match database_file_name {
                    Expr::Identifier(ident) => Some(ident.value.as_str()),
                    other => literal(other),
                };
                if let Expr::Identifier(_) = database_file_name {
                    self.passed_over.push(super::reading::address(database_file_name));
                }
                self.on_file(&[Verb::Read, Verb::Write], file, database_file_name.span());
            }
            Statement::AttachDuckDBDatabase { database_path, attach_options, .. } => {
                use sqlparser::ast::AttachDuckDBDatabaseOption::ReadOnly;
                let only_read =
                    attach_options.iter().any(|option| matches!(option, ReadOnly(None | Some(true))));
                let verbs: &[Verb] = if only_read { &[Verb::Read] } else { &[Verb::Read, Verb::Write] };
                self.on_file(verbs, Some(&database_path.value), database_path.span);
            }
            Statement::LoadData { inpath, table_name, overwrite, .. } => {
                self.on_file(&[Verb::Read], Some(inpath), table_name.span());
                if *overwrite {
                    self.on_table(Verb::Delete, table_name, How { unbounded: true, force: false });
                }
                self.on_table(Verb::Write, table_name, How::default());
            }
            Statement::Directory { path, .. } => self.on_file(&[Verb::Write], Some(path), Span::empty()),
            Statement::Unload { to, query_text, .. } => {
                self.on_file(&[Verb::Write], Some(&to.value), to.span);
                if let Some(query) = query_text {
                    let range = self.output.range(to.span);
                    self.output.nested(query, range);
                }
            }
            Statement::Put { source, .. } => {
                self.on_file(&[Verb::Read], Some(source), Span::empty());
                self.unknown_kind("sends a file to a stage");
            }
            Statement::ExportData(_) => self.unknown_kind("exports data to a place that is not read"),
            Statement::CopyIntoSnowflake { into, from_obj, .. } => {
                self.on_table(Verb::Write, into, How::default());
                if let Some(from) = from_obj {
                    self.on_table(Verb::Read, from, How::default());
                }
                self.unknown_kind("copies from or to a stage");
            }
            Statement::Install { extension_name } | Statement::Load { extension_name } => {
                let range = self.output.range(extension_name.span);
                self.output.unknown("sql extension", format!("loads `{}`", extension_name.value), range);
            }
            _ => self.unknown_kind("a statement of a kind that is not known"),
        }
    }

    fn unknown_kind(&mut self, why: &str) {
        let range = self.output.range(Span::empty());
        self.output.unknown("sql", why, range);
    }

    fn on_named(&mut self, kind: &str, name: &ObjectName) {
        let parts = names::parts(name).unwrap_or_default().join(".");
        let named = if kind.is_empty() { parts } else { format!("{kind} {parts}") };
        self.on_setting(Verb::Configure, &named, name.span());
    }

    fn on_ident(&mut self, kind: &str, name: &Ident) {
        self.on_setting(Verb::Configure, &format!("{kind} {}", folded(name)), name.span);
    }

    fn read_create_table(&mut self, create: &CreateTable) {
        if create.or_replace {
            self.on_table(Verb::Delete, &create.name, How { unbounded: true, force: false });
        }
        self.on_table(Verb::Write, &create.name, How::default());
        let like = create.like.as_ref().map(|like| match like {
            CreateTableLikeKind::Parenthesized(like) | CreateTableLikeKind::Plain(like) => &like.name,
        });
        if let Some(name) = like {
            self.on_table(Verb::Read, name, How::default());
        }
        if let Some(name) = &create.clone {
            for table in self.tables_named(name) {
                self.output.table(Verb::Read, &table, How::default(), name.span());
                self.output.all_columns(Verb::Read, &table, name.span());
            }
        }
        for parent in create.inherits.iter().flatten().chain(&create.partition_of) {
            self.on_table(Verb::Configure, parent, How::default());
        }
        if let Some(location) = &create.location {
            self.on_file(&[Verb::Read, Verb::Write], Some(location), create.name.span());
        }
    }

    /// A table that a module provides: SQLite's `csv` and `zipfile` read files.
    fn read_module(&mut self, module: &str, arguments: &[Ident], span: Span) {
        if matches!(module, "fts3" | "fts4" | "fts5" | "rtree" | "geopoly" | "series" | "vec0") {
            return;
        }
        let arguments: Vec<&str> = arguments.iter().map(|argument| argument.value.as_str()).collect();
        let range = self.output.range(span);
        self.output.unknown("sql", format!("table module `{module}` with {arguments:?}"), range);
    }

    fn read_alter_table(&mut self, alter: &AlterTable) {
        self.on_table(Verb::Configure, &alter.name, How::default());
        for operation in &alter.operations {
            match operation {
                AlterTableOperation::DropColumn { column_names, drop_behavior, .. } => {
                    let force = matches!(drop_behavior, Some(sqlparser::ast::DropBehavior::Cascade));
                    for column in column_names {
                        for table in self.tables_named(&alter.name) {
                            self.output.column(Verb::Delete, &table, &folded(column), column.span);
                            if force {
                                let how = How { unbounded: false, force };
                                self.output.table(Verb::Configure, &table, how, column.span);
                            }
                        }
                    }
                }
                AlterTableOperation::AddColumn { column_def, .. } => {
                    self.on_column(Verb::Write, &alter.name, &column_def.name);
                }
                AlterTableOperation::RenameColumn { old_column_name, new_column_name } => {
                    self.on_column(Verb::Configure, &alter.name, old_column_name);
                    self.on_column(Verb::Configure, &alter.name, new_column_name);
                }
                AlterTableOperation::ChangeColumn { old_name, new_name, .. } => {
                    self.on_column(Verb::Configure, &alter.name, old_name);
                    self.on_column(Verb::Configure, &alter.name, new_name);
                }
                AlterTableOperation::ModifyColumn { col_name, .. } => {
                    self.on_column(Verb::Configure, &alter.name, col_name);
                }
                AlterTableOperation::AlterColumn { column_name, .. } => {
                    self.on_column(Verb::Configure, &alter.name, column_name);
                }
                AlterTableOperation::RenameTable {
                    table_name: RenameTableNameKind::As(name) | RenameTableNameKind::To(name),
                } => {
                    self.on_table(Verb::Configure, name, How::default());
                }
                AlterTableOperation::SwapWith { table_name } => {
                    self.on_table(Verb::Configure, table_name, How::default());
                }
                AlterTableOperation::DropPartitions { .. } => {
                    self.on_table(Verb::Delete, &alter.name, How::default());
                }
                _ => {}
            }
        }
    }

    fn on_column(&mut self, verb: Verb, table: &ObjectName, column: &Ident) {
        for table in self.tables_named(table) {
            self.output.column(verb, &table, &folded(column), column.span);
        }
    }

    fn read_drop(&mut self, kind: ObjectType, name: &ObjectName, cascade: bool, table: Option<&ObjectName>) {
        let how = How { unbounded: true, force: cascade };
        let parts = names::parts(name).unwrap_or_default().join(".");
        match kind {
            ObjectType::Table => self.on_table(Verb::Delete, name, How { unbounded: false, force: cascade }),
            ObjectType::View | ObjectType::MaterializedView => {
                self.on_table(Verb::Delete, name, How { unbounded: false, force: cascade });
            }
            // Every table in it.
            ObjectType::Schema | ObjectType::Database => {
                let word = if kind == ObjectType::Schema { "schema" } else { "database" };
                let all = names::TableName { name: format!("{parts}.*"), columns: None };
                self.output.table(Verb::Delete, &all, how, name.span());
                self.on_setting(Verb::Delete, &format!("{word} {parts}"), name.span());
            }
            ObjectType::Index => {
                if let Some(table) = table {
                    self.on_table(Verb::Configure, table, How::default());
                }
                self.on_setting(Verb::Delete, &format!("index {parts}"), name.span());
            }
            other => {
                let word = other.to_string().to_lowercase();
                self.on_setting(Verb::Delete, &format!("{word} {parts}"), name.span());
            }
        }
    }

    fn read_grant(&mut self, objects: Option<&GrantObjects>) {
        let span = Span::empty();
        self.output.setting("privileges", span);
        let tables = match objects {
            Some(GrantObjects::Tables(tables) | GrantObjects::Views(tables)) => tables,
            _ => return,
        };
        for table in tables {
            self.on_table(Verb::Configure, table, How::default());
        }
    }

    fn read_set(&mut self, set: &Set) {
        match set {
            Set::SingleAssignment { variable, .. } => self.set_variable(variable),
            Set::ParenthesizedAssignments { variables, .. } => {
                variables.iter().for_each(|variable| self.set_variable(variable));
            }
            Set::MultipleAssignments { assignments } => {
                assignments.iter().for_each(|SetAssignment { name, .. }| self.set_variable(name));
            }
            Set::SetSessionAuthorization(_) => self.output.setting("session authorization", Span::empty()),
            Set::SetSessionParam(_) => self.output.setting("session", Span::empty()),
            Set::SetRole { .. } => self.output.setting("role", Span::empty()),
            Set::SetTimeZone { .. } => self.output.setting("time zone", Span::empty()),
            Set::SetNames { .. } | Set::SetNamesDefault {} => self.output.setting("names", Span::empty()),
            Set::SetTransaction { .. } => {}
        }
    }

    /// A variable of the session: one with a single `@` is the statement's own.
    fn set_variable(&mut self, name: &ObjectName) {
        let parts = names::parts(name).unwrap_or_default().join(".");
        if parts.starts_with('@') && !parts.starts_with("@@") {
            return;
        }
        self.on_setting(Verb::Configure, &parts, name.span());
    }

    /// `from 'orders.csv'`: a file in place of a table.
    pub(super) fn read_file_as_table(&mut self, name: &ObjectName) -> bool {
        let [part] = name.0.as_slice() else { return false };
        let Some(ident) = part.as_ident() else { return false };
        let looks = |text: &str| {
            let text = text.to_lowercase();
            let ends =
                [".csv", ".parquet", ".json", ".jsonl", ".ndjson", ".tsv", ".gz", ".db", ".duckdb", ".xlsx"];
            text.contains('/') || ends.iter().any(|end| text.ends_with(end))
        };
        match ident.quote_style {
            Some('\'') => self.on_file(&[Verb::Read], Some(&ident.value), ident.span),
            Some('"') if looks(&ident.value) => self.on_file(&[Verb::Read], Some(&ident.value), ident.span),
            _ => return false,
        }
        ident.quote_style == Some('\'')
    }
}

/// SQLite's pragmas: some only tell the shape of tables.
pub(super) fn pragma(name: &str, span: Span, output: &mut Output<'_, '_, '_>) {
    let tells = matches!(
        name,
        "table_info"
            | "table_xinfo"
            | "table_list"
            | "index_list"
            | "index_info"
            | "index_xinfo"
            | "foreign_key_list"
            | "database_list"
            | "collation_list"
            | "function_list"
            | "compile_options"
            | "integrity_check"
            | "quick_check"
    );
    if !tells {
        output.setting(name, span);
    }
}
