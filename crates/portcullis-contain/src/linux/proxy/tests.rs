//! The proxy between real sockets, without a command: clients and servers are threads here.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use portcullis_core::observed::{Connection, ConnectionVerdict};

use super::{CONNECTIONS_MAX, Proxy, RECORDED_MAX, TIMES, Times, accept};
use crate::network::{Names, OnConnection};
use crate::{Network, Places};
use portcullis_core::bundle::built_in_profile;

/// Names and what they lead to. `slow.test` is never found.
#[derive(Debug, Clone)]
struct Book(BTreeMap<&'static str, Vec<&'static str>>);

impl Names for Book {
    fn addresses(&self, name: &str) -> std::io::Result<Vec<std::net::IpAddr>> {
        if name == "slow.test" {
            sleep(Duration::from_secs(60));
        }
        let found = self.0.get(name).ok_or_else(|| std::io::Error::other("no such name"))?;
        Ok(found.iter().map(|text| text.parse().unwrap()).collect())
    }
}

struct Rig {
    proxy: Proxy,
    address: SocketAddr,
    told: Arc<Mutex<Vec<Connection>>>,
}

fn rig_with(hosts: &[String], times: Times) -> Rig {
    let nowhere = Path::new("/nonexistent");
    let places = Places { workspace: Some(nowhere), home: None, here: None };
    let mut profile = built_in_profile("project").unwrap().at(&places).unwrap();
    profile.write.clear();
    profile.name = "tried".to_owned();
    profile.network = Network::Hosts(hosts.to_vec());
    profile.check().unwrap();
    let book = [
        ("a.test", vec!["127.0.0.1"]),
        ("mixed.test", vec!["169.254.169.254", "127.0.0.1"]),
        ("metadata.test", vec!["169.254.169.254"]),
    ];
    let told = Arc::new(Mutex::new(Vec::new()));
    let teller = Arc::clone(&told);
    let on_connection = OnConnection::call(move |made| teller.lock().unwrap().push(made.clone()));
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let names = Arc::new(Book(book.into()));
    let work = move |shared: &Arc<_>, stop: &_| accept(&listener, shared, stop);
    let proxy = Proxy::start(&profile, names, on_connection, times, work).unwrap();
    Rig { proxy, address, told }
}

fn rig(hosts: &[String]) -> Rig {
    rig_with(hosts, TIMES)
}

impl Rig {
    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream
    }

    /// Sends this, and reads until the end.
    fn ask(&self, request: &[u8]) -> String {
        let mut stream = self.connect();
        stream.write_all(request).unwrap();
        rest(&mut stream)
    }

    fn tunnel(&self, to: &str) -> TcpStream {
        let mut stream = self.connect();
        write!(stream, "CONNECT {to} HTTP/1.1\r\nHost: {to}\r\n\r\n").unwrap();
        let mut answer = [0; 39];
        stream.read_exact(&mut answer).unwrap();
        assert_eq!(&answer[..], b"HTTP/1.1 200 Connection established\r\n\r\n");
        stream
    }

    fn finish(self) -> Vec<Connection> {
        let (made, left_out) = self.proxy.finish();
        assert_eq!(left_out, 0);
        let (mut one, mut other) = (made.clone(), self.told.lock().unwrap().clone());
        let order = |made: &Connection| format!("{made:?}");
        one.sort_by_key(order);
        other.sort_by_key(order);
        assert_eq!(one, other);
        made
    }
}

fn rest(stream: &mut TcpStream) -> String {
    let mut text = Vec::new();
    match stream.read_to_end(&mut text) {
        Ok(_) => {}
        Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset),
    }
    String::from_utf8_lossy(&text).into_owned()
}

/// A server that answers each connection with this and ends it, once it has read so many bytes in all; what it read.
fn server(expects: usize, answer: &'static [u8]) -> (u16, Receiver<Vec<u8>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (sender, receiver) = channel();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut read = vec![0; expects];
            stream.read_exact(&mut read).unwrap();
            stream.write_all(answer).unwrap();
            stream.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
            // What comes besides.
            let _more = stream.read_to_end(&mut read);
            if sender.send(read).is_err() {
                return;
            }
        }
    });
    (port, receiver)
}

#[test]
fn an_early_answer_is_read_though_the_body_cannot_be_sent() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.write_all(b"HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\n\r\nno\n").unwrap();
        stream.shutdown(std::net::Shutdown::Both).unwrap();
    });
    let rig = rig(&private(port));
    let mut stream = rig.connect();
    let head = format!(
        "PUT http://a.test:{port}/ HTTP/1.1\r\nHost: a.test:{port}\r\nContent-Length: 50000000\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).unwrap();
    let mut writer = stream.try_clone().unwrap();
    thread::spawn(move || while writer.write_all(&[b'x'; 65536]).is_ok() {});
    let mut first = [0; 12];
    stream.read_exact(&mut first).unwrap();
    assert_eq!(&first, b"HTTP/1.1 413");
    assert_eq!(reason(&rig.finish()[0]), "permitted");
}

/// A server that sends back what it gets.
fn echo() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for stream in listener.incoming() {
            thread::spawn(move || {
                let mut stream = stream.unwrap();
                let _gone = std::io::copy(&mut stream.try_clone().unwrap(), &mut stream);
            });
        }
    });
    port
}

fn private(port: u16) -> Vec<String> {
    vec![format!("private:a.test:{port}"), format!("private:mixed.test:{port}")]
}

fn reason(made: &Connection) -> &str {
    match &made.verdict {
        ConnectionVerdict::Permitted => "permitted",
        ConnectionVerdict::Refused(why) | ConnectionVerdict::Failed(why) => why,
    }
}

#[test]
fn a_tunnel_passes_both_ways_until_both_are_done() {
    let (port, read) = server(5, b"world!");
    let rig = rig(&private(port));
    let mut stream = rig.tunnel(&format!("A.test.:{port}"));
    stream.write_all(b"hel").unwrap();
    stream.write_all(b"lo").unwrap();
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!(rest(&mut stream), "world!");
    assert_eq!(read.recv().unwrap(), b"hello");
    let made = rig.finish();
    let expected = Connection {
        host: "A.test.".to_owned(),
        port,
        address: Some([127, 0, 0, 1].into()),
        sent: 5,
        received: 6,
        verdict: ConnectionVerdict::Permitted,
    };
    assert_eq!(made, [expected]);
}

#[test]
fn what_comes_with_the_head_is_passed_on() {
    let rig = rig(&private(echo_port()));
    let port = echo_port();
    let mut stream = rig.connect();
    write!(stream, "CONNECT a.test:{port} HTTP/1.0\r\n\r\nearly").unwrap();
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!(rest(&mut stream), "HTTP/1.1 200 Connection established\r\n\r\nearly");
    assert_eq!(reason(&rig.finish()[0]), "permitted");
}

/// One for all tests.
fn echo_port() -> u16 {
    static PORT: std::sync::OnceLock<u16> = std::sync::OnceLock::new();
    *PORT.get_or_init(echo)
}

#[test]
fn a_plain_request_is_written_anew_and_nothing_follows_it() {
    let answer = b"HTTP/1.1 200 OK\r\nKeep-Alive: x\r\nConnection: keep-alive, X-Hop\r\nX-Hop: 1\r\nX-End: 1\r\nContent-Length: 2\r\n\r\nokGARBAGE";
    let (port, read) = server(40, answer);
    let rig = rig(&private(port));
    let request = format!(
        "POST http://a.test:{port}/p?q HTTP/1.1\r\nHost: a.test:{port}\r\nProxy-Authorization: Basic eA==\r\nProxy-Connection: keep-alive\r\nConnection: X-Secret, Content-Length\r\nX-Secret: 1\r\nTE: trailers\r\nUpgrade: h2c\r\nX-End: 1\r\nContent-Length: 3\r\n\r\nabcGET http://evil.test/ HTTP/1.1\r\nHost: evil.test\r\n\r\n"
    );
    let answer = rig.ask(request.as_bytes());
    assert_eq!(answer, "HTTP/1.1 200 OK\r\nX-End: 1\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok");
    let expected = format!(
        "POST /p?q HTTP/1.1\r\nHost: a.test:{port}\r\nX-End: 1\r\nContent-Length: 3\r\nConnection: close\r\n\r\nabc"
    );
    assert_eq!(String::from_utf8(read.recv().unwrap()).unwrap(), expected);
    let made = rig.finish();
    assert_eq!((reason(&made[0]), made[0].sent), ("permitted", u64::try_from(expected.len()).unwrap()));
}

#[test]
fn bodies_end_as_their_heads_say() {
    let chunked = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\nX";
    for (method, answer, body) in [
        ("POST", &chunked[..], "2\r\nok\r\n0\r\n\r\n"),
        ("HEAD", b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nX", ""),
        ("GET", b"HTTP/1.1 204 No Content\r\n\r\nX", ""),
        ("GET", b"HTTP/1.0 200 OK\r\n\r\nuntil the end", "until the end"),
    ] {
        let (port, read) = server(20, answer);
        let rig = rig(&private(port));
        let answer = rig.ask(
            format!(
                "{method} http://a.test:{port} HTTP/1.1\r\nHost: A.TEST:{port}\r\nTransfer-Encoding: Chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\nGET / HTTP/1.1"
            )
            .as_bytes(),
        );
        let (_, told) = answer.rsplit_once("Connection: close\r\n\r\n").unwrap();
        assert_eq!(told, body, "{answer}");
        let read = String::from_utf8(read.recv().unwrap()).unwrap();
        assert!(read.ends_with("close\r\n\r\n3\r\nabc\r\n0\r\n\r\n"), "{read}");
    }
}

#[test]
fn an_answer_that_cannot_be_read_is_not_passed_on() {
    for answer in [
        &b"SSH-2.0-x\r\n\r\n"[..],
        b"HTTP/1.1 200 OK\nX: y\n\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\nx",
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX: y",
        b"",
    ] {
        let (port, _read) = server(20, answer);
        let rig = rig(&private(port));
        let told =
            rig.ask(format!("GET http://a.test:{port}/ HTTP/1.1\r\nHost: a.test:{port}\r\n\r\n").as_bytes());
        assert!(told.starts_with("HTTP/1.1 502 Not reached\r\n"), "{told}");
        assert!(matches!(rig.finish()[0].verdict, ConnectionVerdict::Failed(_)));
    }
}

#[test]
fn what_the_profile_does_not_name_is_refused_with_what_to_add() {
    let rig = rig(&["b.test".to_owned(), "127.0.0.1:1".to_owned(), "localhost:1".to_owned()]);
    for target in
        ["a.test:443", "b.test:8080", "127.0.0.1:2", "[::1]:1", "localhost:2", "[::ffff:127.0.0.1]:1"]
    {
        let told = rig.ask(format!("CONNECT {target} HTTP/1.1\r\n\r\n").as_bytes());
        assert!(told.starts_with("HTTP/1.1 403 Refused by the profile\r\n"), "{target}: {told}");
    }
    let told = rig.ask(b"GET http://evil.test:81/ HTTP/1.1\r\nHost: evil.test:81\r\n\r\n");
    let line = "portcullis: `evil.test:81`: the profile `tried` does not name it; add `evil.test:81` to its hosts, or give `--net evil.test:81`\n";
    assert!(told.ends_with(line), "{told}");
    let made = rig.finish();
    assert_eq!(made.len(), 7);
    assert!(
        made.iter()
            .all(|made| matches!(made.verdict, ConnectionVerdict::Refused(_)) && made.address.is_none())
    );
}

#[test]
fn a_name_leads_inside_only_where_the_profile_says_so() {
    let port = echo_port();
    let hosts =
        [format!("a.test:{port}"), format!("metadata.test:{port}"), format!("private:mixed.test:{port}")];
    let rig = rig(&hosts);
    let told = rig.ask(format!("CONNECT a.test:{port} HTTP/1.1\r\n\r\n").as_bytes());
    assert!(
        told.contains("leads to 127.0.0.1") && told.contains(&format!("`private:a.test:{port}`")),
        "{told}"
    );
    let told = rig.ask(format!("CONNECT metadata.test:{port} HTTP/1.1\r\n\r\n").as_bytes());
    assert!(told.contains("metadata") && told.contains(&format!("`169.254.169.254:{port}`")), "{told}");
    // Of several addresses those that may be are dialled.
    drop(rig.tunnel(&format!("mixed.test:{port}")));
    // They are listed as they end, so not always in this order.
    let made = rig.finish();
    let mixed = made.iter().find(|made| made.host == "mixed.test").unwrap();
    assert_eq!(mixed.address, Some([127, 0, 0, 1].into()));
}

#[test]
fn the_loopback_is_reached_where_it_is_named() {
    let port = echo_port();
    for (rule, target) in
        [("127.0.0.1", "127.0.0.1"), ("localhost", "localhost"), ("localhost", "LocalHost.")]
    {
        let rig = rig(&[format!("{rule}:{port}")]);
        drop(rig.tunnel(&format!("{target}:{port}")));
        assert_eq!(rig.finish()[0].address, Some([127, 0, 0, 1].into()));
    }
}

/// Heads that two readers could take for different requests, or for none. `H` stands for the host.
const TWOFOLD: &[&str] = &[
    "GET http://H/ HTTP/1.1\r\nHost: H\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
    "GET http://H/ HTTP/1.1\r\nHost: H\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\nx",
    "GET http://H/ HTTP/1.1\r\nHost: H\r\nContent-Length: 1, 1\r\n\r\nx",
    "GET http://H/ HTTP/1.1\r\nHost: H\r\nContent-Length: +1\r\n\r\nx",
    "GET http://H/ HTTP/1.1\r\nHost: H\r\nContent-Length: 18446744073709551616\r\n\r\nx",
    "GET http://H/ HTTP/1.1\r\nHost: H\r\nContent-Length:\r\n\r\nx",
    "GET http://H/ HTTP/1.1\r\nHost: H\r\nTransfer-Encoding: chunked, identity\r\n\r\n",
    "GET http://H/ HTTP/1.1\r\nHost: H\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
    "GET http://H/ HTTP/1.1\r\nHost: H\r\nTransfer-Encoding: xchunked\r\n\r\n",
    "GET http://H/ HTTP/1.0\r\nHost: H\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "GET http://H/ HTTP/1.1\r\nHost: H\r\nTransfer-Encoding : chunked\r\n\r\n",
    "GET http://H/ HTTP/1.1\r\nHost: H\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n",
    "GET http://H/ HTTP/1.1\r\nHost: H\r\nX: y\r\n z\r\n\r\n",
    "GET http://H/ HTTP/1.1\r\n Host: H\r\n\r\n",
    "GET http://H/ HTTP/1.1\nHost: H\n\n",
    "GET http://H/ HTTP/1.1\r\nHost: H\nX: y\r\n\r\n",
    "GET http://H/ HTTP/1.1\r\nHost: H\rX: y\r\n\r\n",
    "GET http://H/ HTTP/1.1\r\nHost: H\r\nX: \0\r\n\r\n",
    "GET http://H/ HTTP/1.1\r\nHost: H\r\nHost: H\r\n\r\n",
    "GET http://H/ HTTP/1.1\r\nHost: b.test\r\n\r\n",
    "GET http://H/ HTTP/1.1\r\nHost: a.test\r\n\r\n",
    "GET http://H/ HTTP/1.1\r\n\r\n",
    "GET http://user@H/ HTTP/1.1\r\nHost: H\r\n\r\n",
    "GET http://b.test@H/ HTTP/1.1\r\nHost: H\r\n\r\n",
    "GET http://H/#x HTTP/1.1\r\nHost: H\r\n\r\n",
    "GET http://H\\@b.test/ HTTP/1.1\r\nHost: H\r\n\r\n",
    "GET https://H/ HTTP/1.1\r\nHost: H\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: H\r\n\r\n",
    "GET //H/ HTTP/1.1\r\nHost: H\r\n\r\n",
    "GET http://H/ b HTTP/1.1\r\nHost: H\r\n\r\n",
    "GET  http://H/ HTTP/1.1\r\nHost: H\r\n\r\n",
    "GET http://H/\u{e9} HTTP/1.1\r\nHost: H\r\n\r\n",
    "G@T http://H/ HTTP/1.1\r\nHost: H\r\n\r\n",
    "GET http://H/ HTTP/2.0\r\nHost: H\r\n\r\n",
    "GET http://H/\r\n\r\n",
    "\r\nGET http://H/ HTTP/1.1\r\nHost: H\r\n\r\n",
    "CONNECT H HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello",
    "CONNECT H HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n",
    "CONNECT a.test HTTP/1.1\r\n\r\n",
    "CONNECT user@H HTTP/1.1\r\n\r\n",
    "CONNECT http://H HTTP/1.1\r\n\r\n",
    "CONNECT a.test:0 HTTP/1.1\r\n\r\n",
    "\u{16}\u{3}\u{1} a TLS hello",
    "\u{5}\u{1} a SOCKS hello",
];

#[test]
fn what_could_be_read_in_two_ways_never_reaches_a_server() {
    let (port, read) = server(1, b"");
    let rig = rig(&private(port));
    let host = format!("a.test:{port}");
    for head in TWOFOLD {
        let told = rig.ask(
            head.replace('H', "\u{1}")
                .replace("\u{1}TTP", "HTTP")
                .replace("\u{1}ost", "Host")
                .replace('\u{1}', &host)
                .as_bytes(),
        );
        let status = told.get(..12).unwrap_or_default();
        assert!(["HTTP/1.1 400", "HTTP/1.1 505"].contains(&status), "{head:?}: {told}");
        assert_eq!(
            told.matches("HTTP/1.1").count(),
            1 + told.matches("HTTP/1.1 are").count(),
            "{head:?}: {told}"
        );
    }
    let made = rig.finish();
    assert_eq!(made.len(), TWOFOLD.len());
    assert!(
        made.iter()
            .all(|made| matches!(made.verdict, ConnectionVerdict::Refused(_)) && made.address.is_none()),
        "{made:?}"
    );
    assert!(read.try_recv().is_err(), "something reached the server");
}

#[test]
fn slow_and_large_heads_are_cut_off() {
    let rig = rig_with(&private(1), Times { head: Duration::from_millis(400), ..TIMES });
    let begun = Instant::now();
    let mut slow = rig.connect();
    let mut drip = slow.try_clone().unwrap();
    let dripping = thread::spawn(move || {
        while drip.write_all(b"G").is_ok() && begun.elapsed() < Duration::from_secs(10) {
            sleep(Duration::from_millis(20));
        }
    });
    let told = rest(&mut slow);
    assert!(told.starts_with("HTTP/1.1 408") && begun.elapsed() < Duration::from_secs(5), "{told}");
    drop(slow);
    dripping.join().unwrap();
    let large = format!("GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\nX: {}", "x".repeat(40 << 10));
    assert!(rig.ask(large.as_bytes()).starts_with("HTTP/1.1 431"));
    let many = format!("GET http://a.test/ HTTP/1.1\r\n{}\r\n", "X: y\r\n".repeat(200));
    assert!(rig.ask(many.as_bytes()).starts_with("HTTP/1.1 431"));
}

#[test]
fn many_connections_at_once_are_each_counted() {
    const EACH: usize = 1 << 20;
    let port = echo_port();
    let rig = rig(&private(port));
    let clients: Vec<_> = (0..64)
        .map(|index| {
            let mut stream = rig.tunnel(&format!("a.test:{port}"));
            let mut writer = stream.try_clone().unwrap();
            let sent = vec![u8::try_from(index).unwrap(); EACH];
            thread::spawn(move || {
                let writing = thread::spawn(move || {
                    writer.write_all(&sent).unwrap();
                    writer.shutdown(std::net::Shutdown::Write).unwrap();
                });
                let mut back = Vec::new();
                stream.read_to_end(&mut back).unwrap();
                writing.join().unwrap();
                back.len() == EACH && back.iter().all(|byte| usize::from(*byte) == index)
            })
        })
        .collect();
    assert!(clients.into_iter().all(|client| client.join().unwrap()));
    let made = rig.finish();
    let each = u64::try_from(EACH).unwrap();
    assert_eq!(made.iter().filter(|made| made.sent == each && made.received == each).count(), 64);
}

#[test]
fn more_connections_than_are_served_are_told_so() {
    let rig = rig(&private(1));
    let open: Vec<_> = (0..CONNECTIONS_MAX).map(|_| rig.connect()).collect();
    let until = Instant::now() + Duration::from_secs(10);
    while rig.proxy.shared.record().open < CONNECTIONS_MAX && Instant::now() < until {
        sleep(Duration::from_millis(5));
    }
    assert!(rest(&mut rig.connect()).starts_with("HTTP/1.1 503"));
    drop(open);
    let made = rig.finish();
    assert_eq!(made.len(), CONNECTIONS_MAX + 1);
}

#[test]
fn connections_beyond_those_that_are_listed_are_counted() {
    let rig = rig(&[]);
    for _ in 0..RECORDED_MAX + 5 {
        let mut stream = rig.connect();
        stream.write_all(b"CONNECT a.test:443 HTTP/1.1\r\n\r\n").unwrap();
        let mut first = [0; 12];
        stream.read_exact(&mut first).unwrap();
    }
    let (made, left_out) = rig.proxy.finish();
    assert_eq!((made.len(), left_out), (RECORDED_MAX, 5));
}

#[test]
fn what_cannot_be_reached_is_told_apart() {
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let hosts = [private(closed), vec!["gone.test".to_owned(), "slow.test".to_owned()]].concat();
    let rig = rig_with(&hosts, Times { lookup: Duration::from_millis(200), ..TIMES });
    let ask = |target: &str| rig.ask(format!("CONNECT {target} HTTP/1.1\r\n\r\n").as_bytes());
    let refused = ask(&format!("a.test:{closed}"));
    assert!(refused.starts_with("HTTP/1.1 502") && refused.contains("refused"), "{refused}");
    assert!(ask("gone.test:443").contains("no such name"));
    assert!(ask("slow.test:443").starts_with("HTTP/1.1 504"));
    assert!(rig.finish().iter().all(|made| matches!(made.verdict, ConnectionVerdict::Failed(_))));
}

#[test]
fn silence_ends_a_connection() {
    let port = echo_port();
    let rig = rig_with(&private(port), Times { idle: Duration::from_millis(300), ..TIMES });
    let mut stream = rig.tunnel(&format!("a.test:{port}"));
    assert_eq!(rest(&mut stream), "");
    assert_eq!(rig.finish().len(), 1);
}

#[test]
fn everything_ends_with_the_command_and_what_it_sent_arrives() {
    let (port, read) = server(100_000, b"");
    let rig = rig(&[private(port), private(echo_port()), vec!["slow.test".to_owned()]].concat());
    let mut last = rig.tunnel(&format!("a.test:{port}"));
    let open = rig.tunnel(&format!("a.test:{}", echo_port()));
    let silent = rig.connect();
    let mut waiting = rig.connect();
    waiting.write_all(b"CONNECT slow.test:443 HTTP/1.1\r\n\r\n").unwrap();
    let until = Instant::now() + Duration::from_secs(10);
    while rig.proxy.shared.record().open < 4 && Instant::now() < until {
        sleep(Duration::from_millis(5));
    }
    // A command that ends as soon as it has written.
    last.write_all(&[b'x'; 100_000]).unwrap();
    drop(last);
    let begun = Instant::now();
    let made = rig.finish();
    assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
    assert_eq!(read.recv_timeout(Duration::from_secs(5)).unwrap().len(), 100_000);
    assert_eq!(made.len(), 4, "{made:?}");
    drop((open, silent));
}
