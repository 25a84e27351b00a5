//! Inference of a tool's classification. (Types used by the registry; the function itself is being written.)

/// What an argument of a tool may hold.
pub const EFFECTS: [&str; 7] = ["sql", "shell", "path", "url", "email", "money", "code"];

/// Tool types that inference can answer, besides the seed's six.
pub const TOOL_TYPES: [&str; 5] = ["EXECUTE", "PAY", "DELETE", "MODIFY", "OTHER"];

/// An argument and what it holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EffectArgument {
    /// Name of the argument.
    pub argument: String,
    /// One of [`EFFECTS`].
    pub effect: String,
}
