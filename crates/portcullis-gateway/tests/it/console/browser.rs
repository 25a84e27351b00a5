//! A real Chromium without a window, driven over WebDriver by Debian's `chromedriver` of the same version.
//!
//! One at a time: each takes some hundred megabytes. Without a Chromium the tests that want one say so. The pictures that
//! they take are for people to look at; they are in `target/tmp/console`.

use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use base64::Engine as _;
use fantoccini::wd::WebDriverCompatibleCommand;
use fantoccini::{Client, ClientBuilder, Locator};
use hyper_util::client::legacy::connect::HttpConnector;
use serde_json::{Value, json};
use tokio::sync::{Mutex, MutexGuard};

static TURN: Mutex<()> = Mutex::const_new(());

/// How long a page may take to become what is waited for.
const PATIENCE: Duration = Duration::from_secs(20);

/// A browser, ended when it is dropped.
#[derive(Debug)]
pub(crate) struct Browser {
    pub(crate) client: Client,
    driver: Child,
    _profile: tempfile::TempDir,
    _turn: MutexGuard<'static, ()>,
}

/// A command of the browser's own protocol.
#[derive(Debug)]
struct Cdp(&'static str, Value);

impl WebDriverCompatibleCommand for Cdp {
    fn endpoint(&self, base: &url::Url, session: Option<&str>) -> Result<url::Url, url::ParseError> {
        base.join(&format!("session/{}/goog/cdp/execute", session.unwrap_or_default()))
    }

    fn method_and_body(&self, _: &url::Url) -> (axum::http::Method, Option<String>) {
        (axum::http::Method::POST, Some(json!({"cmd": self.0, "params": self.1}).to_string()))
    }
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
        let profile = tempfile::tempdir().unwrap();
        let mut driver = Command::new("chromedriver")
            .args(["--port=0", "--allowed-ips=127.0.0.1"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let port = port_of(&mut driver);
        let arguments = [
            "--headless=new",
            "--no-sandbox",
            "--disable-dev-shm-usage",
            "--disable-gpu",
            "--disable-extensions",
            "--disable-background-networking",
            "--no-first-run",
            "--force-color-profile=srgb",
            &format!("--user-data-dir={}", profile.path().display()),
        ];
        let capabilities = json!({
            "goog:chromeOptions": {"args": arguments, "binary": "/usr/bin/chromium"},
            "goog:loggingPrefs": {"browser": "ALL"},
        });
        let mut builder = ClientBuilder::new(HttpConnector::new());
        builder.capabilities(capabilities.as_object().unwrap().clone());
        let client = builder.connect(&format!("http://127.0.0.1:{port}")).await.unwrap();
        Some(Self { client, driver, _profile: profile, _turn: turn })
    }

    /// Opens a link that signs in, and follows it.
    pub(crate) async fn sign_in(&self, link: &str) {
        self.client.goto(link).await.unwrap();
        self.press("main button.main").await;
        self.until("document.querySelector('.bar') !== null").await;
    }

    pub(crate) async fn open(&self, url: &str) {
        self.client.goto(url).await.unwrap();
    }

    pub(crate) async fn press(&self, selector: &str) {
        let found = self.client.wait().for_element(Locator::Css(selector)).await;
        let found = found.unwrap_or_else(|error| panic!("{selector}: {error}"));
        found.click().await.unwrap_or_else(|error| panic!("{selector}: {error}"));
    }

    pub(crate) async fn write(&self, selector: &str, text: &str) {
        let found = self.client.find(Locator::Css(selector)).await.unwrap();
        found.clear().await.unwrap();
        found.send_keys(text).await.unwrap();
    }

    pub(crate) async fn eval(&self, expression: &str) -> Value {
        self.client.execute(&format!("return {expression}"), Vec::new()).await.unwrap()
    }

    /// What a person reads of an element.
    pub(crate) async fn text(&self, selector: &str) -> String {
        let text = self.eval(&format!("(document.querySelector({selector:?}) || {{}}).innerText || ''")).await;
        text.as_str().unwrap().to_owned()
    }

    /// Waits until an expression is true.
    pub(crate) async fn until(&self, expression: &str) {
        let since = Instant::now();
        while self.client.execute(&format!("return Boolean({expression})"), Vec::new()).await.ok() != Some(json!(true)) {
            if since.elapsed() > PATIENCE {
                let text = self.text("body").await;
                panic!("not within {PATIENCE:?}: {expression}\nthe page says:\n{text}");
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    async fn cdp(&self, command: &'static str, parameters: Value) -> Value {
        self.client.issue_cmd(Cdp(command, parameters)).await.unwrap()
    }

    /// Pictures of the page as it is: wide in light and dark, and as a phone shows it.
    pub(crate) async fn pictures(&self, name: &str) {
        for (which, width, theme) in [("light", 1_440, "light"), ("dark", 1_440, "dark"), ("phone", 390, "light")] {
            self.size(width, 900).await;
            self.client.execute(&format!("document.documentElement.dataset.theme = '{theme}'"), Vec::new()).await.unwrap();
            // As high as the page, so that what sticks to an edge of the window is at the edge of the picture.
            let height = self.eval("document.documentElement.scrollHeight").await.as_u64().unwrap().clamp(900, 6_000);
            self.size(width, height).await;
            let shot = json!({"format": "png"});
            let answer = self.cdp("Page.captureScreenshot", shot).await;
            let bytes = base64::engine::general_purpose::STANDARD.decode(answer["data"].as_str().unwrap()).unwrap();
            std::fs::write(folder().join(format!("{name}-{which}.png")), bytes).unwrap();
            let wide = self.eval("document.documentElement.scrollWidth").await.as_u64().unwrap();
            assert!(wide <= width, "{name}: the page is {wide} wide on a screen of {width}");
        }
        self.client.execute("delete document.documentElement.dataset.theme", Vec::new()).await.unwrap();
        self.size(1_440, 900).await;
    }

    pub(crate) async fn size(&self, width: u64, height: u64) {
        let metrics = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500});
        self.cdp("Emulation.setDeviceMetricsOverride", metrics).await;
    }

    /// What axe finds that keeps people out, in the page as it is.
    pub(crate) async fn accessible(&self, name: &str) {
        let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../.peers/npm/node_modules/axe-core/axe.min.js");
        let Ok(axe) = std::fs::read_to_string(path) else {
            println!("SKIPPED: axe-core is not there; see `cargo xtask peers`");
            return;
        };
        self.client.execute(&axe, Vec::new()).await.unwrap();
        let run = "const done = arguments[arguments.length - 1]; axe.run(document, {resultTypes: ['violations']}).then(\
                   (r) => done(r.violations.filter((v) => ['serious', 'critical'].includes(v.impact)).map((v) => \
                   v.id + ': ' + v.nodes.map((n) => n.target.join(' ') + ' ' + (n.any[0] ? n.any[0].message : '')).slice(0, 4).join(' | '))), (e) => done([String(e)]))";
        let found = self.client.execute_async(run, Vec::new()).await.unwrap();
        assert_eq!(found, json!([]), "{name}");
    }

    /// Ends it in good order, so that nothing of it is left.
    pub(crate) async fn end(self) {
        // The browser's own complaints: refused scripts and styles are among them.
        let _ = self.client.clone().close().await;
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
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
