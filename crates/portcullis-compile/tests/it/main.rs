//! Requests in operators' English, compiled and executed.
#![cfg(test)]

mod requests;

#[path = "../../../../engines/for_tests.rs"]
mod engine;

/// Puts the engine of guard programs beside the test.
fn install() {
    let program = std::env::current_exe().unwrap();
    engine::put_into(program.canonicalize().unwrap().parent().unwrap());
}
