//! Work shared by threads: what is judged in one world has nothing to do with another.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;

/// Most threads: there are no more pieces of work that take long.
const THREADS_MAX: usize = 16;

/// Does all pieces of work, the heaviest first, and returns what they give in their order. `done` is told each piece
/// that is done.
pub fn each<W: Sync, R: Send>(
    work: &[W],
    weight: impl Fn(&W) -> u64,
    run: impl Fn(&W) -> R + Sync,
    mut done: impl FnMut(&W),
) -> Vec<R> {
    let mut order: Vec<usize> = (0..work.len()).collect();
    order.sort_by_key(|at| std::cmp::Reverse(work.get(*at).map_or(0, &weight)));
    let (order, next) = (&order, &AtomicUsize::new(0));
    let run = &run;
    let threads = thread::available_parallelism().map_or(1, usize::from).min(THREADS_MAX).min(work.len());
    let mut results: Vec<Option<R>> = work.iter().map(|_| None).collect();
    thread::scope(|scope| {
        let (send, receive) = mpsc::channel();
        for _ in 0..threads {
            let send = send.clone();
            scope.spawn(move || {
                while let Some(at) = order.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let Some(piece) = work.get(*at) else { break };
                    if send.send((*at, run(piece))).is_err() {
                        break;
                    }
                }
            });
        }
        drop(send);
        for (at, result) in receive {
            if let (Some(place), Some(piece)) = (results.get_mut(at), work.get(at)) {
                *place = Some(result);
                done(piece);
            }
        }
    });
    results.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_the_order_of_the_work() {
        let work: Vec<u64> = (0..50).collect();
        let mut told = 0;
        let squares = each(&work, |piece| *piece, |piece| piece * piece, |_| told += 1);
        assert_eq!(squares, work.iter().map(|piece| piece * piece).collect::<Vec<_>>());
        assert_eq!(told, 50);
        assert_eq!(each(&[], |_: &u64| 0, |piece| *piece, |_| ()), Vec::<u64>::new());
    }
}
