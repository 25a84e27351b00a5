//! What is read of a stored run when it is taken up. Blocks: always off the async threads.

use portcullis_core::aside::{DIGEST_KEY, ERASED, SCOPE};
use portcullis_core::event::{Event, EventBody, Parent, RunOpened};
use portcullis_core::id::RunId;
use portcullis_core::kept::STATE;
use portcullis_core::limits::{DEPTH_MAX, EVENTS_COUNTED_MAX};
use portcullis_core::memory::Texts;
use portcullis_core::state::{Phase, RunState};
use portcullis_core::usage::Used;
use portcullis_core::work::WORK;
use portcullis_ledger::Reader;

use crate::delegated::{Weights, used_by};
use crate::engine::{ChildEnd, Engine};
use crate::error::SessionError;
use crate::run::digest_of;

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
        let bears_on_state =
            [DIGEST_KEY, SCOPE, WORK, STATE].iter().any(|name| event.payloads.contains_key(*name));
        let read = event.seq > remembered || bears_on_state;
        let texts = if read { texts_of(reader, id, &event)? } else { Texts::new() };
        let words = event.aside_name().and_then(|name| texts.get(name));
        event.join(words.map(String::as_str), ERASED);
        engine.recall(&event, &texts);
        Ok(())
    })?;
    Ok(engine)
}

/// The runs above a run with this parent, the nearest first.
pub(super) fn lineage(reader: &dyn Reader, parent: Option<Parent>) -> Result<Vec<RunId>, SessionError> {
    let (mut above, mut next) = (Vec::new(), parent);
    while let Some(parent) = next {
        if above.len() >= DEPTH_MAX as usize {
            return Err(SessionError::OutOfStep(parent.run));
        }
        above.push(parent.run);
        next = opening_of(reader, parent.run)?.parent;
    }
    Ok(above)
}

/// What all runs below a run have used up, by their stored events. `children` are those that it opened.
pub(super) fn used_below(
    reader: &dyn Reader,
    mut children: Vec<RunId>,
    weights: &Weights,
) -> Result<Used, String> {
    let (mut used, mut events) = (Used::default(), 0);
    while let Some(run) = children.pop() {
        let mut state = RunState::new();
        each_event(reader, run, |event| {
            events += 1;
            if events <= EVENTS_COUNTED_MAX {
                let weigh = |tool: &str| weights.of(tool);
                used = used.plus(used_by(&state, std::slice::from_ref(&event), &weigh));
                state.apply(&event);
            }
            Ok(())
        })
        .map_err(|error| error.to_string())?;
        if events > EVENTS_COUNTED_MAX {
            return Err(format!(
                "the runs below have more than {EVENTS_COUNTED_MAX} events, which is the limit"
            ));
        }
        children.extend(state.children().iter().map(|(child, _)| child));
    }
    Ok(used)
}

/// How a stored run ended, or `None` if it has not. A run without any event never began.
pub(super) fn end_of(reader: &dyn Reader, run: RunId) -> Result<Option<ChildEnd>, SessionError> {
    let Some(head) = reader.head(run)?.filter(|head| head.count > 0) else {
        return Ok(Some(ChildEnd::never_began(run)));
    };
    let (mut state, mut reply) = (RunState::new(), None);
    each_event(reader, run, |event| {
        state.apply(&event);
        if matches!(event.body, EventBody::Output {}) {
            reply = event.payloads.get("text").map(|payload| payload.commitment);
        }
        Ok(())
    })?;
    let Phase::Closed(how) = state.phase() else { return Ok(None) };
    let reply = match reply {
        Some(commitment) => reader.payload(run, commitment)?,
        None => None,
    };
    Ok(Some(ChildEnd {
        run,
        state: *how,
        count: head.count,
        link: Some(digest_of(head.link)),
        labels: state.labels().clone(),
        reply: reply.and_then(|reply| String::from_utf8(reply.bytes().to_vec()).ok()),
    }))
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
