//! Integration tests of the binary: every command as a user runs it.

#[cfg(test)]
mod assisted;
#[cfg(test)]
mod auditor;
#[cfg(test)]
mod backup;
#[cfg(test)]
mod bench;
#[cfg(test)]
#[expect(dead_code, reason = "the tests of single pages use the rest of it")]
#[path = "../../../portcullis-gateway/tests/it/console/browser.rs"]
mod browser;
#[cfg(test)]
mod check;
#[cfg(test)]
mod command;
#[cfg(test)]
mod compile;
#[cfg(test)]
mod completions;
#[cfg(test)]
mod console;
#[cfg(test)]
mod contain;
#[cfg(test)]
mod contained_server;
#[cfg(test)]
mod contract;
#[cfg(test)]
mod crash;
#[cfg(test)]
mod daemon;
#[cfg(test)]
mod delegation;
#[cfg(test)]
mod display;
#[cfg(test)]
mod drafted;
#[cfg(test)]
mod engines;
#[cfg(test)]
mod erase;
#[cfg(target_os = "linux")]
#[cfg(test)]
#[path = "../../../portcullis-contain/tests/it/expected.rs"]
mod expected;
#[cfg(test)]
mod freeze;
#[cfg(test)]
mod general;
#[cfg(test)]
mod governance;
#[cfg(test)]
mod guardagent;
#[cfg(test)]
mod hook;
#[cfg(test)]
mod in_force;
#[cfg(test)]
mod log;
#[cfg(test)]
mod mcp_http;
#[cfg(test)]
mod messages;
#[cfg(test)]
mod monitor;
#[cfg(test)]
mod payloads;
#[cfg(test)]
mod peers;
#[cfg(test)]
mod peers_conformance;
#[cfg(test)]
mod peers_generations;
#[cfg(test)]
mod peers_kept;
#[cfg(test)]
mod peers_others;
#[cfg(test)]
mod peers_remote;
#[cfg(test)]
mod peers_work;
#[cfg(test)]
mod policy;
#[cfg(test)]
mod program;
#[cfg(test)]
mod promote;
#[cfg(test)]
mod restored;
#[cfg(test)]
mod signals;
#[cfg(test)]
mod stand_in;
#[cfg(test)]
mod standing;
#[cfg(test)]
mod tools;
#[cfg(test)]
mod upgrade;
#[cfg(test)]
mod upstream;
#[cfg(test)]
mod verify;
#[cfg(test)]
mod verify_inputs;
#[cfg(test)]
mod verify_output;
#[cfg(test)]
mod verify_replay;
#[cfg(test)]
mod version;
#[cfg(test)]
mod watch;
#[cfg(test)]
mod witness;
#[cfg(test)]
mod work;
#[cfg(test)]
mod worlds;

#[cfg(test)]
#[path = "../../../../engines/for_tests.rs"]
mod engine;
