//! Who may want a call, to this target, with this content. The judgement is that of `portcullis-trajectory`.

pub mod authority;
pub mod planted_order;
pub mod second_opinion;
