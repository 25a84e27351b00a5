//! From an action to its effects.

use portcullis_core::action::Action;
use portcullis_core::bundle::Bundle;
use portcullis_core::effect::{EffectReader, Effects};
use portcullis_core::state::RunState;

/// Reads the effects of tool calls. See the [crate documentation](crate).
#[derive(Debug, Clone, Copy, Default)]
pub struct Reader;

impl EffectReader for Reader {
    fn read(&self, _bundle: &Bundle, _run: &RunState, _action: &Action) -> Effects {
        Effects::none()
    }
}
