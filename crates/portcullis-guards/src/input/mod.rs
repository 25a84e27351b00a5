//! Guards that look at what the user says.

pub mod injection;
pub mod intent;
