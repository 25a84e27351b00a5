//! Sets that cannot hold together are found, as small as they are, and those that can are not.

use portcullis_contracts::{Priority, compile, conflicts, repair};

const PROMPT: &str = "Are hamburgers sandwiches? Say why.";

fn sets(statements: &[&str]) -> Vec<Vec<String>> {
    let contracts = compile(statements).unwrap();
    conflicts(&contracts, Some(PROMPT)).into_iter().map(|conflict| conflict.contracts).collect()
}

#[test]
fn pairs_that_cannot_hold_together() {
    for pair in [
        ["Your whole reply has to be valid JSON.", "Your answer must contain exactly 3 bullet points."],
        ["Your whole reply has to be valid JSON.", "First repeat the request word for word, then answer."],
        [
            "Entire output should be structured in YAML.",
            "Begin your response with this exact phrase: `Dear you`.",
        ],
        ["Finish your response with this exact phrase: `Bye.`", "Your whole reply has to be valid JSON."],
        ["Do not use any commas.", "Finish your response with this exact phrase: `Well, bye.`"],
        [
            "Do not include keywords ['bye'] in the response.",
            "Finish your response with this exact phrase: `Good bye.`",
        ],
        ["First repeat the request word for word, then answer.", "All sentences must be at least 5 words."],
        [
            "Don't capitalize the first word of any sentence.",
            "Begin your response with this exact phrase: `Dear you`.",
        ],
        [
            "The letter s should appear less than 3 times.",
            "Include keywords ['success', 'sense'] in the response.",
        ],
        ["Answer with at least 300 words.", "Answer with less than 200 words."],
        ["Write everything in uppercase.", "All of your answer must be lowercase."],
        [
            "There should be 3 paragraphs, separated by a blank line.",
            "Paragraph 4 must have the word 'x' in its first three words.",
        ],
        [
            "Begin your response with this exact phrase: `Dear you`.",
            "Begin your response with this exact phrase: `Hello`.",
        ],
        ["Respond only in German.", "Respond only in French."],
    ] {
        assert_eq!(sets(&pair), [["c1", "c2"]], "{pair:?}");
    }
}

#[test]
fn a_set_is_minimal() {
    let three = [
        "Answer with at least 300 words.",
        "Use less than 5 sentences.",
        "All sentences must be less than 20 words.",
    ];
    assert_eq!(sets(&three), [["c1", "c2", "c3"]]);
    for two in [[three[0], three[1]], [three[0], three[2]], [three[1], three[2]]] {
        assert!(sets(&two).is_empty(), "{two:?}");
    }
    assert_eq!(sets(&["Answer with less than 0 words.", "Answer with at least 5 words."]), [["c1"]]);
}

#[test]
fn what_can_hold_together_is_no_conflict() {
    for pair in [
        ["Please add a postscript starting with P.S.", "Finish your response with this exact phrase: `Bye.`"],
        [
            "Wrap your entire response with double quotation marks.",
            "Begin your response with this exact phrase: `Dear you`.",
        ],
        ["Wrap your entire response with double quotation marks.", "Put a title in << and >>."],
        [
            "Don't capitalize the first word of any sentence.",
            "First repeat the request word for word, then answer.",
        ],
        ["Answer with at least 300 words.", "Answer with less than 301 words."],
    ] {
        assert!(sets(&pair).is_empty(), "{pair:?}");
    }
}

#[test]
fn the_lower_priority_gives_way_and_the_reason_says_so() {
    let mut contracts = compile(&[
        "Your answer must contain exactly 2 bullet points.",
        "Your whole reply has to be valid JSON.",
    ])
    .unwrap();
    let unrepaired = |contracts: &[_]| {
        let repair = repair(contracts, "One thing here\nAnother thing here", None);
        repair
            .unrepaired
            .into_iter()
            .map(|left| (left.contract, left.reason.contains("conflicts")))
            .collect::<Vec<_>>()
    };
    assert_eq!(unrepaired(&contracts), [("c2".to_owned(), true)]);
    contracts[0].priority = Priority::LOW;
    assert_eq!(unrepaired(&contracts), [("c1".to_owned(), true)]);
}
