//! Which request of the client is which at the servers, and back.
//!
//! Ids are the client's own on its side and numbers of the endpoint on the servers', because clients without sessions may
//! use an id at the same time, and so may servers for what they ask. The same number stands for a request's progress token.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use portcullis_wire::mcp::{SUBSCRIPTIONS_LISTEN, TOOLS_CALL};
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::sync::Notify;

/// Requests of one client that are not answered yet, and their bytes.
pub(super) const OPEN_MAX: usize = 1024;
const OPEN_BYTES_MAX: usize = 64 << 20;
/// Questions of servers that are not answered yet.
const QUESTIONS_MAX: usize = 256;
/// Addresses, beginnings of addresses, and tasks that are remembered of one server, of each kind.
const PLACES_MAX: usize = 16 * 1024;
/// What ids of questions begin with on the client's side.
const QUESTION: &str = "portcullis-";

/// A request of the client.
#[derive(Debug, Clone)]
pub(super) struct Open {
    /// The client's id, as sent.
    pub(super) id: Box<RawValue>,
    /// The client's token for progress.
    pub(super) token: Option<Box<RawValue>>,
    pub(super) stream: u64,
    /// The server that was asked.
    pub(super) server: usize,
    pub(super) method: String,
    /// Of the request as the client sent it.
    pub(super) bytes: usize,
    /// The client does not wait for the answer, and the server need not give one.
    pub(super) given_up: bool,
    /// It is a part of a request to all servers, which has this number.
    pub(super) whole: Option<u64>,
}

/// A request to all servers.
#[derive(Debug)]
pub(super) struct Whole {
    pub(super) id: Box<RawValue>,
    pub(super) stream: u64,
    pub(super) method: String,
    /// The line that asked, for further pages.
    pub(super) line: Vec<u8>,
    /// The answers of each server, page by page; `None` for one that was not asked, or failed.
    pub(super) pages: Vec<Option<Vec<Value>>>,
    /// How much the pages of each server weigh.
    pub(super) weights: Vec<usize>,
    /// Those that have still to answer.
    pub(super) waiting: Vec<usize>,
    /// An error that a server answered.
    pub(super) error: Option<Box<RawValue>>,
    pub(super) asked: Instant,
    /// When the latest of the servers has answered, counted from the question.
    pub(super) latest: Option<Duration>,
    /// Told of each answer.
    pub(super) came: Arc<Notify>,
    /// The client was answered; what comes now is late.
    pub(super) told: bool,
    /// The client does not wait for it, so that nobody who has not answered is late.
    pub(super) given_up: bool,
}

#[derive(Debug, Default)]
pub(super) struct Routes {
    next: u64,
    open: BTreeMap<u64, Open>,
    wholes: HashMap<u64, Whole>,
    questions: HashMap<u64, (usize, Box<RawValue>)>,
    /// Where resources, beginnings of addresses, and tasks are.
    resources: HashMap<String, usize>,
    templates: Vec<(String, usize)>,
    tasks: HashMap<String, usize>,
    /// How many of each kind are remembered of a server.
    places: HashMap<(&'static str, usize), usize>,
}

/// Too much is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{OPEN_MAX} requests, or {} MiB of them, are not answered yet; wait for one of them", OPEN_BYTES_MAX >> 20)]
pub(super) struct Full;

impl Routes {
    pub(super) fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// Notes a request; its number.
    pub(super) fn open(&mut self, open: Open) -> Result<u64, Full> {
        // A single request of any size is let in: it is bounded by the limit of messages.
        let bytes: usize = self.open.values().map(|open| open.bytes).sum();
        let fits = bytes == 0 || bytes + open.bytes <= OPEN_BYTES_MAX;
        if self.open.len() >= OPEN_MAX {
            let oldest = self.open.iter().find(|(_, open)| open.given_up).map(|(number, _)| *number);
            self.open.remove(&oldest.ok_or(Full)?);
        }
        if !fits {
            return Err(Full);
        }
        let number = self.number();
        self.open.insert(number, open);
        Ok(number)
    }

    pub(super) fn open_whole(&mut self, whole: Whole) -> Result<u64, Full> {
        if self.wholes.len() >= OPEN_MAX {
            return Err(Full);
        }
        let number = self.number();
        self.wholes.insert(number, whole);
        Ok(number)
    }

    pub(super) fn whole(&mut self, number: u64) -> Option<&mut Whole> {
        self.wholes.get_mut(&number)
    }

    pub(super) fn take_whole(&mut self, number: u64) -> Option<Whole> {
        self.wholes.remove(&number)
    }

    /// The request that a response answers.
    pub(super) fn answered(&mut self, number: u64) -> Option<Open> {
        self.open.remove(&number)
    }

    pub(super) fn get(&self, number: u64) -> Option<&Open> {
        self.open.get(&number)
    }

    /// Keeps what servers still owe of a request to all that was answered, unless they owe nothing. What they owe of an
    /// earlier one is given up: the later one brings the same.
    pub(super) fn keep_late(&mut self, number: u64) {
        let Some(whole) = self.wholes.get(&number) else { return };
        let (method, owes) = (whole.method.clone(), !whole.waiting.is_empty());
        let is_over = |other: u64, whole: &Whole| match other == number {
            true => !owes,
            false => whole.told && whole.method == method,
        };
        let over: Vec<u64> = self
            .wholes
            .iter()
            .filter(|(other, whole)| is_over(**other, whole))
            .map(|(other, _)| *other)
            .collect();
        self.wholes.retain(|number, _| !over.contains(number));
        self.open.retain(|_, open| open.whole.is_none_or(|whole| !over.contains(&whole)));
    }

    /// Takes a subscription that a server ends, by the number that it knows.
    pub(super) fn subscription(&mut self, server: usize, id: &RawValue) -> Option<Open> {
        let number: u64 = id.get().parse().ok()?;
        let open = self.open.get(&number)?;
        (open.server == server && open.method == SUBSCRIPTIONS_LISTEN).then(|| self.open.remove(&number))?
    }

    /// Whether the client waits for nothing.
    pub(super) fn is_idle(&self) -> bool {
        // None: the client has left it.
        let is_late = |whole: u64| self.wholes.get(&whole).is_none_or(|whole| whole.told);
        self.open.values().all(|open| open.given_up || open.whole.is_some_and(is_late))
            && self.wholes.values().all(|whole| whole.told)
    }

    /// The client gives up a request, which it names by its id; its numbers, several where all servers were asked.
    pub(super) fn given_up(&mut self, id: &RawValue) -> Vec<u64> {
        let of = self.wholes.values_mut().filter(|whole| whole.id.get() == id.get());
        of.for_each(|whole| whole.given_up = true);
        let same = self.open.iter().filter(|(_, open)| open.id.get() == id.get());
        let numbers: Vec<u64> = same.map(|(number, _)| *number).collect();
        for number in &numbers {
            if let Some(open) = self.open.get_mut(number) {
                open.given_up = true;
            }
        }
        numbers
    }

    /// The client no longer reads a stream: it waits for nothing that all servers were asked on it.
    pub(super) fn leave_wholes(&mut self, stream: u64) {
        self.wholes.retain(|_, whole| whole.stream != stream);
    }

    /// Whether a server still owes its part of what all were asked.
    pub(super) fn is_asked(&self, server: usize) -> bool {
        self.open.values().any(|open| open.server == server && open.whole.is_some())
    }

    /// The numbers of the requests of a stream.
    pub(super) fn of_stream(&self, stream: u64) -> Vec<(u64, usize)> {
        let of = self.open.iter().filter(|(_, open)| open.stream == stream);
        of.map(|(number, open)| (*number, open.server)).collect()
    }

    /// The stream of the latest request to a server: what the server says while it works belongs there.
    pub(super) fn latest_of(&self, server: usize) -> Option<u64> {
        let works = |open: &&Open| {
            let is_worked_on = open.whole.is_none() && !open.given_up;
            open.server == server && is_worked_on && open.method != SUBSCRIPTIONS_LISTEN
        };
        let mut latest = self.open.values().rev().filter(works);
        let call = latest.clone().find(|open| open.method == TOOLS_CALL);
        call.or_else(|| latest.next()).map(|open| open.stream)
    }

    /// Notes what a server asks; the id that the client gets.
    pub(super) fn ask(&mut self, server: usize, id: &RawValue) -> String {
        let number = self.number();
        self.questions.insert(number, (server, id.to_owned()));
        question(number)
    }

    /// The oldest question, where there are too many: nobody answers it.
    pub(super) fn unanswered(&mut self) -> Option<(usize, Box<RawValue>)> {
        let oldest = self.questions.keys().min().copied().filter(|_| self.questions.len() > QUESTIONS_MAX)?;
        self.questions.remove(&oldest)
    }

    /// The question that the client answers with this id.
    pub(super) fn question(&mut self, id: &str) -> Option<(usize, Box<RawValue>)> {
        self.questions.remove(&id.strip_prefix(QUESTION)?.parse().ok()?)
    }

    /// The id that the client got for what a server asked.
    pub(super) fn withdrawn(&mut self, server: usize, id: &RawValue) -> Option<String> {
        let same = |(of, asked): &(usize, Box<RawValue>)| *of == server && asked.get() == id.get();
        let number =
            self.questions.iter().find(|(_, question_of)| same(question_of)).map(|(number, _)| *number)?;
        self.questions.remove(&number);
        Some(question(number))
    }

    /// Notes where the resources and tasks of a result are.
    pub(super) fn learn(&mut self, server: usize, method: &str, result: &Value) {
        let texts = |field: &str, name: &str| -> Vec<String> {
            let entries = result.get(field).and_then(Value::as_array).into_iter().flatten();
            entries.filter_map(|entry| entry.get(name)?.as_str().map(str::to_owned)).collect()
        };
        match method {
            "resources/list" => {
                for uri in texts("resources", "uri") {
                    if !self.resources.contains_key(&uri) && self.has_place("resource", server) {
                        self.resources.insert(uri, server);
                    }
                }
            }
            "resources/templates/list" => {
                for template in texts("resourceTemplates", "uriTemplate") {
                    let begin = template.split('{').next().unwrap_or_default().to_owned();
                    let place = (begin, server);
                    if !self.templates.contains(&place) && self.has_place("template", server) {
                        self.templates.push(place);
                    }
                }
            }
            TOOLS_CALL => {
                let task =
                    result.get("task").and_then(|task| task.get("taskId")).or_else(|| result.get("taskId"));
                if let Some(task) = task.and_then(Value::as_str)
                    // Another server's task of this name is not this one's to answer for.
                    && !self.tasks.contains_key(task)
                    && self.has_place("task", server)
                {
                    self.tasks.insert(task.to_owned(), server);
                }
            }
            _ => {}
        }
    }

    /// Takes a place for something of a server, if there is one left.
    fn has_place(&mut self, kind: &'static str, server: usize) -> bool {
        let taken = self.places.entry((kind, server)).or_default();
        let has_place = *taken < PLACES_MAX;
        *taken += usize::from(has_place);
        has_place
    }

    /// The server of a resource: the one that listed it, or whose template begins so, the longest first.
    pub(super) fn server_of_resource(&self, uri: &str) -> Option<usize> {
        let listed = self.resources.get(uri).copied();
        listed.or_else(|| {
            let fits = self
                .templates
                .iter()
                .filter(|(begin, _)| !begin.is_empty() && uri.starts_with(begin.as_str()));
            fits.max_by_key(|(begin, _)| begin.len()).map(|(_, server)| *server)
        })
    }

    pub(super) fn server_of_task(&self, task: &str) -> Option<usize> {
        self.tasks.get(task).copied()
    }
}

fn question(number: u64) -> String {
    format!("{QUESTION}{number}")
}
