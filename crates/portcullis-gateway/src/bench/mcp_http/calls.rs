//! One call at a time: directly to the server, through `/mcp`, and through `mcp --url`.

use std::io;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde::Serialize;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use super::super::BenchError;
use super::super::daemon::Daemon;
use super::super::disk::Probe;
use super::super::distribution::{Distribution, Recorder};
use super::client::{At, Client, call, hello, initialized, list, refused, result, was_called};

/// What a call costs, with the gate and without.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct McpCallTimes {
    /// To the server, without the gate.
    pub direct: Distribution,
    /// Through `/mcp` of the daemon.
    pub endpoint: Distribution,
    /// Through `portcullis mcp --url`.
    pub url: Distribution,
    /// Appending 4 KiB and `fdatasync`, in the store's file system, once in each round of calls.
    pub fdatasync: Distribution,
    /// What `/mcp` adds to a call, p50.
    pub endpoint_adds_ns: u64,
    /// What `mcp --url` adds to a call, p50.
    pub url_adds_ns: u64,
}

/// Calls in turn for a while: one of each kind, and the bare disk.
pub(super) async fn measure(
    daemon: &Daemon,
    program: &Path,
    (upstream, gate): (&At, &At),
    (url, time): (&str, Duration),
) -> Result<McpCallTimes, BenchError> {
    let mut direct = Client::new(upstream).await?;
    let mut endpoint = Client::new(gate).await?;
    let mut piped = Piped::start(daemon, program, url).await?;
    for client in [&mut direct, &mut endpoint] {
        client.open().await?;
        client.tools().await?;
    }
    let new = Recorder::new;
    let (mut bare, mut without, mut of_endpoint, mut of_url) = (new()?, new()?, new()?, new()?);
    let mut probe = Probe::new(&daemon.home.ledger())?;
    let begin = Instant::now();
    let mut number = 0;
    // The first calls warm up.
    const WARM: usize = 20;
    while begin.elapsed() < time || number < WARM + 1 {
        let disk = probe.append()?;
        let times =
            [direct.call("", number).await?, endpoint.call("", number).await?, piped.call(number).await?];
        if number >= WARM {
            bare.add(disk);
            for (recorder, took) in [&mut without, &mut of_endpoint, &mut of_url].into_iter().zip(times) {
                recorder.add(took);
            }
        }
        number += 1;
    }
    piped.end().await?;
    endpoint.end().await?;
    let (direct, endpoint, url) = (without.finish(), of_endpoint.finish(), of_url.finish());
    let adds = |of: &Distribution| of.p50_ns.saturating_sub(direct.p50_ns);
    let (endpoint_adds_ns, url_adds_ns) = (adds(&endpoint), adds(&url));
    Ok(McpCallTimes { direct, endpoint, url, fdatasync: bare.finish(), endpoint_adds_ns, url_adds_ns })
}

/// A client of `portcullis mcp --url` on its standard input and output.
struct Piped {
    child: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
}

impl Piped {
    async fn start(daemon: &Daemon, program: &Path, url: &str) -> Result<Self, BenchError> {
        let failed = || BenchError::io(format!("start `{} mcp --url`", program.display()));
        let mut child = Command::new(program)
            .arg("mcp")
            .arg("--home")
            .arg(daemon.home.path())
            .args(["--session", "bench", "--url", url])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .map_err(failed())?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(failed()(io::Error::other("it has no standard input or output")));
        };
        let mut piped = Self { child, input, output: BufReader::new(output).lines() };
        result(piped.ask(&hello()).await?.as_bytes())?;
        piped.tell(&initialized()).await?;
        result(piped.ask(&list()).await?.as_bytes())?;
        Ok(piped)
    }

    async fn tell(&mut self, line: &str) -> Result<(), BenchError> {
        let line = format!("{line}\n");
        self.input.write_all(line.as_bytes()).await.map_err(BenchError::io("ask `mcp --url`"))
    }

    async fn ask(&mut self, line: &str) -> Result<String, BenchError> {
        self.tell(line).await?;
        let answer =
            self.output.next_line().await.map_err(BenchError::io("read what `mcp --url` answers"))?;
        answer.ok_or_else(|| refused("`mcp --url` has ended"))
    }

    async fn call(&mut self, number: usize) -> Result<Duration, BenchError> {
        let body = call("", number);
        let begin = Instant::now();
        let answer = self.ask(&body).await?;
        let took = begin.elapsed();
        was_called(answer.as_bytes())?;
        Ok(took)
    }

    async fn end(mut self) -> Result<(), BenchError> {
        drop(self.input);
        self.child.wait().await.map(drop).map_err(BenchError::io("wait for `mcp --url`"))
    }
}
