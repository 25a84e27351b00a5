//! What may happen, drawn at random, and made shorter where it shows something.

use portcullis_core::freeze::FreezeScope;

use super::world::{PRINCIPALS, RUNS, run_id};
use super::{Ask, Order};

/// Steps of a sequence.
const STEPS: u64 = 14;

/// What happens next.
#[derive(Debug, Clone)]
pub(super) enum Step {
    /// An agent asks for something.
    Ask { run: usize, ask: Ask },
    /// The agent asks again for what the latest request but `back` is about.
    Again { back: u8 },
    /// A person grants the latest request but `back`. `look`: they were shown nothing (0), what stood before the latest
    /// change (1), or what stands.
    Grant { back: u8, scope: u8, lasts: u8, look: u8, who: u8, edit: bool },
    /// A person refuses it, answers it with a sentence, or takes a yes back.
    Say { back: u8, what: u8, who: u8 },
    /// A server says something.
    Hear { run: usize, server: u8 },
    /// The user speaks.
    Speak { run: usize },
    /// Time passes, in seconds.
    Wait(u32),
    /// A person freezes or releases.
    Order { scope: FreezeScope, order: Order },
    /// The process dies, and another one takes up the runs.
    Restart,
    /// Another bundle comes into force for all runs.
    Reload,
}

/// SplitMix64: all that is needed is that a seed says everything.
pub(super) struct Rng(u64);

impl Rng {
    pub(super) fn of(seed: u64, number: u64) -> Self {
        let mut rng = Self(seed ^ number.wrapping_mul(0xd6e8_feb8_6659_fd93));
        rng.below(1);
        rng
    }

    pub(super) fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % end
    }

    fn byte(&mut self, end: u64) -> u8 {
        u8::try_from(self.below(end)).unwrap()
    }

    /// The first and the last run are used most, so that more comes together there.
    fn run(&mut self) -> usize {
        [0, 0, 1, RUNS - 1, RUNS - 1][usize::from(self.byte(5))]
    }
}

/// A sequence. It begins with a grant, so that what follows is mostly about grants.
pub(super) fn steps(rng: &mut Rng) -> Vec<Step> {
    let (ask, grant) = (Step::Ask { run: rng.run(), ask: held(rng) }, grant(rng, 0));
    [ask, grant].into_iter().chain((2..STEPS).map(|_| step(rng))).collect()
}

fn grant(rng: &mut Rng, back: u8) -> Step {
    Step::Grant {
        back,
        scope: rng.byte(8).saturating_sub(3),
        lasts: rng.byte(3),
        look: rng.byte(10).min(2),
        who: rng.byte(3),
        edit: rng.below(6) == 0,
    }
}

fn step(rng: &mut Rng) -> Step {
    match rng.below(27) {
        0..5 => Step::Ask { run: rng.run(), ask: ask(rng) },
        5..11 => Step::Again { back: rng.byte(6).saturating_sub(3) },
        11..17 => {
            let back = rng.byte(8).saturating_sub(5);
            grant(rng, back)
        }
        17..19 => Step::Say { back: rng.byte(4).saturating_sub(1), what: rng.byte(5) % 3, who: rng.byte(3) },
        19 => Step::Hear { run: rng.run(), server: rng.byte(2) },
        20 => Step::Speak { run: rng.run() },
        21..23 => Step::Wait(wait(rng)),
        23..25 => Step::Order { scope: scope(rng), order: order(rng) },
        25 => Step::Restart,
        _ => Step::Reload,
    }
}

fn ask(rng: &mut Rng) -> Ask {
    match rng.below(12) {
        0..10 => held(rng),
        10 => Ask::Read,
        _ => Ask::Short,
    }
}

fn held(rng: &mut Rng) -> Ask {
    match rng.below(10) {
        0..4 => Ask::Send(rng.byte(2)),
        4..8 => Ask::Remove(rng.byte(2)),
        _ => Ask::Reply(rng.byte(2)),
    }
}

/// Less than any grant lasts, around the usual time of a grant, the longest one, and that of a request.
fn wait(rng: &mut Rng) -> u32 {
    let (least, range) = [(1, 99), (800, 200), (28_000, 2_000), (80_000, 10_000)][usize::from(rng.byte(4))];
    least + u32::try_from(rng.below(range)).unwrap()
}

fn scope(rng: &mut Rng) -> FreezeScope {
    match rng.below(6) {
        0..3 => FreezeScope::All,
        3..5 => FreezeScope::Principal(PRINCIPALS[usize::from(rng.byte(RUNS as u64))].to_owned()),
        _ => FreezeScope::Run(run_id(usize::from(rng.byte(2)))),
    }
}

fn order(rng: &mut Rng) -> Order {
    match rng.below(6) {
        0..2 => Order::Freeze,
        2..4 => Order::ReleaseReads,
        _ => Order::Release,
    }
}

/// Leaves out all steps that are not needed for a sequence to fail.
pub(super) fn shortest(mut steps: Vec<Step>, fails: impl Fn(&[Step]) -> bool) -> Vec<Step> {
    loop {
        let shorter = (0..steps.len()).map(|left_out| {
            let mut shorter = steps.clone();
            shorter.remove(left_out);
            shorter
        });
        match shorter.into_iter().find(|shorter| fails(shorter)) {
            Some(shorter) => steps = shorter,
            None => return steps,
        }
    }
}
