//! The index of policies: a request is shown only the policies whose scope it fits.
//!
//! A scope is exactly what the index looks up (action or its group, principal or role, resource, its type or what
//! it is in), so a policy that the index yields has its scope fulfilled and only its condition is left to ask.
//! Policies about other actions, principals and resources cost nothing.

use std::collections::{BTreeSet, HashMap};

use cedar_policy_core::ast::{ActionConstraint, EntityReference, EntityUID, PrincipalOrResourceConstraint};
use portcullis_core::effect::{ResourceKind, Verb};
use portcullis_core::verdict::Verdict;
use smol_str::SmolStr;

use crate::conditions::{Catalogue, Members};
use crate::policy::Policy;
use crate::uid::{Types, number};

/// Position of a policy in the bundle's list.
pub(crate) type PolicyNumber = usize;

/// What a request must be about for a policy to be evaluated.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum ActionKey {
    /// Policies about any action.
    Any,
    /// An effect.
    Verb(Verb),
    /// Policies about the group of all calls.
    Calls,
    /// Policies about calls of tools that the registry does not list, and no others.
    UnknownCall,
    /// The call of the tool with that id.
    Call(SmolStr),
}

/// The index.
#[derive(Debug, Default)]
pub(crate) struct Slices {
    by_action: HashMap<ActionKey, ByPrincipal>,
}

#[derive(Debug, Default)]
struct ByPrincipal {
    anyone: Bucket,
    named: HashMap<EntityUID, Bucket>,
}

/// The policies of one action and one principal or role, by resource.
#[derive(Debug, Default)]
pub(crate) struct Bucket {
    anything: Vec<PolicyNumber>,
    of_kind: HashMap<usize, Vec<PolicyNumber>>,
    exactly: HashMap<EntityUID, Vec<PolicyNumber>>,
    within: HashMap<EntityUID, Vec<(Option<ResourceKind>, PolicyNumber)>>,
    /// What is said of each kind of resource.
    about: Vec<About>,
}

/// What a bucket's policies look at in resources of one kind.
#[derive(Debug, Default)]
struct About {
    /// Whether any depends on which resource it is, or on what it is in.
    names: bool,
    /// Whether many can be asked about at once, or `None` if no policy is about the kind.
    cover: Option<Cover>,
}

/// Whether a bucket's policies about a kind of resource can be asked about many resources at once.
#[derive(Debug)]
pub(crate) enum Cover {
    /// No: one of them says more than which resources it permits.
    No,
    /// They permit these, as long as each is catalogued where its kind has a catalogue.
    Permitted(Members),
}

impl Slices {
    /// Files all policies.
    pub(crate) fn build(policies: &[Policy], catalogue: &Catalogue<'_>) -> Self {
        let types = catalogue.types;
        let mut slices = Self::default();
        for (at, policy) in policies.iter().enumerate() {
            for action in action_keys(policy.template.action_constraint()) {
                let by_principal = slices.by_action.entry(action).or_default();
                let bucket = match Whom::of(types, policy.template.principal_constraint().as_inner()) {
                    Whom::Named(uid) => by_principal.named.entry(uid.clone()).or_default(),
                    Whom::Anyone => &mut by_principal.anyone,
                    Whom::Nobody => continue,
                };
                bucket.file(types, policy.template.resource_constraint().as_inner(), at);
            }
        }
        for by_principal in slices.by_action.values_mut() {
            for bucket in by_principal.named.values_mut().chain([&mut by_principal.anyone]) {
                let about = |kind| About {
                    names: bucket.names(kind, types),
                    cover: bucket.cover(kind, policies, catalogue),
                };
                bucket.about = ResourceKind::ALL.into_iter().map(about).collect();
            }
        }
        slices
    }

    /// The buckets of a request: `actions` are its action and the groups it is in, `principals` its principal and
    /// the roles.
    pub(crate) fn buckets<'s>(&'s self, actions: &[ActionKey], principals: &[EntityUID]) -> Vec<&'s Bucket> {
        let mut buckets = Vec::new();
        for by_principal in actions.iter().filter_map(|action| self.by_action.get(action)) {
            buckets.push(&by_principal.anyone);
            if !by_principal.named.is_empty() {
                buckets.extend(principals.iter().filter_map(|uid| by_principal.named.get(uid)));
            }
        }
        buckets
    }
}

impl Bucket {
    fn file(&mut self, types: &Types, constraint: &PrincipalOrResourceConstraint, at: PolicyNumber) {
        use PrincipalOrResourceConstraint as C;
        match constraint {
            C::Any => self.anything.push(at),
            C::Is(type_) => {
                // A type that is no resource fits no request.
                if let Some(kind) = types.kind(type_) {
                    self.of_kind.entry(number(kind)).or_default().push(at);
                }
            }
            C::Eq(EntityReference::EUID(uid)) => {
                self.exactly.entry(uid.as_ref().clone()).or_default().push(at);
            }
            C::In(EntityReference::EUID(uid)) => {
                self.within.entry(uid.as_ref().clone()).or_default().push((None, at));
            }
            C::IsIn(type_, EntityReference::EUID(uid)) => {
                if let Some(kind) = types.kind(type_) {
                    self.within.entry(uid.as_ref().clone()).or_default().push((Some(kind), at));
                }
            }
            // Templates do not load.
            C::Eq(EntityReference::Slot(_))
            | C::In(EntityReference::Slot(_))
            | C::IsIn(_, EntityReference::Slot(_)) => {}
        }
    }

    fn names(&self, kind: ResourceKind, types: &Types) -> bool {
        self.exactly.keys().chain(self.within.keys()).any(|uid| types.relates(uid.entity_type(), kind))
    }

    /// Whether any policy depends on which resource of the kind it is, or on what that is in.
    pub(crate) fn looks_at_names(&self, kind: ResourceKind) -> bool {
        self.about.get(number(kind)).is_some_and(|about| about.names)
    }

    /// The policies about every resource of the kind.
    pub(crate) fn shared(&self, kind: ResourceKind) -> impl Iterator<Item = PolicyNumber> + '_ {
        self.anything.iter().chain(self.of_kind.get(&number(kind)).into_iter().flatten()).copied()
    }

    /// The policies about this very resource, or what it is in.
    pub(crate) fn naming<'s>(
        &'s self,
        kind: ResourceKind,
        uid: &'s EntityUID,
        ancestors: impl IntoIterator<Item = &'s EntityUID> + 's,
    ) -> impl Iterator<Item = PolicyNumber> + 's {
        let exactly = self.exactly.get(uid).into_iter().flatten().copied();
        let within = ancestors.into_iter().chain([uid]).filter_map(|uid| self.within.get(uid)).flatten();
        let within = within.filter(move |(of, _)| of.is_none_or(|of| of == kind)).map(|(_, at)| *at);
        exactly.chain(within)
    }

    /// The cover for a kind, if any policy is about it.
    pub(crate) fn covered(&self, kind: ResourceKind) -> Option<&Cover> {
        self.about.get(number(kind)).and_then(|about| about.cover.as_ref())
    }

    fn cover(&self, kind: ResourceKind, policies: &[Policy], catalogue: &Catalogue<'_>) -> Option<Cover> {
        let types = catalogue.types;
        let anything = self.shared(kind).map(|at| (at, Some(Members::All)));
        let exactly = self.exactly.iter().filter(|(uid, _)| types.relates(uid.entity_type(), kind));
        let exactly = exactly.flat_map(|(uid, all)| {
            all.iter().map(move |at| (*at, Some(Members::These([uid.clone()].into()))))
        });
        let within = self.within.iter().filter(|(uid, _)| types.relates(uid.entity_type(), kind));
        let within = within.flat_map(|(uid, all)| {
            let fitting = all.iter().filter(|(of, _)| of.is_none_or(|of| of == kind));
            fitting.map(|(_, at)| (*at, catalogue.within(uid)))
        });
        let mut all: Option<Members> = None;
        for (at, scope) in anything.chain(exactly).chain(within) {
            let members = policies.get(at).and_then(|policy| {
                if policy.forbids || policy.decision != Verdict::Allow {
                    return None;
                }
                match policy.template.non_scope_constraints() {
                    Some(_) => Some(scope?.and(policy.members.clone()?)),
                    None => scope,
                }
            });
            let Some(members) = members else { return Some(Cover::No) };
            all = Some(match all {
                Some(others) => others.or(members),
                None => members,
            });
        }
        all.map(Cover::Permitted)
    }
}

/// The keys under which a policy is filed.
pub(crate) fn action_keys(constraint: &ActionConstraint) -> Vec<ActionKey> {
    match constraint {
        ActionConstraint::Any => vec![ActionKey::Any],
        ActionConstraint::Eq(uid) => vec![action_key(uid.eid().as_ref(), false)],
        ActionConstraint::In(uids) => {
            let mut seen = BTreeSet::new();
            let ids = uids.iter().map(|uid| uid.eid().as_ref());
            ids.filter(|id: &&str| seen.insert(*id)).map(|id| action_key(id, true)).collect()
        }
    }
}

fn action_key(id: &str, with_group: bool) -> ActionKey {
    match id.strip_prefix("call:") {
        Some(tool) => ActionKey::Call(SmolStr::new(tool)),
        None if id == "call" && with_group => ActionKey::Calls,
        None => match Verb::ALL.into_iter().find(|verb| verb.as_str() == id) {
            Some(verb) => ActionKey::Verb(verb),
            None => ActionKey::UnknownCall,
        },
    }
}

/// Whom a policy is about.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Whom<'p> {
    /// Anyone.
    Anyone,
    /// That principal, or anyone who has that role.
    Named(&'p EntityUID),
    /// No principal: the scope names a type that no principal has.
    Nobody,
}

impl<'p> Whom<'p> {
    pub(crate) fn of(types: &Types, constraint: &'p PrincipalOrResourceConstraint) -> Self {
        use PrincipalOrResourceConstraint as C;
        match constraint {
            C::Any => Self::Anyone,
            C::Is(type_) if types.is_principal(type_) => Self::Anyone,
            C::Eq(EntityReference::EUID(uid)) if types.is_principal(uid.entity_type()) => Self::Named(uid),
            C::In(EntityReference::EUID(uid)) => Self::Named(uid),
            C::IsIn(type_, EntityReference::EUID(uid)) if types.is_principal(type_) => Self::Named(uid),
            _ => Self::Nobody,
        }
    }
}
