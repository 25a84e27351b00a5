//! One request, whole.

use maud::{Markup, html};
use portcullis_core::display;
use portcullis_core::time::Timestamp;
use portcullis_core::verdict::Verdict;
use serde_json::Value;

use super::decide::{self, Decided, Offer};
use crate::Role;
use crate::foreign::{self, shown};
use crate::marks::{self, Standing, result};
use crate::policies::encoded;
use crate::run::Found;
use crate::when;

/// Longest call that is shown beside the queue, in bytes. A longer one is shown, and decided, on a page of its own.
const CALL_BYTES_INLINE: usize = 64 << 10;
/// Holds calls of tools that nobody has classified.
const UNKNOWN_TOOL: &str = "registry/unknown-tool";
/// Longest word that has to be typed, in characters.
const TYPED_CHARS_MAX: usize = 64;

/// A request with all that a person decides from.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// The approval.
    pub id: String,
    /// What would happen, in our words.
    pub sentence: String,
    /// The run.
    pub run: String,
    /// The tool; empty for a reply.
    pub tool: String,
    /// The reply, where it is one.
    pub reply: Option<String>,
    /// What starts the tool's server.
    pub server: Option<String>,
    /// Where the call is made.
    pub directory: Option<String>,
    /// The arguments, or `None` where they are gone.
    pub arguments: Option<Value>,
    /// What the call carries besides.
    pub continuation: Option<Value>,
    /// What the agent said it was about to do.
    pub planned: Option<String>,
    /// On whose behalf.
    pub principal: String,
    /// The runtime policy.
    pub policy: String,
    /// The rule that asks.
    pub rule: String,
    /// Why it asks.
    pub reason: String,
    /// All findings, the deciding one among them.
    pub findings: Vec<Found>,
    /// What would be allowed instead.
    pub instead: Vec<String>,
    /// What the call would touch, or `None` where that was not read.
    pub touches: Option<Vec<String>>,
    /// The resources that it is held for.
    pub held_for: Vec<String>,
    /// What came before.
    pub before: Vec<Before>,
    /// More came before than that.
    pub earlier: bool,
    /// Where what the agent has seen came from.
    pub labels: Vec<String>,
    /// When it was asked for.
    pub requested_at: Timestamp,
    /// When it lapses.
    pub expires_at: Option<Timestamp>,
    /// The time of the page.
    pub now: Timestamp,
    /// What the bundle requires.
    pub wanted: Wanted,
    /// What may be granted.
    pub offer: Offer,
    /// What became of it, or `None` while it waits.
    pub decided: Option<Decided>,
    /// The digest of all this.
    pub display: String,
    /// What the person had seen when they answered before, where the request changed since.
    pub seen: Option<Seen>,
    /// The page is the one of a long call.
    pub whole: bool,
}

/// Something that came before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Before {
    /// The number of its event.
    pub seq: u64,
    /// The user, the operator, or a tool.
    pub who: String,
    /// What was said, or the arguments.
    pub text: String,
    /// The text goes on.
    pub cut: bool,
    /// What was seen of it, where it ran contained and has ended.
    pub seen: Option<SeenOf>,
}

/// What was seen of a call that ran contained.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeenOf {
    /// The name of the profile.
    pub profile: String,
    /// What it did: `write path /srv/app`.
    pub did: Vec<String>,
    /// What it did besides.
    pub more: usize,
}

/// What the bundle requires of a decision.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wanted {
    /// Roles that may grant.
    pub roles: Vec<String>,
    /// How many people have to agree.
    pub quorum: u32,
    /// Who agreed.
    pub agreed: Vec<String>,
    /// A reason is required.
    pub note: bool,
    /// Not by the person on whose behalf the agent acts.
    pub four_eyes: bool,
}

/// What somebody saw of a request that has changed since.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Seen {
    /// The last event that was shown.
    pub upto: u64,
    /// The labels that were shown.
    pub labels: Vec<String>,
}

/// What would happen, from the effects as they were read: never from what the agent calls it.
#[must_use]
pub fn sentence(tool: &str, is_reply: bool, rule: &str, effects: &[String]) -> String {
    if is_reply {
        return "Let a reply pass that a check holds".to_owned();
    }
    if rule == UNKNOWN_TOOL {
        return format!("Call {tool}, a tool that nobody has classified");
    }
    let Some(first) = effects.first() else { return format!("Call {tool}") };
    let (verb, resource) = first.split_once(' ').unwrap_or(("touch", first));
    let (kind, name) = resource.split_once(' ').unwrap_or(("", resource));
    let verb = match (verb, kind) {
        ("read" | "write" | "delete" | "configure" | "execute" | "pay", _) => capital(verb),
        ("send", "recipient") => "Send a message to".to_owned(),
        ("send", _) => "Send data to".to_owned(),
        _ => format!("{} {kind}", capital(verb)),
    };
    match effects.len() - 1 {
        0 => format!("{verb} {name}"),
        1 => format!("{verb} {name}, and one thing more"),
        more => format!("{verb} {name}, and {more} things more"),
    }
}

fn capital(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(letters).collect()
}

/// What has to be typed before a call is granted that cannot be taken back: the name of what it deletes or pays, as it is
/// displayed, or the verb where the name has no short form.
#[must_use]
pub fn typed_word(effects: &[String]) -> Option<String> {
    let verbs = ["delete", "pay"];
    let (verb, resource) = effects.iter().find_map(|effect| {
        let (verb, resource) = effect.split_once(' ')?;
        verbs.contains(&verb).then_some((verb, resource))
    })?;
    let name = resource.rsplit(['/', ' ']).find(|part| !part.is_empty()).unwrap_or(verb);
    let plain = name.bytes().all(|b| b.is_ascii_graphic()) && name.len() <= TYPED_CHARS_MAX;
    Some(if plain { name.to_owned() } else { verb.to_owned() })
}

impl Request {
    /// How long the texts of the call are together, in bytes.
    #[must_use]
    pub fn call_bytes(&self) -> usize {
        let value = |value: &Option<Value>| value.as_ref().map_or(0, |value| value.to_string().len());
        value(&self.arguments) + value(&self.continuation) + self.reply.as_ref().map_or(0, String::len)
    }

    /// Whether the call is too long to be decided beside the queue.
    #[must_use]
    pub fn is_long(&self) -> bool {
        self.call_bytes() > CALL_BYTES_INLINE
    }

    fn is_new(&self, before: &Before) -> bool {
        self.seen.as_ref().is_some_and(|seen| before.seq > seen.upto)
    }
}

/// The open request.
pub(super) fn page(request: &Request, role: Role, csrf: &str) -> Markup {
    let waits = request.decided.is_none();
    let decides = waits && role >= Role::Approver;
    html! {
        article .panel.ask aria-labelledby="ask-h" data-approval=(request.id) data-display=(request.display) {
            (header(request, decides))
            (why(request, role))
            (touches(request))
            (call(request))
            (before(request))
            @if let Some(decided) = &request.decided {
                (decide::decided(request, decided, role, csrf))
            } @else if !decides {
                section .decide { p { "You look at this as " (role.as_str()) ". An approver decides." } }
            } @else if request.is_long() && !request.whole {
                section .decide {
                    p { "The call is longer than this page. " a href={ "/approvals/" (request.id) "?whole=yes" } { "Open all of it" } " and decide there." }
                }
            } @else {
                (decide::form(request, csrf))
            }
        }
    }
}

fn header(request: &Request, decides: bool) -> Markup {
    let waited = when::seconds_between(request.requested_at, request.now);
    html! {
        header {
            p .row.small {
                (marks::tag(Verdict::Review))
                span .muted {
                    @if request.decided.is_none() { "waiting " span data-age=(waited) { (when::span(waited)) } " · " }
                    a href={ "/runs/" (request.run) } { "run " span .dig { (start_of_id(&request.run)) } }
                    @if let Some(at) = request.expires_at {
                        " · lapses " (when::day_and_minute(at, request.now)) " UTC"
                    }
                }
            }
            h1 #ask-h tabindex="-1" { (shown(&request.sentence)) }
            p .soft {
                @if request.reply.is_some() { "The agent of " b { (shown(&request.principal)) } " wants to answer its user." }
                @else {
                    "The agent of " b { (shown(&request.principal)) } " wants to call " code { (shown(&request.tool)) }
                    @if let Some(directory) = &request.directory { " in " code { (shown(directory)) } }
                    "."
                }
            }
            @if decides {
                p .early { button .btn.no type="submit" form="decide" name="do" value="refuse" formnovalidate { "Refuse" kbd data-key="" hidden { "R" } } }
            }
        }
    }
}

fn start_of_id(id: &str) -> &str {
    id.get(..8).unwrap_or(id)
}

fn why(request: &Request, role: Role) -> Markup {
    html! {
        section {
            h2 { "Why it is held" }
            p { (foreign::sentence(&request.reason)) " " span .dig { (shown(&request.rule)) } }
            @let others: Vec<&Found> = request.findings.iter().filter(|found| found.rule != request.rule || found.message != request.reason).collect();
            @if !others.is_empty() {
                p .soft { "Also found, none of it decides:" }
                ul .list.also { @for found in others {
                    li { (marks::verdict(found.verdict)) " " (foreign::sentence(&found.message)) " " span .dig { (shown(&found.rule)) } @if found.answered { " " span .muted { "answered already" } } }
                } }
            }
            @for instead in &request.instead { p .soft { "Instead: " (foreign::sentence(instead)) } }
            @if request.rule == UNKNOWN_TOOL && role >= Role::Editor {
                p .soft { a href={ "/tools/edit?tool=" (encoded(&request.tool)) } { "Classify the tool" } ", and its calls are no longer held for this." }
            }
            (wanted(&request.wanted))
        }
    }
}

fn wanted(wanted: &Wanted) -> Markup {
    let agreed = wanted.agreed.len();
    html! {
        @if wanted.quorum > 1 {
            p .soft {
                (wanted.quorum) " people have to agree; so far " (agreed)
                @if agreed > 0 { ": " (shown(&wanted.agreed.join(", "))) }
                "."
            }
        }
        @if !wanted.roles.is_empty() { p .soft { "Granted by " (shown(&wanted.roles.join(" or "))) "." } }
        @if wanted.four_eyes { p .soft { "Not by the person on whose behalf the agent acts." } }
    }
}

fn touches(request: &Request) -> Markup {
    let is_held = |effect: &str| request.held_for.iter().any(|held| effect.ends_with(held.as_str()));
    html! {
        section {
            h2 { "What it would do" }
            @match request.touches.as_deref() {
                _ if request.reply.is_some() => { p .soft { "Its user reads it. Nothing else is touched." } }
                None => { p .soft { "What it would touch is not known: the run is no longer live." } }
                Some([]) => {
                    p { (result(Standing::Alert, "Nothing could be read from the call")) }
                    p .soft { "That says nothing about what the tool does. Decide from the call itself." }
                }
                Some(effects) => {
                    table .eff { tbody {
                        @for effect in effects {
                            @let (verb, resource) = effect.split_once(' ').unwrap_or(("touch", effect));
                            @let held = is_held(effect);
                            tr {
                                td .verb .alert[held] { (shown(verb)) }
                                td .mono.wrap { (shown(resource)) }
                                td { @if held { (result(Standing::Alert, "held for this")) } }
                            }
                        }
                    } }
                }
            }
        }
    }
}

fn call(request: &Request) -> Markup {
    let long = request.is_long() && !request.whole;
    let hidden = request.reply.as_deref().map_or(0, foreign::marked)
        + [&request.arguments, &request.continuation].into_iter().flatten().map(marked_in).sum::<usize>();
    html! {
        section {
            h2 { @if request.reply.is_some() { "The reply, exactly" } @else { "The call, exactly" } }
            @if let Some(planned) = &request.planned { (foreign::block("what the agent said it was about to do", planned)) }
            @if long {
                p .soft { (when::count(request.call_bytes() as u64)) " bytes." }
            } @else if let Some(reply) = &request.reply {
                (foreign::block("", reply))
            } @else {
                dl .args {
                    dt { "tool" } dd { (shown(&request.tool)) }
                    @if let Some(server) = &request.server { dt { "server" } dd { (shown(server)) } }
                    @match &request.arguments {
                        None => { dt { "arguments" } dd { "erased" } }
                        Some(Value::Object(members)) => { @for (key, value) in members { dt { (shown(key)) } dd { (argument(value)) } } }
                        Some(value) => { dt { "arguments" } dd { (argument(value)) } }
                    }
                    @if let Some(continuation) = &request.continuation { dt { "answers" } dd { (argument(continuation)) } }
                }
            }
            @if hidden > 0 && !long {
                p .small.row {
                    (result(Standing::Alert, &match hidden { 1 => "1 character".to_owned(), n => format!("{n} characters") }))
                    span .soft { "that would be invisible, or would change how others look, shown as marks." }
                }
            }
        }
    }
}

/// What a request would do and with what, for a page that shows several.
pub(super) fn facts(request: &Request) -> Markup {
    html! {
        dl .args.quote {
            @match &request.arguments {
                None => { dt { "arguments" } dd { "erased" } }
                Some(Value::Object(members)) => { @for (key, value) in members { dt { (shown(key)) } dd { (argument(value)) } } }
                Some(value) => { dt { "arguments" } dd { (argument(value)) } }
            }
        }
        @for effect in request.touches.iter().flatten() { p .small.mono { (shown(effect)) } }
    }
}

/// A value of a call: strings as they are, everything else as JSON.
fn argument(value: &Value) -> Markup {
    match value {
        Value::String(text) => shown(text),
        Value::Array(_) | Value::Object(_) => shown(&format!("{value:#}")),
        scalar => html! { (scalar.to_string()) " " small .muted { (kind(scalar)) } },
    }
}

const fn kind(scalar: &Value) -> &'static str {
    match scalar {
        Value::Null => "nothing",
        Value::Bool(_) => "yes or no",
        Value::Number(_) => "number",
        _ => "",
    }
}

fn marked_in(value: &Value) -> usize {
    match value {
        Value::String(text) => foreign::marked(text),
        Value::Array(items) => items.iter().map(marked_in).sum(),
        Value::Object(members) => {
            members.iter().map(|(key, value)| foreign::marked(key) + marked_in(value)).sum()
        }
        _ => 0,
    }
}

/// Arguments as text to edit: what cannot be seen is written as an escape of JSON, so that it stays what it is.
pub(super) fn to_edit(value: &Value) -> String {
    let pretty = format!("{value:#}");
    let escaped = |line: &str| {
        let mut shown = String::new();
        display::each(line, |c, marked| {
            if marked {
                let mut units = [0; 2];
                for unit in c.encode_utf16(&mut units) {
                    shown.push_str(&format!("\\u{unit:04x}"));
                }
            } else {
                shown.push(c);
            }
        });
        shown
    };
    pretty.lines().map(escaped).collect::<Vec<_>>().join("\n")
}

fn before(request: &Request) -> Markup {
    let is_new =
        |label: &str| request.seen.as_ref().is_some_and(|seen| !seen.labels.iter().any(|old| old == label));
    html! {
        section {
            h2 { "What came before" }
            @if request.before.is_empty() { p .soft { "Nothing: it is the first thing in its run." } }
            ul .hist.said {
                @for before in &request.before {
                    li {
                        a .muted href={ "/runs/" (request.run) "?at=" (before.seq) "#e" (before.seq) } { (when::count(before.seq)) }
                        span {
                            b { (shown(&before.who)) } " "
                            span .foreign.inl { (shown(&before.text)) @if before.cut { "…" } }
                            @if request.is_new(before) { " " span .alert { "new since you looked" } }
                            @if let Some(seen) = &before.seen { (seen_of(seen)) }
                        }
                    }
                }
            }
            @if request.earlier { p .small { a href={ "/runs/" (request.run) } { "More came before that" } } }
            p .small.soft {
                "The agent has read: "
                @if request.labels.is_empty() { "nothing" }
                @for (number, label) in request.labels.iter().enumerate() {
                    @if number > 0 { ", " }
                    b { (shown(label)) }
                    @if is_new(label) { " " span .alert { "new since you looked" } }
                }
                "."
            }
        }
    }
}

/// What a contained call really did, below what it was.
fn seen_of(seen: &SeenOf) -> Markup {
    html! {
        span .sub.small {
            "Contained by " (shown(&seen.profile)) ". "
            @if seen.did.is_empty() { "It changed no file and reached nobody, as far as that is seen." }
            @else { "It was seen to: " }
            @for (number, did) in seen.did.iter().enumerate() { @if number > 0 { ", " } code .wrap { (shown(did)) } }
            @if seen.more > 0 { ", and " (when::count(seen.more as u64)) " things more: its event lists them" }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_sentence_says_what_would_happen_and_not_what_the_tool_is_called() {
        let of = |effects: &[&str]| {
            let effects: Vec<String> = effects.iter().map(|&effect| effect.to_owned()).collect();
            sentence("tidy_up", false, "runtime-policy/approval", &effects)
        };
        assert_eq!(of(&["delete path /srv/app"]), "Delete /srv/app");
        assert_eq!(
            of(&["send recipient bob@example.com", "read path /etc/x"]),
            "Send a message to bob@example.com, and one thing more"
        );
        assert_eq!(of(&[]), "Call tidy_up");
        assert!(sentence("x", false, "registry/unknown-tool", &[]).contains("nobody has classified"));
    }

    #[test]
    fn what_cannot_be_taken_back_is_typed() {
        let of = |effect: &str| typed_word(&["read path /x".to_owned(), effect.to_owned()]);
        assert_eq!(of("delete path /srv/app/"), Some("app".into()));
        assert_eq!(of("delete path /srv/größe"), Some("delete".into()), "not every keyboard has it");
        assert_eq!(of("write path /srv/app"), None);
    }

    #[test]
    fn what_a_contained_call_did_is_said_of_it() {
        let of = |did: &[&str], more| {
            let did = did.iter().map(|&did| did.to_owned()).collect();
            seen_of(&SeenOf { profile: "project".into(), did, more }).into_string()
        };
        let html = of(&["write path <b>", "send host example.org"], 2);
        for part in ["It was seen to: ", "write path &lt;b&gt;", "and 2 things more"] {
            assert!(html.contains(part), "{part} in {html}");
        }
        let html = of(&[], 0);
        assert!(html.contains("changed no file") && !html.contains("seen to"), "{html}");
    }

    #[test]
    fn what_is_edited_stays_what_it_is() {
        let value = json!({"a": "x\u{202e}y\u{e0041}", "b": [1, null]});
        let text = to_edit(&value);
        assert!(text.is_ascii(), "{text}");
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
    }
}
