//! Guards that look at what the user says.

pub mod intent;
