//! Criteria that ask others over HTTP: pass, fail, error and timeout of each, against a server that does as it is told.

use std::net::TcpListener;
use std::time::Duration;

use portcullis_core::work::Came::{Error, Fail, Pass, Timeout};
use serde_json::{Value, json};

use crate::server::{Scripted, Server};
use crate::world::World;

fn status(url: &str, status: u16, more: &Value) -> Value {
    let mut criterion = json!({"type": "http_status", "url": url, "status": status});
    criterion.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    criterion
}

/// C4 of URLs.
#[test]
fn c4_a_url_answers_with_another_status_with_none_or_too_late() {
    let (world, server) = (World::new(), Server::start());
    server.says("/up?full=1", 204, "");
    server.says("/down", 503, "");
    let late = Scripted { status: 200, after: Duration::from_secs(30), ..Scripted::default() };
    server.scripted("/late", late);
    let plain = json!({});
    world.expect(status(&server.at("/up?full=1"), 204, &plain), Pass, "answers 204");
    world.expect(status(&server.at("/down"), 200, &plain), Fail, "answers 503");
    world.expect(status(&server.at("/down"), 503, &plain), Pass, "answers 503");
    world.expect(status(&server.at("/late"), 200, &json!({"timeout_seconds": 1})), Timeout, "after 1 s");
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let nobody = format!("http://127.0.0.1:{free}/");
    world.expect(status(&nobody, 200, &plain), Fail, "nobody listens at");
    world.expect(status("http://no-such-name.invalid/", 200, &plain), Error, "was not found");
    // Another protocol is no answer, and neither is a head without an end.
    let garbage = Scripted { status: 200, headers: vec![("x", "y".repeat(2 << 20))], ..Scripted::default() };
    server.scripted("/long", garbage);
    world.expect(status(&server.at("/long"), 200, &plain), Error, "no answer of HTTP");
    world.expect(status(&server.at("/up").replace("http:", "https:"), 200, &plain), Error, "TLS failed");
}

#[test]
fn redirects_are_followed_where_that_is_said_and_never_inwards() {
    let (world, server, inner) = (World::new(), Server::start(), Server::start());
    let to = |target: &str, location: String| {
        let headers = vec![("location", location)];
        server.scripted(target, Scripted { status: 302, headers, ..Scripted::default() });
    };
    server.says("/end", 200, "");
    to("/one", server.at("/two"));
    to("/two", "/end".to_owned());
    to("/round", "/round".to_owned());
    to("/elsewhere", inner.at("/secret").replace("127.0.0.1", "127.0.0.2"));
    to("/metadata", "http://169.254.169.254/latest".to_owned());
    to("/file", "file:///etc/passwd".to_owned());
    let url = |path: &str, redirects: u32| status(&server.at(path), 200, &json!({"redirects": redirects}));
    world.expect(status(&server.at("/one"), 200, &json!({})), Fail, "answers 302, and redirects to");
    world.expect(status(&server.at("/one"), 302, &json!({})), Pass, "");
    world.expect(url("/one", 1), Fail, "redirects to `/end`");
    world.expect(url("/one", 2), Pass, "/end` answers 200");
    world.expect(url("/round", 10), Fail, "answers 302");
    // The author of the criterion named the first address, and a server named the second.
    world.expect(url("/elsewhere", 2), Error, "this machine's loopback");
    world.expect(url("/metadata", 2), Error, "cloud's metadata");
    world.expect(url("/file", 2), Error, "neither http nor https");
    assert_eq!(inner.asked(), []);
}

/// A name that somebody else's name server answers for is no way to what is inside.
#[test]
fn names_lead_to_private_addresses_only_where_the_criterion_says_so() {
    let (world, server) = (World::new(), Server::start());
    server.says("/", 200, "");
    let own = format!("http://localhost:{}/", server.port());
    world.expect(status(&own, 200, &json!({})), Pass, "");
    // A name of this machine that is not `localhost`, where it has one.
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default().trim().to_owned();
    let leads_here = std::net::ToSocketAddrs::to_socket_addrs(&(name.as_str(), 80))
        .is_ok_and(|mut found| found.all(|address| address.ip().to_string().starts_with("127.")));
    if leads_here && name != "localhost" {
        let named = format!("http://{name}:{}/", server.port());
        world.expect(status(&named, 200, &json!({})), Error, "say `\"private\": true`");
        world.expect(status(&named, 200, &json!({"private": true})), Pass, "");
    } else {
        println!("SKIPPED: this machine has no name that leads to its loopback");
    }
}

fn request(server: &Server, kind: &str, more: Value) -> Value {
    let mut criterion =
        json!({"type": kind, "forge": "gitea", "url": server.at("/api/v1"), "owner": "o", "repo": "r"});
    criterion.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    criterion
}

/// A pull request as both forges describe it.
fn described(number: u32, state: &str, merged: bool, (head, of): (&str, &str), into: &str) -> Value {
    json!({
        "number": number, "state": state, "merged": merged,
        "merged_at": merged.then_some("2026-11-28T10:00:00Z"), "title": "fix",
        "base": {"ref": into, "repo": {"full_name": "o/r", "default_branch": "main"}},
        "head": {"ref": head, "repo": {"full_name": format!("{of}/r")}},
    })
}

/// C4 of pull requests, by number.
#[test]
fn c4_a_pull_request_is_there_is_merged_or_cannot_be_seen() {
    let (world, server) = (World::new(), Server::start());
    let own = ("fix", "o");
    let says = |number: u32, value: &Value| {
        server.says(&format!("/api/v1/repos/o/r/pulls/{number}"), 200, &value.to_string());
    };
    server.says("/api/v1/repos/o/r", 200, r#"{"full_name": "o/r", "default_branch": "main"}"#);
    says(1, &described(1, "open", false, own, "main"));
    says(2, &described(2, "closed", true, own, "main"));
    says(3, &described(3, "closed", false, own, "main"));
    says(4, &described(4, "closed", true, own, "scratch"));
    let exists = |number: u32| request(&server, "pr_exists", json!({"number": number}));
    let merged = |number: u32| request(&server, "pr_merged", json!({"number": number}));
    world.expect(exists(1), Pass, "#1 is open");
    world.expect(merged(1), Fail, "#1 is open");
    world.expect(exists(2), Pass, "#2 is merged into `main`");
    world.expect(merged(2), Pass, "#2 is merged into `main`");
    world.expect(exists(3), Fail, "closed, and not merged");
    world.expect(merged(3), Fail, "closed, and not merged");
    // An agent can merge into a branch that it made.
    world.expect(merged(4), Fail, "leads to `scratch`, not to `main`");
    let into = |branch: &str| request(&server, "pr_merged", json!({"number": 4, "into": branch}));
    world.expect(into("scratch"), Pass, "");
    world.expect(into("release"), Fail, "not to `release`");
    world.expect(exists(9), Fail, "there is no pull request #9");
    // What may not be seen looks like what is not there.
    server.says("/api/v1/repos/o/r", 404, "{}");
    world.expect(exists(9), Error, "or it may not be seen; a token for this URL");
    server.says("/api/v1/repos/o/r/pulls/1", 401, "{}");
    world.expect(exists(1), Error, "answers 401");
    server.says("/api/v1/repos/o/r/pulls/1", 500, "{}");
    world.expect(exists(1), Error, "answers 500");
    server.says("/api/v1/repos/o/r/pulls/1", 200, "<html>");
    world.expect(exists(1), Error, "no answer of a forge");
    server.says("/api/v1/repos/o/r/pulls/1", 200, &"x".repeat((8 << 20) + 1));
    world.expect(exists(1), Error, "more than 8388608 bytes");
    let moved = vec![("location", server.at("/api/v1/repos/o/new/pulls/1"))];
    server.scripted(
        "/api/v1/repos/o/r/pulls/1",
        Scripted { status: 301, headers: moved, ..Scripted::default() },
    );
    world.expect(exists(1), Error, "has moved to");
    if std::env::var_os("PORTCULLIS_TEST_LONG").is_some() {
        let late = Scripted { status: 200, after: Duration::from_secs(60), ..Scripted::default() };
        server.scripted("/api/v1/repos/o/r/pulls/1", late);
        world.expect(exists(1), Timeout, "no answer after 20 s");
    }
}

#[test]
fn the_latest_pull_request_from_a_branch_counts_and_no_strangers() {
    let (world, server) = (World::new(), Server::start());
    let page = |list: &[Value]| Value::from(list.to_vec()).to_string();
    let gitea = |number: usize| format!("/api/v1/repos/o/r/pulls?state=all&page={number}&limit=50");
    let list = [
        described(8, "closed", true, ("fix", "mallory"), "main"),
        described(7, "open", false, ("fix", "O"), "main"),
        described(5, "closed", true, ("fix", "o"), "main"),
    ];
    server.says(&gitea(1), 200, &page(&[described(9, "open", false, ("other", "o"), "main")]));
    server.says(&gitea(2), 200, &page(&list));
    server.says(&gitea(3), 200, "[]");
    let from = |kind: &str, branch: &str| request(&server, kind, json!({"branch": branch}));
    world.expect(from("pr_exists", "fix"), Pass, "#7 is open");
    world.expect(from("pr_merged", "fix"), Fail, "#7 is open");
    world.expect(from("pr_merged", "mallory:fix"), Pass, "#8 is merged");
    world.expect(from("pr_exists", "none"), Fail, "there is no pull request from `none`");
    // GitHub is asked for the branch, and what it says is looked at all the same.
    let github = "/repos/o/r/pulls?state=all&page=1&head=o%3Afix&per_page=50";
    let of_github = |branch: &str| json!({"type": "pr_merged", "forge": "github", "url": server.at(""), "owner": "o", "repo": "r", "branch": branch});
    let mut listed = described(6, "closed", true, ("fix", "o"), "main");
    listed.as_object_mut().unwrap().remove("merged");
    server.says(github, 200, &page(&[list[0].clone(), listed]));
    world.expect(of_github("fix"), Pass, "#6 is merged into `main`");
    // A forge that never comes to an end is left.
    let many = [described(9, "open", false, ("other", "o"), "main")];
    (1..=10).for_each(|number| server.says(&gitea(number), 200, &page(&many)));
    server.asked();
    world.expect(from("pr_exists", "fix"), Error, "name it by its number");
    assert_eq!(server.asked().len(), 10);
}

/// The token goes to the URL that its owner gave it to, and nowhere else.
#[test]
fn a_token_is_sent_to_its_own_forge_alone() {
    let (mut world, server, other) = (World::new(), Server::start(), Server::start());
    world.tokens =
        vec![(server.at("/api/v1"), "s3cret"), ("http://forge.example/api/v1".to_owned(), "s3cret")];
    let body = described(1, "open", false, ("fix", "o"), "main").to_string();
    for server in [&server, &other] {
        server.says("/api/v1/repos/o/r/pulls/1", 200, &body);
        world.expect(request(server, "pr_exists", json!({"number": 1})), Pass, "");
    }
    let sent = |server: &Server| server.asked().remove(0).authorization;
    assert_eq!(sent(&server).as_deref(), Some("token s3cret"));
    assert_eq!(sent(&other), None);
    let clear = json!({"type": "pr_exists", "forge": "github", "url": "http://forge.example/api/v1", "owner": "o", "repo": "r", "number": 1});
    world.expect(clear, Error, "a token is not sent in clear");
}

/// C4 of statements.
#[test]
fn c4_statements_hold_of_files_and_of_the_latest_reply() {
    let mut world = World::new();
    world.write("a.md", "one two three\n");
    world.write("b.md", "one, two\n");
    let file =
        |path: &str, statement: &str| json!({"type": "contract", "statement": statement, "path": path});
    let reply = json!({"type": "contract", "statement": "at most 3 words", "reply": true});
    world.expect(file("a.md", "no commas"), Pass, "");
    world.expect(file("b.md", "no commas"), Fail, "");
    world.expect(file("c.md", "no commas"), Fail, "no file `c.md`");
    world.expect(file("a.md", "it is friendly and to the point"), Error, "code cannot tell");
    world.expect(reply.clone(), Error, "no reply of this run is known");
    world.reply = Some("two words".to_owned());
    world.expect(reply.clone(), Pass, "");
    world.reply = Some("these are four words".to_owned());
    world.expect(reply, Fail, "demanded");
}
