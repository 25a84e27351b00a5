//! Conditions, made quick: constants are computed once at load, and conditions that say no more than *is one of
//! these* are recognised, so that many resources can be asked about at once.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use cedar_policy_core::ast::{
    BinaryOp, BorrowedRestrictedExpr, Entity, EntityUID, Expr, ExprKind, Literal, PartialValue, Value, Var,
};
use cedar_policy_core::evaluator::RestrictedEvaluator;
use cedar_policy_core::extensions::Extensions;
use portcullis_core::bundle::TableColumns;
use portcullis_core::effect::ResourceKind;
use smol_str::SmolStr;

use crate::uid::Types;

/// Values that conditions refer to instead of spelling them: attributes of one entity.
#[derive(Debug, Default)]
pub(crate) struct Constants(Vec<(SmolStr, PartialValue)>);

impl Constants {
    /// An expression for `value`.
    pub(crate) fn add(&mut self, types: &Types, value: Value) -> Expr {
        let name = SmolStr::new(format!("c{}", self.0.len()));
        self.0.push((name.clone(), value.into()));
        Expr::get_attr(Expr::val(types.constants()), name)
    }

    /// The entity that has them all.
    pub(crate) fn entity(self, types: &Types) -> Arc<Entity> {
        let none = std::iter::empty();
        Arc::new(Entity::new_with_attr_partial_value(
            types.constants(),
            self.0,
            HashSet::new(),
            HashSet::new(),
            none,
        ))
    }

    /// The same condition with its constants computed. Depth is bounded by [`crate::bounds`].
    pub(crate) fn hoist(&mut self, types: &Types, expr: &Expr) -> Expr {
        let mut go = |part: &Arc<Expr>| self.hoist(types, part);
        match expr.expr_kind() {
            ExprKind::Set(_) | ExprKind::Record(_) | ExprKind::ExtensionFunctionApp { .. } => {
                self.hoist_value(types, expr)
            }
            ExprKind::If { test_expr, then_expr, else_expr } => {
                Expr::ite(go(test_expr), go(then_expr), go(else_expr))
            }
            ExprKind::And { left, right } => Expr::and(go(left), go(right)),
            ExprKind::Or { left, right } => Expr::or(go(left), go(right)),
            ExprKind::UnaryApp { op, arg } => Expr::unary_app(*op, go(arg)),
            ExprKind::BinaryApp { op, arg1, arg2 } => Expr::binary_app(*op, go(arg1), go(arg2)),
            ExprKind::GetAttr { expr, attr } => Expr::get_attr(go(expr), attr.clone()),
            ExprKind::HasAttr { expr, attr } => Expr::has_attr(go(expr), attr.clone()),
            ExprKind::ExtHasAttr { expr, attrs } => Expr::extended_has_attr(go(expr), attrs.clone()),
            ExprKind::Like { expr, pattern } => Expr::like(go(expr), pattern.clone()),
            ExprKind::Is { expr, entity_type } => Expr::is_entity_type(go(expr), entity_type.clone()),
            ExprKind::Lit(_) | ExprKind::Var(_) | ExprKind::Slot(_) | ExprKind::Unknown(_) => {
                expr.clone().with_maybe_source_loc(None)
            }
        }
    }

    fn hoist_value(&mut self, types: &Types, expr: &Expr) -> Expr {
        if let Ok(constant) = BorrowedRestrictedExpr::new(expr)
            && let Ok(value) = RestrictedEvaluator::new(Extensions::all_available()).interpret(constant)
        {
            return self.add(types, value);
        }
        match expr.expr_kind() {
            ExprKind::Set(items) => Expr::set(items.iter().map(|item| self.hoist(types, item))),
            ExprKind::Record(fields) => {
                let fields: BTreeMap<SmolStr, Expr> =
                    fields.iter().map(|(name, field)| (name.clone(), self.hoist(types, field))).collect();
                Expr::record_arc(Arc::new(fields))
            }
            ExprKind::ExtensionFunctionApp { fn_name, args } => {
                let args = args.iter().map(|arg| self.hoist(types, arg)).collect();
                Expr::call_extension_fn(fn_name.clone(), args)
            }
            _ => expr.clone(),
        }
    }
}

/// What a condition that only names resources lets through.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Members {
    /// Any resource.
    All,
    /// These, as long as each is catalogued where its kind has a catalogue.
    These(HashSet<EntityUID>),
}

impl Members {
    /// Whether the condition holds of a resource, which is catalogued where its kind has a catalogue.
    pub(crate) fn has(&self, uid: &EntityUID) -> bool {
        match self {
            Self::All => true,
            Self::These(these) => these.contains(uid),
        }
    }

    /// What both let through.
    pub(crate) fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::All, rest) | (rest, Self::All) => rest,
            (Self::These(mut a), Self::These(b)) => {
                a.retain(|uid| b.contains(uid));
                Self::These(a)
            }
        }
    }

    /// What either lets through.
    pub(crate) fn or(self, other: Self) -> Self {
        match (self, other) {
            (Self::All, _) | (_, Self::All) => Self::All,
            (Self::These(mut a), Self::These(b)) => {
                a.extend(b);
                Self::These(a)
            }
        }
    }
}

/// Finds out what conditions let through, with the help of the bundle's tables.
pub(crate) struct Catalogue<'a> {
    pub(crate) types: &'a Types,
    pub(crate) tables: &'a BTreeMap<String, TableColumns>,
}

impl Catalogue<'_> {
    /// The resources that the condition lets through, if it only tests which resource it is. `resource.catalogued`
    /// counts as *any*: [`Members::These`] holds for catalogued resources only.
    pub(crate) fn members(&self, condition: &Expr) -> Option<Members> {
        match condition.expr_kind() {
            ExprKind::Lit(Literal::Bool(true)) => Some(Members::All),
            ExprKind::And { left, right } => Some(self.members(left)?.and(self.members(right)?)),
            ExprKind::Or { left, right } => match (self.members(left)?, self.members(right)?) {
                // `resource.catalogued || ...` is not what `All` means here.
                (Members::All, _) | (_, Members::All) => None,
                (left, right) => Some(left.or(right)),
            },
            ExprKind::BinaryApp { op: BinaryOp::In, arg1, arg2 } if is_resource(arg1) => {
                let within = literals(arg2)?.into_iter().map(|uid| self.within(uid));
                within.reduce(|a, b| Some(a?.or(b?)))?
            }
            ExprKind::BinaryApp { op: BinaryOp::Eq, arg1, arg2 } => match (literal(arg1), literal(arg2)) {
                (None, Some(uid)) if is_resource(arg1) => Some(Members::These([uid.clone()].into())),
                (Some(uid), None) if is_resource(arg2) => Some(Members::These([uid.clone()].into())),
                _ => None,
            },
            ExprKind::BinaryApp { op: BinaryOp::Contains, arg1, arg2 } if is_resource(arg2) => {
                Some(Members::These(literals(arg1)?.into_iter().cloned().collect()))
            }
            ExprKind::GetAttr { expr, attr } if attr == "catalogued" && is_resource(expr) => {
                Some(Members::All)
            }
            _ => None,
        }
    }

    /// The resources that are `container` or be in it, where the bundle lists them all: a column, or a table with
    /// its columns.
    pub(crate) fn within(&self, container: &EntityUID) -> Option<Members> {
        let mut these: HashSet<EntityUID> = [container.clone()].into();
        match self.types.kind(container.entity_type())? {
            ResourceKind::Column => {}
            ResourceKind::Table => {
                let table: &str = container.eid().as_ref();
                let columns = self.tables.get(table).into_iter().flat_map(|table| &table.columns);
                let names = columns.map(|column| format!("{table}.{column}"));
                these.extend(names.filter_map(|name| self.types.resource(ResourceKind::Column, &name)));
            }
            _ => return None,
        }
        Some(Members::These(these))
    }
}

fn is_resource(expr: &Expr) -> bool {
    matches!(expr.expr_kind(), ExprKind::Var(Var::Resource))
}

fn literal(expr: &Expr) -> Option<&EntityUID> {
    match expr.expr_kind() {
        ExprKind::Lit(Literal::EntityUID(uid)) => Some(uid),
        _ => None,
    }
}

fn literals(expr: &Expr) -> Option<Vec<&EntityUID>> {
    match expr.expr_kind() {
        ExprKind::Set(items) => items.iter().map(literal).collect(),
        _ => literal(expr).map(|uid| vec![uid]),
    }
}
