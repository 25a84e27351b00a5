//! Guards about approvals.

pub mod refused;
