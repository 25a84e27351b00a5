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

use std::any::Any;
use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::fmt;

use crate::action::Pending;
use crate::bundle::Bundle;
use crate::event::Event;

/// The result of reading a pending text. Only the memory and the guards that use it know its type.
pub struct Reading(Box<dyn Any + Send + Sync>);

impl Reading {
    /// Wraps what was read.
    pub fn new<T: Any + Send + Sync>(read: T) -> Self {
        Self(Box::new(read))
    }

    /// What was read, if it is of this type.
    pub fn get<T: Any>(&self) -> Option<&T> {
        self.0.downcast_ref()
    }

    /// Takes what was read, if it is of this type.
    pub fn take<T: Any>(self) -> Option<T> {
        self.0.downcast().ok().map(|read| *read)
    }
}

impl fmt::Debug for Reading {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Reading(..)")
    }
}

/// The texts of an event by the name of their payload (`text`, `arguments`, `planned`, `content`, ...). A payload
/// that is named in the event and not here was erased, or is not a text.
pub type Texts = BTreeMap<String, String>;

/// What is remembered of one run. Bounded, and O(new text) an event.
pub trait Memory: Any + Send + Sync + fmt::Debug {
    /// Reads what is pending. Pure; sees everything that was recorded before.
    fn read(&self, bundle: &Bundle, pending: &Pending<'_>) -> Reading;

    /// Takes one more event into account. `reading` is the result of [`Self::read`] for this text, if it was judged
    /// just before; without it, such as when a stored run is resumed, the text is read here.
    fn record(&mut self, bundle: &Bundle, event: &Event, texts: &Texts, reading: Option<Reading>);
}

/// Begins memories.
pub trait Remember: Send + Sync + fmt::Debug {
    /// The memory of a run of which nothing is known yet.
    fn begin(&self) -> Box<dyn Memory>;
}

/// The reading of what is pending, made when the first guard asks for it, and at the latest when it is recorded.
#[derive(Debug)]
pub struct LazyReading<'a> {
    source: Option<(&'a dyn Memory, &'a Bundle, Pending<'a>)>,
    read: OnceCell<Reading>,
}

impl<'a> LazyReading<'a> {
    /// A reading without a memory: there is none.
    pub const fn none() -> Self {
        Self { source: None, read: OnceCell::new() }
    }

    /// What `memory` will read in `pending`.
    pub fn of(memory: &'a dyn Memory, bundle: &'a Bundle, pending: Pending<'a>) -> Self {
        Self { source: Some((memory, bundle, pending)), read: OnceCell::new() }
    }

    /// The memory.
    pub fn memory(&self) -> Option<&'a dyn Memory> {
        self.source.as_ref().map(|(memory, ..)| *memory)
    }

    /// The reading; the first call makes it.
    pub fn get(&self) -> Option<&Reading> {
        let (memory, bundle, pending) = self.source.as_ref()?;
        Some(self.read.get_or_init(|| memory.read(bundle, pending)))
    }

    /// The reading, for the record, or `None` if no guard asked for it.
    pub fn into_reading(self) -> Option<Reading> {
        self.read.into_inner()
    }
}
