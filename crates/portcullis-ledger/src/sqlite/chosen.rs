//! Which payloads are erased: those that were asked for, and those that were made of them.
//!
//! What guards say of arguments and results, what a grant names and what checks say of a reply are payloads of their
//! own, and may quote. So they go along. So does the key of the run's digests, without which no one can test whether
//! a digest in a line is that of guessed arguments.

use std::collections::{HashMap, HashSet};

use portcullis_core::aside::{DIGEST_KEY, OBSERVED, TAINT};
use portcullis_core::event::{About, Event, EventBody};
use portcullis_core::id::{ActionId, ApprovalId};
use portcullis_core::state::{EDITED_ARGUMENTS, EDITED_TEXT};
use portcullis_core::time::Timestamp;
use rusqlite::{OptionalExtension as _, Transaction, params};

use crate::erasure::Erased;
use crate::erasure::Selection;
use crate::sqlite::schema::{event_key, key_seq, unsigned};

/// Name of the payload of what checks say of a reply.
const RESULTS: &str = "results";

/// A payload that is to be erased.
pub(crate) struct Chosen {
    /// Its number in the store.
    pub(crate) number: i64,
    pub(crate) commitment: [u8; 32],
    pub(crate) bytes: u64,
    /// The actions that it belongs to, or was made of.
    pub(crate) actions: Vec<ActionId>,
}

/// The payloads of one run that fit, and what was made of them. Keys come first, then what was made of those that fit,
/// and these last: an erasure that is cut short finds them again, and through them the rest. Otherwise in the order in
/// which they are in the database.
pub(crate) fn chosen(
    transaction: &Transaction<'_>,
    run: i64,
    selection: &Selection,
    erased: &mut Erased,
) -> rusqlite::Result<Vec<Chosen>> {
    let wanted = Wanted::new(selection);
    let named = wanted.events(transaction, run, erased)?;
    let mut statement = transaction.prepare(
        "SELECT number, commitment, bytes FROM payloads WHERE run = ?1 AND salt <> zeroblob(32) ORDER BY number",
    )?;
    let mut rows = statement.query([run])?;
    let mut chosen = Vec::new();
    while let Some(row) = rows.next()? {
        let commitment: [u8; 32] = row.get(1)?;
        let bytes = row.get_ref(2)?.as_blob()?;
        if !named.fitting.contains_key(&commitment) || !wanted.text_in(bytes) {
            continue;
        }
        let actions = named.actions_of(&commitment);
        let (number, bytes) = (row.get(0)?, bytes.len() as u64);
        chosen.push(Chosen { number, commitment, bytes, actions });
    }
    let fits: HashSet<i64> = chosen.iter().map(|payload| payload.number).collect();
    add_derived(transaction, run, &wanted, &named, &mut chosen)?;
    chosen.sort_unstable_by_key(|payload| {
        (!named.is_key(&payload.commitment), fits.contains(&payload.number), payload.number)
    });
    Ok(chosen)
}

/// Adds what was made of the chosen ones.
fn add_derived(
    transaction: &Transaction<'_>,
    run: i64,
    wanted: &Wanted<'_>,
    named: &Named,
    chosen: &mut Vec<Chosen>,
) -> rusqlite::Result<()> {
    let mut there: HashSet<[u8; 32]> = chosen.iter().map(|payload| payload.commitment).collect();
    // What was erased before has no text to look for. Where none is asked for, it fits, and what was made of it goes
    // now if an earlier erasure was cut short.
    let texts: HashSet<u64> = if wanted.texts.is_empty() {
        named.fitting.values().flatten().copied().collect()
    } else {
        there.iter().filter_map(|commitment| named.fitting.get(commitment)).flatten().copied().collect()
    };
    let actions: HashSet<ActionId> =
        texts.iter().filter_map(|seq| named.proposed.get(seq)).copied().collect();
    let any = !chosen.is_empty();
    let mut stored = transaction.prepare_cached(
        "SELECT number, length(bytes) FROM payloads WHERE run = ?1 AND commitment = ?2 AND salt <> zeroblob(32)",
    )?;
    for derived in &named.derived {
        let goes_along = match &derived.origin {
            Origin::Texts(of, action) => {
                of.iter().any(|seq| texts.contains(seq))
                    || action.is_some_and(|action| actions.contains(&action))
            }
            Origin::Any => any,
        };
        if !goes_along || there.contains(&derived.commitment) {
            continue;
        }
        let row = stored.query_row(params![run, derived.commitment], |row| Ok((row.get(0)?, row.get(1)?)));
        if let Some((number, bytes)) = row.optional()? {
            let actions = named.actions_of(&derived.commitment);
            there.insert(derived.commitment);
            chosen.push(Chosen { number, commitment: derived.commitment, bytes: unsigned(bytes), actions });
        }
    }
    Ok(())
}

/// What the events of a run name.
#[derive(Default)]
struct Named {
    /// The events that fit, by the commitments they name.
    fitting: HashMap<[u8; 32], Vec<u64>>,
    /// The actions, by the event that proposes them.
    proposed: HashMap<u64, ActionId>,
    /// The actions that a person was asked about.
    asked: HashMap<ApprovalId, About>,
    /// The actions that were seen to do something, by the event that says so.
    reported: HashMap<u64, ActionId>,
    derived: Vec<Derived>,
    /// Places in it, by commitment.
    places: HashMap<[u8; 32], usize>,
}

/// A payload that was made of others.
struct Derived {
    commitment: [u8; 32],
    origin: Origin,
}

/// What a payload was made of.
enum Origin {
    /// Of the texts of these events, and of those of this action.
    Texts(Vec<u64>, Option<ActionId>),
    /// Whatever is erased, it goes with it.
    Any,
}

impl Named {
    /// Notes what an event has to do with others.
    fn relate(&mut self, event: &Event) {
        let from_cause = || event.cause.into_iter().collect::<Vec<u64>>();
        let aside = event.aside_name();
        let (name, origin) = match &event.body {
            EventBody::Proposed(proposed) => {
                self.proposed.insert(event.seq, proposed.action);
                return;
            }
            EventBody::ApprovalRequested { approval, about, .. } => {
                self.asked.insert(*approval, *about);
                return;
            }
            EventBody::Verdict(record) => {
                let mut of = from_cause();
                of.extend(record.findings.iter().flat_map(|finding| &finding.evidence));
                // Of a report, it quotes what the action was seen to do.
                let reported = || event.cause.and_then(|cause| self.reported.get(&cause)).copied();
                (aside, Origin::Texts(of, record.action.or_else(reported)))
            }
            EventBody::ApprovalDecided { approval, .. } => {
                let origin = || match self.asked.get(approval) {
                    Some(About::Action(action)) => Origin::Texts(Vec::new(), Some(*action)),
                    Some(About::Text(said)) => Origin::Texts(vec![*said], None),
                    None => Origin::Texts(Vec::new(), None),
                };
                let (edited, noted) = (origin(), origin());
                let name = [EDITED_ARGUMENTS, EDITED_TEXT]
                    .into_iter()
                    .find(|name| event.payloads.contains_key(*name));
                self.derive(event, name, edited);
                (aside, noted)
            }
            EventBody::Observed(record) => {
                self.reported.extend(record.action.map(|action| (event.seq, action)));
                (Some(OBSERVED), Origin::Texts(Vec::new(), record.action))
            }
            EventBody::Evidence { .. } => (Some(RESULTS), Origin::Texts(from_cause(), None)),
            // Marks and names of things are taken from the arguments.
            EventBody::Enforcement { action, .. } => (Some(TAINT), Origin::Texts(Vec::new(), *action)),
            EventBody::Outcome { action, .. } => (Some(TAINT), Origin::Texts(Vec::new(), Some(*action))),
            _ => (Some(DIGEST_KEY), Origin::Any),
        };
        self.derive(event, name, origin);
    }

    /// Notes what a payload of an event was made of, if the event has it.
    fn derive(&mut self, event: &Event, name: Option<&str>, origin: Origin) {
        if let Some(payload) = name.and_then(|name| event.payloads.get(name)) {
            let commitment = *payload.commitment.as_bytes();
            self.places.insert(commitment, self.derived.len());
            self.derived.push(Derived { commitment, origin });
        }
    }

    /// Whether it is a key of the run's digests.
    fn is_key(&self, commitment: &[u8; 32]) -> bool {
        let derived = self.places.get(commitment).and_then(|place| self.derived.get(*place));
        derived.is_some_and(|derived| matches!(derived.origin, Origin::Any))
    }

    /// The actions that a payload belongs to, or was made of.
    fn actions_of(&self, commitment: &[u8; 32]) -> Vec<ActionId> {
        let proposed = self.fitting.get(commitment).into_iter().flatten();
        let proposed = proposed.filter_map(|seq| self.proposed.get(seq)).copied();
        let derived = self.places.get(commitment).and_then(|place| self.derived.get(*place));
        let made_of = derived.and_then(|derived| match derived.origin {
            Origin::Texts(_, action) => action,
            Origin::Any => None,
        });
        proposed.chain(made_of).collect()
    }
}

/// A selection, made ready for comparing.
struct Wanted<'s> {
    selection: &'s Selection,
    /// The text as it is, and as it appears in JSON where that differs.
    texts: Vec<Vec<u8>>,
}

impl<'s> Wanted<'s> {
    fn new(selection: &'s Selection) -> Self {
        let mut texts = Vec::new();
        if let Some(text) = &selection.contains {
            texts.push(text.as_bytes().to_vec());
            let quoted = serde_json::Value::from(text.as_str()).to_string();
            let escaped = quoted.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
            texts.extend(escaped.filter(|escaped| escaped != text).map(|text| text.as_bytes().to_vec()));
        }
        Wanted { selection, texts }
    }

    fn text_in(&self, bytes: &[u8]) -> bool {
        self.texts.is_empty() || self.texts.iter().any(|text| contains(bytes, text))
    }

    /// What the events of a run name, and which of them fit.
    fn events(
        &self,
        transaction: &Transaction<'_>,
        run: i64,
        erased: &mut Erased,
    ) -> rusqlite::Result<Named> {
        let Selection { event, name, commitment, before, .. } = self.selection;
        let mut statement = transaction
            .prepare("SELECT key, t, line FROM events WHERE key BETWEEN ?1 AND ?2 ORDER BY key")?;
        let mut rows = statement.query(params![event_key(run, 0), event_key(run, u64::MAX)])?;
        let mut named = Named::default();
        while let Some(row) = rows.next()? {
            let seq = key_seq(row.get(0)?);
            let at = Timestamp::from_micros(row.get(1)?);
            let line = row.get_ref(2)?.as_blob()?;
            if !self.texts.is_empty() && self.text_in(line) {
                erased.lines_with_text += 1;
            }
            let fits = event.is_none_or(|event| event == seq) && before.is_none_or(|before| at < before);
            // A line that cannot be read names nothing that could be chosen; `doctor` reports it.
            let Ok(event) = Event::from_line(line) else { continue };
            named.relate(&event);
            if !fits {
                continue;
            }
            for (called, payload) in &event.payloads {
                let fits = name.as_ref().is_none_or(|name| name == called)
                    && commitment.is_none_or(|commitment| commitment == payload.commitment);
                if fits {
                    named.fitting.entry(*payload.commitment.as_bytes()).or_default().push(seq);
                }
            }
        }
        Ok(named)
    }
}

/// Whether `text` is in `bytes`. Looks for its first byte, and compares there.
fn contains(bytes: &[u8], text: &[u8]) -> bool {
    let Some(first) = text.first() else { return true };
    let mut rest = bytes;
    while let Some(at) = rest.iter().position(|byte| byte == first) {
        rest = rest.get(at..).unwrap_or_default();
        if rest.starts_with(text) {
            return true;
        }
        rest = rest.get(1..).unwrap_or_default();
    }
    false
}
