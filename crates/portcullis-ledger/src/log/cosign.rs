//! Asking witnesses to cosign the tree (C2SP `tlog-witness`), and what their answers mean.
//!
//! Whom to ask is in `log/witnesses.policy` beside the store, a plain C2SP policy whose witnesses have addresses. It
//! is read again when it changes. A witness that does not answer costs its cosignature and nothing else: it is told of
//! once and asked again after a while. One that has seen *more* of this log than the log remembers stops it: the log
//! was restored from an old copy, and whatever it signed next would be a second history. After a start it signs nothing
//! before enough of them were heard; `confirm` says how many are enough.
//!
//! There is no network in here. A round makes the questions, hands them all to `ask`, which may put them at once, and
//! judges the answers. No cosignature is stored or published before the key that the policy names has verified it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use portcullis_proof::log::note::signature_lines;
use portcullis_proof::log::policy::POLICY_BYTES_MAX;
use portcullis_proof::log::witness::{add_checkpoint, conflict_size};
use portcullis_proof::log::{Note, Policy, PolicyError, TileReader, TreeHead, VerifierKey};
use rusqlite::params;

use super::database::SignedTree;
use super::error::LogError;
use super::folder::LogPlaces;
use super::{CHECKPOINT_FILE, Log};
use crate::sqlite::schema::signed;

/// How often a tree that does not grow is cosigned again, so that readers see that the log is alive.
pub const COSIGN_AGAIN_EVERY: Duration = Duration::from_secs(600);
/// How long a witness that gave no cosignature is left alone at first; twice as long each time.
const BACK_OFF_FIRST: Duration = Duration::from_secs(10);
/// How long it is left alone at most.
const BACK_OFF_MAX: Duration = Duration::from_secs(600);
/// How long it is left alone at most while the log waits for it.
pub const CONFIRM_EVERY: Duration = Duration::from_secs(5);
/// How long it is left alone at first then.
const CONFIRM_FIRST: Duration = Duration::from_secs(1);
/// How many witnesses are named to say why the log waits; of more there is the number.
const WITNESSES_NAMED_MAX: usize = 8;
/// How much of what a witness says is repeated, in characters.
const SAID_CHARS_MAX: usize = 200;

/// A question to one witness: `POST <url>/add-checkpoint`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ask {
    /// Its name in the policy.
    pub witness: String,
    /// The prefix of its address.
    pub url: String,
    /// The body.
    pub body: String,
}

/// The outcome of a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WitnessAnswer {
    /// A response.
    Answered {
        /// Its status.
        status: u16,
        /// Its body.
        body: Vec<u8>,
    },
    /// None, and why.
    Unreachable(String),
}

/// Something that changed about a witness, for the operator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WitnessNews {
    /// Its name in the policy.
    pub witness: String,
    /// Why it does not cosign, or `None` if it does again, or for the first time.
    pub failure: Option<String>,
}

/// What is known of one witness.
#[derive(Debug)]
struct Watched {
    name: String,
    url: String,
    key: VerifierKey,
    /// The last known size of the tree that it saw.
    seen: u64,
    /// That size, where it is past ours.
    ahead: Option<u64>,
    /// Whether it said last that it saw another history.
    contradicts: bool,
    /// Its signature line, the tree that it is of, and since when.
    line: Option<(TreeHead, String, Instant)>,
    /// When to ask again, and how long the wait was.
    wait: Option<(Instant, Duration)>,
    /// What was last reported about it, or `None` before the first report.
    told: Option<Option<String>>,
}

/// The result of an answer.
enum Taken {
    /// Its signature holds.
    Cosigned,
    /// It is to be asked again, from the size that it stated.
    Again,
    /// There is no signature, and why.
    Failed(String),
}

/// Gets cosignatures for one log.
#[derive(Debug, Default)]
pub struct Cosigner {
    /// The policy as it was read, or `None` if there is no file.
    text: Option<Vec<u8>>,
    policy: Option<Policy>,
    witnesses: Vec<Watched>,
}

impl LogPlaces {
    /// Whom to ask for cosignatures: a C2SP policy. No file, no witnesses.
    #[must_use]
    pub fn witnesses(&self) -> PathBuf {
        self.public.join("witnesses.policy")
    }
}

/// The policy of the log's witnesses, or `None` if there is none.
///
/// # Errors
/// When the file cannot be read or is not a plain policy.
pub fn witness_policy(places: &LogPlaces) -> Result<Option<Policy>, LogError> {
    let path = places.witnesses();
    read(&path)?.map(|text| Policy::parse(&text).map_err(|error| malformed(&path, error))).transpose()
}

fn malformed(path: &Path, error: impl std::fmt::Display) -> LogError {
    LogError::WitnessPolicy { path: path.to_owned(), message: error.to_string() }
}

fn read(path: &Path) -> Result<Option<Vec<u8>>, LogError> {
    match fs::metadata(path) {
        Ok(meta) if meta.len() > POLICY_BYTES_MAX as u64 => {
            return Err(malformed(path, format!("more than {POLICY_BYTES_MAX} bytes")));
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        _ => {}
    }
    fs::read(path).map(Some).map_err(|error| LogError::io(path, "read", &error))
}

impl Cosigner {
    /// A cosigner that has not asked any witness yet.
    #[must_use]
    pub fn new() -> Cosigner {
        Cosigner::default()
    }

    /// Asks every witness that is due about the tree that the log signed last, and stores and publishes what they sign.
    /// Where the log waits for them and enough have confirmed, it waits no longer.
    ///
    /// `ask` answers each question, in order; what it leaves out counts as no answer.
    ///
    /// # Errors
    /// [`LogError::RolledBack`] when a witness saw more than the log remembers; a policy that cannot be read; a failure
    /// to store.
    pub fn round(
        &mut self,
        log: &mut Log,
        now: Instant,
        mut ask: impl FnMut(Vec<Ask>) -> Vec<WitnessAnswer>,
    ) -> Result<Vec<WitnessNews>, LogError> {
        if let Err(error) = self.reload(log) {
            log.wait_on(error.to_string(), self.contradicted())?;
            return Err(error);
        }
        if self.witnesses.is_empty() {
            log.confirmed()?;
            return Ok(Vec::new());
        }
        self.begin(log);
        let tree = log.database.tree()?;
        let before: Vec<_> = self.witnesses.iter().map(|witness| witness.line.clone()).collect();
        let back_off = if log.waits().is_some() {
            (CONFIRM_FIRST, CONFIRM_EVERY)
        } else {
            (BACK_OFF_FIRST, BACK_OFF_MAX)
        };
        let mut due: Vec<&mut Watched> =
            self.witnesses.iter_mut().filter(|witness| witness.is_due(tree.head, now)).collect();
        let mut news = Vec::new();
        // Once with the size that is believed, and once more with the size that the witness then states.
        for last in [false, true] {
            let mut asks = Vec::with_capacity(due.len());
            for witness in &due {
                asks.push(witness.question(log, &tree)?);
            }
            if asks.is_empty() {
                break;
            }
            let mut answers = ask(asks).into_iter();
            due = due
                .into_iter()
                .filter_map(|witness| {
                    let none = || WitnessAnswer::Unreachable("it was not asked".to_owned());
                    let answer = answers.next().unwrap_or_else(none);
                    match witness.take(answer, &tree, now, last) {
                        Taken::Again => return Some(witness),
                        Taken::Cosigned => witness.tell(None, &mut news),
                        Taken::Failed(failure) => {
                            witness.leave_alone(now, back_off);
                            witness.tell(Some(failure), &mut news);
                        }
                    }
                    None
                })
                .collect();
        }
        if self.witnesses.iter().zip(&before).any(|(witness, before)| witness.line != *before) {
            self.store(log, &tree)?;
        }
        self.judge(log, tree.head)?;
        Ok(news)
    }

    /// A log that has begun to wait is asked for again: what was cosigned before may be of a time before it was
    /// restored.
    fn begin(&mut self, log: &mut Log) {
        if let Some(waiting) = log.waiting.as_mut().filter(|waiting| !waiting.begun) {
            waiting.begun = true;
            for witness in &mut self.witnesses {
                (witness.line, witness.wait) = (None, None);
            }
        }
    }

    /// What the witnesses have said so far means for the log.
    fn judge(&self, log: &mut Log, head: TreeHead) -> Result<(), LogError> {
        if log.waits().is_some() {
            match self.unconfirmed(head) {
                Some(why) => log.wait_on(why, self.contradicted())?,
                None => log.confirmed()?,
            }
        }
        match self.witnesses.iter().find_map(|witness| Some((witness.ahead?, &witness.name))) {
            Some((seen, name)) => {
                let seen_by = format!("the witness `{name}`");
                Err(LogError::RolledBack { known: head.size, seen, seen_by })
            }
            None => Ok(()),
        }
    }

    /// Whether a witness saw another history.
    fn contradicted(&self) -> bool {
        self.witnesses.iter().any(|witness| witness.contradicts)
    }

    /// What is lacking until the log is known to be no old copy, or `None` if it is.
    fn unconfirmed(&self, head: TreeHead) -> Option<String> {
        let confirms = |witness: &Watched| witness.line.as_ref().is_some_and(|(of, ..)| *of == head);
        let yes: Vec<bool> = self.witnesses.iter().map(confirms).collect();
        let no: Vec<bool> = yes.iter().map(|yes| !yes).collect();
        let contradicted =
            self.contradicted() || self.witnesses.iter().any(|witness| witness.ahead.is_some());
        let enough =
            self.policy.as_ref().is_some_and(|policy| policy.is_quorum(&yes) || !policy.is_quorum(&no));
        if enough && yes.contains(&true) && !contradicted {
            return None;
        }
        let silent: Vec<&Watched> =
            self.witnesses.iter().zip(&yes).filter(|(_, yes)| !**yes).map(|(witness, _)| witness).collect();
        let said = |witness: &&Watched| {
            let failure = witness.told.as_ref().and_then(Option::as_deref);
            format!("witness `{}`: {}", witness.name, failure.unwrap_or("it was not asked yet"))
        };
        let mut why: Vec<String> = silent.iter().take(WITNESSES_NAMED_MAX).map(said).collect();
        if silent.len() > WITNESSES_NAMED_MAX {
            why.push(format!("and {} more witnesses", silent.len() - WITNESSES_NAMED_MAX));
        }
        Some(why.join("; "))
    }

    /// Reads the policy where it changed.
    fn reload(&mut self, log: &Log) -> Result<(), LogError> {
        let path = log.places.witnesses();
        let text = read(&path)?;
        if text == self.text {
            return Ok(());
        }
        let (mut policy, mut witnesses) = (None, Vec::new());
        if let Some(text) = &text {
            let read = policy_of(text, log.verifier()).map_err(|message| malformed(&path, message))?;
            for witness in read.witnesses() {
                let name = String::from_utf8_lossy(&witness.name).into_owned();
                let url = witness.url.as_ref().and_then(|url| String::from_utf8(url.clone()).ok());
                let message = || format!("the witness `{name}` has no address; write one after its key");
                let url = url.ok_or_else(|| malformed(&path, message()))?;
                witnesses.push(Watched::new(name, url, witness.key.clone()));
            }
            policy = Some(read);
        }
        *self = Cosigner { text, policy, witnesses };
        Ok(())
    }

    /// Stores what was signed of the tree of now, and publishes it.
    fn store(&self, log: &mut Log, tree: &SignedTree) -> Result<(), LogError> {
        let mut note = tree.note.clone();
        for witness in &self.witnesses {
            if let Some((_, line, _)) = witness.line.as_ref().filter(|(head, ..)| *head == tree.head) {
                note.push_str(line);
            }
        }
        // Readers take what is stored for what their policy asks for, so only a quorum is stored where there is one.
        let parsed = Note::parse(note.as_bytes()).map_err(LogError::tiles)?;
        let enough = match self.policy.as_ref().map(|policy| policy.check(&parsed)) {
            Some(Ok(_)) => true,
            Some(Err(PolicyError::Quorum { .. })) | None => false,
            Some(Err(error)) => return Err(LogError::tiles(error)),
        };
        log.database.write(|transaction| {
            let moved = transaction.execute(
                "UPDATE tree SET witnessed = iif(?4, ?3, witnessed) WHERE size = ?1 AND root = ?2",
                params![signed(tree.head.size), tree.head.root.0, note, enough],
            )?;
            // The published tree is the newest one or none.
            if moved == 1 {
                transaction.execute(
                    "INSERT OR REPLACE INTO staged (path, bytes) VALUES (?1, ?2)",
                    params![CHECKPOINT_FILE, note.as_bytes()],
                )?;
            }
            Ok(())
        })?;
        log.publish()
    }
}

/// The policy, with the log's own key among its logs.
fn policy_of(text: &[u8], own: &VerifierKey) -> Result<Policy, String> {
    let policy = Policy::parse(text).map_err(|error| error.to_string())?;
    if policy.logs().iter().any(|log| log.key == *own) {
        return Ok(policy);
    }
    let text = [format!("log {own}\n").as_bytes(), text].concat();
    Policy::parse(&text).map_err(|error| error.message)
}

impl Watched {
    fn new(name: String, url: String, key: VerifierKey) -> Watched {
        Watched {
            name,
            url,
            key,
            seen: 0,
            ahead: None,
            contradicts: false,
            line: None,
            wait: None,
            told: None,
        }
    }

    fn is_due(&self, head: TreeHead, now: Instant) -> bool {
        if self.ahead.is_some() {
            return true;
        }
        if self.wait.is_some_and(|(until, _)| now < until) {
            return false;
        }
        !self
            .line
            .as_ref()
            .is_some_and(|(of, _, at)| *of == head && now.saturating_duration_since(*at) < COSIGN_AGAIN_EVERY)
    }

    fn question(&self, log: &Log, tree: &SignedTree) -> Result<Ask, LogError> {
        let old = self.seen.min(tree.head.size);
        let tiles = log.places.tiles();
        let path = TileReader::new(&tiles, tree.head).consistency(old).map_err(LogError::tiles)?;
        Ok(Ask {
            witness: self.name.clone(),
            url: self.url.clone(),
            body: add_checkpoint(old, &path, &tree.note),
        })
    }

    /// Takes an answer.
    fn take(&mut self, answer: WitnessAnswer, tree: &SignedTree, now: Instant, last: bool) -> Taken {
        let asked = self.seen.min(tree.head.size);
        let failure = match answer {
            WitnessAnswer::Answered { status: 200, body } => match self.signature(&body, &tree.note) {
                Ok(line) => {
                    (self.seen, self.ahead, self.wait) = (tree.head.size, None, None);
                    self.contradicts = false;
                    self.line = Some((tree.head, line, now));
                    return Taken::Cosigned;
                }
                Err(message) => format!("its signature was not taken: {message}"),
            },
            WitnessAnswer::Answered { status: 409, body } => match conflict_size(&body) {
                Ok(size) if size > tree.head.size => {
                    self.ahead = Some(size);
                    format!("it has seen {size} leaves, but this log has only {}", tree.head.size)
                }
                Ok(size) => {
                    self.ahead = None;
                    self.seen = size;
                    if !last && size != asked {
                        return Taken::Again;
                    }
                    format!("it says that it last saw {size} leaves, but accepts no proof from that size")
                }
                Err(error) => format!("it answers 409 without a size: {error}"),
            },
            WitnessAnswer::Answered { status: 422, body } => {
                self.contradicts = true;
                format!(
                    "it saw a different history of this log (422): {}; either two trees were signed, or its state is wrong",
                    said(&body)
                )
            }
            WitnessAnswer::Answered { status, body } => format!("it answers {status}: {}", said(&body)),
            WitnessAnswer::Unreachable(why) => format!("no answer: {why}"),
        };
        Taken::Failed(failure)
    }

    /// Asks it again after a while; after twice as long each time, from the first to the longest.
    fn leave_alone(&mut self, now: Instant, (first, longest): (Duration, Duration)) {
        let waited = self.wait.map_or(first, |(_, waited)| (waited * 2).min(longest));
        self.wait = Some((now + waited, waited));
    }

    /// The signature line of this witness in its answer, verified.
    fn signature(&self, body: &[u8], note: &str) -> Result<String, String> {
        let lines = signature_lines(body).map_err(|error| error.to_string())?;
        let own = lines.iter().find(|line| line.name == self.key.name() && line.key_id == self.key.id());
        let line = own.ok_or_else(|| format!("it was not signed by the key `{}`", self.key))?.line();
        let note = format!("{note}{line}");
        let note = Note::parse(note.as_bytes()).map_err(|error| error.to_string())?;
        note.verify([&self.key]).map_err(|error| error.to_string())?;
        Ok(line)
    }

    /// Reports what is new.
    fn tell(&mut self, failure: Option<String>, news: &mut Vec<WitnessNews>) {
        if self.told.as_ref() != Some(&failure) {
            news.push(WitnessNews { witness: self.name.clone(), failure: failure.clone() });
            self.told = Some(failure);
        }
    }
}

/// What a witness said, fit for one line.
fn said(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    text.trim().chars().take(SAID_CHARS_MAX).collect::<String>().escape_debug().to_string()
}
