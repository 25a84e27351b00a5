//! Timestamps as data. Nothing here reads a clock: an event's time is given to it, so that the same events
//! always lead to the same verdicts.

use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// A point in time: microseconds since 1970-01-01T00:00:00Z. Printed as RFC 3339 in UTC with six decimals.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

const MICROS_PER_SECOND: i64 = 1_000_000;
const SECONDS_PER_DAY: i64 = 86_400;
/// Years outside 0000..=9999 have no RFC 3339 form; times are clamped to what has one.
const MICROS_MIN: i64 = -62_167_219_200 * MICROS_PER_SECOND;
const MICROS_MAX: i64 = 253_402_300_800 * MICROS_PER_SECOND - 1;

impl Timestamp {
    /// A time `micros` microseconds after the Unix epoch, clamped to the years 0000 to 9999.
    pub fn from_micros(micros: i64) -> Self {
        Self(micros.clamp(MICROS_MIN, MICROS_MAX))
    }

    /// Microseconds since the Unix epoch.
    pub const fn as_micros(self) -> i64 {
        self.0
    }

    /// The time as text, without the fraction of its second: `2026-03-01T12:00:00Z`.
    #[must_use]
    pub fn without_fraction(self) -> String {
        let text = self.to_string();
        text.split_once('.').map_or(text.clone(), |(seconds, _)| format!("{seconds}Z"))
    }

    /// Microseconds from `earlier` to `self`; zero when the clock went backwards.
    pub fn micros_since(self, earlier: Self) -> u64 {
        u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0)
    }
}

/// Days since the epoch to (year, month, day), proleptic Gregorian calendar.
/// Source: Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms", `civil_from_days`.
fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let z = days + 719_468;
    let era = z.div_euclid(146_097);
    let day_of_era = z.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

/// The inverse of [`civil_from_days`]; same source.
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = year - i64::from(month <= 2);
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let shifted_month = (month + 9) % 12;
    let day_of_year = (153 * shifted_month + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0.div_euclid(MICROS_PER_SECOND);
        let micros = self.0.rem_euclid(MICROS_PER_SECOND);
        let (year, month, day) = civil_from_days(seconds.div_euclid(SECONDS_PER_DAY));
        let of_day = seconds.rem_euclid(SECONDS_PER_DAY);
        let (hour, minute, second) = (of_day / 3_600, of_day / 60 % 60, of_day % 60);
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{micros:06}Z")
    }
}

/// Text that is not a timestamp in the one form we write.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a UTC time like `2026-01-31T12:00:00.000000Z`")]
pub struct ParseTimestampError(String);

impl FromStr for Timestamp {
    type Err = ParseTimestampError;

    fn from_str(text: &str) -> Result<Self, ParseTimestampError> {
        let error = || ParseTimestampError(text.chars().take(40).collect());
        let number = |from: usize, to: usize| -> Option<i64> {
            let digits = text.get(from..to)?;
            if digits.bytes().all(|b| b.is_ascii_digit()) { digits.parse().ok() } else { None }
        };
        let fields = || {
            let days = days_from_civil(number(0, 4)?, number(5, 7)?, number(8, 10)?);
            let seconds = number(11, 13)? * 3_600 + number(14, 16)? * 60 + number(17, 19)?;
            Some((days * SECONDS_PER_DAY + seconds) * MICROS_PER_SECOND + number(20, 26)?)
        };
        let parsed = Self(fields().ok_or_else(error)?);
        // Printing again rejects every other spelling, and days such as February 30.
        if parsed.to_string() == text { Ok(parsed) } else { Err(error()) }
    }
}

impl Serialize for Timestamp {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for Timestamp {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Timestamp".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "format": "date-time",
            "description": "RFC 3339 in UTC with six decimals.",
            "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\\.[0-9]{6}Z$",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_times_print_as_rfc_3339() {
        for (micros, text) in [
            (0, "1970-01-01T00:00:00.000000Z"),
            (-1, "1969-12-31T23:59:59.999999Z"),
            (951_782_400_000_000, "2000-02-29T00:00:00.000000Z"),
            (1_795_225_534_000_042, "2026-11-21T01:45:34.000042Z"),
        ] {
            assert_eq!(Timestamp::from_micros(micros).to_string(), text);
            assert_eq!(text.parse(), Ok(Timestamp::from_micros(micros)));
        }
    }

    #[test]
    fn other_spellings_are_refused() {
        for text in
            ["2026-02-30T00:00:00.000000Z", "2026-11-21 01:45:34.000042Z", "2026-11-21T01:45:34Z", "é"]
        {
            assert!(text.parse::<Timestamp>().is_err(), "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn printing_and_parsing_are_inverse(micros in MICROS_MIN..MICROS_MAX) {
            let time = Timestamp::from_micros(micros);
            proptest::prop_assert_eq!(time.to_string().parse(), Ok(time));
        }
    }
}
