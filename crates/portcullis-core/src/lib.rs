//! Vocabulary, hooks, guards, pipeline, run state, tool registry and bundle: the pure part of the gate.
