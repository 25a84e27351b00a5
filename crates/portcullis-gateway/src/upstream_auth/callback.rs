//! Where the browser comes back to after a login: one address of loopback, for one answer.

use std::time::Duration;

use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;
use url::Url;

/// Longest line of a request, in bytes.
const LINE_BYTES_MAX: u64 = 16 << 10;
/// How long a connection may take to say what it wants.
const LINE_MAX: Duration = Duration::from_secs(5);
/// The most answers that are looked at: whoever guesses has had enough tries.
const ANSWERS_MAX: usize = 32;

const PATH: &str = "/callback";
const DONE: &str = "Portcullis has the answer. You can close this page.";
const FOREIGN: &str = "This is not the answer that Portcullis waits for.";

/// What an answer has to agree with.
#[derive(Debug)]
pub(super) struct Expected<'a> {
    pub(super) state: &'a str,
    pub(super) issuer: &'a str,
    /// Whether the server says who it is in its answers (RFC 9207).
    pub(super) names_issuer: bool,
}

/// Why an answer is of no use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum NoCode {
    /// Another server has answered.
    OtherIssuer,
    /// The answer does not say which server it is from.
    NoIssuer,
    /// The person or the server said no, with this error.
    Denied(&'static str),
    /// Neither a code nor an error.
    Empty,
}

/// Errors of RFC 6749, 4.1.2.1, that are repeated.
const ERRORS: [&str; 7] = [
    "access_denied",
    "invalid_request",
    "invalid_scope",
    "server_error",
    "temporarily_unavailable",
    "unauthorized_client",
    "unsupported_response_type",
];

/// Where the browser comes back to on a host, with or without a port.
pub(super) fn address(host: &str) -> String {
    format!("http://{host}{PATH}")
}

/// An address that is listened on.
#[derive(Debug)]
pub(super) struct Callback {
    listener: TcpListener,
    pub(super) address: String,
}

impl Callback {
    /// Listens on the first of these ports of loopback that is free; 0: any.
    pub(super) async fn listen(ports: &[u16]) -> Result<Self, String> {
        let mut failed = String::new();
        for port in ports {
            match TcpListener::bind(("127.0.0.1", *port)).await {
                Ok(listener) => {
                    let at = listener.local_addr().map_err(|error| error.to_string())?;
                    return Ok(Self { listener, address: address(&at.to_string()) });
                }
                Err(error) => failed = format!("cannot listen on port {port} of 127.0.0.1: {error}"),
            }
        }
        Err(format!("{failed}; name another one with `--port PORT`"))
    }

    /// The code of the first answer that has the state. Nobody is answered after it.
    pub(super) async fn code(self, expected: &Expected<'_>) -> Result<String, NoCode> {
        let mut answers = 0;
        loop {
            let Ok((stream, _)) = self.listener.accept().await else { continue };
            let mut stream = BufReader::new(stream);
            let Some(target) = timeout(LINE_MAX, target(&mut stream)).await.ok().flatten() else { continue };
            let Some(fields) = target.strip_prefix(PATH).and_then(|rest| rest.strip_prefix('?')) else {
                respond(&mut stream, 404, FOREIGN).await;
                continue;
            };
            match read(fields, expected) {
                None if answers < ANSWERS_MAX => {
                    answers += 1;
                    respond(&mut stream, 400, FOREIGN).await;
                }
                None => return Err(NoCode::Empty),
                Some(read) => {
                    let words = if read.is_ok() { DONE } else { "The login failed; the terminal says why." };
                    respond(&mut stream, 200, words).await;
                    return read;
                }
            }
        }
    }
}

/// The code of an answer, or why there is none. None: it is not the answer to our request.
fn read(fields: &str, expected: &Expected<'_>) -> Option<Result<String, NoCode>> {
    let url = Url::parse(&format!("http://127.0.0.1{PATH}?{fields}")).ok()?;
    let field = |wanted: &str| {
        let mut found =
            url.query_pairs().filter(|(name, _)| name == wanted).map(|(_, value)| value.into_owned());
        let first = found.next();
        // Two of one name: somebody added one.
        if found.next().is_some() { None } else { first }
    };
    let twice = |wanted: &str| url.query_pairs().filter(|(name, _)| name == wanted).count() > 1;
    if field("state").as_deref() != Some(expected.state) {
        return None;
    }
    // RFC 9207, 2.4, before anything else of the answer is looked at, an error included.
    match field("iss") {
        Some(issuer) if issuer == expected.issuer => {}
        None if !expected.names_issuer && !twice("iss") => {}
        None if !twice("iss") => return Some(Err(NoCode::NoIssuer)),
        _ => return Some(Err(NoCode::OtherIssuer)),
    }
    if let Some(error) = field("error") {
        let known = ERRORS.into_iter().find(|known| *known == error);
        return Some(Err(NoCode::Denied(known.unwrap_or("an error of its own"))));
    }
    Some(field("code").filter(|code| !code.is_empty()).ok_or(NoCode::Empty))
}

/// The target of a GET request.
async fn target(stream: &mut BufReader<TcpStream>) -> Option<String> {
    let mut line = String::new();
    (&mut *stream).take(LINE_BYTES_MAX).read_line(&mut line).await.ok()?;
    let target = line.strip_prefix("GET ")?.split(' ').next()?.to_owned();
    // The rest of the head, so that the answer arrives before the connection is reset.
    let mut rest = (&mut *stream).take(LINE_BYTES_MAX);
    loop {
        let mut line = String::new();
        if rest.read_line(&mut line).await.ok()? <= 2 {
            return Some(target);
        }
    }
}

async fn respond(stream: &mut BufReader<TcpStream>, status: u16, words: &str) {
    let answer = format!(
        "HTTP/1.1 {status} Portcullis\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\n\
         Cache-Control: no-store\r\nReferrer-Policy: no-referrer\r\nConnection: close\r\n\r\n{words}",
        words.len()
    );
    // A browser that went away has its answer all the same.
    let _ = timeout(LINE_MAX, stream.get_mut().write_all(answer.as_bytes())).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXPECTED: Expected<'_> = Expected { state: "s", issuer: "https://a.example", names_issuer: true };

    #[test]
    fn an_answer_is_the_servers_and_to_our_request() {
        let right = "state=s&code=c&iss=https%3A%2F%2Fa.example";
        assert_eq!(read(right, &EXPECTED), Some(Ok("c".to_owned())));
        for (fields, says) in [
            ("code=c&iss=https%3A%2F%2Fa.example", None),
            ("state=t&code=c&iss=https%3A%2F%2Fa.example", None),
            ("state=s&state=s&code=c&iss=https%3A%2F%2Fa.example", None),
            ("state=s&code=c", Some(NoCode::NoIssuer)),
            ("state=s&code=c&iss=https%3A%2F%2Fa.example%2F", Some(NoCode::OtherIssuer)),
            ("state=s&code=c&iss=https%3A%2F%2FA.example", Some(NoCode::OtherIssuer)),
            ("state=s&error=access_denied&iss=https%3A%2F%2Fevil.example", Some(NoCode::OtherIssuer)),
            ("state=s&code=c&iss=https%3A%2F%2Fa.example&iss=x", Some(NoCode::OtherIssuer)),
            (
                "state=s&error=access_denied&iss=https%3A%2F%2Fa.example",
                Some(NoCode::Denied("access_denied")),
            ),
            (
                "state=s&error=buy+now&iss=https%3A%2F%2Fa.example",
                Some(NoCode::Denied("an error of its own")),
            ),
            ("state=s&code=&iss=https%3A%2F%2Fa.example", Some(NoCode::Empty)),
        ] {
            assert_eq!(read(fields, &EXPECTED), says.map(Err), "{fields}");
        }
        let silent = Expected { names_issuer: false, ..EXPECTED };
        assert_eq!(read("state=s&code=c", &silent), Some(Ok("c".to_owned())));
        assert_eq!(read("state=s&code=c&iss=x", &silent), Some(Err(NoCode::OtherIssuer)));
    }
}
