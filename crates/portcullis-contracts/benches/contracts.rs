//! What exact checks and mechanical repair of a reply of 600 words cost: `cargo bench -p portcullis-contracts`.
//!
//! The contracts are of every family that counts, marks or forbids, one each, so that `check` is the mean over families
//! and not over one that is cheap.
#![expect(clippy::expect_used, reason = "a benchmark stops when it cannot run")]

use std::hint::black_box;

use criterion::{Criterion, Throughput};
use portcullis_contracts::{Contract, Reading, check, compile, conflicts, repair};

const STATEMENTS: &[&str] = &[
    "Answer with at least 300 words.",
    "Answer with less than 40 sentences.",
    "Every sentence should have less than 60 words.",
    "There should be 6 paragraphs separated by the markdown divider: ***",
    "Your answer must contain exactly 3 bullet points.",
    "Highlight at least 3 sections in your answer with markdown, i.e. *highlighted section*.",
    "Your answer must contain a title, wrapped in double angular brackets, such as <<poem of joy>>.",
    "At the end of your response, please explicitly add a postscript starting with P.S.",
    "The response must contain at least 3 placeholders represented by square brackets, such as [address].",
    "Include keywords ['water', 'harbour'] in the response.",
    "Do not include keywords ['sugar', 'honey'] in the response.",
    "In your response, the word harbour should appear at least 4 times.",
    "In your response, the letter q should appear less than 20 times.",
    "In your response, words with all capital letters should appear at least 2 times.",
    "In your entire response, refrain from the use of any commas.",
    "Wrap your entire response with double quotation marks.",
    "Finish your response with this exact phrase Is there anything else I can help with?",
    "Your entire response should be in English, and in all lowercase letters.",
];

/// Prose of so many words, in sentences and paragraphs with bullets, highlights and commas.
fn prose(words: usize) -> String {
    const SENTENCES: [&str; 5] = [
        "The harbour lies behind the old town, and in the morning the boats bring what the night has left.",
        "Who walks along the water hears the *bells* of the market before seeing it.",
        "There is bread, there are apples from the valley, and on Fridays there is fish.",
        "- A café at the corner opens at six; it closes when the LAST guest has gone.",
        "Nobody asks where a stranger comes from, but everybody knows it by noon.",
    ];
    let mut text = String::from("<<A town by the water>>\n\n");
    let mut count = 5;
    for (at, sentence) in SENTENCES.iter().cycle().enumerate() {
        if count >= words {
            break;
        }
        text.push_str(sentence);
        count += sentence.split_whitespace().count();
        text.push_str(if at % 5 == 4 {
            "\n\n"
        } else if at % 5 == 2 {
            "\n"
        } else {
            " "
        });
    }
    text
}

fn contracts() -> Vec<Contract> {
    let contracts = compile(STATEMENTS).expect("the statements compile");
    assert!(contracts.iter().all(|contract| contract.family().is_some()), "one is not exact");
    contracts
}

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    let (contracts, reply) = (contracts(), prose(600));
    let mut group = criterion.benchmark_group("contracts");
    group.throughput(Throughput::Elements(contracts.len() as u64));
    group.bench_function("check", |bencher| {
        bencher.iter(|| {
            let reading = Reading::new(black_box(&reply));
            contracts.iter().filter(|contract| reading.check(contract, None).holds()).count()
        });
    });
    group.throughput(Throughput::Elements(1));
    group.bench_function("repair", |bencher| {
        // Ten contracts, of which some have to be mended.
        let ten = contracts.get(..10).unwrap_or(&contracts);
        bencher.iter(|| repair(ten, black_box(&reply), None).steps.len());
    });
    group.bench_function("repair-nothing", |bencher| {
        let held: Vec<Contract> =
            contracts.iter().filter(|one| check(one, &reply, None).holds()).cloned().collect();
        bencher.iter(|| repair(&held, black_box(&reply), None).steps.len());
    });
    group.throughput(Throughput::Elements(STATEMENTS.len() as u64));
    group.bench_function("compile", |bencher| {
        bencher.iter(|| compile(black_box(STATEMENTS)).map(|all| all.len()))
    });
    group
        .bench_function("conflicts", |bencher| bencher.iter(|| conflicts(black_box(&contracts), None).len()));
    group.finish();
    criterion.final_summary();
}
