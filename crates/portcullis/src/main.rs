//! The `portcullis` binary: arguments and wiring, nothing else.
//!
//! Each command has a file under `commands/`. It returns an exit code or a [`failure::Failure`]; what it
//! prints goes through [`out::Out`]. Exit codes are the same everywhere: see [`exit`].

mod advice;
mod archive;
mod ask;
mod bundle;
mod cli;
mod commands;
mod daemon;
mod exit;
mod failure;
mod input;
mod model;
mod out;
mod trust;

use std::process::ExitCode;

/// With musl's own allocator, threads wait for each other at each allocation.
#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    cli::run(std::env::args_os())
}
