//! `perform_calculation`: works out an arithmetic expression.
//!
//! ```text
//! sum     = product { ("+" | "-") product }
//! product = signed  { ("*" | "/" | "%") signed }
//! signed  = ("-" | "+") signed | power
//! power   = operand [ "^" signed ]              so 2^3^2 is 2^9, and -2^2 is -4
//! operand = number | "(" sum ")"
//! number  = digits [ "." digits ] | "." digits
//! ```
//!
//! Numbers are 64-bit binary floating point (IEEE 754); results are shown with 12 significant digits,
//! which hides the difference between binary and decimal fractions (`0.1 + 0.2` is 0.3) in sums of
//! ordinary size. `%` is the remainder with the sign of its left side. Whatever is not a finite number
//! (a division by zero, an overflow, the root of a negative number) is an error, never a result.
//!
//! Result: `{"expression", "result"}`.

use std::iter::Peekable;
use std::str::CharIndices;

use serde_json::{Value, json};

use super::{ArgumentSpec, Arguments, Tool, ToolError, ToolOutput, Workspace, quoted};

/// Longest expression, in bytes.
const MAX_EXPRESSION_BYTES: usize = 1000;
/// Deepest nesting of parentheses, signs and exponents.
const MAX_DEPTH: usize = 64;
/// Significant digits of a result.
const SIGNIFICANT_DIGITS: usize = 12;
/// Largest magnitude up to which every whole number is exact: 2^53.
const MAX_EXACT_INTEGER: f64 = 9_007_199_254_740_992.0;

pub(super) static TOOL: Tool = Tool {
    id: "perform_calculation",
    name: "Perform Calculation",
    description: "Work out an arithmetic expression: + - * / % ^, parentheses and decimal numbers.",
    read_only: true,
    destructive: false,
    idempotent: true,
    arguments: &[ArgumentSpec {
        name: "expression",
        description: "For example `(1250 - 75.5) * 12`.",
        max_bytes: MAX_EXPRESSION_BYTES,
    }],
    run,
};

/// Why an expression has no value. Columns count characters from 1.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CalculationError {
    /// Something else should stand at this column.
    #[error("expected {expected} at column {column}, found `{found}`")]
    Unexpected {
        /// Where.
        column: usize,
        /// What is there.
        found: char,
        /// What should be.
        expected: &'static str,
    },
    /// The expression ends too early.
    #[error("expected {expected} at the end")]
    Incomplete {
        /// What should follow.
        expected: &'static str,
    },
    /// A number that cannot be read, such as `1.2.3`, or is too large.
    #[error("`{text}` at column {column} is not a number, or too large")]
    Number {
        /// Where it starts.
        column: usize,
        /// The digits and points found.
        text: String,
    },
    /// A division or remainder by zero.
    #[error("division by zero at column {column}")]
    DivisionByZero {
        /// Where the operator stands.
        column: usize,
    },
    /// A value that is no finite number.
    #[error("the result of `{operator}` at column {column} is not a finite number")]
    NotFinite {
        /// Where the operator stands.
        column: usize,
        /// Which one.
        operator: char,
    },
    /// Nested too deeply.
    #[error("nested more than {MAX_DEPTH} deep at column {column}")]
    TooDeep {
        /// Where.
        column: usize,
    },
    /// Too long to read.
    #[error("longer than {MAX_EXPRESSION_BYTES} bytes")]
    TooLong,
}

fn run(_workspace: &Workspace, arguments: &Arguments<'_>) -> Result<ToolOutput, ToolError> {
    let expression = arguments.text("expression")?;
    let result = calculate(expression)
        .map_err(|error| ToolError::Calculation { expression: quoted(expression), error })?;
    let number = if result.fract() == 0.0 && result.abs() < MAX_EXACT_INTEGER {
        Value::from(result as i64)
    } else {
        Value::from(result)
    };
    Ok(ToolOutput {
        text: format!("{expression} = {number}"),
        structured: json!({"expression": expression, "result": number}),
    })
}

/// The value of `expression`, rounded to 12 significant digits.
///
/// # Errors
/// [`CalculationError`], with the column it was noticed at.
pub fn calculate(expression: &str) -> Result<f64, CalculationError> {
    if expression.len() > MAX_EXPRESSION_BYTES {
        return Err(CalculationError::TooLong);
    }
    let mut parser =
        Parser { text: expression, rest: expression.char_indices().peekable(), column: 1, depth: 0 };
    let value = parser.sum()?;
    match parser.peek() {
        Some(_) => Err(parser.unexpected("an operator")),
        None => Ok(rounded(value)),
    }
}

fn rounded(value: f64) -> f64 {
    // Formatting and reading back rounds in decimal, and adding zero makes -0 plain 0.
    let text = format!("{value:.*e}", SIGNIFICANT_DIGITS - 1);
    text.parse().unwrap_or(value) + 0.0
}

struct Parser<'a> {
    text: &'a str,
    rest: Peekable<CharIndices<'a>>,
    /// Column of the next character.
    column: usize,
    depth: usize,
}

impl Parser<'_> {
    /// The next character that is not a space.
    fn peek(&mut self) -> Option<char> {
        while self.rest.next_if(|(_, c)| c.is_ascii_whitespace()).is_some() {
            self.column += 1;
        }
        self.rest.peek().map(|(_, c)| *c)
    }

    fn advance(&mut self) {
        if self.rest.next().is_some() {
            self.column += 1;
        }
    }

    fn unexpected(&mut self, expected: &'static str) -> CalculationError {
        match self.peek() {
            Some(found) => CalculationError::Unexpected { column: self.column, found, expected },
            None => CalculationError::Incomplete { expected },
        }
    }

    /// Takes the next character if it is one of `operators`; with its column.
    fn operator(&mut self, operators: &str) -> Option<(char, usize)> {
        let next = self.peek().filter(|c| operators.contains(*c))?;
        let column = self.column;
        self.advance();
        Some((next, column))
    }

    fn sum(&mut self) -> Result<f64, CalculationError> {
        let mut value = self.product()?;
        while let Some((operator, column)) = self.operator("+-") {
            let right = self.product()?;
            value = finite(if operator == '+' { value + right } else { value - right }, operator, column)?;
        }
        Ok(value)
    }

    fn product(&mut self) -> Result<f64, CalculationError> {
        let mut value = self.signed()?;
        while let Some((operator, column)) = self.operator("*/%") {
            let right = self.signed()?;
            if operator != '*' && right == 0.0 {
                return Err(CalculationError::DivisionByZero { column });
            }
            let result = match operator {
                '*' => value * right,
                '/' => value / right,
                _ => value % right,
            };
            value = finite(result, operator, column)?;
        }
        Ok(value)
    }

    /// Every nesting passes through here, so here it is counted.
    fn signed(&mut self) -> Result<f64, CalculationError> {
        if self.depth == MAX_DEPTH {
            return Err(CalculationError::TooDeep { column: self.column });
        }
        self.depth += 1;
        let value = match self.operator("-+") {
            Some(('-', _)) => -self.signed()?,
            Some(_) => self.signed()?,
            None => self.power()?,
        };
        self.depth -= 1;
        Ok(value)
    }

    fn power(&mut self) -> Result<f64, CalculationError> {
        let base = self.operand()?;
        let Some((operator, column)) = self.operator("^") else { return Ok(base) };
        let exponent = self.signed()?;
        if base == 0.0 && exponent < 0.0 {
            return Err(CalculationError::DivisionByZero { column });
        }
        finite(base.powf(exponent), operator, column)
    }

    fn operand(&mut self) -> Result<f64, CalculationError> {
        match self.peek() {
            Some('(') => {
                self.advance();
                let value = self.sum()?;
                match self.operator(")") {
                    Some(_) => Ok(value),
                    None => Err(self.unexpected("`)` or an operator")),
                }
            }
            Some(c) if c.is_ascii_digit() || c == '.' => self.number(),
            _ => Err(self.unexpected("a number or `(`")),
        }
    }

    fn number(&mut self) -> Result<f64, CalculationError> {
        let column = self.column;
        let start = self.rest.peek().map_or(self.text.len(), |(at, _)| *at);
        while self.rest.next_if(|(_, c)| c.is_ascii_digit() || *c == '.').is_some() {
            self.column += 1;
        }
        let end = self.rest.peek().map_or(self.text.len(), |(at, _)| *at);
        let text = self.text.get(start..end).unwrap_or_default();
        match text.parse() {
            // Rust reads "1." as well; here a point needs a digit behind it. 400 digits are infinite.
            Ok(value) if !text.ends_with('.') && f64::is_finite(value) => Ok(value),
            _ => Err(CalculationError::Number { column, text: text.to_owned() }),
        }
    }
}

fn finite(value: f64, operator: char, column: usize) -> Result<f64, CalculationError> {
    if value.is_finite() { Ok(value) } else { Err(CalculationError::NotFinite { column, operator }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values() {
        for (expression, expected) in [
            ("1 + 2 * 3", 7.0),
            ("(1 + 2) * 3", 9.0),
            ("10 - 4 - 3", 3.0),
            ("48 / 4 / 3", 4.0),
            ("2 ^ 3 ^ 2", 512.0),
            ("-2 ^ 2", -4.0),
            ("2 ^ -2", 0.25),
            ("(-2) ^ 2", 4.0),
            ("2 * -3", -6.0),
            ("--2", 2.0),
            ("7 % 3", 1.0),
            ("-7 % 3", -1.0),
            ("7.5 % 2", 1.5),
            (".5 + 0.25", 0.75),
            ("0.1 + 0.2", 0.3),
            ("1240000 * 2.5 / 100", 31_000.0),
            ("45 / 48 * 100", 93.75),
            ("9 ^ 0.5", 3.0),
            ("\t1\n+ 1 ", 2.0),
        ] {
            assert_eq!(calculate(expression), Ok(expected), "{expression}");
        }
        assert!(calculate("0 * -1").unwrap().is_sign_positive());
    }

    #[test]
    fn what_has_no_value() {
        for (expression, message) in [
            ("", "expected a number or `(` at the end"),
            ("1 +", "expected a number or `(` at the end"),
            ("(1 + 2", "expected `)` or an operator at the end"),
            ("(1 2)", "expected `)` or an operator at column 4, found `2`"),
            ("1 2", "expected an operator at column 3, found `2`"),
            ("1e3", "expected an operator at column 2, found `e`"),
            ("é1", "expected a number or `(` at column 1, found `é`"),
            ("__import__('os')", "expected a number or `(` at column 1, found `_`"),
            ("1.2.3", "`1.2.3` at column 1 is not a number, or too large"),
            ("2 * 1.", "`1.` at column 5 is not a number, or too large"),
            (".", "`.` at column 1 is not a number, or too large"),
            ("1 / 0", "division by zero at column 3"),
            ("1 / (2 - 2)", "division by zero at column 3"),
            ("5 % 0", "division by zero at column 3"),
            ("0 ^ -1", "division by zero at column 3"),
            ("10 ^ 400", "the result of `^` at column 4 is not a finite number"),
            ("(-8) ^ 0.5", "the result of `^` at column 6 is not a finite number"),
            ("10 ^ 308 * 10", "the result of `*` at column 10 is not a finite number"),
        ] {
            assert_eq!(
                calculate(expression).map_err(|e| e.to_string()),
                Err(message.to_owned()),
                "{expression}"
            );
        }
        assert!(matches!(calculate(&"9".repeat(400)), Err(CalculationError::Number { column: 1, .. })));
    }

    #[test]
    fn depth_and_length_are_limited() {
        let nested = |depth: usize| format!("{}1{}", "(".repeat(depth), ")".repeat(depth));
        assert_eq!(calculate(&nested(MAX_DEPTH - 1)), Ok(1.0));
        assert!(matches!(calculate(&nested(MAX_DEPTH)), Err(CalculationError::TooDeep { .. })));
        assert!(matches!(calculate(&"-".repeat(900)), Err(CalculationError::TooDeep { .. })));
        assert!(matches!(calculate(&"1^".repeat(400)), Err(CalculationError::TooDeep { .. })));
        // A long chain is no nesting.
        assert_eq!(calculate(&format!("{}1", "1+".repeat(400))), Ok(401.0));
        assert_eq!(calculate(&"1".repeat(MAX_EXPRESSION_BYTES + 1)), Err(CalculationError::TooLong));
    }
}
