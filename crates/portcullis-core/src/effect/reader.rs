//! Who reads the effects of an action, and when.

use std::cell::OnceCell;
use std::fmt;

use super::{Effects, Resource, ResourceKind};
use crate::action::Action;
use crate::bundle::Bundle;
use crate::state::RunState;

/// Reads effects from an action. Pure, total and bounded.
pub trait EffectReader: Send + Sync + fmt::Debug {
    /// What the action would touch.
    fn read(&self, bundle: &Bundle, run: &RunState, action: &Action) -> Effects;

    /// The resource that an absolute path is, with what is known of such paths. A reader that does not say so knows
    /// nothing of them.
    fn path(&self, _bundle: &Bundle, _run: &RunState, path: &str) -> Resource {
        Resource::new(ResourceKind::Path, path)
    }
}

/// The effects of the pending action, read when the first guard asks for them and only then.
#[derive(Debug)]
pub struct LazyEffects<'a> {
    source: Option<(&'a dyn EffectReader, &'a Bundle, &'a RunState, &'a Action)>,
    read: OnceCell<Effects>,
}

impl<'a> LazyEffects<'a> {
    /// The effects of a subject without effects.
    pub const fn none() -> Self {
        Self { source: None, read: OnceCell::new() }
    }

    /// Effects that `reader` will find in `action`.
    pub fn of(
        reader: &'a dyn EffectReader,
        bundle: &'a Bundle,
        run: &'a RunState,
        action: &'a Action,
    ) -> Self {
        Self { source: Some((reader, bundle, run, action)), read: OnceCell::new() }
    }

    /// The effects. The first call costs what the parsers cost, further ones nothing.
    pub fn get(&self) -> &Effects {
        self.read.get_or_init(|| match self.source {
            Some((reader, bundle, run, action)) => reader.read(bundle, run, action),
            None => Effects::none(),
        })
    }
}
