//! Parts of a bundle that other crates make ready when it is loaded, in languages that the core does not know.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use super::diagnostic::Diagnostic;
use super::snapshot::Bundle;
use crate::action::Action;
use crate::effect::Effect;
use crate::finding::Finding;
use crate::state::RunState;

/// Makes a part of a bundle ready for use when it is loaded.
pub trait Compiler {
    /// What was made, kept with the bundle, or `None` if the bundle has nothing for this compiler. Mistakes keep the
    /// bundle from loading, like all others.
    fn compile(&self, bundle: &Bundle) -> Result<Option<Compiled>, Vec<Diagnostic>>;
}

/// Access policies that are ready to decide.
pub trait AccessPolicies: Send + Sync + fmt::Debug {
    /// The findings on an action and what it would touch. Pure and total.
    fn decide(&self, bundle: &Bundle, run: &RunState, action: &Action, effects: &[Effect]) -> Vec<Finding>;
}

/// Something that a [`Compiler`] made.
#[derive(Clone)]
pub struct Compiled {
    value: Arc<dyn Any + Send + Sync>,
    access: Option<Arc<dyn AccessPolicies>>,
}

impl Compiled {
    /// Keeps a value.
    pub fn new<T: Any + Send + Sync>(value: T) -> Self {
        Self { value: Arc::new(value), access: None }
    }

    /// Keeps access policies, which decisions ask without looking for their type.
    pub fn access<T: AccessPolicies + Any>(policies: T) -> Self {
        let policies = Arc::new(policies);
        let value: Arc<dyn Any + Send + Sync> = Arc::<T>::clone(&policies);
        Self { value, access: Some(policies) }
    }

    /// The value, if it is of that type.
    pub fn get<T: Any>(&self) -> Option<&T> {
        self.value.downcast_ref()
    }

    /// The access policies, if that is what was made.
    pub(super) fn access_policies(&self) -> Option<&dyn AccessPolicies> {
        self.access.as_deref()
    }
}

impl fmt::Debug for Compiled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Compiled(..)")
    }
}
