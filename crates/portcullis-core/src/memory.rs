//! What guards remember of a run beyond [`RunState`](crate::state::RunState): its texts.
//!
//! `RunState` counts; a [`Memory`] knows what was said. It too is a fold over the events of the run, here together
//! with the texts that belong to them, so anyone who holds the record of a run can build it again. If a text was
//! erased, the memory learns that it existed, and values from it have an unknown origin from then on.
//!
//! Reading a text is the expensive part and both judging and remembering need it, so it is done once:
//! [`Memory::read`] looks at what is pending, guards see the result through [`Context::reading`], and the same result
//! comes back to [`Memory::record`] with the event.
//!
//! [`Context::reading`]: crate::guard::Context::reading

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::fmt;

use crate::action::Pending;
use crate::bundle::Bundle;
use crate::event::Event;

/// The texts of an event by the name of their payload (`text`, `arguments`, `planned`, `content`, ...). A payload
/// that is named in the event and not here was erased, or is not a text.
pub type Texts = BTreeMap<String, String>;

/// What is remembered of one run. Bounded, and O(new text) an event.
///
/// Guards are written for the memory that they ask, a pipeline for the memory of its guards.
pub trait Memory: Send + Sync + fmt::Debug {
    /// The result of reading a pending text.
    type Reading: fmt::Debug;

    /// Reads what is pending. Pure; sees everything that was recorded before.
    fn read(&self, bundle: &Bundle, pending: &Pending<'_>) -> Self::Reading;

    /// Takes one more event into account. `reading` is the result of [`Self::read`] for this text, if it was judged
    /// just before; without it, such as when a stored run is resumed, the text is read here.
    fn record(&mut self, bundle: &Bundle, event: &Event, texts: &Texts, reading: Option<Self::Reading>);
}

/// The memory of guards that ask for none.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoMemory;

impl Memory for NoMemory {
    type Reading = ();

    fn read(&self, _bundle: &Bundle, _pending: &Pending<'_>) {}

    fn record(&mut self, _bundle: &Bundle, _event: &Event, _texts: &Texts, _reading: Option<()>) {}
}

/// Begins memories.
pub trait Remember<M>: Send + Sync + fmt::Debug {
    /// The memory of a run of which nothing is known yet.
    fn begin(&self) -> M;
}

/// The reading of what is pending, made when the first guard asks for it, and at the latest when it is recorded.
#[derive(Debug)]
pub struct LazyReading<'a, M: Memory> {
    source: Option<(&'a M, &'a Bundle, Pending<'a>)>,
    read: OnceCell<M::Reading>,
}

impl<'a, M: Memory> LazyReading<'a, M> {
    /// A reading without a memory: there is none.
    pub const fn none() -> Self {
        Self { source: None, read: OnceCell::new() }
    }

    /// What `memory` will read in `pending`.
    pub fn of(memory: &'a M, bundle: &'a Bundle, pending: Pending<'a>) -> Self {
        Self { source: Some((memory, bundle, pending)), read: OnceCell::new() }
    }

    /// The memory.
    pub fn memory(&self) -> Option<&'a M> {
        self.source.as_ref().map(|(memory, ..)| *memory)
    }

    /// The reading; the first call makes it.
    pub fn get(&self) -> Option<&M::Reading> {
        let (memory, bundle, pending) = self.source.as_ref()?;
        Some(self.read.get_or_init(|| memory.read(bundle, pending)))
    }

    /// The reading, for the record, or `None` if no guard asked for it.
    pub fn into_reading(self) -> Option<M::Reading> {
        self.read.into_inner()
    }
}
