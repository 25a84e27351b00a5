//! Runs the Markdown cases under `tests/cases`.

#![cfg(test)]

mod cases;
mod sql;
mod strace;

#[test]
fn every_case_has_its_effects() {
    cases::run_all();
}
