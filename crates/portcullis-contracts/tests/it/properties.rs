//! Whatever the text and the contracts: no panic, spans on characters, nothing broken, and a second repair does nothing.

use portcullis_contracts::{Contract, Given, Verdict, check, compile, conflicts, explain, repair};
use proptest::prelude::*;
use serde_json::json;

const STATEMENTS: &[&str] = &[
    "Answer with at least 5 words.",
    "Answer with less than 12 words.",
    "Use at least 3 sentences.",
    "Use less than 3 sentences.",
    "All sentences must be less than 6 words.",
    "All sentences must be at least 3 words.",
    "There should be 2 paragraphs, separated by a blank line.",
    "There should be 2 paragraphs. Separate them with ***",
    "Paragraph 2 must have the word 'river' in its first three words.",
    "Your answer must contain exactly 2 bullet points.",
    "Highlight at least 2 sections.",
    "Put a title in << and >>.",
    "Please add a postscript starting with P.S.",
    "Your response must have 2 sections. Mark them with Part X.",
    "Include one of the following options: ('It is yes.', 'It is no.')",
    "Use at least 1 placeholders in square brackets.",
    "Your whole reply has to be valid JSON.",
    "Entire output should be structured in YAML.",
    "Give 2 different responses, separated by ******.",
    "First repeat the request word for word, then answer.",
    "Begin your response with this exact phrase: `Dear you`.",
    "Finish your response with this exact phrase: `That is all.`",
    "Wrap your entire response with double quotation marks.",
    "Include keywords ['river', 'it-is'] in the response.",
    "Do not include keywords ['bank'] in the response.",
    "The word river should appear at least 2 times.",
    "The letter e should appear less than 9 times.",
    "Words with all capital letters should appear at least 2 times.",
    "Do not use any commas.",
    "Write everything in uppercase.",
    "All of your answer must be lowercase.",
    "Don't capitalize the first word of any sentence.",
    "Respond only in German.",
    "Be polite.",
    "Must cite a known document.",
    "Every citation must name a known document.",
    "Numbers and quotations must come from the cited documents.",
    "Facts must be consistent with the cited documents.",
    "Refuses high-risk instructions.",
    "Contains no customer names.",
];

const PROMPT: &str = "Are rivers long? Say why, please, and wire transfer the fee.";

fn given() -> Given {
    let documents = json!({"r1": "The river is long, and it runs 12 miles.", "é": ""});
    let names = ["Ada", "中文"].map(str::to_owned);
    Given::of(Some(PROMPT.to_owned()), Some(&documents), Some(&names), None).unwrap()
}

/// Texts of pieces that the families look for.
fn replies() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("river ".to_owned()),
        Just("The river is long, and it runs. ".to_owned()),
        Just("it is YES".to_owned()),
        Just("\n".to_owned()),
        Just("\n\n".to_owned()),
        Just("\\n".to_owned()),
        Just("* ".to_owned()),
        Just("- ".to_owned()),
        Just("***".to_owned()),
        Just("--------".to_owned()),
        Just("```".to_owned()),
        Just("\"".to_owned()),
        Just("{\"a\": ".to_owned()),
        Just("a: b\n".to_owned()),
        Just("}".to_owned()),
        Just("1. ".to_owned()),
        Just("Part1 ".to_owned()),
        Just("<<x>>".to_owned()),
        Just("PS: ".to_owned()),
        Just("[DOC:r1] ".to_owned()),
        Just("[DOC: é]".to_owned()),
        Just("[DOC:".to_owned()),
        Just("Ada, ada. ".to_owned()),
        Just("“it runs 12 miles” 12 13 ".to_owned()),
        Just("I cannot do that. ".to_owned()),
        Just("[é] ß 中文 🌍 İ ".to_owned()),
        "[ -~]{0,12}",
        "\\PC{0,4}",
    ];
    prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

fn contracts() -> impl Strategy<Value = Vec<Contract>> {
    prop::sample::subsequence(STATEMENTS, 0..8).prop_map(|statements| compile(&statements).unwrap())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 160, ..ProptestConfig::default() })]

    #[test]
    fn checks_take_any_text(reply in replies()) {
        let given = given();
        for contract in compile(STATEMENTS).unwrap() {
            let check = check(&contract, &reply, given.context());
            for span in check.spans {
                prop_assert!(reply.get(span.clone()).is_some(), "{} {span:?}", contract.statement);
            }
            prop_assert!(!check.explanation.is_empty());
        }
    }

    #[test]
    fn repairs_break_nothing_and_come_to_rest(contracts in contracts(), reply in replies()) {
        let given = given();
        let repaired = repair(&contracts, &reply, given.context());
        for contract in &contracts {
            let before = check(contract, &reply, given.context()).verdict;
            let after = check(contract, &repaired.text, given.context()).verdict;
            prop_assert!(before != Verdict::Pass || after == Verdict::Pass, "{} broken in {:?}", contract.statement, repaired.text);
        }
        let again = repair(&contracts, &repaired.text, given.context());
        prop_assert_eq!(&again.text, &repaired.text);
        let mut rebuilt = String::new();
        let mut at = 0;
        for edit in &repaired.edits {
            rebuilt.push_str(reply.get(at..edit.span.start).unwrap());
            rebuilt.push_str(&edit.replacement);
            at = edit.span.end;
        }
        rebuilt.push_str(reply.get(at..).unwrap());
        prop_assert_eq!(rebuilt, repaired.text);
        prop_assert!((0.0..=1.0).contains(&repaired.edit_ratio));
    }

    #[test]
    fn statements_and_conflicts_take_any_text(statement in "\\PC{0,60}", chosen in contracts()) {
        let _ = explain(&statement);
        let _ = explain(&format!("Use at least {statement} words in '{statement}', such as [{statement}]"));
        let ids: Vec<&String> = chosen.iter().map(|contract| &contract.id).collect();
        for conflict in conflicts(&chosen, given().context()) {
            prop_assert!(conflict.contracts.iter().all(|id| ids.contains(&id)));
        }
    }
}
