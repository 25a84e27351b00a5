//! Hours, days of the week, and dates.

use std::ops::Range;

use super::look::Look;
use crate::rule::Times;

const DAYS: [&str; 7] = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];
const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];
/// Time zones that are the same all year, with minutes to be added to UTC.
const ZONES: &[(&str, i16)] = &[
    ("utc", 0),
    ("gmt", 0),
    ("z", 0),
    ("cet", 60),
    ("cest", 120),
    ("eet", 120),
    ("eest", 180),
    ("bst", 60),
    ("est", -300),
    ("edt", -240),
    ("cst", -360),
    ("cdt", -300),
    ("mst", -420),
    ("mdt", -360),
    ("pst", -480),
    ("pdt", -420),
    ("ist", 330),
    ("jst", 540),
    ("aest", 600),
    ("sgt", 480),
];
/// Times that everybody understands differently.
const VAGUE: &[&str] = &[
    "business|office|working|work|opening|shop|store|trading|banking|regular|normal|core|service|duty|shift|visiting|surgery|school|quiet|peak|staffed|usual hours|time|times|day|days",
    "the|a|our|their|day|early|late|night shift|shifts",
    "late|later in the evening|night|day",
    "out of hours",
    "after hours",
    "after-hours",
    "out-of-hours",
    "at night",
    "overnight hours",
    "nights|nighttime|evenings|mornings",
    "in the evening|morning|afternoon|night",
    "peak|off-peak hours|times?",
    "during the day|night",
];

/// What a clause says about time.
#[derive(Debug, Clone, Default)]
pub(super) struct Timing {
    /// The times, where some are named.
    pub(super) times: Option<Times>,
    /// Words that leave the hours open.
    pub(super) vague: Option<Range<usize>>,
    /// Whether a zone is named.
    pub(super) zoned: bool,
    /// Words of dates without a year.
    pub(super) yearless: Option<Range<usize>>,
    /// Where the words of times are.
    pub(super) at: Option<Range<usize>>,
    /// A zone with summer time, of which nobody can tell the offset.
    pub(super) place_zone: Option<Range<usize>>,
}

/// The number of a day of the week.
pub(super) fn weekday(word: &str) -> Option<u8> {
    let word = word.trim_end_matches('s');
    let short = |day: &&str| *day == word || (word.len() >= 3 && word.len() <= 5 && day.starts_with(word));
    DAYS.iter().position(short).and_then(|place| u8::try_from(place).ok())
}

fn month(word: &str) -> Option<u32> {
    let fits =
        |month: &&str| *month == word || (word.len() >= 3 && word.len() <= 4 && month.starts_with(word));
    let place = MONTHS.iter().position(fits)?;
    u32::try_from(place + 1).ok()
}

/// Reads times, and takes their words.
pub(super) fn read(look: &mut Look) -> Timing {
    let mut timing = Timing::default();
    let mut times = Times::default();
    dates(look, &mut times, &mut timing);
    days(look, &mut times, &mut timing);
    hours(look, &mut times, &mut timing);
    let named = times != Times::default();
    let vague = look.find(VAGUE);
    if let Some(vague) = vague {
        // `business hours (9 to 17)` says itself what is meant.
        if times.minutes.is_none() {
            timing.vague = Some(vague.clone());
        }
        look.take(vague);
    }
    zone(look, &mut times, &mut timing);
    if named {
        timing.times = Some(times);
    }
    timing
}

fn note(timing: &mut Timing, look: &mut Look, range: Range<usize>) {
    look.take(range.clone());
    timing.at = Some(match timing.at.take() {
        Some(at) => at.start.min(range.start)..at.end.max(range.end),
        None => range,
    });
}

fn zone(look: &mut Look, times: &mut Times, timing: &mut Timing) {
    if times.minutes.is_none() && times.dates.is_none() && times.weekdays.is_empty() && timing.vague.is_none()
    {
        return;
    }
    for at in 0..look.len() {
        if let Some((_, offset)) = ZONES.iter().find(|(name, _)| *name == look.text(at)) {
            let start = at.saturating_sub(usize::from(look.is_any(at.wrapping_sub(1), &["in"])));
            times.offset = *offset;
            timing.zoned = true;
            look.take(start..at + 1);
        }
    }
    if let Some(place) = look.find(&[
        "berlin|london|paris|york|local|tokyo|zurich|vienna|madrid|eastern|pacific|central time",
        "local time",
    ]) {
        timing.place_zone = Some(place.clone());
        look.take(place);
    }
}

fn days(look: &mut Look, times: &mut Times, timing: &mut Timing) {
    let mut at = 0;
    while at < look.len() {
        let lead = usize::from(look.is_any(at, &["on", "from", "between"]));
        let first = at + lead;
        let (days, end): (Vec<u8>, usize) = match look.text(first) {
            "weekdays" | "weekday" | "workdays" => ((0..5).collect(), first + 1),
            "weekend" | "weekends" => (vec![5, 6], first + 1),
            word => match (weekday(word), weekday(look.text(first + 2))) {
                (Some(one), Some(other))
                    if look.is_any(first + 1, &["to", "-", "–", "—", "through", "thru", "until", "till"])
                        || (lead == 1 && look.text(at) == "between") =>
                {
                    (spread(one, other), first + 3)
                }
                (Some(one), _) => (vec![one], first + 1),
                (None, _) => {
                    at += 1;
                    continue;
                }
            },
        };
        times.weekdays.extend(days);
        note(timing, look, at..end);
        at = end;
        // `Mondays and Fridays`
        if look.is_any(at, &["and", "or", ","])
            && (weekday(look.text(at + 1)).is_some() || look.is_any(at + 1, &["weekend", "weekends"]))
        {
            look.take(at..at + 1);
            at += 1;
        }
    }
    times.weekdays.sort_unstable();
    times.weekdays.dedup();
}

fn spread(one: u8, other: u8) -> Vec<u8> {
    let length = (other + 7 - one) % 7;
    (0..=length).map(|step| (one + step) % 7).collect()
}

/// Minutes since midnight, and how many words it took. `bare` allows a number alone.
fn clock(look: &Look, at: usize, bare: bool) -> Option<(u16, usize)> {
    match look.text(at) {
        "noon" | "midday" => return Some((720, 1)),
        "midnight" => return Some((0, 1)),
        _ => {}
    }
    let word = look.text(at);
    let (digits, mut half) = match word.find(|c: char| c.is_ascii_alphabetic()) {
        Some(place) => word.split_at_checked(place)?,
        None => (word, ""),
    };
    let mut length = 1;
    if half.is_empty() && look.is_any(at + 1, &["am", "pm", "a.m", "p.m", "o'clock", "h", "hrs"]) {
        half = look.text(at + 1);
        length = 2;
    }
    let (hour, minute) = match digits.split_once([':', '.']) {
        Some((hour, minute)) if minute.len() == 2 => (hour, minute.parse::<u16>().ok()?),
        Some(_) => return None,
        None if bare || !half.is_empty() => (digits, 0),
        None => return None,
    };
    let mut hour = hour.parse::<u16>().ok().filter(|hour| *hour <= 24)?;
    match half {
        "pm" | "p.m" if hour < 12 => hour += 12,
        "am" | "a.m" if hour == 12 => hour = 0,
        "" | "am" | "a.m" | "pm" | "p.m" | "o'clock" | "h" | "hrs" => {}
        _ => return None,
    }
    (hour <= 24 && minute < 60).then_some((hour * 60 + minute, length))
}

fn hours(look: &mut Look, times: &mut Times, timing: &mut Timing) {
    for at in 0..look.len() {
        if look.is_used(at) {
            continue;
        }
        let lead = usize::from(look.is_any(at, &["between", "from"]));
        let Some((from, length)) = clock(look, at + lead, true) else { continue };
        let joint = at + lead + length;
        if !look.is_any(joint, &["and", "to", "-", "–", "—", "until", "till"]) {
            continue;
        }
        let Some((until, more)) = clock(look, joint + 1, true) else { continue };
        let plain = !look.text(at + lead).contains(':')
            && !look.text(joint + 1).contains(':')
            && length == 1
            && more == 1;
        let end = joint + 1 + more;
        let letters = |place: usize| look.text(place).contains(|c: char| c.is_ascii_alphabetic());
        let bare = plain && !letters(at + lead) && !letters(joint + 1);
        // `between 2 and 5 items` is no time.
        let is_time = !bare
            || look.is_any(end, &["o'clock", "utc", "gmt", "cet", "hours"])
            || !times.weekdays.is_empty()
            || end >= look.len();
        if !is_time {
            continue;
        }
        // `9 to 5pm`, `9-5`
        let (from, until) =
            if until <= from && until < 720 && bare { (from, until + 720) } else { (from, until) };
        times.minutes = Some((from, until % 1440));
        note(timing, look, at..end);
        return;
    }
    for (lead, after) in [("after|past|from|since", true), ("before|until|till", false)] {
        let found = (0..look.len()).find_map(|at| {
            look.phrase_at(at, lead)?;
            let (minute, length) = clock(look, at + 1, false)?;
            Some((at..at + 1 + length, minute))
        });
        if let Some((range, minute)) = found {
            let (from, until) = times.minutes.unwrap_or((0, 0));
            times.minutes = Some(if after { (minute, until) } else { (from, minute) });
            note(timing, look, range);
        }
    }
}

/// A date, `2026-12-18`, and how many words it took. Without a year, `????` stands for it.
fn date(look: &Look, at: usize) -> Option<(String, usize)> {
    let word = look.text(at);
    let numbers: Vec<&str> = word.split(['-', '.', '/']).collect();
    if let [one, two, three] = numbers.as_slice() {
        let digits = |text: &&str| !text.is_empty() && text.chars().all(|c| c.is_ascii_digit());
        if [one, two, three].into_iter().all(digits) {
            return match (one.len(), three.len()) {
                (4, _) => Some((format!("{one}-{two:0>2}-{three:0>2}"), 1)),
                (_, 4) if word.contains('.') => Some((format!("{three}-{two:0>2}-{one:0>2}"), 1)),
                _ => None,
            };
        }
    }
    let day_of = |place: usize| {
        let digits = look.text(place).trim_end_matches(|c: char| c.is_ascii_alphabetic());
        digits.parse::<u32>().ok().filter(|day| (1..=31).contains(day))
    };
    let year_of = |place: usize| {
        let skip = usize::from(look.text(place) == ",");
        let year = look.text(place + skip);
        (year.len() == 4 && year.starts_with("20") && year.chars().all(|c| c.is_ascii_digit()))
            .then(|| (year.to_owned(), skip + 1))
    };
    let (day, month_number, length) = if let (Some(day), Some(month)) = (day_of(at), month(look.text(at + 1)))
    {
        (day, month, 2)
    } else if let (Some(month), Some(day)) = (month(word), day_of(at + 1)) {
        (day, month, 2)
    } else {
        return None;
    };
    let (year, more) = year_of(at + length).unwrap_or_else(|| ("????".to_owned(), 0));
    Some((format!("{year}-{month_number:02}-{day:02}"), length + more))
}

fn dates(look: &mut Look, times: &mut Times, timing: &mut Timing) {
    let found = (0..look.len()).find_map(|at| {
        let lead = usize::from(look.is_any(
            at,
            &["from", "between", "starting", "on", "until", "till", "before", "after", "since", "through"],
        ));
        let (one, length) = date(look, at + lead)?;
        Some((at, lead, one, length))
    });
    let Some((at, lead, mut one, length)) = found else { return };
    let joint = at + lead + length;
    let skip = usize::from(look.is_any(joint, &["(", ","]));
    let joins = look.is_any(joint + skip, &["to", "and", "until", "till", "through", "-", "–", "—"]);
    let second = if joins { date(look, joint + skip + 1) } else { None };
    let (range, mut until, end) = match (second, look.text(at)) {
        (Some((other, more)), _) => (true, other, joint + skip + 1 + more),
        (None, "until" | "till" | "before" | "through") => (false, std::mem::take(&mut one), joint),
        (None, "after" | "since" | "from" | "starting") => (false, String::new(), joint),
        (None, _) => (true, one.clone(), joint),
    };
    if range && one.starts_with("????") && !until.starts_with("????") {
        let year = until.get(..4).unwrap_or_default().to_owned();
        let crosses = one.get(5..) > until.get(5..);
        let year = year.parse::<u32>().unwrap_or(0).saturating_sub(u32::from(crosses));
        one = format!("{year}{}", one.get(4..).unwrap_or_default());
    }
    if one.starts_with("????") || until.starts_with("????") {
        timing.yearless = Some(at..end);
        one = one.replace("????", "0000");
        until = until.replace("????", "0000");
    }
    times.dates = Some((one, until));
    note(timing, look, at..end);
    if let Some(both) =
        look.find(&["both days|dates? included|inclusive", "inclusive", "both included|inclusive", "both"])
    {
        look.take(both);
    }
}
