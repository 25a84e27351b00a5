//! Times for people.

use portcullis_core::time::Timestamp;

/// The time of day, `14:37:20`, in UTC as everywhere in the record.
#[must_use]
pub fn clock(at: Timestamp) -> String {
    part(at, 11, 19)
}

/// The time of day to the millisecond.
#[must_use]
pub fn clock_ms(at: Timestamp) -> String {
    part(at, 11, 23)
}

/// Day and minute: `11-28 14:37`, with the year where it is another one than `now`'s.
#[must_use]
pub fn day_and_minute(at: Timestamp, now: Timestamp) -> String {
    let (day, today) = (part(at, 0, 10), part(now, 0, 10));
    if day == today {
        part(at, 11, 16)
    } else if part(at, 0, 4) == part(now, 0, 4) {
        format!("{} {}", part(at, 5, 10), part(at, 11, 16))
    } else {
        format!("{day} {}", part(at, 11, 16))
    }
}

fn part(at: Timestamp, from: usize, to: usize) -> String {
    at.to_string().get(from..to).unwrap_or_default().to_owned()
}

/// How long something took or has lasted, as one figure: `40 s`, `4 min`, `3 h`, `2 days`.
#[must_use]
pub fn span(seconds: u64) -> String {
    match seconds {
        0..=99 => format!("{seconds} s"),
        100..=5_999 => format!("{} min", seconds / 60),
        6_000..=172_799 => format!("{} h", seconds / 3_600),
        _ => format!("{} days", seconds / 86_400),
    }
}

/// The seconds from one time to a later one.
#[must_use]
pub fn seconds_between(from: Timestamp, to: Timestamp) -> u64 {
    to.micros_since(from) / 1_000_000
}

/// A count with its thousands apart: `2,317`.
#[must_use]
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut shown = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            shown.push(',');
        }
        shown.push(digit);
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_counts_are_short() {
        let at: Timestamp = "2026-11-28T14:37:20.123456Z".parse().unwrap();
        assert_eq!((clock(at), clock_ms(at)), ("14:37:20".into(), "14:37:20.123".into()));
        let other = |text: &str| day_and_minute(text.parse().unwrap(), at);
        assert_eq!(other("2026-11-28T01:02:03.000000Z"), "01:02");
        assert_eq!(other("2026-03-08T01:02:03.000000Z"), "03-08 01:02");
        assert_eq!(other("2025-03-08T01:02:03.000000Z"), "2025-03-08 01:02");
        assert_eq!([40, 240, 7_200, 200_000].map(span), ["40 s", "4 min", "2 h", "2 days"]);
        assert_eq!([0, 999, 1_000, 1_234_567].map(count), ["0", "999", "1,000", "1,234,567"]);
    }
}
