//! Books of what was asked, shown and decided, kept without the engine, and the rules that every answer is held to.

use std::collections::{BTreeMap, BTreeSet};

use portcullis_core::event::GrantScope;
use portcullis_core::freeze::{FreezeScope, Frozen};
use portcullis_core::grant::GrantedEffects;
use portcullis_core::id::ApprovalId;
use portcullis_core::label::LabelSet;

use super::world::{POLICIES, PRINCIPALS, RUNS, run_id};
use super::{Ask, Order, Told};
use crate::engine::{Edit, Lasts, Says};

const SECOND: i64 = 1_000_000;
/// How long a grant lasts usually and at most, and a request, unless the bundle says otherwise.
const USUAL: i64 = 900 * SECOND;
const LONGEST: i64 = 8 * 3_600 * SECOND;
const REQUEST: i64 = 24 * 3_600 * SECOND;

/// What a person saw of what a run had seen: as the gate shows it, and by these books.
#[derive(Debug, Clone)]
pub(super) struct Look {
    pub(super) labels: LabelSet,
    pub(super) sources: BTreeSet<String>,
}

/// A run as the books have it.
#[derive(Debug, Default)]
struct Run {
    /// What it has seen.
    sources: BTreeSet<String>,
    /// Things that the user has said.
    spoken: u32,
    /// Microseconds that have passed without a freeze.
    clock: i64,
    refused: BTreeSet<Ask>,
    /// The latest request for each thing that was asked for.
    latest: BTreeMap<Ask, ApprovalId>,
}

#[derive(Debug)]
struct Request {
    run: usize,
    ask: Ask,
    at: i64,
    rules: u32,
    /// Who has agreed, with what the run had seen then.
    agreed: BTreeMap<String, BTreeSet<String>>,
    stands: Stands,
}

#[derive(Debug)]
enum Stands {
    Open,
    Granted(Yes),
    Refused,
    Answered,
    Revoked,
}

#[derive(Debug)]
struct Yes {
    scope: GrantScope,
    sources: BTreeSet<String>,
    until: i64,
    task: Option<u32>,
    rules: u32,
    edit: Option<String>,
    used: bool,
}

/// How often something came up.
#[derive(Debug, Default)]
pub(super) struct Seen {
    pub(super) restarts: u64,
    outlived: u64,
    requests: u64,
    once: u64,
    again: u64,
    of_tool: u64,
    by_pattern: u64,
    edited: u64,
    replies: u64,
    agreed: u64,
    under_freeze: u64,
    lapsed: u64,
    refused: u64,
}

impl Seen {
    pub(super) fn counts(&self) -> [(&'static str, u64); 13] {
        [
            ("a restart", self.restarts),
            ("a grant that ended with its bundle", self.outlived),
            ("a request", self.requests),
            ("a claim of a grant for one call", self.once),
            ("a claim of a grant for the same call again", self.again),
            ("a claim of a grant for a tool", self.of_tool),
            ("a claim of a grant for resources", self.by_pattern),
            ("a claim with a person's arguments or words", self.edited),
            ("a claim of a reply", self.replies),
            ("a claim to which several people had agreed", self.agreed),
            ("a grant that a freeze stopped", self.under_freeze),
            ("a grant that did not hold any more", self.lapsed),
            ("something asked for again after a refusal", self.refused),
        ]
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.restarts += other.restarts;
        self.outlived += other.outlived;
        self.requests += other.requests;
        self.once += other.once;
        self.again += other.again;
        self.of_tool += other.of_tool;
        self.by_pattern += other.by_pattern;
        self.edited += other.edited;
        self.replies += other.replies;
        self.agreed += other.agreed;
        self.under_freeze += other.under_freeze;
        self.lapsed += other.lapsed;
        self.refused += other.refused;
    }
}

/// See the [module documentation](self).
pub(super) struct Auditor {
    quorum: usize,
    /// How many bundles have come into force since the first.
    rules: u32,
    runs: [Run; RUNS],
    frozen: BTreeMap<FreezeScope, Frozen>,
    requests: BTreeMap<ApprovalId, Request>,
    pub(super) seen: Seen,
}

type Found = Result<(), String>;

fn wrong(what: &str) -> Found {
    Err(what.to_owned())
}

impl Auditor {
    pub(super) fn new(quorum: usize) -> Self {
        let (frozen, requests, seen) = (BTreeMap::new(), BTreeMap::new(), Seen::default());
        Self { quorum, rules: 0, runs: Default::default(), frozen, requests, seen }
    }

    pub(super) fn sources(&self, run: usize) -> &BTreeSet<String> {
        &self.runs[run].sources
    }

    /// What a request is about.
    pub(super) fn about(&self, approval: ApprovalId) -> Option<Ask> {
        self.requests.get(&approval).map(|request| request.ask)
    }

    pub(super) fn heard(&mut self, run: usize, source: String) {
        self.runs[run].sources.insert(source);
    }

    pub(super) fn spoken(&mut self, run: usize) {
        self.runs[run].spoken += 1;
        self.heard(run, "user".to_owned());
    }

    pub(super) fn reloaded(&mut self) {
        self.rules += 1;
        // The question is another one under other rules.
        self.runs.iter_mut().for_each(|run| run.refused.clear());
    }

    pub(super) fn pass(&mut self, micros: i64) {
        for run in 0..RUNS {
            if self.stops(run).is_none() {
                self.runs[run].clock += micros;
            }
        }
    }

    pub(super) fn ordered(&mut self, scope: &FreezeScope, order: Order) {
        match order {
            Order::Freeze => drop(self.frozen.insert(scope.clone(), Frozen::Everything)),
            Order::ReleaseReads => {
                self.frozen.entry(scope.clone()).and_modify(|stops| *stops = Frozen::SideEffects);
            }
            Order::Release => drop(self.frozen.remove(scope)),
        }
    }

    /// What the freezes stop a run from.
    fn stops(&self, run: usize) -> Option<Frozen> {
        let covers = |scope: &FreezeScope| match scope {
            FreezeScope::All => true,
            FreezeScope::Principal(name) => name == PRINCIPALS[run],
            FreezeScope::Run(id) => *id == run_id(run),
        };
        self.frozen.iter().filter(|(scope, _)| covers(scope)).map(|(_, stops)| *stops).max()
    }

    /// A person said yes, and that was taken.
    pub(super) fn granted(
        &mut self,
        id: ApprovalId,
        who: &str,
        (scope, lasts, edit): (GrantScope, Lasts, Option<Edit>),
        look: Option<&Look>,
    ) -> Found {
        let (quorum, rules) = (self.quorum, self.rules);
        let Some(request) = self.requests.get_mut(&id) else { return wrong("a yes to nothing") };
        let run = &self.runs[request.run];
        if !matches!(request.stands, Stands::Open) {
            return wrong("a yes to what was decided");
        }
        if run.clock - request.at > REQUEST {
            return wrong("a yes to a request that had lapsed");
        }
        if request.rules != rules {
            return wrong("a yes to a request under another bundle");
        }
        if look.is_none_or(|look| look.sources != run.sources) {
            return wrong("a yes to something else than was shown");
        }
        if (quorum > 1 || request.ask.tool().is_none()) && scope != GrantScope::Once {
            return wrong("a yes to more than one call or reply where that needs more");
        }
        request.agreed.retain(|_, sources| *sources == run.sources);
        if request.agreed.insert(who.to_owned(), run.sources.clone()).is_some() {
            return wrong("a person agreed twice");
        }
        if request.agreed.len() >= quorum {
            let until = run.clock + if lasts == Lasts::Usual { USUAL } else { LONGEST };
            let task = (lasts == Lasts::Task).then_some(run.spoken);
            let edit = edit.map(|edit| match edit {
                Edit::Arguments(arguments) => arguments.to_string(),
                Edit::Text(text) => text,
            });
            let sources = run.sources.clone();
            request.stands = Stands::Granted(Yes { scope, sources, until, task, rules, edit, used: false });
        }
        Ok(())
    }

    /// A person said something else, and that was taken.
    pub(super) fn said(&mut self, id: ApprovalId, says: &Says) -> Found {
        let Some(request) = self.requests.get_mut(&id) else { return wrong("an answer to nothing") };
        let open = matches!(request.stands, Stands::Open) && request.rules == self.rules;
        request.stands = match says {
            Says::Refuse if open => {
                self.runs[request.run].refused.insert(request.ask);
                Stands::Refused
            }
            Says::Answer if open => Stands::Answered,
            Says::Revoke if matches!(request.stands, Stands::Granted(_)) => Stands::Revoked,
            _ => return wrong("an answer to what was decided"),
        };
        Ok(())
    }

    /// An agent asked for something and got an answer.
    pub(super) fn asked(&mut self, run: usize, ask: Ask, told: &Told) -> Found {
        if told.ahead.is_none() && told.claimed.is_none() {
            self.withheld(run, ask)?;
        }
        if let Some(id) = told.waits {
            self.waits(run, ask, id)?;
        }
        if self.runs[run].refused.contains(&ask) {
            self.seen.refused += 1;
            if told.ahead.is_some() {
                return wrong("it went ahead after a refusal");
            }
        }
        match (&told.ahead, told.claimed) {
            (None, None) => Ok(()),
            (None, Some(_)) => wrong("a claim of what did not go ahead"),
            (Some(_), _) if self.is_stopped(run, ask) => wrong("it went ahead under a freeze"),
            (Some(_), None) if needs_grant(run, ask) => wrong("it went ahead without a claim"),
            (Some(content), Some(id)) => self.claimed(run, ask, content, id),
            (Some(_), None) => {
                if ask == Ask::Read {
                    self.heard(run, "tool read".to_owned());
                }
                Ok(())
            }
        }
    }

    fn is_stopped(&self, run: usize, ask: Ask) -> bool {
        match self.stops(run) {
            Some(Frozen::Everything) => true,
            Some(Frozen::SideEffects) => ask.has_side_effect(),
            None => false,
        }
    }

    fn waits(&mut self, run: usize, ask: Ask, id: ApprovalId) -> Found {
        if let Some(known) = self.requests.get(&id) {
            return match known.run == run && known.ask == ask {
                // While it is frozen nothing is judged again.
                true if known.rules != self.rules && !self.is_stopped(run, ask) => {
                    wrong("it waits for an answer under another bundle")
                }
                true => Ok(()),
                false => wrong("it waits for the answer to something else"),
            };
        }
        if self.runs[run].refused.contains(&ask) {
            return wrong("a person was asked again about what was refused");
        }
        self.seen.requests += 1;
        let (at, rules, agreed) = (self.runs[run].clock, self.rules, BTreeMap::new());
        self.requests.insert(id, Request { run, ask, at, rules, agreed, stands: Stands::Open });
        self.runs[run].latest.insert(ask, id);
        Ok(())
    }

    /// Nothing went ahead: then no grant that is certain to cover it may have held.
    fn withheld(&mut self, run: usize, ask: Ask) -> Found {
        let Some(id) = self.runs[run].latest.get(&ask) else { return Ok(()) };
        let request = &self.requests[id];
        let Stands::Granted(yes) = &request.stands else { return Ok(()) };
        let of_resources = matches!(yes.scope, GrantScope::Effects(_) | GrantScope::Pattern(_));
        let taken_in = self.runs[run].sources.iter().any(|source| source != "user");
        if of_resources && (POLICIES[run] == "held" || taken_in) {
            // The policy holds the call as well, or what the run has taken in does, and neither for a resource.
            return Ok(());
        }
        let holds = self.holds(request, yes).is_ok();
        if self.is_stopped(run, ask) {
            self.seen.under_freeze += u64::from(holds);
            return Ok(());
        }
        self.seen.lapsed += u64::from(!holds);
        self.seen.outlived += u64::from(yes.rules != self.rules);
        if holds { wrong("a grant that holds was not honoured") } else { Ok(()) }
    }

    /// Whether a yes holds now.
    fn holds(&self, request: &Request, yes: &Yes) -> Found {
        let run = &self.runs[request.run];
        let own = request.ask.tool().filter(|_| yes.scope != GrantScope::Once);
        let own = own.map(|tool| format!("tool {tool}"));
        let shown = |source: &String| yes.sources.contains(source) || own.as_ref() == Some(source);
        if yes.used && yes.scope == GrantScope::Once {
            return wrong("a second claim");
        }
        if yes.rules != self.rules {
            return wrong("a claim under another bundle");
        }
        if run.clock > yes.until {
            return wrong("a claim after its time");
        }
        if yes.task.is_some_and(|task| task != run.spoken) {
            return wrong("a claim after its task");
        }
        if !run.sources.iter().all(shown) {
            return wrong("a claim after the run had seen more");
        }
        Ok(())
    }

    fn claimed(&mut self, run: usize, ask: Ask, content: &str, id: ApprovalId) -> Found {
        let Some(request) = self.requests.get(&id) else { return wrong("a claim of nothing") };
        let yes = match &request.stands {
            Stands::Granted(yes) => yes,
            Stands::Open => return wrong("a claim without a grant"),
            Stands::Refused | Stands::Answered => return wrong("a claim of what was not granted"),
            Stands::Revoked => return wrong("a claim after a revocation"),
        };
        if request.run != run {
            return wrong("a claim by another run");
        }
        self.holds(request, yes)?;
        let covers = match &yes.scope {
            GrantScope::Once | GrantScope::Arguments => request.ask == ask,
            GrantScope::Tool(tool) => ask.tool() == Some(tool),
            GrantScope::Effects(held) => names(held, ask, |granted, path| granted == path),
            GrantScope::Pattern(held) => names(held, ask, |granted, path| {
                granted.strip_suffix('*').is_some_and(|folder| path.starts_with(folder))
            }),
        };
        if !covers {
            return wrong("a claim by another call");
        }
        let with = yes.edit.clone().unwrap_or_else(|| ask.content());
        if content != with {
            return wrong("it went ahead with something else than was granted");
        }
        let seen = &mut self.seen;
        match &yes.scope {
            GrantScope::Once => seen.once += 1,
            GrantScope::Arguments => seen.again += u64::from(yes.used),
            GrantScope::Tool(_) => seen.of_tool += 1,
            GrantScope::Effects(_) | GrantScope::Pattern(_) => seen.by_pattern += 1,
        }
        seen.edited += u64::from(yes.edit.is_some());
        seen.replies += u64::from(ask.tool().is_none());
        seen.agreed += u64::from(self.quorum > 1);
        if let Some(Request { stands: Stands::Granted(yes), .. }) = self.requests.get_mut(&id) {
            yes.used = true;
        }
        Ok(())
    }
}

/// Whether something goes ahead by a grant only.
fn needs_grant(run: usize, ask: Ask) -> bool {
    match ask {
        Ask::Send(_) => POLICIES[run] == "held",
        Ask::Remove(_) | Ask::Reply(_) => true,
        Ask::Read | Ask::Short => false,
    }
}

/// Whether what was granted names the path that a call is about.
fn names(held: &[GrantedEffects], ask: Ask, fits: impl Fn(&str, &str) -> bool) -> bool {
    let Ask::Remove(number) = ask else { return false };
    let path = format!("path {}{number}", super::FOLDER);
    held.iter().flat_map(|held| &held.resources).any(|granted| fits(granted, &path))
}
