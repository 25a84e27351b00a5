//! Names of entities: the Cedar name of each resource, role and domain, and which contains which.

use std::collections::HashSet;

use cedar_policy_core::ast::{Eid, EntityType, EntityUID, UnreservedId};
use portcullis_core::effect::{Resource, ResourceKind};
use portcullis_core::principal::Attribute;
use smol_str::SmolStr;

use crate::schema;

/// Folders above a path, and domains above a host, that policies can name; those nearest to the root.
pub(crate) const LEVELS_MAX: usize = 128;

/// Entity types, made once: a name is parsed, and the parser is slow.
#[derive(Debug)]
pub(crate) struct Types {
    kinds: Vec<EntityType>,
    principal: EntityType,
    role: EntityType,
    domain: EntityType,
    action: EntityType,
    constants: EntityType,
}

impl Types {
    pub(crate) fn new() -> Option<Self> {
        let type_ = |name: &str| -> Option<EntityType> {
            let id: UnreservedId = name.parse().ok()?;
            Some(EntityType::from(cedar_policy_core::ast::Name::from(id)))
        };
        Some(Self {
            kinds: ResourceKind::ALL
                .into_iter()
                .map(|kind| type_(schema::type_name(kind)))
                .collect::<Option<_>>()?,
            principal: type_("Principal")?,
            role: type_("Role")?,
            domain: type_("Domain")?,
            action: type_("Action")?,
            constants: type_("Constants")?,
        })
    }

    pub(crate) fn principal(&self, id: &str) -> EntityUID {
        uid(&self.principal, id)
    }

    pub(crate) fn role(&self, name: &str) -> EntityUID {
        uid(&self.role, name)
    }

    pub(crate) fn action(&self, name: &str) -> EntityUID {
        uid(&self.action, name)
    }

    /// The entity that holds the constants of all conditions. The schema has no such type, so no policy names it.
    pub(crate) fn constants(&self) -> EntityUID {
        uid(&self.constants, "")
    }

    pub(crate) fn resource(&self, kind: ResourceKind, name: &str) -> Option<EntityUID> {
        self.kinds.get(number(kind)).map(|type_| uid(type_, name))
    }

    /// The kind of resource that a type is.
    pub(crate) fn kind(&self, type_: &EntityType) -> Option<ResourceKind> {
        let at = self.kinds.iter().position(|known| known == type_)?;
        ResourceKind::ALL.get(at).copied()
    }

    pub(crate) fn is_principal(&self, type_: &EntityType) -> bool {
        *type_ == self.principal
    }

    /// Whether something of that type can be, or contain, a resource of the kind.
    pub(crate) fn relates(&self, type_: &EntityType, kind: ResourceKind) -> bool {
        match kind {
            ResourceKind::Host | ResourceKind::Recipient if *type_ == self.domain => true,
            ResourceKind::Column if self.kind(type_) == Some(ResourceKind::Table) => true,
            _ => self.kind(type_) == Some(kind),
        }
    }

    /// All that a resource is in.
    pub(crate) fn ancestors(&self, resource: &Resource) -> HashSet<EntityUID> {
        match resource.kind {
            ResourceKind::Path => {
                let kind = ResourceKind::Path;
                folders(&resource.name).filter_map(|folder| self.resource(kind, folder)).collect()
            }
            ResourceKind::Host if !resource.is("address") => self.domains(&resource.name),
            ResourceKind::Recipient => match resource.attributes.get("domain") {
                Some(Attribute::Text(domain)) => self.domains(domain),
                _ => HashSet::new(),
            },
            ResourceKind::Column => {
                let table = resource.name.rsplit_once('.').map(|(table, _)| table);
                table.and_then(|table| self.resource(ResourceKind::Table, table)).into_iter().collect()
            }
            _ => HashSet::new(),
        }
    }

    /// The domain of that name and all above it.
    fn domains(&self, name: &str) -> HashSet<EntityUID> {
        let dots: Vec<usize> = name.rmatch_indices('.').map(|(at, _)| at).take(LEVELS_MAX).collect();
        let above = dots.into_iter().filter_map(|at| name.get(at + 1..));
        above.chain([name]).filter(|name| !name.is_empty()).map(|name| uid(&self.domain, name)).collect()
    }
}

/// The folders above a path, from the root.
fn folders(path: &str) -> impl Iterator<Item = &str> {
    let slashes = path.match_indices('/').map(|(at, _)| at).take(LEVELS_MAX);
    slashes
        .filter_map(move |at| if at == 0 { path.get(..1) } else { path.get(..at) })
        .filter(move |folder| *folder != path)
}

/// Place of a kind in [`ResourceKind::ALL`].
pub(crate) fn number(kind: ResourceKind) -> usize {
    kind as usize
}

fn uid(type_: &EntityType, id: &str) -> EntityUID {
    EntityUID::from_components(type_.clone(), Eid::new(SmolStr::new(id)), None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_stand_at_their_number() {
        for kind in ResourceKind::ALL {
            assert_eq!(ResourceKind::ALL[number(kind)], kind);
        }
    }

    #[test]
    fn folders_reach_to_the_root() {
        assert_eq!(folders("/etc/ssh/keys").collect::<Vec<_>>(), ["/", "/etc", "/etc/ssh"]);
        assert_eq!(folders("/etc").collect::<Vec<_>>(), ["/"]);
        assert_eq!(folders("/").count(), 0);
        assert_eq!(folders("src/x").collect::<Vec<_>>(), ["src"]);
        assert_eq!(folders(&"/a".repeat(100_000)).count(), LEVELS_MAX);
    }

    #[test]
    fn a_host_lies_in_its_own_domain_and_all_above() {
        let types = Types::new().unwrap();
        let names = |resource: &Resource| {
            let mut names: Vec<String> = types.ancestors(resource).iter().map(ToString::to_string).collect();
            names.sort();
            names.join(" ")
        };
        let host = Resource::new(ResourceKind::Host, "api.example.com");
        assert_eq!(names(&host), r#"Domain::"api.example.com" Domain::"com" Domain::"example.com""#);
        let address = Resource::new(ResourceKind::Host, "10.0.0.1").with("address", true);
        assert_eq!(names(&address), "");
        let column = Resource::new(ResourceKind::Column, "hospital.lab.labname");
        assert_eq!(names(&column), r#"Table::"hospital.lab""#);
        assert_eq!(
            names(&Resource::new(ResourceKind::Recipient, "a@b.org").with("domain", "b.org")),
            r#"Domain::"b.org" Domain::"org""#
        );
    }
}
