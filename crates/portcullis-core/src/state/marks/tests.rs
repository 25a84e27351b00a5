//! What is remembered of marks, against an evaluator that keeps the whole history and reads definitions off it.

use proptest::prelude::*;

use super::*;
use crate::id::Digest;
use crate::sequence::Window;

/// Something that happened, and where it succeeded.
#[derive(Debug, Clone)]
struct Happened {
    mark: Mark,
    at: Now,
    succeeded: Option<Now>,
}

fn key(number: u8) -> MarkKey {
    let value = serde_json::json!({ "key": number });
    MarkKey::at(&value, "/key").unwrap().keyed(&Digest::from_bytes([7; 32]))
}

/// The definitions, read off the history.
fn naive(
    history: &[Happened],
    name: &str,
    whose: Whose,
    from: (Option<&str>, Option<Window>),
    now: Now,
) -> Tally {
    let (since, within) = from;
    let required = |mark: &Mark| match whose {
        Whose::Anybody => true,
        Whose::Of(key) => mark.key == Some(key),
        Whose::Unknown => false,
    };
    let counts_for = |mark: &Mark| mark.key.is_none() || whose == Whose::Unknown || required(mark);
    let since = since.and_then(|since| {
        let those = history.iter().filter(|one| one.mark.name == since && required(&one.mark));
        those.filter_map(|one| one.succeeded).map(|at| at.seq).max()
    });
    let is_within = |at: Now| {
        let in_window = match within {
            None => true,
            Some(Window::Steps(steps)) => at.step.saturating_add(steps) > now.step,
            Some(Window::Micros(micros)) => at.at >= now.at || now.at.micros_since(at.at) <= micros,
        };
        in_window && since.is_none_or(|since| at.seq > since)
    };
    let mut tally = Tally::default();
    for one in history.iter().filter(|one| one.mark.name == name) {
        if counts_for(&one.mark) && is_within(one.at) {
            tally.count += 1;
            tally.sum_micros += one.mark.amount_micros.unwrap_or(0);
            tally.unread += u32::from(one.mark.amount_micros.is_none());
        }
        tally.has_succeeded |= required(&one.mark) && one.succeeded.is_some_and(is_within);
    }
    tally
}

/// A call: which mark, which key, its amount, the time since the one before, whether it succeeds.
type Call = (bool, u8, Option<u64>, u32, bool);

fn calls(most: usize) -> impl Strategy<Value = Vec<Call>> {
    let one = (any::<bool>(), 0_u8..4, proptest::option::of(0_u64..1000), 0_u32..100, any::<bool>());
    proptest::collection::vec(one, 0..most)
}

/// What both remember of the calls, and where the run is then.
fn remembered(calls: &[Call]) -> (Marks, Vec<Happened>, Now) {
    let (mut marks, mut history) = (Marks::default(), Vec::new());
    let mut now = Now { at: Timestamp::from_micros(0), step: 1, seq: 1 };
    for (is_first, of, amount, pause, succeeds) in calls {
        let name = if *is_first { "export" } else { "review" }.to_owned();
        let mark = Mark { name, key: (*of > 0).then(|| key(*of)), amount_micros: *amount, unsure: false };
        let begun = now;
        marks.happened(std::slice::from_ref(&mark), now);
        now.seq += 1;
        now.at = Timestamp::from_micros(now.at.as_micros() + i64::from(*pause));
        let succeeded = succeeds.then_some(Now { step: begun.step, ..now });
        if let Some(at) = succeeded {
            marks.succeeded(std::slice::from_ref(&mark), at);
        }
        history.push(Happened { mark, at: begun, succeeded });
        now = Now { seq: now.seq + 1, step: now.step + 1, ..now };
    }
    (marks, history, now)
}

/// What is remembered of exports.
fn remembers(marks: &Marks, whose: Whose, since: Option<&str>, within: Option<Window>, now: Now) -> Tally {
    let from = From { since: since.and_then(|since| marks.of(since)), within };
    marks.of("export").map_or_else(Tally::default, |history| history.tally(whose, from, now))
}

fn questions() -> impl Strategy<Value = (Whose, bool, Option<Window>)> {
    let whose = prop_oneof![
        Just(Whose::Anybody),
        Just(Whose::Unknown),
        (1_u8..5).prop_map(|number| Whose::Of(key(number)))
    ];
    let window = prop_oneof![
        Just(None),
        (1_u32..30).prop_map(|steps| Some(Window::Steps(steps))),
        (1_u64..900).prop_map(|micros| Some(Window::Micros(micros)))
    ];
    (whose, any::<bool>(), window)
}

fn cases() -> ProptestConfig {
    let is_long = std::env::var_os("PORTCULLIS_TEST_LONG").is_some();
    ProptestConfig::with_cases(if is_long { 1_000_000 } else { 10_000 })
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn what_is_remembered_answers_as_the_whole_history_does(
        calls in calls(40),
        (whose, since, within) in questions(),
    ) {
        let (marks, history, now) = remembered(&calls);
        let since = since.then_some("review");
        prop_assert_eq!(
            remembers(&marks, whose, since, within, now),
            naive(&history, "export", whose, (since, within), now)
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(50))]

    /// Beyond what is remembered place by place, a window may count more than is in it, and never less.
    #[test]
    fn what_is_forgotten_counts_more_and_never_less(
        calls in calls(1_500),
        (whose, since, within) in questions(),
    ) {
        let (marks, history, now) = remembered(&calls);
        let since = since.then_some("review");
        let own = remembers(&marks, whose, since, within, now);
        let all = naive(&history, "export", whose, (since, within), now);
        prop_assert!(own.count >= all.count && own.sum_micros >= all.sum_micros && own.unread >= all.unread);
        prop_assert_eq!(own.has_succeeded, all.has_succeeded);
        let places = marks.by_name.values().flat_map(|marked| {
            marked.keyed.values().chain([&marked.all, &marked.unkeyed]).map(|track| track.places.len())
        });
        prop_assert!(places.max().unwrap_or(0) <= MARK_PLACES_MAX);
    }
}

#[test]
fn keys_beyond_the_limit_count_for_all() {
    let mut marks = Marks::default();
    let now = Now { at: Timestamp::from_micros(0), step: 1, seq: 1 };
    let other = |number: usize| MarkKey::at(&serde_json::json!([number]), "/0").unwrap();
    for number in 0..MARK_KEYS_MAX + 10 {
        let mark =
            Mark { name: "export".into(), key: Some(other(number)), amount_micros: None, unsure: false };
        marks.happened(&[mark], now);
    }
    assert_eq!(marks.keys, MARK_KEYS_MAX);
    assert_eq!(remembers(&marks, Whose::Of(other(0)), None, None, now).count, 11);
}
