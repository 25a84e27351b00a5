//! What a permitted command may do is made all that it can do.
//!
//! A [`Profile`] says which folders a command reads, writes and executes from, which network it has, what it sees of
//! the environment, and how much it may use. [`Contained::run`] runs a command under one, at a [`Level`], and says
//! what was [`Observed`]. A small helper program, `portcullis-contain`, takes the powers away and starts the command;
//! it is the function [`helper`] of this crate. [`probe`] runs every step and says which one fails on this machine.
//!
//! Linux only: elsewhere everything answers [`ContainError::NotSupported`].

pub mod address;
#[cfg(unix)]
mod companion;
mod error;
mod explain;
#[cfg_attr(not(target_os = "linux"), allow(dead_code))]
mod git;
mod learn;
#[cfg_attr(not(target_os = "linux"), allow(dead_code))]
mod links;
mod network;
mod present;
mod profile;
#[cfg_attr(not(target_os = "linux"), allow(dead_code))]
mod protected;
mod step;

#[cfg(not(target_os = "linux"))]
mod elsewhere;
#[cfg(target_os = "linux")]
mod linux;

#[cfg(not(target_os = "linux"))]
pub use elsewhere::{Contained, helper, probe};
#[cfg(target_os = "linux")]
pub use linux::{Contained, helper, probe};

#[cfg(unix)]
pub use companion::{Companion, CompanionError};
pub use error::ContainError;
pub use explain::explain;
pub use learn::{Did, Drafted, draft};
pub use network::{Names, OnConnection, SystemNames};
pub use portcullis_core::host::HostRule;
pub use portcullis_core::observed::{
    Attempt, AttemptWhat, Connection, ConnectionVerdict, Ended, FileChange, FileChangeHow, Files, Limit,
    Observed, Program, Programs, PutBack, PutBackHow, Refused, Seen,
};
pub use portcullis_core::profile::{
    Background, Git, Level, Limits, Network, Places, Profile, Sockets, VERSION, Watch,
};
pub use profile::{Invocation, Missing, Output, parse, project, settle};
pub use step::{Probe, Step};
