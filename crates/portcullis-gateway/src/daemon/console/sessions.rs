//! Who is signed in: in memory alone, so that a daemon that starts again has forgotten everybody.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use portcullis_console::Role;
use portcullis_core::principal::Principal;
use portcullis_session::credentials::sha256_hex;

/// How long a session lasts without a request.
const IDLE_MAX: Duration = Duration::from_secs(12 * 3_600);
/// How long a session lasts.
const LASTS: Duration = Duration::from_secs(24 * 3_600);
/// Sessions at once; the one that was unused for longest makes room.
const SESSIONS_MAX: usize = 256;
/// Requests that a session may make at once, and how many more each second.
const BURST: f64 = 240.0;
const PER_SECOND: f64 = 24.0;
/// Names of which failed attempts are remembered.
const NAMES_MAX: usize = 1_024;
/// Failed attempts of a name before a pause.
const ATTEMPTS: usize = 5;
/// Failed attempts of all names together before a pause.
const ATTEMPTS_OF_ALL: usize = 60;
/// How long attempts count, and a pause lasts.
const PAUSE: Duration = Duration::from_secs(60);

/// How somebody came in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Came {
    /// With a link, for a token of that principal.
    ByLink {
        /// With this machine's token rather than one that the bundle maps.
        of_this_machine: bool,
    },
    /// With a password.
    ByPassword,
}

/// Somebody who is signed in.
#[derive(Debug, Clone)]
pub(super) struct Session {
    pub(super) principal: Principal,
    pub(super) role: Role,
    pub(super) came: Came,
    pub(super) csrf: String,
}

#[derive(Debug)]
struct Kept {
    session: Session,
    began: Instant,
    used: Instant,
    room: f64,
}

/// Whether a request of a session may go ahead.
#[derive(Debug)]
pub(super) enum Known {
    /// It may.
    Yes(Session),
    /// There is no such session.
    No,
    /// It makes too many.
    TooMany,
}

/// All sessions, by the digest of what their cookies hold.
#[derive(Debug, Default)]
pub(super) struct Sessions {
    kept: Mutex<BTreeMap<String, Kept>>,
    failed: Mutex<Failed>,
}

#[derive(Debug, Default)]
struct Failed {
    by_name: BTreeMap<String, VecDeque<Instant>>,
    all: VecDeque<Instant>,
}

/// Random bytes as hex digits.
pub(super) fn random_hex(bytes: usize) -> std::io::Result<String> {
    let mut random = [0_u8; 32];
    getrandom::fill(&mut random).map_err(|error| std::io::Error::other(error.to_string()))?;
    Ok(random.iter().take(bytes).map(|byte| format!("{byte:02x}")).collect())
}

impl Sessions {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Kept>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a session; gives what its cookie holds.
    pub(super) fn begin(&self, principal: Principal, role: Role, came: Came) -> std::io::Result<String> {
        let (secret, csrf) = (random_hex(32)?, random_hex(32)?);
        let now = Instant::now();
        let session = Session { principal, role, came, csrf };
        let mut kept = self.lock();
        kept.retain(|_, kept| kept.lives(now));
        while kept.len() >= SESSIONS_MAX {
            let oldest = kept.iter().min_by_key(|(_, kept)| kept.used).map(|(key, _)| key.clone());
            let Some(oldest) = oldest else { break };
            kept.remove(&oldest);
        }
        kept.insert(sha256_hex(&secret), Kept { session, began: now, used: now, room: BURST });
        Ok(secret)
    }

    /// The session of a cookie, and one request of it.
    pub(super) fn request(&self, secret: &str) -> Known {
        let now = Instant::now();
        let key = sha256_hex(secret);
        let mut sessions = self.lock();
        let Some(kept) = sessions.get_mut(&key) else { return Known::No };
        if !kept.lives(now) {
            sessions.remove(&key);
            return Known::No;
        }
        let grown = now.duration_since(kept.used).as_secs_f64() * PER_SECOND;
        kept.room = (kept.room + grown).min(BURST);
        kept.used = now;
        if kept.room < 1.0 {
            return Known::TooMany;
        }
        kept.room -= 1.0;
        Known::Yes(kept.session.clone())
    }

    /// Ends a session.
    pub(super) fn end(&self, secret: &str) {
        self.lock().remove(&sha256_hex(secret));
    }

    /// Ends all sessions of somebody who signed in with a password.
    pub(super) fn end_all_of(&self, name: &str) {
        self.lock()
            .retain(|_, kept| kept.session.came != Came::ByPassword || kept.session.principal.id != name);
    }

    /// Whether somebody is signed in with a password.
    pub(super) fn has(&self, name: &str) -> bool {
        let now = Instant::now();
        self.lock().values().any(|kept| {
            kept.lives(now) && kept.session.came == Came::ByPassword && kept.session.principal.id == name
        })
    }

    /// Whether another attempt to sign in is heard; otherwise how long the pause still lasts.
    pub(super) fn may_try(&self, name: &str) -> Result<(), Duration> {
        let now = Instant::now();
        let mut failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        forget(&mut failed.all, now);
        if let Some(left) = pause(&failed.all, ATTEMPTS_OF_ALL, now) {
            return Err(left);
        }
        let Some(of_name) = failed.by_name.get_mut(name) else { return Ok(()) };
        forget(of_name, now);
        pause(of_name, ATTEMPTS, now).map_or(Ok(()), Err)
    }

    /// Notes a failed attempt.
    pub(super) fn failed(&self, name: &str) {
        let now = Instant::now();
        let mut failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        if failed.by_name.len() >= NAMES_MAX {
            failed
                .by_name
                .retain(|_, times| times.back().is_some_and(|last| now.duration_since(*last) < PAUSE));
        }
        failed.all.push_back(now);
        // Where even so there are too many names, the attempts of all together still count.
        if failed.by_name.len() < NAMES_MAX || failed.by_name.contains_key(name) {
            failed.by_name.entry(name.to_owned()).or_default().push_back(now);
        }
    }
}

impl Kept {
    fn lives(&self, now: Instant) -> bool {
        now.duration_since(self.used) < IDLE_MAX && now.duration_since(self.began) < LASTS
    }
}

fn forget(times: &mut VecDeque<Instant>, now: Instant) {
    while times.front().is_some_and(|first| now.duration_since(*first) >= PAUSE) {
        times.pop_front();
    }
}

fn pause(times: &VecDeque<Instant>, most: usize, now: Instant) -> Option<Duration> {
    let first = times.len().checked_sub(most).and_then(|place| times.get(place))?;
    Some(PAUSE.saturating_sub(now.duration_since(*first)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begin(sessions: &Sessions, name: &str) -> String {
        sessions.begin(Principal::named(name), Role::Viewer, Came::ByPassword).unwrap()
    }

    #[test]
    fn a_session_is_known_by_its_secret_until_it_ends() {
        let sessions = Sessions::default();
        let ada = begin(&sessions, "ada");
        assert!(matches!(sessions.request(&ada), Known::Yes(session) if session.principal.id == "ada"));
        assert!(matches!(sessions.request("guess"), Known::No));
        assert!(!format!("{sessions:?}").contains(&ada), "the secret is not kept");
        sessions.end_all_of("bob");
        assert!(sessions.has("ada"));
        sessions.end_all_of("ada");
        assert!(matches!(sessions.request(&ada), Known::No));
    }

    #[test]
    fn a_session_that_asks_too_much_waits() {
        let sessions = Sessions::default();
        let ada = begin(&sessions, "ada");
        let answers: Vec<bool> = (0..600).map(|_| matches!(sessions.request(&ada), Known::TooMany)).collect();
        assert!(!answers[200] && answers[599]);
        let bob = begin(&sessions, "bob");
        assert!(matches!(sessions.request(&bob), Known::Yes(_)), "others go on");
    }

    #[test]
    fn guesses_are_slowed_by_name_and_altogether() {
        let sessions = Sessions::default();
        for _ in 0..ATTEMPTS {
            assert!(sessions.may_try("ada").is_ok());
            sessions.failed("ada");
        }
        assert!(sessions.may_try("ada").is_err() && sessions.may_try("bob").is_ok());
        for number in 0..ATTEMPTS_OF_ALL {
            sessions.failed(&format!("name-{number}"));
        }
        assert!(sessions.may_try("carl").is_err());
    }

    #[test]
    fn sessions_are_bounded_and_the_oldest_makes_room() {
        let sessions = Sessions::default();
        let first = begin(&sessions, "first");
        let last = (0..SESSIONS_MAX).map(|_| begin(&sessions, "ada")).last().unwrap();
        assert!(matches!(sessions.request(&first), Known::No));
        assert!(matches!(sessions.request(&last), Known::Yes(_)));
    }
}
