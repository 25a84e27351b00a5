//! What the tools of a registry do, read once for all runs.

use std::sync::Arc;

use portcullis_core::tool::{Registry, Tool};

use crate::kind::{CallKind, ToolView};
use crate::lexicon::Lexicon;

/// The kinds of the tools of a registry, in its order.
#[derive(Debug)]
pub struct Toolset {
    lexicon: Arc<Lexicon>,
    kinds: Vec<CallKind>,
}

impl Toolset {
    /// Of a registry: read when it is first asked for, then kept beside it. O(1) but for the first time.
    pub fn of(lexicon: &Arc<Lexicon>, registry: &Registry) -> Arc<Self> {
        let read = |registry: &Registry| Self {
            lexicon: Arc::clone(lexicon),
            kinds: registry.iter().map(|tool| CallKind::of(lexicon, &view(tool))).collect(),
        };
        // By other words tools are of other kinds.
        let kept = registry.derived(read).filter(|kept| Arc::ptr_eq(&kept.lexicon, lexicon));
        kept.unwrap_or_else(|| Arc::new(read(registry)))
    }

    /// All kinds, in the order of the registry.
    pub fn kinds(&self) -> &[CallKind] {
        &self.kinds
    }

    /// The kind of the calls of the tool with that name.
    pub fn kind(&self, registry: &Registry, name: &str) -> CallKind {
        let known =
            registry.position(name).and_then(|at| self.kinds.get(at)).filter(|kind| kind.is_named(name));
        known.cloned().unwrap_or_else(|| {
            let tool =
                registry.get(name).map_or(ToolView::unknown(name), |tool| ToolView { name, ..view(tool) });
            CallKind::of(&self.lexicon, &tool)
        })
    }
}

fn view(tool: &Tool) -> ToolView<'_> {
    ToolView {
        name: &tool.name,
        description: &tool.description,
        tool_type: &tool.tool_type,
        side_effecting: tool.side_effecting,
    }
}
