//! The Policy Editor: runtime policies by form and text, every other file by text, versions, drafts.

mod drafts;
mod files;
mod lists;
mod versions;

use std::collections::BTreeSet;

use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Redirect, Response};
use portcullis_console::Role;
use portcullis_console::editor::{Draft, Told};
use portcullis_console::frame::Place;
use portcullis_console::outcome::Outcome;
use portcullis_console::policies::{self as pages, Editing, Fields, encoded, keywords};
use portcullis_core::bundle::{Bundle, Direction};
use portcullis_core::policy::RuntimePolicy;
use portcullis_core::tool::SEED_TYPES;
use serde::Deserialize;

use super::desk::{self, Changes, Checked, Depth, NotSaved, Standing, check, toml_text};
use super::visitor::{Form, Visitor};
use super::{Seen, page};

pub(super) use self::drafts::dismiss;
pub(super) use self::files::{file, save_file};
pub(super) use self::lists::{Shown, list};
pub(super) use self::versions::{roll_back, version};

/// Longest note about a change in the record, in characters.
const SAID_CHARS: usize = 600;
/// The order of the values in a policy, for one that is added.
const ORDER: [&str; 6] = [
    "name",
    "allowed_types",
    "max_steps",
    "max_side_effects",
    "approval_for_side_effects",
    "restricted_keywords",
];

#[derive(Debug, Default, Deserialize)]
pub(super) struct Which {
    #[serde(default)]
    name: String,
    #[serde(default)]
    draft: String,
}

/// A page that cannot be made.
pub(super) async fn trouble(seen: &Seen, visitor: &Visitor, why: &str) -> Response {
    let next = maud::html! { a .btn href="/" { "To the overview" } };
    let body = portcullis_console::frame::trouble("The bundle cannot be read", why, &next);
    page::framed_as(StatusCode::INTERNAL_SERVER_ERROR, seen, visitor, None, "The bundle cannot be read", body)
        .await
}

/// What every form that changes the bundle carries.
pub(super) fn draft(visitor: &Visitor, standing: &Standing, told: Option<Told>) -> Draft {
    Draft {
        csrf: visitor.session.csrf.clone(),
        base: standing.digest(),
        shown: standing.digest(),
        closed: standing.closed.as_ref().map(desk::sentence),
        may: visitor.session.role >= Role::Editor,
        told,
    }
}

/// What a change does, in one line for the record.
pub(super) fn said(outcome: &Outcome) -> String {
    let part = |part: &portcullis_core::bundle::Difference| {
        let looser = if part.direction == Direction::Loosened { " (less strict)" } else { "" };
        format!("{}: {} → {}{looser}", part.part, part.old, part.new)
    };
    let all: Vec<String> = outcome.parts.iter().map(part).collect();
    let text = if all.is_empty() { "nothing that judges".to_owned() } else { all.join("; ") };
    text.chars().take(SAID_CHARS).collect()
}

/// The lines of a file that have mistakes.
pub(super) fn wrong(outcome: &Outcome, path: &str) -> BTreeSet<usize> {
    outcome.mistakes.iter().filter(|mistake| mistake.file == path).map(|mistake| mistake.line).collect()
}

/// A text as a browser sends it, with the line ends of a file.
pub(super) fn text_of(form: &Form, name: &str) -> String {
    let mut text = form.get(name).replace("\r\n", "\n");
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text
}

/// What pressing *Save* came to.
pub(super) enum Pressed {
    /// Saved, as that version.
    Saved(u64),
    /// Not, and why.
    Not(String),
}

/// Saves what was checked, if it is what the page showed.
pub(super) async fn press_save(
    seen: &Seen,
    visitor: &Visitor,
    form: &Form,
    changes: &Changes,
    checked: &Checked,
) -> Pressed {
    if !checked.outcome.mistakes.is_empty() {
        return Pressed::Not(NotSaved::Mistakes(checked.outcome.mistakes.clone()).sentence());
    }
    if form.get("shown") != checked.after {
        return Pressed::Not(
            "Look at what it would mean, which stands below, and save again: it is another outcome than the page showed.".to_owned(),
        );
    }
    let what = said(&checked.outcome);
    match seen.console.desk.save(seen, visitor, form.get("base"), changes, &what).await {
        Ok(version) => Pressed::Saved(version),
        Err(why) => Pressed::Not(why.sentence()),
    }
}

fn fields_of(policy: &RuntimePolicy) -> Fields {
    Fields {
        name: policy.name.clone(),
        types: policy.allowed_types.clone(),
        max_steps: policy.max_steps.to_string(),
        max_side_effects: policy.max_side_effects.to_string(),
        approval: policy.approval_for_side_effects,
        keywords: policy.restricted_keywords.join(", "),
        escalate: policy.escalate_on_verification_fail,
    }
}

/// What the form of a new policy says before anybody has changed it.
fn fields_of_new() -> Fields {
    Fields {
        max_steps: "5".to_owned(),
        max_side_effects: "0".to_owned(),
        escalate: true,
        ..Fields::default()
    }
}

fn posted(form: &Form) -> Fields {
    Fields {
        name: form.get("name").trim().to_owned(),
        types: form.all("type").map(ToOwned::to_owned).collect(),
        max_steps: form.get("max_steps").trim().to_owned(),
        max_side_effects: form.get("max_side_effects").trim().to_owned(),
        approval: form.get("approval") == "yes",
        keywords: form.get("keywords").to_owned(),
        escalate: form.get("escalate") == "yes",
    }
}

/// The types of tools that there are.
pub(super) fn types(bundle: &Bundle) -> BTreeSet<String> {
    let used = bundle.registry.iter().map(|tool| tool.tool_type.clone());
    SEED_TYPES.into_iter().map(ToOwned::to_owned).chain(used).collect()
}

/// The file in which the entry of that name is.
pub(super) fn file_of(
    standing: &Standing,
    folder: &str,
    table: &str,
    keys: &[&str],
    name: &str,
) -> Option<String> {
    let mut files = standing.files.keys().filter(|path| path.starts_with(folder) && path.ends_with(".toml"));
    files.find(|path| toml_text::find(&standing.text(path), table, keys, name).is_some()).cloned()
}

/// A file name made of a name.
pub(super) fn slug(name: &str) -> String {
    let mut slug = String::new();
    for c in name.chars().take(60) {
        match c {
            c if c.is_ascii_alphanumeric() => slug.push(c.to_ascii_lowercase()),
            _ if slug.ends_with('-') || slug.is_empty() => {}
            _ => slug.push('-'),
        }
    }
    let slug = slug.trim_end_matches('-');
    if slug.is_empty() { "console".to_owned() } else { slug.to_owned() }
}

/// A path that no file has.
pub(super) fn free(standing: &Standing, folder: &str, name: &str) -> String {
    let base = format!("{folder}{}", slug(name));
    let taken = |path: &String| standing.files.contains_key(path);
    let numbered = (2..).map(|number| format!("{base}-{number}.toml"));
    std::iter::once(format!("{base}.toml")).chain(numbered).find(|path| !taken(path)).unwrap_or(base)
}

/// A policy as a text, as somebody writes it by hand.
fn new_text(fields: &Fields) -> String {
    format!(
        "[[policy]]\nname = {}\nallowed_types = {}\nmax_steps = {}\nmax_side_effects = {}\n\
         approval_for_side_effects = {}\nrestricted_keywords = {}\nescalate_on_verification_fail = {}\n",
        toml_text::string(&fields.name),
        toml_text::strings(fields.types.iter().map(String::as_str)),
        number(&fields.max_steps),
        number(&fields.max_side_effects),
        fields.approval,
        toml_text::strings(keywords(&fields.keywords)),
        fields.escalate
    )
}

/// A number as it was typed, or a text that the loader refuses at its place.
fn number(text: &str) -> String {
    let text = text.trim();
    let digits = !text.is_empty()
        && text.bytes().all(|b| b.is_ascii_digit())
        && (text.len() == 1 || !text.starts_with('0'));
    if digits { text.to_owned() } else { toml_text::string(text) }
}

/// The text with what the form says, value by value, so that comments and order stay.
fn with_fields(text: &str, name: &str, before: Option<&RuntimePolicy>, fields: &Fields) -> Option<String> {
    toml_text::find(text, "policy", &["name"], name)?;
    let mut text = text.to_owned();
    let mut set = |key: &str, value: String| {
        let entry = toml_text::find(&text, "policy", &["name"], name)?;
        text = entry.set(&text, key, &value, &ORDER);
        Some(())
    };
    let old = before.map(fields_of).unwrap_or_default();
    if old.types != fields.types {
        set("allowed_types", toml_text::strings(fields.types.iter().map(String::as_str)))?;
    }
    if old.max_steps != fields.max_steps {
        set("max_steps", number(&fields.max_steps))?;
    }
    if old.max_side_effects != fields.max_side_effects {
        set("max_side_effects", number(&fields.max_side_effects))?;
    }
    if old.approval != fields.approval {
        set("approval_for_side_effects", fields.approval.to_string())?;
    }
    if keywords(&old.keywords) != keywords(&fields.keywords) {
        set("restricted_keywords", toml_text::strings(keywords(&fields.keywords)))?;
    }
    if old.escalate != fields.escalate {
        set("escalate_on_verification_fail", fields.escalate.to_string())?;
    }
    Some(text)
}

/// The editor of a policy, or of a new one.
pub(super) async fn edit(State(seen): State<Seen>, visitor: Visitor, Query(which): Query<Which>) -> Response {
    if let Err(refused) = visitor.at_least(Role::Approver) {
        return refused.page(&seen, &visitor).await;
    }
    let standing = match desk::standing(&seen).await {
        Ok(standing) => standing,
        Err(why) => return trouble(&seen, &visitor, &why).await,
    };
    let new = which.name.is_empty();
    let (path, fields, text) = if new {
        let fields = fields_of_new();
        let text = new_text(&fields);
        (String::new(), fields, text)
    } else {
        let known = standing.bundle.policy(&which.name).map(|policy| fields_of(&policy));
        let path = file_of(&standing, "policies/", "policy", &["name"], &which.name);
        let (Some(fields), Some(path)) = (known, path) else {
            return page::nothing_here(State(seen), visitor).await;
        };
        let text = standing.text(&path);
        (path, fields, text)
    };
    let (fields, text) = drafts::applied(&seen, &which.draft, fields, text).await;
    let given = Given { new, path, fields, text, was: None, told: None };
    shown(&seen, &visitor, &standing, given).await
}

/// A draft as somebody has it before them.
struct Given {
    new: bool,
    path: String,
    fields: Fields,
    text: String,
    /// What the form said when the page was made, where it was posted.
    was: Option<String>,
    told: Option<Told>,
}

/// Brings form and text together: where the form was changed, the text follows it; otherwise the form follows the text.
fn together(standing: &Standing, given: &mut Given) -> Result<(), String> {
    let Some(was) = &given.was else { return Ok(()) };
    let name = given.fields.name.clone();
    if *was != given.fields.together() {
        if given.new {
            given.text = new_text(&given.fields);
            return Ok(());
        }
        let bundle = loaded_with(standing, given);
        let before = bundle.as_ref().and_then(|bundle| bundle.policy(&name));
        let changed = with_fields(&given.text, &name, before.as_deref(), &given.fields);
        given.text = changed.ok_or_else(|| {
            format!("The text has no policy `{name}` that the form could change. The name of a policy is permanent: records refer to it.")
        })?;
        return Ok(());
    }
    if let Some(bundle) = loaded_with(standing, given) {
        let found = match given.new {
            true => bundle.policies().iter().find(|policy| standing.bundle.policy(&policy.name).is_none()),
            false => bundle.policies().iter().find(|policy| policy.name == name),
        };
        if let Some(policy) = found {
            given.fields = fields_of(policy);
        }
    }
    Ok(())
}

fn loaded_with(standing: &Standing, given: &Given) -> Option<Bundle> {
    let path = if given.path.is_empty() { "policies/new.toml".to_owned() } else { given.path.clone() };
    portcullis_session::policy::load(&standing.with(&[(path, Some(given.text.clone()))].into())).ok()
}

/// Names of policies that stand in the file and not in the text: none may go or be renamed.
fn lost(standing: &Standing, path: &str, text: &str) -> Option<String> {
    let old = standing.text(path);
    let in_file =
        |policy: &&RuntimePolicy| toml_text::find(&old, "policy", &["name"], &policy.name).is_some();
    let lost = standing
        .bundle
        .policies()
        .iter()
        .filter(in_file)
        .find(|policy| toml_text::find(text, "policy", &["name"], &policy.name).is_none())?;
    // A text that is no TOML has other mistakes.
    toml::from_str::<toml::Table>(text).is_ok().then(|| lost.name.clone())
}

async fn shown(seen: &Seen, visitor: &Visitor, standing: &Standing, given: Given) -> Response {
    let Given { new, path, fields, text, told, .. } = given;
    let target = if path.is_empty() { free(standing, "policies/", &fields.name) } else { path.clone() };
    // A new policy without a name is no change yet.
    let untouched = new && fields.name.is_empty() && told.is_none();
    let changes: Changes =
        if untouched { Changes::new() } else { [(target.clone(), Some(text.clone()))].into() };
    let checked = match check(seen, standing, &changes, Depth::Runs).await {
        Ok(checked) => checked,
        Err(why) => return trouble(seen, visitor, &why).await,
    };
    rendered(seen, visitor, standing, Given { new, path: target, fields, text, was: None, told }, checked)
        .await
}

async fn rendered(
    seen: &Seen,
    visitor: &Visitor,
    standing: &Standing,
    given: Given,
    checked: Checked,
) -> Response {
    let status = match &given.told {
        Some(told) if told.standing == portcullis_console::marks::Standing::Bad => StatusCode::CONFLICT,
        _ => StatusCode::OK,
    };
    let title = if given.new { "New Policy".to_owned() } else { "Policy".to_owned() };
    let editing = Editing {
        new: given.new,
        wrong: wrong(&checked.outcome, &given.path),
        path: given.path,
        types: types(&standing.bundle).into_iter().collect(),
        fields: given.fields,
        text: given.text,
        draft: Draft { shown: checked.after, ..draft(visitor, standing, given.told) },
        outcome: checked.outcome,
    };
    page::framed_as(status, seen, visitor, Some(Place::Policies), &title, pages::edit(&editing)).await
}

/// A draft is looked at, or saved.
pub(super) async fn save(State(seen): State<Seen>, visitor: Visitor, form: Form) -> Response {
    if let Err(refused) = visitor.at_least(Role::Editor).and_then(|()| form.of(&visitor)) {
        return refused.page(&seen, &visitor).await;
    }
    let standing = match desk::standing(&seen).await {
        Ok(standing) => standing,
        Err(why) => return trouble(&seen, &visitor, &why).await,
    };
    let new = form.get("new") == "yes";
    let fields = posted(&form);
    let path = if new { free(&standing, "policies/", &fields.name) } else { form.get("path").to_owned() };
    if !desk::is_own_path(&path) || !path.starts_with("policies/") {
        return page::nothing_here(State(seen), visitor).await;
    }
    let mut given = Given {
        new,
        path,
        fields,
        text: text_of(&form, "text"),
        was: Some(form.get("was").to_owned()),
        told: None,
    };
    if let Err(why) = together(&standing, &mut given) {
        given.told = Some(Told::bad("Not saved.", why));
    }
    if given.new && given.fields.name.is_empty() {
        given.told = Some(Told::bad("", "A policy has a name: write one."));
    }
    let known = |name: &str| standing.bundle.policy(name).is_some();
    if given.new && known(&given.fields.name) {
        given.told = Some(Told::bad(
            "Not saved.",
            format!(
                "There is a policy `{}` already. Edit that one, or choose another name.",
                given.fields.name
            ),
        ));
    }
    if let Some(name) = lost(&standing, &given.path, &given.text) {
        let why = format!(
            "The name of a policy is permanent, because records refer to it: `{name}` must stay as it is. Nothing was changed."
        );
        given.told = Some(Told::bad("Not saved.", why));
    }
    let changes: Changes = [(given.path.clone(), Some(given.text.clone()))].into();
    let checked = match check(&seen, &standing, &changes, Depth::Runs).await {
        Ok(checked) => checked,
        Err(why) => return trouble(&seen, &visitor, &why).await,
    };
    if given.told.is_none() && form.get("do") == "save" {
        match press_save(&seen, &visitor, &form, &changes, &checked).await {
            Pressed::Saved(version) => {
                let verb = if new { "created" } else { "updated" };
                let to =
                    format!("/policies?saved={version}&verb={verb}&name={}", encoded(&given.fields.name));
                return Redirect::to(&to).into_response();
            }
            Pressed::Not(why) => given.told = Some(Told::bad("Not saved.", why)),
        }
    }
    rendered(&seen, &visitor, &standing, given, checked).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_form_changes_its_values_in_the_text_and_nothing_else() {
        let text = "# Why.\n[[policy]]\nname = \"A\"\nallowed_types = [\"CALCULATE\"] # one\nmax_steps = 5\nmax_side_effects = 0\n";
        let before = RuntimePolicy {
            name: "A".into(),
            allowed_types: ["CALCULATE".to_owned()].into(),
            max_steps: 5,
            max_side_effects: 0,
            max_bytes: None,
            max_cost_micros: None,
            principal: None,
            approval_for_side_effects: false,
            restricted_keywords: Vec::new(),
            escalate_on_verification_fail: true,
        };
        let mut fields = fields_of(&before);
        assert_eq!(with_fields(text, "A", Some(&before), &fields).unwrap(), text);
        fields.max_steps = "7".into();
        fields.keywords = "wire, , transfer ".into();
        fields.approval = true;
        assert_eq!(
            with_fields(text, "A", Some(&before), &fields).unwrap(),
            "# Why.\n[[policy]]\nname = \"A\"\nallowed_types = [\"CALCULATE\"] # one\nmax_steps = 7\nmax_side_effects = 0\n\
             approval_for_side_effects = true\nrestricted_keywords = [\"wire\", \"transfer\"]\n"
        );
        assert_eq!(with_fields(text, "B", Some(&before), &fields), None);
        // What is no number is refused by the loader, at its place.
        fields.max_steps = "many".into();
        assert!(with_fields(text, "A", Some(&before), &fields).unwrap().contains("max_steps = \"many\""));
        assert_eq!((slug("Strict, Two!"), slug("…")), ("strict-two".to_owned(), "console".to_owned()));
    }
}
