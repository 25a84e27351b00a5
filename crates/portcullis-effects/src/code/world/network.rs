//! What code sends and fetches: URLs, hosts, clients of HTTP and mail.

use std::ops::Range;
use std::rc::Rc;

use portcullis_core::effect::{Effect, Resource, ResourceKind, Verb};

use super::names::HTTP;
use crate::code::interpreter::{Arguments, Interpreter};
use crate::code::sql;
use crate::code::text::Text;
use crate::code::value::{Atom, Value};

impl Interpreter<'_, '_> {
    pub(in crate::code) fn url_effect(
        &mut self,
        verb: Verb,
        url: &Value,
        range: &Range<usize>,
        how: &[&'static str],
    ) {
        for text in self.strings(Some(url), range) {
            let place = text.range();
            // A hole behind the host does not change where it leads; one before or in it does.
            let shape = text.shape();
            let host = shape.split_once("://").and_then(|(_, rest)| rest.split(['/', '?', '#']).next());
            let ends = shape.split_once("://").is_some_and(|(_, rest)| rest.contains(['/', '?', '#']));
            let known = text.known().is_some() || (ends && host.is_some_and(|host| !host.contains('*')));
            let found = if known { crate::url::resource(&shape, self.surroundings) } else { None };
            match found {
                Some(host) => {
                    let effect =
                        how.iter().fold(Effect::new(verb, host), |effect, name| effect.with(name, true));
                    self.add(effect, place);
                }
                None => self.sink.unknown("url", "it is not known which host is meant", place),
            }
        }
    }

    pub(super) fn host_effect(&mut self, verb: Verb, host: Option<&Value>, range: &Range<usize>) {
        let first = match host.and_then(Value::single) {
            // `(host, port)`
            Some(Atom::List(_)) => {
                host.and_then(|host| self.exact_items(host)).and_then(|items| items.first().cloned())
            }
            _ => host.cloned(),
        };
        for text in self.strings(first.as_ref(), range) {
            let found = text.known().and_then(crate::url::host_resource);
            match found {
                Some(host) => self.effect(verb, host, text.range()),
                None => self.sink.unknown("url", "it is not known which host is meant", range.clone()),
            }
        }
    }

    pub(super) fn network_function(&mut self, name: &str, arguments: &Arguments) -> Option<Value> {
        let range = arguments.range.clone();
        let (module, function) = name.rsplit_once('.')?;
        let upload: &[&'static str] = if arguments.named("files").is_some() { &["upload"] } else { &[] };
        match (module, function) {
            ("requests" | "httpx" | "requests.api", method) => {
                if matches!(method, "Session" | "Client" | "AsyncClient" | "session") {
                    return Some(Atom::Client("http").into());
                }
                self.http(method, arguments, upload)?;
            }
            ("aiohttp", "ClientSession") => return Some(Atom::Client("http").into()),
            ("urllib.request", "urlopen" | "Request") => {
                let sends = arguments.get(1, "data").is_some();
                let url = arguments.get(0, "url")?.clone();
                if url.any(|atom| *atom == Atom::Client("request")) {
                    return Some(Value::data());
                }
                self.url_effect(if sends { Verb::Send } else { Verb::Read }, &url, &range, &[]);
                if function == "Request" {
                    return Some(Atom::Client("request").into());
                }
            }
            ("urllib.request", "urlretrieve") => {
                self.url_effect(Verb::Read, &arguments.get(0, "url")?.clone(), &range, &[]);
                if let Some(path) = arguments.get(1, "filename").cloned() {
                    self.path_effect(Verb::Write, &path, &range, &[]);
                }
            }
            ("http.client", "HTTPConnection" | "HTTPSConnection")
            | ("ftplib", "FTP" | "FTP_TLS")
            | ("imaplib", "IMAP4" | "IMAP4_SSL")
            | ("poplib", "POP3" | "POP3_SSL")
            | ("telnetlib", "Telnet") => {
                self.host_effect(Verb::Send, arguments.get(0, "host"), &range);
            }
            ("socket", "create_connection") => {
                self.host_effect(Verb::Send, arguments.get(0, "address"), &range);
                return Some(Atom::Client("socket").into());
            }
            ("socket", "socket" | "socketpair") => return Some(Atom::Client("socket").into()),
            ("socket", "gethostbyname" | "getaddrinfo") => {
                self.host_effect(Verb::Read, arguments.positional.first(), &range);
            }
            ("smtplib", "SMTP" | "SMTP_SSL" | "LMTP") => {
                if arguments.get(0, "host").is_some() {
                    self.host_effect(Verb::Send, arguments.get(0, "host"), &range);
                }
                return Some(Atom::Client("mail").into());
            }
            ("webbrowser", _) => self.url_effect(Verb::Read, &arguments.get(0, "url")?.clone(), &range, &[]),
            ("psycopg2" | "pymysql" | "mysql.connector" | "duckdb", "connect")
            | ("sqlalchemy", "create_engine") => {
                if arguments.named("host").is_some() {
                    self.host_effect(Verb::Send, arguments.named("host"), &range);
                }
                return Some(Atom::Client("sql").into());
            }
            ("tempfile", _) => {
                let folder = Value::text(Text::literal("/tmp/*", range.clone()));
                let folder = arguments.named("dir").cloned().unwrap_or(folder);
                self.path_effect(Verb::Write, &folder, &range, &[]);
            }
            ("io", "StringIO" | "BytesIO") => {
                self.hand_over(arguments);
                return Some(Atom::Client("memory").into());
            }
            _ => return None,
        }
        for value in arguments.all().cloned().collect::<Vec<_>>() {
            self.escape(&value, range.clone());
        }
        Some(Value::data())
    }

    /// A request by a verb of HTTP, or `None` if it is none.
    pub(super) fn http(&mut self, method: &str, arguments: &Arguments, how: &[&'static str]) -> Option<()> {
        let range = arguments.range.clone();
        let (verb, url) = if method == "request" {
            let named = arguments.get(0, "method").and_then(Value::known_text).map(str::to_lowercase);
            let verb =
                HTTP.iter().find(|(name, _)| Some(*name) == named.as_deref()).map_or(Verb::Send, |it| it.1);
            (verb, arguments.get(1, "url"))
        } else {
            (HTTP.iter().find(|(name, _)| *name == method)?.1, arguments.get(0, "url"))
        };
        let url = url.cloned().unwrap_or_else(Value::unknown);
        let sends = ["data", "json", "files", "content"].iter().any(|name| arguments.named(name).is_some());
        let verb = if sends && verb == Verb::Read { Verb::Send } else { verb };
        self.url_effect(verb, &url, &range, how);
        Some(())
    }

    pub(in crate::code) fn client_attribute(&mut self, kind: &'static str, name: &str) -> Value {
        Atom::Method(Rc::new((Atom::Client(kind).into(), name.into()))).into()
    }

    pub(in crate::code) fn client_method(
        &mut self,
        kind: &'static str,
        name: &str,
        arguments: &Arguments,
    ) -> Value {
        let range = arguments.range.clone();
        let itself: Value = Atom::Client(kind).into();
        match (kind, name) {
            ("http", _) => {
                let upload: &[&'static str] =
                    if arguments.named("files").is_some() { &["upload"] } else { &[] };
                if self.http(name, arguments, upload).is_none() && name == "mount" {
                    self.unknown("a session is changed", range.clone());
                }
            }
            (
                "sql",
                "execute" | "executemany" | "executescript" | "sql" | "query" | "exec_driver_sql"
                | "read_sql",
            ) => {
                for text in self.strings(arguments.positional.first().or(arguments.rest.as_ref()), &range) {
                    sql::run(&text, self.surroundings, self.sink);
                }
                return itself;
            }
            ("sql", "cursor" | "connect" | "begin" | "connection" | "raw_connection") => return itself,
            ("sql", "load_extension" | "enable_load_extension" | "create_function") => {
                self.unknown("a database runs code", range.clone());
            }
            ("socket", "connect" | "connect_ex") => {
                self.host_effect(Verb::Send, arguments.positional.first(), &range)
            }
            ("socket", "sendto") => self.host_effect(Verb::Send, arguments.positional.last(), &range),
            ("socket", "bind" | "listen" | "accept") => self.unknown("a port is opened", range.clone()),
            ("mail", "connect") => self.host_effect(Verb::Send, arguments.positional.first(), &range),
            ("mail", "sendmail") => self.recipients(arguments.get(1, "to_addrs"), &range),
            ("mail", "send_message") => match arguments.get(2, "to_addrs") {
                Some(to) => self.recipients(Some(&to.clone()), &range),
                None => self.recipients(None, &range),
            },
            ("archive" | "files", "extractall" | "extract") => {
                let position = usize::from(name == "extract");
                let here = Value::text(Text::literal(".", range.clone()));
                let folder = arguments.get(position, "path").cloned().unwrap_or(here);
                self.path_effect(Verb::Write, &folder, &range, &["recursive"]);
            }
            // What is written into a compressed file is content; into an archive of files, the name of one.
            ("archive", "add") | ("files", "write") => {
                if let Some(path) = arguments.get(0, "filename").cloned() {
                    self.path_effect(Verb::Read, &path, &range, &["recursive"]);
                }
            }
            ("exit stack", "enter_context" | "enter_async_context" | "push") => {
                self.run_callbacks(arguments);
                let given = arguments.positional.first().cloned().unwrap_or_else(Value::unknown);
                return self.entered(&given, range);
            }
            _ => {}
        }
        self.hand_over(arguments);
        Value::data()
    }

    pub(super) fn recipients(&mut self, to: Option<&Value>, range: &Range<usize>) {
        for text in self.strings(to, range) {
            let place = text.range();
            match text.known() {
                Some(addresses) => {
                    let addresses = addresses.to_owned();
                    if let Some(mut nested) = self.sink.nested(place) {
                        crate::mail::read(&addresses, self.surroundings, &mut nested);
                    }
                }
                None => {
                    let anybody = Resource::new(ResourceKind::Recipient, "*");
                    self.effect(Verb::Send, anybody, place);
                }
            }
        }
    }
}
