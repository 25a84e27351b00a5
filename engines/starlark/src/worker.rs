//! The worker: sets of programs, and the messages about them.

use std::collections::BTreeMap;
use std::io::{self, BufReader, Write as _};
use std::time::{Duration, Instant};

use starlark::environment::Globals;

use crate::confine;
use crate::frames::{self, Answer, Asked, Check, Failure, Load, LoadModule, Mistake, Ready, Said};
use crate::pipes::{Answers, Questions};
use crate::program::{Modules, Program, Told, module};
use crate::toolbox;

/// Of the protocol.
const VERSION: u32 = 1;
/// Sets that are kept at once. The gate forgets those of bundles that nobody uses.
const SETS_MAX: usize = 64;
/// Programs of one set.
const PROGRAMS_MAX: usize = 256;
/// Bytes that are read at a time: more than most questions have.
const READ_BYTES: usize = 16 << 10;
/// How often the limit of processor time moves along.
const MORE_TIME: Duration = Duration::from_millis(500);

#[derive(Debug)]
pub(crate) struct Worker {
    globals: Globals,
    sets: BTreeMap<String, Set>,
}

/// The programs of one bundle.
#[derive(Debug, Default)]
struct Set {
    modules: Modules,
    programs: Vec<Program>,
}

impl Worker {
    pub(crate) fn new() -> Self {
        Self { globals: toolbox::globals(), sets: BTreeMap::new() }
    }

    /// Runs a small program, so that what the library makes at first use is there.
    pub(crate) fn warm_up(&mut self) {
        let source = "def check(action, run, principal):\n    return [deny(\"x\") for x in action.args if matches(\"a\", x)]\n";
        let load = Load {
            set: String::new(),
            program: "warm".to_owned(),
            file: "warm.star".to_owned(),
            source: source.to_owned(),
        };
        let _none = self.load(load);
        let input = serde_json::json!({"action": {"args": {"a": 1}}, "run": {}, "principal": {}});
        let _answer = self.check(&Check { set: String::new(), input });
        self.sets.clear();
    }

    /// Answers until the gate closes its end.
    pub(crate) fn serve(&mut self, questions: Questions) -> io::Result<()> {
        let (mut from, mut to) = (BufReader::with_capacity(READ_BYTES, questions), Answers);
        let (mut read, mut written) = (Vec::new(), Vec::new());
        let ready =
            Ready { protocol: VERSION, engine: env!("CARGO_PKG_NAME"), version: env!("CARGO_PKG_VERSION") };
        frames::write(&mut to, &Said::Ready(ready), &mut written)?;
        let mut limited = Instant::now();
        while let Some(asked) = frames::read(&mut from, &mut read)? {
            if limited.elapsed() >= MORE_TIME {
                confine::more_time();
                limited = Instant::now();
            }
            let said = match asked {
                Asked::Module(module) => Said::Loaded(self.module(module)),
                Asked::Load(load) => Said::Loaded(self.load(load)),
                Asked::Check(check) => Said::Checked(self.check(&check)),
                Asked::Forget(forget) => {
                    self.sets.remove(&forget.set);
                    Said::Forgotten
                }
            };
            frames::write(&mut to, &said, &mut written)?;
        }
        Ok(())
    }

    fn load(&mut self, load: Load) -> Vec<Mistake> {
        let set = match room(&mut self.sets, load.set) {
            Ok(set) => set,
            Err(full) => return vec![full],
        };
        match Program::load(&load.program, &load.file, load.source, (&self.globals, &set.modules)) {
            Ok(program) => {
                set.programs.push(program);
                Vec::new()
            }
            Err(mistake) => vec![mistake],
        }
    }

    fn module(&mut self, LoadModule { set, file, source }: LoadModule) -> Vec<Mistake> {
        let set = match room(&mut self.sets, set) {
            Ok(set) => set,
            Err(full) => return vec![full],
        };
        match module(&file, source, (&self.globals, &set.modules)) {
            Ok((name, module)) => {
                set.modules.insert(name, module);
                Vec::new()
            }
            Err(mistake) => vec![mistake],
        }
    }

    fn check(&self, check: &Check) -> Answer {
        let mut answer = Answer::default();
        let fail = |program: &str, why: String| Failure { program: program.to_owned(), why };
        let Some(set) = self.sets.get(&check.set) else {
            answer.failures.push(fail("", "these programs were not loaded".to_owned()));
            return answer;
        };
        let told = match Told::of(&check.input) {
            Ok(told) => told,
            Err(why) => {
                answer.failures.push(fail("", why));
                return answer;
            }
        };
        for (number, program) in set.programs.iter().enumerate() {
            begins(number);
            match program.check(&told) {
                Ok(objections) => answer.objections.extend(objections),
                Err(why) => answer.failures.push(fail(&program.name, why)),
            }
        }
        answer
    }
}

/// The set, if it takes one more.
fn room(sets: &mut BTreeMap<String, Set>, set: String) -> Result<&mut Set, Mistake> {
    let full = |message: String| Mistake { start: 0, end: 0, message };
    if sets.len() >= SETS_MAX && !sets.contains_key(&set) {
        return Err(full(format!("a worker keeps the programs of {SETS_MAX} bundles at most")));
    }
    let set = sets.entry(set).or_default();
    if set.programs.len() + set.modules.len() >= PROGRAMS_MAX {
        return Err(full(format!("a bundle has {PROGRAMS_MAX} programs and modules at most")));
    }
    Ok(set)
}

/// Says on the third descriptor which program runs, so that the gate can name the one with which a worker was lost. Of the
/// first nothing has to be said.
fn begins(number: usize) {
    if let Ok(number @ 1..) = u16::try_from(number) {
        let _full = io::stderr().write_all(&number.to_le_bytes());
    }
}
