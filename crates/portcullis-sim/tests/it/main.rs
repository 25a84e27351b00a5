//! Integration tests of the simulator's parts.

#[cfg(test)]
mod shipped_bundle;
mod simulator;
