//! wip
use crate::rule::Rule;
use crate::spec::Spec;

/// The tests of rules as Markdown.
pub fn markdown(_rules: &[Rule], _spec: &Spec) -> String {
    String::new()
}
