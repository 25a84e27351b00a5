//! Aliases that may be none: the parser takes a word before a name that it does not know for the name, and the name
//! for its alias. Words that some database knows are taken out before ([`super::modifiers`]); of any other word the
//! catalogue tells which of both is the name.

use portcullis_core::effect::Verb;
use sqlparser::ast::{Expr, Ident, ObjectName, SelectItem, Value};
use sqlparser::tokenizer::Span;

use super::functions::is_number;
use super::names::{self, TableName, folded};
use super::reading::Reading;
use super::scopes::{Relation, Source};

impl<'c> Reading<'_, '_, '_, 'c> {
    /// The tables that a name with an alias stands for. An alias that is a table of the catalogue, of a name that is none,
    /// may be the table, and the name a modifier before it that the parser does not know: both are meant.
    pub(super) fn tables_meant(&mut self, name: &ObjectName, alias: Option<&Ident>) -> Vec<TableName<'c>> {
        let mut tables = self.tables_named(name);
        let plain = matches!(name.0.as_slice(), [part] if part.as_ident().is_some_and(is_plain));
        if let Some(alias) = alias.filter(|_| plain && tables.iter().all(|table| table.columns.is_none())) {
            let aliased = names::tables(self.settings, &[folded(alias)]);
            tables.extend(aliased.into_iter().filter(|table| table.columns.is_some()));
        }
        tables
    }

    /// An alias that is a column of the catalogue, of a name that is none, may be the column, and the name a modifier
    /// before it that the parser does not know: `select sql_cache ssn`.
    pub(super) fn read_modified(&mut self, items: &[SelectItem]) {
        for item in items {
            // What is bound is seldom what is shown: to some it is the column at that place.
            if let SelectItem::UnnamedExpr(Expr::Value(value))
            | SelectItem::ExprWithAlias { expr: Expr::Value(value), .. } = item
                && matches!(&value.value, Value::Placeholder(text) if is_number(text))
            {
                self.read_all(&[], None, value.span);
            }
            let SelectItem::ExprWithAlias { expr: Expr::Identifier(name), alias } = item else { continue };
            if name.quote_style.is_some()
                || self.is_catalogued_column(name)
                || !self.is_catalogued_column(alias)
            {
                continue;
            }
            let aliases = self.scopes.last_mut().map(|scope| std::mem::take(&mut scope.aliases));
            self.read_name(alias);
            if let (Some(scope), Some(aliases)) = (self.scopes.last_mut(), aliases) {
                scope.aliases = aliases;
            }
        }
    }

    /// Whether something that the innermost query draws from has the column, by the catalogue.
    fn is_catalogued_column(&self, name: &Ident) -> bool {
        let name = folded(name);
        let has = |relation: &Relation<'c>| match &relation.source {
            Source::Base(tables) => {
                tables.iter().filter_map(|table| table.columns).any(|columns| columns.contains(&name))
            }
            Source::Derived(derived) => derived.columns.contains(&name),
        };
        let scope = self.innermost().and_then(|at| self.scopes.get(at));
        scope.is_some_and(|scope| scope.relations.iter().any(has))
    }

    /// Looks `table.column` up by the tables' own names, which an alias hides. What was taken for an alias may be a
    /// modifier after the name that the parser does not know: `select t.a from t final`.
    pub(super) fn read_by_own_name(&mut self, parts: &[String], span: Span) -> bool {
        let Some((column, qualifier)) = parts.split_last().filter(|(_, qualifier)| !qualifier.is_empty())
        else {
            return false;
        };
        let named = names::tables(self.settings, qualifier);
        let mut found: Vec<TableName<'c>> = Vec::new();
        let mut next = self.innermost();
        while let Some(scope) = next.and_then(|at| self.scopes.get(at)) {
            next = scope.outer;
            for relation in scope.relations.iter().filter(|relation| !relation.hidden) {
                let Source::Base(tables) = &relation.source else { continue };
                found.extend(tables.iter().filter(|table| named.contains(table)).cloned());
            }
        }
        found.iter().for_each(|table| self.output.column(Verb::Read, table, column, span));
        !found.is_empty()
    }
}

/// Whether a name stands without quotes, as a modifier would.
const fn is_plain(name: &Ident) -> bool {
    name.quote_style.is_none()
}
