//! `portcullis witness` as an auditor runs it, and a log that asks it over TLS.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use serde_json::Value;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

use crate::auditor::{Process, Witness};
use crate::command::{Ran, portcullis};
use crate::log::Home;

/// The key of some log.
const LOG: &str = "portcullis/some+0cabc013+AbVaXgXmYlYVAqKyGzb2AdUJ06p0WZFk1FRMSSd8UKCf";

fn ran(witness: &Witness, args: &[&str]) -> Ran {
    witness.command(args).output().unwrap().into()
}

#[test]
fn a_witness_tells_its_key_listens_and_ends_when_it_is_told_to() {
    let (home, witness) = (Home::new(), Witness::new("w"));
    home.grow();
    let log = home.log_key();
    let key = witness.key();
    assert!(key.starts_with("auditor.example/w+"), "{key}");
    let again = ran(&witness, &["--print-key"]);
    assert_eq!(again.stdout.trim(), key, "the second start has the same");
    let [told] = ran(&witness, &["--print-key", "--json"]).json().try_into().unwrap();
    assert_eq!(told, serde_json::json!({"record": "witness", "key": key, "url": null}));

    let address = format!("127.0.0.1:{}", witness.port);
    let command = witness.command(&["--log", &log, "--listen", &address, "--json"]);
    let mut process = Process::start(command, witness.path("errors").into());
    let line = process.lines().next().unwrap();
    let told: Value = serde_json::from_str(&line).unwrap();
    assert_eq!((&told["key"], &told["url"]), (&key.as_str().into(), &format!("http://{address}").into()));
    // While it runs, nobody else has its state or its port.
    let second = ran(&witness, &["--log", &log, "--listen", "127.0.0.1:0"]);
    assert_eq!(second.code, 3);
    assert!(second.stderr.contains("another process has the state"), "{}", second.stderr);
    let other = Witness::new("other");
    let taken = ran(&other, &["--log", &log, "--listen", &address]);
    assert_eq!(taken.code, 3);
    assert!(taken.stderr.contains(&format!("cannot listen on {address}")), "{}", taken.stderr);

    home.ask(&format!("{}quorum w\n", witness.line(&witness.url())));
    home.grow();
    assert_eq!(home.status()["witnessed"], 5);
    assert!(process.errors().contains("cosigned"), "{}", process.errors());
    assert_eq!(process.stop(), Some(0));
    // What it remembers it does not forget, and does not go on without.
    fs::remove_file(witness.path("w.state")).unwrap();
    let lost = ran(&witness, &["--log", &log]);
    assert_eq!(lost.code, 3);
    assert!(lost.stderr.contains("could cosign a second history"), "{}", lost.stderr);
}

#[test]
fn a_wrong_command_line_of_a_witness_is_told_and_leaves_nothing_behind() {
    let witness = Witness::new("w");
    let witness_key = Witness::new("other").key();
    for (args, expected) in [
        (&[][..], "--log"),
        (&["--log", "no key"], "invalid value 'no key'"),
        (&["--log", &witness_key], "is the key of a witness; name the keys of logs"),
        (&["--log", LOG, "--listen", "nowhere"], "invalid value 'nowhere'"),
        (&["--log", LOG, "--quorum", "1"], "unexpected argument '--quorum'"),
        (&["--log", LOG, "--print-key", "more"], "unexpected argument 'more'"),
    ] {
        let ran = ran(&witness, args);
        assert_eq!(ran.code, 64, "{args:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(expected), "{expected} in {}", ran.stderr);
    }
    assert!(!Path::new(&witness.path("w.state")).exists() && !Path::new(&witness.path("w.key")).exists());
    let unnamed =
        portcullis(&["witness", "--key", "k", "--state", "s", "--name", "two words", "--print-key"]);
    let unnamed: Ran = { unnamed }.output().unwrap().into();
    assert_eq!(unnamed.code, 64, "{}", unnamed.stderr);
    // A key that others can write over, or that is none.
    fs::write(witness.path("w.key"), "no key").unwrap();
    fs::write(witness.path("w.state"), "{}").unwrap();
    let damaged = ran(&witness, &["--print-key"]);
    assert_eq!(damaged.code, 3);
    assert!(damaged.stderr.contains("cannot be read"), "{}", damaged.stderr);
}

/// An authority, and a server of `localhost` that it vouches for.
fn certificates() -> (String, ServerConfig) {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let names = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    let leaf = names.signed_by(&key, &authority).unwrap();
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let config =
        ServerConfig::builder().with_no_client_auth().with_single_cert(vec![leaf.der().clone()], key);
    (authority.pem(), config.unwrap())
}

/// TLS before a server on `port`, as a proxy gives it; its port.
async fn tls_before(port: u16, config: ServerConfig) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let own = listener.local_addr().unwrap().port();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                // A client that does not trust the certificate is gone here.
                let Ok(mut outer) = acceptor.accept(stream).await else { return };
                let mut inner = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
                let _ended = tokio::io::copy_bidirectional(&mut outer, &mut inner).await;
            });
        }
    });
    own
}

#[test]
fn a_witness_is_asked_over_tls_if_its_authority_is_trusted_and_its_name_is_right() {
    let (home, witness) = (Home::new(), Witness::new("w"));
    home.grow();
    let log = home.log_key();
    let _running = witness.start(&[&log]);
    let (authority, config) = certificates();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let port = runtime.block_on(tls_before(witness.port, config));
    let (roots, others, none) = (home.path("a.pem"), home.path("b.pem"), home.path("c.pem"));
    fs::write(&roots, authority).unwrap();
    fs::write(&others, certificates().0).unwrap();
    fs::write(&none, "").unwrap();
    let enrol = |host: &str, roots: &Path| -> Ran {
        home.ask(&format!("{}quorum w\n", witness.line(&format!("https://{host}:{port}"))));
        let mut command = portcullis(&["--home", &home.file("state"), "log", "enrol"]);
        command.env("SSL_CERT_FILE", roots).env_remove("SSL_CERT_DIR");
        command.output().unwrap().into()
    };
    for (host, roots, why) in [
        ("localhost", &others, "invalid peer certificate"),
        ("127.0.0.1", &roots, "certificate not valid for name"),
        ("localhost", &none, "cannot read the system's certificate authorities"),
    ] {
        let refused = enrol(host, roots);
        assert_eq!(refused.code, 3, "{host}: {}", refused.stdout);
        assert!(refused.stderr.contains(why), "{why} in {}", refused.stderr);
        assert_eq!(home.status()["size"], 3, "nothing was signed");
    }
    let enrolled = enrol("localhost", &roots);
    assert_eq!(enrolled.code, 0, "{}", enrolled.stderr);
    let status = home.status();
    assert_eq!((&status["size"], &status["witnessed"]), (&4.into(), &4.into()), "{status}");
}
