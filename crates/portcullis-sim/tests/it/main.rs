//! Integration tests of the simulator's parts.

#[cfg(test)]
mod opinions;
#[cfg(test)]
mod replay;
#[cfg(test)]
mod shipped_bundle;
#[cfg(test)]
mod simulator;
