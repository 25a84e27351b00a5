//! Cedar's complaints as diagnostics of the bundle: file, line, column, and the nearest valid name.

use std::collections::BTreeSet;

use cedar_policy_core::ast::{ExprKind, Literal};
use cedar_policy_core::parser::err::ParseErrors;
use cedar_policy_core::validator::{ValidationError, ValidationResult};
use portcullis_core::bundle::{Bundle, Diagnostic, nearest};
use portcullis_core::effect::{EFFECT_ATTRIBUTES, ResourceKind};

use crate::policy::Policy;
use crate::roles::roles;
use crate::schema::{self, RUN_ATTRIBUTES, Shape, TOOL_ATTRIBUTES};
use crate::uid::LEVELS_MAX;

/// Words of the language, for misspelt ones.
const KEYWORDS: [&str; 22] = [
    "permit",
    "forbid",
    "principal",
    "action",
    "resource",
    "context",
    "when",
    "unless",
    "in",
    "is",
    "has",
    "like",
    "if",
    "then",
    "else",
    "true",
    "false",
    "contains",
    "containsAll",
    "containsAny",
    "isEmpty",
    "decimal",
];

/// Complaints of one file reported at most; the others are mostly their consequences.
const DIAGNOSTICS_MAX: usize = 64;

pub(crate) fn parse_errors(file: &str, source: &str, errors: &ParseErrors) -> Vec<Diagnostic> {
    let all = errors.iter().take(DIAGNOSTICS_MAX);
    all.map(|error| {
        let diagnostic = from_cedar(file, source, error);
        let word = source.get(diagnostic.span.clone()).unwrap_or_default();
        match nearest(word, &KEYWORDS) {
            Some(near) if near != word && is_word(word) => diagnostic.help(format!("did you mean `{near}`?")),
            _ => diagnostic,
        }
    })
    .collect()
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// What Cedar says, in the form of the house.
fn from_cedar(file: &str, source: &str, error: &dyn miette::Diagnostic) -> Diagnostic {
    let label = error.labels().and_then(|mut labels| labels.next());
    let span = label.as_ref().map_or(0..0, |label| {
        let end = label.offset().saturating_add(label.len()).min(source.len());
        label.offset().min(end)..end
    });
    let diagnostic = Diagnostic::new(file, source, span, house_style(&error.to_string()));
    let help = error.help().map(|help| help.to_string());
    let help = help.or_else(|| label.as_ref().and_then(|label| label.label().map(str::to_owned)));
    match help {
        Some(help) => diagnostic.help(help),
        None => diagnostic,
    }
}

/// Without the name of the policy, which the place shows, and without a full stop.
fn house_style(message: &str) -> String {
    let message = match message.strip_prefix("for policy `") {
        Some(rest) => rest.split_once("`, ").map_or(message, |(_, rest)| rest),
        None => message,
    };
    message.trim_end_matches('.').to_owned()
}

/// What the validator found, one complaint a place.
pub(crate) fn validation_errors(
    bundle: &Bundle,
    policies: &[Policy],
    result: &ValidationResult,
) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    for error in result.validation_errors() {
        let policy = policies.iter().find(|policy| Some(policy.id.as_str()) == policy_of(error));
        let Some((policy, source)) =
            policy.and_then(|policy| Some((policy, bundle.access.files.get(&policy.file)?)))
        else {
            found.push(Diagnostic::new("access/", "", 0..0, house_style(&error.to_string())));
            continue;
        };
        let mut diagnostic = from_cedar(&policy.file, source, error);
        if diagnostic.span.is_empty() {
            diagnostic = Diagnostic {
                message: diagnostic.message,
                help: diagnostic.help,
                ..Diagnostic::new(&policy.file, source, policy.span.clone(), "")
            };
        }
        found.push(suggest(bundle, error, diagnostic));
    }
    let mut seen = BTreeSet::new();
    found.sort_by(|a, b| (&a.file, a.span.start, &a.message).cmp(&(&b.file, b.span.start, &b.message)));
    found.retain(|diagnostic| seen.insert((diagnostic.file.clone(), diagnostic.span.start)));
    found.truncate(DIAGNOSTICS_MAX);
    found
}

fn policy_of(error: &ValidationError) -> Option<&str> {
    use ValidationError as E;
    let id = match error {
        E::UnrecognizedEntityType(e) => &e.policy_id,
        E::UnrecognizedActionId(e) => &e.policy_id,
        E::UnexpectedType(e) => &e.policy_id,
        E::IncompatibleTypes(e) => &e.policy_id,
        E::UnsafeAttributeAccess(e) => &e.policy_id,
        E::UnsafeOptionalAttributeAccess(e) => &e.policy_id,
        E::UnsafeTagAccess(e) => &e.policy_id,
        E::NoTagsAllowed(e) => &e.policy_id,
        E::UndefinedFunction(e) => &e.policy_id,
        E::WrongNumberArguments(e) => &e.policy_id,
        E::FunctionArgumentValidation(e) => &e.policy_id,
        E::EmptySetForbidden(e) => &e.policy_id,
        E::NonLitExtConstructor(e) => &e.policy_id,
        E::InternalInvariantViolation(e) => &e.policy_id,
        E::InvalidEnumEntity(e) => &e.policy_id,
        E::EntityDerefLevelViolation(e) => &e.policy_id,
        E::IncompleteSchema(e) => &e.policy_id,
    };
    Some(id.as_ref())
}

/// Adds the nearest valid name.
fn suggest(bundle: &Bundle, error: &ValidationError, diagnostic: Diagnostic) -> Diagnostic {
    match error {
        ValidationError::UnrecognizedActionId(error) => {
            let wrong = error.actual_action_id.trim_start_matches("Action::").trim_matches('"');
            match nearest_action(bundle, wrong) {
                Some(near) => diagnostic.help(format!("did you mean `Action::{}`?", schema::quoted(&near))),
                None => diagnostic.help("`portcullis access schema` lists the actions"),
            }
        }
        ValidationError::UnsafeOptionalAttributeAccess(_) => {
            let source = bundle.access.files.get(&diagnostic.file).map_or("", String::as_str);
            let access = source.get(diagnostic.span.clone()).and_then(|text| text.rsplit_once('.'));
            match access {
                Some((of, name)) => diagnostic.help(format!("check `{of} has {name} && …` first")),
                None => diagnostic,
            }
        }
        ValidationError::UnrecognizedEntityType(error) => {
            diagnostic.did_you_mean(&error.actual_entity_type, schema::type_names())
        }
        ValidationError::UnsafeAttributeAccess(error) if error.suggestion.is_none() => {
            let names = attribute_names(bundle);
            let wrong = error.attribute_access.to_string();
            let wrong = wrong.trim_start_matches('`').split('`').next().unwrap_or_default();
            let wrong = wrong.rsplit('.').next().unwrap_or_default();
            match nearest(wrong, &names.iter().map(String::as_str).collect::<Vec<_>>()) {
                Some(near) if near != wrong => diagnostic.help(format!("did you mean `{near}`?")),
                _ => diagnostic.help("`portcullis access schema` lists the attributes"),
            }
        }
        _ => diagnostic,
    }
}

/// The action that `wrong` was most likely meant to be; a tool's name leads to its id.
fn nearest_action(bundle: &Bundle, wrong: &str) -> Option<String> {
    let ids = schema::action_names(bundle);
    let names = bundle.registry.iter().map(|tool| schema::call_action(&tool.name));
    let all: Vec<String> = ids.into_iter().chain(names).collect();
    let near = nearest(wrong, &all.iter().map(String::as_str).collect::<Vec<_>>())?;
    let tool = near.strip_prefix("call:").and_then(|tool| bundle.registry.get(tool));
    Some(tool.map_or_else(|| near.to_owned(), |tool| schema::call_action(&tool.id)))
}

/// Every attribute of the schema, wherever it is.
fn attribute_names(bundle: &Bundle) -> BTreeSet<String> {
    let mut names: BTreeSet<String> = ["id", "name", "run", "tool", "args"].map(str::to_owned).into();
    names.extend(bundle.access.attributes.keys().cloned());
    names.extend(EFFECT_ATTRIBUTES.iter().map(|attribute| attribute.name.to_owned()));
    names.extend(TOOL_ATTRIBUTES.iter().chain(RUN_ATTRIBUTES).map(|(name, _, _)| (*name).to_owned()));
    for kind in ResourceKind::ALL {
        names.extend(schema::resource_attributes(kind).iter().map(|attribute| attribute.name.to_owned()));
    }
    for tool in bundle.registry.iter() {
        if let Some(Shape::Record(fields)) = Shape::of(tool.args.as_value()) {
            names.extend(fields.into_iter().map(|field| field.name));
        }
    }
    names
}

/// Names in a policy that no resource can have: unknown tools and activities, paths and hosts that are not
/// normalised; and names that are nearly those that the bundle lists. A table or role that is like none of those
/// listed is a lint: catalogues need not be complete.
pub(crate) fn literals(bundle: &Bundle, policy: &Policy, found: &mut Vec<Diagnostic>) {
    let Some(source) = bundle.access.files.get(&policy.file) else { return };
    let listed = Listed::of(bundle);
    let condition = policy.template.condition();
    let uids = condition.subexpressions().filter_map(|part| match part.expr_kind() {
        ExprKind::Lit(Literal::EntityUID(uid)) => Some(uid),
        _ => None,
    });
    for uid in uids {
        let (type_, name): (String, &str) = (uid.entity_type().to_string(), uid.eid().as_ref());
        let span = uid.loc().map_or(policy.span.clone(), |loc| loc.start()..loc.end().min(source.len()));
        let at = |message: String| Diagnostic::new(&policy.file, source, span, message);
        if type_ == schema::type_name(ResourceKind::Tool) && !crate::names_tool(bundle, name) {
            let names = bundle.registry.iter().map(|tool| tool.name.as_str());
            found.push(at(format!("there is no tool `{name}`")).did_you_mean(name, names));
        } else if type_ == schema::type_name(ResourceKind::Path)
            && let Some(problem) = path_problem(name)
        {
            found.push(at(format!("`{name}` never matches a path: {problem}")));
        } else if (type_ == schema::type_name(ResourceKind::Host) || type_ == "Domain")
            && let Some(problem) = host_problem(name)
        {
            found.push(at(format!("`{name}` never matches a host: {problem}")));
        } else if let Some((what, known)) = listed.names(&type_)
            && !known.contains(name)
        {
            let all: Vec<&str> = known.iter().map(String::as_str).collect();
            let near = nearest(name, &all);
            let diagnostic = at(format!("there is no {what} `{name}`"));
            match near {
                Some(near) => found.push(diagnostic.help(format!(
                    "did you mean `{near}`? If both are meant, list `{name}` in the bundle as well"
                ))),
                None if what == "activity" => found.push(diagnostic.did_you_mean(name, all)),
                None => {}
            }
        }
    }
}

/// Names that the bundle lists, of kinds of which it may list all.
struct Listed {
    tables: BTreeSet<String>,
    columns: BTreeSet<String>,
    roles: BTreeSet<String>,
    activities: BTreeSet<String>,
}

impl Listed {
    fn of(bundle: &Bundle) -> Self {
        let tables = &bundle.effects.tables;
        let columns = tables
            .iter()
            .flat_map(|(table, of)| of.columns.iter().map(move |column| format!("{table}.{column}")));
        Self {
            columns: columns.collect(),
            tables: tables.keys().cloned().collect(),
            roles: roles(bundle).into_iter().map(str::to_owned).collect(),
            activities: activities(bundle),
        }
    }

    /// What is listed of entities of a type, with the word for one, or `None` if nothing is.
    fn names(&self, type_: &str) -> Option<(&'static str, &BTreeSet<String>)> {
        let kind = |kind| type_ == schema::type_name(kind);
        let (what, names) = if type_ == "Role" {
            ("role", &self.roles)
        } else if kind(ResourceKind::Table) {
            ("table", &self.tables)
        } else if kind(ResourceKind::Column) {
            ("column", &self.columns)
        } else if kind(ResourceKind::Activity) {
            ("activity", &self.activities)
        } else {
            return None;
        };
        (!names.is_empty()).then_some((what, names))
    }
}

/// What a task is that names none of the bundle's activities, as the reader of effects has it.
const OTHER_ACTIVITY: &str = "other";

/// Activities that a task can be, where the bundle has any.
fn activities(bundle: &Bundle) -> BTreeSet<String> {
    let listed: BTreeSet<String> =
        bundle.effects.activities.iter().map(|activity| activity.name.clone()).collect();
    match listed.is_empty() {
        true => listed,
        false => listed.into_iter().chain([OTHER_ACTIVITY.to_owned()]).collect(),
    }
}

/// Why a host is not as hosts of effects are.
fn host_problem(host: &str) -> Option<&'static str> {
    if host.contains("://") || host.contains('/') {
        Some("name the host alone, without scheme and path")
    } else if host.chars().any(char::is_uppercase) {
        Some("write it in lower case")
    } else if host.ends_with('.') && host.len() > 1 {
        Some("remove the trailing dot")
    } else if host.contains('*') {
        Some("patterns are not supported; `in Domain::\"example.com\"` means that host and its subdomains")
    } else {
        None
    }
}

/// Why a path is not as paths of effects are.
fn path_problem(path: &str) -> Option<&'static str> {
    if path.len() > 1 && path.ends_with('/') {
        Some("remove the trailing `/`; `in` means the folder and everything below it")
    } else if path.split('/').skip(1).any(|part| matches!(part, "." | "..")) || path.contains("//") {
        Some("write it without `.`, `..` and `//`")
    } else if path.matches('/').count() > LEVELS_MAX {
        Some("it has too many levels")
    } else {
        None
    }
}
