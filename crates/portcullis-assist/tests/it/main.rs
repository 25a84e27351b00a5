//! Client, cassettes, detection, repair and guard programs over real HTTP, against a scripted stand-in for a language model.
#![cfg(test)]

mod cassette;
mod client;
mod closed;
mod guardagent;
mod stand_in;
mod strategies;
mod tls;
mod vectors;
