//! What is repaired, how, and what is not.

use portcullis_contracts::{Repair, StepKind, check, compile, repair};

const PROMPT: &str = "Write a note about rivers.";

fn run(statements: &[&str], reply: &str) -> Repair {
    let contracts = compile(statements).unwrap();
    let repair = repair(&contracts, reply, Some(PROMPT));
    for contract in contracts.iter().filter(|contract| contract.family().is_some()) {
        let left = repair.unrepaired.iter().any(|unrepaired| unrepaired.contract == contract.id);
        assert_eq!(check(contract, &repair.text, Some(PROMPT)).holds(), !left, "{}", contract.statement);
    }
    repair
}

/// A statement, a reply that breaks it, and the reply as it is repaired.
const EDITS: &[(&str, &str, &str)] = &[
    ("Wrap your entire response with double quotation marks.", "Hello there.", "\"Hello there.\""),
    ("Finish your response with this exact phrase: `That is all.`", "Hello. That is", "Hello. That is all."),
    ("Finish your response with this exact phrase: `Bye.`", "Hello.", "Hello. Bye."),
    ("Begin your response with this exact phrase: `Dear you,`.", "I write.", "Dear you, I write."),
    ("First repeat the request word for word, then answer.", "Sure.", "Write a note about rivers.\n\nSure."),
    (
        "Include one of the following options: ('My answer is yes.', 'My answer is no.')",
        "Well, my answer is YES, so go on.",
        "Well, My answer is yes. so go on.",
    ),
    (
        "Give 2 different answers, separated by 12 dashes.",
        "One.\n----------\nTwo.",
        "One.\n------------\nTwo.",
    ),
    (
        "Your response must have 2 sections. Mark them with Group X.",
        "Group1\nSome text here.\nGROUP 2\nMore text here.",
        "Group 1\nSome text here.\nGroup 2\nMore text here.",
    ),
    (
        "Don't capitalize the first word of any sentence.",
        "Hello there. How are you?",
        "hello there. how are you?",
    ),
    (
        "Your answer must contain exactly 1 bullet points.",
        "*So* it is.\n* An item",
        "**So** it is.\n* An item",
    ),
    ("Your answer must contain exactly 2 bullet points.", "1. One\n2. Two", "* 1. One\n* 2. Two"),
    ("There should be 2 paragraphs, separated by a blank line.", "One.\nTwo.", "One.\n\nTwo."),
    ("There should be 1 paragraphs, separated by a blank line.", "One.\n\nTwo.", "One.\nTwo."),
    (
        "Paragraph 2 must have the word 'rivers' in its first three words.",
        "Water flows.\nMost rivers run.",
        "Water flows.\n\nMost rivers run.",
    ),
    ("Use less than 3 sentences.", "One is. Two is. Three is here.", "One is; Two is. Three is here."),
    ("Use at least 3 sentences.", "It rained, but we went. Good.", "It rained. But we went. Good."),
    ("All sentences must be less than 5 words.", "It rained, but we went.", "It rained. But we went."),
    ("Answer with less than 6 words.", "Rivers run down. Rivers run down.", "Rivers run down."),
    ("Please add a postscript starting with P.S.", "Hello there.\nPS: Bye.", "Hello there.\nP.S. Bye."),
    (
        "Please add a postscript starting with P.S.",
        "Warm the pot. Then:\n* one spoon\n* hot water",
        "Warm the pot. P.S. Then:\n* one spoon\n* hot water",
    ),
    ("Put a title in << and >>.", "# Rivers\nThey run.", "# <<Rivers>>\nThey run."),
    ("Words with all capital letters should appear at least 1 times.", "the rivers run", "the RIVERS run"),
    ("Do not use any commas.", "1,000 cats, and dogs, too", "1000 cats and dogs; too"),
    ("Use at least 1 placeholders in square brackets.", "Dear <your name>", "Dear [your name]"),
    ("Entire output should be structured in YAML.", "Hello: there: you", "response: |\n  Hello: there: you"),
    ("Your whole reply has to be valid JSON.", "{\"a\": \"b\nc\",}", "{\"a\": \"b\\nc\"}"),
    ("Your whole reply has to be valid JSON.", "So it is.", "{\"response\": \"So it is.\"}"),
    ("All of your answer must be lowercase.", "So It Is", "so it is"),
];

#[test]
fn one_contract_one_small_edit() {
    for &(statement, before, after) in EDITS {
        let repair = run(&[statement], before);
        assert_eq!(repair.text, after, "{statement}: {:?} {:?}", repair.steps, repair.unrepaired);
        assert!(repair.unrepaired.is_empty() && repair.edit_ratio > 0.0 && repair.steps.len() == 1);
    }
}

#[test]
fn what_would_be_writing_is_left_alone() {
    for (statement, reply) in [
        ("Answer with at least 50 words.", "Too short."),
        ("Include keywords ['river', 'bank'] in the response.", "Nothing of it."),
        ("Do not include keywords ['river'] in the response.", "A river runs."),
        ("The word cat should appear at least 2 times.", "One cat."),
        ("The letter q should appear at least 5 times.", "quite"),
        ("Use at least 3 placeholders in square brackets.", "Dear [name]"),
        ("Give 2 different responses, separated by ******.", "There is only one answer here."),
        ("Include one of the following options: ('Yes.', 'No.')", "Perhaps."),
        (
            "Include one of the following options: ('My answer is yes.', 'My answer is no.')",
            "my answer is yes or my answer is no",
        ),
        ("Answer with less than 3 words.", "No sentence stands here twice."),
        ("Respond only in German.", "This is a sentence that is written in plain English."),
        ("Your response must have 3 sections. Mark them with Group X.", "Too short."),
    ] {
        let repair = run(&[statement], reply);
        assert_eq!(repair.text, reply, "{statement}: {:?}", repair.steps);
        assert_eq!(repair.unrepaired.len(), 1, "{statement}");
        assert!(
            !repair.unrepaired[0].reason.is_empty() && repair.edits.is_empty() && repair.edit_ratio == 0.0
        );
    }
}

#[test]
fn a_change_that_breaks_another_is_made_whole_or_undone() {
    // The wrap in YAML would end the reply elsewhere only in a fence: the fence is taken off.
    let both = [
        "Entire output should be structured in YAML.",
        "Finish your response with this exact phrase: `Bye.`",
    ];
    let repair = run(&both, "```yaml\na: 1\nb: Hello.\n```");
    assert!(repair.unrepaired.is_empty(), "{repair:?}");
    // Commas that a phrase needs stay.
    let phrase = ["Finish your response with this exact phrase: `Well, bye.`", "Do not use any commas."];
    let repair = run(&phrase, "One, two. Well, bye.");
    assert_eq!(repair.text, "One, two. Well, bye.");
    // A title in the first line would move the beginning: it goes elsewhere.
    let title =
        ["Begin your response with this exact phrase: `Dear you, it is`.", "Put a title in << and >>."];
    let repair = run(&title, "Dear you, it is late. We go home now.");
    assert!(repair.unrepaired.is_empty() && repair.text.starts_with("Dear you"), "{repair:?}");
}

#[test]
fn steps_edits_and_ratio_tell_what_was_done() {
    let repair = run(
        &[
            "Finish your response with this exact phrase: `Bye.`",
            "Don't capitalize the first word of any sentence.",
        ],
        "The rivers run. They run far.",
    );
    assert_eq!(repair.text, "the rivers run. they run far. bye.");
    assert!(repair.steps.iter().any(|step| step.kind == StepKind::Literal && step.contract == "c1"));
    assert!(repair.steps.iter().any(|step| step.kind == StepKind::Layout && step.contract == "c2"));
    assert!(!repair.edits.is_empty() && repair.edit_ratio < 0.5);
}

#[test]
fn nothing_is_done_where_all_holds_or_nothing_can_be_read() {
    let repair = run(&["Do not use any commas.", "Be polite."], "Fine.");
    assert!(repair.steps.is_empty() && repair.unrepaired.is_empty() && repair.text == "Fine.");
    let empty = run(&["Do not use any commas."], " ");
    assert_eq!(empty.unrepaired[0].reason, "the reply is empty");
    let contracts = compile(&["Do not use any commas."]).unwrap();
    let long = "a, b ".repeat(60_000);
    let refused = portcullis_contracts::repair(&contracts, &long, None);
    assert!(refused.text == long && refused.unrepaired[0].reason.contains("are not repaired"));
}
