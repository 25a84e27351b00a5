//! A real daemon on a state folder made for a measurement.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use portcullis_core::principal::CredentialKind;

use super::BenchError;
use crate::client::Client;
use crate::home::Home;

/// How long the daemon may take to come up.
const UP_MAX: Duration = Duration::from_secs(20);
const POLL: Duration = Duration::from_millis(20);
/// Part of the log that is quoted when it does not, in bytes.
const LOG_BYTES_MAX: usize = 2_048;

/// The daemon under test; ended with this value.
pub(super) struct Daemon {
    pub(super) home: Home,
    child: Child,
}

impl Daemon {
    /// Starts it in a folder, with these files as its bundle.
    pub(super) fn start(
        program: &Path,
        folder: &Path,
        files: &BTreeMap<String, Vec<u8>>,
    ) -> Result<Self, BenchError> {
        Self::start_with(program, folder, files, &[])
    }

    /// The same with more arguments of `serve`.
    pub(super) fn start_with(
        program: &Path,
        folder: &Path,
        files: &BTreeMap<String, Vec<u8>>,
        more: &[&str],
    ) -> Result<Self, BenchError> {
        let home = Home::at(&folder.join("home")).map_err(crate::client::ClientError::from)?;
        let bundle = folder.join("bundle");
        for (path, bytes) in files {
            write_file(&bundle.join(path), bytes)?;
        }
        write_file(&home.log(), b"")?;
        let log = || File::options().append(true).open(home.log()).map_err(BenchError::io("open the log"));
        let child = Command::new(program)
            .arg("serve")
            .arg("--home")
            .arg(home.path())
            .arg("--bundle")
            .arg(&bundle)
            .args(more)
            .stdin(Stdio::null())
            .stdout(log()?)
            .stderr(log()?)
            .spawn()
            .map_err(BenchError::io(format!("start `{} serve`", program.display())))?;
        Ok(Self { home, child })
    }

    /// The number of its process.
    pub(super) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Where it serves HTTP, as its log says, once it [answers](Self::wait).
    pub(super) fn http(&self) -> Result<String, BenchError> {
        let log = fs::read_to_string(self.home.log()).map_err(BenchError::io("read the log"))?;
        let said = log.lines().find_map(|line| line.split_once("serving HTTP address="));
        let address = said.map(|(_, address)| address.trim().to_owned());
        address.ok_or_else(|| {
            BenchError::io("find where HTTP is served")(std::io::Error::other("the log does not say"))
        })
    }

    /// Waits until it answers.
    pub(super) async fn wait(&self) -> Result<(), BenchError> {
        let client = Client::new(self.home.clone(), CredentialKind::Agent);
        let begin = Instant::now();
        while client.health().await.is_err() {
            if begin.elapsed() > UP_MAX {
                let log = fs::read(self.home.log()).unwrap_or_default();
                let tail = log.get(log.len().saturating_sub(LOG_BYTES_MAX)..).unwrap_or_default();
                let log = String::from_utf8_lossy(tail).into_owned();
                return Err(BenchError::NotUp { seconds: UP_MAX.as_secs(), log });
            }
            tokio::time::sleep(POLL).await;
        }
        Ok(())
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // Its store is thrown away, so there is nothing to be put in order.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn write_file(path: &Path, bytes: &[u8]) -> Result<(), BenchError> {
    let failed = || BenchError::io(format!("write `{}`", path.display()));
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(failed())?;
    }
    fs::write(path, bytes).map_err(failed())
}
