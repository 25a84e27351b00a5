//! Runs guard programs in Starlark, for `portcullis`.
//!
//! The gate starts a few of these beforehand and talks to each over its standard input and output (`specs/program-worker.md`):
//! programs are loaded once, then checked against one action after the other, all of them in one round trip. The library's
//! own limits are checked now and then and hold against no single large built-in, so they are here for their clear
//! messages alone. What is relied on is the operating system: before the first program is read, the process has given up
//! files, network, further processes and memory, and the gate ends it when it is late.

mod confine;
mod convert;
mod frames;
mod pipes;
mod program;
mod toolbox;
mod worker;

use std::io::Write as _;
use std::process::ExitCode;

/// The evaluator is recursive. Programs meet the limits of calls and of nesting long before this one.
const STACK_BYTES: usize = 8 << 20;
/// Not given up what had to be.
const NOT_CONFINED: u8 = 3;
/// What was said was not of the protocol.
const NOT_OURS: u8 = 2;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    match arguments.next().as_ref().and_then(|argument| argument.to_str()) {
        Some("worker") => {}
        Some("toolbox") => {
            let written = std::io::stdout().write_all(toolbox::manual().as_bytes());
            return if written.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
        }
        Some("--version") => {
            let version = concat!("portcullis-starlark ", env!("PORTCULLIS_VERSION"), "\n");
            let written = std::io::stdout().write_all(version.as_bytes());
            return if written.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
        }
        _ => {
            let text = "portcullis-starlark runs guard programs for `portcullis`, which starts it: `portcullis program run FILE --action FILE.json`\n`portcullis-starlark toolbox` prints what programs may call\n";
            let _closed = std::io::stderr().write_all(text.as_bytes());
            return ExitCode::from(64);
        }
    }
    // A panic ends the worker, which the gate takes for a denial: what was going on in it is not to be believed any more.
    std::panic::set_hook(Box::new(|_| std::process::abort()));
    let serving = std::thread::Builder::new().stack_size(STACK_BYTES).spawn(serve);
    let served = serving.map(std::thread::JoinHandle::join);
    match served {
        Ok(Ok(code)) => ExitCode::from(code),
        _ => ExitCode::FAILURE,
    }
}

fn serve() -> u8 {
    let mut worker = worker::Worker::new();
    // What is made at first use is made before the limits, which are counted from there.
    worker.warm_up();
    let questions = pipes::Questions::new().map_err(|error| format!("standard input: {error}"));
    let questions = match questions.and_then(|questions| confine::confine().map(|()| questions)) {
        Ok(questions) => questions,
        Err(why) => {
            let _closed = std::io::stderr().write_all(format!("not confined: {why}\n").as_bytes());
            return NOT_CONFINED;
        }
    };
    match worker.serve(questions) {
        Ok(()) => 0,
        Err(_) => NOT_OURS,
    }
}
