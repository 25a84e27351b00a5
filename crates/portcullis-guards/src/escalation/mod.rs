//! Guards that turn signals into a level.

pub mod table;
