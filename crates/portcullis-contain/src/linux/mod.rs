//! Containment on Linux: the supervisor's side, and `helper/`, which runs in a process of its own.

mod files;
mod git;
mod helper;
mod keep;
mod order;
mod place;
mod probe;
mod proxy;
mod relay;
mod run;
mod sockets;
mod wait;

pub use helper::main as helper;
pub use probe::probe;
pub use run::Contained;
