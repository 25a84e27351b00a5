//! The only door to the clock and to randomness. A run that is judged from a record gets a deterministic one,
//! so that judging it twice gives the same bytes.

use portcullis_core::id::DigestBuilder;
use portcullis_core::time::Timestamp;
use portcullis_ledger::clock;

/// Where a driver takes time, ids and salts from.
pub trait Env: Send {
    /// The time now.
    fn now(&mut self) -> Timestamp;
    /// A new id, unique among all runs.
    fn id(&mut self) -> [u8; 16];
    /// A new salt for a payload commitment, unpredictable.
    fn salt(&mut self) -> [u8; 32];
}

/// The system's clock, and a generator seeded once from the system's random source: SHA-256 over a secret seed
/// and a counter. Drawing is then infallible and needs no system call on the hot path.
pub struct SystemEnv {
    seed: [u8; 32],
    drawn: u64,
}

impl std::fmt::Debug for SystemEnv {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The seed is a secret.
        f.debug_struct("SystemEnv").field("drawn", &self.drawn).finish_non_exhaustive()
    }
}

/// The system gave no random bytes.
#[derive(Debug, thiserror::Error)]
#[error("the system's random source failed: {0}")]
pub struct NoRandomness(getrandom::Error);

impl SystemEnv {
    /// Seeds the generator.
    pub fn new() -> Result<Self, NoRandomness> {
        let mut seed = [0; 32];
        getrandom::fill(&mut seed).map_err(NoRandomness)?;
        Ok(Self { seed, drawn: 0 })
    }
}

impl Env for SystemEnv {
    fn now(&mut self) -> Timestamp {
        clock::now()
    }

    /// Random throughout, so that a few digits are enough to name a run or an approval.
    fn id(&mut self) -> [u8; 16] {
        let mut id = [0; 16];
        for (byte, random) in id.iter_mut().zip(self.salt()) {
            *byte = random;
        }
        id
    }

    fn salt(&mut self) -> [u8; 32] {
        self.drawn = self.drawn.wrapping_add(1);
        let digest = DigestBuilder::new("portcullis/random/v1")
            .part(&self.seed)
            .part(&self.drawn.to_be_bytes())
            .finish();
        *digest.as_bytes()
    }
}

/// A clock that ticks one millisecond a call, ids that count and salts of ones: for judging recorded traces.
/// Never for a ledger: its commitments hide nothing.
#[derive(Debug, Default)]
pub struct CountingEnv {
    ticks: i64,
    ids: u64,
}

impl CountingEnv {
    /// What comes next is not before this time.
    pub(crate) fn not_before(&mut self, at: Timestamp) {
        self.ticks = self.ticks.max(at.as_micros());
    }

    /// Lets time pass.
    pub(crate) fn wait(&mut self, seconds: u32) {
        self.ticks = self.ticks.saturating_add(i64::from(seconds) * 1_000_000);
    }
}

impl Env for CountingEnv {
    fn now(&mut self) -> Timestamp {
        self.ticks += 1_000;
        Timestamp::from_micros(self.ticks)
    }

    fn id(&mut self) -> [u8; 16] {
        self.ids += 1;
        let mut id = [0; 16];
        for (byte, digit) in id.iter_mut().rev().zip(self.ids.to_le_bytes()) {
            *byte = digit;
        }
        id
    }

    fn salt(&mut self) -> [u8; 32] {
        [1; 32]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_drawn_twice() {
        let mut env = SystemEnv::new().unwrap();
        assert_ne!(env.id(), env.id());
        assert_ne!(env.salt(), env.salt());
        assert_ne!(SystemEnv::new().unwrap().salt(), SystemEnv::new().unwrap().salt());
    }
}
