//! Arguments that have to be given.

use super::clause::Found;
use super::context::Context;
use super::tools::argument;
use crate::rule::{Condition, Stop, Test};

/// `a reason must be given`, `never without a ticket number`. `None` where a clause says nothing of the kind.
pub(super) fn read(context: &mut Context<'_>, found: &mut Found) -> Option<bool> {
    if !found.values.is_empty() || !found.who.only.is_empty() || found.timing.times.is_some() {
        return None;
    }
    let look = &found.look;
    let without = look.find(&[
        "without a|an|any|its|the|giving|stating|naming|specifying|providing? a|an|any|the?",
        "unless a|an|the",
    ]);
    let given = look.find(&[
        "must|has|have|needs|need|should to? always? include|contain|state|carry|name|specify|mention|give|provide|record|reference|cite|have", "is|are always? required|mandatory|needed|compulsory", "must|has|have to? always? be given|provided|stated|specified|recorded|present|filled|set|included|entered|named|documented|supplied|mentioned", "must|needs|need|requires|require|required a|an|the|some", "must not be empty|blank|missing", "can't|cannot|may not be empty|blank|missing", "needs|require|requires",
    ]);
    let lead = match (&without, &given) {
        (Some(without), _) if found.negative || found.only > 0 => without.clone(),
        (_, Some(given)) => given.clone(),
        (Some(without), None) => without.clone(),
        (None, None) => return None,
    };
    let tool = found.tools.first().and_then(|tool| context.tools.spec.tool(tool))?;
    let stops = |at: usize| {
        look.is_any(
            at,
            &[
                ",", "must", "is", "when", "for", "and", "if", ".", "before", "has", "needs", "whenever",
                "be", "to", "so",
            ],
        )
    };
    // The noun stands after `without` and `must include`, and before `must be given` and `is required`.
    let after = look.slice(lead.end..(lead.end..look.len()).find(|at| stops(*at)).unwrap_or(look.len()));
    let from = (0..lead.start)
        .rev()
        .take_while(|at| !look.is_any(*at, &[",", "gets", "is", "are", "closed", ":"]))
        .last()
        .unwrap_or(0);
    let before = look.slice(from..lead.start);
    let nouns = |words: Vec<&super::words::Word>| -> Option<String> {
        (1..=3.min(words.len())).rev().find_map(|length| {
            let last = words.get(words.len().saturating_sub(length)..)?;
            let first = words.get(..length)?;
            argument(tool, first).or_else(|| argument(tool, last)).map(|own| own.name.clone())
        })
    };
    let own = nouns(after).or_else(|| nouns(before))?;
    let mut when: Vec<Condition> = found.filters(true);
    when.push(Condition::Not(Box::new(Condition::Argument(own, Test::Given))));
    let all = lead.start..lead.end;
    found.look.take(all);
    (found.must, found.only) = (false, 0);
    context.rule(found.sentence.clone(), &found.tools, when, None, Stop::Deny);
    Some(true)
}
