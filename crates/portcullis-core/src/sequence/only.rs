//! Which calls a mark or a sequence is about, by their arguments.

use std::cmp::Ordering;

use serde_json::Value;

use super::amount;

/// Conditions on arguments, all of which have to hold. None holds for all calls.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Only(pub Vec<Condition>);

/// One condition on one argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition {
    /// JSON pointer (RFC 6901) to the argument.
    pub at: String,
    /// What it has to be.
    pub is: Test,
}

/// What an argument has to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Test {
    /// Equal to one of these, or a list with one of them. Texts are compared without case and the spaces around them.
    OneOf(Vec<Value>),
    /// The opposite.
    NoneOf(Vec<Value>),
    /// An amount, in millionths, that compares so.
    Compares(Bound, u64),
}

/// How amounts compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bound {
    /// It is more.
    Over,
    /// It is as much or more.
    AtLeast,
    /// It is less.
    Under,
    /// It is as much or less.
    AtMost,
}

/// Whether conditions hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holds {
    /// They do.
    Yes,
    /// One of them does not.
    No,
    /// An argument is missing or `null`, or is no amount where one is compared.
    Unknown,
}

impl Only {
    /// Whether a call with these arguments is meant. Linear in conditions and the arguments that they name.
    pub fn holds(&self, arguments: &Value) -> Holds {
        let mut all = Holds::Yes;
        for condition in &self.0 {
            match condition.holds(arguments) {
                Holds::No => return Holds::No,
                Holds::Unknown => all = Holds::Unknown,
                Holds::Yes => {}
            }
        }
        all
    }
}

impl Condition {
    fn holds(&self, arguments: &Value) -> Holds {
        let Some(value) = arguments.pointer(&self.at).filter(|value| !value.is_null()) else {
            return Holds::Unknown;
        };
        let holds = match &self.is {
            Test::OneOf(values) => is_one_of(value, values),
            Test::NoneOf(values) => !is_one_of(value, values),
            Test::Compares(bound, micros) => match amount(value) {
                Some(amount) => bound.holds(amount.cmp(micros)),
                None => return Holds::Unknown,
            },
        };
        if holds { Holds::Yes } else { Holds::No }
    }
}

impl Bound {
    fn holds(self, order: Ordering) -> bool {
        match self {
            Self::Over => order.is_gt(),
            Self::AtLeast => order.is_ge(),
            Self::Under => order.is_lt(),
            Self::AtMost => order.is_le(),
        }
    }
}

fn is_one_of(value: &Value, values: &[Value]) -> bool {
    let is = |value: &Value| values.iter().any(|wanted| are_equal(value, wanted));
    is(value) || value.as_array().is_some_and(|items| items.iter().any(is))
}

fn are_equal(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::String(one), Value::String(other)) => {
            let folded = |text: &str| text.trim().chars().flat_map(char::to_lowercase).collect::<String>();
            one == other || folded(one) == folded(other)
        }
        (Value::Number(one), Value::Number(other)) => one == other || one.as_f64() == other.as_f64(),
        _ => one == other,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn only(at: &str, is: Test) -> Only {
        Only(vec![Condition { at: at.to_owned(), is }])
    }

    #[test]
    fn values_are_compared_without_case_and_lists_by_their_items() {
        let production = only("/env", Test::OneOf(vec![json!("prod"), json!(1)]));
        for (value, wanted) in [
            (json!("prod"), Holds::Yes),
            (json!(" PROD "), Holds::Yes),
            (json!(["test", "Prod"]), Holds::Yes),
            (json!(1.0), Holds::Yes),
            (json!("production"), Holds::No),
            (json!(["test"]), Holds::No),
            (json!({"prod": 1}), Holds::No),
            (json!(null), Holds::Unknown),
        ] {
            assert_eq!(production.holds(&json!({"env": value})), wanted, "{value}");
        }
        assert_eq!(production.holds(&json!({})), Holds::Unknown);
        let elsewhere = only("/env", Test::NoneOf(vec![json!("prod")]));
        assert_eq!(elsewhere.holds(&json!({"env": ["test", "prod"]})), Holds::No);
        assert_eq!(elsewhere.holds(&json!({"env": "test"})), Holds::Yes);
        assert_eq!(elsewhere.holds(&json!({})), Holds::Unknown);
    }

    #[test]
    fn amounts_that_cannot_be_read_are_not_known() {
        for (bound, at_500) in [
            (Bound::Over, Holds::No),
            (Bound::AtLeast, Holds::Yes),
            (Bound::Under, Holds::No),
            (Bound::AtMost, Holds::Yes),
        ] {
            let large = only("/amount", Test::Compares(bound, 500_000_000));
            assert_eq!(large.holds(&json!({"amount": "500.00"})), at_500, "{bound:?}");
            assert_eq!(large.holds(&json!({"amount": "1,000"})), Holds::Unknown);
        }
    }

    #[test]
    fn all_conditions_have_to_hold_and_one_that_does_not_is_enough() {
        let mut both = only("/env", Test::OneOf(vec![json!("prod")]));
        both.0.extend(only("/amount", Test::Compares(Bound::Over, 0)).0);
        assert_eq!(both.holds(&json!({"env": "prod", "amount": 1})), Holds::Yes);
        assert_eq!(both.holds(&json!({"env": "prod"})), Holds::Unknown);
        assert_eq!(both.holds(&json!({"env": "test"})), Holds::No);
        assert_eq!(Only::default().holds(&json!({})), Holds::Yes);
    }
}
