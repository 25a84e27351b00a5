//! Every family on a text where it holds and one where it does not.

use portcullis_contracts::{Check, Checker, Contract, Verdict, check, compile, explain, ifeval};
use serde_json::json;

fn contract(statement: &str) -> Contract {
    let contract = compile(&[statement]).unwrap().remove(0);
    assert!(matches!(contract.checker, Checker::Exact(_)), "{statement}: {}", explain(statement).reading);
    contract
}

fn run(statement: &str, reply: &str) -> Check {
    check(&contract(statement), reply, Some("Say it. Then stop."))
}

/// Statement, a reply where it holds, one where it does not.
const BOTH: &[(&str, &str, &str)] = &[
    ("Answer with at least 3 words.", "one two three", "don't"),
    ("Answer with less than 3 words.", "don't", "well-known thing"),
    ("Use at most 5 characters.", "abcde", "abcdef"),
    ("Your response should contain at least 3 sentences.", "One. Two! Three?", "A heading\n\nA text."),
    (
        "All sentences in your response must be less than 4 words.",
        "One two three. Four five six.",
        "A b c d. E.",
    ),
    ("All sentences must be at least 2 words.", "One two. Three four.", "One two. Three."),
    ("There should be 2 paragraphs. Separate them with ***", "a\n***\nb", "a\n\nb"),
    ("There should be 2 paragraphs, separated by a blank line.", "a\n\nb", "a\nb"),
    (
        "Paragraph 2 must have the word 'show' in its first three words.",
        "a\n\nWe will show it",
        "a\n\nIt is now to show",
    ),
    ("The second paragraph must start with the word 'show'.", "a\n\nShow, it", "a\n\nWe show"),
    ("Your answer must contain exactly 2 bullet points.", "* a\n- b", "* a\n1. b"),
    ("Highlight at least 2 sections.", "*a* and **b**", "* a\n* b"),
    ("Your answer must contain a title, wrapped in double angular brackets.", "<<a>>", "<< >>"),
    ("Please add a postscript starting with P.S.", "x\np. s. more", "PS: more"),
    ("Please add a postscript starting with P.P.S", "P.P.S. more", "P.S. more"),
    ("Your response must have 2 sections. Mark them with Part X.", "Part 1 a Part 2 b", "part 1 a Part 2 b"),
    ("Include one of the following options: ('It is yes.', 'It is no.')", "So: It is no.", "it is no"),
    ("Use at least 2 placeholders in square brackets.", "[a] [b]", "[a] (b)"),
    ("Your whole reply has to be valid JSON.", "```json\n{\"a\": 1}\n```", "Here: {\"a\": 1}"),
    ("Entire output should be structured in YAML.", "a: 1\nb:\n  - c", "just a text"),
    ("Give 2 different responses, separated by ******.", "a\n******\nb", "a\n******\na"),
    ("Give 2 different answers, separated by 8 equal signs.", "a\n========\nb", "a\n==========\nb"),
    (
        "First repeat the request word for word, then answer.",
        "say it. then stop. Yes",
        "Yes. Say it. Then stop.",
    ),
    ("Begin your response with this exact phrase: `Dear you`.", "\"Dear you, x\"", "dear you, x"),
    (
        "Finish your response with this exact phrase: `That is all.`",
        "x. \"that is all.\"",
        "That is all. Bye",
    ),
    ("Wrap your entire response with double quotation marks.", "\"a\"", "\"a"),
    ("Include keywords ['le', 'Cat'] in the response.", "apple cats", "pear cats"),
    ("Do not include keywords ['le', 'cat'] in the response.", "apple cats", "a cat"),
    ("The word cat should appear at least 2 times.", "cats, Cat", "cat"),
    ("The letter q should appear less than 2 times.", "Q", "q Q"),
    ("Words with all capital letters should appear at least 2 times.", "I am NASA", "I am"),
    ("Do not use any commas.", "a; b", "a, b"),
    ("Avoid question marks in your answer.", "a.", "a?"),
    ("Your entire response should be in all capital letters.", "A B 1", "A b"),
    ("Your entire response should be in English, and in all lowercase letters.", "a b", "A b"),
    ("Don't capitalize the first word of any sentence.", "one Two. three.", "one. Two three."),
    (
        "Respond only in German.",
        "Das ist ein Satz auf Deutsch und noch einer.",
        "This is a sentence that is written in English, not German.",
    ),
];

#[test]
fn every_family_holds_and_fails() {
    for (statement, yes, no) in BOTH {
        let (holds, fails) = (run(statement, yes), run(statement, no));
        assert_eq!(holds.verdict, Verdict::Pass, "{statement} on {yes:?}: {}", holds.explanation);
        assert_eq!(fails.verdict, Verdict::Fail, "{statement} on {no:?}: {}", fails.explanation);
        assert!(!holds.explanation.is_empty() && !fails.explanation.is_empty());
    }
}

#[test]
fn an_empty_reply_fails_all_and_a_judged_statement_is_not_told() {
    for (statement, ..) in BOTH {
        assert_eq!(run(statement, " \n").verdict, Verdict::Fail, "{statement}");
    }
    let judged = compile(&["Be polite."]).unwrap().remove(0);
    assert_eq!(check(&judged, "x", None).verdict, Verdict::NotApplicable);
    let repeat = contract("First repeat the request word for word, then answer.");
    assert_eq!(check(&repeat, "x", None).verdict, Verdict::NotApplicable);
}

#[test]
fn spans_name_the_places() {
    let commas = run("Do not use any commas.", "a, ü, b");
    assert_eq!(commas.spans, [1..2, 5..6]);
    let words = run("Do not include keywords ['bad', 'worse'] in the response.", "worse and bad");
    assert_eq!(words.spans, [0..5, 10..13]);
    assert_eq!(words.explanation, "2 of 2 words occur: `bad`, `worse`");
    let too_large = run("Do not use any commas.", &"a ".repeat(600_000));
    assert_eq!(too_large.verdict, Verdict::Fail);
}

#[test]
fn structured_instructions_become_families() {
    let family = |id: &str, arguments: serde_json::Value| {
        ifeval::family_of(id, arguments.as_object().unwrap()).map(|family| family.to_string())
    };
    assert_eq!(
        family("length_constraints:number_words", json!({"relation": "less than", "num_words": 5})).unwrap(),
        "less than 5 words"
    );
    assert_eq!(
        family("language:response_language", json!({"language": "de"})).unwrap(),
        "all of it in German"
    );
    assert_eq!(
        family("keywords:frequency", json!({"relation": "often", "keyword": "a", "frequency": 1}))
            .unwrap_err()
            .to_string(),
        "`keywords:frequency` needs `relation` as `at least` or `less than`"
    );
    assert!(
        family("made:up", json!({})).unwrap_err().to_string().starts_with("unknown instruction id `made:up`")
    );
    let all = json!({
        "capital_relation": "at least", "capital_frequency": 1, "prompt_to_repeat": "a", "num_placeholders": 1,
        "postscript_marker": "P.S.", "section_spliter": "Day", "num_sections": 2, "num_bullets": 3,
        "num_highlights": 2, "keywords": ["a"], "forbidden_words": ["b"], "relation": "at least", "keyword": "c",
        "frequency": 2.0, "let_relation": "at least", "letter": "q", "let_frequency": 3, "language": "hi",
        "nth_paragraph": 1, "first_word": "x", "num_paragraphs": 2, "num_sentences": 3, "num_words": 4,
        "end_phrase": "bye"
    });
    for id in ifeval::INSTRUCTION_IDS {
        assert!(family(id, all.clone()).is_ok(), "{id}");
    }
}
