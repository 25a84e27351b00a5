//! An authorization server by script, over loopback HTTP, with an MCP server beside it that wants its tokens: real flows,
//! and a switch for each thing that such servers get wrong or lie about.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ring::rand::SystemRandom;
use ring::signature::{Ed25519KeyPair, KeyPair as _, RSA_PKCS1_SHA256, RsaKeyPair};
use serde_json::{Map, Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use url::form_urlencoded;

pub(crate) const CLIENT_SECRET: &str = "s3cret-of-the-client";

/// What the server does otherwise than it should. Names of metadata are replaced by values; `null` takes them away.
#[derive(Default)]
pub(crate) struct Script {
    /// Changes to the metadata of the authorization server.
    pub(crate) server: Map<String, Value>,
    /// Changes to the metadata of the resource.
    pub(crate) resource: Map<String, Value>,
    /// What the metadata are answered with instead: a whole answer of HTTP.
    pub(crate) metadata_answer: Option<String>,
    /// How long the metadata take.
    pub(crate) metadata_delay: Duration,
    /// How long the token endpoint takes to answer once it has given out its tokens.
    pub(crate) token_delay: Duration,
    /// Changes to the query with which the browser comes back.
    pub(crate) callback: Map<String, Value>,
    /// Changes to what the token endpoint answers.
    pub(crate) tokens: Map<String, Value>,
    /// The challenge of the MCP server; none: its own.
    pub(crate) challenge: Option<String>,
    /// How long access tokens last.
    pub(crate) lasts_s: Option<i64>,
    /// Whether refresh tokens stay as they are.
    pub(crate) no_rotation: bool,
    /// The scopes that the MCP server wants of a token.
    pub(crate) wants_scope: Option<String>,
    /// The client id metadata document that is hosted at its `client_id`. Redirect addresses compare letter by letter.
    pub(crate) document: Option<Value>,
    /// What the revocation endpoint answers instead: a whole answer of HTTP.
    pub(crate) revocation_answer: Option<String>,
}

#[derive(Default)]
struct State {
    script: Script,
    /// Codes that were given out, with the challenge, redirect address, resource and scope that they are bound to.
    codes: HashMap<String, HashMap<String, String>>,
    access: HashMap<String, String>,
    refresh: HashMap<String, String>,
    /// Refresh tokens that were used. A second use ends them all.
    used: HashSet<String>,
    /// Keys that are published, by name, with the seed of each.
    keys: Vec<(String, u8)>,
    /// Requests by path.
    seen: Vec<(String, HashMap<String, String>)>,
    next: usize,
}

/// The server.
#[derive(Clone)]
pub(crate) struct Server {
    pub(crate) url: String,
    state: Arc<Mutex<State>>,
}

struct Request {
    method: String,
    path: String,
    query: HashMap<String, String>,
    authorization: Option<String>,
    body: String,
}

fn now_s() -> i64 {
    i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()).unwrap()
}

fn encoded(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

pub(crate) fn pair(seed: u8) -> Ed25519KeyPair {
    Ed25519KeyPair::from_seed_unchecked(&[seed; 32]).unwrap()
}

fn rsa() -> RsaKeyPair {
    let text: String = include_str!("../../keys/rsa-2048.pkcs8.b64").split_whitespace().collect();
    RsaKeyPair::from_pkcs8(&STANDARD.decode(text).unwrap()).unwrap()
}

fn form(text: &str) -> HashMap<String, String> {
    form_urlencoded::parse(text.as_bytes()).into_owned().collect()
}

fn change(document: &mut Value, changes: &Map<String, Value>) {
    let object = document.as_object_mut().unwrap();
    for (name, value) in changes {
        match value {
            Value::Null => object.remove(name),
            value => object.insert(name.clone(), value.clone()),
        };
    }
}

impl Server {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let server = Self { url, state: Arc::default() };
        server.state.lock().unwrap().keys = vec![("k1".to_owned(), 1)];
        let own = server.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let server = own.clone();
                tokio::spawn(async move { server.serve(stream).await });
            }
        });
        server
    }

    /// The address of the MCP server.
    pub(crate) fn mcp(&self) -> String {
        format!("{}/mcp", self.url)
    }

    pub(crate) fn script(&self, change: impl FnOnce(&mut Script)) {
        change(&mut self.state.lock().unwrap().script);
    }

    /// Publishes other keys.
    pub(crate) fn publish(&self, keys: &[(&str, u8)]) {
        self.state.lock().unwrap().keys = keys.iter().map(|(id, seed)| ((*id).to_owned(), *seed)).collect();
    }

    /// What was sent to a path so far.
    pub(crate) fn seen(&self, path: &str) -> Vec<HashMap<String, String>> {
        let state = self.state.lock().unwrap();
        state.seen.iter().filter(|(seen, _)| seen == path).map(|(_, sent)| sent.clone()).collect()
    }

    /// How many access and refresh tokens are in use.
    pub(crate) fn living(&self) -> (usize, usize) {
        let state = self.state.lock().unwrap();
        (state.access.len(), state.refresh.len())
    }

    /// The metadata of the resource are not believed any more, and neither is any token.
    pub(crate) fn revoke_access(&self) {
        self.state.lock().unwrap().access.clear();
    }

    pub(crate) fn revoke_all(&self) {
        let mut state = self.state.lock().unwrap();
        state.access.clear();
        state.refresh.clear();
    }

    /// A signed token.
    pub(crate) fn token(&self, resource: &str, changes: &Value) -> String {
        self.signed(&json!({ "alg": "EdDSA", "kid": "k1", "typ": "at+jwt" }), resource, changes, |message| {
            pair(1).sign(message).as_ref().to_vec()
        })
    }

    /// The same, signed in another way.
    pub(crate) fn signed(
        &self,
        header: &Value,
        resource: &str,
        changes: &Value,
        sign: impl FnOnce(&[u8]) -> Vec<u8>,
    ) -> String {
        let mut claims =
            json!({ "iss": self.url, "aud": resource, "sub": "u1", "exp": now_s() + 300, "scope": "mcp" });
        change(&mut claims, changes.as_object().unwrap());
        let message = format!("{}.{}", encoded(header.to_string()), encoded(claims.to_string()));
        format!("{message}.{}", encoded(sign(message.as_bytes())))
    }

    pub(crate) fn rs256(message: &[u8]) -> Vec<u8> {
        let key = rsa();
        let mut signature = vec![0; key.public().modulus_len()];
        key.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), message, &mut signature).unwrap();
        signature
    }

    async fn serve(&self, stream: TcpStream) {
        let mut reader = BufReader::new(stream);
        let Some(request) = read(&mut reader).await else { return };
        let path = request.path.clone();
        let mut sent = request.query.clone();
        sent.extend(form(&request.body));
        if let Some(authorization) = &request.authorization {
            sent.insert("(authorization)".to_owned(), authorization.clone());
        }
        self.state.lock().unwrap().seen.push((path.clone(), sent));
        if path.starts_with("/.well-known/") {
            let delay = self.state.lock().unwrap().script.metadata_delay;
            tokio::time::sleep(delay).await;
        }
        let answer = self.answer(&request);
        if path == "/token" {
            let delay = self.state.lock().unwrap().script.token_delay;
            tokio::time::sleep(delay).await;
        }
        let _gone = reader.get_mut().write_all(answer.as_bytes()).await;
    }

    fn answer(&self, request: &Request) -> String {
        let mut state = self.state.lock().unwrap();
        match (request.method.as_str(), request.path.as_str()) {
            ("GET", path) if path.starts_with("/.well-known/") && state.script.metadata_answer.is_some() => {
                state.script.metadata_answer.clone().unwrap()
            }
            ("GET", "/.well-known/oauth-authorization-server") => json_answer(200, &self.metadata(&state)),
            ("GET", "/.well-known/oauth-protected-resource/mcp") => {
                let mut document = json!({
                    "resource": self.mcp(), "authorization_servers": [self.url], "scopes_supported": ["read"],
                });
                change(&mut document, &state.script.resource);
                json_answer(200, &document)
            }
            ("GET", "/jwks") => json_answer(200, &published(&state.keys)),
            ("GET", "/authorize") => self.authorize(&mut state, &request.query),
            ("POST", "/token") => self.tokens(&mut state, request),
            ("POST", "/revoke") => revoked(&mut state, request),
            ("POST", "/register") => json_answer(201, &json!({ "client_id": "registered" })),
            (_, "/mcp") => self.resource(&state, request),
            _ => answer(404, "", "{}"),
        }
    }

    fn metadata(&self, state: &State) -> Value {
        let url = &self.url;
        let mut document = json!({
            "issuer": url,
            "authorization_endpoint": format!("{url}/authorize"),
            "token_endpoint": format!("{url}/token"),
            "registration_endpoint": format!("{url}/register"),
            "revocation_endpoint": format!("{url}/revoke"),
            "jwks_uri": format!("{url}/jwks"),
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": ["client_secret_basic", "none"],
            "authorization_response_iss_parameter_supported": true,
        });
        change(&mut document, &state.script.server);
        document
    }

    /// The person says yes at once.
    fn authorize(&self, state: &mut State, query: &HashMap<String, String>) -> String {
        if query["client_id"].starts_with("https://") && !is_in_document(state, query) {
            return answer(400, "", "invalid client");
        }
        state.next += 1;
        let code = format!("code-{}", state.next);
        state.codes.insert(code.clone(), query.clone());
        let mut back = json!({ "code": code, "state": query["state"], "iss": self.url });
        change(&mut back, &state.script.callback);
        let mut to = url::Url::parse(&query["redirect_uri"]).unwrap();
        for (name, value) in back.as_object().unwrap() {
            to.query_pairs_mut().append_pair(name, value.as_str().unwrap());
        }
        answer(302, &format!("Location: {to}\r\n"), "")
    }

    fn tokens(&self, state: &mut State, request: &Request) -> String {
        let mut sent = form(&request.body);
        if let Some(basic) = request.authorization.as_deref().and_then(|value| value.strip_prefix("Basic ")) {
            let shown = String::from_utf8(STANDARD.decode(basic).unwrap()).unwrap();
            sent.insert("client_id".to_owned(), shown.split(':').next().unwrap().to_owned());
        }
        let refused =
            |error: &str| json_answer(400, &json!({ "error": error, "error_description": "s3cret words" }));
        let bound = match sent["grant_type"].as_str() {
            "authorization_code" => match state.codes.remove(&sent["code"]) {
                Some(bound) if is_redeemed(&bound, &sent) => bound,
                _ => return refused("invalid_grant"),
            },
            "refresh_token" => {
                let token = sent["refresh_token"].clone();
                if state.used.contains(&token) {
                    // Somebody has a copy (OAuth 2.1, 4.3.1).
                    state.refresh.clear();
                    state.access.clear();
                    return refused("invalid_grant");
                }
                let Some(scope) = state.refresh.get(&token).cloned() else { return refused("invalid_grant") };
                if !state.script.no_rotation {
                    state.refresh.remove(&token);
                    state.used.insert(token);
                }
                HashMap::from([("scope".to_owned(), scope)])
            }
            "client_credentials" => {
                let basic = format!("Basic {}", STANDARD.encode(format!("gate:{CLIENT_SECRET}")));
                if request.authorization.as_deref() != Some(&basic) {
                    return json_answer(401, &json!({ "error": "invalid_client" }));
                }
                sent.clone()
            }
            _ => return refused("unsupported_grant_type"),
        };
        if sent.get("resource") != Some(&self.mcp()) {
            return refused("invalid_target");
        }
        json_answer(200, &self.issued(state, bound.get("scope").cloned().unwrap_or_default(), &sent))
    }

    fn issued(&self, state: &mut State, scope: String, sent: &HashMap<String, String>) -> Value {
        state.next += 1;
        let access = format!("access-{}", state.next);
        let mut tokens = json!({
            "access_token": access, "token_type": "Bearer", "scope": scope,
            "expires_in": state.script.lasts_s.unwrap_or(3600),
        });
        if sent["grant_type"] != "client_credentials"
            && !(state.script.no_rotation && sent.contains_key("refresh_token"))
        {
            let refresh = format!("refresh-{}", state.next);
            state.refresh.insert(refresh.clone(), scope.clone());
            tokens["refresh_token"] = json!(refresh);
        }
        state.access.insert(access, scope);
        change(&mut tokens, &state.script.tokens);
        tokens
    }

    /// The MCP server: it lets in who has a token that lives.
    fn resource(&self, state: &State, request: &Request) -> String {
        let token = request.authorization.as_deref().and_then(|value| value.strip_prefix("Bearer "));
        let metadata = format!("{}/.well-known/oauth-protected-resource/mcp", self.url);
        let own = format!("Bearer resource_metadata=\"{metadata}\"");
        let Some(scope) = token.and_then(|token| state.access.get(token)) else {
            let challenge = state.script.challenge.clone().unwrap_or(own);
            return answer(401, &format!("WWW-Authenticate: {challenge}\r\n"), "");
        };
        if let Some(wanted) = &state.script.wants_scope
            && !scope.split(' ').any(|has| has == wanted)
        {
            let more =
                format!("WWW-Authenticate: {own}, error=\"insufficient_scope\", scope=\"read {wanted}\"\r\n");
            return answer(403, &more, "");
        }
        json_answer(200, &json!({ "jsonrpc": "2.0", "id": 1, "result": {} }))
    }
}

/// Whether the client is the one of the document, and the browser comes back where that says.
fn is_in_document(state: &State, query: &HashMap<String, String>) -> bool {
    let Some(document) = &state.script.document else { return false };
    let back = document["redirect_uris"].as_array().unwrap();
    document["client_id"] == query["client_id"] && back.contains(&json!(query["redirect_uri"]))
}

/// Takes a token back that was issued to the client (RFC 7009); one that is not known is not an error.
fn revoked(state: &mut State, request: &Request) -> String {
    if let Some(scripted) = &state.script.revocation_answer {
        return scripted.clone();
    }
    let sent = form(&request.body);
    if !sent.contains_key("client_id") && request.authorization.is_none() {
        return json_answer(401, &json!({ "error": "invalid_client" }));
    }
    state.access.remove(&sent["token"]);
    state.refresh.remove(&sent["token"]);
    answer(200, "", "")
}

/// Whether who redeems a code is who asked for it (RFC 7636), for the same address and resource.
fn is_redeemed(bound: &HashMap<String, String>, sent: &HashMap<String, String>) -> bool {
    let verifier = sent.get("code_verifier").map(String::as_bytes).unwrap_or_default();
    let challenge = encoded(ring::digest::digest(&ring::digest::SHA256, verifier));
    bound["code_challenge"] == challenge
        && bound["code_challenge_method"] == "S256"
        && ["redirect_uri", "resource", "client_id"].iter().all(|name| bound[*name] == sent[*name])
}

/// The keys as a set, with one of RSA beside them.
fn published(keys: &[(String, u8)]) -> Value {
    let rsa = rsa();
    let public = ring::rsa::PublicKeyComponents::<Vec<u8>>::from(rsa.public());
    let rsa =
        json!({ "kty": "RSA", "kid": "r1", "use": "sig", "n": encoded(public.n), "e": encoded(public.e) });
    let own = keys.iter().map(|(id, seed)| {
        json!({ "kty": "OKP", "crv": "Ed25519", "kid": id, "x": encoded(pair(*seed).public_key()) })
    });
    json!({ "keys": own.chain([rsa]).collect::<Vec<_>>() })
}

pub(crate) fn answer(status: u16, headers: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n{headers}\r\n{body}",
        body.len()
    )
}

fn json_answer(status: u16, body: &Value) -> String {
    answer(status, "", &body.to_string())
}

async fn read(reader: &mut BufReader<TcpStream>) -> Option<Request> {
    let (mut head, mut length, mut authorization) = (String::new(), 0, None);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).await.ok()? <= 2 {
            break;
        }
        let (name, value) = line.split_once(": ").unwrap_or((&line, ""));
        match name.to_lowercase().as_str() {
            "content-length" => length = value.trim().parse().ok()?,
            "authorization" => authorization = Some(value.trim().to_owned()),
            _ => {}
        }
        head.push_str(&line);
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).await.ok()?;
    let mut words = head.split(' ');
    let (method, target) = (words.next()?.to_owned(), words.next()?);
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let body = String::from_utf8(body).ok()?;
    Some(Request { method, path: path.to_owned(), query: form(query), authorization, body })
}
