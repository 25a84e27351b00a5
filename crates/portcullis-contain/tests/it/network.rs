//! Hosts by name: clients of a developer's day reach a local server through the proxy, and nothing else.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, Permissions};
use std::io::{BufRead as _, BufReader};
use std::net::{IpAddr, UdpSocket};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use portcullis_contain::{
    Background, Connection, ConnectionVerdict, ContainError, Ended, Invocation, Level, Limits, Names,
    Network, Observed, OnConnection, Output, Profile,
};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};

use super::escape::{PYTHON, reaches};
use super::world::{NOBODY, contained};

/// Names that lead to this machine, as a name server of a private network would have it.
#[derive(Debug)]
struct Book;

impl Names for Book {
    fn addresses(&self, name: &str) -> std::io::Result<Vec<IpAddr>> {
        match name {
            "packages.test" | "inside.test" | "a.files.test" => Ok(vec![[127, 0, 0, 1].into()]),
            _ => Err(std::io::Error::other("no such name")),
        }
    }
}

/// A server with packages, and a project that wants them.
struct Site {
    folder: tempfile::TempDir,
    server: Child,
    http: u16,
    https: u16,
}

impl Site {
    /// Everything belongs to whoever runs the tests: so do toolchains below a home folder.
    fn make() -> Self {
        let folder = tempfile::Builder::new().prefix("portcullis-site-").tempdir_in("/var/tmp").unwrap();
        fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
        let at = |name: &str| folder.path().join(name);
        for name in ["served", "project"] {
            fs::create_dir(at(name)).unwrap();
        }
        certificates(&at("project/ca.pem"), &at("chain.pem"), &at("key.pem"));
        for program in ["elsewhere.py", "get.py"] {
            fs::copy(own(program), at("project").join(program)).unwrap();
        }
        let mut server = Command::new(PYTHON);
        server.arg(own("server.py")).args([at("served"), at("chain.pem"), at("key.pem")]);
        server.env_remove("GIT_DIR").env("GIT_CONFIG_NOSYSTEM", "1").env("HOME", folder.path());
        let mut server = server.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(server.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let ports: Vec<u16> = line.split_whitespace().map(|port| port.parse().unwrap()).collect();
        Self { folder, server, http: ports[0], https: ports[1] }
    }

    fn project(&self) -> PathBuf {
        self.folder.path().join("project")
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.project().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn profile(&self) -> Profile {
        let Self { http, https, .. } = self;
        let hosts = [
            format!("private:packages.test:{http}"),
            format!("private:packages.test:{https}"),
            format!("private:*.files.test:{https}"),
            "inside.test".to_owned(),
        ];
        let system = ["/usr", "/bin", "/lib", "/lib64", "/opt"].map(PathBuf::from).to_vec();
        Profile {
            name: "fetching".to_owned(),
            network: Network::Hosts(hosts.to_vec()),
            execute: [system, vec![self.project()], toolchains()].concat(),
            write: vec![self.project()],
            environment: vec!["*".to_owned()],
            limits: Limits { wall_seconds: Some(60), output_bytes: Some(1 << 20), ..Limits::default() },
            ..portcullis_contain::project(&self.project(), None).unwrap()
        }
    }

    /// A command of the shell.
    fn command(&self, script: &str) -> Invocation {
        let certificates =
            ["SSL_CERT_FILE", "GIT_SSL_CAINFO", "PIP_CERT", "REQUESTS_CA_BUNDLE", "npm_config_cafile"];
        let ca = self.project().join("ca.pem").into_os_string();
        let mut environment: BTreeMap<OsString, OsString> =
            certificates.into_iter().map(|name| (name.into(), ca.clone())).collect();
        let home = self.project().into_os_string();
        let (http, https) = (self.http.to_string(), self.https.to_string());
        for (name, value) in [
            ("CURL_CA_BUNDLE", ca.clone()),
            ("CARGO_HTTP_CAINFO", ca.clone()),
            ("HOME", home.clone()),
            ("CARGO_HOME", home.clone()),
            ("npm_config_cache", home),
            ("npm_config_fetch_retries", "0".into()),
            ("CARGO_NET_RETRY", "0".into()),
            ("PATH", path()),
            ("HTTP", http.into()),
            ("HTTPS", https.into()),
            // Of the caller, who may not have the last word.
            ("HTTPS_PROXY", "http://192.0.2.1:1".into()),
            ("NO_PROXY", "*".into()),
        ] {
            environment.insert(name.into(), value);
        }
        Invocation {
            program: "/bin/sh".into(),
            arguments: vec!["-euc".into(), script.into()],
            folder: Some(self.project()),
            level: Some(Level::Namespace),
            environment: Some(environment),
            output: Output::Kept,
            ..Invocation::default()
        }
    }

    /// Runs a command of the shell.
    fn run(&self, script: &str) -> Observed {
        contained().with_names(Book).run(&self.profile(), &self.command(script)).unwrap()
    }

    /// Runs it, and it works: everything it reached was permitted.
    fn works(&self, script: &str) -> Observed {
        let observed = self.run(script);
        assert_eq!(observed.ended, Ended::Status(0), "{script}: {}", told(&observed));
        assert!(!observed.connections.is_empty(), "{script}");
        for made in &observed.connections {
            assert_eq!(made.verdict, ConnectionVerdict::Permitted, "{script}: {made:?}");
            assert_eq!((made.host.as_str(), made.address), ("packages.test", Some([127, 0, 0, 1].into())));
            assert!(made.sent > 0 && made.received > 0, "{script}: {made:?}");
        }
        observed
    }

    /// Runs it with another name, and it does not work.
    fn fails(&self, script: &str) {
        let script = script.replace("packages.test", "other.test");
        let observed = self.run(&script);
        assert_ne!(observed.ended, Ended::Status(0), "{script}: {}", told(&observed));
        let refused = |made: &Connection| {
            made.host == "other.test" && matches!(made.verdict, ConnectionVerdict::Refused(_))
        };
        assert!(!observed.connections.is_empty(), "{script}: {}", told(&observed));
        assert!(observed.connections.iter().all(refused), "{script}: {:?}", observed.connections);
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        let _gone = self.server.kill();
        let _gone = self.server.wait();
    }
}

fn told(observed: &Observed) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    format!("{:?}\n{}{}", observed.connections, text(&observed.stdout), text(&observed.stderr))
}

fn own(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/network").join(name)
}

/// An authority of our own, and what the server shows.
fn certificates(authority: &Path, chain: &Path, key: &Path) {
    let mut own = CertificateParams::new(Vec::new()).unwrap();
    own.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let issuer = CertifiedIssuer::self_signed(own, KeyPair::generate().unwrap()).unwrap();
    let keys = KeyPair::generate().unwrap();
    let names = ["packages.test", "other.test", "a.files.test"].map(str::to_owned).to_vec();
    let mut leaf = CertificateParams::new(names).unwrap();
    // One of the same name as its issuer would count as signed by itself.
    leaf.distinguished_name.push(DnType::CommonName, "packages.test");
    let leaf = leaf.signed_by(&keys, &issuer).unwrap();
    fs::write(authority, issuer.pem()).unwrap();
    fs::write(chain, leaf.pem()).unwrap();
    fs::write(key, keys.serialize_pem()).unwrap();
}

/// The cargo of these tests without the proxy that chooses a toolchain, and whatever else is on the path.
fn path() -> OsString {
    let cargo = Path::new(env!("CARGO")).parent().unwrap().to_owned();
    let others = std::env::split_paths(&std::env::var_os("PATH").unwrap()).collect::<Vec<_>>();
    let system = ["/usr/local/bin", "/usr/bin", "/bin"].map(PathBuf::from);
    std::env::join_paths([cargo].into_iter().chain(system).chain(others)).unwrap()
}

/// Where the toolchains of these tests are.
fn toolchains() -> Vec<PathBuf> {
    let cargo = Path::new(env!("CARGO")).ancestors().nth(2).unwrap().to_owned();
    let peers = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.peers/python");
    // A virtual environment's Python is a link to the one that it was made with.
    let python = peers.join("bin/python").canonicalize().ok();
    let python = python.and_then(|python| python.ancestors().nth(2).map(Path::to_owned));
    [cargo, peers].into_iter().chain(python).filter(|path| path.exists()).collect()
}

/// Whether a program runs here.
fn has(program: &str, arguments: &[&str]) -> bool {
    let output = Command::new(program).args(arguments).env("PATH", path()).output();
    let there = output.is_ok_and(|output| output.status.success());
    if !there {
        println!("SKIPPED: no `{program} {}`", arguments.join(" "));
    }
    there
}

#[test]
fn curl_reaches_what_is_named() {
    if !reaches(Level::Namespace) || !has("curl", &["--version"]) {
        return;
    }
    let site = Site::make();
    let observed = site
        .works("curl -sSf --fail-early https://packages.test:$HTTPS/hello http://packages.test:$HTTP/hello");
    assert_eq!(observed.stdout, b"hello\nhello\n", "{}", told(&observed));
    assert_eq!(observed.connections.len(), 2);
    let large = site.works("curl -sSf http://packages.test:$HTTP/large | wc -c");
    assert_eq!(large.stdout, b"5000000\n");
    assert!((5_000_000..5_001_000).contains(&large.connections[0].received));
    let upload = site.works(
        "head -c 3000000 /dev/zero > large
        curl -sSf -T large http://packages.test:$HTTP/up -T large https://packages.test:$HTTPS/up",
    );
    assert_eq!(upload.stdout, b"3000000\n3000000\n", "{}", told(&upload));
    let is_whole = |made: &Connection| (3_000_000..3_200_000).contains(&made.sent);
    assert!(upload.connections.iter().all(is_whole), "{}", told(&upload));
    let below = site.run("curl -sSf https://a.files.test:$HTTPS/hello");
    assert_eq!(below.stdout, b"hello\n", "{}", told(&below));
    site.fails("curl -sSf https://packages.test:$HTTPS/hello");
    site.fails("curl -sSf http://packages.test:$HTTP/hello");
    let told_what = site.run("curl -sS http://other.test/");
    let expected = "portcullis: `other.test:80`: the profile `fetching` does not name it; add `other.test` to its hosts, or give `--net other.test`\n";
    assert_eq!(String::from_utf8(told_what.stdout).unwrap(), expected);
}

#[test]
fn git_clones_over_http_and_https() {
    if !reaches(Level::Namespace) || !has("git", &["--version"]) {
        return;
    }
    let site = Site::make();
    let clone = "git clone -q https://packages.test:$HTTPS/git/project.git secure
        git clone -q http://packages.test:$HTTP/git/project.git plain
        cat secure/file plain/file";
    let observed = site.works(clone);
    assert_eq!(observed.stdout, b"from git\nfrom git\n", "{}", told(&observed));
    site.fails("git clone -q https://packages.test:$HTTPS/git/project.git other");
}

/// A Python with pip: that of the peers, or one of the system.
fn pip() -> Option<String> {
    let peers = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.peers/python/bin/python");
    let candidates = [peers.display().to_string(), PYTHON.to_owned(), "python3".to_owned()];
    candidates.into_iter().find(|python| has(python, &["-c", "import pip"]))
}

#[test]
fn pip_and_python_fetch() {
    let Some(python) = pip().filter(|_| reaches(Level::Namespace)) else { return };
    let site = Site::make();
    let download = format!(
        "{python} -m pip download -q --disable-pip-version-check --no-cache-dir --no-deps --retries 0 -d out \
         --index-url https://packages.test:$HTTPS/simple/ tiny"
    );
    let observed = site.works(&format!("{download}; ls out"));
    assert_eq!(observed.stdout, b"tiny-1.0.0-py3-none-any.whl\n", "{}", told(&observed));
    site.fails(&download);
    let get = format!("{python} get.py https://packages.test:$HTTPS/hello http://packages.test:$HTTP/hello");
    let observed = site.works(&get);
    assert_eq!((observed.stdout.as_slice(), observed.connections.len()), (&b"got\n"[..], 4));
    site.fails(&get);
}

#[test]
fn npm_installs() {
    if !reaches(Level::Namespace) || !has("npm", &["--version"]) {
        return;
    }
    let site = Site::make();
    site.write("package.json", r#"{"name": "own", "version": "1.0.0"}"#);
    let install =
        "npm install --silent --no-audit --no-fund --registry https://packages.test:$HTTPS/npm/ tiny";
    let observed = site.works(&format!("{install}; grep '\"version\"' node_modules/tiny/package.json"));
    assert!(observed.stdout.ends_with(b"\"version\": \"1.0.0\"}\n"), "{}", told(&observed));
    site.fails(&format!("rm -rf node_modules package-lock.json _cacache; {install}"));
}

#[test]
fn cargo_fetches() {
    if !reaches(Level::Namespace) || !has("cargo", &["--version"]) {
        return;
    }
    let site = Site::make();
    let manifest = "[package]\nname = \"own\"\nversion = \"1.0.0\"\nedition = \"2021\"\n[workspace]\n";
    site.write("Cargo.toml", &format!("{manifest}[dependencies]\ntiny = \"1\"\n"));
    site.write("src/lib.rs", "");
    let fetch = "printf '%s\\n' '[source.crates-io]' 'replace-with = \"own\"' '[source.own]' \
         \"registry = \\\"sparse+https://packages.test:$HTTPS/index/\\\"\" > config.toml
        cargo fetch -q";
    let observed = site.works(&format!("{fetch}; ls registry/src/*"));
    assert_eq!(observed.stdout, b"tiny-1.0.0\n", "{}", told(&observed));
    site.fails(&format!("rm -r registry Cargo.lock; {fetch}"));
}

#[test]
fn nothing_else_is_reached() {
    if !reaches(Level::Namespace) {
        return;
    }
    let site = Site::make();
    let datagrams = UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = datagrams.local_addr().unwrap().port();
    let mut command = site.command(&format!("{PYTHON} elsewhere.py $HTTP {port}"));
    // The socket of the proxy has to come from a helper of another user, too.
    command.user = rustix::process::geteuid().is_root().then_some((NOBODY, NOBODY));
    let observed = contained().with_names(Book).run(&site.profile(), &command).unwrap();
    assert_eq!(observed.stdout, b"done\n", "{}", told(&observed));
    datagrams.set_nonblocking(true).unwrap();
    assert!(datagrams.recv(&mut [0; 8]).is_err(), "a datagram arrived");
    assert!(observed.connections.len() >= 8, "{}", told(&observed));
    let refused = |made: &Connection| matches!(made.verdict, ConnectionVerdict::Refused(_)) && made.sent == 0;
    assert!(observed.connections.iter().all(refused), "{}", told(&observed));
    let inside = observed.connections.iter().find(|made| made.host == "inside.test").unwrap();
    let ConnectionVerdict::Refused(why) = &inside.verdict else { panic!() };
    assert!(why.contains("leads to 127.0.0.1, this machine's loopback"), "{why}");
}

/// What the tests above cannot show by failing: the same attempts work where nothing is contained.
#[test]
fn without_containment_the_machine_is_reached() {
    let site = Site::make();
    let stream = std::net::TcpStream::connect(("127.0.0.1", site.http));
    assert!(stream.is_ok());
    let python = Command::new(PYTHON)
        .arg(own("elsewhere.py"))
        .args([site.http.to_string(), "9".to_owned()])
        .output()
        .unwrap();
    assert!(String::from_utf8_lossy(&python.stdout).contains("reached: the machine's loopback\n"));
}

#[test]
fn the_commands_own_loopback_is_its_own() {
    if !reaches(Level::Namespace) || !has("curl", &["--version"]) {
        return;
    }
    let site = Site::make();
    // A server of its own answers without the proxy, on a port on which another one listens outside.
    let own = format!(
        "mkdir pages; echo mine > pages/hello
        {PYTHON} -m http.server -d pages $HTTP >/dev/null 2>&1 &
        until curl -sf http://localhost:$HTTP/hello; do sleep 0.05; done"
    );
    let observed = site.run(&own);
    assert_eq!(
        (observed.stdout.as_slice(), observed.connections.len()),
        (&b"mine\n"[..], 0),
        "{}",
        told(&observed)
    );
}

#[test]
fn the_machines_loopback_is_reached_where_it_is_named() {
    if !reaches(Level::Namespace) || !has("curl", &["--version"]) {
        return;
    }
    let site = Site::make();
    let mut profile = site.profile();
    profile.network = Network::Hosts(vec![format!("localhost:{}", site.http)]);
    let told_of = Arc::new(Mutex::new(Vec::new()));
    let teller = Arc::clone(&told_of);
    let script = format!(
        "curl -sSf http://localhost:{0}/hello; curl -s http://127.0.0.1:{0}/hello || echo own; sleep 0.3",
        site.http
    );
    let command = Invocation {
        on_connection: OnConnection::call(move |made| teller.lock().unwrap().push(made.clone())),
        ..site.command(&script)
    };
    let observed = contained().run(&profile, &command).unwrap();
    assert_eq!(observed.stdout, b"hello\nown\n", "{}", told(&observed));
    assert_eq!(*told_of.lock().unwrap(), observed.connections);
    assert_eq!(observed.connections.len(), 1);
}

/// Below the namespace level nothing would hold a command to the proxy, so it is not run.
#[test]
fn named_hosts_need_a_network_of_ones_own() {
    let site = Site::make();
    let run = |level| {
        let command = Invocation {
            program: "/bin/true".into(),
            folder: Some(site.project()),
            level,
            ..Invocation::default()
        };
        contained().run(&site.profile(), &command)
    };
    let refused = run(Some(Level::Process)).unwrap_err();
    assert!(matches!(refused, ContainError::Profile(_)), "{refused}");
    let refused = refused.to_string();
    assert!(
        refused.contains("requires the level `namespace`") && refused.contains("names hosts"),
        "{refused}"
    );
    let kept = Profile { background: Background::Keep, ..site.profile() };
    let refused = contained().run(&kept, &site.command("true")).unwrap_err().to_string();
    assert!(refused.contains("hosts are reached through the caller"), "{refused}");
    if reaches(Level::Namespace) {
        assert_eq!(run(None).unwrap().level, Level::Namespace);
    }
}

/// A driver whose helper cannot be heard, or whose command leaves connections open, gets an answer all the same.
#[test]
fn a_command_that_leaves_connections_open_ends() {
    if !reaches(Level::Namespace) {
        return;
    }
    let site = Site::make();
    let begun = std::time::Instant::now();
    let script = "import os, socket
port = int(os.environ['HTTP'])
for _ in range(40):
    stream = socket.create_connection(('127.0.0.1', 3128))
    stream.sendall(f'CONNECT packages.test:{port} HTTP/1.1\\r\\n\\r\\n'.encode())
    os.dup(stream.fileno())
os.fork()
print(stream.recv(12))";
    site.write("open.py", script);
    let observed = site.run(&format!("{PYTHON} open.py"));
    let said = String::from_utf8_lossy(&observed.stdout);
    // Two processes read from it.
    assert!(said.contains("HTTP/1.1 200"), "{}", told(&observed));
    assert!(observed.connections.len() + usize::try_from(observed.connections_left_out).unwrap() >= 30);
    assert!(begun.elapsed() < std::time::Duration::from_secs(20), "{:?}", begun.elapsed());
}
