//! Whether a condition limits anything.

use sqlparser::ast::{
    BinaryOperator, Expr, JoinConstraint, JoinOperator, SetExpr, TableWithJoins, UnaryOperator, Value,
};

use super::names::literal;
use super::scopes::constraint;

/// Whether the text of a condition shows that it lets every row through: `1=1`, `true`, `x or 'a'='a'`.
pub(super) fn is_always_true(condition: &Expr) -> bool {
    constant(condition) == Some(true)
}

/// Whether an inner join limits the rows that a statement changes.
pub(super) fn is_limiting_join(item: &TableWithJoins) -> bool {
    item.joins.iter().any(|join| {
        let inner = matches!(join.join_operator, JoinOperator::Join(_) | JoinOperator::Inner(_));
        inner
            && match constraint(&join.join_operator) {
                Some(JoinConstraint::On(condition)) => !is_always_true(condition),
                Some(JoinConstraint::Using(_) | JoinConstraint::Natural) => true,
                Some(JoinConstraint::None) | None => false,
            }
    })
}

/// The value of a condition that is the same for every row.
fn constant(condition: &Expr) -> Option<bool> {
    match condition {
        Expr::Nested(inner) | Expr::IsTrue(inner) | Expr::IsNotFalse(inner) => constant(inner),
        Expr::IsFalse(inner) | Expr::IsNotTrue(inner) => constant(inner).map(|value| !value),
        Expr::UnaryOp { op: UnaryOperator::Not | UnaryOperator::BangNot, expr } => {
            constant(expr).map(|value| !value)
        }
        Expr::Value(_) => truth(condition),
        Expr::BinaryOp { op: BinaryOperator::Or, .. } => either(condition),
        Expr::BinaryOp { op: BinaryOperator::And, .. } => both(condition),
        Expr::BinaryOp { left, op, right } => compared(left, op, right),
        Expr::IsNotNull(inner) => is_constant(inner).then_some(true),
        Expr::Like { expr, pattern, negated: false, .. }
        | Expr::ILike { expr, pattern, negated: false, .. } => {
            let all = literal(pattern)
                .is_some_and(|text| !text.is_empty() && text.bytes().all(|byte| byte == b'%'));
            (all || same(expr, pattern)).then_some(true)
        }
        Expr::InList { expr, list, negated } => list.iter().any(|item| same(expr, item)).then_some(!*negated),
        Expr::Between { expr, low, high, negated } => {
            let value = number(expr)?;
            Some((number(low)? <= value && value <= number(high)?) != *negated)
        }
        // A query without tables gives one row.
        Expr::Exists { subquery, negated } => match subquery.body.as_ref() {
            SetExpr::Select(select) if select.from.is_empty() && select.selection.is_none() => {
                Some(!*negated)
            }
            _ => None,
        },
        _ => None,
    }
}

/// The operands of a chain of one operator. Chains lean to the left and are long: no recursion.
fn operands<'a>(condition: &'a Expr, operator: &BinaryOperator) -> Vec<&'a Expr> {
    let mut open = vec![condition];
    let mut operands = Vec::new();
    while let Some(next) = open.pop() {
        match next {
            Expr::BinaryOp { left, op, right } if op == operator => {
                open.extend([left.as_ref(), right.as_ref()])
            }
            Expr::Nested(inner) => open.push(inner),
            other => operands.push(other),
        }
    }
    operands
}

fn either(condition: &Expr) -> Option<bool> {
    let operands = operands(condition, &BinaryOperator::Or);
    if operands.iter().any(|operand| constant(operand) == Some(true)) {
        return Some(true);
    }
    // `x is null or x is not null`, `a = 1 or a <> 1`, `x or not x`.
    let complements = |one: &Expr, other: &Expr| match (one, other) {
        (Expr::IsNull(one), Expr::IsNotNull(other)) => same(one, other),
        (Expr::BinaryOp { left, op, right }, Expr::BinaryOp { left: left2, op: op2, right: right2 }) => {
            *op == BinaryOperator::Eq
                && *op2 == BinaryOperator::NotEq
                && same(left, left2)
                && same(right, right2)
        }
        (one, Expr::UnaryOp { op: UnaryOperator::Not, expr }) => same(one, expr),
        _ => false,
    };
    // Nobody writes long tautologies of this form; comparing each with each stays cheap.
    if operands.len() <= 8 {
        for one in &operands {
            if operands.iter().any(|other| complements(one, other)) {
                return Some(true);
            }
        }
    }
    operands.iter().all(|operand| constant(operand) == Some(false)).then_some(false)
}

fn both(condition: &Expr) -> Option<bool> {
    let operands = operands(condition, &BinaryOperator::And);
    if operands.iter().any(|operand| constant(operand) == Some(false)) {
        return Some(false);
    }
    operands.iter().all(|operand| constant(operand) == Some(true)).then_some(true)
}

fn compared(left: &Expr, operator: &BinaryOperator, right: &Expr) -> Option<bool> {
    if let (Some(left), Some(right)) = (number(left), number(right)) {
        return match operator {
            BinaryOperator::Eq | BinaryOperator::Spaceship => Some(left == right),
            BinaryOperator::NotEq => Some(left != right),
            BinaryOperator::Lt => Some(left < right),
            BinaryOperator::LtEq => Some(left <= right),
            BinaryOperator::Gt => Some(left > right),
            BinaryOperator::GtEq => Some(left >= right),
            _ => None,
        };
    }
    match operator {
        BinaryOperator::Eq | BinaryOperator::LtEq | BinaryOperator::GtEq | BinaryOperator::Spaceship => {
            if same(left, right) {
                return Some(true);
            }
            match (literal(left), literal(right)) {
                (Some(left), Some(right)) if *operator == BinaryOperator::Eq => Some(left == right),
                _ => None,
            }
        }
        BinaryOperator::NotEq => Some(literal(left)? != literal(right)?),
        _ => None,
    }
}

fn truth(value: &Expr) -> Option<bool> {
    let Expr::Value(value) = value else { return None };
    match &value.value {
        Value::Boolean(value) => Some(*value),
        Value::Null => Some(false),
        Value::Number(digits, _) => digits.to_string().parse::<f64>().ok().map(|value| value != 0.0),
        // Databases that take a string for a condition read the number at its start.
        Value::SingleQuotedString(text) => text.trim().parse::<f64>().ok().map(|value| value != 0.0),
        _ => None,
    }
}

fn number(expression: &Expr) -> Option<f64> {
    match expression {
        Expr::Nested(inner) => number(inner),
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => number(expr).map(|value| -value),
        Expr::Value(value) => match &value.value {
            Value::Number(digits, _) => digits.to_string().parse().ok(),
            _ => None,
        },
        Expr::BinaryOp { left, op, right } => {
            // Sums such as `1+1=2`; deeper chains are not looked into.
            let simple = |side: &Expr| if matches!(side, Expr::Value(_)) { number(side) } else { None };
            let (left, right) = (simple(left)?, simple(right)?);
            match op {
                BinaryOperator::Plus => Some(left + right),
                BinaryOperator::Minus => Some(left - right),
                BinaryOperator::Multiply => Some(left * right),
                _ => None,
            }
        }
        _ => None,
    }
}

fn is_constant(expression: &Expr) -> bool {
    literal(expression).is_some() || number(expression).is_some()
}

/// Whether two simple expressions are the same: names and constants.
fn same(one: &Expr, other: &Expr) -> bool {
    let name = |expression: &Expr| match expression {
        Expr::Identifier(ident) => Some(vec![super::names::folded(ident)]),
        Expr::CompoundIdentifier(idents) => Some(idents.iter().map(super::names::folded).collect()),
        _ => None,
    };
    match (one, other) {
        (Expr::Nested(one), other) | (other, Expr::Nested(one)) => same(one, other),
        _ => match (name(one), name(other)) {
            (Some(one), Some(other)) => one == other,
            (None, None) => {
                matches!((number(one), number(other)), (Some(one), Some(other)) if one == other)
                    || matches!((literal(one), literal(other)), (Some(one), Some(other)) if one == other)
            }
            _ => false,
        },
    }
}
