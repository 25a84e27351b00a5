//! Drives a run: facts, decision, durable record, permit, approvals.
