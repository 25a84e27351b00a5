//! One worker process, as the gate sees it.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use portcullis_core::program::{Answer, PROGRAMS_MAX};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};

use crate::engine::{Engine, EngineError};
use crate::protocol::{ANSWER_BYTES_MAX, Ask, Mistake, Said, VERSION, check, frame};
use crate::set::{Kind, Source};

/// How long a worker may take to start.
const START: Duration = Duration::from_secs(5);
/// How long an answer is looked for before the thread sleeps. Programs take microseconds; to be woken takes tens of them.
const LOOKED_FOR: Duration = Duration::from_micros(60);
/// Programs of which the engine says that they begin, two bytes each.
const BEGUN_BYTES: usize = 1 << 10;

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Lost {
    /// It was late.
    Late(Duration),
    /// It ended, or said something that is not of the protocol.
    Ended(String),
}

impl std::fmt::Display for Lost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Late(wait) => write!(f, "it took longer than {} ms", wait.as_millis()),
            Self::Ended(how) => f.write_str(how),
        }
    }
}

/// A worker that is started. Dropped, it is killed.
#[derive(Debug)]
pub(crate) struct Worker {
    child: Child,
    to: File,
    from: File,
    /// Says which program runs.
    begun: File,
    /// Its address space when it was started, in bytes.
    began_with: Option<u64>,
    /// The sets that it has loaded.
    pub(crate) sets: Vec<String>,
}

impl Worker {
    /// Starts one, and waits until it has given up what it has to.
    pub(crate) fn start(engine: &Engine) -> Result<Self, EngineError> {
        let mut child = engine
            .worker()
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| engine.wrong(format!("it cannot be started: {error}")))?;
        let ends = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(to), Some(from), Some(begun)) = ends else {
            let _gone = (child.kill(), child.wait());
            return Err(engine.wrong("its pipes are missing".to_owned()));
        };
        for end in [to.as_fd(), from.as_fd()] {
            let never_waits = fcntl_getfl(end).and_then(|flags| fcntl_setfl(end, flags | OFlags::NONBLOCK));
            never_waits.map_err(|error| engine.wrong(format!("its pipes: {error}")))?;
        }
        let [to, from, begun] =
            [OwnedFd::from(to), OwnedFd::from(from), OwnedFd::from(begun)].map(File::from);
        let mut worker = Self { child, to, from, begun, began_with: None, sets: Vec::new() };
        match worker.answer(Instant::now() + START, START) {
            Ok(Said::Ready(ready)) if ready.protocol == VERSION => {
                worker.began_with = address_space(&worker.child);
                Ok(worker)
            }
            Ok(Said::Ready(ready)) => Err(engine.wrong(format!(
                "it speaks version {} of the protocol, not {VERSION}; install both again",
                ready.protocol
            ))),
            Ok(_) => Err(engine.wrong("it does not begin with `ready`".to_owned())),
            Err(lost) => {
                let said = worker.complaint();
                Err(engine.wrong(if said.is_empty() { lost.to_string() } else { said }))
            }
        }
    }

    /// Loads a program or a module, and gives its mistakes.
    pub(crate) fn load(&mut self, set: &str, source: &Source, wait: Duration) -> Result<Vec<Mistake>, Lost> {
        let Source { name, file, text, kind } = source;
        let ask = match kind {
            Kind::Module => Ask::Module { set, file, source: text },
            Kind::Program => Ask::Load { set, program: name, file, source: text },
        };
        let message = frame(&ask).map_err(|error| Lost::Ended(error.to_string()))?;
        match self.ask(&message, wait)? {
            Said::Loaded(mistakes) => Ok(mistakes),
            _ => Err(out_of_turn()),
        }
    }

    /// Has the programs of a set run. When their answer is due.
    pub(crate) fn begin(&mut self, set: &str, input: &str, wait: Duration) -> Result<Instant, Lost> {
        let until = Instant::now() + wait;
        self.send(&check(set, input), until, wait)?;
        Ok(until)
    }

    /// Whether the answer begins within this time.
    pub(crate) fn is_answering(&self, within: Duration) -> bool {
        look_for(&self.from, within)
            || wait_for(&self.from, PollFlags::IN, Instant::now() + within, within).is_ok()
    }

    /// What the programs say.
    pub(crate) fn finish(&mut self, until: Instant, wait: Duration) -> Result<Answer, Lost> {
        match self.answer(until, wait)? {
            Said::Checked(answer) => Ok(answer),
            _ => Err(out_of_turn()),
        }
    }

    /// Forgets a set.
    pub(crate) fn forget(&mut self, set: &str, wait: Duration) -> Result<(), Lost> {
        self.sets.retain(|known| known != set);
        let message = frame(&Ask::Forget { set }).map_err(|error| Lost::Ended(error.to_string()))?;
        self.ask(&message, wait).map(|_| ())
    }

    fn ask(&mut self, message: &[u8], wait: Duration) -> Result<Said, Lost> {
        let until = Instant::now() + wait;
        self.send(message, until, wait)?;
        self.answer(until, wait)
    }

    /// Writes a message, as much at a time as the pipe takes.
    fn send(&mut self, message: &[u8], until: Instant, wait: Duration) -> Result<(), Lost> {
        let mut rest = message;
        while !rest.is_empty() {
            match self.to.write(rest) {
                Ok(written) => rest = rest.get(written..).unwrap_or_default(),
                Err(error) if is_for_later(&error) => wait_for(&self.to, PollFlags::OUT, until, wait)?,
                Err(_) => return Err(self.ended()),
            }
        }
        Ok(())
    }

    fn answer(&mut self, until: Instant, wait: Duration) -> Result<Said, Lost> {
        let mut head = [0; 4];
        self.read(&mut head, until, wait)?;
        let length = u32::from_le_bytes(head) as usize;
        if length > ANSWER_BYTES_MAX {
            return Err(Lost::Ended(format!("it answers with more than {ANSWER_BYTES_MAX} bytes")));
        }
        let mut body = vec![0; length];
        self.read(&mut body, until, wait)?;
        serde_json::from_slice(&body)
            .map_err(|error| Lost::Ended(format!("it answers with something else: {error}")))
    }

    fn read(&mut self, into: &mut [u8], until: Instant, wait: Duration) -> Result<(), Lost> {
        let mut rest = into;
        while !rest.is_empty() {
            match self.from.read(rest) {
                Ok(read @ 1..) => rest = rest.get_mut(read..).unwrap_or_default(),
                Err(error) if is_for_later(&error) => {
                    if !look_for(&self.from, LOOKED_FOR) {
                        wait_for(&self.from, PollFlags::IN, until, wait)?;
                    }
                }
                Ok(0) | Err(_) => return Err(self.ended()),
            }
        }
        Ok(())
    }

    /// How it ended. It closed its end, so it has or is about to.
    fn ended(&mut self) -> Lost {
        let _gone = self.child.kill();
        Lost::Ended(match self.child.wait() {
            Ok(_) => "it went beyond its memory, its stack or what it may ask of the system".to_owned(),
            Err(error) => error.to_string(),
        })
    }

    /// The number of the program that ran last. Of the first nothing is said.
    pub(crate) fn running(&mut self) -> usize {
        let mut last = 0;
        let now = Instant::now();
        let mut bytes = [0; BEGUN_BYTES];
        while wait_for(&self.begun, PollFlags::IN, now, Duration::ZERO).is_ok() {
            let Ok(read @ 1..) = self.begun.read(&mut bytes) else { break };
            let numbers = bytes.get(..read).unwrap_or_default();
            // What a process says when it is out of memory comes here, too; letters are large numbers.
            let mut numbers =
                numbers.as_chunks::<2>().0.iter().map(|pair| usize::from(u16::from_le_bytes(*pair)));
            last = numbers.rfind(|number| *number < PROGRAMS_MAX).unwrap_or(last);
        }
        last
    }

    /// What it said before it ended.
    fn complaint(&mut self) -> String {
        const SAID_MAX: u64 = 512;
        let mut said = Vec::new();
        let _gone = self.child.kill();
        let _read = (&mut self.begun).take(SAID_MAX).read_to_end(&mut said);
        String::from_utf8_lossy(&said).trim().replace('\n', "; ")
    }

    /// By how much its address space has grown, in bytes; nothing where that cannot be read.
    pub(crate) fn grown_bytes(&self) -> Option<u64> {
        Some(address_space(&self.child)?.saturating_sub(self.began_with?))
    }

    /// Its process.
    pub(crate) fn process(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // It may have ended already.
        let _gone = self.child.kill();
        let _waited = self.child.wait();
    }
}

/// The size of a process, in bytes.
fn address_space(of: &Child) -> Option<u64> {
    let read = std::fs::read_to_string(format!("/proc/{}/statm", of.id())).ok()?;
    let pages: u64 = read.split(' ').next()?.parse().ok()?;
    Some(pages.saturating_mul(u64::try_from(rustix::param::page_size()).ok()?))
}

fn out_of_turn() -> Lost {
    Lost::Ended("it answers another question".to_owned())
}

fn is_for_later(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

/// Whether something can be read within this time, without sleeping. Others who want the processor get it.
fn look_for(file: &File, within: Duration) -> bool {
    let until = Instant::now() + within.min(LOOKED_FOR);
    loop {
        if matches!(poll(&mut [PollFd::new(file, PollFlags::IN)], Some(&Timespec::default())), Ok(1..)) {
            return true;
        }
        if Instant::now() >= until {
            return false;
        }
        std::thread::yield_now();
    }
}

/// Waits until something can be read or written.
fn wait_for(file: &File, what: PollFlags, until: Instant, wait: Duration) -> Result<(), Lost> {
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let time = Timespec {
            tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: left.subsec_nanos().into(),
        };
        match poll(&mut [PollFd::new(file, what)], Some(&time)) {
            Ok(0) => return Err(Lost::Late(wait)),
            Ok(_) => return Ok(()),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(Lost::Ended(io::Error::from(error).to_string())),
        }
    }
}
