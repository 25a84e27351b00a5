//! `portcullis runs show --payloads`: what went in and out of a run, in its order.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufReader, Read as _, Seek as _, SeekFrom, Write as _};
use std::pin::Pin;
use std::task::{Context, Poll};

use portcullis_core::display::block;
use portcullis_core::event::{Event, EventBody};
use portcullis_proof::export::{
    LineError, Lines, PAYLOAD_RECORD_BYTES_MAX, PayloadRecord, event_parts, read_record, record_kind,
};
use serde_json::{Value, json};
use tokio::io::AsyncWrite;

use crate::cli::Global;
use crate::daemon::Daemon;
use crate::failure::Failure;
use crate::out::{FAINT, Out, clean_line, count, terminal_width};

/// Characters of one payload that people are shown; programs get them all.
const SHOWN_CHARS_MAX: usize = 4_000;
/// Columns before a text.
const INDENT: usize = 14;
/// Payloads that are no text of the user, the agent or a tool: a key, and words that `runs events` shows.
const OWN: [&str; 3] = ["digest-key", "findings", "scope"];

/// Shows the texts of a run, which the daemon hands to approvers and to the principal of the run.
pub(super) fn show(out: &mut Out, daemon: &Daemon, run: &str, global: &Global) -> Result<(), Failure> {
    let mut file = tempfile::tempfile().map_err(failed)?;
    let mut written = Written(file.try_clone().map_err(failed)?);
    daemon.ask(|client| client.export(run, &mut written))?;
    file.seek(SeekFrom::Start(0)).map_err(failed)?;
    let places = places(&file)?;
    file.seek(SeekFrom::Start(0)).map_err(failed)?;
    let events = events(&file)?;
    for event in &events {
        for (name, payload) in &event.payloads {
            if OWN.contains(&name.as_str()) {
                continue;
            }
            let place = places.get(payload.commitment.to_string().as_str());
            let record = place.map(|place| read(&mut file, *place)).transpose()?;
            let record =
                record.as_deref().map(read_record::<PayloadRecord<'_>>).transpose().map_err(failed)?;
            tell(out, event, name, record.as_ref(), payload.bytes, global)?;
        }
    }
    Ok(())
}

fn failed(error: impl std::fmt::Display) -> Failure {
    Failure::unreadable(format!("cannot read the payloads of the run: {error}"))
}

fn unread(error: LineError) -> Failure {
    match error {
        LineError::Read(error) => failed(error),
        LineError::Unfinished => failed("the daemon ended its answer in the middle of a line"),
        LineError::TooLong(bytes) => failed(format!("a line has more than {bytes} bytes")),
    }
}

/// Where a line is in the file: its first byte and its length.
type Place = (u64, usize);

/// The payloads by their commitment.
fn places(file: &File) -> Result<HashMap<String, Place>, Failure> {
    let mut places = HashMap::new();
    let mut lines = Lines::new(BufReader::new(file));
    while lines.advance(PAYLOAD_RECORD_BYTES_MAX).map_err(unread)? {
        let line = lines.line();
        if record_kind(line) == Some("payload") {
            let record: PayloadRecord<'_> = read_record(line).map_err(failed)?;
            places.insert(record.commitment.to_string(), (lines.byte, line.len()));
        }
    }
    Ok(places)
}

/// The events that have texts.
fn events(file: &File) -> Result<Vec<Event>, Failure> {
    let mut events = Vec::new();
    let mut lines = Lines::new(BufReader::new(file));
    while lines.advance(PAYLOAD_RECORD_BYTES_MAX).map_err(unread)? {
        if let Some((_, line)) = event_parts(lines.line()) {
            let event = Event::from_line(line).map_err(failed)?;
            events.extend((!event.payloads.is_empty()).then_some(event));
        }
    }
    Ok(events)
}

fn read(file: &mut File, (from, length): Place) -> Result<Vec<u8>, Failure> {
    let mut line = vec![0; length];
    file.seek(SeekFrom::Start(from)).and_then(|_| file.read_exact(&mut line)).map_err(failed)?;
    Ok(line)
}

/// Shows one text; `record` is none where it was erased.
fn tell(
    out: &mut Out,
    event: &Event,
    name: &str,
    record: Option<&PayloadRecord<'_>>,
    bytes: u64,
    global: &Global,
) -> Result<(), Failure> {
    if global.json {
        let media_type = record.map(|record| record.media_type.as_ref());
        return out.json(&json!({
            "record": "payload", "seq": event.seq, "kind": event.body.kind(), "actor": event.actor.as_str(),
            "action": action(&event.body), "name": name, "bytes": bytes, "media_type": media_type,
            "text": record.and_then(|record| record.text.as_deref()),
            "hex": record.and_then(|record| record.hex.as_deref()), "erased": record.is_none(),
        }));
    }
    let heading = format!("{:>6}  {:<18}  {}", event.seq, event.body.kind(), super::detail(event));
    out.line(format_args!("{FAINT}{}{FAINT:#}", clean_line(&heading)))?;
    let text = match record {
        None => format!("({}, erased)", count(bytes, "byte", "bytes")),
        Some(record) => text(record),
    };
    out.line(format_args!("  {:<10}  {}", clean_line(name), block(&text, INDENT, terminal_width())))
}

/// A payload for people: JSON with a member a line, and no more than fits a few screens.
fn text(record: &PayloadRecord<'_>) -> String {
    let Some(text) = &record.text else {
        return "(no text; --json shows its bytes)".to_owned();
    };
    let parsed = serde_json::from_str(text).ok().filter(|_| record.media_type.contains("json"));
    let text = match parsed {
        Some(value @ (Value::Object(_) | Value::Array(_))) => format!("{value:#}"),
        _ => text.to_string(),
    };
    match text.char_indices().nth(SHOWN_CHARS_MAX) {
        None => text,
        Some((end, _)) => {
            let shown = text.get(..end).unwrap_or_default();
            let left = count(text.len().saturating_sub(end), "byte", "bytes");
            format!("{shown}\n({left} more; --json shows all)")
        }
    }
}

/// The action that a text belongs to.
fn action(body: &EventBody) -> Option<String> {
    let value = serde_json::to_value(body).ok()?;
    value.pointer("/body/action").and_then(Value::as_str).map(str::to_owned)
}

/// A file that is written at once: it is on this machine, and nothing else waits meanwhile.
struct Written(File);

impl AsyncWrite for Written {
    fn poll_write(mut self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Poll::Ready(self.0.write(bytes))
    }

    fn poll_flush(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.0.flush())
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
