//! The decision: which policies apply to each thing that an action touches, and what they make of it together.
//!
//! For one resource: the decisions of the `forbid` policies that apply join. Unless they deny, they are joined by what
//! the `permit` policies say: the weakest of the decisions of those that apply, *allow* as a rule; the bundle's
//! default if none does. So a `forbid` that only warns never lets pass what nothing permits, and adding a `forbid`
//! never loosens a verdict. A policy that cannot be evaluated denies, whatever the others say.

use std::cell::OnceCell;
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use cedar_policy_core::ast::{Context, Entity, EntityUID, EntityUIDEntry, Expr, Request, SlotEnv, Value};
use cedar_policy_core::entities::{Entities, NoEntitiesSchema, TCComputation};
use cedar_policy_core::evaluator::Evaluator;
use cedar_policy_core::extensions::Extensions;
use portcullis_core::action::Action;
use portcullis_core::bundle::{AccessPolicies, Bundle};
use portcullis_core::effect::{Attributes, Effect, Resource, ResourceKind, Verb};
use portcullis_core::finding::Finding;
use portcullis_core::principal::Principal;
use portcullis_core::state::RunState;
use portcullis_core::tool::Tool;
use portcullis_core::verdict::Verdict;

use crate::findings::{Outcome, Touched};
use crate::request;
use crate::schema::call_action;
use crate::slices::{ActionKey, Bucket, Cover, PolicyNumber};
use crate::{Access, rules};

/// How resources are asked about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asking {
    /// All at once where the policies allow it, each on its own where the answer is no.
    Together,
    /// Each on its own: what the answer must be.
    #[cfg(test)]
    Apart,
}

impl AccessPolicies for Access {
    fn decide(&self, bundle: &Bundle, run: &RunState, action: &Action, effects: &[Effect]) -> Vec<Finding> {
        self.decide_by(bundle, run, action, effects, Asking::Together)
    }
}

impl Access {
    pub(crate) fn decide_by(
        &self,
        bundle: &Bundle,
        run: &RunState,
        action: &Action,
        effects: &[Effect],
        asking: Asking,
    ) -> Vec<Finding> {
        if !action.is_call() && effects.is_empty() {
            return Vec::new();
        }
        let Some(principal) = run.principal() else {
            let message = "the run has no principal, so no access policy can permit the call";
            return vec![Finding::new(rules::NO_PRINCIPAL, Verdict::Deny, message)];
        };
        let subject = match Subject::new(self, bundle, run, action, principal) {
            Ok(subject) => subject,
            Err(attribute) => {
                let message = format!(
                    "the attribute `{attribute}` of the principal is not of the type that the bundle declares"
                );
                return vec![Finding::new(rules::PRINCIPAL_ATTRIBUTE, Verdict::Deny, message)];
            }
        };
        let mut outcome = Outcome::new(bundle.access.default);
        if let Some(name) = action.tool() {
            subject.call(name, &action.arguments, &mut outcome);
        }
        let mut groups: BTreeMap<(Verb, ResourceKind, &Attributes), Vec<&Effect>> = BTreeMap::new();
        for effect in effects {
            let key = (effect.verb, effect.resource.kind, &effect.attributes);
            groups.entry(key).or_default().push(effect);
        }
        for ((verb, kind, attributes), effects) in groups {
            subject.effects(verb, kind, attributes, &effects, asking, &mut outcome);
        }
        outcome.findings(&self.policies)
    }

    /// Whether a condition holds. An error is the policy's, not the request's.
    fn holds(&self, evaluator: &Evaluator<'_>, condition: &Expr) -> Result<bool, ()> {
        match evaluator.interpret(condition, &self.no_slots) {
            Ok(value) => match value.value_kind() {
                cedar_policy_core::ast::ValueKind::Lit(cedar_policy_core::ast::Literal::Bool(holds)) => {
                    Ok(*holds)
                }
                _ => Err(()),
            },
            Err(_) => Err(()),
        }
    }
}

/// What does not change during one decision.
struct Subject<'a> {
    access: &'a Access,
    bundle: &'a Bundle,
    run: &'a RunState,
    tool: &'a str,
    principal: EntityUID,
    /// The principal and its roles: what policies can name.
    principals: Vec<EntityUID>,
    entity: Arc<Entity>,
    /// What conditions about the principal alone can ask about.
    alone: OnceCell<Option<Entities>>,
    run_value: OnceCell<Value>,
}

/// One resource with all that is needed to look up policies about it.
struct Target<'a> {
    resource: &'a Resource,
    uid: EntityUID,
    ancestors: HashSet<EntityUID>,
    /// Whether it is in the catalogue, if its kind has one.
    catalogued: bool,
}

/// The policies whose scope a request fits, in the order of the bundle.
#[derive(Debug, Default)]
struct Candidates {
    /// Those that apply: no condition, or one that holds of the resource by its name.
    applying: Vec<PolicyNumber>,
    /// Those whose condition is to be evaluated.
    open: Vec<PolicyNumber>,
}

impl<'a> Subject<'a> {
    fn new(
        access: &'a Access,
        bundle: &'a Bundle,
        run: &'a RunState,
        action: &'a Action,
        principal: &Principal,
    ) -> Result<Self, String> {
        let uid = access.types.principal(&principal.id);
        let aliases = &bundle.access.role_aliases;
        let names = principal.roles.iter().map(|role| aliases.get(role).unwrap_or(role));
        let mut roles: Vec<EntityUID> = Vec::with_capacity(principal.roles.len() + 1);
        for role in names.map(|name| access.types.role(name)) {
            if !roles.contains(&role) {
                roles.push(role);
            }
        }
        let entity = Arc::new(request::principal(&bundle.access, principal, &uid, &roles)?);
        roles.push(uid.clone());
        Ok(Self {
            access,
            bundle,
            run,
            tool: action.tool().unwrap_or_default(),
            principal: uid,
            principals: roles,
            entity,
            alone: OnceCell::new(),
            run_value: OnceCell::new(),
        })
    }

    fn run_value(&self) -> Value {
        self.run_value.get_or_init(|| request::run(self.run)).clone()
    }

    /// Judges the call of a tool as such.
    fn call(&self, name: &str, arguments: &serde_json::Value, outcome: &mut Outcome) {
        let tool = self.bundle.registry.get(name);
        let shape = tool.and_then(|tool| self.access.arguments.get(tool.id.as_str()));
        let id = tool.map_or(name, |tool| &tool.id);
        let (keys, action) = match shape {
            // A tool that was added after the bundle was loaded has no action of its own.
            Some(_) => (
                [ActionKey::Any, ActionKey::Calls, ActionKey::Call(id.into())],
                self.access.types.action(&call_action(id)),
            ),
            None => {
                ([ActionKey::Any, ActionKey::Calls, ActionKey::UnknownCall], self.access.types.action("call"))
            }
        };
        let resource = Resource::new(ResourceKind::Tool, tool.map_or(name, |tool| tool.name.as_str()));
        let Some(target) = self.target(&resource) else { return };
        let touched = Touched { verb: "call", resource: &resource, span: None };
        let buckets = self.access.slices.buckets(&keys, &self.principals);
        let candidates = self.candidates(&buckets, ResourceKind::Tool, &target);
        let in_context = self.looks_at_context(&candidates.open);
        let context = || {
            // Whether the arguments fit is asked even where no condition looks at them.
            let arguments = shape.map(|fields| request::arguments(fields, arguments)).transpose()?;
            if !in_context {
                return Ok(Context::empty());
            }
            let mut context = request::call_context(self.run_value(), self.tool);
            if let Some(arguments) = arguments {
                context.insert("args".into(), arguments);
            }
            Ok::<Context, String>(Context::Value(Arc::new(context)))
        };
        if candidates.open.is_empty() {
            return outcome.judge(&self.access.policies, &touched, candidates.applying, Vec::new());
        }
        let context = match context() {
            Ok(context) => context,
            Err(pointer) => return outcome.misfit(&touched, &pointer),
        };
        let entities;
        let known = if self.about_principal(&candidates.open) {
            self.alone()
        } else {
            let above = shape.is_some().then(|| self.access.types.action("call"));
            entities = self.entities(&[&target], &action, above);
            entities.as_ref()
        };
        let (applying, failing) = self.applying(candidates, &action, &target, &context, known);
        outcome.judge(&self.access.policies, &touched, applying, failing);
    }

    /// Judges effects that differ in nothing but the resource.
    fn effects(
        &self,
        verb: Verb,
        kind: ResourceKind,
        attributes: &Attributes,
        effects: &[&Effect],
        asking: Asking,
        outcome: &mut Outcome,
    ) {
        let buckets = self.access.slices.buckets(&[ActionKey::Any, ActionKey::Verb(verb)], &self.principals);
        if asking == Asking::Together && self.all_permitted(&buckets, kind, effects) {
            return;
        }
        let targets = effects.iter().filter_map(|effect| {
            let target = self.target(&effect.resource)?;
            let candidates = self.candidates(&buckets, kind, &target);
            Some((*effect, target, candidates))
        });
        let targets: Vec<(&Effect, Target<'_>, Candidates)> = targets.collect();
        let conditional = targets.iter().any(|(_, _, candidates)| !self.about_principal(&candidates.open));
        let in_context = targets.iter().any(|(_, _, candidates)| self.looks_at_context(&candidates.open));
        let action = self.access.types.action(verb.as_str());
        let context = || {
            let context = request::effect_context(self.run_value(), self.tool, attributes);
            Context::Value(Arc::new(context))
        };
        let context = if in_context { context() } else { Context::empty() };
        // One name may stand there twice with different attributes; then each is asked about among its own entities.
        let shared = conditional.then(|| {
            let names: HashSet<&EntityUID> = targets.iter().map(|(_, target, _)| &target.uid).collect();
            let targets: Vec<&Target<'_>> = targets.iter().map(|(_, target, _)| target).collect();
            (names.len() == targets.len()).then(|| self.entities(&targets, &action, None))
        });
        let shared = shared.flatten();
        for (effect, target, candidates) in targets {
            let touched =
                Touched { verb: verb.as_str(), resource: &effect.resource, span: effect.span.as_ref() };
            let (applying, failing) = match &shared {
                _ if candidates.open.is_empty() => (candidates.applying, Vec::new()),
                _ if self.about_principal(&candidates.open) => {
                    self.applying(candidates, &action, &target, &context, self.alone())
                }
                Some(entities) => self.applying(candidates, &action, &target, &context, entities.as_ref()),
                None => {
                    let entities = self.entities(&[&target], &action, None);
                    self.applying(candidates, &action, &target, &context, entities.as_ref())
                }
            };
            outcome.judge(&self.access.policies, &touched, applying, failing);
        }
    }

    /// Whether any of the policies asks for the run, the tool or what is special about the effect. Most do not, and
    /// telling costs more than their conditions.
    fn looks_at_context(&self, policies: &[PolicyNumber]) -> bool {
        policies.iter().any(|at| self.access.policies.get(*at).is_none_or(|policy| policy.in_context))
    }

    /// Whether the policies can be asked without what is known of the resource and the action.
    fn about_principal(&self, policies: &[PolicyNumber]) -> bool {
        policies.iter().all(|at| self.access.policies.get(*at).is_some_and(|policy| policy.about_principal))
    }

    /// Asks once about all resources: whether policies that do nothing but permit certain resources permit all of
    /// these. *No* says nothing.
    fn all_permitted(&self, buckets: &[&Bucket], kind: ResourceKind, effects: &[&Effect]) -> bool {
        let mut permitted = Vec::new();
        for cover in buckets.iter().filter_map(|bucket| bucket.covered(kind)) {
            match cover {
                Cover::No => return false,
                Cover::Permitted(members) => permitted.push(members),
            }
        }
        if !effects.iter().all(|effect| request::is_catalogued(&effect.resource)) {
            return false;
        }
        let uids = effects.iter().map(|effect| self.access.types.resource(kind, &effect.resource.name));
        let Some(uids) = uids.collect::<Option<Vec<EntityUID>>>() else { return false };
        permitted.iter().any(|members| uids.iter().all(|uid| members.has(uid)))
    }

    fn target<'r>(&self, resource: &'r Resource) -> Option<Target<'r>> {
        let uid = self.access.types.resource(resource.kind, &resource.name)?;
        let ancestors = self.access.types.ancestors(resource);
        Some(Target { resource, uid, ancestors, catalogued: request::is_catalogued(resource) })
    }

    /// The policies whose scope the request fits, without those whose condition does not hold by the resource's
    /// name alone.
    fn candidates(&self, buckets: &[&Bucket], kind: ResourceKind, target: &Target<'_>) -> Candidates {
        let mut candidates = Candidates::default();
        for at in candidates_of(buckets, kind, target) {
            let Some(policy) = self.access.policies.get(at) else { continue };
            match (&policy.condition, &policy.members) {
                (None, _) => candidates.applying.push(at),
                (Some(_), Some(members)) if target.catalogued && members.has(&target.uid) => {
                    candidates.applying.push(at);
                }
                // That something is not forbidden is for Cedar alone to say.
                (Some(_), Some(_)) if target.catalogued && !policy.forbids => {}
                (Some(_), _) => candidates.open.push(at),
            }
        }
        candidates
    }

    /// The entities that conditions can ask about: no more than the request's own. `None` if two of the targets have
    /// one name.
    fn entities(
        &self,
        targets: &[&Target<'_>],
        action: &EntityUID,
        above: Option<EntityUID>,
    ) -> Option<Entities> {
        let of_tool = |resource: &'_ Resource| -> Option<&'a Tool> {
            if resource.kind == ResourceKind::Tool { self.bundle.registry.get(&resource.name) } else { None }
        };
        let resources = targets.iter().map(|target| {
            let tool = of_tool(target.resource);
            let risk = tool.and_then(|tool| self.access.risks.get(tool.id.as_str()));
            let tool = tool.map(|tool| (tool, risk));
            Arc::new(request::resource(target.resource, target.uid.clone(), target.ancestors.clone(), tool))
        });
        let mut all: Vec<Arc<Entity>> = resources.collect();
        if let Some(above) = above {
            let none = std::iter::empty;
            let parents = [above].into();
            let action =
                Entity::new_with_attr_partial_value(action.clone(), none(), HashSet::new(), parents, none());
            all.push(Arc::new(action));
        }
        all.push(Arc::clone(&self.entity));
        self.with_constants(all)
    }

    /// The entities that conditions about the principal alone can ask about, made once per decision.
    fn alone(&self) -> Option<&Entities> {
        self.alone.get_or_init(|| self.with_constants(vec![Arc::clone(&self.entity)])).as_ref()
    }

    fn with_constants(&self, entities: Vec<Arc<Entity>>) -> Option<Entities> {
        let constants = self.access.constants.clone();
        let ancestors = TCComputation::AssumeAlreadyComputed;
        constants
            .add_entities(entities, None::<&NoEntitiesSchema>, ancestors, Extensions::all_available())
            .ok()
    }

    /// The candidates that apply, and those whose condition cannot be evaluated.
    fn applying(
        &self,
        candidates: Candidates,
        action: &EntityUID,
        target: &Target<'_>,
        context: &Context,
        entities: Option<&Entities>,
    ) -> (Vec<PolicyNumber>, Vec<PolicyNumber>) {
        let Candidates { mut applying, open } = candidates;
        let Some(entities) = entities else { return (applying, open) };
        let known = |uid: &EntityUID| EntityUIDEntry::known(uid.clone(), None);
        let request = Request::new_unchecked(
            known(&self.principal),
            known(action),
            known(&target.uid),
            Some(context.clone()),
        );
        let evaluator = Evaluator::new(request, entities, Extensions::all_available());
        let mut failing = Vec::new();
        for at in open {
            let condition = self.access.policies.get(at).and_then(|policy| policy.condition.as_ref());
            match condition.map_or(Ok(true), |condition| self.access.holds(&evaluator, condition)) {
                Ok(true) => applying.push(at),
                Ok(false) => {}
                Err(()) => failing.push(at),
            }
        }
        applying.sort_unstable();
        (applying, failing)
    }
}

/// The policies whose scope the request fits, in the order of the bundle.
fn candidates_of(buckets: &[&Bucket], kind: ResourceKind, target: &Target<'_>) -> Vec<PolicyNumber> {
    let mut all: Vec<PolicyNumber> = buckets.iter().flat_map(|bucket| bucket.shared(kind)).collect();
    for bucket in buckets.iter().filter(|bucket| bucket.looks_at_names(kind)) {
        all.extend(bucket.naming(kind, &target.uid, &target.ancestors));
    }
    all.sort_unstable();
    all.dedup();
    all
}

/// No template slots, made once.
pub(crate) fn no_slots() -> SlotEnv {
    SlotEnv::new()
}
