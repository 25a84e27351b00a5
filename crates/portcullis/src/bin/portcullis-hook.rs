//! `portcullis-hook`: what `portcullis hook install` writes into a client's settings. It is a program of this package so
//! that it is always built and installed beside `portcullis`, which it hands over to.

#[path = "../version.rs"]
mod version;

fn main() -> std::process::ExitCode {
    version::answered("portcullis-hook").unwrap_or_else(portcullis_hook::main)
}
