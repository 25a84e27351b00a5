//! Guards that hold a call against the tool registry.

pub mod args_schema;
pub mod changed_tool;
pub mod disabled_tool;
pub mod unknown_tool;
