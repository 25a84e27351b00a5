//! Client, cassettes, detection and repair over real HTTP, against a scripted stand-in for a language model.
#![cfg(test)]

mod cassette;
mod client;
mod closed;
mod stand_in;
mod strategies;
mod tls;
mod vectors;
