//! Plans that people write: files of the bundle like those that it came with.

use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Redirect, Response};
use portcullis_console::Role;
use portcullis_console::editor::{Draft, Told};
use portcullis_console::frame::Place;
use portcullis_console::policies::encoded;
use portcullis_console::simulate::{self as pages, PlanEditing, Step};
use serde::Deserialize;
use serde_json::Value;

use super::super::desk::{self, Changes, Checked, Depth, Standing, check, toml_text};
use super::super::policies::{Pressed, draft, file_of, free, press_save, trouble};
use super::super::visitor::{Form, Visitor};
use super::super::{Seen, page as pages_of};

/// Steps that a form has at least, and how many are added to those that say something.
const ROOM: usize = 3;

#[derive(Debug, Default, Deserialize)]
pub(in super::super) struct Which {
    #[serde(default)]
    name: String,
}

struct Given {
    new: bool,
    path: String,
    name: String,
    prompt: String,
    steps: Vec<Step>,
    told: Option<Told>,
}

pub(in super::super) async fn plan(
    State(seen): State<Seen>,
    visitor: Visitor,
    Query(which): Query<Which>,
) -> Response {
    if let Err(refused) = visitor.at_least(Role::Approver) {
        return refused.page(&seen, &visitor).await;
    }
    let standing = match desk::standing(&seen).await {
        Ok(standing) => standing,
        Err(why) => return trouble(&seen, &visitor, &why).await,
    };
    let mut given = Given {
        new: true,
        path: String::new(),
        name: String::new(),
        prompt: String::new(),
        steps: Vec::new(),
        told: None,
    };
    if !which.name.is_empty() {
        let Some(plan) = standing.bundle.plan(&which.name) else {
            return pages_of::nothing_here(State(seen), visitor).await;
        };
        let step = |step: &portcullis_core::bundle::PlanStep| Step {
            tool: step.tool.clone(),
            action: step.action.clone(),
            args: step.args.to_string(),
        };
        given.new = false;
        given.path = file_of(&standing, "plans/", "plan", &["name"], &plan.name).unwrap_or_default();
        given.name.clone_from(&plan.name);
        given.prompt.clone_from(&plan.prompt);
        given.steps = plan.steps.iter().map(step).collect();
    }
    let checked = match check(&seen, &standing, &Changes::new(), Depth::Files).await {
        Ok(checked) => checked,
        Err(why) => return trouble(&seen, &visitor, &why).await,
    };
    rendered(&seen, &visitor, &standing, given, checked).await
}

async fn rendered(
    seen: &Seen,
    visitor: &Visitor,
    standing: &Standing,
    given: Given,
    mut checked: Checked,
) -> Response {
    let status = if given.told.is_some() { StatusCode::CONFLICT } else { StatusCode::OK };
    let mut steps = given.steps;
    let blank = || Step { tool: None, action: String::new(), args: "{}".to_owned() };
    steps.extend(std::iter::repeat_with(blank).take(ROOM));
    let tools = standing.bundle.registry.iter().filter(|tool| tool.enabled).map(|tool| tool.name.clone());
    checked.outcome.lints.retain(|linted| linted.new);
    let page = PlanEditing {
        new: given.new,
        path: given.path,
        name: given.name,
        prompt: given.prompt,
        steps,
        tools: tools.collect(),
        draft: Draft { shown: checked.after, ..draft(visitor, standing, given.told) },
        outcome: checked.outcome,
    };
    pages_of::framed_as(status, seen, visitor, Some(Place::Simulation), "Plan", pages::plan(&page)).await
}

/// A plan as a text.
fn text_of(given: &Given) -> Result<String, String> {
    let mut text = format!(
        "[[plan]]\nname = {}\nprompt = {}\n",
        toml_text::string(&given.name),
        toml_text::string(&given.prompt)
    );
    for (place, step) in given.steps.iter().enumerate() {
        let args: Value = serde_json::from_str(&step.args)
            .map_err(|error| format!("The arguments of step {} are no JSON: {error}.", place + 1))?;
        let args = toml_text::value(&args).filter(|_| args.is_object()).ok_or_else(|| {
            format!("The arguments of step {} are no JSON object without `null`.", place + 1)
        })?;
        text.push_str(&format!("\n[[plan.step]]\naction = {}\n", toml_text::string(&step.action)));
        if let Some(tool) = &step.tool {
            text.push_str(&format!("tool = {}\nargs = {args}\n", toml_text::string(tool)));
        }
    }
    Ok(text)
}

/// The file with the plan in it: a file of its own for a new one, in the place of the old entry otherwise.
fn changes(standing: &Standing, given: &mut Given) -> Result<Changes, String> {
    let entry = text_of(given)?;
    if given.new {
        given.path = free(standing, "plans/", &given.name);
        return Ok([(given.path.clone(), Some(entry))].into());
    }
    let old = standing.text(&given.path);
    let text = toml_text::with_entry(&old, "plan", "name", &given.name, &entry)
        .ok_or("The plan is written in a way that this form cannot change; edit its file as a text.")?;
    Ok([(given.path.clone(), Some(text))].into())
}

pub(in super::super) async fn save_plan(State(seen): State<Seen>, visitor: Visitor, form: Form) -> Response {
    if let Err(refused) = visitor.at_least(Role::Editor).and_then(|()| form.of(&visitor)) {
        return refused.page(&seen, &visitor).await;
    }
    let standing = match desk::standing(&seen).await {
        Ok(standing) => standing,
        Err(why) => return trouble(&seen, &visitor, &why).await,
    };
    let steps = form.all("action").zip(form.all("tool")).zip(form.all("args"));
    let steps = steps.filter(|((action, tool), _)| !action.trim().is_empty() || !tool.is_empty());
    let mut given = Given {
        new: form.get("new") == "yes",
        path: String::new(),
        name: form.get("name").trim().to_owned(),
        prompt: form.get("prompt").trim().to_owned(),
        steps: steps
            .map(|((action, tool), args)| Step {
                tool: (!tool.is_empty()).then(|| tool.to_owned()),
                action: action.trim().to_owned(),
                args: if args.trim().is_empty() { "{}".to_owned() } else { args.trim().to_owned() },
            })
            .collect(),
        told: None,
    };
    if !given.new {
        let Some(path) = file_of(&standing, "plans/", "plan", &["name"], &given.name) else {
            return pages_of::nothing_here(State(seen), visitor).await;
        };
        given.path = path;
    }
    let changes = match changes(&standing, &mut given) {
        _ if given.new && standing.bundle.plan(&given.name).is_some() => {
            given.told = Some(Told::bad("Not saved.", "There is a plan of that name already."));
            Changes::new()
        }
        _ if given.name.is_empty() || given.steps.is_empty() => {
            given.told = Some(Told::bad("", "A plan has a name and at least one step."));
            Changes::new()
        }
        Ok(changes) => changes,
        Err(why) => {
            given.told = Some(Told::bad("Not saved.", why));
            Changes::new()
        }
    };
    let checked = match check(&seen, &standing, &changes, Depth::Files).await {
        Ok(checked) => checked,
        Err(why) => return trouble(&seen, &visitor, &why).await,
    };
    if given.told.is_none() && form.get("do") == "save" {
        match press_save(&seen, &visitor, &form, &changes, &checked).await {
            Pressed::Saved(_) => {
                return Redirect::to(&format!("/simulate?plan={}", encoded(&given.name))).into_response();
            }
            Pressed::Not(why) => given.told = Some(Told::bad("Not saved.", why)),
        }
    }
    rendered(&seen, &visitor, &standing, given, checked).await
}
