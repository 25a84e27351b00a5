//! How far the scope of one policy reaches compared with another's.

use cedar_policy_core::ast::{
    EntityReference, EntityType, EntityUID, PrincipalOrResourceConstraint, Template,
};
use portcullis_core::effect::{Resource, ResourceKind};

use crate::slices::{ActionKey, Whom, action_keys};
use crate::uid::Types;

/// The scope of a policy.
#[derive(Debug)]
pub(crate) struct Scope<'p> {
    types: &'p Types,
    whom: Whom<'p>,
    actions: Vec<ActionKey>,
    resource: What<'p>,
}

/// The resources that a scope names.
#[derive(Debug)]
struct What<'p> {
    type_: Option<&'p EntityType>,
    within: Option<&'p EntityUID>,
    exactly: bool,
}

impl<'p> Scope<'p> {
    pub(crate) fn of(types: &'p Types, template: &'p Template) -> Self {
        use PrincipalOrResourceConstraint as C;
        let (type_, within, exactly) = match template.resource_constraint().as_inner() {
            C::Is(type_) => (Some(type_.as_ref()), None, false),
            C::Eq(EntityReference::EUID(uid)) => (Some(uid.entity_type()), Some(uid.as_ref()), true),
            C::In(EntityReference::EUID(uid)) => (None, Some(uid.as_ref()), false),
            C::IsIn(type_, EntityReference::EUID(uid)) => (Some(type_.as_ref()), Some(uid.as_ref()), false),
            _ => (None, None, false),
        };
        Self {
            types,
            whom: Whom::of(types, template.principal_constraint().as_inner()),
            actions: action_keys(template.action_constraint()),
            resource: What { type_, within, exactly },
        }
    }

    /// Whether it names nothing at all.
    pub(crate) fn is_unlimited(&self) -> bool {
        self.whom == Whom::Anyone
            && self.actions == [ActionKey::Any]
            && self.resource.type_.is_none()
            && self.resource.within.is_none()
    }

    /// Whether every request that fits `other` fits this one.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        let whom = match (&self.whom, &other.whom) {
            (Whom::Anyone, _) | (_, Whom::Nobody) => true,
            (mine, theirs) => mine == theirs,
        };
        let action = |theirs: &ActionKey| self.actions.iter().any(|mine| action_covers(mine, theirs));
        whom && other.actions.iter().all(action) && self.resource_covers(&other.resource)
    }

    fn resource_covers(&self, other: &What<'_>) -> bool {
        let mine = &self.resource;
        if mine.type_.is_some() && mine.type_ != other.type_ {
            return false;
        }
        match (mine.within, other.within) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(mine_in), Some(theirs_in)) if mine.exactly => other.exactly && mine_in == theirs_in,
            (Some(mine_in), Some(theirs_in)) => mine_in == theirs_in || self.lies_in(theirs_in, mine_in),
        }
    }

    /// Whether one resource is in another by their names alone.
    fn lies_in(&self, inner: &EntityUID, outer: &EntityUID) -> bool {
        let Some(kind @ (ResourceKind::Path | ResourceKind::Column)) = self.types.kind(inner.entity_type())
        else {
            return false;
        };
        let name: &str = inner.eid().as_ref();
        self.types.ancestors(&Resource::new(kind, name)).contains(outer)
    }
}

fn action_covers(mine: &ActionKey, theirs: &ActionKey) -> bool {
    match (mine, theirs) {
        (ActionKey::Any, _) => true,
        (ActionKey::Calls, ActionKey::Call(_) | ActionKey::UnknownCall) => true,
        _ => mine == theirs,
    }
}
