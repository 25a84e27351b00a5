//! Time that a thread was on a processor: bounds in it hold on a machine that does other things too.

use std::time::Duration;

/// What this thread has used so far (proc_pid_schedstat(5), its first number).
fn spent() -> Duration {
    let counters = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    let nanos = counters.split_whitespace().next().unwrap().parse().unwrap();
    Duration::from_nanos(nanos)
}

/// What `work` uses on this thread.
pub(crate) fn of<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let before = spent();
    let done = work();
    (done, spent() - before)
}
