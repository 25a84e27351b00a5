//! Containment, tried with real programs: what gets out, what is left, and what limits do.

#![cfg(target_os = "linux")]

#[cfg(test)]
mod branches;
#[cfg(test)]
mod day;
#[cfg(test)]
mod escape;
#[cfg(test)]
mod expected;
#[cfg(test)]
mod limits;
#[cfg(test)]
mod network;
#[cfg(test)]
mod predicted;
#[cfg(test)]
mod servers;
#[cfg(test)]
mod watch;
#[cfg(test)]
mod without;
#[cfg(test)]
mod world;
