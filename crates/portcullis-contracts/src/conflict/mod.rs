//! Contracts that cannot hold together, as minimal sets: no smaller part of a set is in conflict, and any one that gives
//! way frees the rest.
//!
//! Rules are sound readings of what the checkers demand, not a proof that the rest can be satisfied. What holds on paper
//! only by a trick, such as a bare string as JSON or a phrase as the key of a mapping, counts as impossible.

mod literal;
mod pair;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::context::Context;
use crate::contract::Contract;
use crate::family::Family;
use crate::wording::{SENTENCES, WORDS, bounded};

/// A set of contracts of which at least one must fail.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Conflict {
    /// Their ids, in the order of the contracts.
    pub contracts: Vec<String>,
    /// Why.
    pub reason: String,
}

/// Every conflict that the rules find: alone impossible ones, pairs, and triples of counts. The context may be a prompt
/// alone, which matters where the reply has to repeat it. Judged contracts are in no conflict that code could know.
#[must_use]
pub fn conflicts<'a>(contracts: &[Contract], context: impl Into<Context<'a>>) -> Vec<Conflict> {
    let context = &context.into();
    let exact: Vec<(&Contract, &Family)> =
        contracts.iter().filter_map(|contract| Some((contract, contract.family()?))).collect();
    let mut found: Vec<(Vec<usize>, String)> = Vec::new();
    for (at, (_, family)) in exact.iter().enumerate() {
        if let Some(reason) = alone(family, context) {
            found.push((vec![at], reason));
        }
    }
    let impossible: Vec<usize> = found.iter().flat_map(|(members, _)| members.clone()).collect();
    for (a, (_, first)) in exact.iter().enumerate().filter(|(at, _)| !impossible.contains(at)) {
        for (b, (_, second)) in
            exact.iter().enumerate().skip(a + 1).filter(|(at, _)| !impossible.contains(at))
        {
            if let Some(reason) =
                pair::conflict(first, second, context).or_else(|| pair::conflict(second, first, context))
            {
                found.push((vec![a, b], reason));
            }
        }
    }
    let families: Vec<&Family> = exact.iter().map(|(_, family)| *family).collect();
    for (members, reason) in triples(&families) {
        let smaller = found.iter().any(|(part, _)| part.iter().all(|member| members.contains(member)));
        if !smaller {
            found.push((members, reason));
        }
    }
    found
        .into_iter()
        .map(|(members, reason)| {
            let ids =
                members.into_iter().filter_map(|at| exact.get(at)).map(|(contract, _)| contract.id.clone());
            Conflict { contracts: ids.collect(), reason }
        })
        .collect()
}

/// Why a contract can never hold.
fn alone(family: &Family, context: &Context<'_>) -> Option<String> {
    let bound = match family {
        Family::Words { count }
        | Family::Characters { count }
        | Family::Sentences { count }
        | Family::SentenceLength { count }
        | Family::Paragraphs { count, .. }
        | Family::Bullets { count }
        | Family::Highlights { count }
        | Family::Placeholders { count }
        | Family::Sections { count, .. }
        | Family::KeywordCount { count, .. }
        | Family::LetterCount { count, .. }
        | Family::CapitalWords { count } => count,
        Family::ParagraphWord { paragraph, total: Some(total), .. } if paragraph > total => {
            return Some(format!("there is no paragraph {paragraph} of {total}"));
        }
        Family::Cites { present: true, known: true } if context.documents.is_some_and(<[_]>::is_empty) => {
            return Some("there is no known document to cite".to_owned());
        }
        _ => return None,
    };
    bound.is_empty().then(|| format!("no count is {bound}"))
}

/// Words, sentences and words a sentence, where each two of the three would do.
fn triples(families: &[&Family]) -> Vec<(Vec<usize>, String)> {
    let mut out = Vec::new();
    let places = |wanted: fn(&Family) -> bool| -> Vec<usize> {
        families.iter().enumerate().filter(|(_, family)| wanted(family)).map(|(at, _)| at).collect()
    };
    for &w in &places(|family| matches!(family, Family::Words { .. })) {
        for &s in &places(|family| matches!(family, Family::Sentences { .. })) {
            for &l in &places(|family| matches!(family, Family::SentenceLength { .. })) {
                let (
                    Some(Family::Words { count: words }),
                    Some(Family::Sentences { count: sentences }),
                    Some(Family::SentenceLength { count: length }),
                ) = (families.get(w), families.get(s), families.get(l))
                else {
                    continue;
                };
                let most = sentences.most().zip(length.most()).map(|(s, l)| u64::from(s) * u64::from(l));
                let least = u64::from(sentences.at_least) * u64::from(length.at_least);
                let reason = if most.is_some_and(|most| most < u64::from(words.at_least)) {
                    format!(
                        "{}, each of {}, are fewer than {}",
                        bounded(sentences, SENTENCES),
                        bounded(length, WORDS),
                        bounded(words, WORDS)
                    )
                } else if words.below.is_some_and(|below| least >= u64::from(below)) {
                    format!(
                        "{}, each of {}, are more than {}",
                        bounded(sentences, SENTENCES),
                        bounded(length, WORDS),
                        bounded(words, WORDS)
                    )
                } else {
                    continue;
                };
                let mut members = vec![w, s, l];
                members.sort_unstable();
                out.push((members, reason));
            }
        }
    }
    out
}
