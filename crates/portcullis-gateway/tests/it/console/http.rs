//! A browser without a picture: requests as one sends them.

use std::net::SocketAddr;

use portcullis_console::Role;
use portcullis_gateway::daemon::ConsoleAt;

use super::Console;
use crate::daemon::{Daemon, raw_http};

/// Somebody who sends requests.
#[derive(Debug, Clone)]
pub(crate) struct Http {
    address: SocketAddr,
    origin: String,
    cookie: Option<String>,
}

/// An answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: String,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let line = self.headers.lines().find(|line| line.to_lowercase().starts_with(&format!("{name}: ")))?;
        line.get(name.len() + 2..)
    }
}

impl Http {
    pub(crate) fn at(origin: &str) -> Self {
        let port: u16 = origin.rsplit(':').next().unwrap().parse().unwrap();
        Self { address: SocketAddr::from(([127, 0, 0, 1], port)), origin: origin.to_owned(), cookie: None }
    }

    fn host(&self) -> &str {
        self.origin.split_once("://").unwrap().1
    }

    async fn send(&self, head: &str, extra: &str, body: &str) -> Answer {
        let cookie = self.cookie.as_ref().map_or_else(String::new, |cookie| format!("Cookie: {cookie}\r\n"));
        let host =
            if extra.contains("Host: ") { String::new() } else { format!("Host: {}\r\n", self.host()) };
        let request = format!(
            "{head} HTTP/1.1\r\n{host}{cookie}Connection: close\r\nContent-Length: {}\r\n{extra}\r\n{body}",
            body.len()
        );
        let answer = raw_http(self.address, request).await;
        let (headers, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
        let status = headers.split(' ').nth(1).unwrap_or_default().parse().unwrap_or(0);
        Answer { status, headers: headers.to_owned(), body: body.to_owned() }
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.get_with(path, "").await
    }

    pub(crate) async fn get_with(&self, path: &str, extra: &str) -> Answer {
        self.send(&format!("GET {path}"), extra, "").await
    }

    /// A form as a page of the console sends it. Takes the cookie that it is given.
    pub(crate) async fn post(&mut self, path: &str, fields: &[(&str, &str)]) -> Answer {
        let origin = format!("Origin: {}\r\n", self.origin);
        self.post_with(path, fields, &origin).await
    }

    pub(crate) async fn post_with(&mut self, path: &str, fields: &[(&str, &str)], extra: &str) -> Answer {
        let body: String = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish();
        let extra = format!("Content-Type: application/x-www-form-urlencoded\r\n{extra}");
        let answer = self.send(&format!("POST {path}"), &extra, &body).await;
        if let Some(cookie) = answer.header("set-cookie") {
            self.cookie = cookie.split(';').next().map(str::to_owned);
        }
        answer
    }

    /// Opens a link that signs in, and goes on.
    pub(crate) async fn follow(&mut self, url: &str) {
        let token = url.rsplit('=').next().unwrap().to_owned();
        let answer = self.post("/sign-in/link", &[("token", &token)]).await;
        assert_eq!(answer.status, 303, "{}", answer.body);
    }

    /// What forms of this session carry.
    pub(crate) async fn csrf(&self) -> String {
        field(&self.get("/runs").await.body, "csrf")
    }
}

/// The value of a hidden field.
pub(crate) fn field(page: &str, name: &str) -> String {
    let start = page
        .split_once(&format!("name=\"{name}\" value=\""))
        .unwrap_or_else(|| panic!("no {name}: {page}"))
        .1;
    start.split('"').next().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_signs_in_once_and_looking_at_it_does_nothing() {
    let console = Console::start().await;
    let mut http = console.http();
    assert_eq!(http.get("/").await.header("location"), Some("/sign-in"));
    let link = console.link().await;
    assert!(link.starts_with(&console.origin) && console.origin.contains(".localhost:"), "{link}");
    let path = link.strip_prefix(&console.origin).unwrap();
    for _ in 0..2 {
        let shown = http.get(path).await;
        assert_eq!(shown.status, 200);
        assert!(shown.body.contains("local-approver") && shown.header("set-cookie").is_none());
    }
    http.follow(&link).await;
    let page = http.get("/").await;
    assert!(page.body.contains("No agent has come to it yet"), "{}", page.body);
    let again = console.http().post("/sign-in/link", &[("token", link.rsplit('=').next().unwrap())]).await;
    assert_eq!((again.status, again.header("set-cookie")), (410, None), "it worked once");

    let csrf = http.csrf().await;
    let kept = http.clone();
    assert_eq!(http.post("/sign-out", &[("csrf", &csrf)]).await.status, 303);
    assert_eq!(kept.get("/").await.header("location"), Some("/sign-in"), "the old cookie is worth nothing");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agents_token_makes_no_link_and_a_daemon_without_a_console_says_so() {
    let console = Console::start().await;
    let make = portcullis_gateway::api::MakeLink::default();
    let refused = console.daemon.agent().console_link(&make).await.unwrap_err();
    assert_eq!(refused.code(), Some("forbidden"));
    let without = Daemon::start().await;
    let error = without.approver().console_link(&make).await.unwrap_err();
    assert!(error.to_string().contains("portcullis serve --console"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_another_page_can_cause_is_refused() {
    let console = Console::start().await;
    let mut http = console.admin().await;
    let port = console.origin.rsplit(':').next().unwrap().to_owned();
    // Names under which pages of others can be opened, DNS rebinding included: their browser's cookie is another's.
    for host in [format!("127.0.0.1:{port}"), format!("localhost:{port}"), "evil.example".into()] {
        let answer = http.get_with("/", &format!("Host: {host}\r\n")).await;
        assert_eq!(answer.status, 421, "{host}");
        assert!(!answer.body.contains("localhost:"), "the name is not told: {}", answer.body);
    }
    let csrf = http.csrf().await;
    let fields = [("csrf", csrf.as_str()), ("theme", "dark")];
    for origin in [
        "Origin: https://evil.example\r\n",
        "Origin: null\r\n",
        "",
        &format!("Origin: http://localhost:{port}\r\n"),
    ] {
        assert_eq!(http.clone().post_with("/theme", &fields, origin).await.status, 403, "{origin}");
    }
    assert_eq!(http.clone().post("/theme", &[("csrf", "0"), ("theme", "dark")]).await.status, 403);
    assert_eq!(http.clone().post("/theme", &[("theme", "dark")]).await.status, 403);
    // The token of another session of the same person.
    let other = console.admin().await.csrf().await;
    assert_eq!(http.clone().post("/theme", &[("csrf", &other), ("theme", "dark")]).await.status, 403);
    let mut kept = http.clone();
    assert_eq!(http.post("/theme", &fields).await.status, 303);
    let json = kept
        .send("POST /theme", &format!("Origin: {}\r\nContent-Type: text/plain\r\n", console.origin), "{}")
        .await;
    assert_eq!(json.status, 415);
    assert_eq!(kept.post("/approvals/00", &[("do", "grant")]).await.status, 403);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_answer_is_under_the_policy_and_no_page_has_a_script_or_style_of_its_own() {
    let console = Console::start().await;
    let http = console.admin().await;
    for path in [
        "/",
        "/runs",
        "/approvals",
        "/verification",
        "/audit",
        "/setup",
        "/tools",
        "/tools/edit",
        "/tools/edit?id=send_email",
        "/policies",
        "/policies?tab=access",
        "/policies?tab=files",
        "/policies?tab=versions",
        "/policies/edit",
        "/policies/edit?name=mail",
        "/policies/file?path=tools/compliance.toml",
        "/simulate",
        "/simulate?request=Hack+the+mail+server",
        "/simulate/plan",
        "/evaluation",
        "/people",
        "/sign-in",
        "/nothing",
        "/approvals/000000",
    ] {
        let answer = http.get(path).await;
        let policy = answer.header("content-security-policy").unwrap();
        assert!(
            policy.starts_with("default-src 'none'; script-src 'self'") && !policy.contains("unsafe"),
            "{policy}"
        );
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"), "{path}");
        assert_eq!(answer.header("cache-control"), Some("no-store"), "{path}");
        assert!(!answer.body.contains("style=") && !answer.body.contains("onclick"), "{path}");
        assert_eq!(answer.body.matches("<script").count(), 1, "{path}");
        assert!(answer.body.len() < 100_000, "{path}: {}", answer.body.len());
    }
    let page = http.get("/runs").await.body;
    let style = page.split_once("<link rel=\"stylesheet\" href=\"").unwrap().1.split('"').next().unwrap();
    let style = http.get(style).await;
    assert_eq!((style.status, style.header("content-type")), (200, Some("text/css; charset=utf-8")));
    assert!(style.header("cache-control").unwrap().contains("immutable"));
}

#[tokio::test(flavor = "multi_thread")]
async fn each_role_may_do_its_own_and_no_more() {
    let console = Console::start().await;
    let (mut viewer, mut approver) =
        (console.person("vera", Role::Viewer).await, console.person("otto", Role::Approver).await);
    for http in [&viewer, &approver] {
        assert_eq!(http.get("/runs").await.status, 200);
        assert_eq!(http.get("/people").await.status, 403);
        assert!(!http.get("/runs").await.body.contains("href=\"/people\""), "no link to what is not theirs");
    }
    let run = console.daemon.agent().open_run(&crate::daemon::open("mail", None)).await.unwrap().run;
    let path = format!("/runs/{run}");
    assert!(!viewer.get(&path).await.body.contains("value=\"halt\""));
    let csrf = viewer.csrf().await;
    let refused = viewer.post(&path, &[("csrf", &csrf), ("do", "halt")]).await;
    assert_eq!(refused.status, 403);
    assert!(refused.body.contains("takes the role approver"), "{}", refused.body);
    let csrf = approver.csrf().await;
    let halted = approver.post(&path, &[("csrf", &csrf), ("do", "halt"), ("note", "wrong folder")]).await;
    assert_eq!(halted.status, 303, "{}", halted.body);
    let page = approver.get(&path).await.body;
    assert!(
        page.contains("halted") && page.contains("otto") && page.contains("wrong folder"),
        "it is in the record, with who did it"
    );
    let mut admin = console.admin().await;
    let csrf = admin.csrf().await;
    assert_eq!(admin.post("/people/remove", &[("csrf", &csrf), ("name", "otto")]).await.status, 303);
    assert_eq!(approver.get("/runs").await.header("location"), Some("/sign-in"), "signed out at once");
    let runs = admin.get("/runs").await.body;
    assert!(runs.contains("otto may not sign in to the console any more"), "it is in the record: {runs}");
    assert!(runs.contains("otto, whom local-approver invited to the console as approver, chose a password"));
}

#[tokio::test(flavor = "multi_thread")]
async fn passwords_are_guessed_slowly_and_nothing_tells_which_names_exist() {
    let console = Console::start().await;
    let mut otto = console.person("otto", Role::Approver).await;
    let csrf = otto.csrf().await;
    otto.post("/sign-out", &[("csrf", &csrf)]).await;
    let mut http = console.http();
    let wrong = http.post("/sign-in", &[("name", "otto"), ("password", "wrong horse battery")]).await;
    let nobody = http.post("/sign-in", &[("name", "anna"), ("password", "wrong horse battery")]).await;
    assert_eq!((wrong.status, nobody.status), (401, 401));
    assert_eq!(wrong.body.replace("otto", "anna"), nobody.body);
    for _ in 0..4 {
        http.post("/sign-in", &[("name", "otto"), ("password", "x")]).await;
    }
    let paused = http.post("/sign-in", &[("name", "otto"), ("password", "correct horse battery")]).await;
    assert_eq!(paused.status, 429, "even the right one waits");
    assert!(paused.body.contains("Try again in"), "{}", paused.body);
}

#[tokio::test(flavor = "multi_thread")]
async fn where_the_bundle_maps_an_approver_a_password_of_this_machine_only_looks() {
    let digest = portcullis_session::credentials::sha256_hex("kept-elsewhere");
    let console = Console::start().await;
    let otto = console.person("otto", Role::Admin).await;
    let admin = console.admin().await;
    assert_eq!(otto.get("/people").await.status, 200);
    let file = console.daemon.bundle().join("portcullis.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    let mapped =
        format!("{text}\n[[credential]]\ntoken_sha256 = '{digest}'\nprincipal = 'ann'\nkind = 'approver'\n");
    std::fs::write(file, mapped).unwrap();
    for _ in 0..500 {
        if otto.get("/people").await.status == 403 {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    assert_eq!(otto.get("/people").await.status, 403);
    assert_eq!(
        admin.get("/").await.header("location"),
        Some("/sign-in"),
        "this machine’s token is worth nothing any more"
    );
}

#[tokio::test]
async fn others_reach_a_console_only_behind_tls() {
    let at = |address: &str, origin: Option<&str>| ConsoleAt {
        address: address.parse().unwrap(),
        origin: origin.map(str::to_owned),
    };
    let failed =
        async |at: ConsoleAt| Daemon::start_with(|options| options.console = Some(at)).await.failed().await;
    assert!(failed(at("0.0.0.0:0", None)).await.contains("--console-origin"));
    for origin in ["http://gate.example", "gate.example", "https://gate.example/x", "https://a@gate.example"]
    {
        assert!(failed(at("127.0.0.1:0", Some(origin))).await.contains("is not an origin"), "{origin}");
    }
}
