//! A browser without a picture: requests over a connection that stays open.

use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::bench::BenchError;

/// Longest answer, in bytes.
const ANSWER_BYTES_MAX: usize = 16 << 20;

/// Somebody who signed in.
pub(super) struct Browser {
    stream: TcpStream,
    host: String,
    cookie: String,
}

impl Browser {
    /// Follows a link.
    pub(super) async fn sign_in(origin: &str, link: &str) -> Result<Self, BenchError> {
        let host = origin.split_once("://").map_or(origin, |(_, host)| host).to_owned();
        let port = host.rsplit_once(':').and_then(|(_, port)| port.parse().ok()).unwrap_or_default();
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        let stream = TcpStream::connect(address).await.map_err(BenchError::io("reach the console"))?;
        stream.set_nodelay(true).map_err(BenchError::io("reach the console"))?;
        let mut browser = Self { stream, host, cookie: String::new() };
        let body = link.split_once('?').map_or("", |(_, query)| query);
        let head = format!(
            "POST /sign-in/link HTTP/1.1\r\nHost: {}\r\nOrigin: {origin}\r\nContent-Length: {}\r\n\
             Content-Type: application/x-www-form-urlencoded\r\n\r\n{body}",
            browser.host,
            body.len()
        );
        let (_, head, _) = browser.exchange(&head).await?;
        let cookie = head.lines().find_map(|line| line.strip_prefix("set-cookie: "));
        let cookie = cookie.and_then(|cookie| cookie.split(';').next());
        browser.cookie = cookie.ok_or_else(|| refused(&head))?.to_owned();
        Ok(browser)
    }

    fn request(&self, path: &str) -> String {
        format!("GET {path} HTTP/1.1\r\nHost: {}\r\nCookie: {}\r\n\r\n", self.host, self.cookie)
    }

    /// How long the first byte of a page took, and the size of the page.
    pub(super) async fn get(&mut self, path: &str) -> Result<(Duration, usize), BenchError> {
        let request = self.request(path);
        let (took, head, size) = self.exchange(&request).await?;
        if head.starts_with("HTTP/1.1 200") {
            Ok((took, size))
        } else {
            Err(refused(&format!("{path}: {head}")))
        }
    }

    async fn exchange(&mut self, request: &str) -> Result<(Duration, String, usize), BenchError> {
        let failed = || BenchError::io("ask the console");
        let begin = Instant::now();
        self.stream.write_all(request.as_bytes()).await.map_err(failed())?;
        let (mut got, mut took, mut piece) = (Vec::new(), None, [0; 64 << 10]);
        loop {
            let read = self.stream.read(&mut piece).await.map_err(failed())?;
            took.get_or_insert_with(|| begin.elapsed());
            got.extend_from_slice(piece.get(..read).unwrap_or_default());
            let end = got.windows(4).position(|bytes| bytes == b"\r\n\r\n");
            let head =
                end.and_then(|end| got.get(..end)).map(|head| String::from_utf8_lossy(head).into_owned());
            if let (Some(end), Some(head)) = (end, head) {
                let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
                let length = length.and_then(|length| length.parse().ok()).unwrap_or(0);
                if got.len() >= end + 4 + length {
                    return Ok((took.unwrap_or_default(), head, length));
                }
            }
            if read == 0 || got.len() > ANSWER_BYTES_MAX {
                return Err(refused("the connection ended"));
            }
        }
    }

    /// Reads the stream of what happens until it ends.
    pub(super) async fn listen(mut self) {
        let request = self.request("/live");
        let mut piece = [0; 16 << 10];
        if self.stream.write_all(request.as_bytes()).await.is_ok() {
            while self.stream.read(&mut piece).await.is_ok_and(|read| read > 0) {}
        }
    }
}

fn refused(why: &str) -> BenchError {
    let line = why.lines().next().unwrap_or_default().to_owned();
    BenchError::io("ask the console")(io::Error::other(line))
}
