//! The `portcullis` binary.

fn main() {}
