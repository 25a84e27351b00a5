//! TLS: a server is asked when the system trusts its certificate and the certificate names it, and only then.
//!
//! Which authorities the system trusts can be set by the environment (`SSL_CERT_FILE`), which a process reads once; so
//! each question is asked by a child process: this very test, told by a variable where to ask.

use std::process::Stdio;
use std::sync::Arc;

use portcullis_assist::{Client, Http, Model as _, Options, Request, Timeouts, VirtualClock};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

/// Where the child finds the address to ask.
const ADDRESS: &str = "PORTCULLIS_TEST_ADDRESS";

const BODY: &str = r#"{"choices":[{"message":{"content":"Hello"},"finish_reason":"stop"}]}"#;

/// An authority, and a server of `localhost` that it vouches for.
fn certificates() -> (String, ServerConfig) {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let leaf =
        CertificateParams::new(vec!["localhost".to_owned()]).unwrap().signed_by(&key, &authority).unwrap();
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let config =
        ServerConfig::builder().with_no_client_auth().with_single_cert(vec![leaf.der().clone()], key);
    (authority.pem(), config.unwrap())
}

/// Asks in a child process, and gives what it printed.
async fn ask(address: &str, roots: &std::path::Path) -> String {
    let mut child = tokio::process::Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", "tls::a_server_is_asked_over_tls_if_it_is_trusted_and_named", "--nocapture"]);
    child.env(ADDRESS, address).env("SSL_CERT_FILE", roots).env_remove("SSL_CERT_DIR");
    let output = child.stdin(Stdio::null()).kill_on_drop(true).output().await.unwrap();
    String::from_utf8(output.stdout).unwrap()
}

/// What the child does.
async fn question(address: &str) {
    let mut options = Options::new("stand-in");
    options.retries.attempts = 1;
    match Http::new(address, None, Timeouts::default()) {
        Err(error) => println!("<no client: {error}>"),
        Ok(http) => {
            let client = Client::new(options, Arc::new(http), Arc::new(VirtualClock::new()));
            match client.complete(&Request::new("Say hello.", "Hello?", 64)).await {
                Ok(answer) => println!("<answer: {}>", answer.text),
                Err(error) => println!("<error: {error}>"),
            }
        }
    }
}

#[tokio::test]
async fn a_server_is_asked_over_tls_if_it_is_trusted_and_named() {
    if let Ok(address) = std::env::var(ADDRESS) {
        return question(&address).await;
    }
    let folder = tempfile::tempdir().unwrap();
    let (roots, others, none) =
        (folder.path().join("a.pem"), folder.path().join("b.pem"), folder.path().join("c.pem"));
    let (authority, config) = certificates();
    std::fs::write(&roots, authority).unwrap();
    std::fs::write(&others, certificates().0).unwrap();
    std::fs::write(&none, "").unwrap();

    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let server = tokio::spawn(async move {
        let mut served = 0;
        while let Ok((stream, _)) = listener.accept().await {
            // A client that does not trust the certificate is gone here.
            let Ok(mut stream) = acceptor.accept(stream).await else { continue };
            let mut request = vec![0; 64 * 1024];
            if stream.read(&mut request).await.unwrap_or(0) > 0 {
                served += 1;
                let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length";
                stream.write_all(format!("{head}: {}\r\n\r\n{BODY}", BODY.len()).as_bytes()).await.unwrap();
                stream.shutdown().await.unwrap();
            }
            assert!(served < 2, "somebody asked who should not have trusted");
        }
    });

    let named = format!("https://localhost:{port}/v1");
    let trusted = ask(&named, &roots).await;
    assert!(trusted.contains("<answer: Hello>"), "{trusted}");
    for (address, roots, why) in [
        (named.clone(), &others, "invalid peer certificate"),
        (format!("https://127.0.0.1:{port}/v1"), &roots, "certificate not valid for name"),
        (named, &none, "<no client: cannot read the system's certificate authorities"),
    ] {
        let printed = ask(&address, roots).await;
        assert!(printed.contains(why), "{printed}");
    }
    assert!(!server.is_finished());
    server.abort();
}
