//! Times the decisions of Dogwood's own engine on the workload of `crates/portcullis-session/benches/beside.rs`.
//!
//! `cargo xtask dogwood` builds both, lets them take turns and puts the figures side by side. With a number of policies as
//! its argument, this program prints one line of JSON. The policies deny `read` after one of ten kinds of login to the same
//! server; windows differ, so that no two conditions are the same.

use std::time::{Duration, Instant};

use dogwood_language::{Authorizer, Event, EventBuilder, LoweredPolicySet, PolicySchema, ServiceSchema};
use dogwood_language::{UNPINNED_EVENT_SCHEMA, Value};
use dogwood_local_engine::{DurableError, DurableTemporalEngine, LocalTemporalEngine, Outcome};
use serde_json::json;

/// Events before the first decision that is timed.
const PAST: usize = 200;
/// One event in so many is a login, and logins are of so many kinds.
const LOGIN_EVERY: usize = 5;
const LOGINS: usize = 10;
/// Not a multiple of [`LOGIN_EVERY`], so that some reads are of servers with a login.
const SERVERS: usize = 49;
/// Decisions that are timed, and for how long at most.
const TIMED: usize = 400;
const TIME: Duration = Duration::from_secs(20);

type Failure = Box<dyn std::error::Error>;

fn schema() -> String {
    let input =
        "principal: [User], resource: [Gateway], context: { input: { server: String, document: String } }";
    let action = |name: &str| format!("  action \"{name}\" appliesTo {{ {input} }};\n");
    let logins: String = (0..LOGINS).map(|kind| action(&format!("login_{kind}"))).collect();
    format!("namespace W {{\n  entity User;\n  entity Gateway;\n{logins}{}}}\n", action("read"))
}

fn policies(count: usize) -> String {
    let permit = "permit (principal, action, resource);\n".to_owned();
    let rules = (0..count).map(|number| {
        let (kind, seconds) = (number % LOGINS, 3_600 + number / LOGINS);
        format!(
            "@id(\"r{number}\") forbid (principal, action == W::Action::\"read\", resource) when temporal {{ \
             formerly within {seconds}s W::Action::\"login_{kind}\"::request{{ input.server: context.input.server }} }};\n"
        )
    });
    std::iter::once(permit).chain(rules).collect()
}

fn event(action: &str, server: &str, number: usize) -> EventBuilder {
    let text = |text: &str| Value::String(text.to_owned());
    let document = format!("document {number}");
    Event::builder(&format!("W::Action::{action}"), "request")
        .timestamp(number as i64)
        .principal("W::User::\"ann\"")
        .resource("W::Gateway::\"gate\"")
        .field("input", "server", text(server))
        .field("input", "document", text(&document))
        .request_context("input", "server", text(server))
        .request_context("input", "document", text(&document))
}

fn past(number: usize) -> EventBuilder {
    let server = format!("s{}", number % SERVERS);
    match number % LOGIN_EVERY {
        0 => event(&format!("login_{}", number / LOGIN_EVERY % LOGINS), &server, number),
        _ => event("read", &server, number),
    }
}

/// Percentiles of decisions, each of a read that no rule denies.
fn timed(
    mut decide: impl FnMut(EventBuilder) -> Result<bool, Failure>,
) -> Result<serde_json::Value, Failure> {
    let (begin, mut times) = (Instant::now(), Vec::new());
    while times.len() < TIMED && begin.elapsed() < TIME {
        let next = event("read", "quiet", PAST + times.len());
        let one = Instant::now();
        let allowed = decide(next)?;
        times.push(one.elapsed());
        if !allowed {
            return Err("a read that should be allowed was denied".into());
        }
    }
    times.sort();
    let at = |share: usize| times.get(times.len() * share / 100).map_or(0, |time| time.as_nanos() as u64);
    Ok(json!({"p50_ns": at(50), "p90_ns": at(90), "count": times.len()}))
}

fn letter(allowed: bool) -> char {
    if allowed { 'a' } else { 'd' }
}

/// The incremental engine under the interpreter and Cedar, without a disk.
fn in_memory(count: usize) -> Result<(String, serde_json::Value), Failure> {
    let service = ServiceSchema::builder().event_schema_str(UNPINNED_EVENT_SCHEMA).build()?;
    let lowered = LoweredPolicySet::from_str(
        &policies(count),
        &service,
        &PolicySchema::from_cedarschema_str(&schema())?,
    )?;
    let engine = LocalTemporalEngine::new();
    let mut authorizer = Authorizer::builder(lowered).temporal_engine(engine).build()?;
    let mut decide = |event: EventBuilder| {
        let response = authorizer.is_authorized(&event.build()).ok_or("a request was not decided")?;
        Ok::<_, Failure>(response.allowed())
    };
    let verdicts = (0..PAST).map(|number| decide(past(number)).map(letter)).collect::<Result<String, _>>()?;
    Ok((verdicts, timed(decide)?))
}

/// The durable engine: each event is synced to its log, then decided.
fn durable(count: usize) -> Result<(String, serde_json::Value), Failure> {
    let folder = tempfile::tempdir()?;
    let mut engine = DurableTemporalEngine::open(folder.path().join("store.redb"), 0).map_err(failed)?;
    engine.install(&policies(count), &schema(), Some(UNPINNED_EVENT_SCHEMA), None).map_err(failed)?;
    let mut decide = |event: EventBuilder| match engine.submit(event).map_err(failed)?.outcome {
        Outcome::Decision(response) => Ok::<_, Failure>(response.allowed()),
        Outcome::Recorded => Err("a request was not decided".into()),
    };
    let verdicts = (0..PAST).map(|number| decide(past(number)).map(letter)).collect::<Result<String, _>>()?;
    Ok((verdicts, timed(decide)?))
}

/// Their error is none of the standard library's.
fn failed(error: DurableError) -> Failure {
    format!("{error:?}").into()
}

fn main() -> Result<(), Failure> {
    let count = std::env::args().nth(1).ok_or("how many policies?")?.parse()?;
    let (verdicts, memory) = in_memory(count)?;
    let (again, disk) = durable(count)?;
    if verdicts != again {
        return Err("the two engines decide differently".into());
    }
    let line = json!({"policies": count, "verdicts": verdicts, "memory": memory, "durable": disk});
    println!("{line}");
    Ok(())
}
