//! The grey zone: reasons against a call about which a second opinion may be asked for.

use crate::judge::Reason;
use crate::table::{Consequence, Content, Explained, Weight};

impl Reason {
    /// Whether it is a hold on one kind of evidence alone, about an act that can be put right: where a second opinion may be
    /// asked for. Posing and credentials never are.
    #[must_use]
    pub fn is_grey(&self) -> bool {
        self.row.weight == Weight::Hold
            && self.inputs.consequence == Consequence::Ordinary
            && self.inputs.content < Content::Secret
            && self.inputs.explained < Explained::ByPosing
            && self.inputs.evidence() == 1
    }
}
