//! Which runs a stored run was opened by, and which it opened.

use portcullis_core::event::{ConfigChange, Event, EventBody};
use portcullis_core::id::RunId;

use crate::error::LedgerError;
use crate::ledger::Reader;

/// Events read at a time.
const PAGE: usize = 1_000;
/// What the line of an event has that names a run, by which most others are passed over unread.
const NAMED: [&str; 2] = ["run-opened", "child-"];

/// The runs around a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Kin {
    /// The run that opened it, if another one did.
    pub parent: Option<RunId>,
    /// The runs that it opened and that began, in order.
    pub children: Vec<RunId>,
}

impl Kin {
    /// Reads them from the events of a run. Linear in the run.
    ///
    /// # Errors
    /// [`LedgerError`]: the run cannot be read.
    pub fn of(reader: &dyn Reader, run: RunId) -> Result<Self, LedgerError> {
        let (mut kin, mut after) = (Self::default(), 0);
        loop {
            let page = reader.events(run, after, PAGE)?;
            let Some(last) = page.last() else { return Ok(kin) };
            after = last.seq;
            for stored in &page {
                let named = str::from_utf8(&stored.line)
                    .is_ok_and(|line| NAMED.iter().any(|name| line.contains(name)));
                if !named {
                    continue;
                }
                let Ok(event) = Event::from_line(&stored.line) else { continue };
                match event.body {
                    EventBody::RunOpened(opened) => kin.parent = opened.parent.map(|parent| parent.run),
                    EventBody::Config(ConfigChange::ChildOpened { run }) => kin.children.push(run),
                    EventBody::Config(ConfigChange::ChildClosed { run, count: 0, .. }) => {
                        kin.children.retain(|child| *child != run);
                    }
                    _ => {}
                }
            }
        }
    }
}
