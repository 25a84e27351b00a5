//! Which argument holds what.
