//! Guards about what an action would touch.

pub mod unread;
