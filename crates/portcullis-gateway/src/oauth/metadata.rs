//! What authorization servers and protected resources say of themselves (RFC 8414, OpenID Connect Discovery 1.0,
//! RFC 9728), and where it is found. Read and checked without any I/O.

use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer};
use url::{Host, Url};

use super::shown;

/// The most authorization servers of a resource that are looked at.
const SERVERS_MAX: usize = 16;

/// What an authorization server says of itself. Fields that are not used here are not read.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct ServerMetadata {
    /// Its identifier: the one that it was asked by.
    pub(crate) issuer: String,
    #[serde(default, deserialize_with = "address")]
    pub(crate) authorization_endpoint: Option<Url>,
    #[serde(default, deserialize_with = "address")]
    pub(crate) token_endpoint: Option<Url>,
    #[serde(default, deserialize_with = "address")]
    pub(crate) jwks_uri: Option<Url>,
    #[serde(default, deserialize_with = "address")]
    pub(crate) registration_endpoint: Option<Url>,
    #[serde(default)]
    pub(crate) code_challenge_methods_supported: Vec<String>,
    #[serde(default)]
    pub(crate) token_endpoint_auth_methods_supported: Option<Vec<String>>,
    #[serde(default)]
    pub(crate) authorization_response_iss_parameter_supported: bool,
    /// Whether it reads documents of clients whose id is an address.
    #[serde(default)]
    pub(crate) client_id_metadata_document_supported: bool,
    /// Read when it is used: what is wrong with it is no reason to refuse tokens.
    #[serde(default)]
    pub(crate) revocation_endpoint: Option<String>,
}

impl ServerMetadata {
    /// Reads the metadata of the server that was asked by this identifier.
    ///
    /// # Errors
    /// They are of another server, or have an address over which secrets would travel in clear.
    pub(crate) fn read(bytes: &[u8], asked: &str) -> Result<Self, String> {
        let read: Self = document(bytes, "metadata of an authorization server")?;
        // RFC 8414, 3.3: identical, without any normalisation.
        if read.issuer != asked {
            return Err(format!(
                "it says that it is `{}`, but `{}` was asked",
                shown(&read.issuer),
                shown(asked)
            ));
        }
        let endpoints =
            [&read.authorization_endpoint, &read.token_endpoint, &read.jwks_uri, &read.registration_endpoint];
        for endpoint in endpoints.into_iter().flatten() {
            secure(endpoint)?;
        }
        Ok(read)
    }

    /// Whether the code of a challenge may be its SHA-256 (RFC 7636).
    pub(crate) fn has_s256(&self) -> bool {
        self.code_challenge_methods_supported.iter().any(|method| method == "S256")
    }

    /// Whether a client may show itself in that way. A server that does not say takes `client_secret_basic` (RFC 8414, 2).
    pub(crate) fn takes(&self, method: &str) -> bool {
        match &self.token_endpoint_auth_methods_supported {
            Some(methods) => methods.iter().any(|of| of == method),
            None => method == "client_secret_basic",
        }
    }
}

/// What a protected resource says of itself.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct ResourceMetadata {
    /// Its identifier.
    pub(crate) resource: String,
    #[serde(default)]
    pub(crate) authorization_servers: Vec<String>,
    #[serde(default)]
    pub(crate) scopes_supported: Vec<String>,
}

impl ResourceMetadata {
    /// Reads the metadata of the resource at an address.
    ///
    /// # Errors
    /// They are of another resource, or name no authorization server.
    pub(crate) fn read(bytes: &[u8], at: &Url) -> Result<Self, String> {
        let mut read: Self = document(bytes, "metadata of a protected resource")?;
        if !covers(&read.resource, at) {
            return Err(format!(
                "they are of the resource `{}`, but `{at}` was asked for; a token for one would be sent to the other",
                shown(&read.resource)
            ));
        }
        read.authorization_servers.truncate(SERVERS_MAX);
        if read.authorization_servers.is_empty() {
            return Err("they name no authorization server".to_owned());
        }
        Ok(read)
    }
}

/// Whether a resource is the address, or a part of its path that ends where a segment does: a token for the whole of a
/// server is also one for a part of it, and never the other way round.
fn covers(resource: &str, at: &Url) -> bool {
    let Ok(resource) = Url::parse(resource) else { return false };
    let plain =
        resource.fragment().is_none() && resource.username().is_empty() && resource.password().is_none();
    if !plain || resource.origin() != at.origin() || !resource.origin().is_tuple() {
        return false;
    }
    if let Some(query) = resource.query()
        && at.query() != Some(query)
    {
        return false;
    }
    let whole = resource.path().trim_end_matches('/');
    at.path().strip_prefix(whole).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn address<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Url>, D::Error> {
    let text = Option::<String>::deserialize(from)?;
    text.map(|text| Url::parse(&text)).transpose().map_err(D::Error::custom)
}

fn document<T: DeserializeOwned>(bytes: &[u8], what: &str) -> Result<T, String> {
    serde_json::from_slice(bytes).map_err(|_| format!("the answer is no JSON document with the {what}"))
}

/// Checks that what travels to an address cannot be read on the way: it is `https`, or does not leave this machine.
pub(crate) fn secure(url: &Url) -> Result<(), String> {
    let wrong = |why: &str| Err(format!("the address `{}` is not used: {why}", shown(url.as_str())));
    if !url.username().is_empty() || url.password().is_some() {
        return Err("an address with a user or a password is not used, nor repeated here".to_owned());
    }
    match (url.scheme(), is_loopback(url)) {
        ("https", _) | ("http", true) => Ok(()),
        ("http", false) => wrong("`http` is for loopback only; tokens would travel in clear"),
        _ => wrong("it must begin with `https://`"),
    }
}

/// Whether the host of an address is written as one of this machine.
pub(crate) fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(Host::Ipv4(ip)) => ip.is_loopback(),
        Some(Host::Ipv6(ip)) => ip.is_loopback(),
        None => false,
    }
}

/// Where the metadata of the server with an identifier may be, in the order in which MCP has them looked for.
pub(crate) fn of_server(issuer: &Url) -> Vec<Url> {
    let path = issuer.path().trim_end_matches('/');
    let mut paths = vec![
        format!("/.well-known/oauth-authorization-server{path}"),
        format!("/.well-known/openid-configuration{path}"),
    ];
    if !path.is_empty() {
        paths.push(format!("{path}/.well-known/openid-configuration"));
    }
    paths.iter().map(|path| with_path(issuer, path)).collect()
}

/// Where the metadata of the resource at an address may be: beside its path, then at the root.
pub(crate) fn of_resource(resource: &Url) -> Vec<Url> {
    const ROOT: &str = "/.well-known/oauth-protected-resource";
    let path = resource.path().trim_end_matches('/');
    let mut places = vec![with_path(resource, &format!("{ROOT}{path}"))];
    if !path.is_empty() {
        places.push(with_path(resource, ROOT));
    }
    places
}

fn with_path(url: &Url, path: &str) -> Url {
    let mut url = url.clone();
    url.set_path(path);
    url.set_query(None);
    url.set_fragment(None);
    url
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    #[test]
    fn metadata_are_looked_for_where_mcp_has_them() {
        let texts = |urls: Vec<Url>| urls.into_iter().map(String::from).collect::<Vec<_>>();
        assert_eq!(
            texts(of_server(&url("https://a.example/tenant1"))),
            [
                "https://a.example/.well-known/oauth-authorization-server/tenant1",
                "https://a.example/.well-known/openid-configuration/tenant1",
                "https://a.example/tenant1/.well-known/openid-configuration",
            ]
        );
        assert_eq!(
            texts(of_server(&url("https://a.example"))),
            [
                "https://a.example/.well-known/oauth-authorization-server",
                "https://a.example/.well-known/openid-configuration",
            ]
        );
        assert_eq!(
            texts(of_resource(&url("https://m.example:8443/public/mcp?x=1"))),
            [
                "https://m.example:8443/.well-known/oauth-protected-resource/public/mcp",
                "https://m.example:8443/.well-known/oauth-protected-resource",
            ]
        );
        assert_eq!(texts(of_resource(&url("https://m.example/"))).len(), 1);
    }

    #[test]
    fn a_resource_is_the_address_or_a_part_of_its_path() {
        let at = url("https://mcp.example/a/mcp");
        for fine in [
            "https://mcp.example/a/mcp",
            "https://MCP.example:443/a/mcp/",
            "https://mcp.example/a",
            "https://mcp.example",
        ] {
            assert!(covers(fine, &at), "{fine}");
        }
        for wrong in [
            "https://mcp.example/a/mcp/b",
            "https://mcp.example/a/mc",
            "http://mcp.example/a/mcp",
            "https://mcp.example:8443/a/mcp",
            "https://evil.example/a/mcp",
            "https://me@mcp.example/a/mcp",
            "https://mcp.example/a/mcp#x",
            "https://mcp.example/a/mcp?x",
            "mcp.example",
            "data:,x",
            "",
        ] {
            assert!(!covers(wrong, &at), "{wrong}");
        }
    }

    #[test]
    fn a_server_is_the_one_that_was_asked() {
        let read = |issuer: &str, more: &str| {
            let text = format!(r#"{{"issuer":"{issuer}","token_endpoint":"https://a.example/t"{more}}}"#);
            ServerMetadata::read(text.as_bytes(), "https://a.example")
        };
        assert!(!read("https://a.example", "").unwrap().has_s256());
        assert!(read("https://a.example/", "").unwrap_err().contains("was asked"));
        assert!(read("https://evil.example", "").is_err());
        let clear = r#","authorization_endpoint":"http://a.example/authorize""#;
        assert!(read("https://a.example", clear).unwrap_err().contains("in clear"));
        for wrong in ["javascript:alert(1)", "file:///etc/passwd"] {
            let more = format!(r#","authorization_endpoint":"{wrong}""#);
            assert!(read("https://a.example", &more).unwrap_err().contains("must begin with"), "{wrong}");
        }
        let basic = read("https://a.example", "").unwrap();
        assert!(basic.takes("client_secret_basic") && !basic.takes("client_secret_post"));
    }

    #[test]
    fn nothing_travels_in_clear_but_on_this_machine() {
        for fine in ["https://a.example/", "http://127.0.0.1:1/", "http://[::1]/", "http://localhost/"] {
            assert!(secure(&url(fine)).is_ok(), "{fine}");
        }
        for wrong in
            ["http://a.example/", "http://localhost.example/", "ftp://a.example/", "https://u:p@a.example/"]
        {
            assert!(secure(&url(wrong)).is_err(), "{wrong}");
        }
    }
}
