//! The only door to time and randomness.
//!
//! Waiting between attempts, their jitter and budgets of time go through [`Clock`], so that a test or a replay takes
//! no time and gives the same bytes twice. How long a real server may take is the transport's business, which measures
//! it with the runtime's timers.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A future behind a pointer: what asynchronous methods of traits give here.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Time and randomness.
pub trait Clock: fmt::Debug + Send + Sync {
    /// Time since some moment before; it never goes back.
    fn now(&self) -> Duration;
    /// Waits.
    fn sleep(&self, time: Duration) -> BoxFuture<'_, ()>;
    /// A number that nobody else draws. It spreads retries and need not be secret.
    fn random(&self) -> u64;
}

/// The system's clock and random source. Sleeping needs a tokio runtime with time.
#[derive(Debug)]
pub struct SystemClock {
    start: Instant,
}

impl SystemClock {
    /// A clock that starts now.
    #[must_use]
    pub fn new() -> Self {
        Self { start: Instant::now() }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Duration {
        self.start.elapsed()
    }

    fn sleep(&self, time: Duration) -> BoxFuture<'_, ()> {
        Box::pin(tokio::time::sleep(time))
    }

    fn random(&self) -> u64 {
        // Without randomness, callers spread by when they ask.
        getrandom::u64().unwrap_or_else(|_| u64::from(self.start.elapsed().subsec_nanos()))
    }
}

/// A clock that moves when somebody sleeps, and only then. Its numbers are a fixed sequence.
#[derive(Debug, Default)]
pub struct VirtualClock {
    state: Mutex<Virtual>,
}

#[derive(Debug, Default)]
struct Virtual {
    now: Duration,
    drawn: u64,
}

impl VirtualClock {
    /// A clock at zero.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Moves the clock on.
    pub fn advance(&self, time: Duration) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.now = state.now.saturating_add(time);
    }
}

impl Clock for VirtualClock {
    fn now(&self) -> Duration {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).now
    }

    fn sleep(&self, time: Duration) -> BoxFuture<'_, ()> {
        self.advance(time);
        Box::pin(std::future::ready(()))
    }

    /// SplitMix64 from zero.
    fn random(&self) -> u64 {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.drawn = state.drawn.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state.drawn ^ (state.drawn >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}
