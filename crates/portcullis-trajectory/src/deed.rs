//! What is done, in the nine words that verdicts are about.

/// What a call does, as far as its tool's name says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Deed {
    /// Makes something known to the agent, and changes nothing.
    Read,
    /// Goes to what a URL names.
    Visit,
    /// Changes something.
    Change,
    /// Runs a program.
    Execute,
    /// Something leaves for someone.
    Send,
    /// Money is moved or committed.
    Pay,
    /// Something ends or is removed.
    Delete,
    /// Someone may do more than before, or a protection is given up.
    Grant,
    /// Something or someone stops working, or stops being heard.
    Disable,
}

impl Deed {
    /// The deed of this name in the data.
    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
            "read" => Self::Read,
            "visit" => Self::Visit,
            "change" => Self::Change,
            "execute" => Self::Execute,
            "send" => Self::Send,
            "pay" => Self::Pay,
            "delete" => Self::Delete,
            "grant" => Self::Grant,
            "disable" => Self::Disable,
            _ => return None,
        })
    }

    /// Its name in the data.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Visit => "visit",
            Self::Change => "change",
            Self::Execute => "execute",
            Self::Send => "send",
            Self::Pay => "pay",
            Self::Delete => "delete",
            Self::Grant => "grant",
            Self::Disable => "disable",
        }
    }

    /// Whether it changes something by itself.
    pub const fn changes(self) -> bool {
        !matches!(self, Self::Read | Self::Visit)
    }

    /// Whether it is grave whatever it is done to.
    pub const fn is_grave(self) -> bool {
        matches!(self, Self::Pay | Self::Delete | Self::Grant | Self::Disable)
    }
}
