//! From the words of the core to Cedar's: entities and contexts, built for one decision and no longer.
//!
//! Values are of the schema's types by construction, so no request is validated when it is made; attributes of
//! principals and arguments of calls come from outside and are checked here.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use cedar_policy_core::ast::{BorrowedRestrictedExpr, Entity, EntityUID, Expr, Literal, PartialValue, Value};
use cedar_policy_core::evaluator::RestrictedEvaluator;
use cedar_policy_core::extensions::Extensions;
use portcullis_core::bundle::AccessSettings;
use portcullis_core::effect::{AttributeType, Attributes, EFFECT_ATTRIBUTES, Resource, ResourceKind};
use portcullis_core::label::Label;
use portcullis_core::principal::{Attribute, Decimal, Principal};
use portcullis_core::state::RunState;
use portcullis_core::tool::Tool;
use serde_json::Value as Json;
use smol_str::SmolStr;

use crate::schema::{Field, Shape, resource_attributes};

/// A record under construction.
pub(crate) type Record = BTreeMap<SmolStr, Value>;

/// Whole numbers up to here are exact as floating-point numbers.
const EXACT_MAX: f64 = 9_007_199_254_740_992.0;

fn named(name: &'static str, value: impl Into<Value>) -> (SmolStr, PartialValue) {
    (SmolStr::new_static(name), PartialValue::Value(value.into()))
}

/// The principal's entity, a child of its roles. Fails with the attribute that is not of the declared type.
pub(crate) fn principal(
    settings: &AccessSettings,
    principal: &Principal,
    uid: &EntityUID,
    roles: &[EntityUID],
) -> Result<Entity, String> {
    let mut attributes = vec![named("id", principal.id.as_str())];
    for (name, type_) in &settings.attributes {
        if let Some(value) = principal.attributes.get(name) {
            let value = attribute(value, *type_).ok_or_else(|| name.clone())?;
            attributes.push((SmolStr::new(name), value.into()));
        }
    }
    Ok(entity(uid.clone(), attributes, roles.iter().cloned().collect()))
}

/// A resource's entity, below all that it is in.
pub(crate) fn resource(
    resource: &Resource,
    uid: EntityUID,
    ancestors: HashSet<EntityUID>,
    tool: Option<(&Tool, Option<&Value>)>,
) -> Entity {
    let mut attributes = vec![named("name", resource.name.as_str())];
    for meta in resource_attributes(resource.kind) {
        let given = resource.attributes.get(meta.name).and_then(|given| attribute(given, meta.type_));
        if let Some(value) = given.or_else(|| if meta.always { absent(meta.type_) } else { None }) {
            attributes.push(named(meta.name, value));
        }
    }
    if resource.kind == ResourceKind::Tool {
        attributes.extend(tool_attributes(&resource.name, tool));
    }
    entity(uid, attributes, ancestors)
}

/// The risk of a tool as a value.
pub(crate) fn risk(tool: &Tool) -> Option<Value> {
    decimal(Decimal { ten_thousandths: ten_thousandths(tool.risk) })
}

/// What is known of a tool, with its risk if that was computed before; the worst case if it is not classified.
fn tool_attributes(name: &str, tool: Option<(&Tool, Option<&Value>)>) -> Vec<(SmolStr, PartialValue)> {
    let made = tool.and_then(|(_, made)| made.cloned());
    let tool = tool.map(|(tool, _)| tool);
    let risk = made.or_else(|| tool.map_or_else(|| decimal(Decimal { ten_thousandths: 10_000 }), risk));
    let mut attributes = vec![
        named("id", tool.map_or(name, |tool| &tool.id)),
        named("known", tool.is_some()),
        named("side_effecting", tool.is_none_or(|tool| tool.side_effecting)),
        named("type", tool.map_or("", |tool| &tool.tool_type)),
    ];
    attributes.extend(risk.map(|risk| named("risk", risk)));
    attributes
}

/// Rounded up: a risk is never understated.
fn ten_thousandths(risk: f64) -> i64 {
    #[expect(clippy::cast_possible_truncation, reason = "clamped to 0..=10 000 before")]
    let risk = (risk * 10_000.0).ceil().clamp(0.0, 10_000.0) as i64;
    risk
}

fn entity(
    uid: EntityUID,
    attributes: impl IntoIterator<Item = (SmolStr, PartialValue)>,
    ancestors: HashSet<EntityUID>,
) -> Entity {
    Entity::new_with_attr_partial_value(uid, attributes, HashSet::new(), ancestors, std::iter::empty())
}

/// The value of an attribute if it is of the type. A whole number is a decimal too.
fn attribute(value: &Attribute, type_: AttributeType) -> Option<Value> {
    match (value, type_) {
        (Attribute::Boolean(value), AttributeType::Boolean) => Some((*value).into()),
        (Attribute::Integer(value), AttributeType::Integer) => Some((*value).into()),
        (Attribute::Text(value), AttributeType::Text) => Some(value.as_str().into()),
        (Attribute::Decimal(value), AttributeType::Decimal) => decimal(*value),
        (Attribute::Integer(value), AttributeType::Decimal) => {
            decimal(Decimal { ten_thousandths: value.checked_mul(10_000)? })
        }
        _ => None,
    }
}

/// The value of an attribute that every resource of a kind has, where the parser set none.
fn absent(type_: AttributeType) -> Option<Value> {
    match type_ {
        AttributeType::Boolean => Some(false.into()),
        AttributeType::Integer => Some(0.into()),
        AttributeType::Text => Some("".into()),
        AttributeType::Decimal => decimal(Decimal { ten_thousandths: 0 }),
    }
}

fn decimal(value: Decimal) -> Option<Value> {
    let name = "decimal".parse().ok()?;
    let expr = Expr::call_extension_fn(name, vec![Expr::val(value.to_string())]);
    let expr = BorrowedRestrictedExpr::new(&expr).ok()?;
    RestrictedEvaluator::new(Extensions::all_available()).interpret(expr).ok()
}

/// `context.run`.
pub(crate) fn run(run: &RunState) -> Value {
    let mut tainted = false;
    let labels = run.labels().iter().map(|label| {
        tainted |= matches!(label, Label::Tool(_) | Label::Server(_) | Label::Run(_) | Label::Unknown);
        Literal::from(label.to_string())
    });
    let labels = Value::set_of_lits(labels.collect::<Vec<_>>(), None);
    let fields: [(&str, Value); 4] = [
        ("labels", labels),
        ("side_effects", i64::from(run.side_effects()).into()),
        ("steps", i64::from(run.steps()).into()),
        ("tainted", tainted.into()),
    ];
    let fields = fields.map(|(name, value)| (SmolStr::new_static(name), value));
    Value::record_arc(Arc::new(Record::from(fields)), None)
}

/// The context of an effect.
pub(crate) fn effect_context(run: Value, tool: &str, attributes: &Attributes) -> Record {
    let mut context = call_context(run, tool);
    for meta in EFFECT_ATTRIBUTES {
        let given = attributes.get(meta.name).and_then(|given| attribute(given, meta.type_));
        if let Some(value) = given.or_else(|| if meta.always { absent(meta.type_) } else { None }) {
            context.insert(SmolStr::new_static(meta.name), value);
        }
    }
    context
}

/// The context of a call, without its arguments.
pub(crate) fn call_context(run: Value, tool: &str) -> Record {
    Record::from([(SmolStr::new_static("run"), run), (SmolStr::new_static("tool"), tool.into())])
}

/// The arguments as the policies were checked against. Fails with the JSON pointer of what does not fit.
pub(crate) fn arguments(fields: &[Field], arguments: &Json) -> Result<Value, String> {
    record(fields, arguments).ok_or_else(String::new).and_then(|found| found)
}

fn record(fields: &[Field], value: &Json) -> Option<Result<Value, String>> {
    let object = value.as_object()?;
    let mut record = Record::new();
    for field in fields {
        match object.get(&field.name) {
            None | Some(Json::Null) if !field.required => {}
            None => return Some(Err(format!("/{}", field.name))),
            Some(value) => match shaped(&field.shape, value) {
                Ok(value) => {
                    record.insert(SmolStr::new(&field.name), value);
                }
                Err(below) => return Some(Err(format!("/{}{below}", field.name))),
            },
        }
    }
    Some(Ok(Value::record_arc(Arc::new(record), None)))
}

fn shaped(shape: &Shape, value: &Json) -> Result<Value, String> {
    let misfit = String::new;
    match shape {
        Shape::Text => value.as_str().map(Into::into).ok_or_else(misfit),
        Shape::Boolean => value.as_bool().map(Into::into).ok_or_else(misfit),
        Shape::Integer => integer(value).map(Into::into).ok_or_else(misfit),
        Shape::Set(of) => {
            let items = value.as_array().ok_or_else(misfit)?;
            let items: Result<Vec<Value>, String> = items.iter().map(|item| shaped(of, item)).collect();
            Ok(Value::set(items?, None))
        }
        Shape::Record(fields) => record(fields, value).ok_or_else(misfit)?,
    }
}

/// JSON Schema calls 3.0 an integer too.
fn integer(value: &Json) -> Option<i64> {
    value.as_i64().or_else(|| {
        let float = value.as_f64().filter(|float| float.fract() == 0.0 && float.abs() < EXACT_MAX)?;
        #[expect(clippy::cast_possible_truncation, reason = "whole and exactly representable")]
        let whole = float as i64;
        (!value.is_u64()).then_some(whole)
    })
}

/// Whether a resource is in the catalogue, or its kind has none.
pub(crate) fn is_catalogued(resource: &Resource) -> bool {
    resource.is("catalogued")
        || !resource_attributes(resource.kind).iter().any(|meta| meta.name == "catalogued")
}
