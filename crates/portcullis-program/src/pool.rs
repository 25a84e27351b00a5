//! Workers that are started beforehand.
//!
//! Whoever asks takes an idle worker, asks it, and puts it back. One that is late or gone is killed, and another takes its
//! place in the background with all programs loaded, so that a decision never waits for a process to start. Nobody has
//! more than one worker at a time.

use std::collections::BTreeSet;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

use portcullis_core::program::Answer;

use crate::engine::{Engine, EngineError};
use crate::protocol::Mistake;
use crate::set::{ProgramSet, Source};
use crate::worker::{Lost, Worker};

/// How long somebody waits for a worker.
const WORKER_WAIT: Duration = Duration::from_secs(1);

/// What came of a question.
#[derive(Debug)]
pub(crate) enum Asked {
    Answered(Answer),
    /// The worker was lost with the program of this number.
    Lost {
        program: usize,
        why: Lost,
    },
    /// None was free.
    Busy(Duration),
    /// None could be started.
    Unstarted(String),
}

/// What came of loading a program.
#[derive(Debug)]
pub(crate) enum Loaded {
    Read(Vec<Mistake>),
    Lost(Lost),
    Unstarted(String),
}

/// The workers. See the [module documentation](self).
#[derive(Debug)]
pub struct Pool {
    engine: Engine,
    state: Mutex<State>,
    changed: Condvar,
    /// What a worker that is started has to load.
    sets: Mutex<Vec<(String, Weak<Vec<Source>>)>>,
    /// For what runs in the background.
    itself: Weak<Self>,
}

#[derive(Debug, Default)]
struct State {
    idle: Vec<Worker>,
    /// Those that exist or are being started.
    workers: usize,
    /// Who has a worker.
    holders: BTreeSet<String>,
}

impl Pool {
    /// The pool of this process, whose engine lies beside the program. It is started when the first bundle with programs is
    /// loaded.
    ///
    /// # Errors
    /// The engine cannot be used. It is looked for again the next time.
    pub fn of_process() -> Result<Arc<Self>, EngineError> {
        static POOL: OnceLock<Arc<Pool>> = OnceLock::new();
        if let Some(pool) = POOL.get() {
            return Ok(Arc::clone(pool));
        }
        let pool = Self::start(Engine::beside_program()?)?;
        Ok(Arc::clone(POOL.get_or_init(|| pool)))
    }

    /// A pool of an engine. The first worker is started at once, the others in the background.
    ///
    /// # Errors
    /// The engine does not start, or cannot confine itself.
    pub fn start(engine: Engine) -> Result<Arc<Self>, EngineError> {
        let first = Worker::start(&engine)?;
        let workers = engine.workers();
        let state = State { idle: vec![first], workers, holders: BTreeSet::new() };
        let pool = Arc::new_cyclic(|itself| Self {
            engine,
            state: Mutex::new(state),
            changed: Condvar::new(),
            sets: Mutex::default(),
            itself: Weak::clone(itself),
        });
        for _ in 1..workers {
            pool.start_one();
        }
        Ok(pool)
    }

    /// What programs may call: [`Engine::toolbox`].
    ///
    /// # Errors
    /// The engine does not say.
    pub fn toolbox(&self) -> Result<String, EngineError> {
        self.engine.toolbox()
    }

    /// The processes of the idle workers, for those who measure.
    pub fn idle_processes(&self) -> Vec<u32> {
        self.lock().idle.iter().map(Worker::process).collect()
    }

    /// A worker, when one is free.
    pub(crate) fn worker(&self, of: &str) -> Result<Worker, Asked> {
        let until = Instant::now() + WORKER_WAIT;
        let mut state = self.lock();
        loop {
            if let Some(worker) = Self::take(&mut state, of) {
                return Ok(worker);
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(Asked::Busy(WORKER_WAIT));
            }
            // Those that could not be started are tried again, one at a time.
            if state.workers == 0 {
                state.workers += 1;
                drop(state);
                self.add().map_err(|error| Asked::Unstarted(error.to_string()))?;
                state = self.lock();
                continue;
            }
            state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// A worker that is idle now.
    pub(crate) fn idle_worker(&self, of: &str) -> Option<Worker> {
        Self::take(&mut self.lock(), of)
    }

    fn take(state: &mut State, of: &str) -> Option<Worker> {
        if state.idle.is_empty() || !state.holders.insert(of.to_owned()) {
            return None;
        }
        // The one that was used last is warm.
        state.idle.pop()
    }

    /// Has the programs of a set run, which are loaded where they are not yet.
    pub(crate) fn begin(&self, worker: &mut Worker, set: &ProgramSet, input: &str) -> Result<Instant, Lost> {
        let wait = self.engine.wait();
        load_all(worker, (&set.name, &set.sources), wait)?;
        worker.begin(&set.name, input, wait)
    }

    /// Takes the answer, and the worker back.
    pub(crate) fn finish(&self, mut worker: Worker, began: Result<Instant, Lost>, of: &str) -> Asked {
        let wait = self.engine.wait();
        let asked = began.and_then(|until| {
            let answer = worker.finish(until, wait);
            let took = wait.saturating_sub(until.saturating_duration_since(Instant::now()));
            answer.map(|answer| (answer, self.engine.has_worn(&worker, took)))
        });
        let program = worker.running();
        match asked {
            Ok((answer, worn)) => {
                self.give_back(worker, worn, of);
                Asked::Answered(answer)
            }
            Err(why) => {
                self.replace(worker, of);
                Asked::Lost { program, why }
            }
        }
    }

    /// Loads a source after others into a set of its own, to see whether it can be read.
    pub(crate) fn try_load(&self, after: &[Source], source: &Source) -> Loaded {
        /// Who is trying.
        const TRIES: &str = "(a bundle that is loaded)";
        let mut worker = match self.worker(TRIES) {
            Ok(worker) => worker,
            Err(Asked::Unstarted(why)) => return Loaded::Unstarted(why),
            Err(_) => return Loaded::Unstarted("no worker is free; try again".to_owned()),
        };
        let wait = self.engine.wait();
        let before = after.iter().try_for_each(|module| worker.load(TRIES, module, wait).map(drop));
        let tried = before.and_then(|()| worker.load(TRIES, source, wait));
        let forgotten = tried.is_err() || worker.forget(TRIES, self.engine.wait()).is_ok();
        match tried {
            Ok(mistakes) if forgotten => {
                self.give_back(worker, false, TRIES);
                Loaded::Read(mistakes)
            }
            Ok(mistakes) => {
                self.replace(worker, TRIES);
                Loaded::Read(mistakes)
            }
            Err(lost) => {
                self.replace(worker, TRIES);
                Loaded::Lost(lost)
            }
        }
    }

    /// Has every worker that is started from here on load a set.
    pub(crate) fn keep(&self, set: &ProgramSet) {
        let mut sets = self.sets.lock().unwrap_or_else(PoisonError::into_inner);
        sets.retain(|(_, sources)| sources.strong_count() > 0);
        sets.push((set.name.clone(), Arc::downgrade(&set.sources)));
    }

    fn give_back(&self, mut worker: Worker, worn: bool, of: &str) {
        if worn {
            return self.replace(worker, of);
        }
        if self.forget_unused(&mut worker).is_err() {
            return self.replace(worker, of);
        }
        let mut state = self.lock();
        state.holders.remove(of);
        state.idle.push(worker);
        drop(state);
        self.changed.notify_all();
    }

    /// Programs of bundles that nobody uses any more.
    fn forget_unused(&self, worker: &mut Worker) -> Result<(), Lost> {
        /// Sets that a worker has before it is looked at.
        const MANY: usize = 8;
        if worker.sets.len() < MANY {
            return Ok(());
        }
        let kept: Vec<String> = {
            let mut sets = self.sets.lock().unwrap_or_else(PoisonError::into_inner);
            sets.retain(|(_, sources)| sources.strong_count() > 0);
            sets.iter().map(|(name, _)| name.clone()).collect()
        };
        let unused: Vec<String> = worker.sets.iter().filter(|set| !kept.contains(set)).cloned().collect();
        unused.iter().try_for_each(|set| worker.forget(set, self.engine.wait()))
    }

    /// Another takes the place of a worker.
    pub(crate) fn replace(&self, worker: Worker, of: &str) {
        let mut state = self.lock();
        state.holders.remove(of);
        drop(state);
        self.changed.notify_all();
        if let Some(pool) = self.itself.upgrade() {
            pool.in_background(move |pool| {
                // Killing one that has much memory takes a while.
                drop(worker);
                let _tried_again = pool.add();
            });
        }
    }

    fn start_one(self: &Arc<Self>) {
        self.in_background(|pool| {
            let _tried_again = pool.add();
        });
    }

    fn in_background(self: &Arc<Self>, run: impl FnOnce(&Self) + Send + 'static) {
        let pool = Arc::clone(self);
        let started = std::thread::Builder::new().name("programs".to_owned()).spawn(move || run(&pool));
        if started.is_err() {
            self.lock().workers -= 1;
        }
    }

    /// Starts a worker that is counted already.
    fn add(&self) -> Result<(), EngineError> {
        let started = Worker::start(&self.engine).and_then(|worker| self.with_sets(worker));
        let mut state = self.lock();
        let outcome = match started {
            Ok(worker) => {
                state.idle.push(worker);
                Ok(())
            }
            Err(error) => {
                state.workers = state.workers.saturating_sub(1);
                Err(error)
            }
        };
        drop(state);
        self.changed.notify_all();
        outcome
    }

    /// A new worker with what is in use loaded.
    fn with_sets(&self, mut worker: Worker) -> Result<Worker, EngineError> {
        let sets = self.sets.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for (name, sources) in sets {
            let Some(sources) = sources.upgrade() else { continue };
            if load_all(&mut worker, (&name, &sources), self.engine.wait()).is_err() {
                // Its answer may still come, and would be taken for that to another question. What the next one lacks it
                // loads when it is asked, and then it is told.
                return Worker::start(&self.engine);
            }
        }
        Ok(worker)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Loads a set into a worker that does not have it.
fn load_all(worker: &mut Worker, (set, sources): (&str, &[Source]), wait: Duration) -> Result<(), Lost> {
    if worker.sets.iter().any(|known| known == set) {
        return Ok(());
    }
    for source in sources {
        if let Some(mistake) = worker.load(set, source, wait)?.into_iter().next() {
            return Err(Lost::Ended(format!(
                "`{}` cannot be read any more: {}",
                source.file, mistake.message
            )));
        }
    }
    worker.sets.push(set.to_owned());
    Ok(())
}
