//! Programs that mean harm: each is stopped in time and within its memory, with a denial that says why, and nobody else
//! waits for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use portcullis_program::pool::Pool;

use crate::{answer, file, load, pool, told};

/// How long a program may go on.
const STOPPED_WITHIN: Duration = Duration::from_millis(250);
/// Memory beyond that of an idle worker.
const MEMORY_KB: u64 = 64 << 10;
/// How much later others may get their answer.
const LATER: Duration = Duration::from_millis(5);

/// The memory of a process that is in use.
fn memory_kb(process: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().trim_end_matches(" kB").parse().ok()
}

/// The processes that this one started.
fn children() -> Vec<u32> {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let listed = tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("children")).ok());
    listed
        .flat_map(|list| list.split_whitespace().filter_map(|id| id.parse().ok()).collect::<Vec<u32>>())
        .collect()
}

/// How long others wait, until they are told to stop.
fn others(pool: &Arc<Pool>, stop: Arc<AtomicBool>) -> std::thread::JoinHandle<Vec<Duration>> {
    let program = "def check(action, run, principal):\n    if \"bad\" in action.args[\"text\"]:\n        return deny(\"bad\")\n";
    let set = load(pool, &[("ordinary", program)]).unwrap();
    std::thread::spawn(move || {
        let (told, mut times) = (told("tea").to_string(), Vec::new());
        while !stop.load(Ordering::Relaxed) {
            let began = Instant::now();
            let said = answer(set.check(&told, "another run"));
            times.push(began.elapsed());
            assert!(said.as_ref().is_ok_and(|said| said.objections.is_empty()), "{said:?}");
            std::thread::sleep(Duration::from_millis(1));
        }
        times.sort_unstable();
        times
    })
}

/// The value below which so many of a thousand are.
fn quantile(times: &[Duration], of_thousand: usize) -> Duration {
    times[(times.len() * of_thousand / 1_000).min(times.len() - 1)]
}

/// The most memory that a worker had, until it is told to stop.
fn most_memory(stop: Arc<AtomicBool>) -> std::thread::JoinHandle<u64> {
    std::thread::spawn(move || {
        let mut most = 0;
        while !stop.load(Ordering::Relaxed) {
            most = children().into_iter().filter_map(memory_kb).fold(most, u64::max);
            std::thread::sleep(Duration::from_micros(500));
        }
        most
    })
}

/// Adds up how late this machine wakes whoever sleeps, in microseconds: what is not the pool's doing.
fn lateness(stop: Arc<AtomicBool>, late: Arc<AtomicU64>) -> std::thread::JoinHandle<()> {
    std::thread::spawn(move || {
        while !stop.load(Ordering::Relaxed) {
            let began = Instant::now();
            std::thread::sleep(Duration::from_millis(1));
            let micros = u64::try_from(began.elapsed().as_micros()).unwrap().saturating_sub(1_000);
            late.fetch_add(if micros > 1_000 { micros } else { 0 }, Ordering::Relaxed);
        }
    })
}

#[test]
fn every_hostile_program_is_stopped_and_nobody_waits_for_it() {
    let pool = pool();
    let quiet = {
        let stop = Arc::new(AtomicBool::new(false));
        let times = others(&pool, Arc::clone(&stop));
        std::thread::sleep(Duration::from_millis(500));
        stop.store(true, Ordering::Relaxed);
        times.join().unwrap()
    };
    let idle = pool.idle_processes().into_iter().filter_map(memory_kb).max().unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let watched = most_memory(Arc::clone(&stop));
    let times = others(&pool, Arc::clone(&stop));
    let late = Arc::new(AtomicU64::new(0));
    let clock = lateness(Arc::clone(&stop), Arc::clone(&late));
    let mut names: Vec<_> =
        std::fs::read_dir(file("tests/hostile")).unwrap().map(|entry| entry.unwrap().path()).collect();
    names.sort();
    assert!(names.len() >= 40, "{}", names.len());
    let (mut slowest, mut passed) = (Duration::ZERO, Vec::new());
    for path in names {
        let name = path.file_stem().unwrap().to_str().unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        let began = Instant::now();
        let said = load(&pool, &[(name, &text)]).map(|set| {
            // Loading is a matter of its own, and so is how soon the machine starts workers for those that were lost.
            while pool.idle_processes().len() < 2 {
                std::thread::sleep(Duration::from_millis(1));
            }
            late.store(0, Ordering::Relaxed);
            let began = Instant::now();
            (answer(set.check(&told("aaaa").to_string(), "a hostile run")), began.elapsed())
        });
        let (why, took) = match said {
            Err(mistakes) => (mistakes.join("; "), began.elapsed()),
            Ok((Err(lost), took)) => (lost, took),
            Ok((Ok(said), took)) => {
                let failed = said.failures.iter().map(|failure| failure.why.clone());
                let all: Vec<String> =
                    failed.chain(said.objections.iter().flat_map(|one| one.reasons.clone())).collect();
                (all.join("; "), took)
            }
        };
        if why.is_empty() {
            passed.push(name.to_owned());
        }
        println!("{name}: {took:?}: {}", why.chars().take(150).collect::<String>());
        let late = Duration::from_micros(late.load(Ordering::Relaxed));
        assert!(took < STOPPED_WITHIN + late, "{name} went on for {took:?}, with {late:?} of the machine's");
        slowest = slowest.max(took);
    }
    stop.store(true, Ordering::Relaxed);
    clock.join().unwrap();
    let (most, times) = (watched.join().unwrap(), times.join().unwrap());
    assert_eq!(passed, Vec::<String>::new(), "these are not denied");
    assert!(most <= idle + MEMORY_KB, "{most} kB, idle {idle} kB");
    let (before, meanwhile) = (quantile(&quiet, 500), quantile(&times, 500));
    println!(
        "slowest {slowest:?}; memory {most} kB, idle {idle} kB; others {before:?} before, {meanwhile:?} meanwhile, 99 % {:?}, of {}",
        quantile(&times, 990),
        times.len()
    );
    assert!(meanwhile < before + LATER, "others waited {meanwhile:?} instead of {before:?}");
}
