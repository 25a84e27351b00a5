//! One request to the daemon over its Unix socket, and its answer.
//!
//! HTTP/1.1 as the daemon speaks it, and no more: an answer in any other form is not understood, which the caller takes
//! as a reason to hand the event over.

use std::fs::File;
use std::io::{self, Read, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::event::{Answered, BLOCKED, PATH};
use crate::folder::{self, TOKEN_BYTES_MAX};

/// Largest head of an answer, in bytes.
const HEAD_BYTES_MAX: usize = 16 << 10;
/// Largest body of an answer, in bytes.
const BODY_BYTES_MAX: usize = 64 << 20;
/// Room that is made at first for an answer, in bytes.
const ANSWER_BYTES: usize = 4 << 10;

/// Why there is no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoAnswer {
    /// The daemon has not seen the event.
    Unsent,
    /// The daemon may have seen the event, and recorded it.
    Sent,
}

/// Sends `body` to the daemon of a state folder.
pub(crate) fn ask(home: &Path, body: &[u8], until: Instant) -> Result<Answered, NoAnswer> {
    let mut stream = connect(home).ok_or(NoAnswer::Unsent)?;
    let token = token(home).ok_or(NoAnswer::Unsent)?;
    let request = request(&token, body);
    let sent = left(until).and_then(|left| {
        stream.set_write_timeout(Some(left))?;
        stream.write_all(&request)
    });
    sent.ok().and_then(|()| answer(&mut stream, until)).ok_or(NoAnswer::Sent)
}

fn left(until: Instant) -> io::Result<Duration> {
    let left = until.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left) }
}

/// A connection to a listener that may have the token, or `None`.
fn connect(home: &Path) -> Option<UnixStream> {
    let socket = home.join(folder::SOCKET);
    if socket.as_os_str().len() > folder::SOCKET_PATH_BYTES_MAX {
        return None;
    }
    let stream = UnixStream::connect(&socket).ok()?;
    let own = rustix::process::geteuid().as_raw();
    folder::check_listener(&socket, listener(&stream)?, own).ok()?;
    Some(stream)
}

#[cfg(target_os = "linux")]
fn listener(stream: &UnixStream) -> Option<u32> {
    rustix::net::sockopt::socket_peercred(stream).ok().map(|listener| listener.uid.as_raw())
}

/// Elsewhere the whole program asks the system.
#[cfg(not(target_os = "linux"))]
fn listener(_: &UnixStream) -> Option<u32> {
    None
}

fn token(home: &Path) -> Option<String> {
    let mut text = String::new();
    let file = File::open(home.join(folder::CREDENTIALS).join(folder::AGENT_TOKEN)).ok()?;
    file.take(TOKEN_BYTES_MAX as u64 + 2).read_to_string(&mut text).ok()?;
    let token = text.trim();
    let fits = !token.is_empty() && token.len() <= TOKEN_BYTES_MAX;
    (fits && token.bytes().all(|byte| byte.is_ascii_graphic())).then(|| token.to_owned())
}

fn request(token: &str, body: &[u8]) -> Vec<u8> {
    let head = format!(
        "POST {PATH} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

/// The answer, or `None` for one that is incomplete, too long, late, a refusal, or not understood.
fn answer(stream: &mut UnixStream, until: Instant) -> Option<Answered> {
    let mut bytes = Vec::with_capacity(ANSWER_BYTES);
    let body = loop {
        more(stream, &mut bytes, until)?;
        if let Some(at) = bytes.windows(4).position(|end| end == b"\r\n\r\n") {
            break at;
        }
        if bytes.len() > HEAD_BYTES_MAX {
            return None;
        }
    };
    let length = body_length(std::str::from_utf8(bytes.get(..body)?).ok()?)?;
    let whole = body + 4 + length;
    while bytes.len() < whole {
        more(stream, &mut bytes, until)?;
    }
    let answered: Answered = serde_json::from_slice(bytes.get(body + 4..whole)?).ok()?;
    let is_known = match answered.exit {
        0 => !answered.output.is_empty(),
        1 | BLOCKED => answered.output.is_empty() && !answered.error.is_empty(),
        _ => false,
    };
    (is_known && bytes.len() == whole).then_some(answered)
}

/// Reads what is there; the end of the stream is no answer.
fn more(stream: &mut UnixStream, bytes: &mut Vec<u8>, until: Instant) -> Option<()> {
    stream.set_read_timeout(Some(left(until).ok()?)).ok()?;
    let mut read = [0; ANSWER_BYTES];
    loop {
        match stream.read(&mut read) {
            Ok(0) => return None,
            Ok(count) => {
                bytes.extend_from_slice(read.get(..count)?);
                return Some(());
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return None,
        }
    }
}

/// Length of the body of a successful answer.
fn body_length(head: &str) -> Option<usize> {
    let mut lines = head.split("\r\n");
    if lines.next()? != "HTTP/1.1 200 OK" {
        return None;
    }
    let mut length = None;
    for line in lines {
        let (name, value) = line.split_once(':')?;
        if name.eq_ignore_ascii_case("transfer-encoding") || name.eq_ignore_ascii_case("content-encoding") {
            return None;
        }
        if name.eq_ignore_ascii_case("content-length") && length.replace(value.trim().parse().ok()?).is_some()
        {
            return None;
        }
    }
    length.filter(|length| *length <= BODY_BYTES_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<Answered> {
        let (mut one, mut other) = UnixStream::pair().unwrap();
        other.write_all(text.as_bytes()).unwrap();
        drop(other);
        answer(&mut one, Instant::now() + Duration::from_secs(5))
    }

    fn with(head: &str, body: &str) -> String {
        format!("HTTP/1.1 200 OK\r\n{head}content-length: {}\r\n\r\n{body}", body.len())
    }

    #[test]
    fn an_answer_is_read_or_not_understood() {
        let body = r#"{"output":"{}","error":"","exit":0}"#;
        assert_eq!(read(&with("content-type: application/json\r\n", body)), Some(Answered::with("{}")));
        assert!(read(&with("", r#"{"output":"","error":"no","exit":2}"#)).is_some());
        let whole = with("", body);
        for (text, why) in [
            (String::new(), "nothing"),
            (whole.replace("200 OK", "401 Unauthorized"), "a refusal"),
            (whole.replace("HTTP/1.1", "HTTP/2"), "another protocol"),
            (whole.strip_suffix('}').unwrap().to_owned(), "cut short"),
            (format!("{whole} "), "more than was announced"),
            (with("content-length: 1\r\n", body), "two lengths"),
            (with("transfer-encoding: chunked\r\n", body), "another framing"),
            (with("x\r\n", body), "not a header"),
            (whole.replace("content-length: 3", "content-length: 99999999993"), "too long"),
            (whole.replace("content-length: 3", "content-length: -3"), "not a length"),
            (format!("HTTP/1.1 200 OK\r\nx: {}", "y".repeat(64 << 10)), "an endless head"),
            (with("", "{}"), "nothing in it"),
            (with("", "[]"), "not an object"),
            (with("", r#"{"output":"{}","error":"","exit":3}"#), "an unknown exit code"),
            (with("", r#"{"output":"{}","error":"","exit":256}"#), "not an exit code"),
            (with("", r#"{"output":"","error":"","exit":0}"#), "no answer for the client"),
            (with("", r#"{"output":"{}","error":"","exit":2}"#), "blocked, with an answer"),
            (with("", r#"{"output":"","error":"","exit":2}"#), "blocked without a reason"),
            (with("", r#"{"output":"{}","error":"","exit":0,"more":1}"#), "something new"),
            (with("", r#"{"output":"{}","error":"","exit":0,"exit":0}"#), "said twice"),
        ] {
            assert_eq!(read(&text), None, "{why}: {text:.200}");
        }
    }

    #[test]
    fn an_answer_that_does_not_arrive_is_not_waited_for() {
        let (mut one, _other) = UnixStream::pair().unwrap();
        let begun = Instant::now();
        assert_eq!(answer(&mut one, begun + Duration::from_millis(30)), None);
        assert!(begun.elapsed() < Duration::from_secs(5));
        assert_eq!(answer(&mut one, begun), None, "no time is left");
    }

    #[test]
    fn what_is_no_token_is_not_sent() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("credentials")).unwrap();
        assert_eq!(token(folder.path()), None);
        let long = "t".repeat(TOKEN_BYTES_MAX + 1);
        for (text, expected) in [
            ("token\n", Some("token")),
            ("", None),
            ("a b", None),
            ("a\r\nx: y", None),
            ("ä", None),
            (&long, None),
        ] {
            std::fs::write(folder.path().join("credentials/agent.token"), text).unwrap();
            assert_eq!(token(folder.path()).as_deref(), expected, "{text:.20}");
        }
    }
}
