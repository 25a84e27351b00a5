//! The crate from outside: statements in many wordings, checkers on texts, repairs and conflicts.
#![cfg(test)]

mod statements;
