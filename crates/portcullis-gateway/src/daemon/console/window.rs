//! Which events of a run a page shows: steps, and stretches in which nothing happened but *allow*, folded.

use portcullis_console::run::Filter;
use portcullis_core::verdict::Verdict;

use super::index::{Entry, Index, Kind};

/// Events that a page shows.
const EVENTS: usize = 100;
/// Steps without anything to see that are folded.
const QUIET_MIN: usize = 4;
/// Steps at the end of a folded stretch that stay: what came right before something is context.
const CONTEXT: usize = 1;

/// A step: its events, from the first to the last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) first: u64,
    pub(super) last: u64,
    /// A call that was allowed and went well.
    quiet: bool,
}

/// A part of what is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Part {
    Step(Step),
    Quiet { first: u64, last: u64, calls: usize },
}

/// What is shown, and where it goes on.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Window {
    pub(super) parts: Vec<Part>,
    pub(super) earlier: Option<u64>,
    pub(super) later: Option<u64>,
}

/// The steps of a run.
pub(super) fn steps(index: &Index) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut action = None;
    for (place, entry) in index.entries.iter().enumerate() {
        let seq = place as u64 + 1;
        let other = entry.action.is_some() && action.is_some() && entry.action != action;
        let begins = matches!(entry.kind, Kind::Begins | Kind::Call) || other;
        match steps.last_mut().filter(|_| !begins) {
            Some(step) => {
                step.last = seq;
                step.quiet &= is_quiet(entry);
            }
            None => {
                let quiet = is_quiet(entry) && entry.action.is_some();
                steps.push(Step { first: seq, last: seq, quiet });
                action = None;
            }
        }
        if entry.action.is_some() {
            action = entry.action;
        }
    }
    steps
}

fn is_quiet(entry: &Entry) -> bool {
    entry.verdict.is_none_or(|verdict| verdict == Verdict::Allow)
        && matches!(entry.kind, Kind::Call | Kind::Other)
}

/// The part of a run from event `at` on, or its end.
pub(super) fn window(index: &Index, at: Option<u64>, open: bool, filter: &Filter) -> Window {
    let all = steps(index);
    let shown: Vec<Step> = match filter.is_empty() {
        true => all,
        false => all.into_iter().filter(|step| is_like(index, *step, filter)).collect(),
    };
    let fold = filter.is_empty() && !open;
    match at {
        Some(at) => {
            let from = shown.partition_point(|step| step.last < at);
            forward(&shown, from, fold)
        }
        None => backward(&shown, fold),
    }
}

fn is_like(index: &Index, step: Step, filter: &Filter) -> bool {
    let from = usize::try_from(step.first.saturating_sub(1)).unwrap_or(usize::MAX);
    let to = usize::try_from(step.last).unwrap_or(usize::MAX);
    let entries = index.entries.get(from..to).unwrap_or_default();
    let named = |entry: &Entry| entry.name.as_deref().is_some_and(|name| name.contains(filter.find.as_str()));
    (filter.find.is_empty() || entries.iter().any(named))
        && filter.only.is_none_or(|only| entries.iter().any(|entry| entry.verdict == Some(only)))
        && (!filter.people || entries.iter().any(|entry| entry.kind == Kind::Person))
}

/// From a step on, until there is enough.
fn forward(steps: &[Step], from: usize, fold: bool) -> Window {
    let (mut parts, mut events, mut place) = (Vec::new(), 0, from);
    while let Some(step) = steps.get(place) {
        if events >= EVENTS {
            break;
        }
        let quiet = if fold { quiet_from(steps, place) } else { 0 };
        // The step that was asked for is shown.
        if quiet >= QUIET_MIN + CONTEXT && place != from {
            place = push_quiet(&mut parts, steps, place, quiet - CONTEXT);
        } else {
            parts.push(Part::Step(*step));
            events += length(*step);
            place += 1;
        }
    }
    Window { parts, earlier: earlier(steps, from), later: steps.get(place).map(|step| step.first) }
}

fn push_quiet(parts: &mut Vec<Part>, steps: &[Step], place: usize, count: usize) -> usize {
    let end = place + count;
    if let (Some(first), Some(last)) = (steps.get(place), steps.get(end.saturating_sub(1))) {
        parts.push(Part::Quiet { first: first.first, last: last.last, calls: count });
    }
    end
}

/// The last part of the run: as many steps as there is room for, quiet stretches not counted.
fn backward(steps: &[Step], fold: bool) -> Window {
    let (mut events, mut from) = (0, steps.len());
    while let Some(step) = from.checked_sub(1).and_then(|place| steps.get(place)) {
        let quiet = if fold { quiet_until(steps, from) } else { 0 };
        if quiet >= QUIET_MIN + CONTEXT {
            from -= quiet;
            // Its last step is shown.
            events += length(*step);
            continue;
        }
        if events + length(*step) > EVENTS && events > 0 {
            break;
        }
        events += length(*step);
        from -= 1;
    }
    let mut window = Window { earlier: earlier(steps, from), ..Window::default() };
    let mut place = from;
    while let Some(step) = steps.get(place) {
        let quiet = if fold { quiet_from(steps, place) } else { 0 };
        if quiet >= QUIET_MIN + CONTEXT {
            place = push_quiet(&mut window.parts, steps, place, quiet - CONTEXT);
        } else {
            window.parts.push(Part::Step(*step));
            place += 1;
        }
    }
    window
}

fn quiet_from(steps: &[Step], place: usize) -> usize {
    steps.iter().skip(place).take_while(|step| step.quiet).count()
}

fn quiet_until(steps: &[Step], end: usize) -> usize {
    steps.iter().take(end).rev().take_while(|step| step.quiet).count()
}

fn length(step: Step) -> usize {
    usize::try_from(step.last - step.first + 1).unwrap_or(usize::MAX)
}

/// Where the window before one begins that begins with a step.
fn earlier(steps: &[Step], from: usize) -> Option<u64> {
    let (mut events, mut place) = (0, from.checked_sub(1)?);
    loop {
        events += length(*steps.get(place)?);
        if events >= EVENTS || place == 0 {
            return steps.get(place).map(|step| step.first);
        }
        place -= 1;
    }
}

#[cfg(test)]
mod tests {
    use portcullis_core::id::ActionId;

    use super::*;

    /// A run of calls of four events each, with these verdicts.
    fn index(verdicts: &[Verdict]) -> Index {
        let mut index = Index::default();
        for (number, verdict) in verdicts.iter().enumerate() {
            let action = Some(ActionId::from_bytes([u8::try_from(number % 251).unwrap(); 16]));
            let entry = |kind, verdict| Entry { action, verdict, name: Some("tool".into()), kind };
            index.entries.extend([
                entry(Kind::Call, None),
                entry(Kind::Other, Some(*verdict)),
                entry(Kind::Other, None),
                entry(Kind::Other, None),
            ]);
        }
        index
    }

    fn events(window: &Window) -> usize {
        let length = |part: &Part| if let Part::Step(step) = part { length(*step) } else { 0 };
        window.parts.iter().map(length).sum()
    }

    #[test]
    fn a_long_quiet_run_squeezes_nothing_that_matters() {
        let mut verdicts = vec![Verdict::Allow; 2_500];
        for place in [3, 700, 701, 1_500, 2_000, 2_300, 2_490] {
            verdicts[place] = Verdict::Deny;
        }
        let index = index(&verdicts);
        let window = window(&index, None, false, &Filter::default());
        let denied =
            window.parts.iter().filter(|part| matches!(part, Part::Step(step) if !step.quiet)).count();
        assert_eq!((denied, window.later), (7, None), "all seven are on the last page");
        assert!(events(&window) <= EVENTS, "{}", events(&window));
        let folded: u64 = window
            .parts
            .iter()
            .map(|part| if let Part::Quiet { first, last, .. } = part { last - first + 1 } else { 0 })
            .sum();
        assert_eq!(folded + events(&window) as u64, index.last(), "nothing is left out");
    }

    #[test]
    fn windows_follow_each_other_without_a_hole() {
        let index = index(&[Verdict::Warn; 200]);
        let (mut at, mut seen) = (Some(1), 0);
        while let Some(from) = at {
            let window = window(&index, Some(from), false, &Filter::default());
            assert!(matches!(window.parts[0], Part::Step(step) if step.first == from));
            assert!(events(&window) < EVENTS + 4);
            seen += events(&window);
            at = window.later;
        }
        assert_eq!(seen, 800);
        let last = window(&index, None, false, &Filter::default());
        assert!(last.earlier.is_some() && last.later.is_none());
    }

    #[test]
    fn a_filter_shows_what_is_like_it() {
        let mut verdicts = vec![Verdict::Allow; 100];
        verdicts[50] = Verdict::Review;
        let index = index(&verdicts);
        let only = Filter { only: Some(Verdict::Review), ..Filter::default() };
        assert_eq!(window(&index, None, false, &only).parts.len(), 1);
        let find = Filter { find: "nothing".into(), ..Filter::default() };
        assert_eq!(window(&index, None, false, &find), Window::default());
        assert_eq!(window(&Index::default(), Some(7), false, &Filter::default()), Window::default());
    }
}
