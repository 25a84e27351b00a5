//! Guards about what an action would touch.

pub mod contained;
pub mod own_state;
pub mod unread;
