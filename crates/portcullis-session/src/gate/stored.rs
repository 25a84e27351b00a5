//! What is read of a stored run when it is taken up. Blocks: always off the async threads.

use portcullis_core::aside::{DIGEST_KEY, ERASED, SCOPE};
use portcullis_core::event::{Event, EventBody, RunOpened};
use portcullis_core::id::RunId;
use portcullis_core::memory::Texts;
use portcullis_ledger::Reader;

use crate::engine::Engine;
use crate::error::SessionError;

/// Events read at a time.
const PAGE: usize = 1_000;
/// Latest events whose texts are read again, which is what the caller waits for.
const EVENTS_RECALLED_MAX: u64 = 1_000;

/// How a stored run began. Its principal and its policy stay the same for life.
pub(super) fn opening_of(reader: &dyn Reader, id: RunId) -> Result<RunOpened, SessionError> {
    let first = reader.events(id, 0, 1)?;
    let event = first.first().and_then(|stored| Event::from_line(&stored.line).ok());
    match event.map(|event| event.body) {
        Some(EventBody::RunOpened(opened)) => Ok(opened),
        _ => Err(SessionError::UnknownRun(id.to_string())),
    }
}

/// The engine with the state that the run's `count` events add up to. What was changed since it was stored is not
/// believed.
pub(super) fn recalled(reader: &dyn Reader, mut engine: Engine, count: u64) -> Result<Engine, SessionError> {
    let id = engine.run();
    reader.verify_run(id)?;
    // Earlier texts count as erased: values from them have an unknown origin.
    let remembered = count.saturating_sub(EVENTS_RECALLED_MAX);
    each_event(reader, id, |mut event| {
        let bears_on_state = [DIGEST_KEY, SCOPE].iter().any(|name| event.payloads.contains_key(*name));
        let read = event.seq > remembered || bears_on_state;
        let texts = if read { texts_of(reader, id, &event)? } else { Texts::new() };
        let words = event.aside_name().and_then(|name| texts.get(name));
        event.join(words.map(String::as_str), ERASED);
        engine.recall(&event, &texts);
        Ok(())
    })?;
    Ok(engine)
}

/// Shows the stored events of a run in order.
fn each_event(
    reader: &dyn Reader,
    id: RunId,
    mut show: impl FnMut(Event) -> Result<(), SessionError>,
) -> Result<(), SessionError> {
    let mut seen = 0;
    loop {
        let page = reader.events(id, seen, PAGE)?;
        if page.is_empty() {
            return Ok(());
        }
        for stored in &page {
            let event = Event::from_line(&stored.line).map_err(|_| SessionError::OutOfStep(id))?;
            if event.seq != stored.seq || event.seq <= seen {
                return Err(SessionError::OutOfStep(id));
            }
            seen = event.seq;
            show(event)?;
        }
    }
}

/// The texts of a stored event that are still there.
fn texts_of(reader: &dyn Reader, id: RunId, event: &Event) -> Result<Texts, SessionError> {
    let mut texts = Texts::new();
    for (name, payload) in &event.payloads {
        let stored = reader.payload(id, payload.commitment)?;
        if let Some(text) = stored.and_then(|stored| String::from_utf8(stored.bytes().to_vec()).ok()) {
            texts.insert(name.clone(), text);
        }
    }
    Ok(texts)
}
