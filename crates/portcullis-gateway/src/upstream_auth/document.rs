//! The gate's client id metadata document (draft-ietf-oauth-client-id-metadata-document), as an operator hosts it.
//!
//! Its address is the client's id at every authorization server that reads such documents. A server holds a login to the
//! redirect addresses of the document. Those of RFC 8252, 7.3, let a program on loopback have any port, others compare
//! letter by letter, so the document has the address without a port as well as a few ports, of which a login takes one
//! that is free.

use serde_json::{Value, json};
use url::Url;

use super::callback;
use crate::oauth::shown;

/// Ports of a document that names none. They are registered for nothing else, and below those that systems give away.
pub(super) const PORTS: [u16; 3] = [28_671, 28_672, 28_673];
/// The most ports of a document: servers need not read more than 5 KiB of it (section 8.7).
const PORTS_MAX: usize = 16;
/// The longest address, in bytes: people are shown it when they agree, and the document has to stay short.
const ADDRESS_BYTES_MAX: usize = 1024;
/// The longest name, in bytes.
const NAME_BYTES_MAX: usize = 128;

/// Checks that an address can be a client's id (section 3). Servers compare it letter by letter, so that it has to be
/// written as it is sent.
///
/// # Errors
/// What is wrong with it.
pub(super) fn check(address: &str) -> Result<(), String> {
    let wrong = |why: &str| {
        Err(format!("`{}` cannot be the address of a client id metadata document: {why}", shown(address)))
    };
    if address.len() > ADDRESS_BYTES_MAX {
        return wrong("it is too long");
    }
    let Ok(url) = Url::parse(address) else { return wrong("it is no URL") };
    if url.scheme() != "https" {
        return wrong("it must begin with `https://`");
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("an address with a user or a password is not used, nor repeated here".to_owned());
    }
    if url.fragment().is_some() || url.query().is_some() {
        return wrong("it must have neither `?` nor `#`");
    }
    if url.path() == "/" {
        return wrong("it needs a path, such as `/portcullis.json`");
    }
    if url.as_str() != address {
        return wrong(&format!("it would be sent as `{}`; write it so", shown(url.as_str())));
    }
    Ok(())
}

/// The document for an address. Without ports, it has those that a login tries by itself.
///
/// # Errors
/// The address, the name or the ports cannot be in one.
pub fn client_document(address: &str, name: &str, ports: &[u16]) -> Result<Value, String> {
    check(address)?;
    if name.trim().is_empty() || name.len() > NAME_BYTES_MAX || name.chars().any(char::is_control) {
        return Err(format!("a client's name has 1 to {NAME_BYTES_MAX} bytes, and no control characters"));
    }
    if ports.len() > PORTS_MAX {
        return Err(format!("a document has at most {PORTS_MAX} ports"));
    }
    let ports = if ports.is_empty() { &PORTS[..] } else { ports };
    let mut back = vec![callback::address("127.0.0.1")];
    back.extend(ports.iter().map(|port| callback::address(&format!("127.0.0.1:{port}"))));
    back.dedup();
    Ok(json!({
        "client_id": address,
        "client_name": name,
        "redirect_uris": back,
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": "none",
        // Without it, OpenID Connect takes the client for a web server's and refuses loopback.
        "application_type": "native",
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_written_as_servers_compare_it() {
        for fine in ["https://gate.example/oauth/client.json", "https://gate.example:8443/c"] {
            assert_eq!(check(fine), Ok(()), "{fine}");
        }
        let long = format!("https://gate.example/{}", "x".repeat(ADDRESS_BYTES_MAX));
        for (address, says) in [
            ("gate.example/client.json", "no URL"),
            ("http://127.0.0.1/client.json", "`https://`"),
            ("https://gate.example", "needs a path"),
            ("https://gate.example/", "needs a path"),
            ("https://gate.example/c#x", "neither"),
            ("https://gate.example/c?x=1", "neither"),
            ("https://gate.example:443/c", "sent as `https://gate.example/c`"),
            ("https://Gate.example/c", "sent as `https://gate.example/c`"),
            ("https://gate.example/a/../c", "sent as `https://gate.example/c`"),
            ("https://gate.example/a/%2e%2e/c", "sent as `https://gate.example/c`"),
            (&long, "too long"),
        ] {
            assert!(check(address).unwrap_err().contains(says), "{address}: {:?}", check(address));
        }
        let secret = check("https://me:s3cret@gate.example/c").unwrap_err();
        assert!(!secret.contains("s3cret"), "{secret}");
    }

    #[test]
    fn a_document_has_no_secret_and_says_where_the_browser_comes_back_to() {
        let document = client_document("https://gate.example/c", "Gate", &[8765]).unwrap();
        assert_eq!(
            document["redirect_uris"],
            json!(["http://127.0.0.1/callback", "http://127.0.0.1:8765/callback"])
        );
        assert_eq!(document["client_id"], "https://gate.example/c");
        assert_eq!(
            (&document["token_endpoint_auth_method"], &document["application_type"]),
            (&json!("none"), &json!("native"))
        );
        let whole = client_document("https://gate.example/c", &"x".repeat(NAME_BYTES_MAX), &[]).unwrap();
        assert_eq!(whole["redirect_uris"].as_array().unwrap().len(), 1 + PORTS.len());
        assert!(client_document("https://gate.example/c", "a\u{7}", &[]).is_err());
        assert!(client_document("https://gate.example/c", "Gate", &[1; PORTS_MAX + 1]).is_err());
    }
}
