//! How many allocations a decision makes: a test binary of its own, since it counts those of the whole process.

use std::alloc::System;

use portcullis_core::action::{Action, Pending, Subject};
use portcullis_core::bundle::Bundle;
use portcullis_core::fact::Facts;
use portcullis_core::guard::Context;
use portcullis_core::id::ActionId;
use portcullis_core::memory::LazyReading;
use portcullis_core::state::RunState;
use portcullis_core::time::Timestamp;
use portcullis_core::verdict::Verdict;
use portcullis_session::workload;
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Different calls that take turns. The first round is not counted: it makes what is kept beside the registry.
const CALLS: usize = 16;
/// Most allocations and reallocations of one decision by bytes of arguments. Measured with the built-in guards and the
/// call of the benchmarks, `bench decide`, as the most of any of [`CALLS`] calls; a decision is deterministic, and so is
/// the number. Lower it when a change makes fewer; a change that needs more has to say what for.
const ALLOCATIONS_MAX: [(usize, usize); 2] = [(256, 56), (4_096, 59)];

#[test]
fn a_decision_makes_few_allocations() {
    let bundle = Bundle::load(&workload::bundle_files()).unwrap();
    let pipeline = portcullis_session::policy::pipeline();
    let (policy, run, facts) = (bundle.policy(workload::POLICY).unwrap(), RunState::new(), Facts::none());
    let memory = pipeline.begin_memory().unwrap();
    for (bytes, limit) in ALLOCATIONS_MAX {
        let actions: Vec<Action> = (0..CALLS)
            .map(|number| {
                let id = ActionId::from_bytes([u8::try_from(number).unwrap(); 16]);
                Action::new(id, Some(workload::tool(number)), workload::arguments(number, bytes), None)
            })
            .collect();
        let allocations = |action| {
            let pending = Pending { at: Timestamp::default(), subject: Subject::Action(action), grant: None };
            let region = Region::new(ALLOCATOR);
            let reading = LazyReading::of(&memory, &bundle, pending);
            let context = Context::new(&bundle, policy, &run);
            let decision = pipeline.decide(&context.with_reading(&reading), &pending, &facts);
            let counted = region.change();
            assert_eq!(decision.verdict, Verdict::Allow);
            counted.allocations + counted.reallocations
        };
        for action in &actions {
            allocations(action);
        }
        let most = actions.iter().map(allocations).max().unwrap_or(0);
        assert!(most <= limit, "{bytes} bytes of arguments: {most} allocations, at most {limit} are allowed");
    }
}
