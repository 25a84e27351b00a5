//! A real Chromium without a window, driven over WebDriver by Debian's `chromedriver` of the same version.
//!
//! One at a time: each takes some hundred megabytes. Without a Chromium the tests that want one say so. The pictures that
//! they take are for people to look at; they are in `target/tmp/console`.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use base64::Engine as _;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::{Mutex, MutexGuard};

static TURN: Mutex<()> = Mutex::const_new(());

/// How long a page may take to become what is waited for.
const PATIENCE: Duration = Duration::from_secs(20);
/// How WebDriver names an element in its answers.
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";

/// A browser, ended when it is dropped.
#[derive(Debug)]
pub(crate) struct Browser {
    driver: Child,
    port: u16,
    session: String,
    profiles: Vec<tempfile::TempDir>,
    _turn: MutexGuard<'static, ()>,
}

impl Browser {
    /// Starts one, or says that there is none.
    pub(crate) async fn start() -> Option<Self> {
        let there = Command::new("chromedriver").arg("--version").stdout(Stdio::null()).status();
        if !there.is_ok_and(|status| status.success()) {
            println!("SKIPPED: no chromedriver; see `cargo xtask programs`");
            return None;
        }
        let turn = TURN.lock().await;
        let mut driver = Command::new("chromedriver")
            .args(["--port=0", "--allowed-ips=127.0.0.1"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let port = port_of(&mut driver);
        let mut browser = Self { driver, port, session: String::new(), profiles: Vec::new(), _turn: turn };
        browser.begin().await;
        Some(browser)
    }

    /// Begins a session with cookies of its own.
    async fn begin(&mut self) {
        let profile = tempfile::tempdir().unwrap();
        let folder = format!("--user-data-dir={}", profile.path().display());
        let arguments = [
            "--headless=new",
            "--no-sandbox",
            "--disable-dev-shm-usage",
            "--disable-gpu",
            "--disable-extensions",
            "--disable-background-networking",
            "--no-first-run",
            "--force-color-profile=srgb",
            &folder,
        ];
        let options = json!({"args": arguments, "binary": "/usr/bin/chromium"});
        let wanted = json!({"capabilities": {"alwaysMatch": {"goog:chromeOptions": options}}});
        let begun = self.exchange("POST", "/session", Some(wanted)).await.unwrap();
        begun["sessionId"].as_str().unwrap().clone_into(&mut self.session);
        self.profiles.push(profile);
    }

    /// Another person's browser beside this one: from here on it is meant. Gives the session of the one before.
    pub(crate) async fn another(&mut self) -> String {
        let before = self.session.clone();
        self.begin().await;
        before
    }

    /// Goes back to a session.
    pub(crate) fn goes_on_in(&mut self, session: String) {
        self.session = session;
    }

    /// A request to the driver: JSON over HTTP, as W3C WebDriver says.
    async fn exchange(&self, method: &str, path: &str, body: Option<Value>) -> Result<Value, String> {
        let body = body.map_or_else(String::new, |body| body.to_string());
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nConnection: close\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\n\r\n{body}",
            self.port,
            body.len()
        );
        let mut stream = tokio::net::TcpStream::connect(("127.0.0.1", self.port)).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        // The driver keeps the connection open, whatever it is asked.
        let mut stream = tokio::io::BufReader::new(stream);
        let (mut line, mut length) = (String::new(), 0);
        while line != "\r\n" {
            line.clear();
            stream.read_line(&mut line).await.unwrap();
            let header = line.to_lowercase();
            length =
                header.strip_prefix("content-length:").map_or(length, |value| value.trim().parse().unwrap());
        }
        let mut answer = vec![0; length];
        stream.read_exact(&mut answer).await.unwrap();
        let answer: Value = serde_json::from_slice(&answer).unwrap();
        match answer["value"].get("error") {
            Some(error) => Err(format!("{error}: {}", answer["value"]["message"])),
            None => Ok(answer["value"].clone()),
        }
    }

    async fn post(&self, path: &str, body: Value) -> Result<Value, String> {
        self.exchange("POST", &format!("/session/{}{path}", self.session), Some(body)).await
    }

    /// Runs a script in the page.
    pub(crate) async fn run(&self, script: &str) -> Result<Value, String> {
        self.post("/execute/sync", json!({"script": script, "args": []})).await
    }

    /// The open tabs.
    pub(crate) async fn tabs(&self) -> Vec<Value> {
        let all =
            self.exchange("GET", &format!("/session/{}/window/handles", self.session), None).await.unwrap();
        all.as_array().unwrap().clone()
    }

    /// Opens another tab, and goes there.
    pub(crate) async fn new_tab(&self) {
        let tab = self.post("/window/new", json!({"type": "tab"})).await.unwrap();
        self.to_tab(&tab["handle"]).await;
    }

    pub(crate) async fn to_tab(&self, tab: &Value) {
        self.post("/window", json!({"handle": tab})).await.unwrap();
    }

    pub(crate) async fn close_tab(&self) {
        self.exchange("DELETE", &format!("/session/{}/window", self.session), None).await.unwrap();
    }

    async fn find(&self, selector: &str) -> String {
        let since = Instant::now();
        loop {
            let found = self.post("/element", json!({"using": "css selector", "value": selector})).await;
            match found {
                Ok(found) => return found[ELEMENT].as_str().unwrap().to_owned(),
                Err(_) if since.elapsed() < PATIENCE => tokio::time::sleep(Duration::from_millis(50)).await,
                Err(error) => panic!("{selector}: {error}\nthe page says:\n{}", self.text("body").await),
            }
        }
    }

    /// Opens a link that signs in, and follows it.
    pub(crate) async fn sign_in(&self, link: &str) {
        self.open(link).await;
        self.press("main button.main").await;
        self.until("document.querySelector('.bar') !== null").await;
    }

    pub(crate) async fn open(&self, url: &str) {
        self.post("/url", json!({"url": url})).await.unwrap();
    }

    /// Presses an element; one that the page draws again meanwhile is looked for again.
    pub(crate) async fn press(&self, selector: &str) {
        let since = Instant::now();
        loop {
            let found = self.find(selector).await;
            match self.post(&format!("/element/{found}/click"), json!({})).await {
                Ok(_) => return,
                Err(error) if was_drawn_again(&error) && since.elapsed() < PATIENCE => {}
                Err(error) => panic!("{selector}: {error}"),
            }
        }
    }

    pub(crate) async fn write(&self, selector: &str, text: &str) {
        let since = Instant::now();
        while let Err(error) = self.try_to_write(selector, text).await {
            assert!(was_drawn_again(&error) && since.elapsed() < PATIENCE, "{selector}: {error}");
        }
    }

    async fn try_to_write(&self, selector: &str, text: &str) -> Result<(), String> {
        let found = self.find(selector).await;
        self.post(&format!("/element/{found}/clear"), json!({})).await?;
        self.post(&format!("/element/{found}/value"), json!({"text": text})).await.map(drop)
    }

    /// Chooses a file of this machine for a field.
    pub(crate) async fn choose_file(&self, selector: &str, file: &std::path::Path) {
        let found = self.find(selector).await;
        let text = json!({"text": file.display().to_string()});
        self.post(&format!("/element/{found}/value"), text).await.unwrap();
    }

    pub(crate) async fn eval(&self, expression: &str) -> Value {
        self.run(&format!("return {expression}")).await.unwrap()
    }

    /// What a person reads of an element.
    pub(crate) async fn text(&self, selector: &str) -> String {
        let text =
            self.eval(&format!("(document.querySelector({selector:?}) || {{}}).innerText || ''")).await;
        text.as_str().unwrap().to_owned()
    }

    /// Waits until an expression is true.
    pub(crate) async fn until(&self, expression: &str) {
        let since = Instant::now();
        while self.run(&format!("return Boolean({expression})")).await.ok() != Some(json!(true)) {
            if since.elapsed() > PATIENCE {
                let text = self.text("body").await;
                panic!("not within {PATIENCE:?}: {expression}\nthe page says:\n{text}");
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    async fn cdp(&self, command: &'static str, parameters: Value) -> Value {
        self.post("/goog/cdp/execute", json!({"cmd": command, "params": parameters})).await.unwrap()
    }

    /// Pictures of the page as it is: wide in light and dark, and as a phone shows it.
    pub(crate) async fn pictures(&self, name: &str) {
        for (which, width, theme) in
            [("light", 1_440, "light"), ("dark", 1_440, "dark"), ("phone", 390, "light")]
        {
            self.size(width, 900).await;
            self.run(&format!("document.documentElement.dataset.theme = '{theme}'")).await.unwrap();
            // As high as the page, so that what sticks to an edge of the window is at the edge of the picture.
            let height =
                self.eval("document.documentElement.scrollHeight").await.as_u64().unwrap().clamp(900, 6_000);
            self.size(width, height).await;
            let shot = json!({"format": "png"});
            let answer = self.cdp("Page.captureScreenshot", shot).await;
            let bytes =
                base64::engine::general_purpose::STANDARD.decode(answer["data"].as_str().unwrap()).unwrap();
            std::fs::write(folder().join(format!("{name}-{which}.png")), bytes).unwrap();
            let wide = self.eval("document.documentElement.scrollWidth").await.as_u64().unwrap();
            assert!(wide <= width, "{name}: the page is {wide} wide on a screen of {width}");
        }
        self.run("delete document.documentElement.dataset.theme").await.unwrap();
        self.size(1_440, 900).await;
    }

    pub(crate) async fn size(&self, width: u64, height: u64) {
        let metrics =
            json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500});
        self.cdp("Emulation.setDeviceMetricsOverride", metrics).await;
    }

    /// What axe finds that keeps people out, in the page as it is.
    pub(crate) async fn accessible(&self, name: &str) {
        let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
            .join("../../.peers/npm/node_modules/axe-core/axe.min.js");
        let Ok(axe) = std::fs::read_to_string(path) else {
            println!("SKIPPED: axe-core is not there; see `cargo xtask peers`");
            return;
        };
        self.run(&axe).await.unwrap();
        let run = "const done = arguments[arguments.length - 1]; axe.run(document, {resultTypes: ['violations']}).then(\
                   (r) => done(r.violations.filter((v) => ['serious', 'critical'].includes(v.impact)).map((v) => \
                   v.id + ': ' + v.nodes.map((n) => n.target.join(' ') + ' ' + (n.any[0] ? n.any[0].message : '')).slice(0, 4).join(' | '))), (e) => done([String(e)]))";
        let found = self.post("/execute/async", json!({"script": run, "args": []})).await.unwrap();
        assert_eq!(found, json!([]), "{name}");
    }

    /// Ends it in good order.
    pub(crate) async fn end(self) {
        self.exchange("DELETE", &format!("/session/{}", self.session), None).await.unwrap();
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // Asked to end, it ends its browsers as well; killed, it would leave them.
        if let Ok(mut stream) = TcpStream::connect(("127.0.0.1", self.port)) {
            let _ =
                stream.write_all(b"GET /shutdown HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n");
            let _ = stream.set_read_timeout(Some(Duration::from_secs(2)));
            let _ = stream.read(&mut [0; 256]);
        }
        for _ in 0..100 {
            if matches!(self.driver.try_wait(), Ok(Some(_))) {
                return;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}

/// Whether an element left the page between finding and using it: then nothing was done to it.
fn was_drawn_again(error: &str) -> bool {
    error.starts_with("\"stale element reference\"")
}

fn port_of(driver: &mut Child) -> u16 {
    let mut lines = BufReader::new(driver.stdout.take().unwrap()).lines();
    let port = lines.by_ref().find_map(|line| {
        let line = line.unwrap();
        let port = line.split_once("started successfully on port ")?.1.trim_end_matches('.').to_owned();
        Some(port.parse().unwrap())
    });
    // What it says from then on is read and thrown away, so that it does not wait for a reader.
    std::thread::spawn(move || lines.for_each(drop));
    port.unwrap()
}

/// Where the pictures are.
pub(crate) fn folder() -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("console");
    std::fs::create_dir_all(&folder).unwrap();
    folder
}
