//! Tests of governance packs as files.

#[cfg(test)]
mod vectors;
