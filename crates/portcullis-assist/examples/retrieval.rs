//! What a search of a full memory costs: `cargo run --release -p portcullis-assist --example retrieval`.
//!
//! 10,000 examples of 2 KB, 512 bytes of input and 1,536 of output, of two kinds: what one agent does again and again, which
//! is what a memory is for, and texts that have nothing but their words in common, which is the worst that there is.

use std::io::Write as _;
use std::time::{Duration, Instant};

use portcullis_assist::guardagent::{Example, Memory, Order};

const EXAMPLES: usize = 10_000;
const INPUT_BYTES: usize = 512;
const OUTPUT_BYTES: usize = 1_536;
const WORDS: u64 = 500;
/// Kinds of task that the agent has.
const KINDS: usize = 50;
/// Letters in which two tasks of a kind differ.
const CHANGES: usize = 40;
const SEARCHES: usize = 50;
const SHOTS: usize = 3;

struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }

    /// Words of a small vocabulary.
    fn text(&mut self, bytes: usize) -> String {
        let mut text = String::new();
        while text.len() < bytes {
            let mut word = Random((self.below(WORDS) + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
            for _ in 0..3 + word.below(6) {
                text.extend(char::from_u32(u32::from(b'a') + u32::try_from(word.below(26)).unwrap_or(0)));
            }
            text.push(' ');
        }
        text.truncate(bytes);
        text
    }

    /// The same with some letters changed.
    fn changed(&mut self, text: &str, changes: usize) -> String {
        let mut letters: Vec<char> = text.chars().collect();
        for _ in 0..changes {
            let at = usize::try_from(self.below(letters.len() as u64)).unwrap_or(0);
            let digit = char::from_digit(u32::try_from(self.below(10)).unwrap_or(0), 10);
            if let (Some(letter), Some(digit)) = (letters.get_mut(at), digit) {
                *letter = digit;
            }
        }
        letters.into_iter().collect()
    }
}

fn example(input: String, output: String) -> Example {
    let [name, plan, program] = ["", "", ""].map(str::to_owned);
    Example { name, input, output, plan, program }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut random = Random(88_172_645_463_325_252);
    let mut out = std::io::stdout().lock();
    let kinds: Vec<(String, String)> =
        (0..KINDS).map(|_| (random.text(INPUT_BYTES), random.text(OUTPUT_BYTES))).collect();
    for (title, related) in [("tasks of 50 kinds", true), ("nothing in common", false)] {
        let mut case = |number: usize| match kinds.get(number % KINDS).filter(|_| related) {
            Some((input, output)) => {
                (random.changed(input, CHANGES / 4), random.changed(output, CHANGES - CHANGES / 4))
            }
            None => (random.text(INPUT_BYTES), random.text(OUTPUT_BYTES)),
        };
        let mut memory = Memory::new();
        for number in 0..EXAMPLES {
            let (input, output) = case(number);
            memory.add(example(input, output))?;
        }
        let mut times: Vec<Duration> = Vec::new();
        let (mut compared, mut complete) = (0, 0);
        for number in 0..SEARCHES {
            let (input, output) = case(number);
            let began = Instant::now();
            let found = memory.nearest(&input, &output, SHOTS, Order::Nearest);
            times.push(began.elapsed());
            compared += found.compared;
            complete += usize::from(found.complete);
        }
        times.sort_unstable();
        let at =
            |share: usize| times.get(SEARCHES * share / 100).copied().unwrap_or_default().as_secs_f64() * 1e3;
        writeln!(
            out,
            "{title}: {:.1} ms p50, {:.1} ms p99; {} of {EXAMPLES} compared, {complete} of {SEARCHES} searches complete",
            at(50),
            at(99),
            compared / SEARCHES
        )?;
    }
    Ok(())
}
