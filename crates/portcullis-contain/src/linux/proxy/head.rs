//! Heads of HTTP/1 messages (RFC 9112), read strictly: what two programs could read differently is refused.
//!
//! A head that is passed on is written anew: without the fields that are for one connection only, with the host that
//! was judged, and with `Connection: close`, since each connection carries one request.

use portcullis_core::host::{Host, split_port};

use super::framing::Framing;

/// Most bytes of a head.
pub(super) const BYTES_MAX: usize = 32 << 10;
/// Most fields of a head.
const FIELDS_MAX: usize = 128;
/// Longest chunk of text of others in a message of ours.
const SHOWN_MAX: usize = 80;
/// Fields that are for one connection, besides those that `Connection` names (RFC 9110, 7.6.1).
const HOP_BY_HOP: &[&str] = &[
    "connection",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-authentication-info",
    "proxy-connection",
    "te",
    "upgrade",
];
/// Fields that `Connection` must not take away: they say where a message ends and whom it is for.
const NEEDED: &[&str] = &["content-length", "host", "transfer-encoding"];

/// Why a head is refused: a status, and a line that says what is wrong.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Wrong {
    pub(super) status: u16,
    pub(super) what: String,
}

/// What a client wants.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) host: Host,
    /// The host as the client wrote it.
    pub(super) written: String,
    pub(super) port: u16,
    pub(super) what: Wanted,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    /// A tunnel.
    Tunnel,
    /// An answer to this head, in the form for the server, with a body that ends so.
    Answer { head: Vec<u8>, body: Framing, method: Method },
}

/// What the method says about the answer's body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Method {
    Head,
    Other,
}

/// A server's answer: the head for the client, and how its body ends.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Response {
    pub(super) head: Vec<u8>,
    pub(super) body: Framing,
    /// Whether another head follows: 100, 103.
    pub(super) is_interim: bool,
}

/// Bytes up to and with the empty line that ends a head; nothing where it has not come yet. The first `known` of them
/// were looked at before.
///
/// # Errors
/// A line that does not end as lines do, or more than a head may have: refused before the rest has come.
pub(super) fn end(bytes: &[u8], known: usize) -> Result<Option<usize>, Wrong> {
    let from = known.saturating_sub(3);
    let fresh = bytes.get(from..).unwrap_or_default();
    let ends = fresh.windows(4).position(|four| four == b"\r\n\r\n").map(|at| from + at + 4);
    let head = bytes.get(..ends.unwrap_or(bytes.len())).unwrap_or_default();
    let bare = |pair: &[u8]| matches!(pair, [first, b'\n'] if *first != b'\r');
    let begins = head.first().is_some_and(|byte| !is_token(*byte));
    if begins || head.get(from..).unwrap_or_default().windows(2).any(bare) {
        return Err(bad("this is no head of HTTP/1, whose lines end with CR LF"));
    }
    if head.len() > BYTES_MAX {
        return Err(Wrong { status: 431, what: format!("a head of more than {BYTES_MAX} bytes") });
    }
    Ok(ends)
}

/// Reads a whole head of a request.
pub(super) fn request(head: &[u8]) -> Result<Request, Wrong> {
    let (line, fields) = split(head)?;
    let mut words = line.split(|byte| *byte == b' ');
    let (Some(method), Some(target), Some(version), None) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return Err(bad("the first line is not `METHOD TARGET VERSION`"));
    };
    let version = match version {
        b"HTTP/1.1" => 1,
        b"HTTP/1.0" => 0,
        _ => {
            return Err(Wrong { status: 505, what: "only HTTP/1.0 and HTTP/1.1 are spoken here".to_owned() });
        }
    };
    if method.is_empty() || !method.iter().copied().all(is_token) {
        return Err(bad("the method is no word"));
    }
    let target =
        std::str::from_utf8(target).ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_graphic()));
    let target = target.ok_or_else(|| bad("the target has characters that must be escaped"))?;
    let body = body_of_request(&fields, version)?;
    let hosts: Vec<&Field<'_>> = fields.iter().filter(|field| field.is("host")).collect();
    if hosts.len() > 1 {
        return Err(bad("more than one `Host`"));
    }
    if method == b"CONNECT" {
        if body != Framing::None {
            return Err(bad("`CONNECT` has no body"));
        }
        let (written, host, port) = authority(target)?;
        let port = port.ok_or_else(|| bad("`CONNECT` needs `host:port`"))?;
        return Ok(Request { host, written, port, what: Wanted::Tunnel });
    }
    let (authority_text, path) = absolute(target)?;
    let (written, host, port) = authority(authority_text)?;
    let port = port.unwrap_or(80);
    match hosts.first() {
        Some(field) => agrees(field, &host, port)?,
        None if version == 1 => return Err(bad("no `Host`")),
        None => {}
    }
    let line = format!("{} {path} HTTP/1.{version}", String::from_utf8_lossy(method));
    let mut rewritten = line.into_bytes();
    rewritten.extend_from_slice(format!("\r\nHost: {authority_text}\r\n").as_bytes());
    write_fields(&mut rewritten, &fields, &["host"]);
    let method = if method == b"HEAD" { Method::Head } else { Method::Other };
    Ok(Request { host, written, port, what: Wanted::Answer { head: rewritten, body, method } })
}

/// Reads a whole head of an answer.
pub(super) fn response(head: &[u8], method: Method) -> Result<Response, Wrong> {
    let (line, fields) = split(head)?;
    let digits = match line {
        [b'H', b'T', b'T', b'P', b'/', b'1', b'.', b'0' | b'1', b' ', status @ ..] => {
            status.split(|byte| *byte == b' ').next().filter(|digits| digits.len() == 3)
        }
        _ => None,
    };
    let status = digits.and_then(|digits| std::str::from_utf8(digits).ok()?.parse::<u16>().ok());
    let status = status.filter(|status| (100..1000).contains(status));
    let status = status.ok_or_else(|| bad("the first line is not that of an answer"))?;
    if status == 101 {
        return Err(bad("the server changes to another protocol"));
    }
    let mut body = framing(&fields)?;
    let is_interim = status < 200;
    if is_interim || status == 204 || status == 304 || method == Method::Head {
        body = Some(Framing::None);
    }
    let mut rewritten = line.to_vec();
    rewritten.extend_from_slice(b"\r\n");
    if is_interim {
        for field in &fields {
            field.write(&mut rewritten);
        }
        rewritten.extend_from_slice(b"\r\n");
    } else {
        write_fields(&mut rewritten, &fields, &[]);
    }
    Ok(Response { head: rewritten, body: body.unwrap_or(Framing::UntilClose), is_interim })
}

/// A field of a head.
struct Field<'a> {
    name: &'a [u8],
    value: &'a [u8],
}

impl Field<'_> {
    fn is(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name.as_bytes())
    }

    fn write(&self, to: &mut Vec<u8>) {
        to.extend_from_slice(self.name);
        to.extend_from_slice(b": ");
        to.extend_from_slice(self.value);
        to.extend_from_slice(b"\r\n");
    }
}

/// The first line and the fields.
fn split(head: &[u8]) -> Result<(&[u8], Vec<Field<'_>>), Wrong> {
    let inner = head.strip_suffix(b"\r\n\r\n").ok_or_else(|| bad("the head has no end"))?;
    let mut lines = Vec::new();
    let mut rest = inner;
    while let Some(at) = rest.windows(2).position(|pair| pair == b"\r\n") {
        lines.push(rest.get(..at).unwrap_or_default());
        rest = rest.get(at + 2..).unwrap_or_default();
        if lines.len() > FIELDS_MAX {
            return Err(Wrong { status: 431, what: format!("more than {FIELDS_MAX} fields") });
        }
    }
    lines.push(rest);
    if lines.iter().any(|line| line.iter().any(|byte| (*byte < b' ' && *byte != b'\t') || *byte == 0x7f)) {
        return Err(bad("a control character in the head"));
    }
    let mut lines = lines.into_iter();
    let first = lines.next().unwrap_or_default();
    let fields = lines.map(field).collect::<Result<_, _>>()?;
    Ok((first, fields))
}

fn field(line: &[u8]) -> Result<Field<'_>, Wrong> {
    if line.first().is_some_and(|byte| matches!(byte, b' ' | b'\t')) {
        return Err(bad("a field that goes on in the next line"));
    }
    let colon = line.iter().position(|byte| *byte == b':').ok_or_else(|| bad("a field without a colon"))?;
    let (name, value) = line.split_at_checked(colon).unwrap_or_default();
    if name.is_empty() || !name.iter().copied().all(is_token) {
        return Err(bad("the name of a field is no word"));
    }
    Ok(Field { name, value: value.get(1..).unwrap_or_default().trim_ascii() })
}

/// Writes what is passed on, and that the connection ends with this message.
fn write_fields(to: &mut Vec<u8>, fields: &[Field<'_>], left_out: &[&str]) {
    let named: Vec<&[u8]> = fields
        .iter()
        .filter(|field| field.is("connection"))
        .flat_map(|field| field.value.split(|byte| *byte == b','))
        .map(<[u8]>::trim_ascii)
        .collect();
    for field in fields {
        let is_needed = NEEDED.iter().any(|name| field.is(name));
        let is_named = !is_needed && named.iter().any(|name| field.name.eq_ignore_ascii_case(name));
        if !is_named && !HOP_BY_HOP.iter().chain(left_out).any(|name| field.is(name)) {
            field.write(to);
        }
    }
    to.extend_from_slice(b"Connection: close\r\n\r\n");
}

/// How a request's body ends. A server of HTTP/1.0 does not know of chunks, and a client of it does not send any.
fn body_of_request(fields: &[Field<'_>], version: u8) -> Result<Framing, Wrong> {
    let body = framing(fields)?.unwrap_or(Framing::None);
    if version == 0 && body == Framing::CHUNKED {
        return Err(bad("`Transfer-Encoding` in HTTP/1.0"));
    }
    Ok(body)
}

/// What the fields say about the end of the body; nothing where they say nothing.
fn framing(fields: &[Field<'_>]) -> Result<Option<Framing>, Wrong> {
    let mut lengths = fields.iter().filter(|field| field.is("content-length"));
    let mut encodings = fields.iter().filter(|field| field.is("transfer-encoding"));
    let (length, encoding) = (lengths.next(), encodings.next());
    if lengths.next().is_some() || encodings.next().is_some() {
        return Err(bad("more than one `Content-Length` or `Transfer-Encoding`"));
    }
    match (length, encoding) {
        (Some(_), Some(_)) => Err(bad("both `Content-Length` and `Transfer-Encoding`")),
        (None, Some(field)) if field.value.eq_ignore_ascii_case(b"chunked") => Ok(Some(Framing::CHUNKED)),
        (None, Some(_)) => Err(bad("a `Transfer-Encoding` that is not `chunked` alone")),
        (Some(field), None) => {
            let is_number = !field.value.is_empty() && field.value.iter().all(u8::is_ascii_digit);
            let text = std::str::from_utf8(field.value).ok().filter(|_| is_number);
            let length = text.and_then(|text| text.parse().ok());
            let length = length.ok_or_else(|| bad("the `Content-Length` is no number"))?;
            Ok(Some(Framing::length(length)))
        }
        (None, None) => Ok(None),
    }
}

/// The authority and the path of a target with both.
fn absolute(target: &str) -> Result<(&str, String), Wrong> {
    let scheme = "http://";
    let rest = match target.get(..scheme.len()) {
        Some(begin) if begin.eq_ignore_ascii_case(scheme) => target.get(scheme.len()..).unwrap_or_default(),
        _ => {
            let what = "this is a proxy: give a whole URL that begins with `http://`, or `CONNECT host:port`";
            return Err(bad(what));
        }
    };
    if rest.contains('#') {
        return Err(bad("a fragment in the target"));
    }
    let at = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at_checked(at).unwrap_or((rest, ""));
    let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
    Ok((authority, path))
}

/// Host as written, host, and port.
fn authority(text: &str) -> Result<(String, Host, Option<u16>), Wrong> {
    if text.contains('@') {
        return Err(bad("a user in the target"));
    }
    let unreadable = |why: String| bad(&format!("the target's host: {why}"));
    let (written, port) = split_port(text).map_err(unreadable)?;
    let host = Host::parse(written).map_err(unreadable)?;
    Ok((written.to_owned(), host, port))
}

/// `Host` is what servers go by, the target what is judged: they have to be one.
fn agrees(field: &Field<'_>, host: &Host, port: u16) -> Result<(), Wrong> {
    let text = std::str::from_utf8(field.value).unwrap_or_default();
    let (_, named, named_port) = authority(text).map_err(|_| bad("`Host` is no host"))?;
    if named == *host && named_port.unwrap_or(80) == port {
        return Ok(());
    }
    Err(bad("`Host` and the target name two hosts"))
}

/// The characters of names of fields and methods (RFC 9110, 5.6.2).
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

fn bad(what: &str) -> Wrong {
    let what: String = what.chars().filter(|c| !c.is_control()).take(SHOWN_MAX * 2).collect();
    Wrong { status: 400, what }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Pieces that heads are made of, right and wrong.
    const PIECES: &[&str] = &[
        "GET",
        "CONNECT",
        "POST",
        " ",
        "http://",
        "a.test",
        "b.test",
        ":80",
        ":443",
        "[::1]",
        "/",
        "?q=1",
        "#",
        "@",
        " HTTP/1.1",
        " HTTP/1.0",
        "\r\n",
        "\n",
        "\r",
        "\t",
        "\0",
        ":",
        "Host: a.test",
        "Host: b.test",
        "Content-Length: 5",
        "Transfer-Encoding: chunked",
        "Connection: Host, X, Content-Length",
        "X: y",
        ",",
        "\u{e9}",
    ];

    /// What an attacker would try: a head that is nearly right.
    fn nearly_right() -> impl Strategy<Value = Vec<u8>> {
        let piece = proptest::sample::select(PIECES).prop_map(str::to_owned);
        let line = proptest::collection::vec(piece.clone(), 0..4).prop_map(|pieces| pieces.concat());
        let first = prop_oneof![
            4 => Just("GET http://a.test/p HTTP/1.1\r\nHost: a.test".to_owned()),
            1 => Just("CONNECT a.test:443 HTTP/1.1".to_owned()),
            1 => proptest::collection::vec(piece, 0..8).prop_map(|pieces| pieces.concat()),
        ];
        let line = prop_oneof![3 => proptest::sample::select(PIECES).prop_map(str::to_owned), 1 => line];
        (first, proptest::collection::vec(line, 0..5)).prop_map(|(first, lines)| {
            let mut head = first;
            for line in lines {
                head = format!("{head}\r\n{line}");
            }
            (head + "\r\n\r\n").into_bytes()
        })
    }

    fn lines(head: &[u8]) -> Vec<String> {
        let text = String::from_utf8_lossy(head).into_owned();
        text.strip_suffix("\r\n\r\n").unwrap().split("\r\n").map(str::to_owned).collect()
    }

    /// A head that is passed on has one meaning, whoever reads it.
    fn has_one_meaning(head: &[u8], wanted: &Request) -> Result<(), TestCaseError> {
        let Wanted::Answer { head: written, body, .. } = &wanted.what else { return Ok(()) };
        prop_assert_eq!(end(written, 0).unwrap(), Some(written.len()));
        let lines = lines(written);
        let named = |name: &str| {
            let begins = format!("{name}:");
            lines.iter().skip(1).filter(|line| line.to_ascii_lowercase().starts_with(&begins)).count()
        };
        prop_assert!(lines.iter().all(|line| !line.contains(['\r', '\n', '\0'])));
        prop_assert!(lines.iter().skip(1).all(|line| !line.starts_with([' ', '\t']) && line.contains(": ")));
        prop_assert_eq!((named("host"), named("connection")), (1, 1), "{:?}", head);
        let expected = match body {
            Framing::None => (named("content-length"), 0),
            Framing::Length(_) => (1, 0),
            Framing::Chunked(_) | Framing::UntilClose => (0, 1),
        };
        prop_assert_eq!((named("content-length"), named("transfer-encoding")), expected, "{:?}", head);
        let host = lines.iter().find_map(|line| line.strip_prefix("Host: ")).unwrap();
        let (_, host, port) = authority(host).unwrap();
        prop_assert_eq!((host, port.unwrap_or(80)), (wanted.host.clone(), wanted.port));
        prop_assert!(lines[0].split(' ').nth(1).unwrap().starts_with('/'));
        Ok(())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn whatever_is_accepted_has_one_meaning(head in nearly_right()) {
            if let Ok(wanted) = request(&head) {
                has_one_meaning(&head, &wanted)?;
            }
        }

        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200), cut in 0usize..200) {
            let _head = end(&bytes, cut.min(bytes.len()));
            let _request = request(&bytes);
            let _response = response(&[b"HTTP/1.1 200 OK\r\n", bytes.as_slice(), b"\r\n\r\n"].concat(), Method::Other);
            let _request = request(&[b"GET http://", bytes.as_slice(), b"\r\n\r\n"].concat());
        }

        /// However a head arrives, it ends at the same place or is refused.
        #[test]
        fn how_a_head_is_cut_changes_nothing(head in nearly_right(), step in 1usize..7) {
            let whole = end(&head, 0);
            let mut known = 0;
            let mut found = Ok(None);
            while known < head.len() && matches!(found, Ok(None)) {
                let now = (known + step).min(head.len());
                found = end(&head[..now], known);
                known = now;
            }
            prop_assert_eq!(found.is_err(), whole.is_err());
            if let (Ok(found), Ok(whole)) = (found, whole) {
                prop_assert_eq!(found, whole);
            }
        }
    }

    #[test]
    fn accepted_heads_are_reached_by_the_strategy() {
        let plain = b"GET http://a.test/p HTTP/1.1\r\nHost: a.test\r\nConnection: Host, X, Content-Length\r\nX: y\r\nContent-Length: 5\r\n\r\n";
        let wanted = request(plain).unwrap();
        has_one_meaning(plain, &wanted).unwrap();
        let Wanted::Answer { head, .. } = wanted.what else { panic!() };
        assert_eq!(
            lines(&head),
            ["GET /p HTTP/1.1", "Host: a.test", "Content-Length: 5", "Connection: close"]
        );
    }

    #[test]
    fn a_tunnel_goes_by_its_target_alone() {
        // Some clients put the proxy's own name there.
        let wanted = request(b"CONNECT A.test.:8443 HTTP/1.1\r\nHost: 127.0.0.1:3128\r\n\r\n").unwrap();
        let host = Host::Name("a.test".to_owned());
        assert_eq!(wanted, Request { host, written: "A.test.".to_owned(), port: 8443, what: Wanted::Tunnel });
    }
}
