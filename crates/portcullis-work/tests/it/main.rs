//! Criteria, checked in a folder with a real repository and with real programs.

#![cfg(target_os = "linux")]

#[cfg(test)]
mod checks;
#[cfg(test)]
mod escapes;
#[cfg(test)]
#[path = "../../../portcullis-contain/tests/it/expected.rs"]
mod expected;
#[cfg(test)]
mod server;
#[cfg(test)]
mod web;
#[cfg(test)]
mod world;
