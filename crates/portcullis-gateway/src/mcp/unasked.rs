//! How much a server may say that nobody asked for: all of it is recorded, and a full disk denies everything.

use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// Bytes that may be said at once, and that are added for each second.
const AT_ONCE_BYTES: u64 = 16 << 20;
const PER_SECOND_BYTES: u64 = 4 << 10;

/// What is left of it for one server of one client.
#[derive(Debug)]
pub(super) struct Unasked(Mutex<Left>);

#[derive(Debug)]
struct Left {
    bytes: u64,
    at: Instant,
    /// The last message had no room.
    is_over: bool,
}

/// Whether there is room for a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Room {
    Enough,
    /// There is none, for the first time since there was.
    NoMore,
    /// There is still none.
    None,
}

impl Default for Unasked {
    fn default() -> Self {
        Self(Mutex::new(Left { bytes: AT_ONCE_BYTES, at: Instant::now(), is_over: false }))
    }
}

impl Unasked {
    /// Takes room for a message of so many bytes, if there is enough.
    pub(super) fn take(&self, bytes: usize) -> Room {
        self.take_at(bytes, Instant::now())
    }

    fn take_at(&self, bytes: usize, now: Instant) -> Room {
        let mut left = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let since = now.saturating_duration_since(left.at).as_secs();
        if since > 0 {
            left.bytes = AT_ONCE_BYTES.min(left.bytes.saturating_add(since.saturating_mul(PER_SECOND_BYTES)));
            left.at = now;
        }
        let bytes = bytes as u64;
        let has_room = bytes <= left.bytes;
        let was_over = std::mem::replace(&mut left.is_over, !has_room);
        match (has_room, was_over) {
            (true, _) => {
                left.bytes -= bytes;
                Room::Enough
            }
            (false, false) => Room::NoMore,
            (false, true) => Room::None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn who_says_too_much_has_room_again_with_time() {
        let (unasked, now) = (Unasked::default(), Instant::now());
        for _ in 0..16 {
            assert_eq!(unasked.take_at(1 << 20, now), Room::Enough);
        }
        assert_eq!((unasked.take_at(1, now), unasked.take_at(1, now)), (Room::NoMore, Room::None));
        let later = now + Duration::from_secs(3);
        assert_eq!(
            (unasked.take_at(8 << 10, later), unasked.take_at(1 << 20, later)),
            (Room::Enough, Room::NoMore)
        );
    }
}
