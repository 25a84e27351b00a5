//! The suites on small fixtures of the same shape as the public sets, written for these tests.

#![cfg(test)]

mod mind2web_sc;
mod recorded;
mod worlds;
