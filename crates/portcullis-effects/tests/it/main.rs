//! Runs the Markdown cases under `tests/cases`.

#![cfg(test)]

mod arguments;
mod cases;

mod code;
mod contained;
mod cpu_time;
mod seen;
mod shell;
mod sql;
mod strace;
mod values;

#[test]
fn every_case_has_its_effects() {
    cases::run_all();
}
