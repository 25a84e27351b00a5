//! From a bundle's text to [`Access`]: bounds, parser, annotations, schema, strict validation, index.

use std::sync::{Arc, Mutex, PoisonError};

use cedar_policy_core::ast::{Policy as CedarPolicy, PolicySet, Template};
use cedar_policy_core::entities::{Entities, NoEntitiesSchema, TCComputation};
use cedar_policy_core::extensions::Extensions;
use cedar_policy_core::parser::parse_policyset;
use cedar_policy_core::validator::{ValidationMode, ValidationWarning, Validator, ValidatorSchema};
use portcullis_core::bundle::{Bundle, Compiled, Compiler, Diagnostic};
use portcullis_core::limits::ACCESS_BYTES_MAX;
use portcullis_core::verdict::Verdict;

use crate::conditions::{Catalogue, Constants};
use crate::policy::{self, Policy};
use crate::schema::{Shape, schema_text};
use crate::slices::Slices;
use crate::uid::Types;
use crate::{Access, bounds, decide, diagnose, request};

/// Access policies of one bundle.
pub const POLICIES_MAX: usize = 10_000;

/// Stack for reading policies: three times what the deepest text within the bounds takes without optimisation.
const STACK_BYTES: usize = 64 << 20;

/// Steps that conditions may take from a variable: `resource.name` is one, and no attribute is an entity.
const DEREFERENCES_MAX: u32 = 1;

/// Compiles `access/*.cedar` when a bundle is loaded.
#[derive(Debug, Clone, Copy, Default)]
pub struct AccessCompiler;

impl Compiler for AccessCompiler {
    fn compile(&self, bundle: &Bundle) -> Result<Option<Compiled>, Vec<Diagnostic>> {
        if bundle.access.files.is_empty() && bundle.access.default == Verdict::Allow {
            return Ok(None);
        }
        Access::compile(bundle).map(|access| Some(Compiled::access(access)))
    }
}

impl Access {
    /// Compiles the access policies of a bundle.
    ///
    /// # Errors
    /// Everything that is wrong with them, with its place.
    pub fn compile(bundle: &Bundle) -> Result<Self, Vec<Diagnostic>> {
        on_a_deep_stack(|| {
            let policies = parse(bundle)?;
            let schema = schema_text(bundle);
            validate(bundle, &schema, &policies)?;
            assemble(bundle, schema, policies)
                .ok_or_else(|| vec![at_settings("the access policies cannot be indexed")])
        })
    }
}

/// Runs `work` on a stack that is deep enough for everything within [`bounds`]: parser and validator recurse, and
/// callers have as little as 2 MiB.
pub(crate) fn on_a_deep_stack<T: Send>(
    work: impl FnOnce() -> Result<T, Vec<Diagnostic>> + Send,
) -> Result<T, Vec<Diagnostic>> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("access-policies".to_owned()).stack_size(STACK_BYTES);
        let done = thread.spawn_scoped(scope, work).map(std::thread::ScopedJoinHandle::join);
        match done {
            Ok(Ok(result)) => result,
            Ok(Err(_)) => Err(vec![at_settings("reading the access policies failed inside the parser")]),
            Err(error) => Err(vec![at_settings(format!("the access policies cannot be read now: {error}"))]),
        }
    })
}

fn at_settings(message: impl Into<String>) -> Diagnostic {
    Diagnostic::new("portcullis.toml", "", 0..0, message)
}

fn parse(bundle: &Bundle) -> Result<Vec<Policy>, Vec<Diagnostic>> {
    let mut mistakes = Vec::new();
    let bytes: usize = bundle.access.files.values().map(String::len).sum();
    if bytes > ACCESS_BYTES_MAX {
        let message = format!("the access policies have {bytes} bytes; the limit is {ACCESS_BYTES_MAX}");
        return Err(vec![Diagnostic::new("access/", "", 0..0, message)]);
    }
    if bundle.access.attributes.contains_key("id") {
        mistakes.push(at_settings("`id` is an attribute of every principal and cannot be declared"));
    }
    let mut policies = Vec::new();
    for (file, source) in &bundle.access.files {
        if let Err(mistake) = bounds::check(file, source) {
            mistakes.push(mistake);
            continue;
        }
        match parse_policyset(source) {
            Ok(parsed) => {
                for template in parsed.templates() {
                    mistakes.push(no_templates(file, source, template));
                }
                let parsed = parsed.static_policies().cloned().collect::<Vec<CedarPolicy>>();
                policies.extend(policy::read(file, source, parsed, &mut mistakes));
            }
            Err(errors) => mistakes.extend(diagnose::parse_errors(file, source, &errors)),
        }
    }
    if policies.len() > POLICIES_MAX {
        let message = format!("{} access policies; the limit is {POLICIES_MAX}", policies.len());
        return Err(vec![Diagnostic::new("access/", "", 0..0, message)]);
    }
    let source = |file: &str| bundle.access.files.get(file).cloned().unwrap_or_default();
    policy::twice(&policies, source, &mut mistakes);
    if mistakes.is_empty() { Ok(policies) } else { Err(mistakes) }
}

fn no_templates(file: &str, source: &str, template: &Template) -> Diagnostic {
    let span = template.loc().map_or(0..0, |loc| loc.start()..loc.end().min(source.len()));
    Diagnostic::new(file, source, span, "policy templates are not supported")
        .help("name the principal or resource")
}

/// The schema that was read last, for policies against it. Policies change more often than what they speak of, and
/// reading a schema takes longer than checking some policies.
static READ: Mutex<Option<(String, Arc<Validator>)>> = Mutex::new(None);

fn validator(schema: &str) -> Result<Arc<Validator>, String> {
    let read = || READ.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((text, known)) = read().as_ref()
        && text == schema
    {
        return Ok(Arc::clone(known));
    }
    let (new, _) = ValidatorSchema::from_cedarschema_str(schema, Extensions::all_available())
        .map_err(|error| error.to_string())?;
    let new = Arc::new(Validator::new(new));
    *read() = Some((schema.to_owned(), Arc::clone(&new)));
    Ok(new)
}

fn validate(bundle: &Bundle, schema: &str, policies: &[Policy]) -> Result<(), Vec<Diagnostic>> {
    let validator = match validator(schema) {
        Ok(validator) => validator,
        Err(error) => {
            // Made by us from names that the bundle gave: one of them is not expressible.
            let message = format!("no schema for access policies can be made of this bundle: {error}");
            return Err(vec![at_settings(message)]);
        }
    };
    let mut set = PolicySet::new();
    let mut mistakes = Vec::new();
    for policy in policies {
        let template = policy.template.as_ref().clone();
        let added = template.try_into().ok().map(|policy| set.add_static(policy));
        if !matches!(added, Some(Ok(()))) {
            let source = bundle.access.files.get(&policy.file).map_or("", String::as_str);
            let message = format!("the policy `{}` cannot be added to the policy set", policy.id);
            mistakes.push(Diagnostic::new(&policy.file, source, policy.span.clone(), message));
        }
        diagnose::literals(bundle, policy, &mut mistakes);
    }
    let result = validator.validate_with_level(&set, ValidationMode::Strict, DEREFERENCES_MAX);
    mistakes.extend(diagnose::validation_errors(bundle, policies, &result));
    if mistakes.is_empty() { Ok(()) } else { Err(mistakes) }
}

/// What Cedar's validator warns of. The schema and the policies passed it when they were loaded.
pub(crate) fn warnings(schema: &str, policies: &[Policy]) -> Vec<ValidationWarning> {
    let warnings = on_a_deep_stack(|| {
        let Ok(validator) = validator(schema) else { return Ok(Vec::new()) };
        let mut set = PolicySet::new();
        for policy in policies {
            let template = policy.template.as_ref().clone();
            let _ = template.try_into().map(|policy| set.add_static(policy));
        }
        let result = validator.validate(&set, ValidationMode::Strict);
        Ok(result.validation_warnings().cloned().collect())
    });
    warnings.unwrap_or_default()
}

fn assemble(bundle: &Bundle, schema: String, mut policies: Vec<Policy>) -> Option<Access> {
    let types = Types::new()?;
    let mut constants = Constants::default();
    let catalogue = Catalogue { types: &types, tables: &bundle.effects.tables };
    for policy in &mut policies {
        policy.members =
            policy.template.non_scope_constraints().and_then(|condition| catalogue.members(condition));
        policy.condition = policy.condition.as_ref().map(|condition| constants.hoist(&types, condition));
    }
    let slices = Slices::build(&policies, &catalogue);
    let constants = Entities::new()
        .add_entities(
            [constants.entity(&types)],
            None::<&NoEntitiesSchema>,
            TCComputation::AssumeAlreadyComputed,
            Extensions::all_available(),
        )
        .ok()?;
    let arguments = bundle.registry.iter().map(|tool| {
        let fields = match Shape::of(tool.args.as_value()) {
            Some(Shape::Record(fields)) => fields,
            _ => Vec::new(),
        };
        (tool.id.clone(), fields)
    });
    let arguments = arguments.collect();
    let risks = bundle.registry.iter().filter_map(|tool| Some((tool.id.clone(), request::risk(tool)?)));
    let risks = risks.collect();
    Some(Access {
        policies,
        slices,
        types,
        constants,
        arguments,
        risks,
        schema,
        no_slots: decide::no_slots(),
    })
}
