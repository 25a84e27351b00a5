//! An export that somebody brings is verified by the verifier that strangers use, and nothing of it is stored.

use std::io::Cursor;
use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{FromRequest, Query, Request, State};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::Response;
use portcullis_console::Role;
use portcullis_console::log::{Upload, Verified};
use portcullis_proof::report::CheckResult;
use portcullis_proof::trust::preamble;
use portcullis_proof::{Status as Answer, Trust, verify};

use super::super::connections::in_time;
use super::visitor::Visitor;
use super::{Seen, audit, page};

mod packs;

/// Bytes of an upload: an export of a long run with its texts.
pub(super) const UPLOAD_BYTES_MAX: usize = 32 << 20;

/// The parts of a form with a file.
#[derive(Debug, Default)]
struct Parts {
    csrf: String,
    name: String,
    file: Vec<u8>,
}

pub(super) async fn verify_upload(State(seen): State<Seen>, visitor: Visitor, request: Request) -> Response {
    if let Err(refused) = visitor.at_least(Role::Approver) {
        return refused.page(&seen, &visitor).await;
    }
    let kind = request.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let boundary = boundary(kind).map(ToOwned::to_owned);
    let body = in_time(Bytes::from_request(request, &seen)).await;
    let (Some(boundary), Ok(Ok(body))) = (boundary, body) else {
        let why = format!("Send one file of at most {} MiB.", UPLOAD_BYTES_MAX >> 20);
        return shown(&seen, &visitor, StatusCode::PAYLOAD_TOO_LARGE, Upload::Refused(why)).await;
    };
    let parts = parts(&body, &boundary);
    if let Err(refused) = visitor.is_own_form(&parts.csrf) {
        return refused.page(&seen, &visitor).await;
    }
    drop(body);
    let (gate, places) = (Arc::clone(&seen.shared.gate), seen.shared.home.store().log());
    let verified = tokio::task::spawn_blocking(move || match packs::is_archive(&parts.file) {
        true => packs::verified(&gate, &places, parts.name, &parts.file),
        false => verified(&gate, parts.name, &parts.file),
    })
    .await;
    let upload = verified.unwrap_or_else(|error| Upload::Refused(error.to_string()));
    shown(&seen, &visitor, StatusCode::OK, upload).await
}

async fn shown(seen: &Seen, visitor: &Visitor, status: StatusCode, upload: Upload) -> Response {
    match audit::body(seen, visitor, Query(audit::Which::default()), Some(&upload)).await {
        Ok(body) => {
            let place = portcullis_console::frame::Place::Audit;
            page::framed_as(status, seen, visitor, Some(place), place.name(), body).await
        }
        Err(failure) => page::failed(seen, visitor, failure).await,
    }
}

/// What the verifier says of an export.
pub(super) fn verified(gate: &portcullis_session::gate::Gate, name: String, file: &[u8]) -> Upload {
    // What this gate knows of the run is believed: it is its own record.
    let first = match verify(Cursor::new(file), None) {
        Ok(report) => report,
        Err(error) => return Upload::Refused(format!("{error}.")),
    };
    let run = first.run.map(|run| run.to_string());
    let own = run.as_deref().and_then(|run| run.parse().ok());
    let line = own.and_then(|run| gate.ledger().read(|reader| reader.trust_line(run)).ok().flatten());
    let own_trust = |line: &String| Trust::parse(&format!("{}{line}\n", preamble(gate.ledger().origin())));
    let trust = line.as_ref().and_then(|line| own_trust(line).ok());
    let report = match &trust {
        Some(trust) => verify(Cursor::new(file), Some(trust)).unwrap_or(first),
        None => first,
    };
    let status = answer(report.status);
    let failure = report.failure.as_ref().map(|failure| {
        let event = failure.seq.map_or_else(String::new, |seq| format!(", event {seq}"));
        (
            failure.attack.to_string(),
            format!("line {}, byte {}{event}", failure.line, failure.byte),
            failure.message.clone(),
        )
    });
    let against = if line.is_some() {
        "It was held against what this gate has of the run."
    } else {
        "This gate does not have the run: hold it against a head that you know, with `portcullis verify --trust`."
    };
    let payloads = report.payloads;
    Upload::Verified(Box::new(Verified {
        status,
        failure,
        checks: report
            .checks
            .iter()
            .map(|check| (check.name.to_string(), word(check.result), check.detail.clone()))
            .collect(),
        here: line.is_some(),
        run,
        events: report.events,
        payloads: (payloads.named, payloads.verified, payloads.withheld, payloads.erased),
        name,
        against: against.to_owned(),
        all_checked: false,
    }))
}

const fn answer(status: Answer) -> &'static str {
    match status {
        Answer::Valid => "VALID",
        Answer::Incomplete => "INCOMPLETE",
        Answer::Invalid => "INVALID",
    }
}

const fn word(result: CheckResult) -> &'static str {
    match result {
        CheckResult::Pass => "pass",
        CheckResult::Fail => "FAIL",
        CheckResult::NotChecked => "not checked",
    }
}

/// The boundary of `multipart/form-data`.
fn boundary(kind: &str) -> Option<&str> {
    let rest = kind.strip_prefix("multipart/form-data;")?;
    let value = rest.split(';').find_map(|part| part.trim().strip_prefix("boundary="))?;
    let value = value.trim_matches('"');
    (!value.is_empty() && value.len() <= 70).then_some(value)
}

fn find(text: &[u8], what: &[u8], from: usize) -> Option<usize> {
    let first = *what.first()?;
    let mut at = from;
    loop {
        at += text.get(at..)?.iter().position(|byte| *byte == first)?;
        if text.get(at..)?.starts_with(what) {
            return Some(at);
        }
        at += 1;
    }
}

/// The fields that are known; what a browser does not send is left out.
fn parts(body: &[u8], boundary: &str) -> Parts {
    let (mut parts, line) = (Parts::default(), format!("--{boundary}"));
    let end = format!("\r\n{line}");
    let mut at = find(body, line.as_bytes(), 0).map(|at| at + line.len());
    while let Some(start) = at {
        let Some(head_end) = find(body, b"\r\n\r\n", start) else { break };
        let head = String::from_utf8_lossy(body.get(start..head_end).unwrap_or_default()).into_owned();
        let content = head_end + 4;
        let Some(stop) = find(body, end.as_bytes(), content) else { break };
        let bytes = body.get(content..stop).unwrap_or_default();
        match attribute(&head, "name").as_deref() {
            Some("csrf") => parts.csrf = String::from_utf8_lossy(bytes).into_owned(),
            Some("file") => {
                parts.name = attribute(&head, "filename").unwrap_or_default().chars().take(120).collect();
                parts.file = bytes.to_vec();
            }
            _ => {}
        }
        at = Some(stop + end.len());
    }
    parts
}

fn attribute(head: &str, name: &str) -> Option<String> {
    let start = head.find(&format!("; {name}=\""))? + name.len() + 4;
    let rest = head.get(start..)?;
    Some(rest.split('"').next().unwrap_or_default().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_with_a_file_is_read_as_browsers_send_it() {
        let body = b"--x1\r\nContent-Disposition: form-data; name=\"csrf\"\r\n\r\nabc\r\n--x1\r\nContent-Disposition: form-data; name=\"file\"; filename=\"run.export\"\r\nContent-Type: application/octet-stream\r\n\r\nline\r\n--x\r\n\x00end\r\n--x1--\r\n";
        let parts = parts(body, "x1");
        assert_eq!((parts.csrf.as_str(), parts.name.as_str()), ("abc", "run.export"));
        assert_eq!(parts.file, b"line\r\n--x\r\n\x00end");
        assert_eq!(boundary("multipart/form-data; boundary=----WebKit7"), Some("----WebKit7"));
        assert_eq!(boundary("multipart/form-data; boundary=\"a b\""), Some("a b"));
        for wrong in ["text/plain", "multipart/form-data", "multipart/form-data; boundary="] {
            assert_eq!(boundary(wrong), None, "{wrong}");
        }
        assert!(super::parts(b"--x1\r\nno end", "x1").file.is_empty());
    }
}
