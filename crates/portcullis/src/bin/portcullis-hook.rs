//! `portcullis-hook`: what `portcullis hook install` writes into a client's settings. It is a program of this package so
//! that it is always built and installed beside `portcullis`, which it hands over to.

fn main() -> std::process::ExitCode {
    portcullis_hook::main()
}
