//! The Simulation Runner: plan and policies, what became of each step, a request that is judged as one types it.

use maud::{Markup, html};
use portcullis_core::event::Enforced;
use portcullis_core::verdict::Verdict;

use crate::editor::{self, Draft};
use crate::foreign::{sentence, shown, start};
use crate::frame::csrf;
use crate::marks::{Standing, gate_mark, note, verdict};
use crate::outcome::{self, Outcome};
use crate::policies::encoded;

/// What a cell shows of a result, in characters.
const RESULT_CHARS: usize = 220;
/// Rows of a trace that are shown; the run has all of them.
const TRACE_MAX: usize = 120;

/// What can be simulated.
#[derive(Debug, Default, Clone)]
pub struct Choice {
    /// Names of plans.
    pub plans: Vec<String>,
    /// Names of policies.
    pub policies: Vec<String>,
    /// The plan that is chosen.
    pub plan: String,
    /// The policy that is chosen.
    pub policy: String,
    /// The one beside it.
    pub beside: String,
    /// One step at a time.
    pub stepwise: bool,
    /// Goes on after a step that does not happen.
    pub go_on: bool,
    /// A simulated approver grants what is held.
    pub approve: bool,
}

/// A step of a plan.
#[derive(Debug, Clone)]
pub struct Step {
    /// The tool; none for a thinking step.
    pub tool: Option<String>,
    /// What the agent says it is about to do.
    pub action: String,
    /// Its arguments, as JSON.
    pub args: String,
}

/// What became of a step under one policy.
#[derive(Debug, Clone)]
pub struct Cell {
    /// The verdict.
    pub verdict: Verdict,
    /// What was done.
    pub enforced: Enforced,
    /// The deciding rule.
    pub rule: Option<String>,
    /// Its reason.
    pub message: Option<String>,
    /// What the tool returned.
    pub result: Option<String>,
}

/// A row of a trace, in the columns of the audit log.
#[derive(Debug, Clone)]
pub struct Trace {
    /// The step.
    pub step: u32,
    /// What happened.
    pub event_type: String,
    /// What policy decided.
    pub policy_action: String,
    /// Why.
    pub policy_reason: String,
}

/// How a simulation ended under one policy.
#[derive(Debug, Clone)]
pub enum Ended {
    /// It goes on.
    Not,
    /// It came to its end.
    Completed,
    /// A step did not happen: its number, whether it is held, the reason.
    Stopped(u32, bool, String),
    /// The answer is withheld: the reason.
    Withheld(String),
    /// It could not go on.
    Failed(String),
}

/// One policy.
#[derive(Debug, Clone)]
pub struct Side {
    /// Its name.
    pub policy: String,
    /// The run in the record.
    pub run: Option<String>,
    /// What became of each step, as far as it came.
    pub cells: Vec<Option<Cell>>,
    /// The agent's answer.
    pub output: Option<String>,
    /// How it ended.
    pub ended: Ended,
    /// Its trace, at the end.
    pub trace: Vec<Trace>,
}

/// A simulation.
#[derive(Debug, Clone)]
pub struct Watched {
    /// Its number since the daemon began.
    pub number: u64,
    /// What the user asks for.
    pub prompt: String,
    /// The plan's steps.
    pub steps: Vec<Step>,
    /// One or two policies.
    pub sides: Vec<Side>,
    /// It waits for the next step to be asked for.
    pub waits: bool,
}

/// What a request led to.
#[derive(Debug, Clone)]
pub struct Rehearsed {
    /// The request.
    pub request: String,
    /// What is said of its words.
    pub said: Judged,
    /// Steps of the plan that was made of it, its confidence, the word that decided.
    pub plan: (usize, f64, Option<String>),
    /// The steps as far as they came.
    pub steps: Vec<Planned>,
}

/// A step that was planned for a request.
#[derive(Debug, Clone)]
pub struct Planned {
    /// What is planned.
    pub description: String,
    /// Its tool; none for an answer.
    pub tool: Option<String>,
    /// 0 to 1.
    pub risk: f64,
    /// What is said of it.
    pub action: Judged,
    /// What is said of its result, where it has one.
    pub result: Option<Judged>,
}

/// A verdict with its reasons.
#[derive(Debug, Clone)]
pub struct Judged {
    /// The verdict.
    pub verdict: Verdict,
    /// Why.
    pub reasons: Vec<String>,
}

/// Conversations that can be played.
#[derive(Debug, Default)]
pub struct Scenarios {
    /// Id, title, and `benign` or `misuse`.
    pub all: Vec<(String, String, String)>,
    /// The one that was played.
    pub played: Option<Played>,
}

/// A conversation that was played.
#[derive(Debug)]
pub struct Played {
    /// Which.
    pub id: String,
    /// What it is about.
    pub title: String,
    /// The turns as far as it came.
    pub turns: Vec<Turn>,
    /// Turns that were not reached.
    pub left: usize,
    /// The highest level.
    pub reached: String,
    /// The level that a misuse has to reach, and that the others may not exceed.
    pub expected: String,
    /// It is a misuse.
    pub misuse: bool,
    /// It went as it is meant to.
    pub as_expected: bool,
}

/// A turn of a conversation.
#[derive(Debug)]
pub struct Turn {
    /// What the user says.
    pub user: String,
    /// What is said of it.
    pub said: Judged,
    /// The calls, and what is said of them or their results.
    pub calls: Vec<(String, Judged)>,
}

/// The page.
#[derive(Debug, Default)]
pub struct Page {
    /// What can be chosen.
    pub choice: Choice,
    /// The simulation that is shown.
    pub watched: Option<Watched>,
    /// A request that was typed.
    pub request: String,
    /// What it led to.
    pub rehearsed: Option<Rehearsed>,
    /// Conversations that can be played.
    pub scenarios: Scenarios,
    /// Forms.
    pub draft: Draft,
}

/// The page.
#[must_use]
pub fn page(page: &Page) -> Markup {
    html! {
        div .head { div { h1 { "Simulation Runner" } p { "A rehearsed agent meets the real gate, with local tools behind it. Nothing here reaches a network; each simulation is a run in the record." } } }
        @if let Some(told) = &page.draft.told { section { (told.view()) } }
        (choose(page))
        @if let Some(watched) = &page.watched { (watched_view(watched, &page.draft.csrf)) }
        (request(page))
        (scenarios(page))
    }
}

fn choose(page: &Page) -> Markup {
    let choice = &page.choice;
    html! {
        form .panel.pad.simform method="post" action="/simulate" {
            (csrf(&page.draft.csrf))
            div .field { label for="pl" { "Plan" } select #pl name="plan" { @for plan in &choice.plans { option value=(plan) selected[*plan == choice.plan] { (shown(plan)) } } } }
            div .field { label for="p1" { "Policy" } select #p1 name="policy" { @for policy in &choice.policies { option value=(policy) selected[*policy == choice.policy] { (shown(policy)) } } } }
            div .field { label for="p2" { "Beside it" } select #p2 name="beside" { option value="" { "nothing" } @for policy in &choice.policies { option value=(policy) selected[*policy == choice.beside] { (shown(policy)) } } } }
            div .simopts {
                label .check { input type="checkbox" name="go_on" value="yes" checked[choice.go_on]; span { "Go on after a step that is stopped" } }
                label .check { input type="checkbox" name="approve" value="yes" checked[choice.approve]; span { "A simulated approver grants what is held" } }
                label .check { input type="checkbox" name="stepwise" value="yes" checked[choice.stepwise]; span { "One step at a time" } }
            }
            div .row { button .btn.main type="submit" { "Run Simulation" } a .btn href="/simulate/plan" { "Write a plan" } @if !choice.plan.is_empty() { a .btn.plain href={ "/simulate/plan?name=" (encoded(&choice.plan)) } { "Edit this plan" } } }
        }
    }
}

fn watched_view(watched: &Watched, token: &str) -> Markup {
    html! {
        section .simres #sim data-live="sim" aria-labelledby="h-s" {
            (said(watched))
            div .sh { h2 #h-s { "“" (shown(&watched.prompt)) "”" } }
            div .panel.scroll tabindex="0" role="region" aria-label="Trace" {
                table .t.sim {
                    colgroup { col .c1; col .c2; @for _ in &watched.sides { col .c3; } }
                    thead { tr { th .nums scope="col" { "Step" } th scope="col" { "The agent plans" } @for side in &watched.sides { th scope="col" { (shown(&side.policy)) } } } }
                    tbody { @for (place, step) in watched.steps.iter().enumerate() { (row(watched, place, step)) } }
                    tfoot { tr { td {} td .muted { "In all" } @for side in &watched.sides { (total(side)) } } }
                }
            }
            @if watched.waits {
                form .row.under method="post" action={ "/simulate/" (watched.number) } {
                    (csrf(token))
                    button .btn.main type="submit" name="do" value="next" { "Next step" }
                    button .btn type="submit" name="do" value="rest" { "Run to the end" }
                    button .btn.no type="submit" name="do" value="stop" { "Stop" }
                }
            }
            @for side in &watched.sides { (trace(side)) }
        }
    }
}

fn said(watched: &Watched) -> Markup {
    let running = watched.sides.iter().any(|side| matches!(side.ended, Ended::Not));
    html! {
        @if running {
            (note(Standing::Idle, &html! { p { @if watched.waits { b { "Waits for the next step." } } @else { span .spin aria-hidden="true" {} b { "Running …" } " What becomes of each step appears below." } } }))
        } @else {
            @for side in &watched.sides {
                @match &side.ended {
                    Ended::Not => {}
                    Ended::Completed => { (note(Standing::Ok, &html! { p { b { "Simulation Completed!" } " " (shown(&side.policy)) ": all " (watched.steps.len()) " steps went ahead." } })) }
                    Ended::Stopped(step, held, why) => { (note(if *held { Standing::Alert } else { Standing::Bad }, &html! { p { b { @if *held { "Simulation stopped: step " (step) " is held for a person." } @else { "Simulation stopped: step " (step) " violates the policy." } } " " (shown(&side.policy)) ": " (sentence(why)) } })) }
                    Ended::Withheld(why) => { (note(Standing::Alert, &html! { p { b { "Simulation Completed!" } " " (shown(&side.policy)) ": the answer is withheld: " (sentence(why)) } })) }
                    Ended::Failed(why) => { (note(Standing::Bad, &html! { p { b { "The simulation could not go on." } " " (shown(&side.policy)) ": " (sentence(why)) } })) }
                }
            }
        }
    }
}

fn row(watched: &Watched, place: usize, step: &Step) -> Markup {
    html! {
        tr {
            td .nums.muted { (place + 1) }
            td {
                p .mono { b { @match &step.tool { Some(tool) => { (shown(tool)) } None => { "thinks" } } } }
                p .foreign { (shown(&step.action)) }
                @if step.args != "{}" { p .mono.small.muted.wrap { (start(&step.args, RESULT_CHARS)) } }
            }
            @for side in &watched.sides {
                td data-p=(side.policy) {
                    @match side.cells.get(place) {
                        Some(Some(cell)) => { (cell_view(cell)) }
                        _ => { p .muted { @if matches!(side.ended, Ended::Not) { "…" } @else { "not reached" } } }
                    }
                }
            }
        }
    }
}

fn cell_view(cell: &Cell) -> Markup {
    html! {
        p class={ "gmw " (cell.verdict.as_str()) } { (gate_mark(cell.verdict, Some(cell.enforced))) (cell.verdict.as_str()) }
        @if let Some(message) = &cell.message { p { (sentence(message)) } }
        @if let Some(rule) = &cell.rule { p .dig { (shown(rule)) } }
        @if let Some(result) = &cell.result { p .foreign.small { (start(result, RESULT_CHARS)) } }
    }
}

fn total(side: &Side) -> Markup {
    let cells: Vec<&Cell> = side.cells.iter().flatten().collect();
    let count = |is: fn(&Cell) -> bool| cells.iter().filter(|cell| is(cell)).count();
    let ahead = count(|cell| cell.enforced.proceeds());
    let held = count(|cell| cell.enforced == Enforced::Held);
    let stopped = cells.len() - ahead - held;
    html! {
        td data-p=(side.policy) {
            b { (ahead) " executed" @if held > 0 { ", " (held) " held" } @if stopped > 0 { ", " (stopped) " stopped" } }
            @if let Some(run) = &side.run { " · " a href={ "/runs/" (run) } { "run " (run.get(..8).unwrap_or(run)) } " · " a href={ "/verification?show=yes&run=" (run) } { "verify" } " · " a href={ "/audit?show=yes&run=" (run) } { "export" } }
        }
    }
}

fn trace(side: &Side) -> Markup {
    html! {
        @if !side.trace.is_empty() {
            details .gapped {
                summary { "Trace under " (shown(&side.policy)) ", " (side.trace.len()) " events" }
                div .panel.scroll tabindex="0" role="region" aria-label="Trace, event by event" {
                    table .t.tracet.cards {
                        thead { tr { th .nums scope="col" { "step_number" } th scope="col" { "event_type" } th scope="col" { "policy_action" } th scope="col" { "policy_reason" } } }
                        tbody { @for row in side.trace.iter().take(TRACE_MAX) {
                            tr { td .nums { (row.step) } td .mono { (row.event_type) } td { (crate::audit::action(&row.policy_action)) } td .wrap { (sentence(&row.policy_reason)) } }
                        } }
                    }
                }
            }
        }
        @if let Some(output) = &side.output {
            details .gapped { summary { "Answer under " (shown(&side.policy)) } div .panel.pad { div .foreign { (shown(output)) } } }
        }
    }
}

fn request(page: &Page) -> Markup {
    html! {
        section aria-labelledby="h-r" #request {
            div .sh { h2 #h-r { "Type a request and watch it judged" } p { "a plan is made of its words, by keywords; nothing is done or recorded" } }
            div .panel.pad.form {
                form .row.ask1 method="get" action="/simulate" {
                    label .sr for="rq" { "Request" }
                    input type="hidden" name="policy" value=(page.choice.policy);
                    input #rq type="text" name="request" value=(page.request) maxlength="4000" placeholder="Hack the mail server" data-ask="";
                    button .btn type="submit" { "Judge it" }
                }
                div #judged data-part="judged" { @if let Some(rehearsed) = &page.rehearsed { (judged(rehearsed, &page.choice.policy)) } }
            }
        }
    }
}

fn scenarios(page: &Page) -> Markup {
    let chosen = page.scenarios.played.as_ref().map_or("", |played| played.id.as_str());
    html! {
        section aria-labelledby="h-sc" #scenarios {
            div .sh { h2 #h-sc { "Play a scenario" } p { "a conversation, turn by turn, under the policy that is chosen above; it ends where it is stopped, and nothing is recorded" } }
            div .panel.pad.form {
                form .row.ask1 method="get" action="/simulate#scenarios" {
                    input type="hidden" name="policy" value=(page.choice.policy);
                    label .sr for="sc" { "Scenario" }
                    select #sc name="scenario" {
                        @for (id, title, class) in &page.scenarios.all { option value=(id) selected[id == chosen] { (title) @if class == "misuse" { " (misuse)" } } }
                    }
                    button .btn type="submit" { "Play it" }
                }
                @if let Some(played) = &page.scenarios.played { (played_view(played, &page.choice.policy)) }
            }
        }
    }
}

fn played_view(played: &Played, policy: &str) -> Markup {
    let wanted = if played.misuse { "has to reach at least" } else { "may reach at most" };
    let standing = if played.as_expected { Standing::Ok } else { Standing::Alert };
    html! {
        (note(standing, &html! { p { b { (played.title) } " reaches " b { (played.reached) } "; it " (wanted) " " (played.expected) ". Under " (shown(policy)) "." @if played.misuse && !played.as_expected { " The levels are those of a bundle whose scores stop runs; where scores only advise, less is reached." } } }))
        ol .trace {
            @for (number, turn) in played.turns.iter().enumerate() {
                li { (verdict(turn.said.verdict)) span { span .muted { (number + 1) ". the user: " } span .foreign { (shown(&turn.user)) } (reasons(&turn.said)) } }
                @for (tool, judged) in &turn.calls { li { (verdict(judged.verdict)) span { "the agent: " code { (shown(tool)) } (reasons(judged)) } } }
            }
            @if played.left > 0 { li { span .muted { "not reached" } span .muted { (played.left) @if played.left == 1 { " turn" } @else { " turns" } } } }
        }
    }
}

fn judged(rehearsed: &Rehearsed, policy: &str) -> Markup {
    let (steps, confidence, because) = &rehearsed.plan;
    let left = steps - rehearsed.steps.len();
    html! {
        ol .trace {
            li { (verdict(rehearsed.said.verdict)) span { "the request" (reasons(&rehearsed.said)) } }
            li { span .muted { "plan" } span { (steps) " steps, confidence " (format!("{confidence:.2}")) @match because { Some(word) => { ", because of " code { (shown(word)) } } None => { ", no kind of task is named" } } ", under " (shown(policy)) } }
            @for (number, step) in rehearsed.steps.iter().enumerate() {
                li { (verdict(step.action.verdict)) span { (number + 1) ". " (shown(&step.description)) @if let Some(tool) = &step.tool { ": " code { (shown(tool)) } ", risk " (format!("{:.1}", step.risk)) } (reasons(&step.action)) } }
                @if let Some(judged) = &step.result && judged.verdict != Verdict::Allow { li { (verdict(judged.verdict)) span { "its result" (reasons(judged)) } } }
            }
            @if left > 0 { li { span .muted { "not reached" } span .muted { (left) @if left == 1 { " step" } @else { " steps" } } } }
        }
    }
}

fn reasons(judged: &Judged) -> Markup {
    html! { @for reason in &judged.reasons { br; span .soft { (sentence(reason)) } } }
}

/// The editor of a plan.
#[derive(Debug, Default)]
pub struct PlanEditing {
    /// It does not exist yet.
    pub new: bool,
    /// Its file.
    pub path: String,
    /// Its name.
    pub name: String,
    /// What the user asks for.
    pub prompt: String,
    /// Its steps, and room for more.
    pub steps: Vec<Step>,
    /// The tools that there are.
    pub tools: Vec<String>,
    /// What saving it would mean.
    pub outcome: Outcome,
    /// Forms.
    pub draft: Draft,
}

/// The editor of a plan.
#[must_use]
pub fn plan(page: &PlanEditing) -> Markup {
    let heading = if page.new { "New plan" } else { page.name.as_str() };
    html! {
        div .head { div { p .crumbs { a href="/simulate" { "Simulation Runner" } " / " (shown(heading)) } h1 { (shown(heading)) } p { "What a rehearsed agent will try, step by step. A step without a tool is thinking; if it is the last one, it is the answer." } } }
        (editor::above(&page.draft))
        form #draft .panel.pad.form method="post" action="/simulate/plan" data-draft="" {
            (editor::fields(&page.draft))
            @if page.new { input type="hidden" name="new" value="yes"; }
            div .two {
                div .field { label for="n" { "Name" } input #n type="text" name="name" value=(page.name) maxlength="200" readonly[!page.new] autocomplete="off"; }
                div .field { label for="pr" { "What the user asks for" } input #pr type="text" name="prompt" value=(page.prompt) maxlength="2000" autocomplete="off"; }
            }
            @for (place, step) in page.steps.iter().enumerate() {
                fieldset .planstep { legend { "Step " (place + 1) }
                    div .field { label for={ "a" (place) } { "The agent says" } input id={ "a" (place) } type="text" name="action" value=(step.action) maxlength="2000" autocomplete="off"; }
                    div .field { label for={ "t" (place) } { "Tool" } select id={ "t" (place) } name="tool" { option value="" { "none: it thinks" } @for tool in &page.tools { option value=(tool) selected[step.tool.as_deref() == Some(tool)] { (shown(tool)) } } } }
                    div .field { label for={ "j" (place) } { "Arguments, JSON" } input .mono id={ "j" (place) } type="text" name="args" value=(step.args) maxlength="8000" autocomplete="off" spellcheck="false"; }
                }
            }
            p .hint { "Steps in which nothing is said are left out. Saving leaves room for more." }
        }
        (editor::save(&page.draft, "draft", "Save plan", "/simulate"))
        (outcome::view(&page.outcome))
    }
}
