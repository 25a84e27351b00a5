//! The crate from outside: statements in many wordings, checkers on texts, repairs and conflicts.
#![cfg(test)]

mod checks;
mod conflicts;
mod documents;
mod properties;
mod repairs;
mod statements;
mod verify;
