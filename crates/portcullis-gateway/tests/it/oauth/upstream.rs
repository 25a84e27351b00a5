//! The gate's own credentials for upstreams, against the server by script: each flow, and each refusal.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use portcullis_gateway::home::Home;
use portcullis_gateway::upstream_auth::{
    AuthError, Authorization, Login, Retry, UpstreamAuth, login, logout, standings,
};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use url::Url;

use super::server::{CLIENT_SECRET, Script, Server, answer};

/// A state folder, and the server.
pub(super) struct Place {
    folder: tempfile::TempDir,
    pub(super) home: Home,
    pub(super) server: Server,
}

impl Place {
    pub(super) async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(&folder.path().join("home")).unwrap();
        std::fs::create_dir_all(home.path()).unwrap();
        Self { folder, home, server: Server::start().await }
    }

    pub(super) fn write(&self, path: &Path, text: &str) {
        std::fs::write(path, text).unwrap();
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).unwrap();
    }

    /// An entry of `upstreams.toml` for the server.
    pub(super) fn settings(&self, more: &str) {
        let text = format!("[[upstream]]\nname = 'up'\nurl = '{}'\n{more}\n", self.server.mcp());
        self.write(&self.home.upstreams_toml(), &text);
    }

    pub(super) fn auth(&self) -> UpstreamAuth {
        UpstreamAuth::new(&self.home, "up", Url::parse(&self.server.mcp()).unwrap()).unwrap()
    }

    pub(super) fn secret(&self, text: &str) -> String {
        let file = self.folder.path().join("secret");
        self.write(&file, text);
        file.display().to_string()
    }

    /// A login in which the person agrees at once. Gives the address that was visited, and the one that came back.
    pub(super) async fn login(&self, change: impl FnOnce(&mut Login)) -> Result<(Url, Option<Url>), String> {
        let mut wanted = Login {
            name: "up".to_owned(),
            url: Some(Url::parse(&self.server.mcp()).unwrap()),
            patience: Duration::from_secs(10),
            ..Login::default()
        };
        change(&mut wanted);
        let visited: Arc<Mutex<(Option<Url>, Option<Url>)>> = Arc::default();
        let seen = Arc::clone(&visited);
        let done = login(&self.home, wanted, |address| {
            seen.lock().unwrap().0 = Some(address.clone());
            let (address, seen) = (address.clone(), Arc::clone(&seen));
            tokio::spawn(async move {
                let (_, head) = get(&address).await;
                let back = head
                    .lines()
                    .find_map(|line| line.strip_prefix("Location: "))
                    .map(|to| Url::parse(to.trim()).unwrap());
                seen.lock().unwrap().1 = back.clone();
                if let Some(back) = back {
                    get(&back).await;
                }
            });
        })
        .await;
        let seen = visited.lock().unwrap().clone();
        done.map(|()| (seen.0.unwrap(), seen.1)).map_err(|error| error.to_string())
    }

    pub(super) fn stored(&self) -> Value {
        serde_json::from_str(&std::fs::read_to_string(self.home.upstreams().join("up.json")).unwrap())
            .unwrap()
    }

    /// The login as it is kept, with its access token at its end.
    pub(super) fn age(&self) {
        let mut kept = self.stored();
        kept["expires_at_s"] = json!(1);
        self.write(&self.home.upstreams().join("up.json"), &kept.to_string());
    }
}

/// Status and head of an answer.
async fn get(url: &Url) -> (u16, String) {
    let Ok(mut stream) = tokio::net::TcpStream::connect((url.host_str().unwrap(), url.port().unwrap())).await
    else {
        return (0, String::new());
    };
    let target = format!("{}?{}", url.path(), url.query().unwrap_or_default());
    stream.write_all(format!("GET {target} HTTP/1.1\r\nHost: x\r\n\r\n").as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    let _gone = stream.read_to_end(&mut answer).await;
    let answer = String::from_utf8(answer).unwrap();
    (answer.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0), answer)
}

/// A request to the MCP server as a transport makes it: with the header, and once more where that may help.
pub(super) async fn call(auth: &UpstreamAuth, server: &Server) -> Result<u16, AuthError> {
    let used = auth.authorization().await?;
    let (status, challenge) = post(&server.mcp(), used.as_ref()).await;
    if status == 200 || auth.challenged(status, &challenge, used.as_ref()).await? == Retry::No {
        return Ok(status);
    }
    let used = auth.authorization().await?;
    Ok(post(&server.mcp(), used.as_ref()).await.0)
}

async fn post(url: &str, used: Option<&Authorization>) -> (u16, String) {
    let url = Url::parse(url).unwrap();
    let mut stream = tokio::net::TcpStream::connect(("127.0.0.1", url.port().unwrap())).await.unwrap();
    let header =
        used.map(|(name, value)| format!("{name}: {}\r\n", value.to_str().unwrap())).unwrap_or_default();
    let header = header.replace("authorization: ", "Authorization: ");
    let request = format!("POST /mcp HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n{header}\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let challenge =
        answer.lines().find_map(|line| line.strip_prefix("WWW-Authenticate: ")).unwrap_or_default();
    (answer.split(' ').nth(1).unwrap().parse().unwrap(), challenge.to_owned())
}

fn shown(used: Option<&Authorization>) -> Option<String> {
    used.map(|(name, value)| format!("{name}: {}", value.to_str().unwrap()))
}

#[tokio::test]
async fn a_static_credential_goes_to_its_address_alone() {
    let place = Place::new().await;
    assert_eq!(place.auth().authorization().await, Ok(None), "there is no file");
    let file = place.secret("s3cret\n");
    place.settings(&format!("token_file = '{file}'"));
    let auth = place.auth();
    let used = auth.authorization().await.unwrap();
    assert_eq!(shown(used.as_ref()).as_deref(), Some("authorization: Bearer s3cret"));
    // The name does not matter, and the address does.
    let other = Url::parse("https://evil.example/mcp").unwrap();
    assert_eq!(UpstreamAuth::new(&place.home, "up", other).unwrap().authorization().await, Ok(None));
    let error = auth.challenged(401, "Bearer", used.as_ref()).await.unwrap_err();
    assert!(
        error.to_string().contains("refuses the credential that `token_file`")
            && !error.to_string().contains("s3cret")
    );
    // A new token is used at once.
    place.secret("n3w\n");
    assert_eq!(auth.challenged(401, "Bearer", used.as_ref()).await, Ok(Retry::Again));
    assert_eq!(
        shown(auth.authorization().await.unwrap().as_ref()).as_deref(),
        Some("authorization: Bearer n3w")
    );
    let counted = place.folder.path().join("count");
    let command = format!("echo . >> {}; printf s3cret", counted.display());
    place.settings(&format!("token_command = ['sh', '-c', '{command}']\nheader = 'X-Api-Key'"));
    for _ in 0..5 {
        assert_eq!(shown(auth.authorization().await.unwrap().as_ref()).as_deref(), Some("x-api-key: s3cret"));
    }
    assert_eq!(std::fs::read_to_string(counted).unwrap(), ".\n");
    place.settings("token_file = '/no/such/file'");
    let error = auth.authorization().await.unwrap_err().to_string();
    assert!(error.contains("upstream `up`") && error.contains("/no/such/file"), "{error}");
}

#[tokio::test]
async fn client_credentials_give_a_token_that_is_had_again_when_it_ends() {
    let place = Place::new().await;
    let file = place.secret(CLIENT_SECRET);
    let oauth = |issuer: &str| {
        format!(
            "[upstream.oauth]\ngrant = 'client-credentials'\nissuer = '{issuer}'\nclient_id = 'gate'\nclient_secret_file = '{file}'\nscopes = ['read']"
        )
    };
    place.settings(&oauth(&place.server.url));
    let auth = place.auth();
    for _ in 0..3 {
        assert_eq!(call(&auth, &place.server).await, Ok(200));
    }
    let asked = place.server.seen("/token");
    assert_eq!(asked.len(), 1);
    assert_eq!(
        (asked[0]["resource"].as_str(), asked[0]["scope"].as_str()),
        (place.server.mcp().as_str(), "read")
    );
    assert!(!asked[0].contains_key("client_secret"), "it is in the header");
    // A token that was refused as soon as it was had is not asked for again and again.
    place.server.revoke_access();
    let error = call(&auth, &place.server).await.unwrap_err().to_string();
    assert!(error.contains("refuses the credential that `[upstream.oauth]`"), "{error}");
    assert_eq!(place.server.seen("/token").len(), 1);
    place.secret("wrong");
    let error = place.auth().authorization().await.unwrap_err().to_string();
    assert!(error.contains("refuses with `invalid_client`") && !error.contains("wrong"), "{error}");
    place.settings(&oauth(&format!("{}/", place.server.url)));
    let error = place.auth().authorization().await.unwrap_err().to_string();
    assert!(error.contains("was asked"), "an issuer is compared exactly: {error}");
}

#[tokio::test]
async fn a_person_logs_in_and_the_token_is_renewed() {
    let place = Place::new().await;
    let auth = place.auth();
    let error = call(&auth, &place.server).await.unwrap_err().to_string();
    let says = format!("run `portcullis upstream login up --url {}`", place.server.mcp());
    assert!(error.contains("upstream `up` wants a login") && error.contains(&says), "{error}");

    let (visited, back) = place.login(|_| {}).await.unwrap();
    let query: std::collections::HashMap<_, _> = visited.query_pairs().into_owned().collect();
    assert_eq!((query["resource"].as_str(), query["scope"].as_str()), (place.server.mcp().as_str(), "read"));
    assert_eq!(
        (query["code_challenge_method"].as_str(), query["client_id"].as_str()),
        ("S256", "registered")
    );
    assert!(query["redirect_uri"].starts_with("http://127.0.0.1:") && query["state"].len() >= 32);
    let mode = std::fs::metadata(place.home.upstreams().join("up.json")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(call(&auth, &place.server).await, Ok(200));
    // Nobody listens for a second answer.
    assert_eq!(get(&back.unwrap()).await.0, 0);

    // At its end it is renewed, once for all who ask at once, in two processes too.
    place.age();
    let (one, other) = (Arc::new(place.auth()), Arc::new(place.auth()));
    let asking = (0..20).map(|number| {
        let auth = Arc::clone(if number % 2 == 0 { &one } else { &other });
        tokio::spawn(async move { shown(auth.authorization().await.unwrap().as_ref()) })
    });
    let mut tokens = Vec::new();
    for asked in asking.collect::<Vec<_>>() {
        tokens.push(asked.await.unwrap().unwrap());
    }
    tokens.dedup();
    assert_eq!(tokens.len(), 1, "{tokens:?}");
    let renewals =
        place.server.seen("/token").iter().filter(|sent| sent["grant_type"] == "refresh_token").count();
    assert_eq!(renewals, 1);
    assert_eq!(call(&auth, &place.server).await, Ok(200));
    // A token that was revoked is renewed as well, and the request repeated.
    place.server.revoke_access();
    assert_eq!(call(&auth, &place.server).await, Ok(200));

    // A login that has ended says so, without asking again.
    place.server.revoke_all();
    place.age();
    for _ in 0..2 {
        let error = place.auth().authorization().await.unwrap_err().to_string();
        assert!(error.contains("wants a login") && error.contains("ended"), "{error}");
        assert!(!error.contains("s3cret"), "{error}");
    }
    assert_eq!(place.server.seen("/token").len(), 4);
}

#[tokio::test]
async fn a_refresh_token_is_used_once_and_stays_where_the_server_does_not_rotate() {
    let place = Place::new().await;
    place.login(|_| {}).await.unwrap();
    let first = place.stored();
    place.age();
    place.auth().authorization().await.unwrap();
    let second = place.stored();
    assert_ne!(first["refresh_token"], second["refresh_token"]);
    // A copy of the old one, used again: the server ends the login, and the gate says so.
    place.write(&place.home.upstreams().join("up.json"), &first.to_string());
    place.age();
    assert!(place.auth().authorization().await.unwrap_err().to_string().contains("ended"));
    let ended = place.stored();
    assert_eq!((&ended["access_token"], &ended["refresh_token"]), (&Value::Null, &Value::Null));

    place.server.script(|script| script.no_rotation = true);
    place.login(|_| {}).await.unwrap();
    let before = place.stored();
    place.age();
    place.auth().authorization().await.unwrap();
    assert_eq!(before["refresh_token"], place.stored()["refresh_token"]);
    assert_ne!(before["access_token"], place.stored()["access_token"]);
}

/// A server that rotates knows the old token no more when it answers, so nobody's leaving may keep the new one from being
/// kept.
#[tokio::test]
async fn a_request_that_is_given_up_while_the_login_is_renewed_does_not_end_it() {
    let place = Place::new().await;
    place.login(|_| {}).await.unwrap();
    let first = place.stored();
    place.age();
    place.server.script(|script| script.token_delay = Duration::from_millis(500));
    let auth = place.auth();
    let given_up = tokio::time::timeout(Duration::from_millis(100), auth.authorization()).await;
    assert!(given_up.is_err(), "it was given up while the server was asked");
    assert_eq!(call(&auth, &place.server).await, Ok(200), "who comes next waits for it");
    assert_ne!(first["refresh_token"], place.stored()["refresh_token"]);
    let renewals =
        place.server.seen("/token").iter().filter(|sent| sent["grant_type"] == "refresh_token").count();
    assert_eq!(renewals, 1);
}

#[tokio::test]
async fn a_token_is_used_to_its_end_where_it_cannot_be_renewed() {
    let place = Place::new().await;
    place.server.script(|script| script.lasts_s = Some(20));
    place.login(|_| {}).await.unwrap();
    place.server.script(|script| {
        // One that rotates would have used the refresh token up with its useless answer.
        script.no_rotation = true;
        script.tokens.insert("token_type".to_owned(), json!("mac"));
    });
    let auth = place.auth();
    assert_eq!(call(&auth, &place.server).await, Ok(200));
    place.age();
    let error = auth.authorization().await.unwrap_err().to_string();
    assert!(error.contains("no token for the upstream `up`"), "{error}");
}

#[tokio::test]
async fn more_scopes_are_asked_for_besides_those_that_there_are() {
    let place = Place::new().await;
    place.server.script(|script| script.wants_scope = Some("write".to_owned()));
    place.login(|_| {}).await.unwrap();
    let auth = place.auth();
    let error = call(&auth, &place.server).await.unwrap_err();
    assert!(error.to_string().ends_with("--scope read --scope write`"), "{error}");
    place.login(|login| login.scopes = vec!["write".to_owned()]).await.unwrap();
    assert_eq!(place.stored()["scopes"], json!(["write", "read"]));
    assert_eq!(call(&auth, &place.server).await, Ok(200), "the new login is used at once");
    let used = auth.authorization().await.unwrap();
    assert_eq!(auth.challenged(403, "", used.as_ref()).await, Err(AuthError::Forbidden("up".to_owned())));
    let error = auth.challenged(403, "", None).await.unwrap_err().to_string();
    assert!(
        error.contains("has no credential for it; if it wants one, run `portcullis upstream login up"),
        "{error}"
    );
    assert_eq!(auth.challenged(404, "", None).await, Ok(Retry::No));
}

/// Runs a login against a server that does one thing otherwise, and gives what was said.
async fn refused(change: impl FnOnce(&mut Script, &str)) -> (String, Place) {
    let place = Place::new().await;
    let url = place.server.url.clone();
    place.server.script(|script| change(script, &url));
    let error = place.login(|login| login.patience = Duration::from_secs(2)).await.unwrap_err();
    assert!(!place.home.upstreams().join("up.json").exists(), "nothing is kept: {error}");
    (error, place)
}

#[tokio::test]
async fn a_server_that_is_not_what_it_says_gets_no_code() {
    for (part, name, value, says) in [
        ("server", "issuer", json!("https://evil.example"), "says that it is `https://evil.example`"),
        ("server", "code_challenge_methods_supported", Value::Null, "PKCE"),
        ("server", "code_challenge_methods_supported", json!(["plain"]), "PKCE"),
        ("server", "token_endpoint", json!("http://mcp.example/token"), "in clear"),
        ("server", "authorization_endpoint", json!("javascript:alert(1)"), "must begin with"),
        ("server", "token_endpoint", Value::Null, "no `token_endpoint`"),
        ("server", "registration_endpoint", Value::Null, "--client-id"),
        (
            "resource",
            "resource",
            json!("https://other.example/mcp"),
            "of the resource `https://other.example/mcp`",
        ),
        ("resource", "resource", Value::Null, "no JSON document"),
        ("resource", "authorization_servers", json!([]), "name no authorization server"),
        ("resource", "authorization_servers", json!(["http://10.0.0.1"]), "in clear"),
        ("resource", "authorization_servers", json!(["https://169.254.169.254/"]), "metadata"),
        ("resource", "authorization_servers", json!(["file:///etc/passwd"]), "not used"),
        ("callback", "iss", json!("https://evil.example"), "from another server"),
        ("callback", "iss", Value::Null, "without the name of its server"),
        ("callback", "error", json!("access_denied"), "did not agree: access_denied"),
        ("callback", "error", json!("s3cret"), "did not agree: an error of its own"),
        ("callback", "code", Value::Null, "without a code"),
        ("callback", "state", json!("guessed"), "nobody agreed within 2 s"),
        ("tokens", "token_type", json!("mac"), "not of the type Bearer"),
        ("tokens", "access_token", json!("a b"), "of no use"),
    ] {
        let (error, place) = refused(|script, _| {
            let changes = match part {
                "server" => &mut script.server,
                "resource" => &mut script.resource,
                "callback" => &mut script.callback,
                _ => &mut script.tokens,
            };
            changes.insert(name.to_owned(), value.clone());
        })
        .await;
        assert!(error.contains(says), "{part} {name} {value}: {error}");
        let redeemed = place.server.seen("/token").len();
        assert_eq!(redeemed, usize::from(part == "tokens"), "{name} {value}: the code was sent");
    }
}

#[tokio::test]
async fn metadata_that_are_huge_slow_or_elsewhere_are_not_read() {
    let huge = format!("{{\"x\":\"{}\"}}", "x".repeat(300 << 10));
    for (metadata, says) in [
        (answer(302, "Location: http://127.0.0.1:1/\r\n", ""), "redirects are not followed"),
        (answer(200, "", &huge), "more than 262144 bytes"),
        (answer(200, "", "<html>"), "no JSON document"),
        (answer(404, "", ""), "HTTP status 404"),
    ] {
        let (error, _) = refused(|script, _| script.metadata_answer = Some(metadata.clone())).await;
        assert!(error.contains(says), "{error}");
    }
    let (error, _) = refused(|script, _| {
        script.challenge = Some("Bearer".to_owned());
        script.metadata_answer = Some(answer(404, "", ""));
    })
    .await;
    assert!(error.contains("name it with `--issuer URL`"), "{error}");
    let start = Instant::now();
    let (error, _) = refused(|script, _| script.metadata_delay = Duration::from_secs(60)).await;
    assert!(error.contains("no answer within 10 s") && start.elapsed() < Duration::from_secs(20), "{error}");
    for metadata in
        ["https://169.254.169.254/latest/meta-data", "http://10.0.0.1/x", "gopher://127.0.0.1/", "nonsense"]
    {
        let challenge = format!("Bearer resource_metadata=\"{metadata}\"");
        let (error, _) = refused(|script, _| script.challenge = Some(challenge)).await;
        assert!(error.contains(metadata.split(':').next().unwrap()), "{error}");
    }
}

/// A code that somebody else saw on its way is worth nothing: it is bound to the verifier that was never sent before.
#[tokio::test]
async fn a_stolen_code_cannot_be_redeemed_without_the_verifier() {
    let place = Place::new().await;
    let stolen: Arc<Mutex<Option<Url>>> = Arc::default();
    let wanted = Login {
        name: "up".to_owned(),
        url: Some(Url::parse(&place.server.mcp()).unwrap()),
        patience: Duration::from_secs(5),
        ..Login::default()
    };
    let (seen, server) = (Arc::clone(&stolen), place.server.clone());
    let done = login(&place.home, wanted, |address| {
        let (address, seen) = (address.clone(), Arc::clone(&seen));
        tokio::spawn(async move {
            let head = get(&address).await.1;
            let back =
                Url::parse(head.lines().find_map(|line| line.strip_prefix("Location: ")).unwrap().trim())
                    .unwrap();
            *seen.lock().unwrap() = Some(back.clone());
            let query: std::collections::HashMap<_, _> = back.query_pairs().into_owned().collect();
            let asked: std::collections::HashMap<_, _> = address.query_pairs().into_owned().collect();
            let (mut code, resource) = (query["code"].clone(), server.mcp());
            let body = url::form_urlencoded::Serializer::new(String::new())
                .extend_pairs([
                    ("grant_type", "authorization_code"),
                    ("code", &code),
                    ("client_id", "registered"),
                    ("redirect_uri", &asked["redirect_uri"]),
                    ("resource", &resource),
                    ("code_verifier", &asked["code_challenge"]),
                ])
                .finish();
            let mut stream =
                tokio::net::TcpStream::connect(server.url.trim_start_matches("http://")).await.unwrap();
            let request = format!("POST /token HTTP/1.1\r\nContent-Length: {}\r\n\r\n{body}", body.len());
            stream.write_all(request.as_bytes()).await.unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await.unwrap();
            assert!(answer.contains("invalid_grant"), "{answer}");
            code.clear();
            get(&back).await;
        });
    })
    .await;
    // The thief has used the code up, so that the login fails rather than being somebody else's.
    assert!(done.unwrap_err().to_string().contains("refuses with `invalid_grant`"));
    assert!(stolen.lock().unwrap().is_some());
}

#[tokio::test]
async fn what_there_is_is_listed_and_forgotten() {
    let place = Place::new().await;
    assert_eq!(standings(&place.home), Ok(Vec::new()));
    assert_eq!(logout(&place.home, "up").await, Ok(None));
    assert!(logout(&place.home, "../up").await.is_err());
    place.settings("[upstream.oauth]\nclient_id = 'known'");
    assert_eq!(standings(&place.home).unwrap()[0].state, "login-needed");
    let (visited, _) = place.login(|login| login.url = None).await.unwrap();
    assert!(visited.query().unwrap().contains("client_id=known"), "{visited}");
    assert_eq!(place.server.seen("/register").len(), 0);
    let all = standings(&place.home).unwrap();
    assert_eq!((all.len(), all[0].state, all[0].scopes.as_slice()), (1, "ready", &["read".to_owned()][..]));
    let listed = serde_json::to_string(&all).unwrap();
    assert!(!listed.contains("access-") && !listed.contains("refresh-"), "{listed}");
    place.age();
    assert_eq!(standings(&place.home).unwrap()[0].state, "renewable");
    let auth = place.auth();
    assert!(auth.authorization().await.unwrap().is_some());
    assert!(logout(&place.home, "up").await.unwrap().is_some());
    assert!(auth.authorization().await.is_err(), "at once");
    // A damaged file is named, and nothing of it is said.
    place.write(&place.home.upstreams().join("up.json"), "{\"access_token\": \"s3cret\", ");
    let error = auth.authorization().await.unwrap_err().to_string();
    assert!(
        error.contains("up.json") && error.contains("log in again") && !error.contains("s3cret"),
        "{error}"
    );
}

#[tokio::test]
async fn an_issuer_is_one_of_those_that_the_upstream_names() {
    let place = Place::new().await;
    let error =
        place.login(|login| login.issuer = Some("https://evil.example".to_owned())).await.unwrap_err();
    assert!(error.contains("does not trust the authorization server `https://evil.example`"), "{error}");
    let url = place.server.url.clone();
    place.login(|login| login.issuer = Some(url)).await.unwrap();
    let file = place.secret("s3cret");
    let error = place
        .login(|login| {
            login.client_id = Some("c".to_owned());
            login.client_secret_file = Some(file.into());
        })
        .await
        .unwrap_err();
    assert!(error.contains("--issuer"), "a secret is for one server: {error}");
}
