//! Guards that look at what something contained was seen to do.

pub mod more;
