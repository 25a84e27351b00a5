//! What the tools of a registry do, read once for all runs.

use std::sync::Arc;

use portcullis_core::tool::{Registry, Tool};

use crate::argument_name::ArgumentNames;
use crate::kind::{CallKind, ToolView};
use crate::lexicon::Lexicon;

/// The kinds of the tools of a registry, in its order.
#[derive(Debug)]
pub struct Toolset {
    lexicon: Arc<Lexicon>,
    kinds: Vec<Arc<CallKind>>,
    /// The same of calls that use the tool's id.
    by_id: Vec<Arc<CallKind>>,
    names: ArgumentNames,
}

impl Toolset {
    /// Of a registry: read when it is first asked for, then kept beside it. O(1) but for the first time.
    pub fn of(lexicon: &Arc<Lexicon>, registry: &Registry) -> Arc<Self> {
        let read = |registry: &Registry| {
            let names = ArgumentNames::of_tools(lexicon, registry.iter());
            let mut read = Self { lexicon: Arc::clone(lexicon), kinds: Vec::new(), by_id: Vec::new(), names };
            for tool in registry.iter() {
                let kind = Arc::new(CallKind::of(lexicon, &view(tool)));
                read.by_id.push(match kind.is_named(&tool.id) {
                    true => Arc::clone(&kind),
                    false => Arc::new(CallKind::of(lexicon, &ToolView { name: &tool.id, ..view(tool) })),
                });
                read.kinds.push(kind);
            }
            read
        };
        // By other words tools are of other kinds.
        let kept = registry.derived(read).filter(|kept| Arc::ptr_eq(&kept.lexicon, lexicon));
        kept.unwrap_or_else(|| Arc::new(read(registry)))
    }

    /// The names of their arguments.
    pub(crate) fn names(&self) -> &ArgumentNames {
        &self.names
    }

    /// The kind of the calls of the tool with that name.
    pub fn kind(&self, registry: &Registry, name: &str) -> Arc<CallKind> {
        let kept = |kinds: &[Arc<CallKind>]| kinds.get(registry.position(name)?).map(Arc::clone);
        let known = match registry.get(name) {
            Some(tool) if tool.name == name => kept(&self.kinds),
            Some(tool) if tool.id == name => kept(&self.by_id),
            _ => None,
        };
        known.unwrap_or_else(|| Arc::new(CallKind::of(&self.lexicon, &ToolView::unknown(name))))
    }
}

fn view(tool: &Tool) -> ToolView<'_> {
    ToolView {
        name: &tool.name,
        description: &tool.description,
        tool_type: &tool.tool_type,
        side_effecting: tool.side_effecting,
        declared: !tool.inferred,
    }
}
