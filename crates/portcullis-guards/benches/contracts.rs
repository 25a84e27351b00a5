//! What the guard of contracts costs for a reply of 600 words and 20 contracts: `cargo bench -p portcullis-guards`.
#![expect(clippy::unwrap_used, reason = "a benchmark stops when it cannot run")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use criterion::{Criterion, criterion_group, criterion_main};
use portcullis_core::action::{Pending, Subject};
use portcullis_core::bundle::Bundle;
use portcullis_core::fact::Facts;
use portcullis_core::guard::Context;
use portcullis_core::memory::LazyReading;
use portcullis_core::pipeline::Pipeline;
use portcullis_core::state::RunState;
use portcullis_core::time::Timestamp;
use portcullis_core::verdict::Verdict;
use portcullis_guards::contracts::ContractCompiler;
use portcullis_guards::output::contract::OutputContract;
use portcullis_trajectory::memory::RememberRun;

/// One of each family that a reply in prose can keep, all of which hold.
const STATEMENTS: [&str; 20] = [
    "Answer with at least 300 words.",
    "Answer with at most 700 words.",
    "Answer with at most 6000 characters.",
    "Answer with less than 80 sentences.",
    "Every sentence should have less than 60 words.",
    "There should be less than 40 paragraphs separated by two line breaks.",
    "Your answer must contain at most 20 bullet points.",
    "Highlight at least 3 sections in your answer with markdown, i.e. *highlighted section*.",
    "Your answer must contain a title, wrapped in double angular brackets, such as <<poem of joy>>.",
    "The response must contain less than 3 placeholders represented by square brackets, such as [address].",
    "Include keywords ['water', 'harbour'] in the response.",
    "Do not include keywords ['sugar', 'honey'] in the response.",
    "Do not include keywords ['guarantee', 'warranty', 'refund'] in the response.",
    "In your response, the word harbour should appear at least 4 times.",
    "In your response, the letter q should appear less than 20 times.",
    "In your response, words with all capital letters should appear at least 2 times.",
    "Your entire response should be in English.",
    "In your response, the word bread should appear less than 90 times.",
    "Finish your response with this exact phrase Is there anything else I can help with?",
    "Your response must begin with this exact phrase <<A town by the water>>",
];

/// Prose of so many words.
fn prose(words: usize) -> String {
    const SENTENCES: [&str; 5] = [
        "The harbour lies behind the old town, and in the morning the boats bring what the night has left.",
        "Who walks along the water hears the *bells* of the market before seeing it.",
        "There is bread, there are apples from the valley, and on Fridays there is fish.",
        "A café at the corner opens at six; it closes when the LAST guest has gone.",
        "Nobody asks where a stranger comes from, but everybody knows it by noon.",
    ];
    let mut text = String::from("<<A town by the water>>\n\n");
    let mut count = 13;
    for (at, sentence) in SENTENCES.iter().cycle().enumerate() {
        if count >= words {
            break;
        }
        text.push_str(sentence);
        count += sentence.split_whitespace().count();
        text.push_str(if at % 5 == 4 { "\n\n" } else { " " });
    }
    text + "Is there anything else I can help with?"
}

/// A bundle with so many of the contracts.
fn bundle(contracts: usize) -> Bundle {
    const POLICY: &str =
        "[[policy]]\nname = \"p\"\nallowed_types = []\nmax_steps = 1\nmax_side_effects = 0\n";
    let tables = STATEMENTS.iter().take(contracts).enumerate().map(|(at, statement)| {
        format!("[[contract]]\nname = \"c{at}\"\nstatement = {statement:?}\non_fail = \"deny\"\n")
    });
    let files = [
        ("portcullis.toml", "version = 1\n".to_owned()),
        ("policies/p.toml", POLICY.to_owned()),
        ("contracts/replies.toml", tables.collect()),
    ];
    let files = files.map(|(path, text)| (path.to_owned(), text.into_bytes())).into();
    Bundle::load_with(&files, &[&ContractCompiler]).unwrap()
}

#[expect(clippy::print_stdout, reason = "criterion does not print percentiles")]
fn contracts(criterion: &mut Criterion) {
    let pipeline =
        Pipeline::new(vec![Box::new(OutputContract)]).with_memory(Box::new(RememberRun::default()));
    let (memory, run, facts) = (pipeline.begin_memory().unwrap(), RunState::new(), Facts::none());
    let reply = prose(600);
    let mut group = criterion.benchmark_group("contracts");
    for number in [0, 20] {
        let bundle = bundle(number);
        let context = Context::new(&bundle, bundle.policy(bundle.default_policy()).unwrap(), &run);
        let subject = Subject::Output { text: &reply, documents: None };
        let pending = Pending { at: Timestamp::default(), subject, grant: None };
        let judge = || {
            let reading = LazyReading::of(&memory, &bundle, pending);
            let context = context.with_reading(&reading);
            let asked = pipeline.needs(&context, black_box(&pending));
            (asked.len(), pipeline.decide(&context, black_box(&pending), &facts).verdict)
        };
        assert_eq!(judge(), (0, Verdict::Allow), "a contract does not hold");
        group.bench_function(format!("{number} contracts"), |bencher| bencher.iter(judge));
        println!("{number} contracts: p50 {:?}, p99 {:?}", quantile(&judge, 50), quantile(&judge, 99));
    }
    group.finish();
}

/// How long so many in a hundred decisions take at most.
fn quantile<T>(judge: &impl Fn() -> T, percent: usize) -> Duration {
    /// Enough for a steady tail.
    const DECISIONS: usize = 5_000;
    let mut times: Vec<Duration> = (0..DECISIONS)
        .map(|_| {
            let began = Instant::now();
            black_box(judge());
            began.elapsed()
        })
        .collect();
    times.sort_unstable();
    times.get(DECISIONS * percent / 100).copied().unwrap_or_default()
}

criterion_group!(benches, contracts);
criterion_main!(benches);
