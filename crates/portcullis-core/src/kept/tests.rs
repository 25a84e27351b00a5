//! What operations on kept things do, one by one. Random sequences are in [`sequences`].

mod sequences;

use super::*;
use crate::event::{Event, EventBody};
use crate::id::{RequestId, RunId};
use crate::label::{Label, LabelSet};

use self::sequences::World;

const RUN: RunId = RunId::from_bytes([1; 16]);

fn asked(key: &str, value: &str, replaces: Option<u64>) -> Put {
    Put { key: key.into(), value: value.into(), replaces, request: None }
}

fn refusal<T: std::fmt::Debug>(answer: Result<T, KeptError>) -> (Refusal, String) {
    let error = answer.unwrap_err();
    (error.refusal, error.to_string())
}

#[test]
fn a_value_is_put_by_the_version_that_it_replaces_and_a_stale_one_is_told_the_current() {
    let mut world = World::new(RUN);
    let first = world.put(asked("plan", "1", None)).unwrap();
    let (why, text) = refusal(world.put(asked("plan", "2", None)));
    assert_eq!(why, Refusal::Stale);
    assert!(text.contains(&format!("`plan` is there, at version {first}")), "{text}");
    let second = world.put(asked("plan", "2", Some(first))).unwrap();
    let (why, text) = refusal(world.put(asked("plan", "3", Some(first))));
    assert_eq!(why, Refusal::Stale);
    assert!(text.contains(&format!("put it again with `replaces` {second}")), "{text}");
    assert_eq!(refusal(world.put(asked("other", "3", Some(first)))).0, Refusal::Stale);
    let cell = world.state.kept().cell("plan").unwrap();
    assert_eq!((cell.value.as_deref(), cell.version), (Some("2"), second));
}

#[test]
fn state_has_limits_and_reaching_them_says_so() {
    let mut world = World::new(RUN);
    assert_eq!(refusal(world.put(asked("", "1", None))).0, Refusal::Malformed);
    assert_eq!(refusal(world.put(asked(&"k".repeat(KEY_BYTES_MAX + 1), "1", None))).0, Refusal::Malformed);
    let long = "1".repeat(VALUE_BYTES_MAX);
    assert_eq!(refusal(world.put(asked("k", &format!("{long}1"), None))).0, Refusal::Malformed);
    for number in 0..CELLS_MAX {
        world.put(asked(&format!("k{number}"), "1", None)).unwrap();
    }
    let (why, text) = refusal(world.put(asked("one more", "1", None)));
    assert!(why == Refusal::Full && text.contains("256 keys"), "{text}");
    // What is there can still be written, until all of it is too long.
    let mut full = None;
    for number in 0..CELLS_MAX {
        let key = format!("k{number}");
        let version = world.state.kept().cell(&key).unwrap().version;
        if let Err(error) = world.put(asked(&key, &long, Some(version))) {
            full = Some(error);
            break;
        }
    }
    assert_eq!(full.unwrap().refusal, Refusal::Full);
    assert!(world.state.kept().state_bytes() <= STATE_BYTES_MAX);
}

#[test]
fn words_are_not_in_the_line_and_a_value_that_was_erased_is_gone_but_its_version_is_not() {
    let mut world = World::new(RUN);
    let version = world.put(asked("Mallory", "\"Mallory\"", None)).unwrap();
    let new = NewFact { topic: "Mallory".into(), text: "Mallory's birthday".into(), ..NewFact::default() };
    world.write(new, &|_| Standing::Held).unwrap();
    for (line, words) in &world.record {
        let line = String::from_utf8(line.clone()).unwrap();
        assert!(!line.contains("Mallory"), "{line}");
        assert!(words.as_ref().unwrap().contains("Mallory"));
    }
    let mut event = Event::from_line(&world.record[0].0).unwrap();
    event.join(None, crate::aside::ERASED);
    let state = crate::state::RunState::fold([&event]);
    let cell = state.kept().cells().next().unwrap();
    assert_eq!((cell.value.as_deref(), cell.version), (None, version));
    let mut event = Event::from_line(&world.record[1].0).unwrap();
    event.join(None, crate::aside::ERASED);
    let EventBody::Fact(record) = &event.body else { panic!("not a fact") };
    assert!(record.established(KeptId { run: RUN, seq: 2 }).is_none(), "without its words there is no fact");
}

#[test]
fn words_of_another_operation_are_not_joined() {
    let mut world = World::new(RUN);
    world.put(asked("k", "1", None)).unwrap();
    let mut event = Event::from_line(&world.record[0].0).unwrap();
    event.join(Some(r#"{"key":"k","why":"refused"}"#), crate::aside::ERASED);
    let EventBody::State(record) = &event.body else { panic!("not of state") };
    assert_eq!(record.words, Default::default());
}

#[test]
fn a_fact_is_named_by_its_event_and_what_it_names_must_be_there() {
    let id = KeptId { run: RUN, seq: 17 };
    assert_eq!(id.to_string().parse(), Ok(id));
    for text in ["", "17", "0199ab.17", &format!("{RUN}.017"), &format!("{RUN}.0"), &format!("{RUN}.+7")] {
        assert!(text.parse::<KeptId>().is_err(), "{text}");
    }
    let mut world = World::new(RUN);
    let new =
        |replaces: &[KeptId]| NewFact { text: "t".into(), replaces: replaces.into(), ..NewFact::default() };
    assert_eq!(refusal(world.write(NewFact::default(), &|_| Standing::Held)).0, Refusal::Malformed);
    assert_eq!(refusal(world.write(new(&[id]), &|_| Standing::Unknown)).0, Refusal::Unknown);
    assert_eq!(refusal(world.write(new(&[id]), &|_| Standing::Forgotten)).0, Refusal::Forgotten);
    let (why, text) = refusal(world.write(new(&[id, id]), &|_| Standing::Held));
    assert!(why == Refusal::Malformed && text.starts_with("`replaces[1]`"), "{text}");
    let kept = world.state.kept();
    assert_eq!(refusal(forget(kept, id, " ".into(), None, Standing::Held)).0, Refusal::Malformed);
    assert_eq!(refusal(forget(kept, id, "old".into(), None, Standing::Forgotten)).0, Refusal::Forgotten);
}

#[test]
fn whoever_reads_a_fact_has_the_labels_of_the_run_that_wrote_it() {
    let mut labels = LabelSet::default();
    labels.insert(Label::Tool("read_mail".into()));
    let fact = KeptFact {
        id: KeptId { run: RunId::from_bytes([9; 16]), seq: 3 },
        topic: String::new(),
        text: "t".into(),
        labels: labels.clone(),
        foreign: Foreign { labels: labels.clone(), marks: None },
    };
    let mut world = World::new(RUN);
    assert!(!world.state.kept().read_foreign());
    world.push(EventBody::Fact(read(&[fact])));
    assert!(labels.is_subset(world.state.labels()));
    assert!(world.state.kept().read_foreign());
}

#[test]
fn a_request_is_known_by_its_name() {
    let mut world = World::new(RUN);
    let request = RequestId::from_bytes([4; 16]);
    let put = Put { request: Some(request), ..asked("k", "1", None) };
    assert_eq!(world.state.kept().done(request), None);
    let version = world.put(put.clone()).unwrap();
    assert_eq!(world.state.kept().done(request), Some(version));
    // A request that was refused is not done: it may be made again.
    let other = RequestId::from_bytes([5; 16]);
    world.put(Put { request: Some(other), ..put }).unwrap_err();
    assert_eq!(world.state.kept().done(other), None);
}
